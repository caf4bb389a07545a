//! The result of a burst.

use espalier_core::error::Result;
use serde::{Deserialize, Serialize};

use crate::bench::history::History;
use crate::bench::record::{BenchResult, Head, Plot};
use crate::bench::timing::Times;
use crate::report::bars::{Bar, Bars};
use crate::report::samples::median_of;
use crate::report::table::Table;
use crate::serving::bench_model::BenchModel;
use crate::serving::load::{self, Answered};
use crate::serving::prompts::Prompts;
use crate::serving::request_record::RequestRecord;
use crate::serving::test_server::TestServer;

/// All rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::bench) struct Burst {
    /// Older records are of the plain model, and do not name it.
    #[serde(default, skip_serializing_if = "BenchModel::is_plain")]
    pub(in crate::bench) model: BenchModel,
    #[serde(flatten)]
    pub(in crate::bench) prompts: Prompts,
    pub(super) cells: usize,
    /// Lower bound with upstream's attention.
    pub(super) lower_bound: Times,
    /// Lower bound with our attention; records before it was measured have none.
    #[serde(default)]
    pub(super) our_lower_bound: Times,
    pub(in crate::bench) servers: Vec<BurstServer>,
}

/// The rounds of one server under test.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::bench) struct BurstServer {
    pub(in crate::bench) name: TestServer,
    /// Seconds until all requests were answered.
    #[serde(flatten)]
    pub(in crate::bench) times: Times,
    /// Median of the ratios in each round.
    ratio_to_lower_bound: Option<f64>,
    /// Summed over the requests of each round.
    prompt_tokens_computed: Vec<u64>,
    answers: usize,
    /// Number of answers that differ from those of the first server in the same round.
    answers_that_differ: usize,
}

impl Burst {
    pub(in crate::bench) fn new(model: BenchModel, prompts: Prompts, test_servers: &[TestServer]) -> Burst {
        let server = |name: &TestServer| BurstServer {
            name: *name,
            times: Times::new(&name.title(prompts.requests)),
            ..BurstServer::default()
        };
        Burst {
            model,
            prompts,
            cells: prompts.cells(),
            lower_bound: Times::new("lower bound"),
            our_lower_bound: Times::new("lower bound with our attention"),
            servers: test_servers.iter().map(server).collect(),
        }
    }

    /// Asks each server once, after the lower bounds of the round.
    pub(in crate::bench) fn add_round(
        &mut self,
        mut ask: impl FnMut(TestServer) -> Result<Answered>,
    ) -> Result<()> {
        let mut first: Option<Vec<RequestRecord>> = None;
        for server in &mut self.servers {
            let answered = ask(server.name)?;
            server.add(&answered, first.as_deref().unwrap_or(&answered.records));
            server.ratio_to_lower_bound = self.lower_bound.speedup_over(&server.times);
            first.get_or_insert(answered.records);
        }
        Ok(())
    }

    fn title(&self) -> String {
        let Prompts { requests, prefix, suffix, predict, .. } = self.prompts;
        format!(
            "{requests} cold requests at once: {prefix} tokens shared, {suffix} of their own, {predict} predicted"
        )
    }

    fn conditions(&self, head: &Head) -> String {
        let processor = head.processor.as_ref().map(|name| format!(", {name}")).unwrap_or_default();
        let (pin, cells, threads) = (&head.pin, self.cells, head.threads());
        let model = self.model.title_of_70_million();
        format!("llama.cpp {pin}, {model}, -c {cells}, -t {threads}{processor}")
    }

    fn row(&self, times: &Times, more: &str) -> String {
        format!(
            "{} | {:.2}x | {more}",
            times.cells(),
            self.lower_bound.speedup_over(times).unwrap_or_default()
        )
    }
}

impl BurstServer {
    fn add(&mut self, answered: &Answered, first: &[RequestRecord]) {
        let pairs = first.iter().zip(&answered.records);
        self.times.push(answered.elapsed);
        self.prompt_tokens_computed.push(load::computed(&answered.records));
        self.answers += answered.records.len();
        self.answers_that_differ += pairs.filter(|(first, other)| first.tokens != other.tokens).count();
    }

    fn cells(&self) -> String {
        let computed = self.prompt_tokens_computed.iter().map(|count| *count as f64).collect();
        let computed = median_of(computed).unwrap_or_default();
        format!("{computed:.0} | {} of {}", self.answers_that_differ, self.answers)
    }

    fn bar(&self, requests: usize) -> Option<Bar> {
        let note = format!("{:.2} s", self.times.median_seconds?);
        let bar = Bar::of(self.name.label(requests), &self.times.rounds, note)?;
        Some(Bar { is_reference: !self.name.is_ours(), ..bar })
    }
}

impl BenchResult for Burst {
    const HISTORY: History = History {
        bench: "burst",
        identity: "trees processor threads model requests prefix suffix predict cells",
    };

    fn tables(&self, head: &Head) -> String {
        let bounds = [&self.lower_bound, &self.our_lower_bound].map(|times| self.row(times, "|"));
        let servers = self.servers.iter().map(|one| self.row(&one.times, &one.cells()));
        let columns = "what | median | min - max | x the lower bound | prompt tokens computed | answers unlike the first one's";
        let table = Table::new(columns, bounds.into_iter().chain(servers));
        format!("{}\n{}\n\n{table}", self.title(), self.conditions(head))
    }

    fn plot(&self, head: &Head) -> Option<Plot> {
        let warning = if head.quiet == Some(false) { ", MACHINE NOT QUIET" } else { "" };
        let bars = Bars {
            title: self.title(),
            subtitle: format!("{}; seconds until all requests are answered{warning}", self.conditions(head)),
            bars: self.servers.iter().filter_map(|server| server.bar(self.prompts.requests)).collect(),
            line: self
                .lower_bound
                .median_seconds
                .map(|seconds| (seconds, format!("lower bound with stock's attention: {seconds:.2} s"))),
        };
        let Prompts { requests, prefix, .. } = self.prompts;
        let name = format!("burst-{requests}x{prefix}{}", self.model.suffix("-"));
        Some(Plot { name, svg: bars.svg() })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::bench::record::Record;
    use crate::bench::record::tests::head;
    use crate::serving::request_record::Timings;

    /// Two rounds, two servers; one of the second server's four answers differs.
    fn example() -> Record<Burst> {
        let prompts = Prompts { requests: 2, prefix: 1600, suffix: 16, predict: 8, family: 0 };
        let mut burst = Burst::new(BenchModel::Plain, prompts, &[TestServer::Stock, TestServer::Paged]);
        for (bound, stock, paged, last) in [(1000, 4000, 1100, 2), (2000, 8000, 2000, 3)] {
            burst.lower_bound.push(Duration::from_millis(bound));
            burst.our_lower_bound.push(Duration::from_millis(bound / 2));
            let ask = |server| match server {
                TestServer::Stock => Ok(answered(stock, 1616, 2)),
                _ => Ok(answered(paged, 816, last)),
            };
            burst.add_round(ask).unwrap();
        }
        Record { head: head(), result: burst }
    }

    /// The answers of two requests, one token each.
    fn answered(millis: u64, computed: u64, last: i64) -> Answered {
        let timings = Timings { computed, ..Timings::default() };
        let record = |token| RequestRecord { tokens: vec![token], timings, ..RequestRecord::default() };
        Answered { elapsed: Duration::from_millis(millis), records: vec![record(1), record(last)] }
    }

    #[test]
    fn the_table() {
        insta::assert_snapshot!(example().text(), @"
        2 cold requests at once: 1600 tokens shared, 16 of their own, 8 predicted
        llama.cpp v1, qwen3 of 70 M weights, f16, -c 3584, -t 2, Some CPU

        | what | median | min - max | x the lower bound | prompt tokens computed | answers unlike the first one's |
        |---|--:|--:|--:|--:|--:|
        | lower bound | 1500.0 ms | 1000.0 - 2000.0 ms | 1.00x | | |
        | lower bound with our attention | 750.0 ms | 500.0 - 1000.0 ms | 0.50x | | |
        | stock | 6000.0 ms | 4000.0 - 8000.0 ms | 4.00x | 3232 | 0 of 4 |
        | paged -np 2 --kv-paged | 1550.0 ms | 1100.0 - 2000.0 ms | 1.05x | 1632 | 1 of 4 |
        ");
    }

    #[test]
    fn a_busy_machine_is_named_in_the_plot() {
        let Record { head, result } = example();
        assert!(!result.plot(&head).unwrap().svg.contains("NOT QUIET"));
        let plot = result.plot(&Head { quiet: Some(false), ..head }).unwrap();
        assert!(plot.svg.contains("NOT QUIET") && plot.svg.contains("1.55 s<"));
        assert_eq!(plot.name, "burst-2x1600");
    }

    #[test]
    fn a_record_without_a_model_is_of_the_plain_one() {
        let Record { head, result } = example();
        let run = json!(result);
        assert_eq!(run["model"], json!(null));
        assert_eq!(Burst::deserialize(&run).unwrap().model, BenchModel::Plain);
        let hybrid = Burst { model: BenchModel::Hybrid, ..result };
        assert_eq!(json!(hybrid)["model"], "hybrid");
        assert_eq!(hybrid.plot(&head).unwrap().name, "burst-2x1600-hybrid");
        assert!(hybrid.tables(&head).contains("qwen35 of 70 M weights"));
    }
}
