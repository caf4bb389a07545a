//! The C ABI of [`crate::kv_quant`]. Types are ids of `enum ggml_type`, counts are of values.

use crate::attention::decoder;
use crate::ffi::guarded;
use crate::kv_quant::{DenseType, bits, encoder};

/// Encodes `count` values, a multiple of the block size, as blocks of the type `number`. Writes nothing for another
/// type.
///
/// # Safety
///
/// `from` points to `count` floats, `to` to space for the bytes of their blocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_kv_encode(number: i32, from: *const f32, to: *mut u8, count: usize) {
    guarded((), || {
        let Some((kind, bytes)) = blocks(number, count) else { return };
        // SAFETY: per this function's contract both pointers are valid for these lengths.
        unsafe {
            let to = slice_mut(to, bytes);
            encoder::encode(kind, slice(from, count), to);
        }
    });
}

/// Decodes the `count` values of blocks of the type `number`. Writes nothing for another type.
///
/// # Safety
///
/// `from` points to the bytes of the blocks, `to` to space for `count` floats.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_kv_decode(number: i32, from: *const u8, to: *mut f32, count: usize) {
    guarded((), || {
        let Some((kind, bytes)) = blocks(number, count) else { return };
        // SAFETY: per this function's contract both pointers are valid for these lengths.
        unsafe {
            let to = slice_mut(to, count);
            decoder::decode(kind, slice(from, bytes), to);
        }
    });
}

/// Returns the dot product of the `count` values of blocks with as many floats; NaN for another type.
///
/// # Safety
///
/// `from` points to the bytes of the blocks, `with` to `count` floats.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_kv_dot(
    number: i32,
    from: *const u8,
    with: *const f32,
    count: usize,
) -> f32 {
    guarded(f32::NAN, || {
        let Some((kind, bytes)) = blocks(number, count) else { return f32::NAN };
        // SAFETY: per this function's contract both pointers are valid for these lengths.
        unsafe {
            let from = slice(from, bytes);
            decoder::dot(kind, from, slice(with, count))
        }
    })
}

/// Returns 1 if all `count` values of the blocks are finite, 0 if not or for another type.
///
/// # Safety
///
/// `from` points to the bytes of the blocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_kv_is_finite(number: i32, from: *const u8, count: usize) -> i32 {
    guarded(0, || {
        let Some((kind, bytes)) = blocks(number, count) else { return 0 };
        // SAFETY: per this function's contract `from` points to as many bytes.
        let from = unsafe { slice(from, bytes) };
        i32::from(from.chunks_exact(kind.bytes()).all(|block| bits::scale(block).is_finite()))
    })
}

/// Returns the fingerprint of a type: two builds with the same fingerprint can read each other's blocks. 0 for other
/// types.
#[unsafe(no_mangle)]
pub extern "C" fn espalier_kv_fingerprint(number: i32) -> u64 {
    guarded(0, || DenseType::from_number(number).map_or(0, |kind| kind.code.fingerprint()))
}

/// Returns the type with this id, and the bytes of `count` values.
fn blocks(number: i32, count: usize) -> Option<(DenseType, usize)> {
    let kind = DenseType::from_number(number)?;
    Some((kind, kind.row_bytes(count)?))
}

/// Returns `count` values at `from`, which may be null if `count` is 0.
///
/// # Safety
///
/// As [`std::slice::from_raw_parts`] if `count` is not 0.
unsafe fn slice<'a, T>(from: *const T, count: usize) -> &'a [T] {
    // SAFETY: per this function's contract a slice of `count` values is valid.
    if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(from, count) } }
}

/// Like [`slice`], writable.
///
/// # Safety
///
/// As [`std::slice::from_raw_parts_mut`] if `count` is not 0.
unsafe fn slice_mut<'a, T>(to: *mut T, count: usize) -> &'a mut [T] {
    // SAFETY: per this function's contract a slice of `count` values is valid.
    if count == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(to, count) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_there_and_back() {
        for kind in DenseType::ALL {
            let from: Vec<f32> = (0..256).map(|at| (at as f32 * 0.7).sin()).collect();
            let (number, mut blocks) = (kind.number(), vec![0; 256 / kind.block.values() * kind.bytes()]);
            let mut to = vec![0.0; 256];
            // SAFETY: all have these lengths.
            let (dot, is_finite) = unsafe {
                espalier_kv_encode(number, from.as_ptr(), blocks.as_mut_ptr(), 256);
                espalier_kv_decode(number, blocks.as_ptr(), to.as_mut_ptr(), 256);
                let dot = espalier_kv_dot(number, blocks.as_ptr(), from.as_ptr(), 256);
                (dot, espalier_kv_is_finite(number, blocks.as_ptr(), 256))
            };
            let square: f32 = from.iter().map(|x| x * x).sum();
            let error: f32 = from.iter().zip(&to).map(|(a, b)| (a - b) * (a - b)).sum();
            assert!(error < 0.2 * square && (dot - square).abs() < 0.2 * square, "{kind:?} {error} {dot}");
            assert_eq!(is_finite, 1);
            assert_ne!(espalier_kv_fingerprint(number), 0);
        }
    }

    #[test]
    fn blocks_with_a_scale_that_is_none_are_not_finite() {
        for scale in [0x7c00u16, 0xfc00, 0x7e01, 0xffff] {
            let mut block = [0; 34];
            block[..2].copy_from_slice(&scale.to_le_bytes());
            // SAFETY: a block of turbo2 has 34 bytes.
            assert_eq!(unsafe { espalier_kv_is_finite(200, block.as_ptr(), 128) }, 0);
        }
    }

    #[test]
    fn no_blocks_need_no_memory() {
        for kind in DenseType::ALL {
            // SAFETY: nothing is read, nothing is written.
            unsafe {
                espalier_kv_encode(kind.number(), std::ptr::null(), std::ptr::null_mut(), 0);
                espalier_kv_decode(kind.number(), std::ptr::null(), std::ptr::null_mut(), 0);
                assert_eq!(espalier_kv_dot(kind.number(), std::ptr::null(), std::ptr::null(), 0), 0.0);
                assert_eq!(espalier_kv_is_finite(kind.number(), std::ptr::null(), 0), 1);
            }
        }
    }

    #[test]
    fn other_types_and_parts_of_blocks_are_left_alone() {
        let (from, mut to) = ([1.0; 128], [7; 66]);
        for (number, count) in [(8, 128), (-1, 128), (210, 128), (200, 127), (200, 64)] {
            // SAFETY: nothing is read or written.
            unsafe {
                espalier_kv_encode(number, from.as_ptr(), to.as_mut_ptr(), count);
                assert!(espalier_kv_dot(number, to.as_ptr(), from.as_ptr(), count).is_nan());
                assert_eq!(espalier_kv_is_finite(number, to.as_ptr(), count), 0);
            }
        }
        assert_eq!((to, espalier_kv_fingerprint(8)), ([7; 66], 0));
    }
}
