//! The C ABI of [`crate::fit`]: the declarations of `include/espalier_fit.h`.

use crate::ffi::guarded;
use crate::fit::{self, Device, Sizes};

/// Returns the tokens of the largest KV cache that fits, and writes the index of the device that limits it, or `count`
/// if the size of the cache has no influence on any device: the tokens are `n_max` then. Returns 0, and writes nothing,
/// for a null pointer.
///
/// # Safety
///
/// `devices` is null or points to `count` valid `struct espalier_fit_device`; `device` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_fit_tokens(
    devices: *const Device,
    count: usize,
    n_small: u32,
    n_large: u32,
    n_max: u32,
    device: *mut usize,
) -> u32 {
    guarded(0, || {
        // SAFETY: per this function's contract `device` is null or writable.
        let Some(device) = (unsafe { device.as_mut() }) else { return 0 };
        if devices.is_null() {
            return 0;
        }
        // SAFETY: `devices` is not null, and per this function's contract it points to `count` devices.
        let devices = unsafe { std::slice::from_raw_parts(devices, count) };
        let found = fit::fit(devices, Sizes { small: n_small, large: n_large, max: n_max });
        *device = found.map_or(count, |fit| fit.device);
        found.map_or(n_max, |fit| fit.tokens)
    })
}
