//! The differences between the text that is expected of a patch on its new base and the one that it gives.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use super::accounts::{Accounts, Bag};
use super::expected::{Expected, Gap, Source};
use crate::text::line_diff::{histogram_runs, slice};

/// An expected line that is not there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Missing {
    pub source: Source,
    /// Whether it is next to a gap, where lines may be in another order.
    pub in_gap: bool,
}

/// A line that is not expected there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extra {
    /// Its position in the result, from 0.
    pub at: usize,
    /// Whether it is in a gap.
    pub in_gap: bool,
}

/// Lines that a person, or another merge, wrote into gaps.
pub(super) struct Resolved<'a> {
    /// Position of the first in the result, from 0.
    pub at: usize,
    pub lines: Vec<&'a [u8]>,
    /// The expected lines next to the gaps.
    beside: Vec<&'a [u8]>,
    /// Indices of the gaps.
    gaps: Vec<usize>,
    /// Lines of upstream and of the patch that are not among the lines.
    pub missing: Vec<(&'a [u8], Source)>,
    /// Whether the lines have every word that either side has or adds, and no other.
    pub keeps_words: bool,
}

/// All differences.
pub(super) struct Residue<'a> {
    pub missing: HashMap<&'a [u8], VecDeque<Missing>>,
    pub extra: HashMap<&'a [u8], VecDeque<Extra>>,
    pub resolved: Vec<Resolved<'a>>,
}

impl<'a> Residue<'a> {
    pub fn new(expected: &Expected<'a>, result: &[&'a [u8]]) -> Residue<'a> {
        let mut residue = Residue { missing: HashMap::new(), extra: HashMap::new(), resolved: Vec::new() };
        for run in histogram_runs(&expected.lines, result) {
            let lines = slice(result, run.new.clone());
            let resolved = Resolved::new(expected, run.old.clone(), (run.new.start, lines));
            let in_gap = resolved.is_some();
            for (line, source) in
                run.old.filter_map(|at| expected.lines.get(at).zip(expected.sources.get(at)))
            {
                if let Ok(source) = *source {
                    residue.missing.entry(*line).or_default().push_back(Missing { source, in_gap });
                }
            }
            for (line, at) in lines.iter().zip(run.new.start..) {
                residue.extra.entry(*line).or_default().push_back(Extra { at, in_gap });
            }
            residue.resolved.extend(resolved);
        }
        residue.add_missing_of_gaps();
        residue
    }

    /// Returns what was written into the gaps around line `at` of the result.
    pub fn resolved_at(&self, at: usize) -> Option<&Resolved<'a>> {
        self.resolved.iter().find(|resolved| (resolved.at..resolved.at + resolved.lines.len()).contains(&at))
    }

    /// Lines of gaps come behind those outside of gaps, whose place is certain.
    fn add_missing_of_gaps(&mut self) {
        for resolved in self.resolved.iter().filter(|resolved| !resolved.keeps_words) {
            for (line, source) in &resolved.missing {
                let missing = Missing { source: *source, in_gap: true };
                self.missing.entry(*line).or_default().push_back(missing);
            }
        }
    }

    /// Enters into the accounts what the shared changes and the gaps explain.
    pub fn explain(&self, expected: &Expected<'a>, accounts: &mut Accounts<'a>) {
        for shared in &expected.shared {
            let change = Bag::of(&shared.both).minus(&Bag::of(&shared.base));
            change.iter().for_each(|(line, count)| accounts.entry(line).shared -= count);
        }
        for resolved in &self.resolved {
            resolved.explain(expected, accounts);
        }
    }
}

impl<'a> Resolved<'a> {
    /// Returns what became of the gaps among the expected lines `old`; `None` if there is none.
    fn new(
        expected: &Expected<'a>,
        old: Range<usize>,
        (at, lines): (usize, &[&'a [u8]]),
    ) -> Option<Resolved<'a>> {
        let mut resolved = Resolved {
            at,
            lines: lines.to_vec(),
            beside: Vec::new(),
            gaps: Vec::new(),
            missing: Vec::new(),
            keeps_words: false,
        };
        for place in old {
            match (expected.sources.get(place)?, expected.lines.get(place)?) {
                (Err(gap), _) => resolved.gaps.push(*gap),
                (Ok(_), line) => resolved.beside.push(*line),
            }
        }
        if resolved.gaps.is_empty() {
            return None;
        }
        resolved.keeps_words = words_of(&resolved.wanted(expected)) == words_of(&Bag::of(lines));
        resolved.find_missing(expected);
        Some(resolved)
    }

    fn gaps<'e>(&'e self, expected: &'e Expected<'a>) -> impl Iterator<Item = &'e Gap<'a>> {
        self.gaps.iter().filter_map(|gap| expected.gaps.get(*gap))
    }

    /// Returns whether the merged texts have `line` in the gaps, or next to them.
    pub fn is_of_a_side(&self, expected: &Expected<'a>, line: &[u8]) -> bool {
        let in_gaps =
            self.gaps(expected).flat_map(|gap| gap.base.iter().chain(&gap.upstream).chain(&gap.ours));
        self.beside.iter().chain(in_gaps).any(|other| *other == line)
    }

    /// Returns the lines that upstream's change and the patch's would give together.
    fn wanted(&self, expected: &Expected<'a>) -> Bag<'a> {
        let mut wanted = Bag::of(&self.beside);
        for gap in self.gaps(expected) {
            wanted.add(&gap.upstream, 1);
            wanted.add(&gap.ours, 1);
            wanted.add(&gap.base, -1);
        }
        wanted
    }

    fn find_missing(&mut self, expected: &Expected<'a>) {
        let mut left = Bag::of(&self.lines);
        let mut missing = Vec::new();
        for gap in self.gaps(expected) {
            for (line, at) in gap.upstream.iter().zip(gap.upstream_at..) {
                if !left.take(line) {
                    missing.push((*line, Source::Upstream(at)));
                }
            }
            for (line, at) in gap.ours.iter().zip(gap.ours_at..) {
                if !left.take(line) {
                    missing.push((*line, Source::Ours(at)));
                }
            }
        }
        self.missing = missing;
    }

    fn explain(&self, expected: &Expected<'a>, accounts: &mut Accounts<'a>) {
        if self.keeps_words {
            let rewritten = Bag::of(&self.lines).minus(&self.wanted(expected));
            rewritten.iter().for_each(|(line, count)| accounts.entry(line).rewritten += count);
            return;
        }
        for gap in self.gaps(expected) {
            let base = Bag::of(&gap.base);
            let (upstream, ours) = (Bag::of(&gap.upstream).minus(&base), Bag::of(&gap.ours).minus(&base));
            for (line, count) in upstream.iter() {
                let own = ours.count(line);
                if own.signum() == count.signum() {
                    accounts.entry(line).shared -= count.signum() * count.abs().min(own.abs());
                }
            }
        }
    }
}

/// Returns how often each word is in the lines. A character that is in no identifier or number is a word of its own, and
/// white space is none.
fn words_of<'a>(lines: &Bag<'a>) -> Bag<'a> {
    let mut words = Bag::default();
    for (line, count) in lines.iter() {
        words.add(&split_words(line), count);
    }
    words.without_zeros()
}

fn split_words(line: &[u8]) -> Vec<&[u8]> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    let parts = line.chunk_by(|one, next| is_word(one) && is_word(next));
    parts.filter(|part| !part.trim_ascii().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::{Bag, split_words, words_of};

    #[test]
    fn a_line_is_words_and_signs() {
        let words = split_words(b"    foo(a_1, \"x y\");\n");
        let words: Vec<&str> = words.iter().map(|word| std::str::from_utf8(word).unwrap()).collect();
        assert_eq!(words, ["foo", "(", "a_1", ",", "\"", "x", "y", "\"", ")", ";"]);
    }

    #[test]
    fn a_line_that_has_both_changes_has_their_words() {
        let mut wanted = Bag::of(&[b"f(a, b);\n", b"f(a, x);\n"]);
        wanted.add(&[b"f(a);\n"], -1);
        assert_eq!(words_of(&wanted), words_of(&Bag::of(&[b"f(a, b, x);\n"])));
        assert_ne!(words_of(&wanted), words_of(&Bag::of(&[b"f(a, x);\n"])));
    }
}
