//! Garbage collection: selects generated files that no pin, variant, flavor or toolchain uses any more and, on request,
//! caches whose removal only costs time.

use std::collections::BTreeSet;

use crate::config::layout::UNDO;

/// A file or folder in one of our generated folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedFile {
    /// The folder that it is in, such as `build`; empty for a folder that is removed as a whole.
    pub folder: String,
    /// Its name in that folder.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Whole days since it was last written to.
    pub idle_days: u64,
}

/// Names of everything that the project still uses.
#[derive(Clone, Debug, Default)]
pub struct Needed {
    /// Variants of `pins.toml`.
    pub variants: BTreeSet<String>,
    /// Every `VARIANT-FLAVOR` pair.
    pub builds: BTreeSet<String>,
    /// Git trees of the web pages' sources; `None` when they cannot be determined, in which case all pages are kept.
    pub pages: Option<BTreeSet<String>>,
    /// Folders of the pinned tools.
    pub tools: BTreeSet<String>,
    /// Folders of the toolchains.
    pub toolchains: BTreeSet<String>,
    /// Folders of the pinned models.
    pub models: BTreeSet<String>,
    /// Trees in which a person has edited files.
    pub edited: BTreeSet<String>,
    /// Whether the record of the last change is needed, by `undo` or by the commands that it prints.
    pub undo: bool,
}

/// Limits that select caches for removal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Build folders and cargo target folders that were written to within this many days are kept.
    pub keep_days: Option<u64>,
    /// Maximum total size of what is kept; the caches that have been idle longest are removed first, downloads last.
    pub max_bytes: Option<u64>,
}

/// A file or folder to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The file or folder.
    pub found: GeneratedFile,
    /// Reason why it is not needed.
    pub why: String,
}

/// Classification of a found file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is in use, or belongs to a person.
    Stays,
    /// Nothing uses it, for this reason.
    Goes(&'static str),
    /// It saves compiling.
    Cache,
    /// It saves downloading. The time of its last use is unknown.
    Download,
}

/// Folders that checks and long steps leave behind and create again when needed.
pub const LEFTOVERS: [&str; 9] =
    ["bench", "fuzz", "gate", "logs", "page", "suites", "tested", "tmp", "twice"];

/// Folders whose entries are judged one by one.
pub const LISTED: [&str; 10] =
    ["applied", "build", "cargo", "dist", "edit-before", "images", "models", "tools", "trees", "ui"];

/// Names of the target folders of our nested cargo builds.
pub const CARGO: [&str; 5] = ["bench", "checks", "front", "health", "kernels"];

/// The folder of the toolchains, which is beside the others.
pub const TOOLCHAINS: &str = "toolchains";

/// Returns the removals among `found`. `other_bytes` is the size of everything else, which counts towards the maximum
/// size.
#[must_use]
pub fn plan(found: &[GeneratedFile], needed: &Needed, limits: Limits, other_bytes: u64) -> Vec<Removal> {
    let mut removals = Vec::new();
    let mut caches = Vec::new();
    for one in found {
        let idle = limits.keep_days.is_some_and(|days| one.idle_days > days);
        let goes = |why: String| Removal { found: one.clone(), why };
        match fate(one, needed) {
            Fate::Stays => {}
            Fate::Goes(why) => removals.push(goes(why.to_string())),
            Fate::Cache if idle => {
                removals.push(goes(format!("not written to for {} days", one.idle_days)));
            }
            fate => caches.push((fate == Fate::Download, u64::MAX - one.idle_days, one)),
        }
    }
    let gone: u64 = removals.iter().map(|removal| removal.found.bytes).sum();
    let mut left = (found.iter().map(|one| one.bytes).sum::<u64>() + other_bytes).saturating_sub(gone);
    caches
        .sort_by_key(|(is_download, busy, one)| (*is_download, *busy, one.folder.clone(), one.name.clone()));
    for (.., one) in caches {
        if limits.max_bytes.is_none_or(|most| left <= most) {
            break;
        }
        left = left.saturating_sub(one.bytes);
        removals.push(Removal { found: one.clone(), why: "more than the largest size".to_string() });
    }
    removals
}

fn fate(found: &GeneratedFile, needed: &Needed) -> Fate {
    let name = found.name.as_str();
    let keep = |set: &BTreeSet<String>, why| if set.contains(name) { Fate::Stays } else { Fate::Goes(why) };
    match found.folder.as_str() {
        "" if name == UNDO && needed.undo => Fate::Stays,
        "" if name == UNDO => Fate::Goes("the record of a change of which nothing is left to undo"),
        "" => Fate::Goes(if name == "tmp" {
            "of a run that was killed"
        } else {
            "left by checks and long steps"
        }),
        "applied" if name.strip_suffix(".lock").is_some_and(|name| needed.variants.contains(name)) => {
            Fate::Stays
        }
        "applied" => Fate::Goes(NO_VARIANT),
        "build" if needed.builds.contains(name) => Fate::Cache,
        "build" | "dist" | "images" => keep(&needed.builds, "no such variant and flavor"),
        "cargo" if CARGO.contains(&name) => Fate::Cache,
        "cargo" => Fate::Goes("nothing builds there"),
        "edit-before" if is_replaced_edit(name) => Fate::Goes("an edit repository that was replaced"),
        "models" if needed.models.contains(name) => Fate::Download,
        "models" => Fate::Goes("`ci/models.toml` pins no such model"),
        "tools" if needed.tools.contains(name) => Fate::Stays,
        "tools" if is_of_a_tool(name, needed) => Fate::Goes("another version is pinned"),
        "tools" => Fate::Download,
        "trees" if needed.edited.contains(name) => Fate::Stays,
        "trees" => keep(&needed.variants, NO_VARIANT),
        "ui" => needed.pages.as_ref().map_or(Fate::Stays, |pages| keep(pages, "the page of no pinned tree")),
        TOOLCHAINS if name == "tmp" => Fate::Goes("of a run that was killed"),
        TOOLCHAINS if needed.toolchains.contains(name) => Fate::Download,
        TOOLCHAINS if has_digest(name) => Fate::Goes("`ci/toolchains.toml` defines another version"),
        _ => Fate::Stays,
    }
}

const NO_VARIANT: &str = "no such variant";

/// Whether `name` is that of an edit repository that was replaced, `VARIANT.NUMBER`.
pub fn is_replaced_edit(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.rsplit_once('.').is_some_and(|(_, number)| is_number(number))
}

/// Whether `name` is `NAME-VERSION` of a pinned tool, in another version.
fn is_of_a_tool(name: &str, needed: &Needed) -> bool {
    let tool = |folder: &str| folder.rsplit_once('-').map(|(tool, _)| tool.to_string());
    tool(name).is_some() && needed.tools.iter().any(|folder| tool(folder) == tool(name))
}

/// Whether `name` ends in a digest, which a name chosen by a person does not.
fn has_digest(name: &str) -> bool {
    let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    name.rsplit_once('-').is_some_and(|(_, digest)| digest.len() == 16 && digest.chars().all(is_hex))
}

/// Parses a size as typed: `20G`, `500M`, or bytes.
///
/// # Errors
///
/// A short description of the expected format.
pub fn size(text: &str) -> Result<u64, String> {
    let units = [("K", 1000), ("M", 1_000_000), ("G", 1_000_000_000), ("T", 1_000_000_000_000), ("", 1)];
    let read =
        |(unit, factor): &(&str, u64)| text.strip_suffix(unit)?.parse::<u64>().ok()?.checked_mul(*factor);
    units.iter().find_map(read).ok_or_else(|| "expected a size such as 20G or 500M".to_string())
}

/// Formats a size for display.
#[must_use]
pub fn shown(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, megabytes: u64, idle_days: u64) -> GeneratedFile {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        GeneratedFile { folder: folder.into(), name: name.into(), bytes: megabytes * 1_000_000, idle_days }
    }

    fn needed() -> Needed {
        let set = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<String>>();
        Needed {
            variants: set(&["paged", "stock"]),
            builds: set(&["paged-cpu", "stock-cpu"]),
            pages: Some(set(&["1111"])),
            tools: set(&["cmake-4.4", "ninja-1.13"]),
            toolchains: set(&["cuda-0123456789abcdef"]),
            models: set(&["tiny-0123456789abcdef"]),
            edited: set(&["mine"]),
            undo: true,
        }
    }

    fn gone(found: &[GeneratedFile], needed: &Needed, limits: Limits) -> Vec<String> {
        let path = |removal: Removal| format!("{}/{}", removal.found.folder, removal.found.name);
        plan(found, needed, limits, 0).into_iter().map(path).collect()
    }

    const STAY: [&str; 20] = [
        "applied/paged.lock",
        "build/paged-cpu",
        "dist/paged-cpu",
        "edit-before/paged",
        "edit-before/paged.old",
        "images/stock-cpu",
        "cargo/bench",
        "cargo/checks",
        "cargo/kernels",
        "tools/cmake-4.4",
        "tools/python-0123456789abcdef",
        "trees/paged",
        "trees/mine",
        "ui/1111",
        "models/tiny-0123456789abcdef",
        "toolchains/cuda-0123456789abcdef",
        "toolchains/my-own",
        "toolchains/my-own-but-no-digest",
        "notes/of-mine",
        "undo",
    ];

    const GO: [&str; 17] = [
        "applied/old.lock",
        "build/paged-old",
        "dist/old-cpu",
        "edit-before/paged.1",
        "images/old-cpu",
        "cargo/other",
        "tools/cmake-4.3",
        "trees/old",
        "ui/2222",
        "models/tiny-00000000000000ff",
        "toolchains/cuda-00000000000000ff",
        "toolchains/old-00000000000000ff",
        "toolchains/tmp",
        "logs",
        "gate",
        "tmp",
        "twice",
    ];

    #[test]
    fn needed_content_is_kept_and_the_rest_removed() {
        let all: Vec<GeneratedFile> = STAY.iter().chain(&GO).map(|path| found(path, 1, 100)).collect();
        let mut expected =
            GO.map(|path| if path.contains('/') { path.to_string() } else { format!("/{path}") });
        let mut gone = gone(&all, &needed(), Limits::default());
        gone.sort();
        expected.sort();
        assert_eq!(gone, expected);
        let unknown = Needed { pages: None, ..needed() };
        assert_eq!(self::gone(&[found("ui/2222", 1, 0)], &unknown, Limits::default()), [""; 0]);
        let stale = Needed { undo: false, ..needed() };
        assert_eq!(self::gone(&[found("undo", 1, 0)], &stale, Limits::default()), ["/undo"]);
    }

    #[test]
    fn caches_go_when_they_are_idle_or_too_large() {
        let all = [
            found("toolchains/cuda-0123456789abcdef", 50, 400),
            found("build/paged-cpu", 20, 3),
            found("build/stock-cpu", 20, 8),
            found("cargo/checks", 20, 5),
            found("dist/paged-cpu", 10, 90),
        ];
        let days = |days: u64| Limits { keep_days: Some(days), max_bytes: None };
        assert_eq!(gone(&all, &needed(), days(5)), ["build/stock-cpu"]);
        assert_eq!(gone(&all, &needed(), days(2)), ["build/paged-cpu", "build/stock-cpu", "cargo/checks"]);
        let most = |megabytes: u64| Limits { keep_days: None, max_bytes: Some(megabytes * 1_000_000) };
        assert_eq!(gone(&all, &needed(), most(120)), [""; 0]);
        assert_eq!(gone(&all, &needed(), most(119)), ["build/stock-cpu"]);
        assert_eq!(gone(&all, &needed(), most(80)), ["build/stock-cpu", "cargo/checks"]);
        assert_eq!(gone(&all, &needed(), most(0)).len(), 4);
        assert_eq!(plan(&all, &needed(), most(120), 1).len(), 1);
    }

    #[test]
    fn sizes_are_read() {
        let read = ["20G", "500M", "7", "0K"].map(|text| size(text).unwrap());
        assert_eq!(read, [20_000_000_000, 500_000_000, 7, 0]);
        for text in ["", "G", "-1G", "1.5G", "20GB", "99999999999T"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
