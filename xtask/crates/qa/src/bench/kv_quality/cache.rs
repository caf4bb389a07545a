//! The caches to measure.

use crate::serving::cache::Cache;

/// Upstream's `q8_0` and `q4_0`, our types for K and V, for V only, and the types that `--kv-quality` selects.
const USUAL: [&str; 28] = [
    "q8_0/q8_0",
    "q8_0/q4_0",
    "q4_0/q4_0",
    "turbo4/turbo4",
    "turbo3/turbo3",
    "tcq3/tcq3",
    "turbo2/turbo2",
    "tcq2/tcq2",
    "q8_0/turbo4",
    "q8_0/turbo3",
    "q8_0/tcq3",
    "q8_0/turbo2",
    "q8_0/tcq2",
    "turbo4/q8_0",
    "tcq3/q8_0",
    "turbo4/tcq3",
    "turbo4/tcq3+1",
    "turbo4/tcq2",
    "turbo4/tcq2+1",
    "tcq3/tcq2",
    "q8_0/turbo4~32",
    "turbo4/tcq3~32",
    "turbo4/tcq3~128",
    "turbo4/tcq3^4",
    "tcq3/tcq2~32",
    "tcq3/tcq3~128",
    "tcq2/tcq2~128",
    "q8_0/tcq2~128",
];

/// Returns the caches that are measured by default.
pub fn usual() -> Vec<Cache> {
    USUAL.iter().filter_map(|cache| cache.parse().ok()).collect()
}

/// `q8_0`, `q4_0` and our types, one with edge layers, and one with sinks and a residual window: enough to notice that
/// one of these codes has become worse.
const EACH_CODE_ONCE: [&str; 9] = [
    "q8_0/q8_0",
    "q4_0/q4_0",
    "turbo4/turbo4",
    "turbo3/turbo3",
    "turbo2/turbo2",
    "tcq3/tcq3",
    "tcq2/tcq2",
    "q8_0/tcq2+1",
    "turbo2/turbo2~64^4",
];

/// `q8_0`, `q4_0` and our types, each for both K and V; upstream's `q4_1`, `q5_0`, `q5_1` and `iq4_nl` are left out.
const EACH_TYPE_ONCE: [&str; 7] =
    ["q8_0/q8_0", "q4_0/q4_0", "turbo4/turbo4", "turbo3/turbo3", "turbo2/turbo2", "tcq3/tcq3", "tcq2/tcq2"];

/// Returns the caches that are measured on real weights.
pub fn each_type_once() -> Vec<Cache> {
    EACH_TYPE_ONCE.iter().filter_map(|cache| cache.parse().ok()).collect()
}

pub fn each_code_once() -> Vec<Cache> {
    EACH_CODE_ONCE.iter().filter_map(|cache| cache.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_name_caches() {
        assert_eq!((usual().len(), each_code_once().len()), (USUAL.len(), EACH_CODE_ONCE.len()));
        assert_eq!(each_type_once().len(), EACH_TYPE_ONCE.len());
    }
}
