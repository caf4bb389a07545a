//! The C ABI: exactly the declarations of `include/espalier_kernels.h`. The block pool's part is in
//! [`crate::ffi::pool`] and [`crate::ffi::boundaries`], the scheduler's in [`crate::ffi::scheduler`], attention's in
//! [`crate::ffi::attention`], that of gated delta nets in [`crate::ffi::gdn`]. Three more headers have the declarations
//! of [`crate::ffi::kv_gather`], [`crate::ffi::fit`] and [`crate::ffi::mul_mat`]: `include/espalier_kv_gather.h`,
//! `include/espalier_fit.h` and `include/espalier_mul_mat.h`.
//!
//! `tests/header.rs` checks that headers and exports agree: names, values and layouts.

use std::ffi::c_char;

use sha2::{Digest, Sha256};

use crate::features::{Feature, enabled_features};
use crate::ffi::guarded;
use crate::gdn_output::{OutputFacts, may_flatten};
use crate::{container, variables};

/// The version of the C ABI. Raise it, here and in the header, whenever a signature, a value or a layout changes.
pub const ABI_VERSION: u32 = 14;

/// Returns [`ABI_VERSION`]; the caller compares it with its header's constant.
#[unsafe(no_mangle)]
pub extern "C" fn espalier_kernels_abi_version() -> u32 {
    ABI_VERSION
}

/// Returns 1 if the feature with this number is on in this process, else 0, also for an unknown number.
#[unsafe(no_mangle)]
pub extern "C" fn espalier_feature_enabled(feature: u32) -> i32 {
    guarded(0, || i32::from(is_enabled(feature)))
}

fn is_enabled(number: u32) -> bool {
    Feature::from_number(number).is_some_and(|feature| enabled_features().contains(feature))
}

/// Writes the comma-separated names of the enabled features and a NUL to `buffer`, cut to fit
/// `length` bytes. Returns the length of the whole list in bytes, without the NUL.
///
/// # Safety
///
/// `buffer` points to `length` writable bytes, or `length` is 0 (then `buffer` may be null).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_features(buffer: *mut c_char, length: usize) -> usize {
    guarded(0, || {
        let names = enabled_features().names();
        // SAFETY: per this function's contract `buffer` points to `length` writable bytes.
        unsafe { write_c_string(&names, buffer, length) };
        names.len()
    })
}

/// # Safety
///
/// `buffer` is null, or points to `length` writable bytes.
unsafe fn write_c_string(text: &str, buffer: *mut c_char, length: usize) {
    if buffer.is_null() || length == 0 {
        return;
    }
    let copied = text.len().min(length - 1);
    // SAFETY: `copied + 1 <= length`, and per this function's contract `buffer` has `length` bytes; it does not overlap
    // `text`.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast::<u8>(), copied);
        buffer.add(copied).write(0);
    }
}

/// Returns 1 if `gdn-flat-output` is on and the projection described by `facts` is one where
/// flattening keeps every bit; else 0, also for a null pointer.
///
/// # Safety
///
/// `facts` is null or points to a valid `struct espalier_gdn_output_facts`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_gdn_output_is_flat(facts: *const OutputFacts) -> i32 {
    guarded(0, || {
        // SAFETY: per this function's contract `facts` is null or points to valid facts.
        let facts = unsafe { facts.as_ref() };
        let enabled = enabled_features().contains(Feature::GdnFlatOutput);
        i32::from(enabled && facts.is_some_and(may_flatten))
    })
}

/// Returns the bytes that the limits of control groups still allow this process to allocate; `INT64_MAX` without one.
#[unsafe(no_mangle)]
pub extern "C" fn espalier_free_of_groups() -> i64 {
    guarded(i64::MAX, || {
        container::free_bytes().and_then(|bytes| i64::try_from(bytes).ok()).unwrap_or(i64::MAX)
    })
}

/// Writes a warning to stderr for each environment variable that resembles a known one and that nothing reads.
#[unsafe(no_mangle)]
pub extern "C" fn espalier_warn_of_variables() {
    guarded((), variables::warn_of_misspelt);
}

/// Writes the SHA-256 of `length` bytes to `digest`.
///
/// # Safety
///
/// `bytes` points to `length` bytes, or `length` is 0; `digest` is null or points to space for 32 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_sha256(bytes: *const u8, length: usize, digest: *mut u8) {
    guarded((), || {
        let is_nothing = bytes.is_null() || length == 0;
        // SAFETY: per this function's contract `bytes` points to `length` bytes.
        let bytes = if is_nothing { &[] } else { unsafe { std::slice::from_raw_parts(bytes, length) } };
        let made: [u8; 32] = Sha256::digest(bytes).into();
        if !digest.is_null() {
            // SAFETY: per this function's contract `digest` has space for 32 bytes, and the new digest does not overlap
            // it.
            unsafe { std::ptr::copy_nonoverlapping(made.as_ptr(), digest, made.len()) };
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, length: usize) -> Vec<u8> {
        let mut buffer = [0xffu8; 8];
        assert!(length <= buffer.len());
        // SAFETY: `buffer` holds at least `length` bytes.
        unsafe { write_c_string(text, buffer.as_mut_ptr().cast(), length) };
        buffer.to_vec()
    }

    #[test]
    fn text_is_cut_to_the_buffer_and_always_ended() {
        assert_eq!(written("abc", 8)[..5], [b'a', b'b', b'c', 0, 0xff]);
        assert_eq!(written("abc", 3)[..4], [b'a', b'b', 0, 0xff]);
        assert_eq!(written("abc", 1)[..2], [0, 0xff]);
        assert_eq!(written("abc", 0)[0], 0xff);
    }

    #[test]
    fn null_and_unknown_arguments_are_neutral() {
        assert_eq!(espalier_feature_enabled(u32::MAX), 0);
        // SAFETY: both functions allow null.
        unsafe {
            assert_eq!(espalier_gdn_output_is_flat(std::ptr::null()), 0);
            espalier_features(std::ptr::null_mut(), 0);
        }
    }
}
