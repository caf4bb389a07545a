//! `cargo xtask release`: archives of existing, verified packages, with everything that a release needs.

use std::path::{Path, PathBuf};

use clap::Args;
use espalier_core::config::flavors::{Flavors, NamedFlavor};
use espalier_core::config::name::Name;
use espalier_core::config::pins::Pins;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::{disk, owned};
use espalier_core::sys::project::run_lock::Access;
use espalier_patches::stack::Stack;
use serde_json::json;

use crate::packaged::not_built;
use crate::plan::manifest::{Manifest, build_command};
use crate::plan::shipped::audit::RepositoryFacts;
use crate::plan::shipped::release::{
    Archive, CHANGES, INDEX, INSTALL, Index, SUMS, Variant, changelog_entry, changes, install_script, is_url,
    name, sums,
};
use crate::shipped;
use crate::sys::archive;
use crate::verify::package as verify;

/// Options of `release`.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// Variant of `pins.toml`; default: every one that is built, unless flavors are named.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<Name>,
    /// Flavor of `ci/flavors.toml`, which has to be built; repeatable; default: every one that is built.
    #[arg(long = "flavor", value_name = "NAME")]
    pub flavors: Vec<Name>,
    /// Tag of the release, `vVERSION`; `CHANGELOG.md` must have an entry for that version.
    #[arg(long, value_name = "TAG")]
    pub tag: Option<String>,
    /// URL at which the files will be published, for install.sh.
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Print what would be done.
    #[arg(long)]
    pub dry_run: bool,
}

/// The project's version: `[workspace.package]` of `Cargo.toml`, compiled into the tool.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A package that goes into the release.
struct Chosen {
    folder: PathBuf,
    manifest: Manifest,
}

/// Makes the release: completely or not at all.
///
/// # Errors
///
/// A package does not exist or does not match its manifest; the tag names another version.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    check(options)?;
    let (_lock, pins) = context.begin(options.dry_run, Access::Build)?;
    let entry = entry(context, options)?;
    let known = verify::known(context)?;
    let chosen = choose(context, options, &pins, &known)?;
    let folder = context.layout.release();
    let names: Vec<String> =
        chosen.iter().map(|one| format!("{}.tar.gz", name(VERSION, &one.manifest))).collect();
    let shown = context.layout.show(&folder);
    if options.dry_run {
        let all = names.iter().map(String::as_str).chain([INDEX, CHANGES, INSTALL, SUMS]);
        let steps: Vec<String> = all.map(|file| format!("write        {shown}/{file}")).collect();
        return Ok(Outcome::ok(steps.join("\n"), json!({ "steps": steps })));
    }
    let scratch = disk::scratch_folder(&context.layout.scratch(), "release")?;
    let new = scratch.path().join("new");
    disk::create_folder(&new)?;
    let archives = write_archives(context, &chosen, &new)?;
    let texts = texts(context, options, &pins, &entry, &archives)?;
    let mut digests: Vec<(String, String)> =
        archives.iter().map(|one| (one.file.clone(), one.sha256.clone())).collect();
    for (file, text) in texts {
        disk::write_atomically(&new.join(file), text.as_bytes())?;
        digests.push((file.to_string(), disk::sha256(text.as_bytes())));
    }
    disk::write_atomically(&new.join(SUMS), sums(&digests).as_bytes())?;
    if disk::exists(&folder) {
        owned::rename(&folder, &scratch.path().join("old"))?;
    }
    owned::rename(&new, &folder)?;
    let lines: Vec<String> =
        archives.iter().map(|one| format!("{}  {}  {} bytes", one.sha256, one.file, one.bytes)).collect();
    let text = format!("{}\nin {shown}", lines.join("\n"));
    Ok(Outcome::ok(text, json!({ "version": VERSION, "folder": shown, "archives": archives })))
}

fn check(options: &Options) -> Result<()> {
    if let Some(tag) = options.tag.as_deref().filter(|tag| tag.strip_prefix('v') != Some(VERSION)) {
        return Err(Error::usage(format!(
            "the tag `{tag}` is not `v{VERSION}`, the version of `Cargo.toml`"
        ))
        .hint("change `version` in `[workspace.package]` of `Cargo.toml`, or the tag"));
    }
    match options.url.as_deref().filter(|url| !is_url(url)) {
        Some(url) => Err(Error::usage(format!("`{url}` is not a plain https URL"))),
        None => Ok(()),
    }
}

/// Returns the changelog entry; a tag requires its own entry.
fn entry(context: &Context, options: &Options) -> Result<String> {
    let changelog =
        disk::read_text_if_there(&context.layout.root().join("CHANGELOG.md"))?.unwrap_or_default();
    let unreleased = || options.tag.is_none().then(|| changelog_entry(&changelog, "Unreleased")).flatten();
    match changelog_entry(&changelog, VERSION).or_else(unreleased) {
        Some(entry) => Ok(entry),
        None if options.tag.is_none() => Ok(String::new()),
        None => Err(Error::usage(format!("`CHANGELOG.md` has no entry `## [{VERSION}]`"))
            .hint("rename `## [Unreleased]` to it, and begin a new one above")),
    }
}

/// Returns the requested packages, each verified.
fn choose(context: &Context, options: &Options, pins: &Pins, known: &RepositoryFacts) -> Result<Vec<Chosen>> {
    let mut chosen = Vec::new();
    for (folder, rebuild) in wanted(context, options, pins)? {
        let shown = context.layout.show(&folder);
        context.ui.status("Verifying", &shown);
        let manifest = verify::demand(&shown, &archive::read_folder(&folder)?, known)
            .map_err(|error| error.hint(format!("build it again: {rebuild}")))?;
        chosen.push(Chosen { folder, manifest });
    }
    Ok(chosen)
}

/// Returns the folders of the requested packages, each with the command that builds it.
fn wanted(context: &Context, options: &Options, pins: &Pins) -> Result<Vec<(PathBuf, String)>> {
    let variants: Vec<&Name> = match &options.variant {
        Some(variant) => vec![&pins.variant(Some(variant))?.name],
        None if options.flavors.is_empty() => pins.variants.keys().collect(),
        None => vec![&pins.default_variant],
    };
    let flavors = context.flavors()?;
    let flavors = wanted_flavors(&flavors, &options.flavors)?;
    let (mut found, mut for_one_machine) = (Vec::new(), None);
    for variant in &variants {
        for NamedFlavor { name: flavor, entry } in flavors.iter().copied() {
            let folder = context.layout.package(variant, flavor);
            if disk::exists(&folder) && entry.is_for_one_machine() && options.flavors.is_empty() {
                context
                    .ui
                    .warn(format!("{variant}-{flavor} is left out: it is for this machine's processor"));
                for_one_machine.get_or_insert((*variant, flavor));
            } else if disk::exists(&folder) {
                found.push((folder, build_command(variant, flavor)));
            } else if !options.flavors.is_empty() {
                return Err(not_built(variant, flavor));
            }
        }
    }
    match (found.is_empty(), for_one_machine) {
        (false, _) => Ok(found),
        (true, None) => Err(not_built(&pins.variant(options.variant.as_deref())?.name, "cpu")),
        (true, Some((variant, flavor))) => Err(only_for_one_machine(variant, flavor)),
    }
}

/// Returns the flavors called `names`; all of them when there is no name.
fn wanted_flavors<'a>(flavors: &'a Flavors, names: &[Name]) -> Result<Vec<NamedFlavor<'a>>> {
    match names.is_empty() {
        true => Ok(flavors.flavors.iter().map(|(name, entry)| NamedFlavor { name, entry }).collect()),
        false => names.iter().map(|name| flavors.get(name)).collect(),
    }
}

fn only_for_one_machine(variant: &str, flavor: &str) -> Error {
    Error::usage(format!("only `{flavor}` is built, whose programs may not start on another processor"))
        .hint(format!("build one for all: {}", build_command(variant, "cpu")))
        .hint(format!("or release it anyway: cargo xtask release --flavor {flavor}"))
}

fn write_archives(context: &Context, chosen: &[Chosen], to: &Path) -> Result<Vec<Archive>> {
    let mut archives = Vec::new();
    for Chosen { folder, manifest } in chosen {
        let top = name(VERSION, manifest);
        let file = format!("{top}.tar.gz");
        context.ui.status("Archiving", &file);
        let path = to.join(&file);
        archive::write(folder, &top, &path)?;
        archives.push(Archive {
            sha256: disk::sha256_of_file(&path)?,
            bytes: disk::size(&path)?,
            file,
            variant: manifest.variant.clone(),
            flavor: manifest.flavor.clone(),
            platform: manifest.platform.clone(),
            pin: manifest.pin.clone(),
            tree: manifest.tree.clone(),
        });
    }
    Ok(archives)
}

fn texts(
    context: &Context,
    options: &Options,
    pins: &Pins,
    entry: &str,
    archives: &[Archive],
) -> Result<[(&'static str, String); 3]> {
    let mut variants: Vec<&str> = archives.iter().map(|archive| archive.variant.as_str()).collect();
    variants.dedup();
    let about =
        variants.iter().map(|name| about(context, pins, archives, name)).collect::<Result<Vec<_>>>()?;
    let default = variants.iter().find(|name| **name == pins.default_variant.as_str());
    let default = default.or(variants.first()).copied().unwrap_or_default();
    let index = Index { version: VERSION.to_string(), archives: archives.to_vec() };
    let index = serde_json::to_string_pretty(&index)
        .map_err(|error| Error::environment(format!("`{INDEX}` cannot be written: {error}")))?;
    Ok([
        (INDEX, index + "\n"),
        (CHANGES, changes(VERSION, entry, &about)),
        (INSTALL, install_script(VERSION, default, options.url.as_deref().unwrap_or_default())),
    ])
}

fn about(context: &Context, pins: &Pins, archives: &[Archive], name: &str) -> Result<Variant> {
    let stack = Stack::read(&context.layout, pins, pins.variant(Some(name))?)?;
    let tree = archives.iter().find(|archive| archive.variant == name).map(|archive| archive.tree.clone());
    Ok(Variant {
        name: name.to_string(),
        upstream: stack.pin.upstream.clone(),
        pin: stack.pin.revision.to_string(),
        base_tree: stack.pin.tree.to_string(),
        tree: tree.unwrap_or_default(),
        patches: shipped::notes(&stack),
    })
}
