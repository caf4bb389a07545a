//! Statistics of ccache and sccache for a build: cache hits and misses.

use serde_json::Value;

/// The objects of one build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// Cache hits.
    pub found: u64,
    /// Cache misses, which were compiled.
    pub compiled: u64,
}

impl Objects {
    /// Parses the log that ccache writes to `CCACHE_STATSLOG`: one line for each counted event.
    #[must_use]
    pub fn of_ccache(log: &str) -> Objects {
        let count = |wanted: &[&str]| log.lines().filter(|line| wanted.contains(&line.trim())).count() as u64;
        Objects {
            found: count(&["direct_cache_hit", "preprocessed_cache_hit"]),
            compiled: count(&["cache_miss"]),
        }
    }

    /// Parses the output of `sccache --show-stats --stats-format json`, which counts since its server started.
    #[must_use]
    pub fn of_sccache(answer: &[u8]) -> Option<Objects> {
        let answer: Value = serde_json::from_slice(answer).ok()?;
        let sum = |name: &str| {
            let counts = answer["stats"][name]["counts"].as_object()?;
            Some(counts.values().filter_map(Value::as_u64).sum())
        };
        Some(Objects { found: sum("cache_hits")?, compiled: sum("cache_misses")? })
    }

    /// The difference since `before`.
    #[must_use]
    pub fn since(self, before: Objects) -> Objects {
        Objects {
            found: self.found.saturating_sub(before.found),
            compiled: self.compiled.saturating_sub(before.compiled),
        }
    }

    /// Number of requested objects.
    #[must_use]
    pub fn all(self) -> u64 {
        self.found + self.compiled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ccache_counts_in_lines() {
        let log = "# a.c\ncache_miss\ndirect_cache_miss\nlocal_storage_miss\n# b.c\ndirect_cache_hit\nlocal_storage_hit\n\
                   # c.c\ndirect_cache_miss\npreprocessed_cache_hit\n# d.o\ncalled_for_link\n";
        assert_eq!(Objects::of_ccache(log), Objects { found: 2, compiled: 1 });
    }

    #[test]
    fn sccache_counts_by_language() {
        let answer = br#"{"stats":{"cache_hits":{"counts":{"C/C++":5,"Rust":1}},"cache_misses":{"counts":{"C/C++":2}}}}"#;
        let before = Objects { found: 4, compiled: 2 };
        let now = Objects::of_sccache(answer).map(|objects| objects.since(before));
        assert_eq!(now, Some(Objects { found: 2, compiled: 0 }));
        assert_eq!(Objects::of_sccache(b"{}"), None);
    }
}
