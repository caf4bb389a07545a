//! The text that a patch gives on its new base by a three-way merge, with gaps where the merge decides nothing.

use std::ops::Range;

use crate::model::path::RepoPath;
use crate::replay::landing::{FileFacts, check_landing};
use crate::text::language::Language;
use crate::text::line_diff::hunks_between;
use crate::text::three_way::{Lines, Piece, ThreeWay};

/// Stands for a gap. No line of a text begins with NUL: such a text is binary.
const GAP: &[u8] = b"\0";

/// The origin of an expected line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// This line of the new base, from 0.
    Upstream(usize),
    /// This line of the patched old base, from 0.
    Ours(usize),
}

/// The expected text.
pub(super) struct Expected<'a> {
    /// Its lines; a gap is one line.
    pub lines: Vec<&'a [u8]>,
    /// The origin of each line; `Err` is the index of a gap.
    pub sources: Vec<Result<Source, usize>>,
    /// Conflicts and places that are uncertain.
    pub gaps: Vec<Gap<'a>>,
    /// Changes that both made.
    pub shared: Vec<Shared<'a>>,
    /// The lines of the new base, from 0, that upstream has added since the old one.
    added_by_upstream: Vec<Range<usize>>,
}

/// Lines for which a merge gives no result.
pub(super) struct Gap<'a> {
    pub base: Vec<&'a [u8]>,
    pub upstream: Vec<&'a [u8]>,
    /// Position of the first, from 0.
    pub upstream_at: usize,
    pub ours: Vec<&'a [u8]>,
    /// Position of the first, from 0.
    pub ours_at: usize,
}

/// A change that upstream and the patch both made.
pub(super) struct Shared<'a> {
    pub base: Vec<&'a [u8]>,
    pub both: Vec<&'a [u8]>,
    /// Position of the first in the new base, from 0.
    pub at: usize,
}

impl<'a> Expected<'a> {
    /// Merges the contents before and after the patch on its old base with the one before it on the new base.
    pub fn new(
        path: &RepoPath,
        old_before: &'a [u8],
        old_after: &'a [u8],
        new_before: &'a [u8],
    ) -> Expected<'a> {
        let merge = ThreeWay::new(old_before, new_before, old_after);
        // Where upstream changed nothing, every place is certain.
        let ambiguities = match old_before == new_before || merge.landed().next().is_none() {
            true => Vec::new(),
            false => {
                let language = Language::of(path.as_bytes(), new_before);
                check_landing(&merge, &hunks_between(old_before, old_after), language, FileFacts::default())
            }
        };
        let uncertain: Vec<usize> =
            ambiguities.iter().map(|ambiguity| ambiguity.line.saturating_sub(1)).collect();
        let mut expected = Expected {
            lines: Vec::new(),
            sources: Vec::new(),
            gaps: Vec::new(),
            shared: Vec::new(),
            added_by_upstream: merge.by_ours().iter().map(|run| run.new.clone()).collect(),
        };
        merge.pieces(&uncertain).into_iter().for_each(|piece| expected.add(piece));
        expected
    }

    fn add(&mut self, piece: Piece<'_, 'a>) {
        match piece {
            Piece::Ours(lines) => self.push(&lines, Source::Upstream),
            Piece::Theirs(lines) => self.push(&lines, Source::Ours),
            Piece::Alike { base, ours } => {
                self.push(&ours, Source::Upstream);
                let (base, both) = (base.to_vec(), ours.lines.to_vec());
                self.shared.push(Shared { base, both, at: ours.first });
            }
            Piece::Open { base, ours, theirs } => {
                self.lines.push(GAP);
                self.sources.push(Err(self.gaps.len()));
                self.gaps.push(Gap {
                    base: base.to_vec(),
                    upstream: ours.lines.to_vec(),
                    upstream_at: ours.first,
                    ours: theirs.lines.to_vec(),
                    ours_at: theirs.first,
                });
            }
        }
    }

    fn push(&mut self, lines: &Lines<'_, 'a>, source: impl Fn(usize) -> Source) {
        self.lines.extend(lines.lines);
        self.sources.extend((lines.first..).map(|at| Ok(source(at))).take(lines.lines.len()));
    }

    /// Returns whether upstream has added line `at` of the new base.
    pub fn is_added_by_upstream(&self, at: usize) -> bool {
        self.added_by_upstream.iter().any(|lines| lines.contains(&at))
    }

    /// Returns how often `line` is expected, without the gaps.
    pub fn count(&self, line: &[u8]) -> i64 {
        let count = self.lines.iter().filter(|other| **other == line).count();
        i64::try_from(count).unwrap_or(i64::MAX)
    }
}
