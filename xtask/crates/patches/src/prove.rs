//! `cargo xtask prove`: whether a move of the pin changed nothing but the bases of the series.
//!
//! Two states of this repository are compared, each with its pins, patches and lock. A state is one of its commits, or
//! the files on disk; a rebase that waits for its user can be compared with the series that it moves.

mod on_generation;
mod siblings;
mod state;
mod write_intended;

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use espalier_core::config::lock::{LockedFile, LockedVariant};
use espalier_core::config::name::Name;
use espalier_core::config::overlay::OverlayFile;
use espalier_core::config::pins::Pin;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::next_command::quoted;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::unverified::verification_of_pin;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::run_lock::{self, Access};
use espalier_core::sys::project::stage::Stage;
use espalier_series::ObjectId;
pub use on_generation::prove as prove_generation;
use serde_json::{Value, json};
pub use siblings::patches_on;
use state::State;

use super::{apply, generation};
use crate::proof::{self, SeriesTrees};
use crate::rebase;
use crate::rebase::state::read_id;
use crate::report::proof::{MoveProof, ProvenSeries};
use crate::report::proof_text;
use crate::report::rebase::ReportedTree;
use crate::stack::Stack;

/// Options of `prove`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// State before the move: a commit of this repository, such as `HEAD~1`.
    #[arg(value_name = "OLD", required_unless_present_any = ["rebase", "generation"])]
    pub old: Option<String>,
    /// State after the move: a commit, or `.` for the files on disk.
    #[arg(value_name = "NEW", default_value = ".", conflicts_with = "rebase")]
    pub new: String,
    /// Compare the patches that an unfinished rebase has done so far, instead of two states.
    #[arg(long, conflicts_with = "old")]
    pub rebase: bool,
    /// Compare the series on a generation with those on the pin that they were made for, instead of two states.
    #[arg(long, value_name = "PIN", conflicts_with_all = ["old", "new", "rebase"])]
    pub generation: Option<Name>,
    /// Variant of `pins.toml`; default: every series.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<Name>,
    /// Write an entry for every difference that has none into `docs/syncs/OLD-to-NEW.toml`, with a reason to fill in.
    #[arg(long, conflicts_with_all = ["rebase", "markdown", "long"])]
    pub write_intended: bool,
    /// Print every difference with its hunks, also those that are accounted for.
    #[arg(long)]
    pub long: bool,
    /// Print Markdown.
    #[arg(long, conflicts_with_all = ["json", "long"])]
    pub markdown: bool,
}

/// Compares the two states; exits with 1 if a difference has to be fixed or named as intended.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    if options.write_intended {
        return write_intended::run(context, options);
    }
    let _lock = run_lock::take(&context.layout, &context.ui, Access::Read)?;
    let variant = options.variant.as_deref();
    let mut proof = match (&options.old, &options.generation) {
        (Some(old), _) => prove_states(context, (old, &options.new), variant)?,
        (None, Some(generation)) => on_generation::prove(context, generation, variant)?,
        (None, None) => prove_rebase(context, variant)?,
    };
    if variant.is_some() {
        // The difference of an entry may be in another series.
        proof.stale.clear();
    }
    let text = match options.markdown {
        true => proof_text::markdown(&proof),
        false => proof_text::text(&proof, options.long) + &next(options, &proof),
    };
    Ok(Outcome { text, json: json_of(&proof), code: u8::from(!proof.holds()) })
}

/// Returns the next step if entries can be written: into the files on disk, for a move that is complete.
fn next(options: &Options, proof: &MoveProof) -> String {
    let states = match (&options.old, &options.generation) {
        _ if proof.open().is_empty() => return String::new(),
        (Some(old), _) if options.new == state::ON_DISK => format!("{} .", quoted(old)),
        (None, Some(generation)) => format!("--generation {}", quoted(generation)),
        _ => return String::new(),
    };
    format!("\n\nnext: write all entries: cargo xtask prove {states} --write-intended")
}

fn json_of(proof: &MoveProof) -> Value {
    let mut json = json!(proof);
    json["proved"] = json!(proof.is_proved());
    json
}

/// The proof of a move of one pin, and the series that only one of the two states has.
#[derive(Debug)]
pub struct PinProof {
    /// Every series on the pin that both states have.
    pub proof: MoveProof,
    /// Variants whose series is new.
    pub added: Vec<Name>,
    /// Variants whose series is gone.
    pub removed: Vec<Name>,
}

/// Compares every series on the pin `pin` in the files on disk with the commit `since`. The caller holds the run lock.
///
/// # Errors
///
/// A series of either state does not apply to its pin, or its lock is stale.
pub fn prove_since(context: &Context, since: &str, pin: &Name) -> Result<PinProof> {
    let (old, new) = (State::read(context, since)?, State::read(context, state::ON_DISK)?);
    let mut series: BTreeSet<Name> = BTreeSet::new();
    for state in [&old, &new] {
        series.extend(state.pins().series_on(pin).into_iter().map(|variant| variant.name.clone()));
    }
    let is_in = |state: &State<'_>, name: &Name| state.pins().variants.contains_key(name);
    let (removed, rest): (Vec<Name>, Vec<Name>) = series.into_iter().partition(|name| !is_in(&new, name));
    let (added, both): (Vec<Name>, Vec<Name>) = rest.into_iter().partition(|name| !is_in(&old, name));
    Ok(PinProof { proof: prove_variants(context, (&old, &new), both)?, added, removed })
}

/// Returns pins, lock and patches of the commit `since`, to be read as if they were those of the project.
///
/// # Errors
///
/// There is no such commit, or it has no valid `pins.toml`.
pub fn stage_at(context: &Context, since: &str) -> Result<Stage> {
    State::read(context, since)?.staged()
}

fn prove_states(context: &Context, (old, new): (&str, &str), variant: Option<&str>) -> Result<MoveProof> {
    let (old, new) = (State::read(context, old)?, State::read(context, new)?);
    let variants = variants(&old, &new, variant)?;
    prove_variants(context, (&old, &new), variants)
}

/// Compares the series of `variants`, which both states have.
fn prove_variants(
    context: &Context,
    (old, new): (&State<'_>, &State<'_>),
    variants: Vec<Name>,
) -> Result<MoveProof> {
    let store = Store::open(&context.layout.store())?;
    let mut proof =
        MoveProof { old: old.name().to_string(), new: new.name().to_string(), ..MoveProof::default() };
    for variant in variants {
        let (before, after) =
            (Applied::of(context, &store, old, &variant)?, Applied::of(context, &store, new, &variant)?);
        proof.series.push(before.proof_with(&store, &after)?);
        proof.overlays.extend(other_overlays(&before.locked, &after.locked));
    }
    proof.overlays.sort();
    proof.overlays.dedup();
    proof.take_reasons(|file| new.file(file))?;
    Ok(proof)
}

fn prove_rebase(context: &Context, variant: Option<&str>) -> Result<MoveProof> {
    let mut proof = MoveProof {
        old: "the series".to_string(),
        new: "the unfinished rebase".to_string(),
        series: rebase::prove_done(context, variant)?,
        ..MoveProof::default()
    };
    proof.take_reasons(|file| disk::read_if_there(&context.layout.root().join(file)))?;
    // What an entry is about may be in a patch that is still to come.
    proof.stale.clear();
    Ok(proof)
}

/// Returns the variants to compare: the named one, or one for each series.
fn variants(old: &State<'_>, new: &State<'_>, variant: Option<&str>) -> Result<Vec<Name>> {
    let wanted: BTreeSet<Name> = match variant {
        Some(name) => BTreeSet::from([new.pins().variant(Some(name))?.name.clone()]),
        None => old.series().chain(new.series()).collect(),
    };
    for (state, other) in [(old, new), (new, old)] {
        if let Some(name) = wanted.iter().find(|name| !state.pins().variants.contains_key(*name)) {
            let what = format!("{} has the variant {name}, and {} has not", other.name(), state.name());
            let both = wanted.iter().filter(|name| state.pins().variants.contains_key(*name));
            let hints = both.map(|name| format!("compare one that both have: --variant {name}"));
            return Err(hints.fold(Error::usage(what), Error::hint));
        }
    }
    Ok(wanted.into_iter().collect())
}

/// A series of one state, applied to its pin.
struct Applied {
    stack: Stack,
    locked: LockedVariant,
    trees: Vec<ObjectId>,
    /// The variant's own.
    overlays: Vec<OverlayFile>,
}

impl Applied {
    fn of(context: &Context, store: &Store, state: &State<'_>, variant: &Name) -> Result<Applied> {
        let stack = state.stack(variant)?;
        stack.fetch(context, store)?;
        let at = |error: Error| Error { what: format!("at {}: {}", state.name(), error.what), ..error };
        let stack = generation::placed(store, &stack).map_err(at)?.into_owned();
        let applied = apply::apply_stack(store, &stack).map_err(at)?;
        let locked = state.locked(variant, &applied.locked)?;
        let trees = applied.locked.patches.iter().map(|patch| read_id(&patch.tree)).collect::<Result<_>>()?;
        // They are for notes: a folder that is not there is reported by what builds it.
        let overlays = state.overlays(variant).unwrap_or_default();
        Ok(Applied { stack, locked, trees, overlays })
    }

    fn proof_with(&self, store: &Store, new: &Applied) -> Result<ProvenSeries> {
        let of_new = SeriesTrees::own_of(&new.stack, &new.trees).with_overlays(&new.overlays);
        let trees = (SeriesTrees::own_of(&self.stack, &self.trees), of_new);
        let proof = proof::prove(store, &trees.0, &trees.1, true)?;
        Ok(ProvenSeries {
            variant: self.stack.variant.name.to_string(),
            old: base_on(store, &self.stack.pin, trees.0.base),
            new: base_on(store, &new.stack.pin, trees.1.base),
            proof,
        })
    }
}

/// Returns the base `tree` of a series on `pin`.
fn base_on(store: &Store, pin: &Pin, tree: ObjectId) -> ReportedTree {
    ReportedTree::new(&pin.revision, tree, verification_of_pin(store, pin.tree))
}

/// Returns the overlay files that differ between the locks of two states.
fn other_overlays(old: &LockedVariant, new: &LockedVariant) -> Vec<String> {
    let digests = |locked: &LockedVariant| -> BTreeMap<String, String> {
        let digest = |file: &LockedFile| (file.path.clone(), file.sha256.clone());
        locked.overlays.iter().map(digest).collect()
    };
    let (old, new) = (digests(old), digests(new));
    let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    paths.into_iter().filter(|path| old.get(*path) != new.get(*path)).cloned().collect()
}
