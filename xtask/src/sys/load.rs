//! Whether the machine is quiet enough to measure on.

use std::time::Duration;

use crate::error::{Error, Result};

/// More than this share of all cores busy with something else, and a time means nothing.
const BUSY: f64 = 0.10;

/// Watches the machine for two seconds; an error when somebody else is using it. Where the system does
/// not say (no `/proc/stat`), nothing is refused.
pub fn refuse_busy() -> Result<()> {
    let Some(before) = read_times() else { return Ok(()) };
    std::thread::sleep(Duration::from_secs(2));
    let Some(after) = read_times() else { return Ok(()) };
    let busy = after.busy.saturating_sub(before.busy) as f64;
    let share = busy / (after.total.saturating_sub(before.total)).max(1) as f64;
    if share <= BUSY {
        return Ok(());
    }
    Err(Error::surroundings(format!(
        "the machine is busy: {:.0}% of its cores' time is taken",
        share * 100.0
    ))
    .detail("a time measured now would say nothing")
    .hint("stop other builds and programs, then run the same command again"))
}

struct Times {
    busy: u64,
    total: u64,
}

fn read_times() -> Option<Times> {
    parse(&std::fs::read_to_string("/proc/stat").ok()?)
}

/// The first line: user, nice, system, idle, iowait, irq, softirq, steal in ticks.
fn parse(text: &str) -> Option<Times> {
    let ticks: Vec<u64> =
        text.lines().next()?.split_whitespace().skip(1).take(8).map_while(|word| word.parse().ok()).collect();
    let idle = ticks.get(3)? + ticks.get(4)?;
    let total = ticks.iter().sum();
    Some(Times { busy: total - idle, total })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_are_not_busy() {
        let times = parse("cpu  10 0 5 80 5 0 0 0 0 0\ncpu0 1 2 3\n").unwrap();
        assert_eq!((times.busy, times.total), (15, 100));
        assert!(parse("").is_none() && parse("cpu x").is_none());
    }
}
