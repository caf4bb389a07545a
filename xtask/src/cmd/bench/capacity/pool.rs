//! What a paged server says of its pool.

use serde::Deserialize;
use serde_json::Value;

/// `kv_pool` in `/props`; what else it says is not needed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Pool {
    /// Blocks in all.
    pub block_count: u64,
    /// Cells of a block.
    pub block_size: u64,
    /// Held by requests now.
    pub blocks_used: u64,
    /// Free, with something that may be wanted again.
    pub blocks_retained: u64,
    /// Free, with nothing.
    pub blocks_empty: u64,
    /// The most that were held at one moment.
    pub blocks_used_peak: u64,
}

impl Pool {
    /// The share of blocks that hold something.
    pub fn filled(&self) -> f64 {
        (self.blocks_used + self.blocks_retained) as f64 / self.block_count.max(1) as f64
    }
}

/// The pool in an answer of `/props`; nothing where there is none.
pub fn parse(props: &Value) -> Option<Pool> {
    Pool::deserialize(props.get("kv_pool")?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pool_is_read_and_what_is_new_in_it_does_no_harm() {
        let pool = json!({
            "block_count": 512, "block_size": 64, "blocks_used": 47, "blocks_retained": 401, "blocks_empty": 64,
            "blocks_used_peak": 50, "queried_tokens": 1, "hit_tokens": 0, "evicted_blocks": 3,
        });
        let found = parse(&json!({ "kv_pool": pool })).unwrap();
        assert_eq!((found.block_count, found.block_size, found.blocks_used_peak), (512, 64, 50));
        assert!((found.filled() - 0.875).abs() < 1e-9);
    }

    #[test]
    fn stock_has_none() {
        assert_eq!(parse(&json!({ "total_slots": 4 })), None);
        assert_eq!(parse(&json!({ "kv_pool": { "block_count": 512 } })), None);
    }
}
