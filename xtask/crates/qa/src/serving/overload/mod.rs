//! A paged server under overload: more clients than slots, a pool far too small for all of them, and clients that
//! disconnect at any moment. Shared by the gate, which limits the number of visits, and the benchmark, which limits
//! the time.

pub mod crowd;
pub mod tally;
pub mod traffic;
