//! `pins.toml`: the upstream trees, variants and tools that builds use.

mod edit;
mod gate;
mod generation;
mod package;
mod read;
mod revision;
mod shared;
mod verification;
mod web;
mod write;

use std::collections::{BTreeMap, BTreeSet};

pub use edit::move_pin;
use espalier_series::ObjectId;
pub use generation::Generation;
pub use package::{Content, Package, Registry};
use read::{RawPins, Reader};
pub(in crate::config) use revision::is_ref_name;
pub use revision::{Revision, TagName, short_name};
pub use verification::{UNVERIFIABLE, Verification};
pub use write::{NewPin, NewSource};

use super::name::Name;
use super::snippet::SourceText;
use crate::error::{Error, Result};

/// `pins.toml`, checked.
#[derive(Clone, Debug)]
pub struct Pins {
    /// The variant that is built when none is named.
    pub default_variant: Name,
    /// Pins by name.
    pub pins: BTreeMap<Name, Pin>,
    /// Variants by name.
    pub variants: BTreeMap<Name, Variant>,
    /// Tools that are installed when the machine's own are missing or too old.
    pub tools: BTreeMap<Name, Tool>,
}

/// One exact upstream tree and the sources of its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The name in `[pins.NAME]`.
    pub name: Name,
    /// The upstream project, such as `llama.cpp`.
    pub upstream: String,
    /// The commit that the tree belongs to.
    pub revision: Revision,
    /// The git tree id; it is authoritative whatever the source.
    pub tree: ObjectId,
    /// Sources, tried in this order.
    pub sources: Vec<Source>,
    /// The pin that the patches on this one were made for, if this one is a generation of it.
    pub generation_of: Option<Name>,
}

/// One source of a pin's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A git remote; only the pinned commit is fetched, without its history if the remote allows it.
    Git {
        /// The URL passed to `git fetch`.
        url: String,
    },
    /// A package of a registry.
    Package(Package),
    /// A repository or a bundle on this machine.
    Path {
        /// Relative to the root.
        path: String,
    },
}

impl Source {
    /// A git remote at `url`.
    ///
    /// # Errors
    ///
    /// A sentence, when git would interpret it as an option, or as a remote helper program (`ext::`, `fd::`) to run.
    pub fn git(url: &str) -> std::result::Result<Source, &'static str> {
        let is_helper = url.split_once("::").is_some_and(|(name, _)| {
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte))
        });
        match (url.starts_with('-'), is_helper) {
            (true, _) => Err("a URL, which does not begin with `-`"),
            (_, true) => Err("a URL, and no `NAME::` of a program that git would run"),
            _ => Ok(Source::Git { url: url.to_string() }),
        }
    }

    /// Description for display, when the commit called `name` is fetched from it.
    pub fn describe(&self, name: &str) -> String {
        match self {
            Source::Git { url } => format!("git {url}"),
            Source::Package(package) => package.describe(name),
            Source::Path { path } => format!("path {path}"),
        }
    }
}

impl Pin {
    /// Descriptions of its sources for display.
    pub fn describe_sources(&self) -> Vec<String> {
        let name = self.revision.to_string();
        self.sources.iter().map(|source| source.describe(&name)).collect()
    }
}

/// A named stack: one pin, a patch series, overlays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The name in `[variants.NAME]`.
    pub name: Name,
    /// The pin at the bottom of the stack.
    pub pin: Name,
    /// The variant that this one is on another generation: its stack, gate and settings are those of that variant.
    pub like: Option<Name>,
    /// The variant whose series comes first.
    pub extends: Option<Name>,
    /// Folder of this variant's own patches, relative to the root.
    pub patches: Option<String>,
    /// Folders whose content is copied into the patched tree, relative to the root.
    pub overlays: Vec<String>,
    /// Whether the kernels library is built and linked.
    pub kernels: bool,
    /// Whether the transport in Rust is built and linked.
    pub front: bool,
    /// The variant whose output this one has to match; `None` if it is not gated.
    pub gate: Option<Name>,
    /// The flavors that the matrix builds for it; `None` for all.
    pub flavors: Option<Vec<Name>>,
    /// CMake cache entries that replace those of the flavor, also in the variants that extend this one.
    pub cmake: BTreeMap<String, String>,
}

impl Variant {
    /// Whether the matrix builds it for `flavor`.
    #[must_use]
    pub fn is_for(&self, flavor: &Name) -> bool {
        self.flavors.as_ref().is_none_or(|flavors| flavors.contains(flavor))
    }
}

/// A pinned build tool, installed from PyPI when the machine's own is missing or too old.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The program's name.
    pub name: Name,
    /// The package's name; by default that of the program.
    pub package: String,
    /// The oldest acceptable version of the machine's own.
    pub at_least: Version,
    /// Exact version to install.
    pub version: String,
    /// Path of the real program inside the installed package.
    pub program: String,
    /// sha256 of every wheel that may be installed, one for each platform.
    pub sha256: Vec<String>,
}

/// A dotted version; only the first three numbers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub [u32; 3]);

impl Version {
    /// Parses the first `N.N` or `N.N.N` in `text`, such as the output of `--version`.
    pub fn find_in(text: &str) -> Option<Version> {
        text.split(|c: char| !(c.is_ascii_digit() || c == '.')).find_map(Version::parse)
    }

    fn parse(word: &str) -> Option<Version> {
        let numbers: Vec<u32> = word.split('.').map_while(|part| part.parse().ok()).take(3).collect();
        match numbers[..] {
            [major, minor] => Some(Version([major, minor, 0])),
            [major, minor, patch] => Some(Version([major, minor, patch])),
            _ => None,
        }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}.{}.{}", self.0[0], self.0[1], self.0[2])
    }
}

impl Pins {
    /// Reads and checks the text of `pins.toml`.
    pub fn parse(source: SourceText<'_>) -> Result<Pins> {
        let raw: RawPins = source.parse_toml()?;
        let reader = Reader { source, raw: &raw };
        reader.read()
    }

    /// The variant called `name`, or the default one.
    pub fn variant(&self, name: Option<&str>) -> Result<&Variant> {
        let name = name.unwrap_or(&self.default_variant);
        self.variants.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.variants.keys().map(Name::as_str).collect();
            Error::usage(format!("there is no variant `{name}` in `pins.toml`"))
                .hint(format!("use one of: {}", known.join(", ")))
        })
    }

    /// The folders of all variants' own patches.
    pub fn series_folders(&self) -> impl Iterator<Item = &str> {
        // On a generation, the folder is that of another variant.
        let owners = self.variants.values().filter(|variant| variant.like.is_none());
        owners.filter_map(|variant| variant.patches.as_deref())
    }

    /// Every variant that has the own patches of `variant`: itself, those that name the same folder, and all that
    /// extend one of these.
    pub fn with_patches_of<'a>(&'a self, variant: &'a Variant) -> impl Iterator<Item = &'a Variant> {
        let has_patches_of = move |other: &&'a Variant| {
            let folder = variant.patches.as_deref();
            other.name == variant.name
                || folder.is_some_and(|folder| self.patch_folders(other).contains(&folder))
        };
        self.variants.values().filter(has_patches_of)
    }

    /// One variant for every series on `pin`, parents first. Variants with the same patch folders share one series; a
    /// folder of several variants has the same pin and the same folders below it in all of them. A pin moves only with
    /// all of them.
    pub fn series_on(&self, pin: &Name) -> Vec<&Variant> {
        let on_pin =
            self.variants.values().filter(|variant| variant.pin == *pin && variant.patches.is_some());
        let mut series: Vec<&Variant> = on_pin.collect();
        series.sort_by_key(|variant| (self.stack(variant).len(), &variant.name));
        let mut known = BTreeSet::new();
        series.retain(|variant| known.insert(self.patch_folders(variant)));
        series
    }

    /// The nearest variant with patches that `variant` extends; `None` when `variant` has no patches itself.
    pub fn parent_series<'a>(&'a self, variant: &'a Variant) -> Option<&'a Variant> {
        variant.patches.as_ref()?;
        self.stack(variant).into_iter().rev().skip(1).find(|below| below.patches.is_some())
    }

    /// The folders of the patches of `variant`, in the order in which they are applied.
    pub fn patch_folders<'a>(&'a self, variant: &'a Variant) -> Vec<&'a str> {
        self.stack(variant).into_iter().filter_map(|variant| variant.patches.as_deref()).collect()
    }

    /// The stack of `variant`, the oldest ancestor first.
    pub fn stack<'a>(&'a self, variant: &'a Variant) -> Vec<&'a Variant> {
        let mut stack = vec![variant];
        while let Some(parent) = stack.last().and_then(|child| child.extends.as_ref()) {
            // Cycles and unknown parents were rejected when the file was read.
            match self.variants.get(parent) {
                Some(parent) => stack.push(parent),
                None => break,
            }
        }
        stack.reverse();
        stack
    }

    /// CMake cache entries of `variant`; a variant's own replace those of the variants that it extends.
    pub fn cache_entries<'a>(&'a self, variant: &'a Variant) -> BTreeMap<String, String> {
        self.stack(variant).into_iter().flat_map(|variant| variant.cmake.clone()).collect()
    }

    /// The pin of `variant`. It exists: the file was checked when it was read.
    pub fn pin_of(&self, variant: &Variant) -> &Pin {
        &self.pins[&variant.pin]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
default-variant = "paged"

[pins.llama]
upstream = "llama.cpp"
tag = "v0.4.0"
tree = "0424752fbbc3bb01469ec830a30f2bc035497cd4"
sources = [
    { git = "https://example.invalid/llama.cpp" },
    { npm = "some-package", member = "package/a.bundle", bytes = 10, versions = { "v0.4.0" = "1.2.3" } },
]

[variants.stock]
pin = "llama"

[variants.paged]
extends = "stock"
patches = "patches/paged"
"#;

    fn parse(text: &str) -> Result<Pins> {
        Pins::parse(SourceText { name: "pins.toml", text })
    }

    fn refusal(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "the good text has no {from:?}");
        parse(&GOOD.replace(from, to)).expect_err("must be refused").to_string()
    }

    #[test]
    fn a_good_file_is_read_whole() {
        let pins = parse(GOOD).unwrap();
        let paged = pins.variant(None).unwrap();
        assert_eq!(paged.name.as_str(), "paged");
        assert_eq!(paged.pin.as_str(), "llama");
        let stack: Vec<&str> = pins.stack(paged).iter().map(|variant| variant.name.as_str()).collect();
        assert_eq!(stack, ["stock", "paged"]);
        assert_eq!(pins.pin_of(paged).sources.len(), 2);
    }

    /// The good text with a source of pip, whose keys `change` changes.
    fn with_pip(change: impl Fn(&str) -> String) -> Result<Pins> {
        let digest = "ab".repeat(32);
        let id = "0ACEB8D1".repeat(5);
        let source = format!(
            "{{ pip = \"some-package\", member = \".git/modules/x\", bytes = 10, versions = {{ \"{id}\" = \"1.2\", \
             \"v1\" = \"1.2\" }}, sha256 = {{ \"1.2\" = \"{digest}\" }} }},\n]\n"
        );
        parse(&GOOD.replacen("]\n\n", &format!("    {}\n", change(&source)), 1))
    }

    #[test]
    fn a_package_of_pip_has_a_digest_for_each_version() {
        let pins = with_pip(str::to_string).unwrap();
        let sources = &pins.pins["llama"].sources;
        let Some(Source::Package(package)) = sources.last() else { panic!("{sources:?}") };
        // Commit ids have one spelling.
        assert_eq!(package.version_of(&"0aceb8d1".repeat(5)), Some("1.2"));
        assert_eq!(sources[2].describe("v1"), "pip some-package==1.2");
        let refused = |from: &str, to: &str| {
            let refused = with_pip(|source| {
                assert!(source.contains(from), "{source}");
                source.replace(from, to)
            });
            refused.expect_err("must be refused").to_string()
        };
        for (from, to, label) in [
            ("sha256 = { \"1.2\"", "sha256 = { \"1.3\"", "`sha256` has no digest for `1.2` of `versions`"),
            (
                "{ \"1.2\" = \"abab",
                "{ \"1.3\" = \"ab\", \"1.2\" = \"abab",
                "64 lower-case hexadecimal digits",
            ),
            (
                ", \"v1\" = \"1.2\" }",
                ", \"v 1\" = \"1.2\" }",
                "the keys of `versions` are tags and full commit ids",
            ),
            ("some-package", "--index-url=x", "letters, digits, `.`, `_`, `+` and `-` only"),
            ("\"1.2\"", "\"1.2 @ x\"", "letters, digits, `.`, `_`, `+` and `-` only"),
            (".git/modules/x", "../x", "`member` has to be a path inside of its folder"),
            ("pip = ", "npm = ", "an `npm` source has no `sha256`"),
            ("pip = ", "git = ", "a source is `git = URL`, or"),
            ("member = \".git/modules/x\",", "", "a source is `git = URL`, or"),
            ("member = ", "files = \"x\", member = ", "a source is `git = URL`, or"),
            (
                "member = \".git/modules/x\"",
                "files = \"../x\"",
                "`files` has to be a path inside of its folder",
            ),
        ] {
            let message = refused(from, to);
            assert!(message.contains(label), "{label}: {message}");
        }
        let unused = format!("sha256 = {{ \"1.3\" = \"{}\", ", "cd".repeat(32));
        assert!(
            refused("sha256 = { ", &unused).contains("`sha256` has `1.3`, which `versions` does not have")
        );
    }

    #[test]
    fn a_package_has_a_repository_or_files() {
        let content = |from: &str, to: &str| {
            let pins = with_pip(|source| source.replace(from, to)).unwrap();
            match pins.pins["llama"].sources.last() {
                Some(Source::Package(Package {
                    registry: Registry::Pip { content, .. }, member, ..
                })) => (*content, member.clone()),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(content("", ""), (Content::Repository, ".git/modules/x".to_string()));
        assert_eq!(
            content("member = \".git/modules/x\"", "files = \"vendor/x\""),
            (Content::Files, "vendor/x".to_string())
        );
        let npm = "npm = \"some-package\", member = \"package/a.bundle\"";
        let message = parse(&GOOD.replace(npm, &npm.replace("member", "files"))).unwrap_err().to_string();
        assert!(message.contains("a source is `git = URL`, or"), "{message}");
        let message =
            parse(&GOOD.replace("llama.cpp\" },", "llama.cpp\", files = \"x\" },")).unwrap_err().to_string();
        assert!(message.contains("a source is `git = URL`, or"), "{message}");
    }

    #[test]
    fn cmake_entries_are_inherited_and_replaced() {
        let child = "\n[variants.child]\nextends = \"paged\"\ncmake = { B = \"3\" }\n";
        let text = format!("{GOOD}cmake = {{ A = \"1\", B = \"2\" }}\n{child}");
        let pins = parse(&text).unwrap();
        let entries = |name: &str| pins.cache_entries(pins.variant(Some(name)).unwrap());
        let of = |entries: &[(&str, &str)]| {
            entries.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
        };
        assert_eq!(entries("stock"), of(&[]));
        assert_eq!(entries("paged"), of(&[("A", "1"), ("B", "2")]));
        assert_eq!(entries("child"), of(&[("A", "1"), ("B", "3")]));
    }

    #[test]
    fn a_typo_is_underlined() {
        insta::assert_snapshot!(refusal("tree = \"0424", "tre = \"0424"), @r#"
        error: invalid `pins.toml`
           --> pins.toml:7:1
            |
          7 | tre = "0424752fbbc3bb01469ec830a30f2bc035497cd4"
            | ^^^ unknown field `tre`, expected one of `upstream`, `tag`, `commit`, `tree`, `sources`, `generation-of`
        "#);
    }

    #[test]
    fn a_short_tree_id_is_underlined() {
        insta::assert_snapshot!(refusal("0424752fbbc3bb01469ec830a30f2bc035497cd4", "0424752f"), @r#"
        error: invalid `pins.toml`
           --> pins.toml:7:8
            |
          7 | tree = "0424752f"
            |        ^^^^^^^^^^ a tree id is 40 hexadecimal digits: `git rev-parse TAG^{tree}`
        "#);
    }

    #[test]
    fn a_pin_has_a_tag_or_a_commit() {
        let id = "0aceb8d1".repeat(5);
        let pinned = |line: &str| parse(&GOOD.replace("tag = \"v0.4.0\"", line));
        let pins = pinned(&format!("commit = \"{id}\"")).unwrap();
        assert_eq!(pins.pins["llama"].revision, Revision::parse(&id).unwrap());
        insta::assert_snapshot!(pinned("commit = \"0aceb8d1\"").unwrap_err(), @r#"
        error: invalid `pins.toml`
           --> pins.toml:6:10
            |
          6 | commit = "0aceb8d1"
            |          ^^^^^^^^^^ a commit id is 40 hexadecimal digits: `git rev-parse REVISION^{commit}`
        "#);
        insta::assert_snapshot!(pinned("").unwrap_err(), @r#"
        error: invalid `pins.toml`
           --> pins.toml:7:8
            |
          7 | tree = "0424752fbbc3bb01469ec830a30f2bc035497cd4"
            |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ a pin names the commit of its tree too: `tag = NAME` or `commit = ID`
        "#);
        insta::assert_snapshot!(pinned(&format!("tag = \"v1\"\ncommit = \"{id}\"")).unwrap_err(), @r#"
        error: invalid `pins.toml`
           --> pins.toml:7:10
            |
          7 | commit = "0aceb8d10aceb8d10aceb8d10aceb8d10aceb8d1"
            |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ a pin has a `tag` or a `commit`, not both
        "#);
    }

    /// An older version of this tool wrote this for a commit without a tag.
    #[test]
    fn a_commit_given_as_a_tag_is_refused_with_the_right_key() {
        insta::assert_snapshot!(refusal("tag = \"v0.4.0\"", &format!("tag = \"{}\"", "0aceb8d1".repeat(5))), @r#"
        error: invalid `pins.toml`
           --> pins.toml:6:7
            |
          6 | tag = "0aceb8d10aceb8d10aceb8d10aceb8d10aceb8d1"
            |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ this is a commit id, not a tag
          next: write `commit = "0aceb8d10aceb8d10aceb8d10aceb8d10aceb8d1"` in place of it
        "#);
    }

    #[test]
    fn unknown_names_and_circles_are_refused() {
        assert!(refusal("extends = \"stock\"", "extends = \"stok\"").contains("no variant has this name"));
        assert!(refusal("extends = \"stock\"", "extends = \"paged\"").contains("in a circle"));
        assert!(refusal("pin = \"llama\"", "pin = \"lama\"").contains("no pin has this name"));
        assert!(refusal("\"patches/paged\"", "\"../patches\"").contains("without `..`"));
        assert!(refusal("default-variant = \"paged\"", "default-variant = \"x\"").contains("no variant"));
        assert!(refusal("tag = \"v0.4.0\"", "tag = \"--upload-pack=x y\"").contains("a tag has"));
    }

    #[test]
    fn a_pin_has_one_series_for_each_chain_of_folders_and_parents_come_first() {
        let text = GOOD.to_string()
            + "[variants.a-child]\nextends = \"paged\"\npatches = \"patches/child\"\n"
            + "[variants.same-patches]\nextends = \"stock\"\npatches = \"patches/paged\"\n"
            + "[variants.only-overlays]\nextends = \"paged\"\noverlays = [\"overlay/more\"]\n";
        let pins = Pins::parse(SourceText { name: "pins.toml", text: &text }).unwrap();
        let names: Vec<&str> =
            pins.series_on(&pins.variants["stock"].pin).iter().map(|variant| variant.name.as_str()).collect();
        assert_eq!(names, ["paged", "a-child"]);
        let parent = |name: &str| pins.parent_series(&pins.variants[name]).map(|parent| parent.name.as_str());
        assert_eq!(parent("a-child"), Some("paged"));
        for name in ["stock", "paged", "same-patches", "only-overlays"] {
            assert_eq!(parent(name), None, "{name}");
        }
        assert!(pins.series_on(&Name::new("another").unwrap()).is_empty());
        let with_patches_of = |name: &str| -> Vec<&str> {
            pins.with_patches_of(&pins.variants[name]).map(|variant| variant.name.as_str()).collect()
        };
        for name in ["paged", "same-patches"] {
            assert_eq!(
                with_patches_of(name),
                ["a-child", "only-overlays", "paged", "same-patches"],
                "{name}"
            );
        }
        assert_eq!(with_patches_of("a-child"), ["a-child"]);
    }

    #[test]
    fn versions_are_found_in_what_tools_print() {
        assert_eq!(Version::find_in("cmake version 3.25.1\n"), Some(Version([3, 25, 1])));
        assert_eq!(Version::find_in("1.13.2.git.kitware"), Some(Version([1, 13, 2])));
        assert_eq!(Version::find_in("no numbers"), None);
        assert!(Version([3, 5, 0]) < Version([3, 28, 0]));
    }
}
