//! Clocks.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
#[must_use]
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Returns the processor seconds of all child processes that have ended, and of all that those started; 0 where the
/// system does not report them (no `/proc`).
#[must_use]
pub fn seconds_of_programs() -> f64 {
    let ticks = std::fs::read_to_string("/proc/self/stat").ok().and_then(|stat| ticks_of_programs(&stat));
    ticks.unwrap_or_default() as f64 / TICKS_A_SECOND
}

/// `USER_HZ`, which is part of Linux's stable ABI on every processor that we build on.
const TICKS_A_SECOND: f64 = 100.0;

/// Parses `cutime` and `cstime` of proc_pid_stat(5): the program's name before them may contain blanks and
/// parentheses.
fn ticks_of_programs(stat: &str) -> Option<u64> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(fields.get(13)?.parse::<u64>().ok()? + fields.get(14)?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_programs_is_found_behind_any_name() {
        let stat = "7 (a) b 1 2) S 1 7 7 0 -1 4194560 900 800 0 0 1 2 31 11 20 0 1 0 5 6";
        assert_eq!(ticks_of_programs(stat), Some(42));
        assert_eq!(ticks_of_programs("7 (a) S 1"), None);
    }
}
