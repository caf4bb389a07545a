//! Parses and checks the text of `pins.toml`; every error points at its line.

use std::collections::{BTreeMap, BTreeSet};

use espalier_series::ObjectId;
use serde::Deserialize;
use toml::Spanned;

use super::gate::wrong_reference;
use super::shared;
use super::{Content, Package, Pin, Pins, Registry, Revision, Source, Tool, UNVERIFIABLE, Variant, Version};
use crate::config::name::Name;
use crate::config::snippet::SourceText;
use crate::config::words::{Inside, Sha256};
use crate::error::{Error, Result};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RawPins {
    default_variant: Spanned<Name>,
    pub(super) pins: BTreeMap<Name, RawPin>,
    pub(super) variants: BTreeMap<Name, RawVariant>,
    #[serde(default)]
    tools: BTreeMap<Name, RawTool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPin {
    pub(super) upstream: String,
    pub(super) tag: Option<Spanned<String>>,
    pub(super) commit: Option<Spanned<String>>,
    pub(super) tree: Spanned<String>,
    sources: Vec<Spanned<RawSource>>,
    #[serde(rename = "generation-of")]
    pub(super) generation_of: Option<Spanned<Name>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSource {
    git: Option<String>,
    npm: Option<String>,
    pip: Option<String>,
    #[serde(default)]
    versions: BTreeMap<String, String>,
    #[serde(default)]
    sha256: BTreeMap<String, Sha256>,
    member: Option<String>,
    files: Option<String>,
    bytes: Option<u64>,
    path: Option<String>,
}

impl RawSource {
    /// Whether it has none of the keys of a package.
    fn is_without_package(&self) -> bool {
        let is_without_path = self.member.is_none() && self.files.is_none();
        self.versions.is_empty() && self.sha256.is_empty() && is_without_path && self.bytes.is_none()
    }
}

/// The forms of a source.
const SOURCE: &str = "a source is `git = URL`, or `npm = PACKAGE` with `member` and `versions`, or \
                      `pip = PACKAGE` with `member` or `files`, `versions` and `sha256`, or `path = PATH`";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawVariant {
    pub(super) pin: Option<Spanned<Name>>,
    pub(super) extends: Option<Spanned<Name>>,
    pub(super) patches: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) overlays: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) kernels: bool,
    #[serde(default)]
    pub(super) front: bool,
    pub(super) gate: Option<Spanned<Name>>,
    pub(super) flavors: Option<Vec<Name>>,
    #[serde(default)]
    pub(super) cmake: BTreeMap<String, String>,
    pub(super) like: Option<Spanned<Name>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawTool {
    package: Option<Spanned<String>>,
    at_least: Spanned<String>,
    version: Spanned<String>,
    program: Spanned<String>,
    sha256: Vec<Spanned<String>>,
}

pub(super) struct Reader<'a> {
    pub(super) source: SourceText<'a>,
    pub(super) raw: &'a RawPins,
}

impl Reader<'_> {
    pub(super) fn read(&self) -> Result<Pins> {
        let pins = self.each(&self.raw.pins, |name, pin| self.pin(name, pin))?;
        let pin_names = self.pin_names()?;
        let variants = self.each(&self.raw.variants, |name, variant| {
            // Every variant has a pin: those without one were rejected.
            self.variant(name, &pin_names, variant)
        })?;
        let tools = self.each(&self.raw.tools, |name, tool| self.tool(name, tool))?;
        let default = &self.raw.default_variant;
        match variants.get(default.get_ref()) {
            None => return Err(self.at(default, "no variant has this name")),
            Some(variant) if pins[&variant.pin].generation_of.is_some() => {
                return Err(self.at(default, "a variant on a generation is never the default"));
            }
            Some(_) => {}
        }
        let pins = Pins { default_variant: default.get_ref().clone(), pins, variants, tools };
        self.check_shared_folders(&pins)?;
        self.check_default_pin(&pins)?;
        Ok(pins)
    }

    fn each<R, T>(
        &self,
        raw: &BTreeMap<Name, R>,
        read: impl Fn(&Name, &R) -> Result<T>,
    ) -> Result<BTreeMap<Name, T>> {
        raw.iter().map(|(name, item)| Ok((name.clone(), read(name, item)?))).collect()
    }

    pub(super) fn at<T>(&self, place: &Spanned<T>, label: &str) -> Error {
        self.source.error_at(place.span(), label)
    }

    fn pin(&self, name: &Name, raw: &RawPin) -> Result<Pin> {
        let sources: Result<Vec<Source>> = raw.sources.iter().map(|source| self.source(source)).collect();
        Ok(Pin {
            name: name.clone(),
            upstream: raw.upstream.clone(),
            revision: self.revision(raw)?,
            tree: self.tree_id(&raw.tree)?,
            sources: sources?,
            generation_of: self.generation_of(raw)?,
        })
    }

    fn revision(&self, raw: &RawPin) -> Result<Revision> {
        match (&raw.tag, &raw.commit) {
            (Some(tag), None) => self.tag(tag),
            (None, Some(commit)) => commit.get_ref().parse().map(Revision::Commit).map_err(|_| {
                self.at(commit, "a commit id is 40 hexadecimal digits: `git rev-parse REVISION^{commit}`")
            }),
            (Some(_), Some(commit)) => Err(self.at(commit, "a pin has a `tag` or a `commit`, not both")),
            (None, None) => {
                Err(self
                    .at(&raw.tree, "a pin names the commit of its tree too: `tag = NAME` or `commit = ID`"))
            }
        }
    }

    fn tag(&self, raw: &Spanned<String>) -> Result<Revision> {
        match Revision::parse(raw.get_ref()) {
            Some(Revision::Commit(id)) => {
                let error = self.at(raw, "this is a commit id, not a tag");
                Err(error.hint(format!("write `commit = \"{id}\"` in place of it")))
            }
            Some(tag) => Ok(tag),
            None => Err(self.at(raw, "a tag has ASCII letters, digits and `. _ - / + @ # =` only")),
        }
    }

    fn tree_id(&self, raw: &Spanned<String>) -> Result<ObjectId> {
        raw.get_ref()
            .parse()
            .map_err(|_| self.at(raw, "a tree id is 40 hexadecimal digits: `git rev-parse TAG^{tree}`"))
    }

    fn source(&self, raw: &Spanned<RawSource>) -> Result<Source> {
        let RawSource { git, npm, pip, path, .. } = raw.get_ref();
        let is_alone = raw.get_ref().is_without_package();
        match (git, npm, pip, path) {
            (Some(url), None, None, None) if is_alone => {
                Source::git(url).map_err(|label| self.at(raw, label))
            }
            (None, Some(name), None, None) => self.package(raw, name, self.npm(raw)?).map(Source::Package),
            (None, None, Some(name), None) => {
                self.package(raw, name, self.pip(raw, name)?).map(Source::Package)
            }
            (None, None, None, Some(path)) if is_alone => Ok(Source::Path { path: path.clone() }),
            _ => Err(self.at(raw, SOURCE)),
        }
    }

    fn package(&self, raw: &Spanned<RawSource>, name: &str, registry: Registry) -> Result<Package> {
        let RawSource { versions, member, files, bytes, .. } = raw.get_ref();
        let Some(member) = member.as_ref().or(files.as_ref()).filter(|_| !versions.is_empty()) else {
            return Err(self.at(raw, SOURCE));
        };
        let versions: Option<BTreeMap<String, String>> = versions
            .iter()
            .map(|(revision, version)| Some((Revision::parse(revision)?.to_string(), version.clone())))
            .collect();
        let versions =
            versions.ok_or_else(|| self.at(raw, "the keys of `versions` are tags and full commit ids"))?;
        let (name, member) = (name.to_string(), member.clone());
        Ok(Package { registry, name, versions, member, bytes: *bytes })
    }

    fn npm(&self, raw: &Spanned<RawSource>) -> Result<Registry> {
        let RawSource { sha256, files, .. } = raw.get_ref();
        match (sha256.is_empty(), files) {
            (true, None) => Ok(Registry::Npm),
            (false, _) => {
                Err(self.at(raw, "an `npm` source has no `sha256`: npm verifies the package itself"))
            }
            (true, Some(_)) => Err(self.at(raw, SOURCE)),
        }
    }

    /// Checks what becomes part of a requirement of pip, and the digest of every version.
    fn pip(&self, raw: &Spanned<RawSource>, name: &str) -> Result<Registry> {
        let RawSource { versions, sha256, .. } = raw.get_ref();
        let (content, key, path) = self.content(raw)?;
        let mut words = std::iter::once(name).chain(versions.values().map(String::as_str));
        if let Some(word) = words.find(|word| !is_plain_word(word)) {
            return Err(self.at(raw, &format!("`{}`: {PLAIN_WORD}", word.escape_debug())));
        }
        if let Err(why) = Inside::try_from(path.to_string()) {
            return Err(self.at(raw, &format!("`{key}` has to be {why}")));
        }
        if let Some(version) = versions.values().find(|version| !sha256.contains_key(*version)) {
            return Err(self.at(raw, &format!("`sha256` has no digest for `{version}` of `versions`")));
        }
        if let Some(version) = sha256.keys().find(|version| !versions.values().any(|used| used == *version)) {
            return Err(self.at(raw, &format!("`sha256` has `{version}`, which `versions` does not have")));
        }
        Ok(Registry::Pip { sha256: sha256.clone(), content })
    }

    /// Returns the content of a source distribution, and the key and the value that state its path.
    fn content<'r>(&self, raw: &'r Spanned<RawSource>) -> Result<(Content, &'static str, &'r str)> {
        match (&raw.get_ref().member, &raw.get_ref().files) {
            (Some(member), None) => Ok((Content::Repository, "member", member.as_str())),
            (None, Some(files)) => Ok((Content::Files, "files", files.as_str())),
            (Some(_), Some(_)) | (None, None) => Err(self.at(raw, SOURCE)),
        }
    }

    fn variant(&self, name: &Name, pins: &BTreeMap<&Name, Name>, raw: &RawVariant) -> Result<Variant> {
        self.check_folders(raw)?;
        self.check_generation(&pins[name], raw)?;
        let own = self.own_variant(name, pins, raw)?;
        match &raw.like {
            Some(like) => self.like(like, pins, own),
            None => Ok(own),
        }
    }

    /// Returns the variant as its own keys describe it.
    pub(super) fn own_variant(
        &self,
        name: &Name,
        pins: &BTreeMap<&Name, Name>,
        raw: &RawVariant,
    ) -> Result<Variant> {
        let gate = raw.gate.as_ref();
        if let Some((place, label)) = gate.and_then(|one| Some((one, wrong_reference(name, one, pins)?))) {
            return Err(self.at(place, label));
        }
        Ok(Variant {
            name: name.clone(),
            pin: pins[name].clone(),
            like: raw.like.as_ref().map(|like| like.get_ref().clone()),
            extends: raw.extends.as_ref().map(|parent| parent.get_ref().clone()),
            patches: raw.patches.as_ref().map(|folder| one_spelling(folder.get_ref())),
            overlays: raw.overlays.iter().map(|folder| one_spelling(folder.get_ref())).collect(),
            kernels: raw.kernels,
            front: raw.front,
            gate: gate.map(|reference| reference.get_ref().clone()),
            flavors: raw.flavors.clone(),
            cmake: raw.cmake.clone(),
        })
    }

    fn check_folders(&self, raw: &RawVariant) -> Result<()> {
        let mut folders = raw.patches.iter().chain(&raw.overlays);
        match folders.find(|folder| !stays_inside(folder.get_ref())) {
            Some(folder) => Err(self.at(folder, "a folder inside the repository, without `..`")),
            None => Ok(()),
        }
    }

    /// Rejects a folder of patches that two variants need for different trees; the error points at the later line.
    fn check_shared_folders(&self, pins: &Pins) -> Result<()> {
        let mut named: Vec<(&Spanned<String>, &Variant)> = Vec::new();
        for (name, raw) in &self.raw.variants {
            named.extend(raw.patches.as_ref().zip(pins.variants.get(name)));
        }
        named.sort_by_key(|(place, _)| place.span().start);
        let mut first_of_folder: BTreeMap<Option<&str>, &Variant> = BTreeMap::new();
        for (place, variant) in named {
            let first = *first_of_folder.entry(variant.patches.as_deref()).or_insert(variant);
            if let Some((label, hint)) = shared::refusal(pins, first, variant) {
                return Err(self.at(place, &label).hint(hint));
            }
        }
        Ok(())
    }

    /// Rejects a default variant whose pin has unpacked files only: its tree id could not be compared with upstream's.
    fn check_default_pin(&self, pins: &Pins) -> Result<()> {
        let pin = pins.pin_of(pins.variant(None)?);
        let source = pin.unverifiable_source().and_then(|at| self.raw.pins.get(&pin.name)?.sources.get(at));
        match source {
            Some(source) => Err(self.at(source, UNVERIFIABLE).hint(pin.way_to_verify())),
            None => Ok(()),
        }
    }

    /// The pin of every variant. Each variant is visited once, however long the chains are.
    fn pin_names(&self) -> Result<BTreeMap<&Name, Name>> {
        let mut known = BTreeMap::new();
        for name in self.raw.variants.keys() {
            let mut chain = Vec::new();
            let pin = self.pin_name(name, &known, &mut chain)?;
            known.extend(chain.into_iter().map(|name| (name, pin.clone())));
        }
        Ok(known)
    }

    /// Walks up to a variant whose pin is known or named, and adds the variants on the way to `chain`; cycles and
    /// unknown parents are rejected.
    fn pin_name<'a>(
        &'a self,
        name: &'a Name,
        known: &BTreeMap<&Name, Name>,
        chain: &mut Vec<&'a Name>,
    ) -> Result<Name> {
        let mut seen = BTreeSet::new();
        let (mut name, mut current) = (name, self.raw.variants.get(name));
        while let Some(variant) = current {
            if let Some(pin) = known.get(name) {
                return Ok(pin.clone());
            }
            seen.insert(name);
            chain.push(name);
            match (&variant.pin, &variant.extends) {
                (Some(pin), None) => return self.known_pin(pin),
                (None, Some(parent)) => {
                    self.check_parent(parent)?;
                    if seen.contains(parent.get_ref()) {
                        return Err(self.at(parent, "this variant extends itself, in a circle"));
                    }
                    name = parent.get_ref();
                    current = self.raw.variants.get(name);
                    if current.is_none() {
                        return Err(self.at(parent, "no variant has this name"));
                    }
                }
                (Some(pin), Some(_)) => {
                    return Err(self.at(pin, "a variant has a `pin` or `extends`, not both"));
                }
                (None, None) => break,
            }
        }
        Err(Error::usage(format!(
            "`{}`: `[variants.{name}]` has neither `pin` nor `extends`",
            self.source.name
        ))
        .hint("add `pin = \"NAME\"` or `extends = \"VARIANT\"`"))
    }

    fn known_pin(&self, pin: &Spanned<Name>) -> Result<Name> {
        if self.raw.pins.contains_key(pin.get_ref()) {
            Ok(pin.get_ref().clone())
        } else {
            Err(self.at(pin, "no pin has this name"))
        }
    }

    fn tool(&self, name: &Name, raw: &RawTool) -> Result<Tool> {
        let at_least = Version::parse(raw.at_least.get_ref())
            .ok_or_else(|| self.at(&raw.at_least, "a version, such as `3.28`"))?;
        for hash in &raw.sha256 {
            let text = hash.get_ref();
            if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(self.at(hash, "a sha256 is 64 hexadecimal digits"));
            }
        }
        // They become part of a pip requirement and of a folder name.
        for word in raw.package.iter().chain([&raw.version]) {
            if !is_plain_word(word.get_ref()) {
                return Err(self.at(word, PLAIN_WORD));
            }
        }
        if !stays_inside(raw.program.get_ref()) {
            return Err(self.at(&raw.program, "a file inside the package, without `..`"));
        }
        Ok(Tool {
            name: name.clone(),
            package: raw
                .package
                .as_ref()
                .map_or_else(|| name.to_string(), |package| package.get_ref().clone()),
            at_least,
            version: raw.version.get_ref().clone(),
            program: raw.program.get_ref().clone(),
            sha256: raw.sha256.iter().map(|hash| hash.get_ref().clone()).collect(),
        })
    }
}

/// The rule of [`is_plain_word`].
const PLAIN_WORD: &str = "letters, digits, `.`, `_`, `+` and `-` only, a letter or digit first";

/// Whether a name or a version of a package can be part of a requirement of pip and of a folder name.
fn is_plain_word(word: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    word.bytes().all(is_plain) && word.starts_with(|c: char| c.is_ascii_alphanumeric())
}

/// The one spelling of a folder that [`stays_inside`], so that equal folders are equal texts: `a//b/` is `a/b`.
fn one_spelling(folder: &str) -> String {
    let parts = std::path::Path::new(folder).components();
    let parts: Vec<&str> = parts.filter_map(|part| part.as_os_str().to_str()).collect();
    parts.join("/")
}

/// Whether a path, joined to a folder, stays inside it.
fn stays_inside(path: &str) -> bool {
    let mut parts = std::path::Path::new(path).components();
    !path.is_empty() && parts.all(|part| matches!(part, std::path::Component::Normal(_)))
}
