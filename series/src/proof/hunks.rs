//! The hunks of a patch on both bases, and which correspond to each other.

use std::collections::HashMap;

use super::finding::{FileVersion, HunkPair, LinePlace};
use crate::model::hunk_lines::LineKind;
use crate::model::patch::Hunk;
use crate::model::printable::printable;
use crate::text::line_diff::hunks_between;

/// Maximum number of lines of a hunk that a finding shows.
const LINES_SHOWN: usize = 60;

/// The hunks of one file.
pub(super) struct Hunks {
    old: Vec<Hunk>,
    new: Vec<Hunk>,
}

impl Hunks {
    /// Computes them from the contents before and after the patch, on the old base and on the new one.
    pub fn new(old: (&[u8], &[u8]), new: (&[u8], &[u8])) -> Hunks {
        Hunks { old: hunks_between(old.0, old.1), new: hunks_between(new.0, new.1) }
    }

    /// Returns the hunk that changes the line at `place`, and the one that corresponds to it on the other base.
    pub fn around(&self, place: LinePlace) -> HunkPair {
        let at = place.line.saturating_sub(1);
        let is_around = |hunk: &&Hunk| match place.version {
            FileVersion::NewBefore => hunk.old_lines().contains(&at),
            FileVersion::OldAfter | FileVersion::NewAfter => {
                let before = hunk.new_lines_before();
                (before..before + hunk.new_count).contains(&at)
            }
        };
        match place.version {
            FileVersion::OldAfter => {
                let old = self.old.iter().find(is_around);
                pair(old, old.and_then(|hunk| partner(hunk, &self.new)))
            }
            FileVersion::NewBefore | FileVersion::NewAfter => {
                let new = self.new.iter().find(is_around);
                pair(new.and_then(|hunk| partner(hunk, &self.old)), new)
            }
        }
    }

    /// Returns the hunks that make the same change between other lines, each with its first line on the new base, from 1.
    pub fn with_other_context(&self) -> Vec<(usize, HunkPair)> {
        let pairs = self.old.iter().zip(&self.new);
        let differ = |(old, new): &(&Hunk, &Hunk)| signed_lines(old) != signed_lines(new);
        let mut found: Vec<(usize, HunkPair)> = pairs
            .filter(differ)
            .map(|(old, new)| (new.new_lines_before() + 1, pair(Some(old), Some(new))))
            .collect();
        if self.old.len() != self.new.len() {
            // The context decides how many hunks a change is cut into.
            found.truncate(1);
        }
        found
    }
}

fn pair(old: Option<&Hunk>, new: Option<&Hunk>) -> HunkPair {
    HunkPair { old: old.map(shown), new: new.map(shown) }
}

/// Returns the hunk among `others` that has most changed lines in common with `hunk`.
fn partner<'h>(hunk: &Hunk, others: &'h [Hunk]) -> Option<&'h Hunk> {
    let changed = changed_lines(hunk);
    let common = |other: &Hunk| -> usize {
        let counts = changed_lines(other).into_iter();
        counts.map(|(line, count)| changed.get(&line).map_or(0, |there| count.min(*there))).sum()
    };
    let most = others.iter().map(|other| (common(other), other)).max_by_key(|(common, _)| *common);
    most.filter(|(common, _)| *common > 0).map(|(_, other)| other)
}

fn changed_lines(hunk: &Hunk) -> HashMap<(bool, &[u8]), usize> {
    let mut lines = HashMap::new();
    for line in hunk.lines.iter().filter(|line| line.kind != LineKind::Context) {
        *lines.entry((line.kind == LineKind::Add, line.bytes)).or_default() += 1;
    }
    lines
}

fn signed_lines(hunk: &Hunk) -> Vec<(u8, &[u8])> {
    hunk.lines.iter().map(|line| (line.kind.sign(), line.bytes)).collect()
}

fn shown(hunk: &Hunk) -> String {
    let mut text = format!("{} {}", hunk.header(), printable(&hunk.section)).trim_end().to_owned();
    let lines = signed_lines(hunk);
    for (sign, bytes) in lines.iter().take(LINES_SHOWN) {
        text += &format!("\n{}{}", char::from(*sign), printable(bytes));
    }
    if lines.len() > LINES_SHOWN {
        text += &format!("\n... {} more lines", lines.len() - LINES_SHOWN);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{FileVersion, Hunks, LinePlace};

    #[test]
    fn a_hunk_is_found_by_its_line_and_by_its_change() {
        let (old, new) = ("a\nb\nc\n", "more\na\nb\nc\n");
        let changed = |text: &str| text.replace("b\n", "B\n");
        let hunks =
            Hunks::new((old.as_bytes(), changed(old).as_bytes()), (new.as_bytes(), changed(new).as_bytes()));
        let pair = hunks.around(LinePlace { version: FileVersion::NewAfter, line: 3 });
        assert_eq!(pair.old.as_deref(), Some("@@ -1,3 +1,3 @@\n a\n-b\n+B\n c"));
        assert_eq!(pair.new.as_deref(), Some("@@ -1,4 +1,4 @@\n more\n a\n-b\n+B\n c"));
        assert_eq!(hunks.with_other_context().len(), 1);
        let nowhere = hunks.around(LinePlace { version: FileVersion::NewAfter, line: 30 });
        assert_eq!((nowhere.old, nowhere.new), (None, None));
    }
}
