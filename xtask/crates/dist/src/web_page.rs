//! The web page of a server: whether a build includes it, and building it if necessary.

use std::collections::BTreeSet;
use std::path::Path;

use espalier_core::config::pins::{Pin, Pins, Variant};
use espalier_core::context::Context;
use espalier_core::error::{Error, Kind, Result};
use espalier_core::plan::steps::Step;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::tree::GitTree;
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::Run;
use espalier_core::ui::Ui;
use espalier_patches::apply;
use serde_json::{Value, json};

use super::watched::Watched;
use crate::plan::web_page::{self as record, FOLDER, ManifestPage, Record};
use crate::sys::node::{self, Node};
use crate::sys::web_page as pages;

/// Whether a build includes the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageInclusion {
    /// If it can be built.
    IfPossible,
    /// Leave it out.
    No,
}

/// The decision about the page in one build.
#[derive(Clone, Debug)]
pub(super) enum Choice {
    /// Unknown until the pin is in the store.
    Unknown,
    /// The tree has no page.
    NoneThere,
    /// It is left out, with the reason.
    LeftOut(LeftOut),
    /// The page of these sources.
    Page {
        /// Their git tree.
        tree: String,
        /// Node.js to build it with; `None` if it is already built.
        node: Option<Node>,
    },
}

/// The reason why a server has no page.
#[derive(Clone, Debug)]
pub(super) struct LeftOut {
    /// A brief reason.
    pub(super) why: String,
    /// The remedy; `None` if it was left out on request.
    pub(super) fix: Option<String>,
}

/// Decides about the page of the tree on disk.
pub(super) fn choose(context: &Context, variant: &Variant, wanted: PageInclusion) -> Result<Choice> {
    let Some(tree) = apply::tree_below(context, variant, FOLDER)? else { return Ok(Choice::NoneThere) };
    let lock = context.layout.tree(&variant.name).join(FOLDER).join(LOCK);
    choose_for(context, &tree.to_string(), &disk::read_if_there(&lock)?.unwrap_or_default(), wanted)
}

/// Decides before the tree is on disk, from the pinned tree; patches of the page's sources are not considered.
pub(super) fn foresee(context: &Context, pin: &Pin, wanted: PageInclusion) -> Result<Choice> {
    match pinned(context, pin)? {
        Pinned::Unknown => Ok(Choice::Unknown),
        Pinned::NoneThere => Ok(Choice::NoneThere),
        Pinned::Sources { tree, lock } => choose_for(context, &tree, &lock, wanted),
    }
}

/// The page's sources in a pinned tree.
enum Pinned {
    /// The pin is not in the store.
    Unknown,
    /// The tree has no page.
    NoneThere,
    /// Their git tree, and the content of their `package-lock.json`.
    Sources { tree: String, lock: Vec<u8> },
}

fn pinned(context: &Context, pin: &Pin) -> Result<Pinned> {
    if !disk::exists(&context.layout.store()) {
        return Ok(Pinned::Unknown);
    }
    let store = Store::open(&context.layout.store())?;
    if !store.has_pin(pin.tree) {
        return Ok(Pinned::Unknown);
    }
    let mut tree = GitTree::new(&store, pin.tree)?;
    let Some(folder) = tree.entry(FOLDER.as_bytes())? else { return Ok(Pinned::NoneThere) };
    let lock = tree.entry(format!("{FOLDER}/{LOCK}").as_bytes())?;
    let lock = lock.map(|entry| store.read(entry.id)).transpose()?.unwrap_or_default();
    Ok(Pinned::Sources { tree: folder.id.to_string(), lock: lock.to_vec() })
}

/// Returns the git trees of the sources of every variant's page, both on disk and pinned; `None` if a variant has
/// neither.
///
/// # Errors
///
/// The store, or the record of a tree on disk, cannot be read.
pub fn trees(context: &Context, pins: &Pins) -> Result<Option<BTreeSet<String>>> {
    let mut trees = BTreeSet::new();
    for variant in pins.variants.values() {
        let on_disk = apply::tree_below(context, variant, FOLDER)?.map(|tree| tree.to_string());
        match pinned(context, pins.pin_of(variant))? {
            Pinned::Unknown if on_disk.is_none() => return Ok(None),
            Pinned::Sources { tree, .. } => trees.extend([tree]),
            Pinned::Unknown | Pinned::NoneThere => {}
        }
        trees.extend(on_disk);
    }
    Ok(Some(trees))
}

const LOCK: &str = "package-lock.json";

fn choose_for(context: &Context, tree: &str, lock: &[u8], wanted: PageInclusion) -> Result<Choice> {
    if wanted == PageInclusion::IfPossible && pages::built(&context.layout, tree)?.is_some() {
        return Ok(Choice::Page { tree: tree.to_string(), node: None });
    }
    Ok(match builder(context, lock, wanted) {
        Ok(node) => Choice::Page { tree: tree.to_string(), node: Some(node) },
        Err(left_out) => Choice::LeftOut(left_out),
    })
}

/// Returns the Node.js that can build a page whose `package-lock.json` is `lock`.
fn builder(context: &Context, lock: &[u8], wanted: PageInclusion) -> std::result::Result<Node, LeftOut> {
    if wanted == PageInclusion::No {
        return Err(LeftOut { why: "`--no-ui`".to_string(), fix: None });
    }
    let left_out = |why: String, fix: &str| LeftOut { why, fix: Some(fix.to_string()) };
    let node = node::find().map_err(|why| left_out(why, node::INSTALL))?;
    if let Some(refusal) = record::refusal(lock, node.version) {
        let record::IncompatibleNpmPackage { package, range } = refusal;
        let why = format!("node {} cannot run `{package}`, which asks for {range}", node.version);
        return Err(left_out(why, node::INSTALL));
    }
    if context.offline {
        let why = "it is not built yet, and `--offline` prevents downloading what builds it".to_string();
        return Err(left_out(why, "run once without `--offline`"));
    }
    Ok(node)
}

impl Choice {
    /// Returns whether the page is wanted and not built yet.
    pub(super) fn is_due(&self) -> bool {
        matches!(self, Choice::Page { node: Some(_), .. })
    }

    /// Returns its contribution to the digest of a build's inputs; empty without a page.
    pub(super) fn inputs(&self) -> String {
        match self {
            Choice::Page { tree, .. } => format!("page {tree} {}\n", pages::recipe()),
            Choice::Unknown | Choice::NoneThere | Choice::LeftOut(_) => String::new(),
        }
    }

    /// Returns the built page; `None` without one.
    pub(super) fn record(&self, context: &Context) -> Result<Option<Record>> {
        match self {
            Choice::Page { tree, .. } => pages::built(&context.layout, tree),
            Choice::Unknown | Choice::NoneThere | Choice::LeftOut(_) => Ok(None),
        }
    }
}

impl Choice {
    /// Returns the remark after the name of the build.
    pub(super) fn remark(&self) -> String {
        match self {
            Choice::LeftOut(LeftOut { why, fix: None }) => format!(", without the web page: {why}"),
            _ => String::new(),
        }
    }

    /// Printed last, so that a missing page is not first noticed in a browser.
    pub(super) fn warn(&self, ui: &Ui) {
        if let Choice::LeftOut(LeftOut { why, fix: Some(fix) }) = self {
            ui.warn(format!("the server has no web page: {why}\n  next: {fix}"));
        }
    }

    /// Returns the JSON form; null if upstream has no page.
    pub(super) fn to_json(&self) -> Value {
        match self {
            Choice::Page { tree, .. } => json!({ "tree": tree }),
            Choice::LeftOut(LeftOut { why, .. }) => json!({ "left_out": why }),
            Choice::Unknown | Choice::NoneThere => Value::Null,
        }
    }
}

/// Returns the page as the manifest names it.
pub(super) fn named(record: &Record) -> ManifestPage {
    ManifestPage { tree: record.tree.clone(), sha256: disk::sha256(record.text().as_bytes()) }
}

/// Builds the page of `choice` from the sources in the tree on disk, unless it is already built.
pub(super) fn provide(context: &Context, variant: &Variant, choice: &Choice) -> Result<()> {
    let Choice::Page { tree, node: Some(node) } = choice else { return Ok(()) };
    let sources = context.layout.tree(&variant.name).join(FOLDER);
    make(context, &sources, tree, *node).map_err(|error| {
        let error = disk::blame_full_disk(&context.layout.generated(), error);
        error.hint("add `--no-ui` to build without the web page")
    })
}

fn make(context: &Context, sources: &Path, tree: &str, node: Node) -> Result<()> {
    let build_folder = pages::BuildFolder::set_up(&context.layout, sources, tree, node)?;
    let watch = |run: Run, name: &str| {
        let folder = context.layout.generated();
        Watched { context, name: name.to_string(), folder }.run(run, |_| {})
    };
    context.ui.status("Installing", "what the web page is built with, from npm, under target/");
    // A failed npm download says nothing about the page, unless its content does not match the lock.
    watch(build_folder.install()?, "page-install").map_err(|error| match error.details.concat() {
        details if details.contains("EINTEGRITY") => error,
        _ => Error { kind: Kind::Environment, ..error },
    })?;
    context.ui.status("Building", "the web page");
    watch(build_folder.build(), "page-build")?;
    build_folder.keep(&context.layout).map(drop)
}

/// Returns the step for a plan.
pub(super) fn step(context: &Context, choice: &Choice, wanted: PageInclusion) -> Option<Step> {
    let unknown = || match builder(context, &[], wanted) {
        Ok(_) => (format!("{FOLDER}, if the tree has it"), commands()),
        Err(left_out) => (format!("left out: {}", left_out.why), Vec::new()),
    };
    let (what, commands) = match choice {
        Choice::Unknown => unknown(),
        Choice::NoneThere => return None,
        Choice::LeftOut(left_out) => (format!("left out: {}", left_out.why), Vec::new()),
        Choice::Page { tree, node } => {
            let folder = context.layout.show(&context.layout.web_page(tree));
            (folder, node.map(|_| commands()).unwrap_or_default())
        }
    };
    Some(Step::Page { what, commands })
}

fn commands() -> Vec<String> {
    vec![node::install_words().words(), node::script_words("build").words()]
}
