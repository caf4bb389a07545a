//! The KV block pool of the `paged` variant: the cells of each sequence's tokens, and prefix caching.
//!
//! * [`pool`], [`options`]: the interface, as the C ABI sees it (`crate::ffi::pool`)
//! * [`sharing`]: blocks that a sequence shares with another one, and the removal of positions
//! * [`sequences`]: block tables: the blocks that a sequence holds, by position
//! * [`layout`]: which tokens of a sequence lie in which block
//! * [`requests`]: the request of a sequence, with its in-flight blocks
//! * [`block_pool`]: the blocks: free, held, cached
//! * [`free_queue`]: the order in which free blocks are allocated
//! * [`groups`]: groups of layers: those that attend to all tokens, and those with a sliding window
//! * [`contents`]: the contents of blocks; verified token by token, found by hash
//! * [`hash`], [`extra_keys`]: the hash of a block and its inputs
//! * [`snapshots`]: snapshots of states: budget, eviction, stages
//! * [`boundaries`]: the boundaries at which a prompt can be matched, and those at which a snapshot is worth its bytes
//! * [`windows`]: sliding windows: the blocks that a sequence still needs, and those that are kept behind it
//! * [`capacity`]: the scheduler's view of the pool
//! * [`distrust`]: removes what a request computed whose output is not finite
//! * [`events`], [`statistics`]: events, counters and gauges

pub mod block;
pub mod block_pool;
pub mod boundaries;
pub mod capacity;
pub mod contents;
pub mod distrust;
pub mod events;
pub mod extra_keys;
pub mod free_queue;
pub mod groups;
pub mod hash;
pub mod layout;
pub mod options;
#[expect(clippy::module_inception, reason = "the pool is what the module is for")]
pub mod pool;
pub mod requests;
pub mod sequences;
pub mod sharing;
pub mod snapshots;
pub mod statistics;
pub mod windows;
