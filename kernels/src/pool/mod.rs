//! The KV block pool of the `paged` variant: which sequence's tokens lie in which cells, and which
//! blocks of them others may use.
//!
//! * [`pool`]: the whole, as the C border sees it (`crate::pool_exports`)
//! * [`sequences`]: which blocks a sequence holds, by position
//! * [`requests`]: what a sequence is computing, and what it promised to others
//! * [`block_pool`]: the blocks: free, held, published
//! * [`free_queue`]: the order in which free blocks are taken
//! * [`contents`]: what blocks can hold; verified token by token, found by hash
//! * [`hash`], [`extra_keys`]: what goes into a hash
//! * [`room`]: what the scheduler asks
//! * [`events`], [`statistics`]: what is told to the outside

pub mod block;
pub mod block_pool;
pub mod contents;
pub mod events;
pub mod extra_keys;
pub mod free_queue;
pub mod hash;
#[expect(clippy::module_inception, reason = "the pool is what the room is for")]
pub mod pool;
pub mod requests;
pub mod room;
pub mod sequences;
pub mod statistics;
