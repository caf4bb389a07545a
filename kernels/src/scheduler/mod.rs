//! Admission, queueing and preemption of requests in a step of the server: data in, one action out.
//!
//! The rules, each with its tests in `tests/scheduler/`:
//!
//! 1. **A running request has its blocks.** It needs the blocks for the tokens that it was admitted for: the rest of
//!    its prompt, or its next token with its drafts. They are counted in the pool's own tables, block by block, so
//!    nothing is counted twice or forgotten. Layers with a sliding window have blocks of their own, of which a request
//!    needs as many as its sequence can hold between two batches, and all running requests need those of one batch.
//! 2. **No bypass of the queue head.** Requests are considered in the order of their [`QueuePosition`]: of their
//!    priority, then of their arrival, then of their sequence id. The walk ends at the first one that does not fit.
//!    A preempted request arrived before those that were never admitted, so it is considered before them.
//!    [`order()`] is the only implementation: the server ranks slots and queued tasks with it too.
//! 3. **The last in that order is preempted**, and retained sequences of idle slots are evicted before any request
//!    waits.
//! 4. **A waiting request holds no blocks** that others could use, except a retained sequence, which is evicted first.
//!    So when no request runs, the whole pool is free, and the queue head fits or is refused. It is refused only if its
//!    tokens do not fit in full blocks: cells that its layout leaves empty are given up before that, by evicting its
//!    retained sequence or by preempting it, since a request that begins again gets a layout that fits.
//! 5. **A request awaits an in-flight prefix only while its owner runs.** The owner holds its blocks and is computed in
//!    one of the next steps, so this wait ends.
//!
//! Requests that cannot share a batch (other adapters, or embeddings beside completions) run concurrently: all running
//! requests hold their blocks, and the server gives each step to the batch key whose requests were computed longest
//! ago. So with K keys each has at least every Kth step.
//!
//! [`decide()`] has no side effects and returns one action; the caller carries it out and calls again, until there is
//! nothing to do. So each decision sees the effect of the one before it on the pool.

mod decide;
mod group;
mod order;

pub use decide::decide;
pub use group::Group;
pub use order::{QueuePosition, order};

use std::ops::Range;

/// Whether a request has been admitted. The values are those of `enum espalier_schedule_stage`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Stage {
    /// Waiting: it computes nothing and holds at most a retained sequence.
    Waits = 0,
    /// Admitted: its prompt is computed, or it generates.
    Runs = 1,
}

/// The size of a request: it can run if the pool has blocks for that. The pool chooses the layout of its tokens by the
/// same numbers, so a request is refused only if no layout is small enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestSize {
    /// One past the last position that it needs blocks for now.
    pub end: u64,
    /// Number of further choices (`n`) that continue where its prompt ends, each in a block of its own.
    pub further_choices: u64,
}

impl RequestSize {
    /// Returns the number of blocks that it needs if its positions take this number of blocks.
    pub fn with_positions_in(self, blocks: u64) -> u64 {
        blocks.saturating_add(self.further_choices)
    }

    /// Returns the number of blocks that it needs at least: all of them are filled.
    pub fn in_full_blocks(self, block_size: u64) -> u64 {
        self.with_positions_in(self.end.div_ceil(block_size))
    }
}

/// A request as the scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Arrival time: see [`QueuePosition`].
    pub arrival: u64,
    /// Priority: see [`QueuePosition`].
    pub priority: i32,
    /// Id of its sequence in the pool.
    pub sequence: i32,
    /// Whether it has been admitted.
    pub stage: Stage,
    /// Whether it can be preempted, because its KV can be recomputed.
    pub preemptible: bool,
    /// The first position whose KV it does not have.
    pub first: u64,
    /// One past the last position that it needs blocks for now.
    pub end: u64,
    /// Number of further choices (`n`) that continue where its prompt ends, each in a block of its own.
    pub further_choices: u64,
}

impl Request {
    /// Returns its size.
    pub fn size(&self) -> RequestSize {
        RequestSize { end: self.end, further_choices: self.further_choices }
    }
}

/// Reason why a request waits. The values are those of `enum espalier_schedule_wait`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Wait {
    /// Another request computes the blocks that it needs next.
    Prefix = 1,
    /// It is the queue head: the first request that does not fit.
    Blocks = 2,
    /// It is in the queue behind the first request that does not fit.
    Queue = 4,
}

/// The action to carry out. Indexes refer to the requests, or to the retained sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing, until blocks are freed or a request arrives.
    Nothing,
    /// Admit this request, with the first `tokens` of its prompt matched.
    Admit {
        /// Index of the request.
        index: usize,
        /// Number of positions that it has afterwards.
        tokens: u64,
    },
    /// Preempt this request: it frees its blocks and waits.
    Preempt {
        /// Index of the request.
        index: usize,
    },
    /// Refuse this request: the pool can never have the blocks that it needs.
    Refuse {
        /// Index of the request.
        index: usize,
        /// Number of blocks that it needs.
        blocks: u64,
    },
    /// Evict this retained sequence.
    Evict {
        /// Index of the retained sequence.
        index: usize,
    },
}

/// The action to carry out, and the reasons why requests wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// One action; once it is carried out, the caller asks again.
    pub action: Action,
    /// For each request the reason why it waits; `None` if it runs or was not considered.
    pub waits: Vec<Option<Wait>>,
}

/// Blocks and tokens that a sequence without blocks would get on admission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Positions of its prompt with cached KV.
    pub tokens: u64,
    /// Blocks that would no longer be free: those that it matches and no other sequence holds, and those for the rest.
    /// They can be more than it needs without a match, if the matched blocks end inside of an image.
    pub blocks: u64,
    /// The sequence that computes the next block, if it is in flight.
    pub waits_for: Option<i32>,
}

/// The pool as a decision sees it. All counts are of blocks; those without a group are of [`Group::Full`].
pub trait Capacity {
    /// Number of blocks in the pool.
    fn block_count(&self) -> u64;

    /// Number of free blocks of the group.
    fn free(&self, group: Group) -> u64;

    /// Number of positions in a block.
    fn block_size(&self) -> u64;

    /// Number of blocks that a request of this size needs in the sequence.
    fn needed(&self, _sequence: i32, size: RequestSize) -> u64 {
        size.in_full_blocks(self.block_size())
    }

    /// Number of blocks that the sequence has to allocate to write at these positions.
    fn missing(&self, sequence: i32, positions: Range<u64>) -> u64;

    /// Number of blocks of the group that the sequence holds.
    fn held(&self, group: Group, sequence: i32) -> u64;

    /// Number of blocks of the group that only this sequence holds.
    fn held_alone(&self, group: Group, sequence: i32) -> u64;

    /// Returns the offer for the sequence, which holds nothing, and a prompt up to position `end`.
    fn offer(&self, sequence: i32, end: u64) -> Offer;

    /// The needs of [`Group::Window`], if the layers with a sliding window have blocks of their own.
    fn windows(&self) -> Option<&dyn WindowNeeds> {
        None
    }
}

/// The needs of the layers with a sliding window. All counts are of blocks of [`Group::Window`], of which there are
/// enough for any one request and its further choices, if no other sequence holds any.
pub trait WindowNeeds {
    /// Number of blocks that a batch takes, beside those that each sequence in it needs.
    fn batch(&self) -> u64;

    /// Number of blocks that the sequence may allocate in this step, beside those of the batch, and those of further
    /// choices that continue where it ends. `first` is the first position whose KV it does not have.
    fn needed(&self, sequence: i32, first: u64, further_choices: u64) -> u64;
}
