//! Patches that will stop a rebase later, as far as is known while the earlier ones are not resolved. Only the target
//! tree is needed for it, not upstream's history.

use espalier_core::error::Result;
use espalier_core::sys::git::store_tree::StoreTree;
use espalier_series::{FailedPatches, Patch, Replay, Verdict};

use super::steps::{names, step};
use super::target::{SeriesMove, upstream_of};
use crate::range;
use crate::rebase::state::places_of_upstreamed;

/// Number of patches that will stop the rebase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Those that are in conflict.
    pub conflicts: usize,
    /// Those that are in conflict while an earlier one of their files is left out: its resolution decides.
    pub blocked: usize,
}

impl Ahead {
    /// Replays the patches after the one at `at`, at which the rebase stops.
    pub fn of_rest(series_move: &SeriesMove<'_>, replay: &mut Replay<'_>, at: usize) -> Result<Ahead> {
        let mut failed = FailedPatches::default();
        if let Some(patch) = series_move.stack.patches.get(at) {
            failed.add(patch);
        }
        let mut ahead = Ahead::default();
        for (at, patch) in series_move.stack.patches.iter().enumerate().skip(at + 1) {
            ahead.look(series_move, replay, (at, patch), &mut failed)?;
        }
        Ok(ahead)
    }

    /// Replays the own patches of a series of which nothing is replayed yet.
    pub fn of_series(series_move: &SeriesMove<'_>) -> Result<Ahead> {
        let SeriesMove { store, stack, tip, .. } = series_move;
        let pin_tree = StoreTree::new(store, stack.pin.tree)?;
        let tip_tree = StoreTree::in_range(store, tip.tree, stack.pin.tree, tip.tree)?;
        let applied = range::applied_series(store, &stack.patches, &pin_tree)?;
        let upstreamed = places_of_upstreamed(&upstream_of(series_move, &applied)?);
        let mut replay = Replay::new(&applied, &tip_tree, names(series_move), &upstreamed);
        let mut failed = FailedPatches::default();
        let mut ahead = Ahead::default();
        for (at, patch) in stack.patches.iter().enumerate() {
            // A parent's patch counts with its own series.
            let mut of_parents = Ahead::default();
            let counted = if at < stack.parents { &mut of_parents } else { &mut ahead };
            counted.look(series_move, &mut replay, (at, patch), &mut failed)?;
        }
        Ok(ahead)
    }

    fn look(
        &mut self,
        series_move: &SeriesMove<'_>,
        replay: &mut Replay<'_>,
        (at, patch): (usize, &Patch),
        failed: &mut FailedPatches,
    ) -> Result<()> {
        if let Some(sibling) = series_move.sibling(at)
            && let Verdict::Exact(_) = replay.apply_instead(&sibling.patch)?
        {
            return Ok(());
        }
        if step(series_move, replay, at)?.replayed.has_conflict() {
            match failed.add(patch).is_empty() {
                true => self.conflicts += 1,
                false => self.blocked += 1,
            }
        }
        Ok(())
    }

    /// Describes the rest of the series that has stopped; `None` if nothing is known to stop.
    pub fn describe_rest(self) -> Option<String> {
        match self {
            Ahead { conflicts: 0, blocked: 0 } => None,
            Ahead { conflicts, blocked: 0 } => {
                Some(format!("after it {conflicts} more of the patches will stop, as far as is known"))
            }
            Ahead { conflicts: 0, blocked } => {
                Some(format!("after it {blocked} more of the patches may stop: they change the same files"))
            }
            Ahead { conflicts, blocked } => Some(format!(
                "after it {conflicts} more of the patches will stop, as far as is known, and {blocked} may: they change \
                 the same files"
            )),
        }
    }

    /// Describes another series, with `own` patches.
    pub fn describe_series(self, name: &str, own: usize) -> Option<String> {
        match self {
            Ahead { conflicts: 0, blocked: 0 } => None,
            Ahead { conflicts: 0, blocked } => {
                Some(format!("{name}: {blocked} of {own} patches may stop too: they change the same files"))
            }
            Ahead { conflicts, blocked: 0 } => {
                Some(format!("{name}: {conflicts} of {own} patches will stop too"))
            }
            Ahead { conflicts, blocked } => {
                Some(format!("{name}: {conflicts} of {own} patches will stop too, and {blocked} may"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Ahead;

    #[test]
    fn the_patches_that_will_stop_and_those_that_may_are_counted() {
        let rest = |conflicts, blocked| Ahead { conflicts, blocked }.describe_rest();
        assert_eq!(rest(0, 0), None);
        assert_eq!(
            rest(4, 0).as_deref(),
            Some("after it 4 more of the patches will stop, as far as is known")
        );
        assert_eq!(
            rest(0, 1).as_deref(),
            Some("after it 1 more of the patches may stop: they change the same files")
        );
        let other = |conflicts, blocked| Ahead { conflicts, blocked }.describe_series("paged", 12);
        assert_eq!(
            other(0, 3).as_deref(),
            Some("paged: 3 of 12 patches may stop too: they change the same files")
        );
        assert_eq!(other(2, 3).as_deref(), Some("paged: 2 of 12 patches will stop too, and 3 may"));
        let both = rest(4, 36).unwrap_or_default();
        assert!(both.contains("4 more of the patches will stop") && both.contains("36 may"), "{both}");
    }
}
