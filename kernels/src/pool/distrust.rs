//! Removal of cached results that are not to be used again.
//!
//! If the output of a request is not finite, one of its states or blocks may be the cause, even if all of their values
//! are finite: no later prompt may continue from them, nor find them beside a state that is right. They are found by
//! their content, so those that it computed before it was preempted are among them, and so are copies.
//!
//! With images, the same tokens have other contents in another layout. A preempted request that is given another layout
//! keeps its tokens and keys, so the contents of the earlier one can be looked up: it is the layout with all blocks
//! closed that end with an image, or with only the first ones of these ([`Layout::partly_closed`]), as in a sequence
//! that continued from retained tokens in closed blocks and did not fit into the pool with more of them.

use std::collections::BTreeSet;

use super::block::BlockId;
use super::contents::ContentId;
use super::groups::{Group, Groups};
use super::layout::Layout;
use super::pool::{Pool, PoolError};
use super::requests::Request;
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
    /// contents of its tokens behind the first `matched` ones, whoever cached them, in every layout that the request
    /// may have had. The request did not compute the first `matched` tokens, not even before a preemption. If the pool
    /// has a state, the blocks that it matched are removed too, which may come from the sequence whose state it
    /// restored, and the snapshots of states after any of its blocks.
    ///
    /// [`PoolError::Invalid`]: an unknown sequence, or one without a request.
    pub fn distrust(&mut self, sequence: i32, matched: u64) -> Result<Distrusted, PoolError> {
        let sequence = self.sequence(sequence)?;
        let request = self.requests[sequence.0 as usize].as_ref().ok_or(PoolError::Invalid)?;
        let contents = self.contents_to_distrust(request, matched);
        // All are found before any is removed: a content that was only looked up ends with its last block or snapshot.
        let blocks_of = |group: Group| -> Vec<BlockId> {
            let copies = contents.iter().flat_map(|content| self.blocks.contents.blocks(group, *content));
            copies.copied().collect()
        };
        let blocks = Groups::new(blocks_of(Group::Full), blocks_of(Group::Window));
        let snapshots: Vec<SnapshotId> =
            contents.iter().filter_map(|content| self.blocks.contents.snapshot(*content)).collect();
        for group in Group::ALL {
            for block in &blocks[group] {
                self.blocks.uncache(group, *block);
            }
        }
        snapshots.iter().for_each(|snapshot| self.remove_snapshot(*snapshot));
        self.end_request(sequence);
        Ok(Distrusted { blocks, snapshots })
    }

    /// Returns the contents of the blocks that the request may have computed, in its layout and then in the others that
    /// it may have had, each once.
    fn contents_to_distrust(&self, request: &Request, matched: u64) -> Vec<ContentId> {
        let matched = matched.min(request.prompt_length() as u64);
        // A block in which the first tokens end is the request's, if it continued from retained tokens.
        let first_in = |layout: &Layout| match self.has_state() {
            true => 0,
            false => layout.complete_blocks(matched),
        };
        let first = first_in(request.layout()).min(request.matched);
        let mut contents: Vec<ContentId> = (first..).map_while(|index| request.content(index)).collect();
        let closed = self.closes_blocks.then(|| Layout::closed(self.block_size(), request.keys()));
        for layout in closed.iter().flat_map(Layout::partly_closed) {
            let known = request.contents_in(&layout, &self.blocks.contents);
            contents.extend(known.into_iter().skip(first_in(&layout)));
        }
        let mut seen = BTreeSet::new();
        contents.retain(|content| seen.insert(*content));
        contents
    }
}
