//! How much memory a process has.

/// Resident memory of process `id` in bytes; nothing where the system does not say (no `/proc`), or when it is gone.
pub fn resident_bytes(id: u32) -> Option<u64> {
    read(id, "VmRSS:")
}

/// The maximum of the same since the process started, or since [`reset_peak`].
pub fn peak_bytes(id: u32) -> Option<u64> {
    read(id, "VmHWM:")
}

/// Sets the maximum of process `id` to what is resident now; whether the system did it.
pub fn reset_peak(id: u32) -> bool {
    std::fs::write(format!("/proc/{id}/clear_refs"), "5").is_ok()
}

fn read(id: u32, name: &str) -> Option<u64> {
    parse(&std::fs::read_to_string(format!("/proc/{id}/status")).ok()?, name)
}

/// The kernel says kB and means KiB.
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
