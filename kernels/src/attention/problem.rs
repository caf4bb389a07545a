//! One flash attention, as the C side describes it.

use std::ffi::c_void;

use super::kv_type::KvType;

/// K and V of some cells, and what tokens see of them. Strides are in bytes.
///
/// The layout is `struct espalier_attention_cells` of the C header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Cells {
    /// Keys: rows of `key_size` values of `key_type`.
    pub k: *const c_void,
    /// Values: rows of `value_size` values of `value_type`.
    pub v: *const c_void,
    /// What is added to the scores, in half precision, `count` numbers a token; null for nothing.
    pub mask: *const c_void,
    /// Bits: the runs of [`TILE`] cells that a token may see; null for all.
    pub tiles: *const u32,
    /// From one cell's row to the next.
    pub k_cell: u64,
    /// From one head's row to the next.
    pub k_head: u64,
    /// From one stream to the next.
    pub k_stream: u64,
    /// From one cell's row to the next.
    pub v_cell: u64,
    /// From one head's row to the next.
    pub v_head: u64,
    /// From one stream to the next.
    pub v_stream: u64,
    /// From one token's row to the next.
    pub mask_token: u64,
    /// From one stream's rows to the next; those of stream `s` are `s % mask_streams`.
    pub mask_stream: u64,
    /// From one token's bits to the next.
    pub tiles_token: u64,
    /// `enum ggml_type` of K.
    pub key_type: i32,
    /// `enum ggml_type` of V.
    pub value_type: i32,
    /// Cells in a stream of K and V.
    pub count: u32,
    /// Streams of the mask.
    pub mask_streams: u32,
}

/// What is asked for: for each token and head `softmax(scale * Q K^T + mask) V` over the cells of a cache.
///
/// The layout is `struct espalier_attention` of the C header. Strides are in bytes. Heads are consecutive in groups: those
/// that read the same head of K and V lie side by side.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Problem {
    /// Queries: rows of `key_size` numbers in single precision.
    pub q: *const c_void,
    /// A score for each head of which nothing is read; null for none.
    pub sinks: *const f32,
    /// The result: rows of `value_size` numbers, by head, then by token, then by stream, without gaps.
    pub out: *mut f32,
    /// From one token's row to the next.
    pub q_token: u64,
    /// From one head's row to the next.
    pub q_head: u64,
    /// From one stream to the next.
    pub q_stream: u64,
    /// The cache, and copies of some of its cells in other types, instead of which the cache's own are hidden; mostly none.
    pub cells: [Cells; 2],
    /// Values in a row of Q and K.
    pub key_size: u32,
    /// Values in a row of V.
    pub value_size: u32,
    /// Tokens in a stream.
    pub tokens: u32,
    /// Heads of Q.
    pub heads: u32,
    /// Heads of K and of V.
    pub kv_heads: u32,
    /// Streams of Q.
    pub streams: u32,
    /// Streams of K and of V.
    pub kv_streams: u32,
    /// What scores are multiplied by.
    pub scale: f32,
    /// ALiBi: the largest slope's exponent; 0 for a mask that is added as it is.
    pub max_bias: f32,
    /// Scores become `softcap * tanh(score / softcap)`; 0 for scores as they are.
    pub softcap: f32,
}

/// The types of K and V of both [`Problem::cells`].
pub type Types = [(KvType, KvType); 2];

/// Cells in a tile: what is read and converted at once. Also the cells of a bit of [`Cells::tiles`].
pub const TILE: usize = 64;

/// The longest row of Q, K or V.
const SIZE_LIMIT: u32 = 1024;

impl Cells {
    /// None of them.
    pub const NONE: Cells = Cells {
        k: std::ptr::null(),
        v: std::ptr::null(),
        mask: std::ptr::null(),
        tiles: std::ptr::null(),
        k_cell: 0,
        k_head: 0,
        k_stream: 0,
        v_cell: 0,
        v_head: 0,
        v_stream: 0,
        mask_token: 0,
        mask_stream: 0,
        tiles_token: 0,
        key_type: 0,
        value_type: 0,
        count: 0,
        mask_streams: 1,
    };

    /// The types of K and V, if rows of these sizes can have them.
    fn types(&self, key_size: u32, value_size: u32) -> Option<(KvType, KvType)> {
        let (key, value) = (KvType::from_number(self.key_type)?, KvType::from_number(self.value_type)?);
        key.row_bytes(key_size as usize)?;
        value.row_bytes(value_size as usize)?;
        (self.mask.is_null() || self.mask_streams > 0).then_some((key, value))
    }

    /// Runs of [`TILE`] cells; the last one may have fewer.
    #[must_use]
    pub fn tile_count(&self) -> usize {
        (self.count as usize).div_ceil(TILE)
    }
}

impl Problem {
    /// The types of K and V, if this kernel computes it. Of no cells it means nothing which they are.
    #[must_use]
    pub fn types(&self) -> Option<Types> {
        let [cache, copies] = &self.cells;
        let of_cache = cache.types(self.key_size, self.value_size)?;
        let of_copies = match copies.count {
            0 => of_cache,
            _ => copies.types(self.key_size, self.value_size)?,
        };
        let divides = |part: u32, whole: u32| part > 0 && whole > 0 && whole.is_multiple_of(part);
        let fits = |size: u32| (1..=SIZE_LIMIT).contains(&size);
        let shapes = divides(self.kv_heads, self.heads)
            && divides(self.kv_streams, self.streams)
            && fits(self.key_size)
            && fits(self.value_size)
            && self.tokens > 0;
        shapes.then_some([of_cache, of_copies])
    }

    /// Tiles of the cache, and then of the copies.
    #[must_use]
    pub fn tile_count(&self) -> usize {
        self.cells.iter().map(Cells::tile_count).sum()
    }

    /// The heads that read the same head of K and V.
    #[must_use]
    pub fn group(&self) -> usize {
        (self.heads / self.kv_heads) as usize
    }

    /// What the mask of a head is multiplied by: ALiBi, <https://arxiv.org/abs/2108.12409>.
    #[must_use]
    pub fn slope(&self, head: usize) -> f32 {
        if self.max_bias <= 0.0 {
            return 1.0;
        }
        let power_of_two = 1 << self.heads.ilog2();
        let base = |bias: f32| (-bias / power_of_two as f32).exp2();
        if head < power_of_two {
            base(self.max_bias).powf((head + 1) as f32)
        } else {
            base(self.max_bias / 2.0).powf((2 * (head - power_of_two) + 1) as f32)
        }
    }
}
