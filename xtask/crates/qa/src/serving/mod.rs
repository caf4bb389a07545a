//! Servers on the loopback: the servers under test, requests and answers, and the verdict on an answer. Shared by the
//! gate, the fuzzer and the benchmarks.

pub mod adapter;
pub mod answer;
pub mod asking;
pub mod bench_fixture;
pub mod cache;
pub mod cases;
pub mod chats;
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
pub mod test_server;
pub mod verdict;

/// Measurement settings, the same for every benchmark of the server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serving {
    /// Number of threads of each server; by default, the number of idle cores.
    pub threads: Option<usize>,
    /// Behaviour on a busy machine.
    pub when_busy: WhenBusy,
}

/// Behaviour when other processes use the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenBusy {
    /// Refuse: times would be meaningless.
    #[default]
    Refuse,
    /// Continue, and note it in the report.
    Say,
    /// Continue: nothing is timed.
    Ignore,
}
