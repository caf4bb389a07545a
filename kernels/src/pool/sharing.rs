//! Blocks that a sequence shares with another one, and the removal of positions.

use super::block::BlockId;
use super::contents::SequenceId;
use super::groups::Group;
use super::layout::Layout;
use super::pool::{Pool, PoolError};
use super::sequences::BlockSpan;

impl Pool {
    /// Adds to `to`, besides the blocks it has, a reference to every block of `from` with a position in `first..end`
    /// (as in [`BlockSpan::of`]). `to` only reads them.
    ///
    /// [`PoolError::Invalid`]: an unknown sequence.
    pub fn share(&mut self, from: i32, to: i32, first: i32, end: i32) -> Result<(), PoolError> {
        self.share_in(Group::Full, from, to, first, end)
    }

    /// The same for the layers of one group.
    ///
    /// [`PoolError::Invalid`]: an unknown sequence, a group that the pool does not have, or a sequence that has
    /// blocks in another layout.
    pub fn share_in(
        &mut self,
        group: Group,
        from: i32,
        to: i32,
        first: i32,
        end: i32,
    ) -> Result<(), PoolError> {
        let (from, to) = (self.sequence_in(group, from)?, self.sequence_in(group, to)?);
        if from == to {
            return Ok(());
        }
        self.copy_layout(from, to)?;
        let span = BlockSpan::of(first, end, &self.layouts[from.0 as usize]);
        for index in self.tables[group][from.0 as usize].indexes(span.touched) {
            let entry = self.tables[group][from.0 as usize].entry(index);
            let blocks: Vec<BlockId> = entry.map(|entry| entry.blocks().collect()).unwrap_or_default();
            for block in blocks {
                self.share_block(group, to, index, block);
            }
        }
        Ok(())
    }

    /// Gives a sequence the layout of another one, whose blocks it is going to share.
    fn copy_layout(&mut self, from: SequenceId, to: SequenceId) -> Result<(), PoolError> {
        if self.layouts[from.0 as usize] == self.layouts[to.0 as usize] {
            return Ok(());
        }
        if !self.holds_nothing(to) || self.requests[to.0 as usize].is_some() {
            return Err(PoolError::Invalid);
        }
        self.layouts[to.0 as usize] = self.layouts[from.0 as usize].clone();
        Ok(())
    }

    fn holds_nothing(&self, sequence: SequenceId) -> bool {
        Group::ALL.iter().all(|group| self.tables[*group][sequence.0 as usize].is_empty())
    }

    /// Forgets the layout of a sequence that holds nothing and has no request.
    pub(super) fn reset_layout_if_unused(&mut self, sequence: SequenceId) {
        if self.requests[sequence.0 as usize].is_none() && self.holds_nothing(sequence) {
            self.layouts[sequence.0 as usize] = Layout::plain(self.block_size());
        }
    }

    fn share_block(&mut self, group: Group, to: SequenceId, index: u32, block: BlockId) {
        if !self.tables[group][to.0 as usize].add_read_only(index, block) {
            return;
        }
        self.blocks.hold(group, block);
        self.cancel_in_flight(group, to, index);
        if let Some(request) = &mut self.requests[to.0 as usize] {
            request.has_begun_to_compute = true;
        }
    }

    /// Removes the positions `first..end` (as in [`BlockSpan::of`]) from the sequence. Blocks that lie entirely in that
    /// range are released. A block that lies in it partly stays; the sequence appends to it only if no other sequence
    /// holds it and it was never cached.
    ///
    /// [`PoolError::Invalid`]: an unknown sequence.
    pub fn remove(&mut self, sequence: i32, first: i32, end: i32) -> Result<(), PoolError> {
        self.remove_in(Group::Full, sequence, first, end)
    }

    /// The same for the layers of one group. The caller removes the same positions from each group, in any order; only
    /// [`Pool::slide`] removes some from one alone.
    ///
    /// [`PoolError::Invalid`]: an unknown sequence, or a group that the pool does not have.
    pub fn remove_in(&mut self, group: Group, sequence: i32, first: i32, end: i32) -> Result<(), PoolError> {
        let sequence = self.sequence_in(group, sequence)?;
        let span = BlockSpan::of(first, end, &self.layouts[sequence.0 as usize]);
        let released = self.tables[group][sequence.0 as usize].remove(span.whole.clone());
        self.blocks.release(group, &released);
        for index in self.tables[group][sequence.0 as usize].indexes(span.touched.clone()) {
            self.seal_if_others_read(group, sequence, index);
        }
        self.note_removal(group, sequence, &span);
        self.reset_layout_if_unused(sequence);
        Ok(())
    }

    /// Tokens written at a position that was removed must not appear in a block that another sequence reads or may
    /// match.
    fn seal_if_others_read(&mut self, group: Group, sequence: SequenceId, index: u32) {
        let Some(block) = self.writable_block(group, (sequence, index)) else { return };
        if self.blocks.holders(group, block) > 1 || self.blocks.content(group, block).is_some() {
            self.tables[group][sequence.0 as usize].seal(index);
            self.cancel_in_flight(group, sequence, index);
        }
    }

    /// A request follows its tokens in the layers that attend to all of them: those behind a window are removed early.
    fn note_removal(&mut self, group: Group, sequence: SequenceId, span: &BlockSpan) {
        let table = &self.tables[Group::Full][sequence.0 as usize];
        let window = &self.tables[Group::Window][sequence.0 as usize];
        let Some(request) = &mut self.requests[sequence.0 as usize] else { return };
        if span.touched.is_empty() {
            return;
        }
        request.waits_to_resume = false; // the tokens that it was going to continue from
        if group == Group::Full {
            request.forget_from(span.touched.start as usize, &mut self.blocks.contents);
        }
        let has_only_matched = table.holds_only_matched(request.matched) && window.is_read_only();
        if !request.has_begun_to_compute || !has_only_matched {
            return;
        }
        request.has_begun_to_compute = false;
        // Only if something was computed: before that, "remove all" is how a server makes sure that it starts at
        // position 0, and the sequence is still going to compute its in-flight blocks.
        if table.is_empty() {
            request.cancel_all_in_flight(sequence, &mut self.blocks.contents);
        }
    }
}
