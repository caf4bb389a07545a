//! PURE: the result of an overload, and the violations.

use serde::{Deserialize, Serialize};

use super::memory::ResidentBytes;
use crate::bench::history::History;
use crate::bench::record::{BenchResult, Head};
use crate::report::table::Table;
use crate::serving::bench_model::BenchModel;
use crate::serving::kv_pool::Hits;
use crate::serving::overload::tally::Tally;
use crate::serving::rounding::Rounding;

/// The answers of all clients, and the state of the server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::bench) struct Overload {
    /// Older records are of the plain model, and do not name it.
    #[serde(default, skip_serializing_if = "BenchModel::is_plain")]
    pub(in crate::bench) model: BenchModel,
    pub(in crate::bench) minutes: u32,
    pub(in crate::bench) clients: usize,
    pub(in crate::bench) seed: u64,
    pub(in crate::bench) slots: usize,
    pub(super) cells: usize,
    /// Tolerance for a less likely token, in natural logarithms.
    pub(super) tolerance: f64,
    pub(in crate::bench) answers: Tally,
    /// Agreement of stock with its own answers, with other sequences in the batch; older records have none.
    #[serde(default)]
    pub(super) stock: Rounding,
    /// Number of preemptions.
    pub(in crate::bench) preempted: u64,
    pub(in crate::bench) evicted_blocks: u64,
    #[serde(flatten)]
    pub(super) hits: Hits,
    /// After all clients have left.
    pub(super) blocks_used_at_the_end: u64,
    pub(super) resident_bytes: ResidentBytes,
    pub(super) failures: Vec<String>,
}

/// Allowed growth of the server's memory from the first minute to the last, in bytes. A server answers thousands of
/// requests per minute: a leak of a few kilobytes per request exceeds this.
const MAX_GROWTH: f64 = 32.0 * MEBIBYTE;

const MEBIBYTE: f64 = 1024.0 * 1024.0;

impl Overload {
    /// Adds one line for every violation.
    pub(super) fn judged(mut self) -> Overload {
        self.failures = self.violations();
        self
    }

    fn violations(&self) -> Vec<String> {
        let Tally { same, wrong, errors, words, .. } = &self.answers;
        let held = self.blocks_used_at_the_end;
        let growth = self.resident_bytes.growth();
        let unknown = "the server's memory was not measured: whether it grows is unknown".to_string();
        let conditions = [
            (*wrong > 0, format!("{wrong} answers differ from stock's")),
            (*errors > 0, format!("{errors} requests were not answered")),
            (*same == 0, "no answer was found the same".to_string()),
            (self.preempted == 0, "no request was preempted: it was no overload".to_string()),
            (held > 0, format!("{held} blocks are still in use after all clients left")),
            (growth.is_none(), unknown),
        ];
        let found = conditions.into_iter().filter(|(is_so, _)| *is_so).map(|(_, words)| words);
        let grown = growth.filter(|growth| *growth > MAX_GROWTH);
        let grown = grown.map(|growth| format!("the server has grown by {:.1} MiB", growth / MEBIBYTE));
        found.chain(grown).chain(self.too_many_ties()).chain(words.iter().cloned()).collect()
    }

    /// Applies the gate's rule for ties within tolerance.
    fn too_many_ties(&self) -> Option<String> {
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let Tally { same, ties, .. } = self.answers;
        Rounding { same: count(same), others: count(ties) }.is_too_much(self.stock)
    }

    fn title(&self, head: &Head) -> String {
        let Overload { minutes, clients, seed, slots, cells, tolerance, .. } = self;
        let (threads, pin, growth) = (head.threads(), &head.pin, MAX_GROWTH / MEBIBYTE);
        let model = self.model.architecture().name();
        format!(
            "{clients} clients for {minutes} min, seed {seed}: small {model}, -np {slots} --kv-paged -c {cells}, \
             -t {threads}, llama.cpp {pin}\na tie within tolerance is a token less likely by at most {tolerance:.3}; \
             memory may grow by {growth:.0} MiB"
        )
    }

    fn rows(&self) -> [(&'static str, String); 13] {
        let Overload { answers, hits, resident_bytes: memory, .. } = self;
        [
            ("answers that are stock's", answers.same.to_string()),
            ("left stock's at a tie within tolerance", answers.ties.to_string()),
            ("stock left its own", self.stock.to_string()),
            ("wrong", answers.wrong.to_string()),
            ("errors", answers.errors.to_string()),
            ("clients that went away", answers.left.to_string()),
            ("preemptions", self.preempted.to_string()),
            ("blocks evicted", self.evicted_blocks.to_string()),
            ("prompt tokens found / asked for", format!("{} / {}", hits.hit_tokens, hits.queried_tokens)),
            ("blocks in use at the end", self.blocks_used_at_the_end.to_string()),
            ("resident memory, first minute", mebibytes(memory.first_minute)),
            ("resident memory, last minute", mebibytes(memory.last_minute)),
            ("resident memory, peak", mebibytes(memory.peak.map(|bytes| bytes as f64))),
        ]
    }
}

fn mebibytes(bytes: Option<f64>) -> String {
    bytes.map_or_else(|| "-".to_string(), |bytes| format!("{:.1} MiB", bytes / MEBIBYTE))
}

impl BenchResult for Overload {
    const HISTORY: History = History {
        bench: "overload",
        identity: "trees processor threads model minutes clients seed slots cells",
    };

    fn tables(&self, head: &Head) -> String {
        let rows = self.rows().map(|(what, count)| format!("{what} | {count}"));
        format!("{}\n\n{}", self.title(head), Table::new("what | ", rows))
    }

    fn failures(&self) -> &[String] {
        &self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::Memory;
    use super::*;
    use crate::bench::record::Record;
    use crate::bench::record::tests::head;

    fn memory(bytes: impl Fn(u64) -> u64) -> ResidentBytes {
        Memory { samples: (0..120).map(|at| (at, bytes(at))).collect() }.summary()
    }

    fn example() -> Overload {
        Overload {
            model: BenchModel::Hybrid,
            minutes: 2,
            clients: 24,
            seed: 1,
            slots: 8,
            cells: 1024,
            tolerance: 0.05,
            answers: Tally { same: 900, ties: 5, left: 300, ..Tally::default() },
            stock: Rounding { same: 36, others: 4 },
            preempted: 40,
            evicted_blocks: 70,
            hits: Hits { queried_tokens: 5000, hit_tokens: 2000 },
            blocks_used_at_the_end: 0,
            resident_bytes: memory(|at| (100 + at / 60) << 20),
            failures: Vec::new(),
        }
    }

    fn record(result: Overload) -> Record<Overload> {
        Record { head: Head { quiet: None, ..head() }, result: result.judged() }
    }

    #[test]
    fn the_table() {
        insta::assert_snapshot!(record(example()).text(), @"
        24 clients for 2 min, seed 1: small qwen35, -np 8 --kv-paged -c 1024, -t 2, llama.cpp v1
        a tie within tolerance is a token less likely by at most 0.050; memory may grow by 32 MiB

        | what |  |
        |---|--:|
        | answers that are stock's | 900 |
        | left stock's at a tie within tolerance | 5 |
        | stock left its own | 4 of 40 |
        | wrong | 0 |
        | errors | 0 |
        | clients that went away | 300 |
        | preemptions | 40 |
        | blocks evicted | 70 |
        | prompt tokens found / asked for | 2000 / 5000 |
        | blocks in use at the end | 0 |
        | resident memory, first minute | 100.0 MiB |
        | resident memory, last minute | 101.0 MiB |
        | resident memory, peak | 101.0 MiB |
        ");
    }

    #[test]
    fn every_violation_is_reported() {
        let with = |change: fn(&mut Overload)| {
            let mut overload = example();
            change(&mut overload);
            overload.violations().join("; ")
        };
        assert_eq!(with(|_| ()), "");
        assert_eq!(with(|one| one.answers.wrong = 1), "1 answers differ from stock's");
        assert_eq!(with(|one| one.answers.error("x".to_string())), "1 requests were not answered; x");
        assert_eq!(with(|one| one.answers = Tally::default()), "no answer was found the same");
        assert!(with(|one| one.preempted = 0).contains("no overload"));
        let held = with(|one| one.blocks_used_at_the_end = 3);
        assert_eq!(held, "3 blocks are still in use after all clients left");
        let grown = with(|one| one.resident_bytes = memory(|at| (100 + at / 60 + at) << 20));
        assert_eq!(grown, "the server has grown by 61.0 MiB");
        let unmeasured = with(|one| one.resident_bytes = ResidentBytes::default());
        assert_eq!(unmeasured, "the server's memory was not measured: whether it grows is unknown");
        assert_eq!(with(|one| one.answers.ties = 150), "", "stock leaves a tenth of its own");
        let tied = with(|one| one.answers.ties = 200);
        let expected = "18.2 % of the answers differ from stock's at a tie within tolerance";
        assert!(tied.starts_with(expected), "{tied}");
    }
}
