//! The statistics of a paged server's block pool: `kv_pool` in `/props`, parsed only here.
//!
//! A missing counter is an error that names it: if it were read as 0, a renamed counter would make a check pass.

use std::fmt;
use std::time::Duration;

use espalier_core::error::{Error, Result};
use espalier_core::sys::net::server::Server;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Counters of a pool; other fields of the server are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// Total number of blocks.
    pub block_count: u64,
    /// Tokens per block.
    pub block_size: u64,
    /// Blocks in use by requests now.
    pub blocks_used: u64,
    /// Maximum number of blocks in use at the same time.
    pub blocks_used_peak: u64,
    /// Free blocks that hold cached, evictable content.
    pub blocks_retained: u64,
    /// Free blocks without content.
    pub blocks_empty: u64,
    /// Cached blocks that were evicted for other content since the server started.
    pub evicted_blocks: u64,
    /// Blocks in use now in layers with a sliding window. `None`: these have no blocks of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_blocks_used: Option<u64>,
    /// Prefix-cache statistics. A server with several API keys does not report them; use [`Pool::hits`].
    #[serde(skip)]
    pub hits: Option<Hits>,
}

/// Prompt tokens since the server started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hits {
    /// Tokens that were looked up.
    pub queried_tokens: u64,
    /// Looked-up tokens that were found in the cache, so not computed.
    pub hit_tokens: u64,
}

impl Pool {
    /// Queries a paged server.
    ///
    /// # Errors
    ///
    /// The server is not paged, or a counter is missing.
    pub fn of_server(server: &Server) -> Result<Pool> {
        Pool::of_props(&server.get("/props")?.1)
    }

    /// Parses an answer of `/props`.
    ///
    /// # Errors
    ///
    /// It has no `kv_pool`, or a counter is missing.
    pub fn of_props(props: &Value) -> Result<Pool> {
        Pool::if_paged(props)?.ok_or_else(|| unreported("no `kv_pool`", props))
    }

    /// As [`Pool::of_props`]; `None` for a server that is not paged.
    ///
    /// # Errors
    ///
    /// `kv_pool` exists, but a counter is missing.
    pub fn if_paged(props: &Value) -> Result<Option<Pool>> {
        props.get("kv_pool").map(Pool::parse).transpose()
    }

    /// Parses `kv_pool` itself.
    ///
    /// # Errors
    ///
    /// A counter is missing, or is not a number.
    pub fn parse(pool: &Value) -> Result<Pool> {
        let wrong = |error: serde_json::Error| unreported(&error.to_string(), pool);
        let says_hits = pool.get("queried_tokens").or_else(|| pool.get("hit_tokens")).is_some();
        let hits = says_hits.then(|| Hits::deserialize(pool)).transpose().map_err(wrong)?;
        Ok(Pool { hits, ..Pool::deserialize(pool).map_err(wrong)? })
    }

    /// Returns the prefix-cache statistics.
    ///
    /// # Errors
    ///
    /// The server does not report them.
    pub fn hits(&self) -> Result<Hits> {
        self.hits.ok_or_else(|| unreported("missing fields `queried_tokens`, `hit_tokens`", &json!(self)))
    }

    /// Returns whether no request and no retained sequence holds a block.
    pub fn is_at_rest(&self) -> bool {
        self.blocks_used == 0 && self.window_blocks_used.unwrap_or_default() == 0
    }

    /// Returns the fraction of blocks that hold content.
    pub fn filled(&self) -> f64 {
        (self.blocks_used + self.blocks_retained) as f64 / self.block_count.max(1) as f64
    }
}

/// Checks that a server which was started with `--kv-paged` pages its cache. One that runs unpaged could reach the
/// goals and keep the guarantees of a paged cache, and the result would be meaningless.
///
/// # Errors
///
/// It runs unpaged, or does not answer.
pub fn must_be_paged(server: &Server) -> Result<()> {
    let (status, props) = server.get("/props")?;
    // With API keys the properties are not public; the log is.
    let is_paged = match status {
        200 => props.get("kv_pool").is_some(),
        _ => !server.log_text()?.contains(UNPAGED),
    };
    match is_paged {
        true => Ok(()),
        false => {
            Err(Error::no("the server runs unpaged despite `--kv-paged`; the result would be meaningless"))
        }
    }
}

/// Checks that the layers with a sliding window of a server have blocks of their own. One that gives them cells for all
/// tokens would answer as well.
///
/// # Errors
///
/// They have none, or the server does not answer.
pub fn must_have_own_windows(server: &Server) -> Result<()> {
    let (status, props) = server.get("/props")?;
    // With API keys the properties are not public; the log is.
    let are_own = match status {
        200 => props["kv_pool"]["window_block_count"].as_u64() > Some(0),
        _ => says_own_windows(server)?,
    };
    match are_own {
        true => Ok(()),
        false => Err(Error::no(
            "the layers with a sliding window have no blocks of their own; the result would be meaningless",
        )),
    }
}

/// Whether a server with these arguments has to page its cache: buffers of their own for each sequence cannot be paged.
pub fn should_be_paged(arguments: &[&str]) -> bool {
    arguments.contains(&"--kv-paged") && !arguments.contains(&"--no-kv-unified")
}

/// Words of the log of a server that was started with `--kv-paged` and cannot page its cache.
const UNPAGED: &str = "runs unpaged, because";

/// Looks for the words of such a server in its log, which is written with a delay.
fn says_own_windows(server: &Server) -> Result<bool> {
    for _ in 0..40 {
        if server.log_text()?.contains(OWN_WINDOWS) {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(false)
}

/// Words of the log of a server whose layers with a sliding window have blocks of their own.
const OWN_WINDOWS: &str = "--kv-paged: the layers with a sliding window of";

fn unreported(what: &str, found: &Value) -> Error {
    Error::no(format!("the server does not say what is in its pool: {what}"))
        .detail(format!("expected `kv_pool` with its counts in /props; found {found}"))
        .hint("cargo xtask build --variant paged")
}

impl fmt::Display for Pool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pool { block_count, blocks_used, blocks_retained, blocks_empty, evicted_blocks, .. } = self;
        write!(out, "{blocks_used} of {block_count} blocks used, {blocks_retained} retained, ")?;
        write!(out, "{blocks_empty} empty, {evicted_blocks} evicted so far")?;
        if let Some(used) = self.window_blocks_used {
            write!(out, ", {used} blocks of windows used")?;
        }
        match self.hits {
            Some(Hits { queried_tokens, hit_tokens }) => {
                write!(out, ", {hit_tokens} of {queried_tokens} tokens found")
            }
            None => Ok(()),
        }
    }
}

/// The statistics of an idle pool of 16 blocks, for the tests of every consumer.
pub fn example() -> Value {
    json!({ "block_count": 16, "block_size": 64, "blocks_used": 0, "blocks_used_peak": 9, "blocks_retained": 12,
            "blocks_empty": 4, "evicted_blocks": 3, "queried_tokens": 500, "hit_tokens": 200 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(name: &str) -> Value {
        let mut pool = example();
        pool.as_object_mut().unwrap().remove(name).unwrap();
        pool
    }

    #[test]
    fn a_pool_is_read_and_what_is_new_in_it_does_no_harm() {
        let mut report = example();
        report["new"] = 1.into();
        let pool = Pool::of_props(&json!({ "kv_pool": report })).unwrap();
        assert_eq!((pool.block_count, pool.block_size, pool.blocks_used_peak), (16, 64, 9));
        assert_eq!(pool.hits().unwrap(), Hits { queried_tokens: 500, hit_tokens: 200 });
        assert!((pool.filled() - 0.75).abs() < 1e-9);
        let words = "0 of 16 blocks used, 12 retained, 4 empty, 3 evicted so far, 200 of 500 tokens found";
        assert_eq!(pool.to_string(), words);
    }

    #[test]
    fn blocks_of_windows_are_in_use_too() {
        let mut report = example();
        assert!(Pool::parse(&report).unwrap().is_at_rest());
        report["window_blocks_used"] = 2.into();
        let pool = Pool::parse(&report).unwrap();
        assert!(!pool.is_at_rest());
        assert!(pool.to_string().contains("3 evicted so far, 2 blocks of windows used, 200 of"), "{pool}");
        report["window_blocks_used"] = "2".into();
        assert!(Pool::parse(&report).is_err());
    }

    #[test]
    fn every_count_that_is_missing_is_named() {
        let names = example().as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(names.len(), 9);
        for name in names {
            let error = Pool::parse(&without(&name)).unwrap_err().to_string();
            assert!(error.contains(&format!("missing field `{name}`")), "{name}: {error}");
        }
        let mut text = example();
        text["blocks_used"] = "0".into();
        assert!(Pool::parse(&text).is_err());
    }

    #[test]
    fn a_server_with_several_keys_says_no_hits() {
        let mut report = without("hit_tokens");
        report.as_object_mut().unwrap().remove("queried_tokens");
        let pool = Pool::parse(&report).unwrap();
        assert!(pool.hits().unwrap_err().to_string().contains("`hit_tokens`"));
    }

    #[test]
    fn a_server_has_to_be_paged_if_its_arguments_say_so_and_it_can() {
        assert!(should_be_paged(&["-np", "1", "--kv-paged"]));
        assert!(!should_be_paged(&["-np", "1"]) && !should_be_paged(&["--kv-paged", "--no-kv-unified"]));
    }

    #[test]
    fn stock_has_none() {
        let stock = json!({ "total_slots": 4 });
        assert_eq!(Pool::if_paged(&stock).unwrap(), None);
        assert!(Pool::of_props(&stock).unwrap_err().to_string().contains("no `kv_pool`"));
        assert!(Pool::if_paged(&json!({ "kv_pool": {} })).is_err());
    }
}
