//! Programs that download: watched while their folder grows, given up when nothing happens for long.

use std::path::Path;
use std::time::Duration;

use super::disk;
use super::process::{self, Patience, Run, Seen, Watch};
use crate::error::{Error, Result};
use crate::ui::Progress;

/// A source that shows no sign of life for this long is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs until it ends, shows how `folder` grows, and gives up when nothing happens for long.
pub(super) fn watch_growth(
    run: Run,
    folder: &Path,
    progress: &mut Progress,
    mut on_line: impl FnMut(&str),
) -> Result<()> {
    let words = run.words();
    let mut patience = Patience::new(PATIENCE);
    let status = run.watch(|seen| {
        match seen {
            Seen::Line(line) => {
                patience.sign();
                on_line(line);
            }
            Seen::Tick => {
                let size = disk::size_below(folder);
                patience.size(size);
                progress.set(size);
            }
        }
        patience.verdict()
    })?;
    if patience.verdict() == Watch::Kill {
        let what = format!("no sign of life for {} seconds, given up", PATIENCE.as_secs());
        return Err(Error::surroundings(what));
    }
    if status.success() { Ok(()) } else { Err(process::failed(&words, status, "")) }
}

/// The program's own words say more than its exit code.
pub(super) fn with_words(program: &str, error: Error, said: &[String]) -> Error {
    let full = said.iter().find(|line| line.contains("No space left"));
    let Some(first) = full.or(said.iter().find(|line| !line.trim().is_empty())) else { return error };
    let mut told = Error::surroundings(format!("{program} says: {}", first.trim()));
    told.hints = error.hints;
    told.hints.extend(way_to_trust(said.iter().map(String::as_str)));
    told
}

/// git's own way out of a repository of somebody else's, when it says that it does not read one.
pub(super) fn way_to_trust<'a>(mut said: impl Iterator<Item = &'a str>) -> Option<String> {
    said.find(|line| line.contains("safe.directory")).map(|line| line.trim().to_string())
}
