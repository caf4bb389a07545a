//! The lines of a file, each with a small id that equal lines share.

use std::cell::OnceCell;
use std::collections::HashMap;

use crate::model::lines::split_inclusive;

/// A file as lines. Created only after a patch failed.
pub(crate) struct LineIndex<'a> {
    /// Each line with its line feed, if it has one.
    pub lines: Vec<&'a [u8]>,
    /// For each line its id; equal lines have equal ids.
    pub ids: Vec<u32>,
    ids_by_bytes: HashMap<&'a [u8], u32>,
    /// Created on first use: only a hunk that fits nowhere needs it.
    positions: OnceCell<Vec<Vec<usize>>>,
}

/// Estimated bytes per line; it avoids most reallocations.
const USUAL_LINE: usize = 24;

impl<'a> LineIndex<'a> {
    pub fn new(text: &'a [u8]) -> LineIndex<'a> {
        let lines = text.len() / USUAL_LINE;
        let mut index = LineIndex {
            lines: Vec::with_capacity(lines),
            ids: Vec::with_capacity(lines),
            ids_by_bytes: HashMap::with_capacity(lines),
            positions: OnceCell::new(),
        };
        let mut rest = text;
        while !rest.is_empty() {
            let (line, after) = split_inclusive(rest);
            index.push(line);
            rest = after;
        }
        index
    }

    /// Creates the index for a text that is split into lines already.
    pub fn of_lines(lines: &[&'a [u8]]) -> LineIndex<'a> {
        let mut index = LineIndex::new(b"");
        lines.iter().for_each(|line| index.push(line));
        index
    }

    fn push(&mut self, line: &'a [u8]) {
        // A file has fewer than 2^32 lines: its blob was read into memory, and at the largest id two lines would only
        // compare as equal in a report.
        let fresh = u32::try_from(self.ids_by_bytes.len()).unwrap_or(u32::MAX);
        let id = *self.ids_by_bytes.entry(line).or_insert(fresh);
        self.lines.push(line);
        self.ids.push(id);
    }

    /// Returns the ids of `lines`, or `None` if one of them does not occur in the file.
    pub fn ids_of<'b>(&self, lines: impl Iterator<Item = &'b [u8]>) -> Option<Vec<u32>> {
        lines.map(|line| self.ids_by_bytes.get(line).copied()).collect()
    }

    /// Returns the positions of `line` in the file, from 0.
    pub fn positions_of(&self, line: &[u8]) -> &[usize] {
        let id = self.ids_by_bytes.get(line).copied();
        let positions = self.positions.get_or_init(|| self.all_positions());
        id.and_then(|id| positions.get(id as usize)).map_or(&[], Vec::as_slice)
    }

    fn all_positions(&self) -> Vec<Vec<usize>> {
        let mut all = vec![Vec::new(); self.ids_by_bytes.len()];
        for (at, id) in self.ids.iter().enumerate() {
            if let Some(positions) = all.get_mut(*id as usize) {
                positions.push(at);
            }
        }
        all
    }

    /// Returns whether `line` occurs in the file.
    pub fn has_line(&self, line: &[u8]) -> bool {
        self.ids_by_bytes.contains_key(line)
    }
}
