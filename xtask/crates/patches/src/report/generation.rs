//! The patches of a series on a generation: those that apply there by themselves, and those that siblings replace.

use std::collections::BTreeMap;

use espalier_series::PatchClass;
use serde::Serialize;

use super::range_diff::LinesBetween;
use super::rebase::Fate;

/// One patch on a generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PatchOnGeneration {
    /// Its file.
    pub file: String,
    /// Its class there without its sibling, after the patches before it as they are there.
    pub alone: PatchClass,
    /// The file of the sibling that takes its place.
    pub sibling: Option<String>,
    /// Its change there, compared with the patch as it was made.
    pub fate: Fate,
    /// The reason, if it is dropped there.
    pub dropped_because: Option<String>,
    /// The number of lines that it adds and deletes differently there.
    pub lines: LinesBetween,
    /// The difference of the two versions, if any.
    pub difference: Option<String>,
}

impl PatchOnGeneration {
    /// `sibling: changed (2 lines less, 3 more)`
    pub fn describe(&self) -> String {
        let LinesBetween { only_old, only_new } = self.lines;
        let lines = match (only_old, only_new) {
            (0, 0) => String::new(),
            _ => format!(" (lines: -{only_old} +{only_new})"),
        };
        match (&self.dropped_because, &self.sibling) {
            (Some(reason), _) => format!("dropped: {reason}"),
            (None, Some(_)) => format!("sibling: {}{lines}", self.fate.describe()),
            (None, None) => format!("{}{lines}", self.fate.describe()),
        }
    }
}

/// Returns the numbers of patches that apply by themselves, are replaced and are dropped, each by class.
pub fn summary(patches: &[PatchOnGeneration]) -> String {
    let alone: Vec<&PatchOnGeneration> = patches.iter().filter(|patch| patch.sibling.is_none()).collect();
    let (dropped, replaced): (Vec<&PatchOnGeneration>, Vec<&PatchOnGeneration>) =
        patches.iter().filter(|patch| patch.sibling.is_some()).partition(|patch| patch.fate == Fate::Dropped);
    let total = patches.len();
    let mut text = format!("{} of {total} patches apply by themselves{}.", alone.len(), by_class(&alone));
    if !replaced.is_empty() {
        let sum = |lines: fn(&LinesBetween) -> usize| -> usize {
            replaced.iter().map(|patch| lines(&patch.lines)).sum()
        };
        let (less, more) = (sum(|lines| lines.only_old), sum(|lines| lines.only_new));
        text += &format!(
            " Siblings replace {}{}; of the lines that these patches add and delete, {less} are others there, and {more} \
             are new.",
            replaced.len(),
            by_class(&replaced)
        );
    }
    if !dropped.is_empty() {
        text += &format!(" Siblings drop {}{}.", dropped.len(), by_class(&dropped));
    }
    text
}

/// ` (20 exact, 34 shifted)`; empty without a patch.
fn by_class(patches: &[&PatchOnGeneration]) -> String {
    let mut counts: BTreeMap<PatchClass, usize> = BTreeMap::new();
    patches.iter().for_each(|patch| *counts.entry(patch.alone).or_default() += 1);
    let counts: Vec<String> =
        counts.iter().map(|(class, count)| format!("{count} {}", class.describe())).collect();
    match counts.is_empty() {
        true => String::new(),
        false => format!(" ({})", counts.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(
        alone: PatchClass,
        sibling: bool,
        fate: Fate,
        (only_old, only_new): (usize, usize),
    ) -> PatchOnGeneration {
        PatchOnGeneration {
            file: "patches/p/0001-a.patch".into(),
            alone,
            sibling: sibling.then(|| "patches/p/0001-a@b2.patch".into()),
            fate,
            dropped_because: (fate == Fate::Dropped).then(|| "upstream has it".into()),
            lines: LinesBetween { only_old, only_new },
            difference: None,
        }
    }

    #[test]
    fn patches_are_counted_by_class() {
        let patches = [
            patch(PatchClass::Exact, false, Fate::Unchanged, (0, 0)),
            patch(PatchClass::Merged, false, Fate::ContextOnly, (0, 0)),
            patch(PatchClass::Merged, false, Fate::Changed, (1, 1)),
            patch(PatchClass::Conflict, true, Fate::Changed, (2, 3)),
            patch(PatchClass::Shifted, true, Fate::Changed, (0, 4)),
            patch(PatchClass::Upstreamed, true, Fate::Dropped, (9, 0)),
        ];
        assert_eq!(
            summary(&patches),
            "3 of 6 patches apply by themselves (1 exact, 2 merged). Siblings replace 2 (1 shifted, 1 conflict); of the \
             lines that these patches add and delete, 2 are others there, and 7 are new. Siblings drop 1 (1 upstreamed)."
        );
        let described: Vec<String> = patches.iter().map(PatchOnGeneration::describe).collect();
        let expected = [
            "unchanged",
            "context only",
            "changed (lines: -1 +1)",
            "sibling: changed (lines: -2 +3)",
            "sibling: changed (lines: -0 +4)",
            "dropped: upstream has it",
        ];
        assert_eq!(described, expected);
        assert_eq!(summary(&[]), "0 of 0 patches apply by themselves.");
    }
}
