//! The inputs of one flash attention, as the C side describes them.

use std::ffi::c_void;

use super::kv_type::KvType;

/// K and V of some cells, and the masks of tokens over them. Strides are in bytes.
///
/// The layout is `struct espalier_attention_cells` of the C header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Cells {
    /// Keys: rows of `key_size` values of `key_type`.
    pub k: *const c_void,
    /// Values: rows of `value_size` values of `value_type`.
    pub v: *const c_void,
    /// Mask that is added to the scores, in half precision, `count` values for each token; null for none.
    pub mask: *const c_void,
    /// Bitmap of the blocks of [`BLOCK_SIZE`] cells that a token may attend to; null for all.
    pub blocks: *const u32,
    /// Stride between cells.
    pub k_cell: u64,
    /// Stride between heads.
    pub k_head: u64,
    /// Stride between streams.
    pub k_stream: u64,
    /// Stride between cells.
    pub v_cell: u64,
    /// Stride between heads.
    pub v_head: u64,
    /// Stride between streams.
    pub v_stream: u64,
    /// Stride between tokens.
    pub mask_token: u64,
    /// Stride between streams; stream `s` reads mask `s % mask_streams`.
    pub mask_stream: u64,
    /// Stride between tokens.
    pub blocks_token: u64,
    /// `enum ggml_type` of K.
    pub key_type: i32,
    /// `enum ggml_type` of V.
    pub value_type: i32,
    /// Number of cells in a stream of K and V.
    pub count: u32,
    /// Number of streams of the mask.
    pub mask_streams: u32,
}

/// One attention: for each token and head `softmax(scale * Q K^T + mask) V` over the cells of a cache.
///
/// The layout is `struct espalier_attention` of the C header. Strides are in bytes. The heads of Q that share a KV head
/// are adjacent.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Problem {
    /// Queries: rows of `key_size` f32 values.
    pub q: *const c_void,
    /// Attention sinks: an extra score for each head without a value; null for none.
    pub sinks: *const f32,
    /// The output: rows of `value_size` f32 values, by head, then by token, then by stream, contiguous.
    pub out: *mut f32,
    /// Stride between tokens.
    pub q_token: u64,
    /// Stride between heads.
    pub q_head: u64,
    /// Stride between streams.
    pub q_stream: u64,
    /// The cache, and the residual window: copies of some of its cells in other types, while the originals are masked.
    /// Usually empty.
    pub cells: [Cells; 2],
    /// Values in a row of Q and K.
    pub key_size: u32,
    /// Values in a row of V.
    pub value_size: u32,
    /// Number of tokens in a stream.
    pub tokens: u32,
    /// Number of heads of Q.
    pub heads: u32,
    /// Number of heads of K and of V.
    pub kv_heads: u32,
    /// Number of streams of Q.
    pub streams: u32,
    /// Number of streams of K and of V.
    pub kv_streams: u32,
    /// Factor of the scores.
    pub scale: f32,
    /// ALiBi: the largest slope's exponent; 0 for a mask that is added unscaled.
    pub max_bias: f32,
    /// Scores become `softcap * tanh(score / softcap)`; 0 for no softcap.
    pub softcap: f32,
}

/// The types of K and V of both [`Problem::cells`].
pub type Types = [(KvType, KvType); 2];

/// Number of cells in a block of the paged cache, those of one bit of [`Cells::blocks`]: `ESPALIER_KV_BLOCK_SIZE` of
/// the C header.
pub const BLOCK_SIZE: usize = 64;

/// Number of cells in a tile, which is read and converted at once: a block.
pub const TILE: usize = BLOCK_SIZE;

/// Length limit of a row of Q, K or V.
const SIZE_LIMIT: u32 = 1024;

impl Cells {
    /// No cells.
    pub const NONE: Cells = Cells {
        k: std::ptr::null(),
        v: std::ptr::null(),
        mask: std::ptr::null(),
        blocks: std::ptr::null(),
        k_cell: 0,
        k_head: 0,
        k_stream: 0,
        v_cell: 0,
        v_head: 0,
        v_stream: 0,
        mask_token: 0,
        mask_stream: 0,
        blocks_token: 0,
        key_type: 0,
        value_type: 0,
        count: 0,
        mask_streams: 1,
    };

    /// Returns the types of K and V, if they are supported for rows of these sizes.
    fn types(&self, key_size: u32, value_size: u32) -> Option<(KvType, KvType)> {
        let (key, value) = (KvType::from_number(self.key_type)?, KvType::from_number(self.value_type)?);
        key.row_bytes(key_size as usize)?;
        value.row_bytes(value_size as usize)?;
        (self.mask.is_null() || self.mask_streams > 0).then_some((key, value))
    }

    /// Returns the number of runs of [`TILE`] cells; the last one may have fewer.
    #[must_use]
    pub fn tile_count(&self) -> usize {
        (self.count as usize).div_ceil(TILE)
    }
}

impl Problem {
    /// Returns the types of K and V, if this kernel supports the problem. Without cells the types are arbitrary.
    #[must_use]
    pub fn types(&self) -> Option<Types> {
        let [cache, residual] = &self.cells;
        let of_cache = cache.types(self.key_size, self.value_size)?;
        let of_residual = match residual.count {
            0 => of_cache,
            _ => residual.types(self.key_size, self.value_size)?,
        };
        let divides = |part: u32, whole: u32| part > 0 && whole > 0 && whole.is_multiple_of(part);
        let fits = |size: u32| (1..=SIZE_LIMIT).contains(&size);
        let shapes = divides(self.kv_heads, self.heads)
            && divides(self.kv_streams, self.streams)
            && fits(self.key_size)
            && fits(self.value_size)
            && self.tokens > 0;
        shapes.then_some([of_cache, of_residual])
    }

    /// Returns the number of tiles of the cache and of the residual window.
    #[must_use]
    pub fn tile_count(&self) -> usize {
        self.cells.iter().map(Cells::tile_count).sum()
    }

    /// Returns the number of heads that share a KV head.
    #[must_use]
    pub fn group(&self) -> usize {
        (self.heads / self.kv_heads) as usize
    }

    /// Returns the factor of a head's mask: ALiBi, <https://arxiv.org/abs/2108.12409>.
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
