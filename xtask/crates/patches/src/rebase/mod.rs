//! `cargo xtask rebase`: all series on a pin, from its tree to another upstream tree; or one series, onto the series
//! that it extends.
//!
//! [`prepare`] replays and stages everything, and reports the result; [`Stage::commit`] performs the change. Between
//! the two the stage can be built and tested as if it were the project.

mod blame;
mod conflict;
pub mod descendants;
mod finish;
mod in_memory;
mod new_series;
mod parent;
mod place;
mod start;
pub mod state;
mod steps;
mod target;
mod waiting;
mod walk;

use espalier_core::config::pins::{Pins, Variant};
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Kind, Result};
use espalier_core::sys::git::store::Store;
use espalier_core::sys::project::run_lock::{self, Access};
use espalier_core::sys::project::stage::Stage;
use espalier_core::sys::upstream::tip::Tip;
use espalier_series::ObjectId;
use serde_json::json;
use target::Target;
pub use waiting::{abort, resume, skip};

pub use crate::rebase::state::Choices;
use crate::report::rebase::RebaseReport;
use crate::report::rebase_text;
use crate::stack::Stack;

/// Options for starting a rebase.
#[derive(Clone, Debug)]
pub struct Options {
    /// The variant that moves, or one on the pin that moves; the default one when none is given.
    pub variant: Option<String>,
    /// The destination.
    pub onto: Onto,
    /// Do everything in memory and write nothing.
    pub dry_run: bool,
    /// Handling of upstreamed patches and of ambiguities.
    pub choices: Choices,
}

/// The target of a rebase.
#[derive(Clone, Debug)]
pub enum Onto {
    /// Another upstream tree: the pin moves, with every series on it.
    Upstream(Upstream),
    /// The current series that the variant extends. No pin moves.
    Parent,
}

/// An upstream tree, as typed by the user.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// Tag, branch or commit to move to.
    pub to: String,
    /// A repository, bundle or URL that has it.
    pub from: Option<String>,
}

/// The actions of the command.
#[derive(Clone, Debug)]
pub enum Action {
    /// Start one.
    Start(Options),
    /// Continue after a conflict was resolved.
    Continue(Option<String>, Choices),
    /// Drop the patch with the conflict, and continue.
    Skip(Option<String>, Choices),
    /// Abandon the rebase.
    Abort(Option<String>),
}

/// A prepared rebase: nothing of the project has changed yet.
#[derive(Debug)]
pub struct Prepared {
    /// Result for every patch.
    pub report: RebaseReport,
    /// The project after the change.
    pub stage: Stage,
    /// Description of the change for people.
    pub what: String,
    /// Choices made beforehand, including before a conflict.
    pub choices: Choices,
}

/// Runs the requested action.
pub fn run(context: &Context, action: &Action) -> Result<Outcome> {
    let is_tried = matches!(action, Action::Start(Options { dry_run: true, .. }));
    let access = if is_tried { Access::Read } else { Access::Change };
    let _lock = run_lock::take(&context.layout, &context.ui, access)?;
    match action {
        Action::Start(options) => begin(context, options),
        Action::Continue(variant, choices) => {
            resume(context, variant.as_deref(), *choices).and_then(finished)
        }
        Action::Skip(variant, choices) => skip(context, variant.as_deref(), *choices).and_then(finished),
        Action::Abort(variant) => abort(context, variant.as_deref()),
    }
}

/// Replays every series on the pin and stages the result. The caller holds the run lock.
///
/// # Errors
///
/// A conflict is handed over as a work tree and is an error of kind `Conflict`; so is an upstreamed patch for which
/// no flag was given.
pub fn prepare(
    context: &Context,
    (variant, upstream): (Option<&str>, &Upstream),
    choices: Choices,
) -> Result<Prepared> {
    let pins = context.pins()?;
    waiting::refuse_waiting(context, pins.variant(variant)?)?;
    let store = Store::open(&context.layout.store())?;
    let moved = target::load(context, &pins, &store, (variant, upstream))?;
    start::start(&Target::Pin(moved), choices)
}

/// Returns the tree of the series on `tip`, without overlays, in memory.
///
/// # Errors
///
/// When a patch does not apply there automatically; the error names the obstacle.
pub fn tree_on(context: &Context, pins: &Pins, store: &Store, stack: &Stack, tip: &Tip) -> Result<ObjectId> {
    let series_move = target::onto(context, pins, store, stack.clone(), tip.clone());
    let choices = Choices { no_range_diff: true, ..Choices::default() };
    let tried = in_memory::run_series(&series_move, choices)?;
    let stays = tried.patches.iter().filter(|patch| !patch.fate.goes_by_itself());
    let reasons: Vec<String> =
        stays.map(|patch| format!("{}: {}", patch.file, patch.fate.describe())).collect();
    match reasons.is_empty() {
        true => Ok(tried.tree),
        false => Err(Error::no(format!("the series does not apply to {} automatically", tip.name))
            .detail(reasons.join("\n"))),
    }
}

/// Starts a rebase, or reports that there is nothing to do.
fn begin(context: &Context, options: &Options) -> Result<Outcome> {
    let pins = context.pins()?;
    let named = options.variant.as_deref();
    let variant = pins.variant(named)?;
    if !options.dry_run {
        waiting::refuse_waiting(context, variant)?;
    }
    let store = Store::open(&context.layout.store())?;
    let target = match &options.onto {
        Onto::Upstream(upstream) => {
            Some(Target::Pin(target::load(context, &pins, &store, (named, upstream))?))
        }
        Onto::Parent => parent::load(context, &pins, &store, variant)?,
    };
    match target {
        None => Ok(nothing_to_do(variant)),
        Some(target) if options.dry_run => dry_run(&target, options.choices),
        Some(target) => start::start(&target, options.choices).and_then(finished),
    }
}

fn nothing_to_do(variant: &Variant) -> Outcome {
    let name = &variant.name;
    let text = format!("{name} applies to what it extends; there is nothing to rebase");
    Outcome::ok(text, json!({ "variant": name, "written": false }))
}

fn dry_run(target: &Target<'_>, choices: Choices) -> Result<Outcome> {
    let report = in_memory::run(target, choices)?;
    let code = if report.patches.iter().any(|patch| patch.fate.waits()) {
        Kind::Conflict.exit_code()
    } else {
        let is_refused = choices.is_strict() && !report.reverts.is_empty();
        u8::from(is_refused || !report.overlays.is_empty())
    };
    Ok(Outcome { text: rebase_text::text(&report), json: json!(report), code })
}

fn finished(prepared: Prepared) -> Result<Outcome> {
    if prepared.choices.is_strict() && !prepared.report.reverts.is_empty() {
        let error =
            Error::no("the rebase would undo what upstream did since the old pin; nothing was written");
        let reverts = prepared.report.reverts.iter();
        return Err(reverts
            .fold(error, |error, revert| error.detail(revert.to_string()))
            .hint("look at those patches; if it is intended, run the same command with `--no-strict`"));
    }
    prepared.stage.commit(prepared.what)?;
    let report = RebaseReport { written: true, ..prepared.report };
    Ok(Outcome::ok(rebase_text::text(&report), json!(report)))
}
