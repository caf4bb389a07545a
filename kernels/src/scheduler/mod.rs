//! Who goes on in a step of the server, who waits, and who gives way: data in, one action out.
//!
//! The rules, and where each is proven (`tests/scheduler/`):
//!
//! 1. **Who runs has its room.** A running request needs room for the tokens that it was promised:
//!    the rest of its prompt, or its next token with its drafts. That is counted in the pool's own
//!    tables, block by block, so nothing is promised twice or forgotten.
//! 2. **Nobody overtakes the first that waits for room.** Requests ask in the order of their
//!    priority and then of their arrival; the walk ends at the first one that does not fit. A
//!    preempted request arrived before those that were never let in, so it is asked before them.
//! 3. **The last in that order gives way**, and what idle slots keep goes before anybody waits.
//! 4. **Who waits holds nothing** that others could use, but for a kept text, which goes first. So
//!    when nobody runs, the whole pool is free, and the first in the order fits or is refused.
//! 5. **A prefix is waited for only while its owner runs.** Its owner holds its blocks and is
//!    computed in one of the next steps, so this wait ends.
//!
//! Requests that cannot share a batch (other adapters, or embeddings beside completions) run side
//! by side: all that run hold their blocks, and the server gives each step to the batch key whose
//! requests were computed longest ago. So with K keys each has at least every Kth step.
//!
//! [`decide`] changes nothing and gives one action; the caller carries it out and asks again, until
//! there is nothing to do. So each decision sees what the one before it did to the pool.

mod decide;

pub use decide::decide;

use std::ops::Range;

/// Whether a request has been let in. The numbers are `enum espalier_schedule_stage`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Stage {
    /// It computes nothing and holds at most a kept text.
    Waits = 0,
    /// It was let in: its prompt is computed, or it generates.
    Runs = 1,
}

/// A request as the scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it came; of two that came at once the smaller goes first.
    pub arrival: u64,
    /// Smaller goes first, before all that arrival says.
    pub priority: i32,
    /// The pool's number of its sequence.
    pub sequence: i32,
    /// Has it been let in?
    pub stage: Stage,
    /// Can what it holds be computed again?
    pub may_give_way: bool,
    /// The first position whose KV it has not.
    pub first: u64,
    /// One past the last position that it needs room for now.
    pub end: u64,
    /// Sequences that will go on where it ends, each in a block of its own.
    pub siblings: u64,
}

/// Why a request waits. The numbers are `enum espalier_schedule_wait`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Wait {
    /// Another request computes the blocks that it needs next.
    Prefix = 1,
    /// It is the first that there is no room for.
    Room = 2,
    /// It comes after the first that there is no room for.
    Line = 4,
}

/// What is to be done. Indexes are of the requests, or of what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing, until something is freed or somebody comes.
    Nothing,
    /// This request is let in, with the first `tokens` of its prompt attached.
    Admit {
        /// Of the requests.
        index: usize,
        /// Positions that it has then.
        tokens: u64,
    },
    /// This request gives up what it holds, and waits.
    GiveWay {
        /// Of the requests.
        index: usize,
    },
    /// This request can never have the room that it needs.
    Refuse {
        /// Of the requests.
        index: usize,
    },
    /// This kept text is given up.
    Drop {
        /// Of what is kept.
        index: usize,
    },
}

/// What is to be done, and who waits for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// One thing; carried out, the next question is asked.
    pub action: Action,
    /// For each request why it waits; `None`: it runs, or nobody asked.
    pub waits: Vec<Option<Wait>>,
}

/// What a sequence that holds nothing would get if it were let in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Positions of its prompt that it would have, computed by others.
    pub tokens: u64,
    /// Blocks that would not be free any more: those that it attaches and nobody else holds, and
    /// those for the rest.
    pub blocks: u64,
    /// The sequence that computes the block after these.
    pub waits_for: Option<i32>,
}

/// What a decision asks of a pool. All counts are of blocks.
pub trait Room {
    /// Blocks of the pool.
    fn block_count(&self) -> u64;

    /// Blocks that nobody holds.
    fn free(&self) -> u64;

    /// Positions of a block.
    fn block_size(&self) -> u64;

    /// Blocks that the sequence has to take to write at these positions.
    fn missing(&self, sequence: i32, positions: Range<u64>) -> u64;

    /// Blocks that the sequence holds.
    fn held(&self, sequence: i32) -> u64;

    /// Blocks that nobody else holds.
    fn held_alone(&self, sequence: i32) -> u64;

    /// What the sequence, which holds nothing, would get for a prompt up to position `end`.
    fn offer(&self, sequence: i32, end: u64) -> Offer;
}
