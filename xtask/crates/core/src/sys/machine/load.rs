//! Load of the machine: whether it is idle enough for measurements.

use std::time::Duration;

use crate::error::{Error, Result};

/// If other processes use more than this share of all cores, times are meaningless.
const BUSY: f64 = 0.10;

/// Load caused by other processes.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Number of cores.
    pub cores: usize,
    /// Share of all processor time that other processes use.
    pub share: f64,
}

impl Load {
    /// Whether a time measured now is meaningful.
    pub fn is_quiet(&self) -> bool {
        self.share <= BUSY
    }

    /// Returns the number of idle cores, at least one.
    pub fn free_cores(&self) -> usize {
        (((1.0 - self.share) * self.cores as f64).round() as usize).max(1)
    }

    fn refuse_busy(self) -> Result<Load> {
        if self.is_quiet() {
            return Ok(self);
        }
        Err(Error::environment(format!("the machine is busy: CPU utilization is {:.0}%", self.share * 100.0))
            .detail("a measurement now would be meaningless")
            .hint("stop other builds and programs, then run the same command again"))
    }
}

/// Samples the load for two seconds. Where the system does not report it (no `/proc/stat`), the machine counts as
/// idle.
pub fn measure() -> Load {
    Load { cores: cores(), share: share_taken().unwrap_or_default() }
}

/// Returns the number of hardware threads available to this process.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Returns an error if other processes are using the machine.
pub fn refuse_busy() -> Result<Load> {
    measure().refuse_busy()
}

fn share_taken() -> Option<f64> {
    let before = read_times()?;
    std::thread::sleep(Duration::from_secs(2));
    let after = read_times()?;
    let busy = after.busy.saturating_sub(before.busy) as f64;
    Some(busy / (after.total.saturating_sub(before.total)).max(1) as f64)
}

/// Returns the model name of the processor; `None` where the system does not report it.
pub fn processor() -> Option<String> {
    parse_processor(&std::fs::read_to_string("/proc/cpuinfo").ok()?)
}

fn parse_processor(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

/// Returns the vector instruction sets of the processor by the system's names; empty where it does not report them.
pub fn processor_flags() -> Vec<String> {
    parse_flags(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
}

fn parse_flags(text: &str) -> Vec<String> {
    /// Prefixes of their names, on x86-64 and on Arm.
    const BEGINNINGS: [&str; 10] =
        ["avx", "amx", "sse4", "fma", "f16c", "asimd", "fphp", "sve", "i8mm", "bf16"];
    let is_flags = |line: &&str| line.starts_with("flags") || line.starts_with("Features");
    let flags =
        text.lines().find(is_flags).and_then(|line| line.split_once(':')).map_or("", |(_, flags)| flags);
    let is_of_vectors = |flag: &&str| BEGINNINGS.iter().any(|beginning| flag.starts_with(beginning));
    let mut flags: Vec<String> = flags.split_whitespace().filter(is_of_vectors).map(str::to_string).collect();
    flags.sort();
    flags
}

struct Times {
    busy: u64,
    total: u64,
}

fn read_times() -> Option<Times> {
    parse(&std::fs::read_to_string("/proc/stat").ok()?)
}

/// Parses the first line: user, nice, system, idle, iowait, irq, softirq, steal in ticks.
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
    #[test]
    fn used_memory_is_not_free() {
        let load = |share| Load { cores: 8, share };
        assert_eq!([0.0, 0.1, 0.5, 1.0].map(|share| load(share).free_cores()), [8, 7, 4, 1]);
        assert!(load(0.1).refuse_busy().is_ok());
        let error = load(0.5).refuse_busy().unwrap_err();
        assert!(error.to_string().contains("CPU utilization is 50%"), "{error}");
    }

    #[test]
    fn instructions_on_vectors_are_named_in_order() {
        let text = "processor\t: 0\nflags\t\t: fpu sse4_2 avx512f avx2 fma\nflags\t\t: other\n";
        assert_eq!(parse_flags(text), ["avx2", "avx512f", "fma", "sse4_2"]);
        assert_eq!(parse_flags("Features\t: fp asimd sve\n"), ["asimd", "sve"]);
        assert!(parse_flags("").is_empty());
    }

    #[test]
    fn the_processor_is_named() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nmodel name\t: another\n";
        assert_eq!(parse_processor(text).as_deref(), Some("Some CPU @ 2 GHz"));
        assert_eq!(parse_processor("processor: 0"), None);
    }
}
