//! The store without the objects that no pin needs.

use std::collections::BTreeSet;
use std::path::Path;

use super::command::git;
use crate::error::Result;

/// Where the store remembers pins: below each, a ref with the id of a pin's tree.
const PINS: [&str; 2] = ["refs/espalier/pins/", "refs/espalier/pin-commits/"];

/// The refs of pins whose tree is none of `trees`.
pub fn stale_refs(store: &Path, trees: &BTreeSet<String>) -> Result<Vec<String>> {
    let said = git(store).args(["for-each-ref", "--format=%(refname)"]).args(PINS).success()?;
    let is_stale = |name: &&str| name.rsplit('/').next().is_some_and(|tree| !trees.contains(tree));
    Ok(crate::series::lossy(&said).lines().filter(is_stale).map(str::to_string).collect())
}

/// How many bytes of objects nothing leads to once the refs in `without` are gone.
pub fn unreachable_bytes(store: &Path, without: &[String]) -> Result<u64> {
    let without = without.iter().map(|name| format!("--exclude={name}"));
    let run = git(store).args(["rev-list", "--objects", "--disk-usage"]).args(without).arg("--all");
    let reachable: u64 = crate::series::lossy(&run.success()?).trim().parse().unwrap_or(0);
    let said = git(store).args(["count-objects", "-v"]).success()?;
    let said = crate::series::lossy(&said).into_owned();
    let count = |key: &str| said.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
    let all = (count("size:").unwrap_or(0) + count("size-pack:").unwrap_or(0)) * 1024;
    Ok(all.saturating_sub(reachable))
}

/// Drops the refs `stale`, and then every object that nothing leads to. Killed at any moment, what is needed is there.
pub fn collect(store: &Path, stale: &[String]) -> Result<()> {
    for name in stale {
        git(store).args(["update-ref", "-d", name]).success()?;
    }
    git(store).args(["repack", "-a", "-d", "-q"]).success()?;
    git(store).args(["prune", "--expire=now"]).success().map(drop)
}
