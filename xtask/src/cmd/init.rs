//! `cargo xtask init`: the first `pins.toml` of a project, with a pin that was fetched and checked.

use clap::Args;
use espalier_core::config::attributes::{ATTRIBUTES_FILE, completed};
use espalier_core::config::name::Name;
use espalier_core::config::pins::{NewPin, Pins};
use espalier_core::config::snippet::SourceText;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::git::store::Store;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::root::absolute;
use espalier_core::sys::project::run_lock::{self, Access};
use espalier_core::sys::project::stage::Stage;
use espalier_core::sys::work_trees::fork::{ForkPlace, History};
use espalier_core::sys::work_trees::import_repo::ImportRepo;
use espalier_patches::import::new_pin::{notes_on, revision_of};
use serde_json::json;

/// Options of `init`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Upstream: repository, bundle or URL.
    #[arg(long, value_name = "PATH|URL", value_parser = absolute)]
    pub from: String,
    /// Tag, branch or full commit id to pin.
    #[arg(long, value_name = "REF")]
    pub at: String,
    /// Name of the first variant.
    #[arg(long, value_name = "NAME")]
    pub variant: Name,
    /// Name of upstream, such as `llama.cpp`.
    #[arg(long, value_name = "NAME")]
    pub upstream: Option<String>,
    /// Print the file that would be written.
    #[arg(long)]
    pub dry_run: bool,
}

/// Fetches the pin and writes `pins.toml` and the folder of the variant's patches. Nothing is overwritten.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    refuse_second(context)?;
    let _lock = run_lock::take(&context.layout, &context.ui, Access::Change)?;
    let store = Store::open(&context.layout.store())?;
    let repo = ImportRepo::create(&context.layout.scratch(), &store)?;
    let place = ForkPlace::look(context.layout.root(), &options.from, context.offline, &context.ui)?;
    let commit = place.fetch(&repo, &[&place.find(&options.at)?], History::None, &context.ui)?[0];
    let tree = repo.store.tree_of(commit)?;
    let new = NewPin {
        variant: options.variant.clone(),
        upstream: options.upstream.clone().unwrap_or_else(|| place.last_part()),
        revision: revision_of(&place, commit),
        tree,
        source: place.source(),
    };
    let text = new.file();
    let pins = Pins::parse(SourceText { name: "pins.toml", text: &text })?;
    if !options.dry_run {
        store.adopt(repo.git_dir(), commit, tree)?;
        disk::create_folder(&context.layout.series(&new.folder()))?;
        write_project(context, &pins, &text)?;
    }
    Ok(outcome(&new, text, options.dry_run))
}

/// Writes both files, or neither.
fn write_project(context: &Context, pins: &Pins, text: &str) -> Result<()> {
    let mut stage = Stage::begin(&context.layout)?;
    let attributes = disk::read_if_there(&context.layout.root().join(ATTRIBUTES_FILE))?.unwrap_or_default();
    if let Some(after) = completed(&attributes, pins) {
        stage.write(ATTRIBUTES_FILE, &after)?;
    }
    stage.write("pins.toml", text.as_bytes())?;
    stage.commit("the new project".to_string()).map(drop)
}

fn refuse_second(context: &Context) -> Result<()> {
    let path = context.layout.pins();
    if !disk::exists(&path) {
        return Ok(());
    }
    Err(Error::usage(format!("there is a `{}` already; nothing was changed", path.display()))
        .hint("bring patches into it: cargo xtask import --help")
        .hint("or make another project elsewhere: mkdir -p DIR && cargo xtask init --root DIR …"))
}

fn outcome(new: &NewPin, text: String, dry_run: bool) -> Outcome {
    let NewPin { variant, upstream, revision, tree, .. } = new;
    let json = json!({
        "pins": text,
        "variant": variant,
        "upstream": upstream,
        "pin": revision.to_string(),
        "tree": tree.to_string(),
        "folder": new.folder(),
        "dry_run": dry_run,
    });
    if dry_run {
        return Outcome::ok(text, json);
    }
    let mut lines = vec![format!("pins.toml: {upstream} {revision}, tree {tree}, variant {variant}")];
    lines.extend(notes_on(new).iter().map(|note| format!("  note: {note}")));
    lines.push(format!("  next: cargo xtask import PATCHES --variant {variant}    # what you have already"));
    lines.push(format!("  next: cargo xtask new \"subject\" --variant {variant}    # or a first patch"));
    Outcome::ok(lines.join("\n"), json)
}
