//! The status bench: judging a series at each of a thousand upstream commits.

use std::path::Path;
use std::time::{Duration, Instant};

use espalier_core::config::layout::Layout;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::git::history::Commit;
use espalier_core::sys::git::store_tree::StoreTree;
use espalier_core::sys::machine::disk;
use espalier_patches::pinned_series::PinnedSeries;
use espalier_patches::range;
use espalier_patches::stack::Stack;
use serde_json::json;

use super::apply::ours;
use super::made_history::{self, Size};
use super::timing::Times;
use crate::report::table::Table;

const SIZE: Size = Size { files: 3000, commits: 5000, after_pin: 1000, patches: 120 };

/// One of this many commits is also judged alone, and the results must match.
const SAMPLE: usize = 25;

/// Measures on a synthetic project: in this process, the whole command, and commits judged alone.
pub fn run(context: &Context, rounds: u32) -> Result<Outcome> {
    let scratch = disk::scratch_folder(&context.layout.generated().join("bench"), "status")?;
    let project = scratch.path().join("made-up");
    context.ui.status("Creating", format!("{} files, {} commits", SIZE.files, SIZE.commits));
    made_history::make(&project, SIZE)?;
    ours(&project).arg("fetch").success()?;
    context.ui.status("Measuring", format!("{} patches at {} commits", SIZE.patches, SIZE.after_pin));
    let made = SyntheticProject::load(context, &project)?;
    let mut all = ["every commit", "the whole command `bisect`", "one commit, alone"].map(Times::new);
    for _ in 0..rounds {
        let [every, command, alone] = &mut all;
        let begin = Instant::now();
        made.series.survey(&made.history()?)?;
        every.push(begin.elapsed());
        alone.push(made.check_sample()?);
        command.push(made.command(&project)?);
    }
    Ok(outcome(&all))
}

fn outcome(all: &[Times; 3]) -> Outcome {
    let seconds = all.each_ref().map(|times| times.median_seconds.unwrap_or_default());
    let [every, command, alone] = seconds;
    let total = |seconds: f64| format!("{seconds:.2} s | {:.3} ms", seconds / SIZE.after_pin as f64 * 1e3);
    let rows = [
        format!("every commit, in this process | {}", total(every)),
        format!("the whole command `bisect` | {}", total(command)),
        format!("commits judged one at a time, without reuse | | {:.1} ms", alone * 1e3),
    ];
    let table = Table::new("what | total | per commit", rows);
    let text = format!(
        "{} patches at each of {} commits of a made-up upstream ({} files, {} commits), medians\n\n{table}",
        SIZE.patches, SIZE.after_pin, SIZE.files, SIZE.commits,
    );
    let json = json!({ "every_seconds": every, "command_seconds": command, "alone_seconds": alone });
    Outcome::ok(text, json)
}

/// The synthetic project, loaded.
struct SyntheticProject {
    series: PinnedSeries,
    tip: espalier_core::sys::upstream::tip::Tip,
}

impl SyntheticProject {
    fn load(context: &Context, project: &Path) -> Result<SyntheticProject> {
        let context = Context { layout: Layout::new(project), ..context.clone() };
        let series = PinnedSeries::load(&context, None)?;
        let tip = series.tip(&context, "main", None)?;
        Ok(SyntheticProject { series, tip })
    }

    fn history(&self) -> Result<Vec<Commit>> {
        self.series.required_history(&self.tip)
    }

    /// Judges some commits again, alone; returns the mean time of one.
    fn check_sample(&self) -> Result<Duration> {
        let PinnedSeries { stack: Stack { patches, pin, .. }, store } = &self.series;
        let pin_tree = StoreTree::new(store, pin.tree)?;
        let applied = range::applied_series(store, patches, &pin_tree)?;
        let history = self.history()?;
        let (mut elapsed, mut sample) = (Duration::ZERO, 0);
        range::survey_each(store, &applied, &pin_tree, &history, |at, found, upstreamed| {
            let Some(commit) = history.get(at).filter(|_| at % SAMPLE == 0) else { return Ok(()) };
            let begin = Instant::now();
            let tree = StoreTree::in_range(store, commit.tree, pin.tree, commit.tree)?;
            let alone = range::survey_tree(&applied, &tree, upstreamed)?;
            elapsed += begin.elapsed();
            sample += 1;
            match found == Some(&alone) {
                true => Ok(()),
                false => Err(Error::no(format!("{} gives another result when judged alone", commit.id))),
            }
        })?;
        Ok(elapsed / u32::max(sample, 1))
    }

    /// Times the command with the tip's commit already in the store, as when a branch is judged twice.
    fn command(&self, project: &Path) -> Result<Duration> {
        let tip = self.tip.commit.to_string();
        let run = || ours(project).args(["--json", "bisect", "--tip", &tip]).finish();
        run()?;
        let begin = Instant::now();
        let finished = run()?;
        let elapsed = begin.elapsed();
        let report: serde_json::Value = serde_json::from_slice(&finished.stdout).unwrap_or_default();
        match report.get("commits").and_then(serde_json::Value::as_u64) {
            Some(commits) if commits >= SIZE.after_pin as u64 - 1 => Ok(elapsed),
            _ => Err(Error::environment("`bisect` failed").detail(finished.stderr)),
        }
    }
}
