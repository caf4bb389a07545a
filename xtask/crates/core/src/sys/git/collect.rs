//! Garbage collection of the object store: objects that no pin needs.

use std::collections::BTreeSet;
use std::path::Path;

use super::command::git;
use crate::error::Result;

/// Ref prefixes of pins in the store: below each, one ref per pin, named by the id of its tree.
const PINS: [&str; 2] = ["refs/espalier/pins/", "refs/espalier/pin-commits/"];

/// Returns the refs of pins whose tree is not in `trees`.
pub fn stale_refs(store: &Path, trees: &BTreeSet<String>) -> Result<Vec<String>> {
    let stdout = git(store).args(["for-each-ref", "--format=%(refname)"]).args(PINS).success()?;
    let is_stale = |name: &&str| name.rsplit('/').next().is_some_and(|tree| !trees.contains(tree));
    Ok(espalier_series::lossy(&stdout).lines().filter(is_stale).map(str::to_string).collect())
}

/// Returns the size in bytes of the objects that become unreachable once the refs in `without` are deleted.
pub fn unreachable_bytes(store: &Path, without: &[String]) -> Result<u64> {
    let without = without.iter().map(|name| format!("--exclude={name}"));
    let run = git(store).args(["rev-list", "--objects", "--disk-usage"]).args(without).arg("--all");
    let reachable: u64 = espalier_series::lossy(&run.success()?).trim().parse().unwrap_or(0);
    let stdout = git(store).args(["count-objects", "-v"]).success()?;
    let stdout = espalier_series::lossy(&stdout).into_owned();
    let count =
        |key: &str| stdout.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
    let all = (count("size:").unwrap_or(0) + count("size-pack:").unwrap_or(0)) * 1024;
    Ok(all.saturating_sub(reachable))
}

/// Deletes the refs `stale`, then every unreachable object. Safe to kill at any moment: objects that are needed stay.
pub fn collect(store: &Path, stale: &[String]) -> Result<()> {
    for name in stale {
        git(store).args(["update-ref", "-d", name]).success()?;
    }
    git(store).args(["repack", "-a", "-d", "-q"]).success()?;
    git(store).args(["prune", "--expire=now"]).success().map(drop)
}
