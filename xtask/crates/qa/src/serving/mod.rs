//! Servers on the loopback: the servers under test, requests and answers, and the verdict on an answer. Shared by the
//! gate, the fuzzer and the benchmarks.

pub mod adapter;
pub mod asking;
pub mod bench_fixture;
pub mod bench_model;
pub mod cache;
pub mod cases;
pub mod chats;
pub mod image;
pub mod inputs;
pub mod kv_pool;
pub mod load;
pub mod metrics;
pub mod overload;
pub mod probe;
pub mod prompts;
pub mod reference;
pub mod request_record;
pub mod rounding;
pub mod spread;
pub mod switches;
pub mod test_server;
pub mod verdict;

use clap::Args;

/// Measurement settings, the same for every benchmark of the server.
#[derive(Clone, Copy, Debug)]
pub struct Serving {
    /// Number of threads of each server; by default, the number of idle cores.
    pub threads: Option<usize>,
    /// Behaviour on a busy machine.
    pub when_busy: WhenBusy,
}

impl Serving {
    /// Returns the settings of a benchmark that takes no times.
    #[must_use]
    pub fn untimed(threads: Option<usize>) -> Serving {
        Serving { threads, when_busy: WhenBusy::Ignore }
    }
}

/// Options of every benchmark that takes times of servers or probes.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct TimedServing {
    /// Threads of each program under test; default: the idle cores.
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Measure even on a busy machine; this is noted in the report.
    #[arg(long, conflicts_with = "record")]
    pub busy_anyway: bool,
}

impl From<TimedServing> for Serving {
    fn from(TimedServing { threads, busy_anyway }: TimedServing) -> Serving {
        Serving { threads, when_busy: if busy_anyway { WhenBusy::Say } else { WhenBusy::Refuse } }
    }
}

/// Behaviour when other processes use the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenBusy {
    /// Refuse: times would be meaningless.
    Refuse,
    /// Continue, and note it in the report.
    Say,
    /// Continue: nothing is timed.
    Ignore,
}
