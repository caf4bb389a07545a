//! Parses the output of `test-backend-ops`, upstream's comparison of devices with the CPU.

/// Result for one device other than the CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tested {
    /// Its name, such as `Vulkan0`.
    pub device: String,
    /// Operations whose results match the CPU's.
    pub passed: usize,
    /// Operations that it supports.
    pub all: usize,
    /// Operations that fall back to the CPU.
    pub unsupported: usize,
}

/// Parses the whole output; skipped devices are omitted.
pub fn read(output: &str) -> Vec<Tested> {
    let mut found: Vec<Tested> = Vec::new();
    let mut device = "";
    let mut unsupported = 0;
    for line in output.lines() {
        if let Some(name) = device_of(line) {
            (device, unsupported) = (name, 0);
        } else if line.contains(": not supported [") {
            unsupported += 1;
        } else if let Some((passed, all)) = counts_of(line) {
            found.push(Tested { device: device.to_string(), passed, all, unsupported });
        }
    }
    found
}

/// The operations with a mismatch, in upstream's notation: `ADD(type=f32,...)`.
pub fn failed(output: &str) -> impl Iterator<Item = &str> {
    let failed = output.lines().filter(|line| line.contains("FAIL") && line.contains('('));
    failed.filter_map(|line| Some(line.rsplit_once(": ")?.0.trim()))
}

/// `Backend 1/2: Vulkan0`
fn device_of(line: &str) -> Option<&str> {
    let (number, name) = line.strip_prefix("Backend ")?.split_once(": ")?;
    number.contains('/').then_some(name.trim())
}

/// `  12/12 tests passed`
fn counts_of(line: &str) -> Option<(usize, usize)> {
    let (passed, all) = line.trim().strip_suffix(" tests passed")?.split_once('/')?;
    Some((passed.parse().ok()?, all.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_is_counted_and_the_processor_is_none() {
        let output = "Testing 3 devices\n\nBackend 1/3: Vulkan0\n  Device description: llvmpipe\n  ADD(x=1): \u{1b}[1;32mOK\u{1b}[0m\n  \
                    SET(x=2): not supported [Vulkan0] \n  1/1 tests passed\n  Backend Vulkan0: OK\n\nBackend 2/3: CUDA0\n  0/4 tests passed\n\
                    Backend 3/3: CPU\n  Skipping CPU backend\n3/3 backends passed\nOK\n";
        let tested = |device: &str, passed, all, unsupported| Tested {
            device: device.to_string(),
            passed,
            all,
            unsupported,
        };
        assert_eq!(read(output), [tested("Vulkan0", 1, 1, 1), tested("CUDA0", 0, 4, 0)]);
        assert_eq!(failed(output).count(), 0);
        let wrong = "  MUL(a=[1,2]): \u{1b}[1;31mFAIL\u{1b}[0m\n  Backend X: \u{1b}[1;31mFAIL\u{1b}[0m\n";
        assert_eq!(failed(wrong).collect::<Vec<_>>(), ["MUL(a=[1,2])"]);
        assert_eq!(read("Testing 1 devices\nBackend 1/1: CPU\n  Skipping CPU backend\n"), []);
    }
}
