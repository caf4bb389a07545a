//! The size of a KV cache that fits into free memory, from what a server takes on its devices at two sizes.
//!
//! The server measures its weights, its KV cache and its compute buffers at a small and at a large size of the cache,
//! without allocating them. What it takes on a device grows linearly with the size, so one division gives the tokens
//! that fit on it, between the two sizes and beyond. The cache has as many tokens as fit on every device: the one with
//! the least space limits it.

/// A cache has a multiple of this many tokens: llama.cpp rounds other sizes up, which might not fit any more.
const STEP: u32 = 256;

/// Memory of a device, in bytes.
///
/// The layout is `struct espalier_fit_device` of the C header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Device {
    /// Memory that the server may take.
    pub available: i64,
    /// Memory that it takes with the small cache.
    pub used_small: i64,
    /// Memory that it takes with the large cache.
    pub used_large: i64,
}

/// Sizes of a cache in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The small cache of the measurement.
    pub small: u32,
    /// The large cache of the measurement.
    pub large: u32,
    /// The largest cache that is wanted.
    pub max: u32,
}

/// The size of a cache, and the device that limits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fit {
    /// A multiple of 256, or `Sizes::max`; less than `Sizes::small` if not even the small cache fits.
    pub tokens: u32,
    /// Index of the device on which the fewest tokens fit.
    pub device: usize,
}

/// Returns the size of the largest cache that fits; `None` if no device takes more with the large cache than with the
/// small one. What such a device takes is the same whatever the size, so it does not limit the cache.
pub fn fit(devices: &[Device], sizes: Sizes) -> Option<Fit> {
    let fitting = devices.iter().map(|device| device.fitting_tokens(sizes));
    let fitting = fitting.enumerate().filter_map(|(index, tokens)| Some((tokens?, index)));
    let (tokens, device) = fitting.min()?;
    let tokens = u32::try_from(tokens.max(0)).unwrap_or(u32::MAX);
    let tokens = if tokens >= sizes.max { sizes.max } else { tokens - tokens % STEP };
    Some(Fit { tokens, device })
}

impl Device {
    /// Returns the tokens that fit on this device, less than 0 if not even an empty cache does; `None` if what it takes
    /// does not grow.
    fn fitting_tokens(self, sizes: Sizes) -> Option<i128> {
        let growth = i128::from(self.used_large) - i128::from(self.used_small);
        let tokens = i128::from(sizes.large) - i128::from(sizes.small);
        if growth <= 0 || tokens <= 0 {
            return None;
        }
        let left = i128::from(self.available) - i128::from(self.used_small);
        Some(i128::from(sizes.small) + (left * tokens).div_euclid(growth))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: i64 = 1 << 30;
    const SIZES: Sizes = Sizes { small: 4096, large: 131_072, max: i32::MAX as u32 - 255 };

    /// A device that takes `weights` bytes and `per_token` bytes for each token.
    fn device(available: i64, weights: i64, per_token: i64) -> Device {
        let taken = |tokens: u32| weights + per_token * i64::from(tokens);
        Device { available, used_small: taken(SIZES.small), used_large: taken(SIZES.large) }
    }

    fn tokens(devices: &[Device]) -> Option<u32> {
        fit(devices, SIZES).map(|fit| fit.tokens)
    }

    #[test]
    fn the_memory_left_beside_the_weights_is_filled() {
        // 128 KiB for each token: the 64 GiB beside the weights are 2^19 tokens.
        let exact = device(80 * GIB, 16 * GIB, 128 << 10);
        assert_eq!(tokens(&[exact]), Some(1 << 19));
        // One byte less, and the last 256 tokens do not fit.
        assert_eq!(tokens(&[Device { available: exact.available - 1, ..exact }]), Some((1 << 19) - 256));
        // Between the two sizes: 1 GiB is 8,192 tokens.
        assert_eq!(tokens(&[device(17 * GIB, 16 * GIB, 128 << 10)]), Some(8192));
    }

    /// For any sizes: the result fits, and 256 tokens more would not.
    #[test]
    fn the_largest_size_that_fits_is_found() {
        for weights in [0, 1, 3 * GIB + 7] {
            for per_token in [1, 511, 22_528, 131_073] {
                for left in [0, 1, per_token * 256 - 1, per_token * 4096, per_token * 1_000_003 + 17] {
                    let available = weights + left;
                    let found = i64::from(tokens(&[device(available, weights, per_token)]).unwrap());
                    let taken = |tokens: i64| weights + per_token * tokens;
                    assert!(taken(found) <= available, "{weights} {per_token} {left}: {found}");
                    assert!(taken(found + 256) > available, "{weights} {per_token} {left}: {found}");
                }
            }
        }
    }

    #[test]
    fn the_device_with_the_least_space_limits_the_cache() {
        let (large, small) = (device(80 * GIB, GIB, 1 << 16), device(24 * GIB, GIB, 1 << 16));
        let found = fit(&[large, small, large], SIZES).unwrap();
        assert_eq!((found.device, Some(found.tokens)), (1, tokens(&[small])));
        // The first one, if several have the least.
        assert_eq!(fit(&[small, small], SIZES).unwrap().device, 0);
    }

    /// The weights are in part on a device without layers that have a cache, such as the host. It may even be full.
    #[test]
    fn a_device_without_a_part_of_the_cache_does_not_limit_it() {
        let full = device(GIB, 8 * GIB, 0);
        let other = device(80 * GIB, 16 * GIB, 128 << 10);
        assert_eq!(fit(&[full, other], SIZES), Some(Fit { tokens: 1 << 19, device: 1 }));
        assert_eq!(tokens(&[full]), None);
        assert_eq!(tokens(&[]), None);
        // A compute buffer that shrinks does not limit it either.
        assert_eq!(tokens(&[Device { available: 0, used_small: 2, used_large: 1 }]), None);
    }

    #[test]
    fn less_than_the_small_size_is_reported_as_it_is() {
        // 2,048 tokens fit, then none, then not even the weights.
        assert_eq!(tokens(&[device(16 * GIB + (256 << 20), 16 * GIB, 128 << 10)]), Some(2048));
        assert_eq!(tokens(&[device(16 * GIB, 16 * GIB, 128 << 10)]), Some(0));
        assert_eq!(tokens(&[device(GIB, 16 * GIB, 128 << 10)]), Some(0));
        assert_eq!(tokens(&[device(-GIB, 16 * GIB, 128 << 10)]), Some(0));
    }

    #[test]
    fn the_largest_size_is_never_exceeded() {
        let device = device(80 * GIB, GIB, 1 << 16);
        // It need not be a multiple of 256: the training context of a model.
        let trained = Sizes { max: 40_000, ..SIZES };
        assert_eq!(fit(&[device], trained).unwrap().tokens, 40_000);
        let endless = Device { available: i64::MAX, used_small: i64::MIN, used_large: i64::MIN + 1 };
        assert_eq!(tokens(&[endless]), Some(SIZES.max));
    }

    #[test]
    fn two_equal_sizes_say_nothing() {
        let device = device(80 * GIB, GIB, 1 << 16);
        assert_eq!(fit(&[device], Sizes { large: SIZES.small, ..SIZES }), None);
        assert_eq!(fit(&[device], Sizes { small: SIZES.large, large: SIZES.small, ..SIZES }), None);
    }
}
