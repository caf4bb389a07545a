//! `cargo xtask apply`: the series on its pin, in memory; then the tree on disk.

mod drift;
pub mod owners;

use std::sync::Arc;

use clap::Args;
use drift::refuse_drift;
use espalier_core::config::lock::{LockedFile, LockedPatch, LockedVariant};
use espalier_core::config::name::Name;
use espalier_core::config::overlay::OverlayFile;
use espalier_core::config::pins::{Pin, Pins, Variant};
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::plan::steps::Step;
use espalier_core::sys::git::store::{Store, commit_text};
use espalier_core::sys::git::store_tree::StoreTree;
use espalier_core::sys::git::tree::{Entry, GitTree};
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::inputs::PatchFile;
use espalier_core::sys::project::run_lock::Access;
use espalier_core::sys::work_trees::materialise::{self, Materialised, TreeDestination};
use espalier_series as series;
use espalier_series::{ObjectId, ObjectKind, Patch, TreeChange};
use owners::check_owners;
use serde_json::json;

use super::{generation, lock_file};
use crate::stack::Stack;

/// Options of `apply`.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// Variant of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<Name>,
    /// Only check whether everything applies; write no tree to disk.
    #[arg(long)]
    pub check: bool,
    /// Discard manual edits in the tree on disk.
    #[arg(long, conflicts_with = "check")]
    pub discard_edits: bool,
    /// Print what would be done.
    #[arg(long)]
    pub dry_run: bool,
}

/// Handling of a stale lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locking {
    /// Rewrite it, unless `--locked` makes it an error.
    Update,
    /// Leave it as it is.
    Keep,
}

/// A variant, applied.
#[derive(Clone, Debug)]
pub struct Applied {
    /// Its pin.
    pub pin: Pin,
    /// The final tree.
    pub tree: ObjectId,
    /// Its entry in the lock.
    pub locked: LockedVariant,
    /// Whether nothing had changed since the last time.
    pub unchanged: bool,
}

/// Applies a variant and materialises it.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let access = if options.check { Access::Read } else { Access::Change };
    let (_lock, pins) = context.begin(options.dry_run, access)?;
    let variant = pins.variant(options.variant.as_deref())?;
    let place = place(context, variant);
    if options.dry_run {
        let mut steps = steps(context, &pins, variant)?;
        if !options.check {
            steps.push(Step::Materialise { folder: context.layout.show(&place.folder) });
        }
        let steps: Vec<String> = steps.iter().map(Step::to_string).collect();
        return Ok(Outcome::ok(steps.join("\n"), json!({ "steps": steps })));
    }
    let store = Store::open(&context.layout.store())?;
    let locking = if options.check { Locking::Keep } else { Locking::Update };
    let applied = apply(context, &store, &pins, variant, locking)?;
    let mut done = None;
    if !options.check {
        if options.discard_edits {
            materialise::discard_edits(&place)?;
        }
        done = Some(self::materialise(context, &store, &pins, variant, &applied)?);
    }
    Ok(outcome(context, variant, &applied, done))
}

fn outcome(context: &Context, variant: &Variant, applied: &Applied, done: Option<Materialised>) -> Outcome {
    let folder = context.layout.show(&context.layout.tree(&variant.name));
    let mut text = format!("{} tree {}", variant.name, applied.tree);
    if let Some(done) = done {
        let Materialised { written, removed, kept } = done;
        text += &format!("\n{folder}: {written} written, {removed} removed, {kept} kept");
    }
    let json = json!({
        "variant": variant.name,
        "tree": applied.tree.to_string(),
        "patches": applied.locked.patches,
        "unchanged": applied.unchanged,
        "written": done.map(|done| done.written),
        "removed": done.map(|done| done.removed),
    });
    Outcome::ok(text, json)
}

/// Returns the steps up to the final tree in memory.
pub fn steps(context: &Context, pins: &Pins, variant: &Variant) -> Result<Vec<Step>> {
    Ok(plan(context, pins, variant)?.0)
}

/// As [`steps`], with the result of the last run if nothing has changed since.
pub fn plan(context: &Context, pins: &Pins, variant: &Variant) -> Result<(Vec<Step>, Option<Applied>)> {
    let stack = Stack::read(&context.layout, pins, variant)?;
    let pin = &stack.pin;
    let store =
        disk::exists(&context.layout.store()).then(|| Store::open(&context.layout.store())).transpose()?;
    let there = store.as_ref().is_some_and(|store| store.has_pin(pin.tree));
    let sources = if there { Vec::new() } else { pin.describe_sources() };
    let applied = store.map(|store| unchanged(context, &store, &stack)).transpose()?.flatten();
    let unchanged = applied.as_ref().map(|applied| applied.tree.to_string());
    let patches = stack.files.iter().map(|patch| patch.file.clone()).collect();
    let steps = vec![
        Step::Fetch { pin: format!("{} {}", pin.upstream, pin.revision), sources },
        Step::Apply { patches, overlays: stack.overlays.len(), unchanged },
    ];
    Ok((steps, applied))
}

/// Whether the final tree is on disk, unmodified; changes nothing.
pub fn is_on_disk(context: &Context, variant: &Variant, applied: &Applied) -> Result<bool> {
    materialise::is_current(applied.tree, &place(context, variant))
}

/// Returns the final tree of `variant`: from the last run if nothing changed, otherwise by applying the series.
/// Checks the lock, and rewrites it unless `--locked` forbids that.
pub fn apply(
    context: &Context,
    store: &Store,
    pins: &Pins,
    variant: &Variant,
    locking: Locking,
) -> Result<Applied> {
    let stack = Stack::read(&context.layout, pins, variant)?;
    if let Some(applied) = unchanged(context, store, &stack)? {
        return Ok(applied);
    }
    stack.fetch(context, store)?;
    let applied = apply_stack(store, &stack)?;
    keep_base(store, variant, &applied.locked)?;
    if locking == Locking::Update || context.locked {
        lock_file::update(context, &variant.name, &applied.locked)?;
    }
    let text = applied.locked.to_text(&variant.name);
    disk::write_if_changed(&context.layout.applied(&variant.name), text.as_bytes())?;
    Ok(applied)
}

/// Writes the final tree to disk; touches only files that changed.
pub fn materialise(
    context: &Context,
    store: &Store,
    pins: &Pins,
    variant: &Variant,
    applied: &Applied,
) -> Result<Materialised> {
    let load = || {
        if store.has(applied.tree) {
            return Ok(());
        }
        // The pin of a canary is not in `pins`.
        let pin = applied.pin.clone();
        apply_stack(store, &Stack { pin, ..Stack::read(&context.layout, pins, variant)? }).map(drop)
    };
    materialise::materialise(store, applied.tree, &place(context, variant), load, &context.ui)
}

/// Returns the id of the folder `path` of the tree on disk; `None` if it does not exist.
pub fn tree_below(context: &Context, variant: &Variant, path: &str) -> Result<Option<ObjectId>> {
    materialise::tree_below(&place(context, variant), path)
}

/// Whether the tree on disk called `variant`, of a current or a former variant, has changes by a person.
///
/// # Errors
///
/// The tree or its record cannot be read.
pub fn has_edits(context: &Context, variant: &str) -> Result<bool> {
    // A name that we could not have created is a person's.
    let Ok(name) = Name::new(variant) else { return Ok(true) };
    materialise::has_edits(&place_of(context, &name))
}

fn place(context: &Context, variant: &Variant) -> TreeDestination {
    place_of(context, &variant.name)
}

fn place_of(context: &Context, variant: &Name) -> TreeDestination {
    TreeDestination { folder: context.layout.tree(variant), index: context.layout.tree_index(variant) }
}

/// Returns the result of the last run if the lock, the pin and every input are unchanged.
fn unchanged(context: &Context, store: &Store, stack: &Stack) -> Result<Option<Applied>> {
    let Stack { variant, pin, .. } = stack;
    let locked = lock_file::read(context)?.and_then(|lock| lock.variants.get(variant.name.as_str()).cloned());
    let is_current = |locked: &LockedVariant| is_same(locked, stack) && has_base(store, variant, locked);
    let Some(locked) = locked.filter(is_current) else { return Ok(None) };
    let Ok(tree) = locked.tree.parse::<ObjectId>() else { return Ok(None) };
    // A lock that came with a checkout is only a claim; only what was applied here counts as done.
    let done = disk::read_if_there(&context.layout.applied(&variant.name))?;
    let base = stack.generation.as_ref().map(|generation| generation.base.tree);
    let has_pins = std::iter::once(pin.tree).chain(base).all(|tree| store.has_pin(tree));
    if done.as_deref() != Some(locked.to_text(&variant.name).as_bytes()) || !has_pins {
        return Ok(None);
    }
    Ok(Some(Applied { pin: pin.clone(), tree, locked, unchanged: true }))
}

/// Returns the new entry of a variant on a generation whose patches may have changed on their own pin. If one of them
/// needs a sibling now, or has changed without its sibling, the entry stays as it is, and a warning names the patch and
/// the command that makes or reviews the sibling: that can be done only after the change.
pub fn locked_on_generation(context: &Context, store: &Store, stack: &Stack) -> Option<LockedVariant> {
    let applied = stack.fetch(context, store).and_then(|()| apply_stack(store, stack));
    match applied {
        Ok(applied) => Some(applied.locked),
        Err(error) => {
            let text = error.to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            context.ui.warn(format!("{} stays as it was locked: {text}", stack.variant.name));
            None
        }
    }
}

/// Writes the tree that the patches of `variant` were made for to the store: when a series that it extends changes,
/// they are rebased from there, and the patches that produced the tree no longer exist.
pub fn keep_base(store: &Store, variant: &Variant, locked: &LockedVariant) -> Result<()> {
    match &variant.patches {
        Some(folder) => store.write_tree_here(locked.tree_below(folder)?),
        None => Ok(()),
    }
}

/// Whether that tree is in the store.
fn has_base(store: &Store, variant: &Variant, locked: &LockedVariant) -> bool {
    let base = variant.patches.as_ref().map(|folder| locked.tree_below(folder));
    base.is_none_or(|base| base.is_ok_and(|base| store.has(base)))
}

fn is_same(locked: &LockedVariant, stack: &Stack) -> bool {
    let Stack { pin, files, .. } = stack;
    let patches = locked.patches.iter().map(|patch| (&patch.file, &patch.sha256));
    locked.base == pin.tree.to_string()
        && locked.pin == pin.revision.to_string()
        && patches.eq(files.iter().map(|patch| (&patch.file, &patch.sha256)))
        && locked.overlays == locked_overlays(&stack.overlays)
        && locked.made_for == made_for(stack)
        && locked.siblings == generation::locked_siblings(stack)
}

/// Returns the tree that the patches were made for, if they are on a generation.
fn made_for(stack: &Stack) -> Option<String> {
    stack.generation.as_ref().map(|generation| generation.base.tree.to_string())
}

fn locked_overlays(overlays: &[OverlayFile]) -> Vec<LockedFile> {
    let lock = |file: &OverlayFile| LockedFile { path: file.path.clone(), sha256: disk::sha256(&file.bytes) };
    overlays.iter().map(lock).collect()
}

/// Applies the whole series in memory: afterwards the store has every new tree and blob, none of them on disk.
pub fn apply_stack(store: &Store, stack: &Stack) -> Result<Applied> {
    let placed = generation::placed(store, stack)?;
    let stack = &*placed;
    let Stack { pin, patches, .. } = stack;
    let base = StoreTree::new(store, pin.tree)?;
    let outcomes = series::run_series(patches, &base)?;
    refuse_drift(stack, &outcomes)?;
    let commit = store.pin_commit(pin.tree)?;
    let mut applying = Applying { store, tree: GitTree::new(store, pin.tree)?, commit };
    let mut trees = Vec::with_capacity(patches.len());
    for (patch, outcome) in patches.iter().zip(&outcomes) {
        trees.push(applying.add_patch(patch, outcome.verdict.changes())?);
    }
    check_owners(&mut GitTree::new(store, pin.tree)?, &mut applying.tree, stack)?;
    let tree = applying.add_overlays(stack)?;
    Ok(applied(stack, &trees, tree))
}

/// Returns the tree after each of `patches`, in memory, without overlays. The first is applied to `base`, a tree of the
/// store that need not be that of a pin.
pub fn trees_after(store: &Store, base: ObjectId, patches: &[Patch]) -> Result<Vec<ObjectId>> {
    let outcomes = series::run_series(patches, &StoreTree::new(store, base)?)?;
    let mut tree = GitTree::new(store, base)?;
    let mut trees = Vec::with_capacity(patches.len());
    for (patch, outcome) in patches.iter().zip(&outcomes) {
        if let series::Verdict::Drifted(drift) = &*outcome.verdict {
            return Err(Error::no(format!("{} does not apply exactly", patch.name)).detail(drift.to_string()));
        }
        change_tree(store, &mut tree, outcome.verdict.changes())?;
        trees.push(tree.write()?);
    }
    Ok(trees)
}

/// Adds the overlays to `patched`, a tree that already has the series, as after a rebase. The pin of `stack` is the
/// tree that the series was applied to; `commit` is the commit of that tree.
pub fn overlay_onto(store: &Store, stack: &Stack, commit: ObjectId, patched: ObjectId) -> Result<Applied> {
    let mut applying = Applying { store, tree: GitTree::new(store, patched)?, commit };
    check_owners(&mut GitTree::new(store, stack.pin.tree)?, &mut applying.tree, stack)?;
    let tree = applying.add_overlays(stack)?;
    Ok(applied(stack, &vec![patched; stack.files.len()], tree))
}

fn applied(stack: &Stack, trees: &[ObjectId], tree: ObjectId) -> Applied {
    let Stack { pin, files, .. } = stack;
    let lock = |(file, tree): (&PatchFile, &ObjectId)| LockedPatch {
        file: file.file.clone(),
        sha256: file.sha256.clone(),
        tree: tree.to_string(),
    };
    let locked = LockedVariant {
        pin: pin.revision.to_string(),
        base: pin.tree.to_string(),
        patches: files.iter().zip(trees).map(lock).collect(),
        overlays: locked_overlays(&stack.overlays),
        tree: tree.to_string(),
        made_for: made_for(stack),
        siblings: generation::locked_siblings(stack),
    };
    Applied { pin: pin.clone(), tree, locked, unchanged: false }
}

/// Applies the changes of one patch to `tree`, and adds the new blobs to the store.
pub fn change_tree(store: &Store, tree: &mut GitTree<'_>, changes: &[TreeChange]) -> Result<()> {
    for change in changes {
        let entry = match &change.new {
            None => None,
            Some(file) => {
                if let Some(content) = &file.content {
                    store.keep(file.id, Arc::clone(content));
                }
                Some(Entry { mode: file.mode.as_git_mode(), id: file.id })
            }
        };
        tree.set(change.path.as_bytes(), entry)?;
    }
    Ok(())
}

/// The tree and the commit so far.
struct Applying<'a> {
    store: &'a Store,
    tree: GitTree<'a>,
    commit: ObjectId,
}

impl Applying<'_> {
    fn add_patch(&mut self, patch: &Patch, changes: &[TreeChange]) -> Result<ObjectId> {
        change_tree(self.store, &mut self.tree, changes)?;
        self.commit(&patch.message())
    }

    fn add_overlays(&mut self, stack: &Stack) -> Result<ObjectId> {
        if stack.overlays.is_empty() {
            return self.tree.write();
        }
        for file in &stack.overlays {
            let mode = if file.executable { 0o100_755 } else { 0o100_644 };
            let id = self.store.make(ObjectKind::Blob, file.bytes.clone());
            self.tree.set(file.path.as_bytes(), Some(Entry { mode, id }))?;
        }
        self.commit(&format!("Copy the overlays of {}\n", stack.variant.name))
    }

    fn commit(&mut self, message: &str) -> Result<ObjectId> {
        let tree = self.tree.write()?;
        let text = commit_text(tree, Some(self.commit), message);
        self.commit = self.store.make(ObjectKind::Commit, text.into_bytes());
        Ok(tree)
    }
}
