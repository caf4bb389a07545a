//! vLLM's `test_kv_cache_utils.py`, the part about hashes and their extra keys.

use espalier_kernels::pool::extra_keys::RequestKeys;
use espalier_kernels::pool::hash::{BlockHash, sha256};

use crate::support::*;

fn keys_of_blocks(keys: &RequestKeys, block_count: u64) -> Vec<Vec<u8>> {
    (0..block_count).map(|index| keys.of_block(index * 16, 16).encoded.to_vec()).collect()
}

/// The value used as the parent of the first block cannot be any block's hash.
#[test]
fn test_none_hash() {
    let first = sha256(None, &[1, 2, 3], &[]);
    assert_eq!(first, sha256(None, &[1, 2, 3], &[]));
    assert_ne!(first, sha256(Some(&BlockHash::default()), &[1, 2, 3], &[]));
}

/// A fixed value, so that it is the same in every process and on every machine.
#[test]
fn test_none_hash_seed_deterministic_for_crypto() {
    let hash = sha256(None, &[1, 2, 3], b"key").0;
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "6ab7033e4b3f9c245256729a043ac7fd709c00b02de007665fcc3dc722edd7e1");
}

#[test]
fn test_generate_block_hash_extra_keys() {
    let keys = keys_of_blocks(&with_extras(&[(0, 5, "hash1"), (10, 10, "hash2")]), 3);
    // The first image lies in block 0, the second one in both, at -6 of block 1.
    assert_eq!(keys[0], [extra("hash1", 0, 5), extra("hash2", 10, 10)].concat());
    assert_eq!(keys[1], extra("hash2", -6, 10));
    assert!(keys[2].is_empty());
}

fn extra(name: &str, offset: i64, length: u32) -> Vec<u8> {
    let name_length = (name.len() as u64).to_le_bytes();
    [&[3], &name_length[..], name.as_bytes(), &offset.to_le_bytes(), &length.to_le_bytes()].concat()
}

#[test]
fn test_generate_block_hash_extra_keys_no_mm_inputs() {
    assert_eq!(keys_of_blocks(&RequestKeys::default(), 2), [vec![], vec![]]);
}

#[test]
fn test_generate_block_hash_extra_keys_cache_salt() {
    let keys = keys_of_blocks(&salted("salt"), 2);
    assert_eq!(keys[0], [&[1][..], &4u64.to_le_bytes(), b"salt"].concat());
    assert!(keys[1].is_empty());
    let both = RequestKeys { salt: b"salt".to_vec(), ..with_extras(&[(0, 20, "image")]) };
    let both = keys_of_blocks(&both, 2);
    assert_eq!(both[0], [keys[0].clone(), extra("image", 0, 20)].concat());
    assert_eq!(both[1], extra("image", -16, 20));
}

#[test]
fn test_generate_block_hash_extra_keys_lora() {
    let keys = adapted("lora");
    let encoded = [&[2][..], &4u64.to_le_bytes(), b"lora"].concat();
    assert_eq!(keys_of_blocks(&keys, 2), [encoded.clone(), encoded]);
    assert!(keys.of_block(16, 16).has_adapters);
    assert!(!RequestKeys::default().of_block(16, 16).has_adapters);
}

/// Prompt embeddings come as extras whose key is their digest.
#[test]
fn test_generate_block_hash_extra_keys_prompt_embeds() {
    let keys = keys_of_blocks(&with_extras(&[(0, 40, "digest")]), 3);
    assert_eq!(keys, [extra("digest", 0, 40), extra("digest", -16, 40), extra("digest", -32, 40)]);
}

#[test]
fn test_generate_block_hash_extra_keys_different_prompt_embeds() {
    let one = keys_of_blocks(&with_extras(&[(0, 40, "digest1")]), 3);
    let other = keys_of_blocks(&with_extras(&[(0, 40, "digest2")]), 3);
    assert!(one.iter().zip(&other).all(|(one, other)| one != other));
}

/// The encoding of extra keys is unique: no two kinds of keys, and no two ways to split the same bytes, share one.
#[test]
fn the_encoding_of_extra_keys_has_one_meaning() {
    let kinds = [
        salted("ab"),
        adapted("ab"),
        with_extras(&[(0, 1, "ab")]),
        with_extras(&[(0, 2, "ab")]),
        with_extras(&[(1, 1, "ab")]),
        with_extras(&[(0, 1, "a"), (1, 1, "b")]),
        RequestKeys { adapters: b"b".to_vec(), ..salted("a") },
        RequestKeys { adapters: b"a".to_vec(), ..salted("b") },
        RequestKeys { adapters: b"".to_vec(), ..salted("a") },
    ];
    let encoded: std::collections::BTreeSet<_> =
        kinds.iter().map(|keys| keys.of_block(0, 16).encoded).collect();
    assert_eq!(encoded.len(), kinds.len());
}

#[test]
fn test_hash_block_tokens() {
    let parent = sha256(None, &[9], &[]);
    let hash = sha256(Some(&parent), &[1, 2, 3], b"key");
    assert_eq!(hash, sha256(Some(&parent), &[1, 2, 3], b"key"));
    for other in [
        sha256(None, &[1, 2, 3], b"key"),
        sha256(Some(&hash), &[1, 2, 3], b"key"),
        sha256(Some(&parent), &[1, 2], b"key"),
        sha256(Some(&parent), &[3, 2, 1], b"key"),
        sha256(Some(&parent), &[1, 2, 3], b"kez"),
        sha256(Some(&parent), &[1, 2, 3], b""),
    ] {
        assert_ne!(hash, other);
    }
}

#[test]
fn test_request_block_hasher() {
    let mut pool = pool_of_ten();
    let prompt = tokens(1, 40);
    begin(&mut pool, 0, &prompt, with_extras(&[(0, 3, "one"), (16, 3, "two")]));
    let first = sha256(None, &prompt[..16], &extra("one", 0, 3));
    let second = sha256(Some(&first), &prompt[16..32], &extra("two", 0, 3));
    assert_eq!(request_hashes(&pool, 0), [first, second]);
}

fn request_hashes(pool: &espalier_kernels::pool::pool::Pool, sequence: i32) -> Vec<BlockHash> {
    let request = pool.request(sequence).expect("the sequence has a request");
    let contents = (0..).map_while(|index| request.content(index));
    contents.map(|content| pool.blocks().contents.hash_of(content)).collect()
}

#[test]
fn test_hash_tokens_different_mm_input() {
    let mut pool = pool_of_ten();
    let prompt = tokens(1, 40);
    begin(&mut pool, 0, &prompt, with_extras(&[(0, 3, "one"), (16, 3, "two")]));
    begin(&mut pool, 1, &prompt, with_extras(&[(0, 3, "three"), (16, 3, "two")]));
    let (one, other) = (request_hashes(&pool, 0), request_hashes(&pool, 1));
    assert!(one.iter().zip(&other).all(|(one, other)| one != other));
}

#[test]
fn test_hash_request_tokens_no_mm_inputs() {
    let mut pool = pool_of_ten();
    let prompt = tokens(1, 40);
    begin(&mut pool, 0, &prompt, RequestKeys::default());
    let first = sha256(None, &prompt[..16], &[]);
    assert_eq!(request_hashes(&pool, 0), [first, sha256(Some(&first), &prompt[16..32], &[])]);
}

#[test]
fn test_metrics() {
    let mut pool = pool_of_ten();
    assert_eq!(prefill(&mut pool, 0, &tokens(1, 50)).0, 0);
    assert_eq!(prefill(&mut pool, 1, &tokens(1, 50)).0, 3);
    // Blocks that were released are matched again.
    finish(&mut pool, 1);
    begin(&mut pool, 1, &tokens(1, 20), RequestKeys::default());
    for _ in 0..2 {
        assert_eq!(match_prefix(&mut pool, 1).blocks.len(), 1);
        assert_eq!(pool.remove(1, 0, -1), Ok(()));
    }
    assert_eq!(pool.statistics().blocks_used_peak, 5);
}

#[test]
fn test_metrics_empty_stats() {
    let pool = pool_of_ten();
    let statistics = pool.statistics();
    assert_eq!((statistics.block_count, statistics.blocks_empty, statistics.block_size), (10, 10, 16));
}
