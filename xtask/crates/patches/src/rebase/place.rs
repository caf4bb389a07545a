//! Position of a rebase: the series, and the patch in it.

use espalier_core::error::{Error, Result};
use espalier_series::Patch;

use super::target::{SeriesMove, Target};
use crate::rebase::state::{RebaseState, notes_of_patch};

/// The patch at which the rebase stopped.
pub struct RebasePosition<'c, 'a> {
    /// Its series.
    pub series_move: &'c SeriesMove<'a>,
    /// Index of the series among those on the pin.
    pub series: usize,
    /// Index of the patch in the series.
    pub at: usize,
    pub patch: &'c Patch,
    /// The file of the patch.
    pub file: &'c str,
    /// Notes on the parts of it that upstream's commits contain.
    pub notes: Vec<String>,
}

impl<'c, 'a> RebasePosition<'c, 'a> {
    /// Returns the first patch that is not yet replayed.
    pub fn of(target: &'c Target<'a>, state: &RebaseState) -> Result<RebasePosition<'c, 'a>> {
        let found = state.current().and_then(|series| {
            let (series_move, state) = (target.series().get(series)?, state.series.get(series)?);
            let at = state.position();
            let (patch, file) =
                (series_move.stack.patches.get(at)?, series_move.stack.files.get(at)?.file.as_str());
            Some(RebasePosition {
                series_move,
                series,
                at,
                patch,
                file,
                notes: notes_of_patch(&state.upstream, at).to_vec(),
            })
        });
        found.ok_or_else(|| Error::environment("the record of the rebase goes beyond the series"))
    }

    /// Describes the conflict for later reuse: the patch, and its target.
    pub fn description(&self) -> String {
        let SeriesMove { stack, tip, .. } = self.series_move;
        format!("{} went onto {} {}", self.file, stack.pin.upstream, tip.name)
    }
}
