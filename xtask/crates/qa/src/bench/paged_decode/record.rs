//! PURE: the result of the paged decode bench: tokens per second.

use serde::{Deserialize, Serialize};

use super::{CACHE, HEAD, Workload};
use crate::bench::history::History;
use crate::bench::record::{BenchResult, Head, Plot};
use crate::report::bars::{Bar, Bars};
use crate::report::samples::Samples;
use crate::report::table::Table;
use crate::serving::test_server::TestServer;

/// All cases.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::bench) struct PagedDecode {
    /// Number of slots of each server.
    pub(in crate::bench) sequences: usize,
    #[serde(flatten)]
    pub(in crate::bench) workload: Workload,
    pub(in crate::bench) cases: Vec<Case>,
}

/// One number of concurrent sequences.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::bench) struct Case {
    pub(in crate::bench) sequences: usize,
    /// Whether the pool was filled before.
    pub(super) filled: bool,
    pub(in crate::bench) servers: Vec<Rates>,
}

/// The rounds of one server under test.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::bench) struct Rates {
    pub(in crate::bench) name: TestServer,
    pub(in crate::bench) median_rate: Option<f64>,
    /// Tokens per second of all sequences together.
    rates: Samples,
    /// Median of the rounds' ratios: above 1 means that this server decodes more tokens per second than the first.
    pub(in crate::bench) ratio_to_first: Option<f64>,
    /// Prompt tokens per second, computed one prompt after the other; older records have none.
    #[serde(default)]
    prompt_rates: Samples,
    #[serde(default)]
    prompt_ratio_to_first: Option<f64>,
    /// Prompt tokens computed while the rates were measured, at most; unless nearly none, they do not measure decoding.
    prompt_tokens_computed: u64,
    /// Median of the fraction of the pool that was cached before the sequences started; `None` for stock, which has no
    /// pool.
    pub(in crate::bench) pool_filled: Option<f64>,
    #[serde(skip)]
    fractions_filled: Samples,
}

/// One round of one server.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) prompt_rate: f64,
    pub(super) rate: f64,
    pub(super) computed: u64,
    pub(super) filled: Option<f64>,
}

impl Rates {
    /// Returns the number of rounds.
    pub(in crate::bench) fn rounds(&self) -> usize {
        self.rates.0.len()
    }

    pub(super) fn push(&mut self, sample: Sample) {
        self.rates.0.push(sample.rate);
        self.prompt_rates.0.push(sample.prompt_rate);
        self.fractions_filled.0.extend(sample.filled);
        self.median_rate = self.rates.median();
        self.prompt_tokens_computed = self.prompt_tokens_computed.max(sample.computed);
        self.pool_filled = self.fractions_filled.median();
    }

    fn row(&self, slots: usize) -> String {
        let (low, high) = self.rates.extremes().unwrap_or_default();
        format!(
            "{} | {:.1} | {low:.1} - {high:.1} | {:.2}x | {:.0} | {:.2}x | {} | {}",
            self.name.title(slots),
            self.median_rate.unwrap_or_default(),
            self.ratio_to_first.unwrap_or_default(),
            self.prompt_rates.median().unwrap_or_default(),
            self.prompt_ratio_to_first.unwrap_or_default(),
            self.prompt_tokens_computed,
            self.pool_filled.map_or("-".to_string(), |share| format!("{:.0} %", share * 100.0)),
        )
    }
}

impl Case {
    pub(super) fn new(sequences: usize, filled: bool, test_servers: &[TestServer]) -> Case {
        let rates = |name: &TestServer| Rates { name: *name, ..Rates::default() };
        Case { sequences, filled, servers: test_servers.iter().map(rates).collect() }
    }

    /// Computes the ratios to the first server.
    pub(super) fn compare(&mut self) {
        let Some(first) = self.servers.first().cloned() else { return };
        for server in &mut self.servers {
            server.ratio_to_first = server.rates.ratio_to(&first.rates);
            server.prompt_ratio_to_first = server.prompt_rates.ratio_to(&first.prompt_rates);
        }
    }

    fn table(&self, found: &PagedDecode, head: &Head) -> String {
        let columns = "what | tokens/s, median | min - max | of the first one | prompt tokens/s, median | \
                       of the first one | prompt tokens computed meanwhile | pool filled";
        let table = Table::new(columns, self.servers.iter().map(|one| one.row(found.sequences)));
        let pool = if self.filled { "pool filled by earlier requests" } else { "nothing in the pool" };
        let s = if self.sequences == 1 { "" } else { "s" };
        let Workload { length, predict, .. } = &found.workload;
        format!(
            "{} sequence{s} of {length} tokens{}, {predict} predicted, {pool}: {}\n\n{table}",
            self.sequences,
            found.shared(),
            found.conditions(head)
        )
    }

    fn bars(&self) -> impl Iterator<Item = Bar> {
        let pool = if self.filled { ", pool filled" } else { "" };
        self.servers.iter().filter_map(move |one| {
            let note = format!("{:.1} tokens/s, {:.2}x", one.median_rate?, one.ratio_to_first?);
            let s = if self.sequences == 1 { "" } else { "s" };
            let bar = Bar::of(
                format!("{} sequence{s}, {}{pool}", self.sequences, one.name.name()),
                &one.rates,
                note,
            )?;
            Some(Bar { is_reference: !one.name.is_ours(), ..bar })
        })
    }
}

impl PagedDecode {
    pub(super) fn new(sequences: usize, workload: Workload, cases: Vec<Case>) -> PagedDecode {
        PagedDecode { sequences, workload, cases }
    }

    /// Describes the shared prefix of the prompts.
    fn shared(&self) -> String {
        match self.workload.shared {
            0 => String::new(),
            shared => format!(" ({shared} of them shared)"),
        }
    }

    /// Describes what is common to all servers under test.
    fn conditions(&self, head: &Head) -> String {
        let Workload { cells, head: size, cache, .. } = &self.workload;
        let (pin, threads) = (&head.pin, head.threads());
        format!(
            "llama.cpp {pin}, qwen3 of 70 M weights, heads of {size}, f16, cache {cache}, -c {cells}, -t {threads}"
        )
    }

    /// Returns the plot's name; default values are not part of it.
    fn plot_name(&self) -> String {
        let Workload { length, shared, head, cache, fresh, .. } = &self.workload;
        let fresh = if *fresh { "-fresh" } else { "" };
        let shared = if *shared == 0 { String::new() } else { format!("-{shared}-shared") };
        let head = if *head == HEAD { String::new() } else { format!("-head-{head}") };
        let cache = if cache == CACHE { String::new() } else { format!("-{}", cache.replace('/', "-")) };
        format!("paged-decode-{}x{length}{shared}{head}{cache}{fresh}", self.sequences)
    }
}

impl BenchResult for PagedDecode {
    const HISTORY: History = History {
        bench: "paged-decode",
        identity: "trees processor threads sequences length shared predict cells head cache fresh",
    };

    fn tables(&self, head: &Head) -> String {
        let tables: Vec<String> = self.cases.iter().map(|case| case.table(self, head)).collect();
        tables.join("\n")
    }

    fn plot(&self, head: &Head) -> Option<Plot> {
        let warning = if head.quiet == Some(false) { ", MACHINE NOT QUIET" } else { "" };
        let processor = head.processor.as_ref().map(|name| format!(", {name}")).unwrap_or_default();
        let bars = Bars {
            title: format!("Tokens per second, prompts of {} tokens{}", self.workload.length, self.shared()),
            subtitle: format!("{}{processor}{warning}", self.conditions(head)),
            bars: self.cases.iter().flat_map(Case::bars).collect(),
            line: None,
        };
        Some(Plot { name: self.plot_name(), svg: bars.svg() })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;
    use crate::bench::record::Record;
    use crate::bench::record::tests::head;

    /// The default workload.
    pub(in crate::bench::paged_decode) fn workload() -> Workload {
        let cache = CACHE.to_string();
        Workload { length: 1600, shared: 0, predict: 64, cells: 32_768, head: HEAD, cache, fresh: false }
    }

    fn example() -> Record<PagedDecode> {
        let mut case = Case::new(16, true, &[TestServer::StockUnified, TestServer::Paged]);
        for (server, (rate, filled)) in case.servers.iter_mut().zip([(100.0, None), (98.0, Some(0.9))]) {
            for more in [1.0, 1.5] {
                server.push(Sample { prompt_rate: rate * 20.0, rate: rate * more, computed: 16, filled });
            }
        }
        case.compare();
        Record { head: head(), result: PagedDecode::new(16, workload(), vec![case]) }
    }

    #[test]
    fn the_table() {
        insta::assert_snapshot!(example().text(), @"
        16 sequences of 1600 tokens, 64 predicted, pool filled by earlier requests: llama.cpp v1, qwen3 of 70 M weights, heads of 64, f16, cache f16, -c 32768, -t 2

        | what | tokens/s, median | min - max | of the first one | prompt tokens/s, median | of the first one | prompt tokens computed meanwhile | pool filled |
        |---|--:|--:|--:|--:|--:|--:|--:|
        | stock -np 16 --kv-unified | 125.0 | 100.0 - 150.0 | 1.00x | 2000 | 1.00x | 16 | - |
        | paged -np 16 --kv-paged | 122.5 | 98.0 - 147.0 | 0.98x | 1960 | 0.98x | 16 | 90 % |
        ");
    }

    #[test]
    fn the_plot_has_a_bar_for_each() {
        let Record { head, result } = example();
        let plot = result.plot(&head).unwrap().svg;
        assert!(
            plot.contains("16 sequences, paged, pool filled") && plot.contains("122.5 tokens/s, 0.98x"),
            "{plot}"
        );
    }

    #[test]
    fn a_plot_is_named_after_the_options_that_are_not_default() {
        let name = |workload| PagedDecode::new(16, workload, Vec::new()).plot_name();
        assert_eq!(name(workload()), "paged-decode-16x1600");
        assert_eq!(name(Workload { fresh: true, ..workload() }), "paged-decode-16x1600-fresh");
        let workload = Workload { shared: 1440, head: 128, cache: "q8_0".to_string(), ..workload() };
        assert_eq!(name(workload), "paged-decode-16x1600-1440-shared-head-128-q8_0");
    }

    #[test]
    fn the_json_has_every_round_and_is_read_back() {
        let value = json!(example());
        assert_eq!(value["cases"][0]["servers"][1]["rates"], json!([98.0, 147.0]));
        assert_eq!((&value["sequences"], &value["head"]), (&json!(16), &json!(64)));
        let read = Record::<PagedDecode>::deserialize(&value).unwrap();
        assert_eq!(json!(read), value);
    }
}
