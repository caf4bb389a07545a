//! The result of a burst bench.

use crate::bench::timing::Times;
use crate::serving::bench_fixture::Builds;
use crate::serving::prompts::Prompts;
use crate::serving::test_server::TestServer;

/// One whole run of the bench.
#[derive(Clone, Debug)]
pub(super) struct Burst {
    pub(super) prompts: Prompts,
    pub(super) machine: Machine,
    pub(super) builds: Builds,
    /// Whether no other process used the machine.
    pub(super) quiet: bool,
    /// Lower bound with upstream's attention.
    pub(super) floor: Times,
    /// Lower bound with our attention.
    pub(super) our_floor: Times,
    pub(super) entries: Vec<Entry>,
}

/// The machine that it ran on.
#[derive(Clone, Debug, Default)]
pub(super) struct Machine {
    pub(super) processor: Option<String>,
    pub(super) threads: usize,
}

/// The rounds of one server under test.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) test_server: TestServer,
    pub(super) times: Times,
    /// Prompt tokens computed, summed over each round.
    pub(super) computed: Vec<u64>,
    /// Tokens of the answers, by round and request.
    pub(super) answers: Vec<Vec<Vec<u64>>>,
}

impl Burst {
    pub(super) fn new(prompts: Prompts, machine: Machine, builds: Builds, entries: Vec<Entry>) -> Burst {
        let (floor, our_floor) = (Times::new("lower bound"), Times::new("lower bound with our attention"));
        Burst { prompts, machine, builds, quiet: false, floor, our_floor, entries }
    }

    /// Returns the number of answers of `entry` that differ from those of the first server in the same round, and the
    /// total.
    pub(super) fn differing(&self, entry: &Entry) -> (usize, usize) {
        let Some(first) = self.entries.first() else { return (0, 0) };
        let pairs = first.answers.iter().flatten().zip(entry.answers.iter().flatten());
        (pairs.clone().filter(|(first, other)| first != other).count(), pairs.count())
    }

    /// Returns the time as a multiple of the lower bound: the median of the rounds' ratios.
    pub(super) fn over_floor(&self, times: &Times) -> Option<f64> {
        self.floor.speedup_over(times)
    }
}

impl Entry {
    pub(super) fn new(test_server: TestServer, slots: usize) -> Entry {
        let times = Times::new(&test_server.title(slots));
        Entry { test_server, times, computed: Vec::new(), answers: Vec::new() }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;

    /// Two rounds, two servers; one of the second server's four answers differs.
    pub(in crate::bench::burst) fn example() -> Burst {
        let prompts = Prompts { requests: 2, prefix: 1600, suffix: 16, predict: 8, family: 0 };
        let entry = |test_server, millis: [u64; 2], computed: u64, last: u64| Entry {
            times: Times {
                rounds: millis.map(Duration::from_millis).to_vec(),
                ..Entry::new(test_server, 2).times
            },
            computed: vec![computed; 2],
            answers: vec![vec![vec![1], vec![2]], vec![vec![1], vec![last]]],
            test_server,
        };
        let entries = vec![
            entry(TestServer::Stock, [4000, 8000], 3232, 2),
            entry(TestServer::Paged, [1100, 2000], 1632, 3),
        ];
        let machine = Machine { processor: Some("Some CPU".to_string()), threads: 2 };
        let trees = BTreeMap::from([
            ("paged".to_string(), "b2".to_string()),
            ("stock".to_string(), "a1".to_string()),
        ]);
        let builds = Builds { pin: "v1".to_string(), trees };
        let mut burst = Burst::new(prompts, machine, builds, entries);
        burst.quiet = true;
        burst.floor.rounds = [1000, 2000].map(Duration::from_millis).to_vec();
        burst.our_floor.rounds = [500, 1000].map(Duration::from_millis).to_vec();
        burst
    }

    #[test]
    fn answers_are_compared_with_the_first_servers() {
        let burst = example();
        assert_eq!(burst.differing(&burst.entries[0]), (0, 4));
        assert_eq!(burst.differing(&burst.entries[1]), (1, 4));
    }

    #[test]
    fn ratios_to_the_floor_are_taken_round_by_round() {
        let burst = example();
        assert!((burst.over_floor(&burst.entries[0].times).unwrap() - 4.0).abs() < 1e-9);
        assert!((burst.over_floor(&burst.entries[1].times).unwrap() - 1.05).abs() < 1e-9);
    }
}
