//! PURE: the result of the capacity bench.

use serde::{Deserialize, Serialize};

use super::MAX_LIVE;
use crate::bench::history::History;
use crate::bench::record::{BenchResult, Head, Plot};
use crate::report::bars::{Bar, Bars};
use crate::report::table::{Table, ratio};

/// All counts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::bench) struct Capacity {
    /// Type of K and V; records before it could be chosen have none.
    #[serde(default)]
    pub(in crate::bench) cache: String,
    pub(in crate::bench) block_count: u64,
    pub(in crate::bench) block_size: u64,
    pub(in crate::bench) live: Live,
    pub(super) tenants: Tenants,
}

/// The largest number of sequences that were live at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::bench) struct Live {
    /// Tokens of the shared prefix.
    pub(in crate::bench) prefix: usize,
    /// Tokens of each sequence after it.
    pub(in crate::bench) own: usize,
    pub(in crate::bench) shared: usize,
    pub(in crate::bench) unshared: usize,
    pub(in crate::bench) stock: usize,
}

/// The peak usage of a fixed number of sequences.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Tenants {
    pub(super) count: usize,
    pub(super) tokens: usize,
    /// Blocks in use at the peak.
    pub(super) shared_blocks: u64,
    /// Blocks in use at the peak.
    pub(super) unshared_blocks: u64,
    pub(super) stock_cells: u64,
    /// Stock allocates cells per sequence; this is the number of blocks that hold as many.
    pub(super) stock_blocks: u64,
}

impl Capacity {
    /// Describes the pool and the sequences; `of` is the type of its cells.
    fn conditions(&self, of: &str) -> [String; 2] {
        let Capacity { block_count, block_size, live, .. } = self;
        [
            format!("{block_count} blocks of {block_size} cells{of}"),
            format!("{} tokens in common, {} of its own each", live.prefix, live.own),
        ]
    }

    fn live_table(&self) -> Table {
        let live = &self.live;
        let row = |(what, count): (&str, usize)| {
            let at_least = if count == MAX_LIVE { " (all that a server can have)" } else { "" };
            format!("{what} | {count}{at_least} | {}", ratio(live.shared as f64, count as f64))
        };
        let rows = [
            ("paged, the prefix shared", live.shared),
            ("paged, nothing shared (a salt each)", live.unshared),
            ("stock --kv-unified, as many cells", live.stock),
        ];
        Table::new("what | at most | the first one has", rows.map(row))
    }

    fn tenants_table(&self) -> Table {
        let tenants = &self.tenants;
        let stock = format!("stock --kv-unified: {} cells, as blocks", tenants.stock_cells);
        let row = |(what, blocks): (&str, u64)| {
            format!("{what} | {blocks} | {}", ratio(blocks as f64, tenants.shared_blocks as f64))
        };
        let rows = [
            ("paged, the prefix shared", tenants.shared_blocks),
            ("paged, nothing shared (a salt each)", tenants.unshared_blocks),
            (stock.as_str(), tenants.stock_blocks),
        ];
        Table::new("what | blocks used at most | of the first one's", rows.map(row))
    }
}

impl BenchResult for Capacity {
    const HISTORY: History = History { bench: "capacity", identity: "trees block_count cache" };

    fn tables(&self, head: &Head) -> String {
        let [pool, sequences] = self.conditions(&format!(" of {}", self.cache));
        let Tenants { count, tokens, .. } = self.tenants;
        format!(
            "Sequences live at once: {pool}, {sequences}, llama.cpp {}\n\n{}\n\
             {count} tenants with {tokens} tokens each, one prefix\n\n{}",
            head.pin,
            self.live_table(),
            self.tenants_table()
        )
    }

    /// Draws the sequences that were live at once as bars.
    fn plot(&self, head: &Head) -> Option<Plot> {
        let stock = self.live.stock as f64;
        let bar = |(label, count, is_reference): (&str, usize, bool)| {
            let value = count as f64;
            let note = format!("{count} sequences, {} of stock", ratio(value, stock));
            Bar { label: label.to_string(), value, low: value, high: value, note, is_reference }
        };
        let [pool, sequences] = self.conditions("");
        let bars = [
            ("paged, the prefix shared", self.live.shared, false),
            ("paged, nothing shared", self.live.unshared, false),
            ("stock --kv-unified", self.live.stock, true),
        ];
        let bars = Bars {
            title: format!("Sequences live at once in {pool}"),
            subtitle: format!("llama.cpp {}; {sequences}", head.pin),
            bars: bars.map(bar).into(),
            line: None,
        };
        Some(Plot { name: "capacity".to_string(), svg: bars.svg() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::record::Record;
    use crate::bench::record::tests::head;

    fn example() -> Record<Capacity> {
        let live = Live { prefix: 1024, own: 128, shared: MAX_LIVE, unshared: 17, stock: 0 };
        let tenants = Tenants {
            count: 32,
            tokens: 1024,
            shared_blocks: 47,
            unshared_blocks: 512,
            stock_cells: 32 * 1023,
            stock_blocks: 512,
        };
        let cache = "f16".to_string();
        let result = Capacity { cache, block_count: 512, block_size: 64, live, tenants };
        Record { head: Head { quiet: None, ..head() }, result }
    }

    #[test]
    fn the_tables() {
        insta::assert_snapshot!(example().text(), @"
        Sequences live at once: 512 blocks of 64 cells of f16, 1024 tokens in common, 128 of its own each, llama.cpp v1

        | what | at most | the first one has |
        |---|--:|--:|
        | paged, the prefix shared | 255 (all that a server can have) | 1.00x |
        | paged, nothing shared (a salt each) | 17 | 15.00x |
        | stock --kv-unified, as many cells | 0 | - |

        32 tenants with 1024 tokens each, one prefix

        | what | blocks used at most | of the first one's |
        |---|--:|--:|
        | paged, the prefix shared | 47 | 1.00x |
        | paged, nothing shared (a salt each) | 512 | 10.89x |
        | stock --kv-unified: 32736 cells, as blocks | 512 | 10.89x |
        ");
    }

    #[test]
    fn the_plot_has_a_bar_for_each() {
        let Record { head, result } = example();
        let plot = result.plot(&head).unwrap().svg;
        assert!(plot.contains("255 sequences, -") && plot.contains("17 sequences"), "{plot}");
    }
}
