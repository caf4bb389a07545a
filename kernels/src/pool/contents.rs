//! What blocks can hold: each distinct chain of tokens and extra keys, once.
//!
//! A content is one block's tokens and extra keys together with the content before it. Two
//! contents are the same only if their parents are the same content and their tokens and extra
//! keys are equal, byte by byte; the hash only finds candidates. So whoever has a [`ContentId`] has
//! verified every token up to there, and comparing two chains is comparing two numbers.
//!
//! A content lives as long as something refers to it: a block that was published with it, a
//! request whose prompt goes through it, or a later content of the chain. The last one matters:
//! when a block is evicted and computed again, the blocks behind it, which may still be there,
//! must find the parent that they know.

use std::collections::HashMap;

use super::block::BlockId;
use super::extra_keys::ExtraKeys;
use super::hash::{BlockHash, HashFunction};

/// A sequence, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceId(pub u32);

/// A content that something refers to.
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
    /// Blocks, requests and later contents that refer to this one.
    references: usize,
    /// The blocks that hold it, the earliest published first. Duplicates are kept: a block table
    /// is never changed under the sequence that reads through it.
    blocks: Vec<BlockId>,
    /// The sequence that said it would publish it.
    promised_by: Option<SequenceId>,
}

/// All contents that something refers to.
#[derive(Clone, Debug)]
pub struct Contents {
    hash: HashFunction,
    slots: Vec<Content>,
    vacant: Vec<ContentId>,
    by_hash: HashMap<BlockHash, ContentId>,
    refused_matches: u64,
    /// How often a promise was withdrawn, kept or not.
    withdrawals: u64,
}

impl Contents {
    /// No content yet.
    pub fn new(hash: HashFunction) -> Contents {
        let (slots, vacant, by_hash) = (Vec::new(), Vec::new(), HashMap::new());
        Contents { hash, slots, vacant, by_hash, refused_matches: 0, withdrawals: 0 }
    }

    /// The content with these tokens and extra keys after `parent`, known before or not, with one
    /// more reference, which [`Contents::release`] gives back.
    pub fn refer(&mut self, parent: Option<ContentId>, tokens: &[i32], extra_keys: ExtraKeys) -> ContentId {
        let parent_hash = parent.map(|parent| self.hash_of(parent));
        let hash = (self.hash)(parent_hash.as_ref(), tokens, &extra_keys.encoded);
        let candidate = self.by_hash.get(&hash).copied();
        if let Some(known) = self.find_alike(candidate, parent, tokens, &extra_keys) {
            self.slot_mut(known).references += 1;
            return known;
        }
        // Something has this hash, but is not this content.
        self.refused_matches += u64::from(candidate.is_some());
        if let Some(parent) = parent {
            self.slot_mut(parent).references += 1;
        }
        self.insert(Content {
            hash,
            parent,
            tokens: tokens.into(),
            extra_keys,
            next_alike: candidate,
            references: 1,
            blocks: Vec::new(),
            promised_by: None,
        })
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

    /// The contents with one hash.
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

    /// Gives back one reference. A loop and not a recursion: a chain can be as long as a context.
    pub fn release(&mut self, id: ContentId) {
        let mut next = Some(id);
        while let Some(id) = next.take() {
            let content = self.slot_mut(id);
            content.references -= 1;
            if content.references == 0 {
                next = content.parent;
                self.remove(id);
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
        content.blocks = Vec::new();
        self.vacant.push(id);
    }

    /// `block` holds this content from now on; that is a reference.
    pub fn add_block(&mut self, id: ContentId, block: BlockId) {
        let content = self.slot_mut(id);
        content.blocks.push(block);
        content.references += 1;
    }

    /// `block` does not hold this content any more. False, and nothing is changed: it never did.
    pub fn remove_block(&mut self, id: ContentId, block: BlockId) -> bool {
        let blocks = &mut self.slot_mut(id).blocks;
        let Some(place) = blocks.iter().position(|other| *other == block) else {
            return false;
        };
        blocks.remove(place);
        self.release(id);
        true
    }

    /// The blocks that hold this content, the earliest published first.
    pub fn blocks(&self, id: ContentId) -> &[BlockId] {
        &self.slot(id).blocks
    }

    /// The hash of this content.
    pub fn hash_of(&self, id: ContentId) -> BlockHash {
        self.slot(id).hash
    }

    /// The content before this one; `None` if it begins a prompt.
    pub fn parent(&self, id: ContentId) -> Option<ContentId> {
        self.slot(id).parent
    }

    /// Are adapters among the extra keys of this content?
    pub fn has_adapters(&self, id: ContentId) -> bool {
        self.slot(id).extra_keys.has_adapters
    }

    /// Who said that it would publish this content.
    pub fn promised_by(&self, id: ContentId) -> Option<SequenceId> {
        self.slot(id).promised_by
    }

    /// `sequence` says that it will publish this content, unless another one said so before.
    pub fn promise(&mut self, id: ContentId, sequence: SequenceId) {
        self.slot_mut(id).promised_by.get_or_insert(sequence);
    }

    /// `sequence` publishes this content no more, or has done so. Nothing, if it never promised it.
    pub fn withdraw(&mut self, id: ContentId, sequence: SequenceId) {
        if self.promised_by(id) == Some(sequence) {
            self.slot_mut(id).promised_by = None;
            self.withdrawals += 1;
        }
    }

    /// How often a promise was withdrawn, kept or not.
    pub fn withdrawals(&self) -> u64 {
        self.withdrawals
    }

    /// How many contents something refers to.
    pub fn len(&self) -> usize {
        self.slots.len() - self.vacant.len()
    }

    /// Does nothing refer to any content?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// No content, and the same counts: what is left when a pool is emptied.
    pub fn restarted(&self) -> Contents {
        let (refused_matches, withdrawals) = (self.refused_matches, self.withdrawals);
        Contents { refused_matches, withdrawals, ..Contents::new(self.hash) }
    }

    /// How often a hash was found whose content was another one.
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
