//! The report of the capacity bench: text, JSON and a plot.

use serde_json::{Value, json};

use super::{LIVE, MOST_LIVE};
use crate::report::bars::{Bar, Bars};
use crate::serving::answer::Answer;
use crate::serving::bench_fixture::Builds;
use crate::serving::kv_pool::Pool;

pub(super) struct Capacity {
    pub(super) builds: Builds,
    /// Type of K and V.
    pub(super) cache: String,
    pub(super) pool: Pool,
    pub(super) live: Live,
    pub(super) tenants: Tenants,
}

/// The largest number of sequences that were live at once.
pub(super) struct Live {
    pub(super) shared: usize,
    pub(super) unshared: usize,
    pub(super) stock: usize,
}

/// The peak usage of a fixed number of sequences.
pub(super) struct Tenants {
    pub(super) count: usize,
    pub(super) tokens: usize,
    /// Blocks in use at the peak.
    pub(super) shared: u64,
    /// Blocks in use at the peak.
    pub(super) unshared: u64,
    pub(super) stock_cells: u64,
}

impl Tenants {
    /// Stock allocates cells per sequence; this is the number of blocks that hold as many.
    fn stock_blocks(&self, block_size: u64) -> u64 {
        self.stock_cells.div_ceil(block_size.max(1))
    }
}

/// Returns the cells of stock's answers while all were live: it shares none. The last token of an answer is never
/// stored.
pub(super) fn cells_of_stock(answers: &[Answer]) -> u64 {
    answers.iter().map(|answer| answer.computed + answer.cached + answer.tokens.len() as u64 - 1).sum()
}

pub(super) fn text(capacity: &Capacity) -> String {
    format!("{}\n{}", live_text(capacity), tenants_text(capacity))
}

fn live_text(capacity: &Capacity) -> String {
    let Capacity { pool, live, builds, cache, .. } = capacity;
    let row = |what: &str, count: usize| {
        let at_least = if count == MOST_LIVE { " (all that a server can have)" } else { "" };
        format!("| {what} | {count}{at_least} | {} |\n", times(live.shared as f64, count as f64))
    };
    format!(
        "Sequences live at once: {} blocks of {} cells of {cache}, {} tokens in common, {} of its own each, llama.cpp {}\n\n\
         | what | at most | the first one has |\n|---|--:|--:|\n{}{}{}",
        pool.block_count,
        pool.block_size,
        LIVE.prefix,
        LIVE.suffix + LIVE.predict,
        builds.pin,
        row("ours, the prefix shared", live.shared),
        row("ours, nothing shared (a salt each)", live.unshared),
        row("stock --kv-unified, as many cells", live.stock)
    )
}

fn tenants_text(capacity: &Capacity) -> String {
    let Capacity { pool, tenants, .. } = capacity;
    let row = |what: &str, blocks: u64| {
        format!("| {what} | {blocks} | {} |\n", times(blocks as f64, tenants.shared as f64))
    };
    let stock = format!("stock --kv-unified: {} cells, as blocks", tenants.stock_cells);
    format!(
        "{} tenants with {} tokens each, one prefix\n\n\
         | what | blocks used at most | of the first one's |\n|---|--:|--:|\n{}{}{}",
        tenants.count,
        tenants.tokens,
        row("ours, the prefix shared", tenants.shared),
        row("ours, nothing shared (a salt each)", tenants.unshared),
        row(&stock, tenants.stock_blocks(pool.block_size))
    )
}

fn times(more: f64, less: f64) -> String {
    if less > 0.0 { format!("{:.2}x", more / less) } else { "-".to_string() }
}

pub(super) fn json(capacity: &Capacity) -> Value {
    let Capacity { pool, live, tenants, builds, cache } = capacity;
    json!({
        "cache": cache,
        "pin": builds.pin,
        "trees": builds.trees,
        "block_count": pool.block_count,
        "block_size": pool.block_size,
        "live": {
            "prefix": LIVE.prefix,
            "own": LIVE.suffix + LIVE.predict,
            "shared": live.shared,
            "unshared": live.unshared,
            "stock": live.stock,
        },
        "tenants": {
            "count": tenants.count,
            "tokens": tenants.tokens,
            "shared_blocks": tenants.shared,
            "unshared_blocks": tenants.unshared,
            "stock_cells": tenants.stock_cells,
            "stock_blocks": tenants.stock_blocks(pool.block_size),
        },
    })
}

/// Draws the sequences that were live at once as bars.
pub(super) fn svg(capacity: &Capacity) -> String {
    let Capacity { pool, live, builds, .. } = capacity;
    let bar = |label: &str, count: usize| {
        let value = count as f64;
        let note = format!("{count} sequences, {} of the last", times(value, live.stock as f64));
        Bar { label: label.to_string(), value, low: value, high: value, note }
    };
    Bars {
        title: format!("Sequences live at once in {} blocks of {} cells", pool.block_count, pool.block_size),
        subtitle: format!(
            "llama.cpp {}; {} tokens in common, {} of its own each",
            builds.pin,
            LIVE.prefix,
            LIVE.suffix + LIVE.predict
        ),
        bars: vec![
            bar("ours, the prefix shared", live.shared),
            bar("ours, nothing shared", live.unshared),
            bar("stock --kv-unified", live.stock),
        ],
        line: None,
    }
    .svg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serving::kv_pool;

    fn example() -> Capacity {
        Capacity {
            cache: "f16".to_string(),
            builds: Builds { pin: "v1".to_string(), ..Builds::default() },
            pool: Pool { block_count: 512, ..Pool::parse(&kv_pool::example()).unwrap() },
            live: Live { shared: MOST_LIVE, unshared: 17, stock: 0 },
            tenants: Tenants { count: 32, tokens: 1024, shared: 47, unshared: 512, stock_cells: 32 * 1023 },
        }
    }

    #[test]
    fn the_tables() {
        insta::assert_snapshot!(text(&example()), @"
        Sequences live at once: 512 blocks of 64 cells of f16, 1024 tokens in common, 128 of its own each, llama.cpp v1

        | what | at most | the first one has |
        |---|--:|--:|
        | ours, the prefix shared | 255 (all that a server can have) | 1.00x |
        | ours, nothing shared (a salt each) | 17 | 15.00x |
        | stock --kv-unified, as many cells | 0 | - |

        32 tenants with 1024 tokens each, one prefix

        | what | blocks used at most | of the first one's |
        |---|--:|--:|
        | ours, the prefix shared | 47 | 1.00x |
        | ours, nothing shared (a salt each) | 512 | 10.89x |
        | stock --kv-unified: 32736 cells, as blocks | 512 | 10.89x |
        ");
    }

    #[test]
    fn the_json_has_the_counts() {
        let value = json(&example());
        assert_eq!(value["live"]["own"], 128);
        assert_eq!(value["tenants"]["stock_blocks"], 512);
    }

    #[test]
    fn the_plot_has_a_bar_for_each() {
        let plot = svg(&example());
        assert!(plot.contains("255 sequences, -") && plot.contains("17 sequences"), "{plot}");
    }

    #[test]
    fn stock_stores_all_but_the_last_token() {
        let answer =
            Answer { tokens: vec![1, 2, 3], computed: 10, cached: 5, prompt_seconds: 1.0, decode_rate: 1.0 };
        assert_eq!(cells_of_stock(&[answer.clone(), answer]), 34);
    }
}
