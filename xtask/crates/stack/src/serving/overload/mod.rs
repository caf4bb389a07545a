//! A paged server under overload: more clients than slots, a pool that is far too small for all of them, and clients
//! that go away at any moment. Shared by the gate, which counts visits, and the bench, which counts minutes.

pub mod crowd;
pub mod tally;
pub mod traffic;
