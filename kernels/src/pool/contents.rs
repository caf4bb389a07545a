//! The contents of blocks: each distinct chain of tokens and extra keys, stored once.
//!
//! A content is one block's tokens and extra keys together with the content before it. Two contents are the same only
//! if their parents are the same content and their tokens and extra keys are equal, byte by byte; the hash only finds
//! candidates. So a [`ContentId`] stands for a verified chain of tokens, and comparing two chains is comparing two ids.
//!
//! A content lives as long as it is referenced: by a block that was cached with it, by a request whose prompt contains
//! it, by a snapshot of the state after it, or by a later content of the chain. The last one matters: when a block is
//! evicted and computed again, the blocks behind it, which may still be cached, must find the parent that they know.

use std::collections::HashMap;

use super::block::BlockId;
use super::extra_keys::ExtraKeys;
use super::groups::{Group, Groups};
use super::hash::{BlockHash, HashFunction};

/// Id of a sequence, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceId(pub u32);

/// Id of a snapshot of a state, counted from 1; the C ABI uses 0 for "none". Ids are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId(pub u32);

/// Id of a content that is referenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentId(u32);

#[derive(Clone, Debug)]
struct Content {
    hash: BlockHash,
    parent: Option<ContentId>,
    tokens: Box<[i32]>,
    extra_keys: ExtraKeys,
    /// The next content with the same hash. With SHA-256 there is none.
    next_alike: Option<ContentId>,
    /// Number of blocks, requests, snapshots and later contents that reference this one.
    references: usize,
    /// Number of contents whose parent this is.
    children: u32,
    /// The snapshot of the state after this content, also while it is written.
    snapshot: Option<SnapshotId>,
    /// The blocks of each group that hold it, the earliest cached first. Duplicates are kept: the block table of a
    /// running sequence is never changed.
    blocks: Groups<Vec<BlockId>>,
    /// The sequence for which it is in flight.
    in_flight_for: Option<SequenceId>,
}

/// All contents that are referenced.
#[derive(Clone, Debug)]
pub struct Contents {
    hash: HashFunction,
    slots: Vec<Content>,
    vacant: Vec<ContentId>,
    by_hash: HashMap<BlockHash, ContentId>,
    refused_matches: u64,
    /// Number of in-flight contents that ended, cached or cancelled.
    in_flight_ended: u64,
}

impl Contents {
    /// Creates an empty set.
    pub fn new(hash: HashFunction) -> Contents {
        let (slots, vacant, by_hash) = (Vec::new(), Vec::new(), HashMap::new());
        Contents { hash, slots, vacant, by_hash, refused_matches: 0, in_flight_ended: 0 }
    }

    /// Returns the content with these tokens and extra keys after `parent`, creating it if necessary, with one more
    /// reference, which [`Contents::release`] drops.
    pub fn refer(&mut self, parent: Option<ContentId>, tokens: &[i32], extra_keys: ExtraKeys) -> ContentId {
        let hash = self.hash_after(parent, tokens, &extra_keys);
        let candidate = self.by_hash.get(&hash).copied();
        if let Some(known) = self.find_alike(candidate, parent, tokens, &extra_keys) {
            self.slot_mut(known).references += 1;
            return known;
        }
        // A hash collision: a content with this hash exists, but it differs.
        self.refused_matches += u64::from(candidate.is_some());
        if let Some(parent) = parent {
            let parent = self.slot_mut(parent);
            parent.references += 1;
            parent.children += 1;
        }
        self.insert(Content {
            hash,
            parent,
            tokens: tokens.into(),
            extra_keys,
            next_alike: candidate,
            references: 1,
            children: 0,
            snapshot: None,
            blocks: Groups::default(),
            in_flight_for: None,
        })
    }

    /// Returns the content with these tokens and extra keys after `parent`, if it is referenced.
    pub fn find(
        &self,
        parent: Option<ContentId>,
        tokens: &[i32],
        extra_keys: &ExtraKeys,
    ) -> Option<ContentId> {
        let hash = self.hash_after(parent, tokens, extra_keys);
        self.find_alike(self.by_hash.get(&hash).copied(), parent, tokens, extra_keys)
    }

    fn hash_after(&self, parent: Option<ContentId>, tokens: &[i32], extra_keys: &ExtraKeys) -> BlockHash {
        let parent_hash = parent.map(|parent| self.hash_of(parent));
        (self.hash)(parent_hash.as_ref(), tokens, &extra_keys.encoded)
    }

    fn find_alike(
        &self,
        first: Option<ContentId>,
        parent: Option<ContentId>,
        tokens: &[i32],
        extra_keys: &ExtraKeys,
    ) -> Option<ContentId> {
        let is_it = |content: &Content| {
            content.parent == parent && *content.tokens == *tokens && content.extra_keys == *extra_keys
        };
        self.alike(first).find(|id| is_it(self.slot(*id)))
    }

    /// Returns the contents with one hash.
    fn alike(&self, first: Option<ContentId>) -> impl Iterator<Item = ContentId> {
        std::iter::successors(first, |id| self.slot(*id).next_alike)
    }

    fn insert(&mut self, content: Content) -> ContentId {
        let hash = content.hash;
        let id = match self.vacant.pop() {
            Some(id) => {
                *self.slot_mut(id) = content;
                id
            }
            None => {
                self.slots.push(content);
                ContentId((self.slots.len() - 1) as u32)
            }
        };
        self.by_hash.insert(hash, id);
        id
    }

    /// Drops one reference. A loop, not a recursion: a chain can be as long as a context.
    pub fn release(&mut self, id: ContentId) {
        let mut next = Some(id);
        while let Some(id) = next.take() {
            let content = self.slot_mut(id);
            content.references -= 1;
            if content.references == 0 {
                next = content.parent;
                self.remove(id);
                if let Some(parent) = next {
                    self.slot_mut(parent).children -= 1;
                }
            }
        }
    }

    fn remove(&mut self, id: ContentId) {
        let (hash, next_alike) = (self.slot(id).hash, self.slot(id).next_alike);
        let first = self.by_hash.get(&hash).copied();
        let before = self.alike(first).find(|other| self.slot(*other).next_alike == Some(id));
        match (before, next_alike) {
            (Some(before), _) => self.slot_mut(before).next_alike = next_alike,
            (None, Some(next)) => drop(self.by_hash.insert(hash, next)),
            (None, None) => drop(self.by_hash.remove(&hash)),
        }
        let content = self.slot_mut(id);
        (content.tokens, content.extra_keys) = (Box::default(), ExtraKeys::default());
        content.blocks = Groups::default();
        self.vacant.push(id);
    }

    /// Records that `block` of this group holds this content; that is a reference.
    pub fn add_block(&mut self, group: Group, id: ContentId, block: BlockId) {
        let content = self.slot_mut(id);
        content.blocks[group].push(block);
        content.references += 1;
    }

    /// Records that `block` of this group no longer holds this content. Returns false and changes nothing if it did
    /// not.
    pub fn remove_block(&mut self, group: Group, id: ContentId, block: BlockId) -> bool {
        let blocks = &mut self.slot_mut(id).blocks[group];
        let Some(place) = blocks.iter().position(|other| *other == block) else {
            return false;
        };
        blocks.remove(place);
        self.release(id);
        true
    }

    /// Returns the blocks of this group that hold this content, the earliest cached first.
    pub fn blocks(&self, group: Group, id: ContentId) -> &[BlockId] {
        &self.slot(id).blocks[group]
    }

    /// Returns the number of contents whose parent this is. If there are several, prompts branch after it.
    pub fn children(&self, id: ContentId) -> u32 {
        self.slot(id).children
    }

    /// Returns the number of blocks, requests, snapshots and later contents that reference this one.
    pub fn references(&self, id: ContentId) -> usize {
        self.slot(id).references
    }

    /// Returns the snapshot of the state after this content, also while it is written.
    pub fn snapshot(&self, id: ContentId) -> Option<SnapshotId> {
        self.slot(id).snapshot
    }

    /// Records the snapshot of the state after this content, which has none; that is a reference. Returns false and
    /// changes nothing if it has one.
    pub fn add_snapshot(&mut self, id: ContentId, snapshot: SnapshotId) -> bool {
        let content = self.slot_mut(id);
        if content.snapshot.is_some() {
            return false;
        }
        content.snapshot = Some(snapshot);
        content.references += 1;
        true
    }

    /// Records that this content no longer has this snapshot. Returns false and changes nothing if it did not.
    pub fn remove_snapshot(&mut self, id: ContentId, snapshot: SnapshotId) -> bool {
        let content = self.slot_mut(id);
        if content.snapshot != Some(snapshot) {
            return false;
        }
        content.snapshot = None;
        self.release(id);
        true
    }

    /// Returns the hash of this content.
    pub fn hash_of(&self, id: ContentId) -> BlockHash {
        self.slot(id).hash
    }

    /// Returns the content before this one; `None` at the beginning of a prompt.
    pub fn parent(&self, id: ContentId) -> Option<ContentId> {
        self.slot(id).parent
    }

    /// Returns the number of tokens in this content's block.
    pub fn token_count(&self, id: ContentId) -> u32 {
        self.slot(id).tokens.len() as u32
    }

    /// Returns whether the extra keys of this content include adapters.
    pub fn has_adapters(&self, id: ContentId) -> bool {
        self.slot(id).extra_keys.has_adapters
    }

    /// Returns the sequence for which this content is in flight.
    pub fn in_flight_for(&self, id: ContentId) -> Option<SequenceId> {
        self.slot(id).in_flight_for
    }

    /// Marks this content as in flight for `sequence`, unless it already is for another one.
    pub fn mark_in_flight(&mut self, id: ContentId, sequence: SequenceId) {
        self.slot_mut(id).in_flight_for.get_or_insert(sequence);
    }

    /// Ends the in-flight state of this content, cached or cancelled. Does nothing if it is not in flight for
    /// `sequence`.
    pub fn end_in_flight(&mut self, id: ContentId, sequence: SequenceId) {
        if self.in_flight_for(id) == Some(sequence) {
            self.slot_mut(id).in_flight_for = None;
            self.in_flight_ended += 1;
        }
    }

    /// Returns the number of in-flight contents that ended, cached or cancelled.
    pub fn in_flight_ended(&self) -> u64 {
        self.in_flight_ended
    }

    /// Returns the number of contents that are referenced.
    pub fn len(&self) -> usize {
        self.slots.len() - self.vacant.len()
    }

    /// Returns whether no content is referenced.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns an empty set with the same counters, for a pool that is reset.
    pub fn restarted(&self) -> Contents {
        let (refused_matches, in_flight_ended) = (self.refused_matches, self.in_flight_ended);
        Contents { refused_matches, in_flight_ended, ..Contents::new(self.hash) }
    }

    /// Returns the number of hash collisions: equal hashes of different contents.
    pub fn refused_matches(&self) -> u64 {
        self.refused_matches
    }

    fn slot(&self, id: ContentId) -> &Content {
        &self.slots[id.0 as usize]
    }

    fn slot_mut(&mut self, id: ContentId) -> &mut Content {
        &mut self.slots[id.0 as usize]
    }
}
