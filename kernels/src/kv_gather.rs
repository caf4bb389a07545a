//! The hint that lets an accelerator read only the cells of a paged cache that a step sees.
//!
//! On accelerators attention reads the cache up to its highest used cell, and the mask says which of those cells count.
//! In a pool full of blocks that are cached for earlier requests this is the whole pool, however short the sequences of
//! the step are. ggml has a mechanism for masks with few finite entries (`ggml_flash_attn_ext_set_n_kv_max`): given an
//! upper bound of the finite entries in any row, a backend compacts the mask into lists of cells and reads only those.
//!
//! This module decides the bound of a step, and, in one table, which backends use it for which nodes. A bound that is
//! too small is a wrong answer, so it is derived from the blocks that the mask is made from: cells of other blocks are
//! masked. It is a constant of the graph, so it is rounded up in steps, and most steps reuse the graph of the last one.

use crate::attention::problem::BLOCK_SIZE;

/// Cells in a cache below which no backend gathers: reading them all is as fast.
const MIN_CACHE: u32 = 4096;

/// Tokens in a step above which no hint is set. Prompts are computed in larger batches, which read each cell once for
/// many tokens.
const MAX_TOKENS: u32 = 64;

/// The smallest step to which bounds are rounded up: that by which a cache grows in a graph.
const MIN_STEP: u32 = 256;

/// Cells above which there is no hint, so that rounding cannot overflow.
const MAX_CELLS: u32 = 1 << 30;

/// Types of K and V, with their ids in the GGUF format.
const F32: i32 = 0;
const F16: i32 = 1;
const Q4_0: i32 = 2;
const Q4_1: i32 = 3;
const Q5_0: i32 = 6;
const Q5_1: i32 = 7;
const Q8_0: i32 = 8;
const BF16: i32 = 30;

/// The nodes that get a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Only nodes of the table.
    Table,
    /// Every node, also on backends that ignore the hint, so that the mask is checked on any machine.
    Check,
}

/// A flash attention node whose mask is that of a paged cache.
///
/// The layout is `struct espalier_kv_gather_node` of the C header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Node {
    /// `enum ggml_type` of K.
    pub key_type: i32,
    /// `enum ggml_type` of V.
    pub value_type: i32,
    /// Values in a row of K.
    pub key_size: u32,
    /// Values in a row of V.
    pub value_size: u32,
    /// Number of heads of Q.
    pub heads: u32,
    /// Number of heads of K and of V.
    pub kv_heads: u32,
    /// Number of tokens.
    pub tokens: u32,
    /// Number of cells in K, of which the mask selects some.
    pub cells: u32,
    /// 1 if scores have an ALiBi bias or a softcap, else 0. No backend gathers then.
    pub is_biased: i32,
}

/// Numbers of Q heads for each KV head.
struct Ratios {
    min: u32,
    max: u32,
    multiple_of: u32,
}

/// Nodes for which a backend uses the hint and is faster with it.
struct Row {
    /// Name of the backend in ggml's registry.
    backend: &'static str,
    /// Sizes of the rows of K and V; empty: all.
    sizes: &'static [(u32, u32)],
    /// Types of K and V, which must be equal.
    types: &'static [i32],
    ratios: Ratios,
    max_tokens: u32,
    /// The largest hint.
    max_cells: u32,
    /// Whether one token after the other is computed, so that the cells of several tokens are read several times. Eight
    /// tokens share a list at the most, and that has eight times the cells.
    is_by_token: bool,
}

/// The conditions of each backend, as they are in the pinned upstream tree. One without a row reads the whole cache.
///
/// The reasons are in docs/design/paged-kv.md. A backend ignores a hint that does not meet its own conditions, so a row
/// that is too generous costs graphs that are built again, never answers.
const TABLE: &[Row] = &[
    // Other head sizes and ratios have no kernel that gathers. Other types are converted to F16 first: the whole cache.
    Row {
        backend: "CUDA",
        sizes: &[(256, 256), (512, 512)],
        types: &[F16],
        ratios: Ratios { min: 5, max: u32::MAX, multiple_of: 1 },
        max_tokens: MAX_TOKENS,
        max_cells: MAX_CELLS,
        is_by_token: true,
    },
    Row {
        backend: "CUDA",
        sizes: &[(576, 512)],
        types: &[F16],
        ratios: Ratios { min: 16, max: u32::MAX, multiple_of: 16 },
        max_tokens: MAX_TOKENS,
        max_cells: MAX_CELLS,
        is_by_token: true,
    },
    // The heads of one KV head are the rows of a tile, which has one list. Up to 8, 16 or 32 rows, by device.
    Row {
        backend: "Vulkan",
        sizes: &[],
        types: &[F16],
        ratios: Ratios { min: 2, max: 32, multiple_of: 1 },
        max_tokens: 8,
        max_cells: MAX_CELLS,
        is_by_token: false,
    },
    // Without such heads a tile has several tokens, unless there is only one.
    Row {
        backend: "Vulkan",
        sizes: &[],
        types: &[F16],
        ratios: Ratios { min: 1, max: 1, multiple_of: 1 },
        max_tokens: 1,
        max_cells: MAX_CELLS,
        is_by_token: false,
    },
    // The kernel for single tokens, whatever their number: beyond some the one for batches is faster.
    Row {
        backend: "MTL",
        sizes: &[
            (32, 32),
            (64, 64),
            (96, 64),
            (96, 96),
            (128, 128),
            (192, 128),
            (192, 192),
            (256, 256),
            (320, 256),
            (512, 512),
            (576, 512),
        ],
        types: &[F16, BF16, F32, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0],
        ratios: Ratios { min: 1, max: u32::MAX, multiple_of: 1 },
        max_tokens: 16,
        max_cells: 4096,
        is_by_token: false,
    },
];

/// Returns an upper bound of the cells that a token sees, given the bitmap of the blocks of its sequence.
pub fn cells_of_blocks(blocks: &[u32]) -> u32 {
    let marked: u64 = blocks.iter().map(|word| u64::from(word.count_ones())).sum();
    u32::try_from(marked.saturating_mul(BLOCK_SIZE as u64)).unwrap_or(u32::MAX)
}

/// Returns the hint of a step in which no token sees more than `cells` of `cache_cells` cells; 0: none.
///
/// Equal arguments give equal hints: a graph can be reused while its hint is that of the step. A check has the bound
/// itself, not rounded up, so that one that lacks a block is found; and at least 1, so that one of 0 is compared too.
pub fn hint(cells: u32, cache_cells: u32, tokens: u32, mode: Mode) -> u32 {
    if cells > MAX_CELLS {
        return 0;
    }
    let rounded = round_up(cells);
    let is_faster = tokens <= MAX_TOKENS && cache_cells >= MIN_CACHE && rounded <= cache_cells / 2;
    match mode {
        // A mask has no more entries than the cache has cells.
        Mode::Check => cells.max(1).min(cache_cells),
        Mode::Table if is_faster => rounded,
        Mode::Table => 0,
    }
}

/// Rounds up to a multiple of a 16th to an 8th of the number: by at most 255 cells, or an 8th.
fn round_up(cells: u32) -> u32 {
    let cells = cells.max(1);
    let step = (cells.next_power_of_two() / 16).max(MIN_STEP);
    cells.div_ceil(step) * step
}

/// Returns whether the backend with this name gathers cells for any node.
pub fn has_backend(backend: &str, mode: Mode) -> bool {
    mode == Mode::Check || TABLE.iter().any(|row| row.backend == backend)
}

/// Returns whether the backend that computes a node uses the hint and is faster with it.
pub fn is_used(backend: &str, node: &Node, hint: u32, mode: Mode) -> bool {
    mode == Mode::Check || TABLE.iter().any(|row| row.backend == backend && row.uses_hint(node, hint))
}

impl Row {
    fn uses_hint(&self, node: &Node, hint: u32) -> bool {
        self.matches(node)
            && node.is_biased == 0
            && hint > 0
            && hint <= self.max_cells
            && self.is_faster(node, hint)
    }

    fn matches(&self, node: &Node) -> bool {
        let sizes = self.sizes.is_empty() || self.sizes.contains(&(node.key_size, node.value_size));
        let types = node.key_type == node.value_type && self.types.contains(&node.key_type);
        sizes && types && self.ratios.contain(node.heads, node.kv_heads) && node.tokens <= self.max_tokens
    }

    /// Returns whether at most half of the cells are read.
    fn is_faster(&self, node: &Node, hint: u32) -> bool {
        let lists = match node.tokens {
            tokens if !self.is_by_token => tokens.min(1),
            tokens if tokens <= 4 => tokens,
            _ => 8,
        };
        let read = u64::from(hint) * u64::from(lists);
        node.cells >= MIN_CACHE && read <= u64::from(node.cells / 2)
    }
}

impl Ratios {
    fn contain(&self, heads: u32, kv_heads: u32) -> bool {
        if kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
            return false;
        }
        let ratio = heads / kv_heads;
        (self.min..=self.max).contains(&ratio) && ratio.is_multiple_of(self.multiple_of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node for which both CUDA and Vulkan use a hint of 1,024 cells.
    const NODE: Node = Node {
        key_type: F16,
        value_type: F16,
        key_size: 256,
        value_size: 256,
        heads: 16,
        kv_heads: 2,
        tokens: 1,
        cells: 8192,
        is_biased: 0,
    };

    fn uses(backend: &str, node: Node) -> bool {
        is_used(backend, &node, 1024, Mode::Table)
    }

    #[test]
    fn all_cells_of_marked_blocks_count() {
        let block = u32::try_from(BLOCK_SIZE).unwrap();
        assert_eq!(cells_of_blocks(&[]), 0);
        assert_eq!(cells_of_blocks(&[0, 0]), 0);
        assert_eq!(cells_of_blocks(&[0b101, 1 << 31]), 3 * block);
        assert_eq!(cells_of_blocks(&[u32::MAX; 4]), 128 * block);
    }

    #[test]
    fn a_hint_is_never_too_small_and_at_most_an_eighth_too_large() {
        let some = (1..40_000).chain((0..20).map(|power| (1 << power) + 1)).chain([MAX_CELLS - 1, MAX_CELLS]);
        for cells in some {
            let rounded = round_up(cells);
            assert!(rounded >= cells && rounded.is_multiple_of(MIN_STEP), "{cells}: {rounded}");
            assert!(rounded - cells < MIN_STEP || rounded - cells <= cells / 8, "{cells}: {rounded}");
        }
    }

    /// As a sequence grows by a power of two, its graphs are built again a few times only.
    #[test]
    fn hints_have_few_values() {
        for power in [8, 11, 12, 13, 16, 20] {
            let mut hints: Vec<u32> = (1 << power..2 << power).map(round_up).collect();
            hints.dedup();
            assert!(hints.len() <= 10, "{power}: {hints:?}");
        }
    }

    #[test]
    fn there_is_a_hint_if_half_of_a_large_cache_is_enough() {
        let hint = |cells, cache_cells, tokens| hint(cells, cache_cells, tokens, Mode::Table);
        assert_eq!(hint(1000, 4096, 1), 1024);
        assert_eq!(hint(2048, 4096, 64), 2048);
        assert_eq!(hint(2049, 4096, 1), 0);
        assert_eq!(hint(1000, 4095, 1), 0);
        assert_eq!(hint(1000, 4096, 65), 0);
        assert_eq!(hint(MAX_CELLS + 1, u32::MAX, 1), 0);
        // A sequence without cells: a hint of 0 would not be one.
        assert_eq!(hint(0, 4096, 1), 256);
    }

    #[test]
    fn a_check_sets_hints_everywhere() {
        assert_eq!(hint(128, 512, 512, Mode::Check), 128);
        assert_eq!(hint(448, 512, 1, Mode::Check), 448);
        assert_eq!(hint(384, 320, 1, Mode::Check), 320);
        assert_eq!(hint(0, 512, 1, Mode::Check), 1);
        assert_eq!(hint(u32::MAX, 512, 1, Mode::Check), 0);
        assert!(has_backend("CPU", Mode::Check) && !has_backend("CPU", Mode::Table));
        assert!(is_used("CPU", &NODE, 256, Mode::Check) && !is_used("CPU", &NODE, 256, Mode::Table));
    }

    #[test]
    fn backends_without_a_gather_get_no_hint() {
        for backend in ["CPU", "ROCm", "MUSA", "SYCL", "OpenCL", "RPC", "BLAS", "Meta", "", "vulkan"] {
            assert!(!has_backend(backend, Mode::Table) && !uses(backend, NODE), "{backend}");
        }
        for backend in ["CUDA", "Vulkan", "MTL"] {
            assert!(has_backend(backend, Mode::Table) && uses(backend, NODE), "{backend}");
        }
    }

    #[test]
    fn no_backend_uses_a_hint_that_is_not_faster() {
        let nodes = [
            Node { cells: 2048, ..NODE },
            Node { cells: 4095, ..NODE },
            Node { is_biased: 1, ..NODE },
            Node { tokens: 65, ..NODE },
            Node { kv_heads: 0, ..NODE },
            Node { kv_heads: 3, ..NODE },
            Node { value_type: Q8_0, ..NODE },
        ];
        for (node, backend) in
            nodes.iter().flat_map(|node| ["CUDA", "Vulkan", "MTL"].map(|name| (node, name)))
        {
            assert!(!uses(backend, *node), "{backend}: {node:?}");
        }
        assert!(!is_used("Vulkan", &NODE, 0, Mode::Table));
    }

    #[test]
    fn cuda_gathers_for_many_heads_of_large_rows() {
        assert!(!uses("CUDA", Node { key_size: 128, value_size: 128, ..NODE }));
        assert!(!uses("CUDA", Node { kv_heads: 4, ..NODE }));
        assert!(!uses("CUDA", Node { key_type: Q8_0, value_type: Q8_0, ..NODE }));
        let latent = Node { key_size: 576, value_size: 512, heads: 16, kv_heads: 1, ..NODE };
        assert!(uses("CUDA", latent));
        assert!(!uses("CUDA", Node { heads: 20, ..latent }));
        // Four tokens read half of the cache, five are a group of eight.
        assert!(uses("CUDA", Node { tokens: 4, ..NODE }));
        assert!(!uses("CUDA", Node { tokens: 5, ..NODE }));
        assert!(uses("CUDA", Node { tokens: 5, cells: 16384, ..NODE }));
    }

    #[test]
    fn vulkan_gathers_for_the_heads_of_a_token() {
        let node = Node { key_size: 64, value_size: 64, ..NODE };
        assert!(uses("Vulkan", node));
        assert!(uses("Vulkan", Node { tokens: 8, cells: 4096, ..node }));
        assert!(!uses("Vulkan", Node { tokens: 9, ..node }));
        assert!(!uses("Vulkan", Node { heads: 66, ..node }));
        assert!(!uses("Vulkan", Node { key_type: BF16, value_type: BF16, ..node }));
        let one_each = Node { heads: 2, ..node };
        assert!(uses("Vulkan", one_each));
        assert!(!uses("Vulkan", Node { tokens: 2, ..one_each }));
    }

    #[test]
    fn metal_gathers_quantized_cells_too_but_not_many() {
        let quantized = Node { key_type: Q8_0, value_type: Q8_0, key_size: 128, value_size: 128, ..NODE };
        assert!(uses("MTL", quantized));
        assert!(!uses("MTL", Node { key_size: 80, value_size: 80, ..quantized }));
        assert!(!uses("MTL", Node { tokens: 17, ..quantized }));
        let large = Node { cells: 1 << 20, ..quantized };
        assert!(is_used("MTL", &large, 4096, Mode::Table));
        assert!(!is_used("MTL", &large, 4352, Mode::Table));
    }
}
