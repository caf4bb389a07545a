//! Servers on the loopback: who takes part, what is asked and answered, and what an answer is worth. Shared by the
//! gate, the fuzzer and the benches.

pub mod adapter;
pub mod answer;
pub mod arena;
pub mod asking;
pub mod cache;
pub mod cases;
pub mod chats;
pub mod contestant;
pub mod image;
pub mod inputs;
pub mod kv_pool;
pub mod overload;
pub mod probe;
pub mod prompts;
pub mod reference;
pub mod rounding;
pub mod spread;
pub mod switches;
pub mod verdict;

/// How carefully is measured; the same for every bench of the server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serving {
    /// Threads of each server; the cores that nobody uses when none are given.
    pub threads: Option<usize>,
    /// What to do on a busy machine.
    pub when_busy: WhenBusy,
}

/// What to do when somebody else uses the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenBusy {
    /// Refuse: a time would say nothing.
    #[default]
    Refuse,
    /// Go on, and say so in the report.
    Say,
    /// Go on: nothing is timed.
    Ignore,
}
