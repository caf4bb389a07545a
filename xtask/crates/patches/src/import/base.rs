//! The base of an import: an existing variant, or a new one with a pin of its own.

use std::path::Path;

use espalier_core::config::name::Name;
use espalier_core::config::overlay::OverlayFile;
use espalier_core::config::pins::{NewPin, Pin, Pins, Revision, Source, Variant};
use espalier_core::config::snippet::SourceText;
use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::next_command::quoted;
use espalier_core::sys::machine::disk;
use espalier_core::sys::upstream::fetch::fetch_pin;
use espalier_core::sys::work_trees::edit_repo::short;
use espalier_core::sys::work_trees::fork::ForkPlace;
use espalier_core::sys::work_trees::fork_history::Fork;
use espalier_core::ui::{Talk, Ui};
use espalier_series::LintRules;
use espalier_series::ObjectId;

use super::Import;
use crate::commits::make_commits;
use crate::import::new_pin::{notes_on, required_name, revision_of};
use crate::import::patches::ImportBase;
use crate::ready::series_folder;

/// The destination of the imported patches.
pub struct Onto {
    /// The variant.
    pub variant: Name,
    /// The folder of its patches, relative to the root.
    pub folder: String,
    /// The new text of `pins.toml`.
    pub pins_text: String,
    /// The revision of the pin, for display.
    pub pin: String,
    /// Whether the variant and its pin are new.
    pub is_new: bool,
    /// The commit that the first patch applies to.
    pub base: ObjectId,
    before: usize,
    overlays: Vec<OverlayFile>,
    /// Notes about the pin for the user.
    pub notes: Vec<String>,
    /// Changes of the sources that commands beside the patches make, each with its file and line.
    pub changes: Vec<String>,
}

impl Onto {
    /// Returns the base and the rules that the patches are written for.
    pub fn import_base<'a>(&'a self, rules: &'a LintRules) -> ImportBase<'a> {
        ImportBase { base: self.base, before: self.before, rules, overlays: &self.overlays }
    }
}

/// Chooses the variant for a fork: an existing variant must be pinned at the commit where the fork left upstream;
/// otherwise variant and pin are created.
pub(super) fn for_fork(import: Import<'_>, place: &ForkPlace, fork: &Fork<'_>, from: &str) -> Result<Onto> {
    let Import { context, options, repo, .. } = import;
    let Some(pins) = pins_if_there(context)? else {
        return new_variant(import, place, fork, None);
    };
    let name = options.variant.as_deref().unwrap_or(&pins.default_variant);
    let Some(variant) = pins.variants.get(name) else {
        let text = disk::read_text(&context.layout.pins())?;
        refuse_folder_of_another(&pins, name)?;
        return new_variant(import, place, fork, Some(text));
    };
    let onto = on_variant(import, &pins, variant)?;
    if onto.before > 0 {
        let error = has_patches(&onto, "cargo xtask import --variant NEW --from REPO BASE..TIP");
        return Err(as_patches(error, from, "LAST_IMPORTED..TIP", Some(name)));
    }
    let (fork_tree, found) = (fork.tree_of(fork.merge_base)?, repo.store.tree_of(onto.base)?);
    if fork_tree == found {
        return Ok(onto);
    }
    let what = format!("the fork is based on {}, and {name} on {}", short(fork.merge_base), onto.pin);
    Err(Error::usage(what)
        .detail(format!("tree there {fork_tree}\ntree here  {found}"))
        .hint("import it as a variant with a pin of its own: the same command with --variant NEW")
        .hint(format!("then move that one: cargo xtask rebase --variant NEW --to {}", onto.pin)))
}

/// Chooses the variant for patches, which do not name the upstream commit that they were made for: the variant must
/// exist.
pub(super) fn for_patches(import: Import<'_>, append: bool) -> Result<Onto> {
    let Some(pins) = pins_if_there(import.context)? else {
        return Err(Error::usage("there is no `pins.toml` to say what the patches are for")
            .hint("cargo xtask init --from UPSTREAM --at TAG --variant my-fork")
            .hint("then run the same command again"));
    };
    let variant = pins.variant(import.options.variant.as_deref())?;
    let onto = on_variant(import, &pins, variant)?;
    if onto.before > 0 && !append {
        return Err(has_patches(&onto, "add one to pins.toml").hint("or after those: --append"));
    }
    Ok(onto)
}

fn pins_if_there(context: &Context) -> Result<Option<Pins>> {
    if disk::exists(&context.layout.pins()) { context.pins().map(Some) } else { Ok(None) }
}

fn has_patches(onto: &Onto, instead: &str) -> Error {
    Error::usage(format!("{} has {} patches already; nothing was written", onto.variant, onto.before))
        .hint(format!("import into a variant of its own: {instead}"))
}

/// Adds hints on how to append commits of a fork to existing patches. A range of the fork would include what the fork
/// has merged from upstream since; the user can review a list of patches first.
pub(super) fn as_patches(error: Error, from: &str, range: &str, variant: Option<&str>) -> Error {
    let is_folder = Path::new(from).is_dir();
    let there = if is_folder { format!(" -C {}", quoted(from)) } else { String::new() };
    let note = if is_folder { "" } else { "    # in a clone of it" };
    let variant = variant.map(|name| format!(" --variant {}", quoted(name))).unwrap_or_default();
    error
        .hint(format!(
            "write what is new as patches: git{there} format-patch -o \"$PWD/more-patches\" {}{note}",
            quoted(range)
        ))
        .hint(format!("then append them: cargo xtask import more-patches --append{variant}"))
}

/// Returns the end of the variant's own series.
fn on_variant(import: Import<'_>, pins: &Pins, variant: &Variant) -> Result<Onto> {
    let Import { context, store, repo, .. } = import;
    let folder = series_folder(variant)?.to_string();
    let series = make_commits(context, store, pins, variant)?;
    repo.take_over(store, series.tip)?;
    Ok(Onto {
        variant: variant.name.clone(),
        folder,
        pins_text: disk::read_text(&context.layout.pins())?,
        pin: pins.pin_of(variant).revision.to_string(),
        is_new: false,
        base: series.tip,
        before: series.stack.own_files().len(),
        overlays: series.stack.overlays,
        notes: Vec::new(),
        changes: Vec::new(),
    })
}

fn new_variant(
    import: Import<'_>,
    place: &ForkPlace,
    fork: &Fork<'_>,
    old_text: Option<String>,
) -> Result<Onto> {
    let Import { context, options, store, .. } = import;
    let variant = required_name(options.variant.as_ref())?;
    let upstream = options.upstream.clone().unwrap_or_else(|| place.last_part());
    let new = NewPin {
        variant: variant.clone(),
        upstream,
        revision: revision_of(place, fork.merge_base),
        tree: fork.tree_of(fork.merge_base)?,
        source: place.source(),
    };
    let pins_text = old_text.map_or_else(|| new.file(), |text| new.added_to(&text));
    let pins = Pins::parse(SourceText { name: "pins.toml", text: &pins_text })?;
    let pin = pins.pin_of(pins.variant(Some(&variant))?);
    take_pin(import, pin, fork.merge_base)?;
    let folder = new.folder();
    refuse_folder(context, &folder)?;
    Ok(Onto {
        variant,
        folder,
        pins_text,
        pin: new.revision.to_string(),
        is_new: true,
        base: store.pin_commit(new.tree)?,
        before: 0,
        overlays: Vec::new(),
        notes: notes_on(&new),
        changes: Vec::new(),
    })
}

/// Copies the pinned commit from the fork's objects, so that it is not fetched twice.
fn take_pin(import: Import<'_>, pin: &Pin, commit: ObjectId) -> Result<()> {
    let Import { context, store, repo, .. } = import;
    if let Revision::Tag(tag) = &pin.revision {
        repo.store.set_tag(tag.as_str(), commit)?;
    }
    let here = Source::Path { path: repo.git_dir().display().to_string() };
    let pin = Pin { sources: vec![here], ..pin.clone() };
    fetch_pin(store, &context.layout, &pin, context.offline, &Ui::new(Talk::Quiet)).map(drop)
}

/// Refuses the name of a new variant if its folder has the series of another one, which has another pin.
fn refuse_folder_of_another(pins: &Pins, name: &str) -> Result<()> {
    let folder = format!("patches/{name}");
    let has_folder = |variant: &&Variant| variant.patches.as_deref() == Some(folder.as_str());
    match pins.variants.values().find(has_folder) {
        Some(owner) => Err(Error::usage(format!("`{folder}` is the folder of the variant `{}`", owner.name))
            .hint("choose another name: --variant my-fork")),
        None => Ok(()),
    }
}

fn refuse_folder(context: &Context, folder: &str) -> Result<()> {
    let path = context.layout.series(folder);
    if disk::exists(&path) && !disk::files_below(&path)?.is_empty() {
        return Err(Error::usage(format!("`{folder}` is not empty, and belongs to no variant"))
            .hint(format!("move it away, or use another name: mv {folder} {folder}.before")));
    }
    Ok(())
}
