//! Removal of cached results that are not to be used again.
//!
//! If the output of a request is not finite, one of its states or blocks may be the cause, even if all of their values
//! are finite: no later prompt may continue from them, nor find them beside a state that is right. They are found by
//! their content, so those that it computed before it was preempted are among them, and so are copies.

use super::block::BlockId;
use super::contents::ContentId;
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
    /// Ends the request of the sequence, which still holds its blocks, and removes from the cache all blocks with
    /// contents of its tokens behind the first `matched` ones, whoever cached them: the request did not compute the
    /// first `matched` tokens, not even before a preemption. If the pool has a state, the blocks that it matched are removed too, which may come
    /// from the sequence whose state it restored, and the snapshots of states after any of its blocks.
    ///
    /// [`Refusal::Invalid`]: an unknown sequence, or one without a request.
    pub fn distrust(&mut self, sequence: i32, matched: u64) -> Result<Distrusted, Refusal> {
        let sequence = self.sequence(sequence)?;
        let request = self.requests[sequence.0 as usize].as_ref().ok_or(Refusal::Invalid)?;
        let first = match self.has_state() {
            true => 0,
            false => {
                let matched = matched.min(request.prompt_length() as u64);
                request.matched.min(request.layout().needed_blocks(matched))
            }
        };
        let contents: Vec<ContentId> = (first..).map_while(|index| request.content(index)).collect();
        let blocks =
            Groups::new(self.uncache(Group::Full, &contents), self.uncache(Group::Window, &contents));
        let of_contents = contents.iter().filter_map(|content| self.blocks.contents.snapshot(*content));
        let snapshots: Vec<SnapshotId> = of_contents.collect();
        snapshots.iter().for_each(|snapshot| self.remove_snapshot(*snapshot));
        // Last: the contents live as long as the request does.
        self.end_request(sequence);
        Ok(Distrusted { blocks, snapshots })
    }

    /// Removes these contents from the blocks that have them, which are returned in the order of the contents.
    fn uncache(&mut self, group: Group, contents: &[ContentId]) -> Vec<BlockId> {
        let copies = contents.iter().flat_map(|content| self.blocks.contents.blocks(group, *content));
        let mut blocks: Vec<BlockId> = copies.copied().collect();
        blocks.retain(|block| self.blocks.uncache(group, *block));
        blocks
    }
}
