//! Processor time of a process.

use std::time::Duration;

/// Returns the processor time of all threads of process `id`, with the resolution of the system's clock tick (mostly
/// 10 ms); `None` where the system does not report it (no `/proc`), or if the process has ended.
pub fn of_process(id: u32) -> Option<Duration> {
    let ticks = parse(&std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?)?;
    let rate = rate()?;
    Some(Duration::from_secs(ticks / rate) + Duration::from_secs(ticks % rate) / u32::try_from(rate).ok()?)
}

/// Returns the clock ticks per second.
#[cfg(target_os = "linux")]
fn rate() -> Option<u64> {
    Some(rustix::param::clock_ticks_per_second()).filter(|rate| *rate > 0)
}

#[cfg(not(target_os = "linux"))]
fn rate() -> Option<u64> {
    None
}

/// Sums fields 14 and 15 of stat, where the process id is field 1. The name before them is in parentheses and may
/// contain any character.
fn parse(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    user.checked_add(system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_system_time_are_added() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 100 0 0 0 12 30 0 0 20 0 1 0 5 6 7";
        assert_eq!(parse(stat), Some(42));
        assert_eq!(parse("7 (a) S 1"), None);
        assert_eq!(parse(""), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_is_gone_has_none() {
        assert!(of_process(std::process::id()).is_some());
        assert_eq!(of_process(u32::MAX), None);
    }
}
