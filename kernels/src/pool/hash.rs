//! The hash of a block: of its tokens, its extra keys, and everything before it.

use sha2::{Digest, Sha256};

/// Identifies a block together with everything before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct BlockHash(pub [u8; 32]);

/// A function that hashes a block: its parent's hash (`None` for the first block of a prompt), its tokens and its
/// encoded extra keys. A parameter of the pool, so that tests can make hashes collide.
pub type HashFunction = fn(Option<&BlockHash>, &[i32], &[u8]) -> BlockHash;

/// The hash function that the C ABI always uses: 64-bit hashes have been attacked. It has no seed, so that the same
/// prompt has the same hash in every process; predictable hashes do no harm, because the tokens are compared on every
/// hit.
pub fn sha256(parent: Option<&BlockHash>, tokens: &[i32], extra_keys: &[u8]) -> BlockHash {
    BlockHash(Sha256::digest(encoded(parent, tokens, extra_keys)).into())
}

/// Canonical encoding: every part of variable length is preceded by its length. With 64 tokens and no extra keys it is
/// 305 bytes: five runs of SHA-256's compression function.
fn encoded(parent: Option<&BlockHash>, tokens: &[i32], extra_keys: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(49 + 4 * tokens.len() + extra_keys.len());
    bytes.push(u8::from(parent.is_some()));
    bytes.extend_from_slice(parent.map_or(&[], |hash| hash.0.as_slice()));
    bytes.extend_from_slice(&(tokens.len() as u64).to_le_bytes());
    tokens.iter().for_each(|token| bytes.extend_from_slice(&token.to_le_bytes()));
    bytes.extend_from_slice(&(extra_keys.len() as u64).to_le_bytes());
    bytes.extend_from_slice(extra_keys);
    bytes
}
