//! PURE: the result of the prefixes bench, compared with the ideal.

use serde::{Deserialize, Serialize};

use super::Workload;
use crate::bench::history::History;
use crate::bench::record::{BenchResult, Head, Plot};
use crate::report::bars::{Bar, Bars};
use crate::report::samples::{Samples, median_of};
use crate::report::table::Table;
use crate::serving::bench_model::BenchModel;
use crate::serving::cases::BLOCK;
use crate::serving::request_record::RequestRecord;
use crate::serving::test_server::TestServer;

/// All cases.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::bench) struct Prefixes {
    #[serde(flatten)]
    pub(in crate::bench) workload: Workload,
    test_servers: Vec<TestServer>,
    pub(in crate::bench) cases: Vec<Case>,
    failures: Vec<String>,
}

/// One length of the shared part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::bench) struct Case {
    /// Number of shared tokens.
    pub(in crate::bench) shared: usize,
    /// Times of prompts that have the unshared tokens only.
    pub(super) unshared_first_token_seconds: Samples,
    pub(in crate::bench) servers: Vec<CaseServer>,
}

/// The requests of one server under test.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::bench) struct CaseServer {
    pub(in crate::bench) name: TestServer,
    /// The size that it was given for snapshots of recurrent states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::bench) kv_snapshots: Option<String>,
    /// Sent one after the other.
    pub(in crate::bench) in_turn: Requests,
    /// Sent by several clients.
    pub(super) at_once: Requests,
}

/// Requests in the order in which they were sent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::bench) struct Requests {
    /// Number of prompt tokens computed for each.
    pub(super) computed: Vec<u64>,
    /// Time to the first token of each answer.
    pub(super) first_token_seconds: Samples,
    /// After the last request, if the server was given a size for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) snapshots: Option<Snapshots>,
}

/// Snapshots of recurrent states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Snapshots {
    /// Number of times that one was restored for a prompt.
    pub(super) hits: u64,
    /// Memory of those that exist.
    pub(super) bytes: u64,
}

/// A group of the requests: the first of each family, the second, and the later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bench) enum RequestGroup {
    First,
    Second,
    Later,
}

/// Goal: the smallest part of the computed tokens that is the ideal's.
const MIN_SHARE_OF_IDEAL: f64 = 0.9;

impl Requests {
    pub(super) fn of(records: &[RequestRecord]) -> Requests {
        let seconds = |record: &RequestRecord| {
            record.first_token().unwrap_or_default().saturating_sub(record.sent).as_secs_f64()
        };
        Requests {
            computed: records.iter().map(|record| record.timings.computed).collect(),
            first_token_seconds: Samples(records.iter().map(seconds).collect()),
            snapshots: None,
        }
    }

    fn total(&self) -> u64 {
        self.computed.iter().sum()
    }

    /// Returns the mean number of computed tokens of a request; `None` if there is no such request.
    pub(in crate::bench) fn computed_in(&self, part: RequestGroup, families: usize) -> Option<f64> {
        let computed = part.of(&self.computed, families);
        let sum: u64 = computed.iter().sum();
        (!computed.is_empty()).then(|| sum as f64 / computed.len() as f64)
    }

    /// Returns the median time to the first token; `None` if there is no such request.
    pub(in crate::bench) fn seconds_in(&self, part: RequestGroup, families: usize) -> Option<f64> {
        median_of(part.of(&self.first_token_seconds.0, families).to_vec())
    }
}

impl CaseServer {
    /// Returns the title for tables.
    fn title(&self, clients: usize) -> String {
        let size = self.kv_snapshots.as_ref().map(|size| format!(" --kv-snapshots {size}"));
        self.name.title(clients) + &size.unwrap_or_default()
    }
}

impl RequestGroup {
    fn of<T>(self, all: &[T], families: usize) -> &[T] {
        let range = match self {
            RequestGroup::First => 0..families,
            RequestGroup::Second => families..2 * families,
            RequestGroup::Later => 2 * families..all.len().max(2 * families),
        };
        all.get(range).unwrap_or_default()
    }
}

impl Case {
    /// Returns the row's name.
    pub(in crate::bench) fn name(&self, length: usize) -> String {
        format!("{} / {}", self.shared, length - self.shared)
    }
}

impl Prefixes {
    /// Adds one line for every case in which our server misses the goal.
    pub(super) fn judged(workload: Workload, test_servers: Vec<TestServer>, cases: Vec<Case>) -> Prefixes {
        let mut prefixes = Prefixes { workload, test_servers, cases, failures: Vec::new() };
        prefixes.failures = prefixes.violations();
        prefixes
    }

    /// A server with a size of its own for snapshots may have to evict them: no goal is set for it.
    fn violations(&self) -> Vec<String> {
        let all = self.cases.iter().flat_map(|case| case.servers.iter().map(move |server| (case, server)));
        let ours = all.filter(|(_, server)| server.name.is_ours() && server.kv_snapshots.is_none());
        ours.flat_map(|(case, server)| self.violations_of(case, server)).collect()
    }

    fn violations_of(&self, case: &Case, server: &CaseServer) -> Vec<String> {
        let (length, name) = (self.workload.length, server.name.name());
        let is_missed = |(_, computed, ideal): &(&str, f64, f64)| *ideal < MIN_SHARE_OF_IDEAL * computed;
        let line = |(what, computed, ideal): (&str, f64, f64)| {
            format!(
                "{} tokens of {length} shared, {name}: {computed:.0} tokens computed for {what}, of which the ideal, \
                 {ideal:.0}, is {}; expected {}",
                case.shared,
                percent(ideal, computed),
                percent(MIN_SHARE_OF_IDEAL, 1.0),
            )
        };
        self.goals(case, server).into_iter().filter(is_missed).map(line).collect()
    }

    /// Returns the requests for which a goal is set, the number of tokens computed for them, and the ideal one. With a
    /// recurrent state the second prompt of a family cannot find where the others will diverge from the first one.
    fn goals(&self, case: &Case, server: &CaseServer) -> Vec<(&'static str, f64, f64)> {
        let Workload { model, length, families, .. } = self.workload;
        let ideal = (length - case.shared) as f64;
        let computed = |part| server.in_turn.computed_in(part, families);
        let later =
            computed(RequestGroup::Later).map(|computed| ("a prompt from the third one on", computed, ideal));
        let second = computed(RequestGroup::Second).filter(|_| model != BenchModel::Hybrid);
        let second = second.map(|computed| ("the second prompt", computed, ideal));
        let (total, ideal) = (server.at_once.total() as f64, self.ideal_total(case.shared) as f64);
        [later, second, Some(("all prompts, sent at once", total, ideal))].into_iter().flatten().collect()
    }

    /// Returns the tokens of all requests if each shared token is computed once.
    fn ideal_total(&self, shared: usize) -> u64 {
        let Workload { length, prompts, families, .. } = self.workload;
        let first = families.min(prompts);
        (first * length + (prompts - first) * (length - shared)) as u64
    }

    fn title(&self) -> String {
        let Workload { length, prompts, families, predict, .. } = self.workload;
        let families =
            if families == 1 { String::new() } else { format!(" in {families} families that take turns") };
        format!(
            "{prompts} prompts of {length} tokens{families}, the first tokens shared, {predict} predicted"
        )
    }

    fn conditions(&self, head: &Head) -> String {
        let (pin, threads, machine) = (&head.pin, head.threads(), head.machine());
        let (model, cells) = (self.workload.model.title_of_70_million(), self.workload.cells());
        format!("llama.cpp {pin}, {model}, -c {cells}, -t {threads}, {machine}")
    }

    fn in_turn(&self) -> Table {
        let columns = "shared / unshared | server | computed, 1st | 2nd | 3rd on | ideal / 3rd on | \
                       first token ms, 1st | 3rd on";
        Table::with_numbers(columns, 2..8, self.cases.iter().flat_map(|case| self.rows_in_turn(case)))
    }

    fn rows_in_turn(&self, case: &Case) -> Vec<String> {
        let Workload { length, families, clients, .. } = self.workload;
        let (name, ideal) = (case.name(length), (length - case.shared) as f64);
        let by_blocks = (length - case.shared / BLOCK * BLOCK) as f64;
        let alone = milliseconds(case.unshared_first_token_seconds.median());
        let of_server = |server: &CaseServer| {
            let requests = &server.in_turn;
            let computed = |part| requests.computed_in(part, families);
            let seconds = |part| milliseconds(requests.seconds_in(part, families));
            let later = computed(RequestGroup::Later);
            format!(
                "{name} | {} | {} | {} | {} | {} | {} | {}",
                server.title(clients),
                whole(computed(RequestGroup::First)),
                whole(computed(RequestGroup::Second)),
                whole(later),
                later.map_or_else(dash, |later| percent(ideal, later)),
                seconds(RequestGroup::First),
                seconds(RequestGroup::Later),
            )
        };
        let part = percent(ideal, by_blocks);
        let of_ideal = [
            format!("{name} | ideal | {length} | {ideal} | {ideal} | 100 % | | {alone}"),
            format!("{name} | blocks of {BLOCK} | {length} | {by_blocks} | {by_blocks} | {part} | |"),
        ];
        case.servers.iter().map(of_server).chain(of_ideal).collect()
    }

    fn at_once(&self) -> Table {
        let columns =
            "shared / unshared | server | computed | ideal / computed | first token ms, median | longest";
        Table::with_numbers(columns, 2..6, self.cases.iter().flat_map(|case| self.rows_at_once(case)))
    }

    fn rows_at_once(&self, case: &Case) -> Vec<String> {
        let Workload { length, clients, .. } = self.workload;
        let (name, ideal) = (case.name(length), self.ideal_total(case.shared));
        let of_server = |server: &CaseServer| {
            let (total, times) = (server.at_once.total(), &server.at_once.first_token_seconds);
            let longest = times.extremes().map(|(_, longest)| longest);
            format!(
                "{name} | {} | {total} | {} | {} | {}",
                server.title(clients),
                percent(ideal as f64, total as f64),
                milliseconds(times.median()),
                milliseconds(longest),
            )
        };
        let of_ideal = format!("{name} | ideal | {ideal} | 100 % | |");
        case.servers.iter().map(of_server).chain([of_ideal]).collect()
    }

    /// Returns one row for each case and size.
    fn snapshots(&self) -> Vec<String> {
        let servers =
            self.cases.iter().flat_map(|case| case.servers.iter().map(move |server| (case, server)));
        let row = |(case, server): (&Case, &CaseServer)| {
            let size = server.kv_snapshots.as_ref()?;
            let cells = |requests: &Requests| {
                let Snapshots { hits, bytes } = requests.snapshots?;
                Some(format!("{hits} | {} | {}", self.part_of_ideal(case, requests), mebibytes(bytes)))
            };
            let (in_turn, at_once) = (cells(&server.in_turn)?, cells(&server.at_once)?);
            Some(format!("{} | {size} | {in_turn} | {at_once}", case.name(self.workload.length)))
        };
        servers.filter_map(row).collect()
    }

    /// Returns the table of snapshots; empty if no size was given.
    fn table_of_snapshots(&self) -> String {
        let columns = "shared / unshared | size | hits | ideal / computed | MiB held | hits at once | \
                       ideal / computed | MiB held";
        match self.snapshots() {
            rows if rows.is_empty() => String::new(),
            rows => format!(
                "\nsnapshots restored, for each size of --kv-snapshots\n\n{}",
                Table::with_numbers(columns, 2..8, rows)
            ),
        }
    }

    /// Returns the share of the ideal in the tokens computed for all requests.
    fn part_of_ideal(&self, case: &Case, requests: &Requests) -> String {
        percent(self.ideal_total(case.shared) as f64, requests.total() as f64)
    }

    /// Returns one bar for each size: the hits of prompts that were sent one after the other.
    fn bars_of_hits(&self, case: &Case) -> Vec<Bar> {
        let bar = |server: &CaseServer| {
            let (size, Snapshots { hits, bytes }) =
                (server.kv_snapshots.as_ref()?, server.in_turn.snapshots?);
            let part = self.part_of_ideal(case, &server.in_turn);
            Some(Bar {
                label: format!("{}, --kv-snapshots {size}", case.name(self.workload.length)),
                value: hits as f64,
                low: hits as f64,
                high: hits as f64,
                note: format!("{hits} hits, ideal / computed {part}, {} MiB held", mebibytes(bytes)),
                is_reference: false,
            })
        };
        case.servers.iter().filter_map(bar).collect()
    }

    /// Draws the hits against the size for snapshots.
    fn plot_of_hits(&self, subtitle: String) -> Plot {
        let Workload { model, prompts, families, .. } = self.workload;
        let later = prompts.saturating_sub(2 * families);
        let bars = Bars {
            title: format!("Snapshots restored: {}", self.title()),
            subtitle,
            bars: self.cases.iter().flat_map(|case| self.bars_of_hits(case)).collect(),
            line: Some((later as f64, format!("the {later} prompts from the third one on"))),
        };
        Plot { name: format!("prefixes-snapshots-{}", model.name()), svg: bars.svg() }
    }

    fn bars(&self, case: &Case) -> Vec<Bar> {
        let Workload { length, families, clients, .. } = self.workload;
        let bar = |server: &CaseServer| {
            let value = server.in_turn.computed_in(RequestGroup::Later, families)?;
            let ideal = percent((length - case.shared) as f64, value);
            Some(Bar {
                label: format!("{}, {}", case.name(length), server.title(clients)),
                value,
                low: value,
                high: value,
                note: format!("{value:.0} computed, ideal / computed {ideal}"),
                is_reference: !server.name.is_ours(),
            })
        };
        case.servers.iter().filter_map(bar).collect()
    }
}

/// Returns `part` as a percentage of `all`.
pub(in crate::bench) fn percent(part: f64, all: f64) -> String {
    if all > 0.0 { format!("{:.0} %", 100.0 * part / all) } else { dash() }
}

fn whole(number: Option<f64>) -> String {
    number.map_or_else(dash, |number| format!("{number:.0}"))
}

fn milliseconds(seconds: Option<f64>) -> String {
    seconds.map_or_else(dash, |seconds| format!("{:.1}", 1e3 * seconds))
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1024.0 / 1024.0)
}

fn dash() -> String {
    "-".to_string()
}

impl BenchResult for Prefixes {
    const HISTORY: History = History {
        bench: "prefixes",
        identity: "trees processor threads model shared length prompts families clients predict kv_snapshots \
                   test_servers",
    };

    fn tables(&self, head: &Head) -> String {
        format!(
            "{}\n{}\n\nsent one after the other\n\n{}\nsent by {} clients at once\n\n{}{}",
            self.title(),
            self.conditions(head),
            self.in_turn(),
            self.workload.clients,
            self.at_once(),
            self.table_of_snapshots()
        )
    }

    /// Draws the tokens computed for a later request, sent after the others; with sizes for snapshots, their hits.
    fn plot(&self, head: &Head) -> Option<Plot> {
        let Workload { model, families, kv_snapshots, .. } = &self.workload;
        let warning = if head.quiet == Some(false) { ", MACHINE NOT QUIET" } else { "" };
        let subtitle = format!("shared / unshared tokens; {}{warning}", self.conditions(head));
        if kv_snapshots.is_some() {
            return Some(self.plot_of_hits(subtitle));
        }
        let bars = Bars {
            title: format!("Tokens computed for a prompt from the third one on: {}", self.title()),
            subtitle,
            bars: self.cases.iter().flat_map(|case| self.bars(case)).collect(),
            line: None,
        };
        let families = if *families == 1 { String::new() } else { format!("-{families}-families") };
        Some(Plot { name: format!("prefixes-{}{families}", model.name()), svg: bars.svg() })
    }

    fn failures(&self) -> &[String] {
        &self.failures
    }
}

#[cfg(test)]
pub(in crate::bench) mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::super::tests::workload;
    use super::*;
    use crate::bench::record::Record;
    use crate::bench::record::tests::head;
    use crate::serving::request_record::Timings;

    /// Requests that computed these numbers of tokens, and got their first token after as many milliseconds.
    fn requests(computed: &[u64]) -> Requests {
        let record = |computed: &u64| RequestRecord {
            sent: Duration::from_millis(500),
            arrivals: vec![Duration::from_millis(500 + computed)],
            timings: Timings { computed: *computed, ..Timings::default() },
            ..RequestRecord::default()
        };
        Requests::of(&computed.iter().map(record).collect::<Vec<_>>())
    }

    /// Four prompts with 200 of 300 tokens shared.
    pub(in crate::bench) fn example(later: u64) -> Prefixes {
        let server = |name, in_turn: &[u64], at_once: &[u64]| CaseServer {
            name,
            kv_snapshots: None,
            in_turn: requests(in_turn),
            at_once: requests(at_once),
        };
        let servers = vec![
            server(TestServer::Stock, &[300, 100, 100, 100], &[300, 300, 100, 100]),
            server(TestServer::Paged, &[300, 300, later, later], &[300, 108, 108, 108]),
        ];
        let unshared_first_token_seconds = requests(&[90, 100, 110]).first_token_seconds;
        let case = Case { shared: 200, unshared_first_token_seconds, servers };
        Prefixes::judged(workload(), vec![TestServer::Stock, TestServer::Paged], vec![case])
    }

    #[test]
    fn the_tables() {
        insta::assert_snapshot!(Record { head: head(), result: example(108) }.text(), @"
        4 prompts of 300 tokens, the first tokens shared, 8 predicted
        llama.cpp v1, qwen35 of 70 M weights, f16, -c 1536, -t 2, Some CPU

        sent one after the other

        | shared / unshared | server | computed, 1st | 2nd | 3rd on | ideal / 3rd on | first token ms, 1st | 3rd on |
        |---|---|--:|--:|--:|--:|--:|--:|
        | 200 / 100 | stock | 300 | 100 | 100 | 100 % | 300.0 | 100.0 |
        | 200 / 100 | paged -np 2 --kv-paged | 300 | 300 | 108 | 93 % | 300.0 | 108.0 |
        | 200 / 100 | ideal | 300 | 100 | 100 | 100 % | | 100.0 |
        | 200 / 100 | blocks of 64 | 300 | 108 | 108 | 93 % | | |

        sent by 2 clients at once

        | shared / unshared | server | computed | ideal / computed | first token ms, median | longest |
        |---|---|--:|--:|--:|--:|
        | 200 / 100 | stock | 800 | 75 % | 200.0 | 300.0 |
        | 200 / 100 | paged -np 2 --kv-paged | 624 | 96 % | 108.0 | 300.0 |
        | 200 / 100 | ideal | 600 | 100 % | | |
        ");
    }

    #[test]
    fn our_server_has_to_come_near_the_ideal() {
        assert!(example(111).failures().is_empty());
        let failures = example(300).failures().join("; ");
        let expected = "200 tokens of 300 shared, paged: 300 tokens computed for a prompt from the third one on, of \
                        which the ideal, 100, is 33 %; expected 90 %";
        assert_eq!(failures, expected);
    }

    #[test]
    fn requests_at_once_and_the_second_one_have_a_goal() {
        let Prefixes { workload, test_servers, mut cases, .. } = example(108);
        cases[0].servers[1].at_once = requests(&[300, 300, 300, 300]);
        let failures = |model| {
            let workload = Workload { model, ..workload.clone() };
            Prefixes::judged(workload, test_servers.clone(), cases.clone()).failures().join("; ")
        };
        let at_once = "1200 tokens computed for all prompts, sent at once, of which the ideal, 600, is 50 %";
        let second = "300 tokens computed for the second prompt, of which the ideal, 100, is 33 %";
        assert!(failures(BenchModel::Hybrid).contains(at_once));
        // It can only be found where a snapshot is.
        assert!(
            !failures(BenchModel::Hybrid).contains(second) && failures(BenchModel::Plain).contains(second)
        );
    }

    /// The same prompts, with two sizes for snapshots: nothing is found with the first one.
    fn example_of_sizes() -> Prefixes {
        let Prefixes { workload, test_servers, mut cases, .. } = example(108);
        let found = cases[0].servers.pop().unwrap();
        let with = |size: &str, hits: u64, server: CaseServer| {
            let snapshots = Some(Snapshots { hits, bytes: hits << 20 });
            CaseServer {
                kv_snapshots: Some(size.to_string()),
                in_turn: Requests { snapshots, ..server.in_turn },
                at_once: Requests { snapshots, ..server.at_once },
                ..server
            }
        };
        let nothing = || requests(&[300, 300, 300, 300]);
        let nothing = CaseServer { in_turn: nothing(), at_once: nothing(), ..found.clone() };
        cases[0].servers.extend([with("0", 0, nothing), with("64M", 2, found)]);
        let kv_snapshots = Some(["0", "64M"].map(String::from).to_vec());
        Prefixes::judged(Workload { kv_snapshots, ..workload }, test_servers, cases)
    }

    #[test]
    fn no_goal_is_set_for_a_size_of_snapshots() {
        assert!(!example(300).failures().is_empty() && example_of_sizes().failures().is_empty());
    }

    #[test]
    fn the_hits_of_each_size_are_shown() {
        let text = Record { head: head(), result: example_of_sizes() }.text();
        let (before, table) =
            text.split_once("\nsnapshots restored, for each size of --kv-snapshots\n\n").unwrap();
        assert!(
            before.contains("| 200 / 100 | paged -np 2 --kv-paged --kv-snapshots 64M | 300 | 300 | 108 |")
        );
        insta::assert_snapshot!(table, @"
        | shared / unshared | size | hits | ideal / computed | MiB held | hits at once | ideal / computed | MiB held |
        |---|---|--:|--:|--:|--:|--:|--:|
        | 200 / 100 | 0 | 0 | 50 % | 0.0 | 0 | 50 % | 0.0 |
        | 200 / 100 | 64M | 2 | 74 % | 2.0 | 2 | 96 % | 2.0 |
        ");
        let plot = example_of_sizes().plot(&head()).unwrap();
        assert_eq!(plot.name, "prefixes-snapshots-hybrid");
        for note in ["200 / 100, --kv-snapshots 0<", "2 hits, ideal / computed 74 %, 2.0 MiB held"] {
            assert!(plot.svg.contains(note), "{note}: {}", plot.svg);
        }
    }

    #[test]
    fn each_family_has_a_first_and_a_second_request() {
        let numbers = [1, 2, 3, 4, 5];
        let parts = |families| {
            [RequestGroup::First, RequestGroup::Second, RequestGroup::Later]
                .map(|part| part.of(&numbers, families).to_vec())
        };
        assert_eq!(parts(1), [vec![1], vec![2], vec![3, 4, 5]]);
        assert_eq!(parts(2), [vec![1, 2], vec![3, 4], vec![5]]);
        assert!(parts(3)[2].is_empty());
    }

    #[test]
    fn the_plot_has_a_bar_for_each_server() {
        let plot = example(108).plot(&head()).unwrap();
        assert_eq!(plot.name, "prefixes-hybrid");
        assert!(plot.svg.contains("108 computed, ideal / computed 93 %") && !plot.svg.contains("NOT QUIET"));
        assert_eq!(plot.svg.matches("200 / 100, ").count(), 2);
    }

    #[test]
    fn a_record_is_read_back() {
        let run = json!(Record { head: head(), result: example(108) });
        assert_eq!((&run["model"], &run["shared"][0]), (&json!("hybrid"), &json!(200)));
        let read = Record::<Prefixes>::deserialize(&run).unwrap();
        assert_eq!(read.result.workload, workload());
        let run = json!(Record { head: head(), result: example_of_sizes() });
        assert_eq!(run["kv_snapshots"], json!(["0", "64M"]));
        let read = Record::<Prefixes>::deserialize(&run).unwrap();
        assert_eq!(
            read.result.cases[0].servers[2].in_turn.snapshots,
            Some(Snapshots { hits: 2, bytes: 2 << 20 })
        );
    }
}
