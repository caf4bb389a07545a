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
