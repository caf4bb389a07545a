//! Types of argument values that the commands get as types of their own.

use clap::ValueEnum;

use crate::bench::fairness;
use crate::gate;
use crate::report::canary::Level;
use crate::serving::test_server;

/// Converts values to the types of the commands.
pub(super) fn each<V: Into<T>, T>(values: Vec<V>) -> Vec<T> {
    values.into_iter().map(Into::into).collect()
}

/// The last level of the canary.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Until {
    /// Compare every patch with the tip.
    Status,
    /// Compile each file that the series touches, syntax only.
    Contract,
    /// Build it and send the server requests.
    Build,
    /// Compare logits with a stock build of the tip.
    Gate,
}

impl From<Until> for Level {
    fn from(until: Until) -> Self {
        match until {
            Until::Status => Self::Status,
            Until::Contract => Self::Contract,
            Until::Build => Self::Build,
            Until::Gate => Self::Gate,
        }
    }
}

/// What the gate compares.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Part {
    /// Logits, byte by byte.
    Logits,
    /// Attention error against double precision.
    Attention,
    /// The servers' answers, token by token, and the guarantees.
    Servers,
    /// Guarantees of the paged server; no stock server is needed.
    Promises,
    /// The servers' answers on real weights, within stock's own spread.
    Weights,
    /// Outcomes of upstream's own tests.
    Suites,
}

impl From<Part> for gate::Part {
    fn from(part: Part) -> Self {
        match part {
            Part::Logits => Self::Logits,
            Part::Attention => Self::Attention,
            Part::Servers => Self::Servers,
            Part::Promises => Self::Promises,
            Part::Weights => Self::Weights,
            Part::Suites => Self::Suites,
        }
    }
}

/// A server that is measured.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum TestServer {
    /// Stock with its defaults: four slots that share one cache.
    Stock,
    /// Stock with a slot and a cache of its own for each request.
    StockSplit,
    /// Stock with a slot for each request and one cache.
    StockUnified,
    /// Ours with a slot for each request and the paged cache.
    Paged,
    /// The same, with stock's attention kernel.
    PagedPlain,
}

impl From<TestServer> for test_server::TestServer {
    fn from(test_server: TestServer) -> Self {
        match test_server {
            TestServer::Stock => Self::Stock,
            TestServer::StockSplit => Self::StockSplit,
            TestServer::StockUnified => Self::StockUnified,
            TestServer::Paged => Self::Paged,
            TestServer::PagedPlain => Self::PagedPlain,
        }
    }
}

/// A workload of a server.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Scenario {
    /// Endless requests, of which three fit at once: the longest stall of a stream.
    Streams,
    /// The same, with prompts in between that need most of the pool: how many requests bypass them.
    Large,
    /// Prompts that cannot fit beside a long stream: what they cost that stream.
    Waiting,
}

impl From<Scenario> for fairness::Scenario {
    fn from(scenario: Scenario) -> Self {
        match scenario {
            Scenario::Streams => Self::Streams,
            Scenario::Large => Self::Large,
            Scenario::Waiting => Self::Waiting,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns every possible value with the value that a command gets for it.
    fn typed<V: ValueEnum + Into<T>, T>() -> Vec<(String, T)> {
        let name = |value: &V| value.to_possible_value().unwrap().get_name().to_string();
        V::value_variants().iter().map(|value| (name(value), value.clone().into())).collect()
    }

    #[test]
    fn all_that_reports_name_can_be_typed() {
        let test_servers = test_server::TestServer::ALL.map(|one| (one.name().to_string(), one));
        assert_eq!(typed::<TestServer, test_server::TestServer>(), test_servers);
        let scenarios = fairness::Scenario::ALL.map(|one| (one.name().to_string(), one));
        assert_eq!(typed::<Scenario, fairness::Scenario>(), scenarios);
    }

    #[test]
    fn every_part_of_the_gate_can_be_typed() {
        let parts = typed::<Part, gate::Part>();
        assert!(gate::Part::ALL.iter().all(|part| parts.iter().any(|(_, typed)| typed == part)), "{parts:?}");
    }
}
