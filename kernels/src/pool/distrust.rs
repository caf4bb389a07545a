//! Removal of cached results that are not to be used again.
//!
//! If the output of a request is not finite, one of its states or blocks may be the cause, even if all of their values
//! are finite: no later prompt may continue from them, nor find them beside a state that is right.

use std::ops::Range;

use super::block::BlockId;
use super::contents::SequenceId;
use super::groups::{Group, Groups};
use super::pool::{Pool, Refusal};
use super::snapshots::SnapshotId;

/// Blocks and snapshots that [`Pool::distrust`] has removed from the cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distrusted {
    /// Blocks of each group that have no content any more. The sequences that hold them keep them.
    pub blocks: Groups<Vec<BlockId>>,
    /// Snapshots that do not exist any more: the caller frees their bytes.
    pub snapshots: Vec<SnapshotId>,
}

impl Pool {
    /// Ends the request of the sequence, which still holds its blocks, and removes from the cache the blocks that it
    /// has cached and the snapshots that it has taken or restored. If the pool has a state, also the blocks that it
    /// matched: they may come from the sequence whose state it restored.
    ///
    /// [`Refusal::Invalid`]: an unknown sequence, or one without a request.
    pub fn distrust(&mut self, sequence: i32) -> Result<Distrusted, Refusal> {
        let sequence = self.sequence(sequence)?;
        let request = self.requests[sequence.0 as usize].as_ref().ok_or(Refusal::Invalid)?;
        let first = if self.has_state() { 0 } else { request.matched };
        let indexes = first as u32..request.settled.max(request.matched) as u32;
        let snapshots = request.snapshots.clone();
        self.end_request(sequence);
        let full = self.uncache(Group::Full, sequence, indexes.clone());
        let window = self.uncache(Group::Window, sequence, indexes);
        let snapshots = self.existing(snapshots);
        snapshots.iter().for_each(|snapshot| self.remove_snapshot(*snapshot));
        Ok(Distrusted { blocks: Groups::new(full, window), snapshots })
    }

    /// Records that the request of the sequence takes this snapshot.
    pub(super) fn note_snapshot(&mut self, sequence: i32, snapshot: SnapshotId) {
        if let Some(request) = self.requests.get_mut(sequence as usize).and_then(Option::as_mut) {
            request.snapshots.push(snapshot);
        }
    }

    /// Returns the snapshots that exist, each once.
    fn existing(&self, mut snapshots: Vec<SnapshotId>) -> Vec<SnapshotId> {
        snapshots.sort_unstable();
        snapshots.dedup();
        snapshots.retain(|snapshot| self.snapshots.content(*snapshot).is_some());
        snapshots
    }

    /// Removes the contents of the blocks that the sequence holds at these indexes. Returns those that had one.
    fn uncache(&mut self, group: Group, sequence: SequenceId, indexes: Range<u32>) -> Vec<BlockId> {
        let entries = self.tables[group][sequence.0 as usize].entries();
        let entries = entries.filter(|(index, _)| indexes.contains(index));
        let held: Vec<BlockId> = entries.flat_map(|(_, entry)| entry.blocks()).collect();
        held.into_iter().filter(|block| self.blocks.uncache(group, *block)).collect()
    }
}
