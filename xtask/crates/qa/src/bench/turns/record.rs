//! PURE: the result of the turns bench, compared with the new tokens of each turn.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Workload;
use crate::bench::history::History;
use crate::bench::record::{BenchResult, Head, Plot};
use crate::report::curves::{Axis, Curve, Curves, Scale};
use crate::report::samples::median_of;
use crate::report::table::Table;
use crate::serving::request_record::RequestRecord;
use crate::serving::test_server::TestServer;

/// All servers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::bench) struct Turns {
    #[serde(flatten)]
    pub(in crate::bench) workload: Workload,
    /// New tokens of each turn, of all users.
    pub(in crate::bench) new_tokens: Vec<u64>,
    pub(in crate::bench) servers: Vec<ServerTurns>,
    failures: Vec<String>,
}

/// The turns of one server under test.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::bench) struct ServerTurns {
    pub(in crate::bench) name: TestServer,
    /// Number of prompt tokens computed in each turn, of all users.
    computed: Vec<u64>,
    /// Median time to the first token in each turn.
    first_token_seconds: Vec<f64>,
}

/// Goal: the largest number of tokens computed in a turn for each new token.
const MAX_OF_NEW: f64 = 1.2;

impl ServerTurns {
    /// Summarizes the requests of each user.
    pub(super) fn of(name: TestServer, users: &[Vec<RequestRecord>]) -> ServerTurns {
        let turns = users.iter().map(Vec::len).min().unwrap_or_default();
        let computed = |turn: usize| users.iter().map(|records| records[turn].timings.computed).sum::<u64>();
        let median = |turn: usize| median_of(users.iter().map(|records| wait(&records[turn])).collect());
        ServerTurns {
            name,
            computed: (0..turns).map(computed).collect(),
            first_token_seconds: (0..turns).filter_map(median).collect(),
        }
    }

    /// Returns the tokens computed in all turns after the first, for each of the `new` ones.
    pub(in crate::bench) fn computed_for_each(&self, new: &[u64]) -> Option<f64> {
        let later = |counts: &[u64]| counts.iter().skip(1).sum::<u64>() as f64;
        (new.len() > 1).then(|| later(&self.computed) / later(new))
    }

    /// Returns the median of the turns after the first.
    pub(in crate::bench) fn later_first_token_seconds(&self) -> Option<f64> {
        median_of(self.first_token_seconds.iter().skip(1).copied().collect())
    }
}

/// Returns the time to the first token, in seconds.
fn wait(record: &RequestRecord) -> f64 {
    let first: Duration = record.first_token().unwrap_or_default();
    first.saturating_sub(record.sent).as_secs_f64()
}

impl Turns {
    /// Adds one line if our server misses the goal.
    pub(super) fn judged(workload: Workload, servers: Vec<ServerTurns>) -> Turns {
        let new_tokens = (0..workload.turns).map(|turn| workload.new_tokens(turn)).collect();
        let mut turns = Turns { workload, new_tokens, servers, failures: Vec::new() };
        turns.failures = turns.violations();
        turns
    }

    fn violations(&self) -> Vec<String> {
        let judge = |server: &ServerTurns| {
            let times = server.computed_for_each(&self.new_tokens)?;
            (server.name.is_ours() && times > MAX_OF_NEW).then(|| {
                let name = server.name.name();
                format!(
                    "{name}: a turn computes {times:.2} tokens for each new one, expected at most {MAX_OF_NEW:.2}"
                )
            })
        };
        self.servers.iter().filter_map(judge).collect()
    }

    fn title(&self) -> String {
        let Workload { users, turns, system, message, answer, .. } = self.workload;
        format!(
            "{users} users at once, {turns} turns each: {system} tokens of system prompt in common, messages of \
             {message}, answers of {answer}"
        )
    }

    fn conditions(&self, head: &Head) -> String {
        let (pin, threads, machine) = (&head.pin, head.threads(), head.machine());
        let (model, cells) = (self.workload.model.title_of_70_million(), self.workload.cells());
        format!("llama.cpp {pin}, {model}, -c {cells}, -t {threads}, {machine}")
    }

    fn row(&self, title: &str, computed: &[u64], times: [Option<f64>; 2]) -> String {
        let mean = |counts: &[u64]| counts.iter().sum::<u64>() as f64 / counts.len().max(1) as f64;
        let (first, later) = computed.split_at(computed.len().min(1));
        let new = mean(self.new_tokens.get(1..).unwrap_or_default());
        let [first_time, later_time] =
            times.map(|time| time.map_or_else(String::new, |time| format!(" {:.1}", 1e3 * time)));
        let ratio = mean(later) / new;
        format!("{title} | {:.0} | {:.0} | {ratio:.2}x |{first_time} |{later_time}", mean(first), mean(later))
    }

    fn rows(&self) -> Vec<String> {
        let of_server = |server: &ServerTurns| {
            let times = [server.first_token_seconds.first().copied(), server.later_first_token_seconds()];
            self.row(&server.name.title(self.workload.users), &server.computed, times)
        };
        let new = self.row("new tokens", &self.new_tokens, [None, None]);
        self.servers.iter().map(of_server).chain([new]).collect()
    }

    fn curves(&self, head: &Head) -> Curves {
        let point = |(turn, count): (u32, &u64)| (f64::from(turn), *count as f64);
        let points = |counts: &[u64]| (1..).zip(counts).map(point).collect::<Vec<_>>();
        let of_server = |server: &ServerTurns| Curve {
            name: server.name.title(self.workload.users),
            points: points(&server.computed),
        };
        let new = Curve { name: "new tokens".to_string(), points: points(&self.new_tokens) };
        let warning = if head.quiet == Some(false) { ", MACHINE NOT QUIET" } else { "" };
        Curves {
            title: self.title(),
            subtitle: format!("{}{warning}", self.conditions(head)),
            x: Axis { name: "turn".to_string(), scale: Scale::Linear },
            y: Axis { name: "prompt tokens computed, all users".to_string(), scale: Scale::Linear },
            curves: self.servers.iter().map(of_server).chain([new]).collect(),
        }
    }
}

impl BenchResult for Turns {
    const HISTORY: History = History {
        bench: "turns",
        identity: "trees processor threads model users turns system message answer",
    };

    fn tables(&self, head: &Head) -> String {
        let columns = "server | computed, 1st turn | a later one | x the new tokens | first token ms, 1st turn | \
                       a later one";
        format!("{}\n{}\n\n{}", self.title(), self.conditions(head), Table::new(columns, self.rows()))
    }

    fn plot(&self, head: &Head) -> Option<Plot> {
        let name = format!("turns-{}", self.workload.model.name());
        Some(Plot { name, svg: self.curves(head).svg() })
    }

    fn failures(&self) -> &[String] {
        &self.failures
    }
}

#[cfg(test)]
pub(in crate::bench) mod tests {
    use serde_json::json;

    use super::super::tests::workload;
    use super::*;
    use crate::bench::record::Record;
    use crate::bench::record::tests::head;
    use crate::serving::request_record::Timings;

    /// The turns of a user that computed these numbers of tokens, and got its first token after as many milliseconds.
    fn user(computed: [u64; 3]) -> Vec<RequestRecord> {
        let record = |computed| RequestRecord {
            sent: Duration::from_millis(500),
            arrivals: vec![Duration::from_millis(500 + computed)],
            timings: Timings { computed, ..Timings::default() },
            ..RequestRecord::default()
        };
        computed.map(record).into()
    }

    /// Our server computes `later` tokens in each turn of a user after the first.
    pub(in crate::bench) fn example(later: u64) -> Turns {
        let stock = ServerTurns::of(TestServer::Stock, &[user([149, 218, 50]), user([149, 218, 50])]);
        let paged =
            ServerTurns::of(TestServer::Paged, &[user([149, later, later]), user([49, later, later])]);
        Turns::judged(workload(), vec![stock, paged])
    }

    #[test]
    fn the_table() {
        insta::assert_snapshot!(Record { head: head(), result: example(55) }.text(), @"
        2 users at once, 3 turns each: 100 tokens of system prompt in common, messages of 49, answers of 20
        llama.cpp v1, qwen35 of 70 M weights, f16, -c 1024, -t 2, Some CPU

        | server | computed, 1st turn | a later one | x the new tokens | first token ms, 1st turn | a later one |
        |---|--:|--:|--:|--:|--:|
        | stock | 298 | 268 | 2.68x | 149.0 | 134.0 |
        | paged -np 2 --kv-paged | 198 | 110 | 1.10x | 99.0 | 55.0 |
        | new tokens | 198 | 100 | 1.00x | | |
        ");
    }

    #[test]
    fn our_server_has_to_compute_little_more_than_the_new_tokens() {
        assert!(example(60).failures().is_empty());
        let expected = "paged: a turn computes 1.22 tokens for each new one, expected at most 1.20";
        assert_eq!(example(61).failures(), [expected]);
    }

    #[test]
    fn the_plot_has_a_curve_for_each_server_and_the_new_tokens() {
        let plot = example(55).plot(&head()).unwrap();
        assert_eq!(plot.name, "turns-hybrid");
        for name in ["stock", "paged -np 2 --kv-paged", "new tokens"] {
            assert!(plot.svg.contains(name), "{name}: {}", plot.svg);
        }
    }

    #[test]
    fn a_record_is_read_back() {
        let run = json!(Record { head: head(), result: example(55) });
        assert_eq!((&run["model"], &run["new_tokens"]), (&json!("hybrid"), &json!([198, 100, 100])));
        let read = Record::<Turns>::deserialize(&run).unwrap();
        assert_eq!(read.result.workload, workload());
    }
}
