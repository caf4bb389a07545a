//! The lines of a file, each with a small number that equal lines share.

use std::collections::HashMap;

use super::cursor::split_inclusive;

/// A file as lines. Built only after a patch failed.
pub(crate) struct LineIndex<'a> {
    /// Each line with its line feed, if it has one.
    pub lines: Vec<&'a [u8]>,
    /// For each line a number; equal lines have equal numbers.
    pub ids: Vec<u32>,
    ids_by_bytes: HashMap<&'a [u8], u32>,
    positions: Vec<Vec<usize>>,
}

impl<'a> LineIndex<'a> {
    pub fn new(text: &'a [u8]) -> LineIndex<'a> {
        let mut index = LineIndex {
            lines: Vec::new(),
            ids: Vec::new(),
            ids_by_bytes: HashMap::new(),
            positions: Vec::new(),
        };
        let mut rest = text;
        while !rest.is_empty() {
            let (line, after) = split_inclusive(rest);
            index.push(line);
            rest = after;
        }
        index
    }

    fn push(&mut self, line: &'a [u8]) {
        // A file has fewer than 2^32 lines: its blob was read into memory, and the largest
        // number only ever means that two lines compare as equal in a report.
        let fresh = u32::try_from(self.positions.len()).unwrap_or(u32::MAX);
        let id = *self.ids_by_bytes.entry(line).or_insert(fresh);
        if id == fresh {
            self.positions.push(Vec::new());
        }
        if let Some(positions) = self.positions.get_mut(id as usize) {
            positions.push(self.lines.len());
        }
        self.lines.push(line);
        self.ids.push(id);
    }

    /// The numbers of `lines`, or `None` when one of them is nowhere in the file.
    pub fn ids_of<'b>(&self, lines: impl Iterator<Item = &'b [u8]>) -> Option<Vec<u32>> {
        lines.map(|line| self.ids_by_bytes.get(line).copied()).collect()
    }

    /// Where `line` is in the file, from 0.
    pub fn positions_of(&self, line: &[u8]) -> &[usize] {
        let id = self.ids_by_bytes.get(line).copied();
        id.and_then(|id| self.positions.get(id as usize)).map_or(&[], Vec::as_slice)
    }

    /// Whether `line` is anywhere in the file.
    pub fn has_line(&self, line: &[u8]) -> bool {
        self.ids_by_bytes.contains_key(line)
    }
}
