//! The lower bounds of a burst, measured by the probe: the prefix once, shared cells, one batch of suffixes, the steps.

use std::path::PathBuf;
use std::time::Duration;

use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::process::{self, Run};
use serde_json::Value;

use crate::serving::bench_fixture::BenchFixture;
use crate::serving::prompts::Prompts;
use crate::serving::switches::{ATTENTION, with_feature};

pub(super) struct Floor {
    pub(super) probe: PathBuf,
    pub(super) prompts: Prompts,
    /// Attention kernels to use.
    pub(super) kernels: Kernels,
}

/// Origin of the attention kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kernels {
    /// Upstream's kernels.
    Stock,
    /// Our kernels. They get no block table here, and detect from the mask what tokens share.
    Ours,
}

impl Kernels {
    fn feature(self) -> Option<&'static str> {
        (self == Kernels::Ours).then_some(ATTENTION)
    }
}

impl Floor {
    /// Returns the time that the probe measured inside its process, after it had loaded the model.
    pub(super) fn measure(&self, fixture: &BenchFixture<'_>) -> Result<Duration> {
        let run = with_feature(Run::new(&self.probe), self.kernels.feature());
        let run = run.args(arguments(&self.prompts, fixture.threads)).arg(&fixture.model);
        let words = run.words();
        let finished = run.finish()?;
        if !finished.status.success() {
            return Err(process::failed(&words, finished.status, &finished.stderr));
        }
        parse(&finished.stdout).ok_or_else(|| Error::environment(format!("`{words}` printed no lower bound")))
    }
}

fn arguments(prompts: &Prompts, threads: usize) -> Vec<String> {
    let numbers = [
        ("--seqs", prompts.requests),
        ("--shared-prefix", prompts.prefix),
        ("--prompt", prompts.suffix),
        // The first answer token is sampled from the prompt's batch.
        ("--steps", prompts.predict - 1),
        ("--threads", threads),
    ];
    let words = numbers.into_iter().flat_map(|(name, number)| [name.to_string(), number.to_string()]);
    words.chain(["--model".to_string()]).collect()
}

fn parse(stdout: &[u8]) -> Option<Duration> {
    let said: Value = serde_json::from_slice(stdout).ok()?;
    let millis = said.get("lower_bound_ms_median")?.as_f64().filter(|millis| *millis > 0.0)?;
    Some(Duration::from_secs_f64(millis / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_token_costs_no_step() {
        let prompts = Prompts { requests: 16, prefix: 1600, suffix: 16, predict: 8, family: 0 };
        let words = arguments(&prompts, 2).join(" ");
        assert_eq!(words, "--seqs 16 --shared-prefix 1600 --prompt 16 --steps 7 --threads 2 --model");
    }

    #[test]
    fn a_floor_is_a_time() {
        assert_eq!(parse(b"{\"lower_bound_ms_median\":1500.0}"), Some(Duration::from_millis(1500)));
        assert_eq!(parse(b"{\"lower_bound_ms_median\":0.0}"), None);
        assert_eq!(parse(b"nothing"), None);
    }
}
