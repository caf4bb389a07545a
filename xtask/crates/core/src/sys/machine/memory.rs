//! Memory use of a process.

/// Returns the resident memory of process `id` in bytes; `None` where the system does not report it (no `/proc`), or
/// if the process has ended.
pub fn resident_bytes(id: u32) -> Option<u64> {
    read(id, "VmRSS:")
}

/// Returns the maximum resident memory since the process started, or since [`reset_peak`].
pub fn peak_bytes(id: u32) -> Option<u64> {
    read(id, "VmHWM:")
}

/// Resets the maximum of process `id` to its current resident memory; returns whether the system did so.
pub fn reset_peak(id: u32) -> bool {
    std::fs::write(format!("/proc/{id}/clear_refs"), "5").is_ok()
}

fn read(id: u32, name: &str) -> Option<u64> {
    parse(&std::fs::read_to_string(format!("/proc/{id}/status")).ok()?, name)
}

/// The kernel prints kB and means KiB.
fn parse(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_in_bytes() {
        assert_eq!(parse("Name:\tx\nVmPeak:\t  90 kB\nVmRSS:\t    2048 kB\n", "VmRSS:"), Some(2 << 20));
        assert_eq!(parse("Name:\tx\nState:\tZ (zombie)\n", "VmRSS:"), None);
        assert_eq!(parse("VmRSS:\t12 pages\n", "VmRSS:"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn we_have_some_ourselves() {
        assert!(resident_bytes(std::process::id()).unwrap() > 1 << 20);
        assert_eq!(resident_bytes(u32::MAX), None);
        assert!(peak_bytes(std::process::id()).unwrap() >= 1 << 20);
        assert!(!reset_peak(u32::MAX));
    }
}
