//! What the benches of the server share: who takes part, a server of each, what is asked and answered.

pub mod answer;
pub mod arena;
pub mod contestant;
pub mod prompts;

/// How carefully is measured; the same for every bench of the server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serving {
    /// Threads of each server; the cores that nobody uses when none are given.
    pub threads: Option<usize>,
    /// Measure on a busy machine too, and say so.
    pub busy_anyway: bool,
}
