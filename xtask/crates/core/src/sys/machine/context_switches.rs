//! Context switches of a process.

use std::path::Path;

/// Returns how often the present threads of process `id` have blocked; `None` where the system does not report it (no
/// `/proc`), or if the process has ended. Threads that have ended are not included.
pub fn voluntary(id: u32) -> Option<u64> {
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).ok()?;
    // A thread may end meanwhile.
    Some(threads.flatten().filter_map(|thread| of_thread(&thread.path())).sum())
}

fn of_thread(folder: &Path) -> Option<u64> {
    parse(&std::fs::read_to_string(folder.join("status")).ok()?)
}

fn parse(status: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_voluntary_switches_are_read() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t42\nnonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(parse(status), Some(42));
        assert_eq!(parse("nonvoluntary_ctxt_switches:\t7\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_that_sleeps_is_counted() {
        let before = voluntary(std::process::id()).unwrap();
        for _ in 0..20 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(of_thread(Path::new("/proc/thread-self")).unwrap() >= 20);
        assert!(before > 0 && voluntary(u32::MAX).is_none());
    }
}
