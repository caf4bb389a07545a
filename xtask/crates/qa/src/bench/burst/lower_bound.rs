//! The lower bounds of a burst, measured by the probe: the prefix once, shared cells, one batch of suffixes, the steps.

use std::path::PathBuf;
use std::time::Duration;

use espalier_core::error::Result;
use espalier_core::sys::machine::process::Run;

use crate::serving::bench_fixture::BenchFixture;
use crate::serving::probe;
use crate::serving::prompts::Prompts;
use crate::serving::switches::with_feature;

pub(super) struct LowerBound {
    pub(super) probe: PathBuf,
    pub(super) prompts: Prompts,
    /// Feature with the attention kernels to use; `None` for upstream's. Ours get no block table here, and detect from
    /// the mask what tokens share.
    pub(super) kernels: Option<&'static str>,
}

impl LowerBound {
    /// Returns the time that the probe measured inside its process, after it had loaded the model.
    pub(super) fn measure(&self, fixture: &BenchFixture<'_>) -> Result<Duration> {
        let run = with_feature(Run::new(&self.probe), self.kernels);
        let run = run.args(arguments(&self.prompts, fixture.threads)).arg(&fixture.model);
        let [millis] = probe::measure(run, ["lower_bound_ms_median"])?;
        Ok(Duration::from_secs_f64(millis / 1e3))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_token_costs_no_step() {
        let prompts = Prompts { requests: 16, prefix: 1600, suffix: 16, predict: 8, family: 0 };
        let words = arguments(&prompts, 2).join(" ");
        assert_eq!(words, "--seqs 16 --shared-prefix 1600 --prompt 16 --steps 7 --threads 2 --model");
    }
}
