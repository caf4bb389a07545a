//! `cargo xtask rebase`: all series on a pin, from its tree to another upstream tree; or one series, onto the series
//! that it extends.
//!
//! [`prepare`] replays and stages everything, and reports the result; [`Stage::commit`] performs the change. Between
//! the two the stage can be built and tested as if it were the project.

mod ahead;
mod allowed_edits;
mod blame;
mod checks;
mod conflict;
pub mod descendants;
mod dropped;
mod edits_beside;
mod finish;
mod handed_over;
mod in_memory;
mod new_series;
mod on_generation;
mod on_tip;
mod package;
mod parent;
mod place;
mod references;
mod same_functions;
mod sibling_stop;
mod start;
pub mod state;
mod steps;
mod stop;
mod target;
mod verify;
mod waiting;
mod walk;

use std::ffi::OsString;

use allowed_edits::AllowedEdits;
use clap::Args;
use espalier_core::config::name::Name;
use espalier_core::config::pins::{Pin, Pins, Variant};
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Kind, Result};
use espalier_core::next_command::next_command;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::inputs::find_patch;
use espalier_core::sys::project::root::absolute;
use espalier_core::sys::project::run_lock::{self, Access};
use espalier_core::sys::project::stage::Stage;
use espalier_core::sys::upstream::tip::Tip;
use espalier_series::ObjectId;
pub use on_tip::conflicts_on;
use serde_json::json;
use target::Target;
pub use target::refuse_unverified;
pub use waiting::{abort, prove_done, resume, skip};

use crate::generation;
use crate::pinned_series::tip_of;
pub use crate::rebase::state::Choices;
use crate::rebase::state::SeriesState;
use crate::report::proof::MoveProof;
use crate::report::rebase::{Fate, RebaseReport};
use crate::report::rebase_text;
use crate::stack::Stack;

/// Options of `rebase`.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// Target: tag, branch or commit id, also `v1.0~3`; default: the current state of the variant's base, that is, the
    /// series that it extends or its generation (for a generation the result is siblings); with `--edit`, the current
    /// pin.
    #[arg(long, value_name = "REF")]
    pub to: Option<String>,
    /// The series, and the source of the target.
    #[command(flatten)]
    pub common: MoveOptions,
    /// The action, unless a rebase is started.
    #[command(flatten)]
    pub step: Step,
    /// Stop at a patch to edit it, as at a conflict: by file name, path or number (the variant's own before its
    /// parents'). Can be repeated.
    #[arg(long, value_name = "NNNN", conflicts_with_all = ["dry_run", "abort"])]
    pub edit: Vec<String>,
    /// With `--continue`: accept edits of files and lines that were not in conflict, in these files only, or in all if none
    /// is named. Can be repeated.
    #[arg(long, value_name = "PATH", num_args = 0.., requires = "go_on")]
    pub allow_edits: Option<Vec<OsString>>,
    /// Fail if a patch would undo what upstream did since the old pin: lines that it added or deleted, or a
    /// binary file that it changed.
    #[arg(long, overrides_with = "no_strict")]
    pub strict: bool,
    /// Only warn, even if `--strict` was given before.
    #[arg(long)]
    pub no_strict: bool,
    /// Do not show how each patch changed.
    #[arg(long)]
    pub no_range_diff: bool,
    /// Do everything in memory, print what would happen, write nothing.
    #[arg(long, conflicts_with = "step")]
    pub dry_run: bool,
}

/// The next step of a rebase that waits for its user; at most one.
#[derive(Clone, Copy, Debug, Default, Args)]
#[group(id = "step", conflicts_with = "to", multiple = false)]
pub struct Step {
    /// Continue after conflicts were resolved and staged.
    #[arg(long = "continue")]
    pub go_on: bool,
    /// Drop the conflicting patch and continue.
    #[arg(long)]
    pub skip: bool,
    /// Abandon the rebase; nothing in the project has changed.
    #[arg(long)]
    pub abort: bool,
}

/// Common options of `rebase` and `sync`.
#[derive(Clone, Debug, Default, Args)]
pub struct MoveOptions {
    /// Repository, bundle or URL to fetch it from, instead of the pin's sources.
    #[arg(long, value_name = "PATH|URL", requires = "to", value_parser = absolute)]
    pub from: Option<String>,
    /// Variant of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<Name>,
    /// Drop patches that are fully upstreamed.
    #[arg(long)]
    pub drop_upstreamed: bool,
    /// Trim the upstreamed parts of patches.
    #[arg(long)]
    pub trim_upstreamed: bool,
    /// Stop at partly upstreamed patches, to edit them by hand as after a conflict.
    #[arg(long, conflicts_with = "trim_upstreamed")]
    pub edit_upstreamed: bool,
}

impl MoveOptions {
    /// Returns the choices about upstreamed patches.
    #[must_use]
    pub fn choices(&self) -> Choices {
        let &MoveOptions { drop_upstreamed, trim_upstreamed, edit_upstreamed, .. } = self;
        Choices { drop_upstreamed, trim_upstreamed, edit_upstreamed, ..Choices::default() }
    }
}

impl Options {
    fn choices(&self) -> Choices {
        Choices {
            strict: (self.strict || self.no_strict).then_some(self.strict),
            no_range_diff: self.no_range_diff,
            ..self.common.choices()
        }
    }

    fn wishes(&self) -> Wishes<'_> {
        Wishes { choices: self.choices(), edit: &self.edit }
    }
}

/// The decisions of the user for the rest of a rebase.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wishes<'o> {
    /// Those about all patches.
    pub choices: Choices,
    /// Names of the patches at which to stop.
    pub edit: &'o [String],
}

/// An upstream tree, as typed by the user.
#[derive(Clone, Copy, Debug)]
pub struct Upstream<'a> {
    /// Tag, branch or commit to move to.
    pub to: &'a str,
    /// A repository, bundle or URL that has it.
    pub from: Option<&'a str>,
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

/// Starts a rebase, or takes the requested step of one that waits.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let access = if options.dry_run { Access::Read } else { Access::Change };
    let _lock = run_lock::take(&context.layout, &context.ui, access)?;
    let (variant, wishes) = (options.common.variant.as_deref(), options.wishes());
    match options.step {
        Step { abort: true, .. } => abort(context, variant),
        Step { skip: true, .. } => finished(context, skip(context, variant, wishes)?),
        Step { go_on: true, .. } => {
            let allowed = AllowedEdits::of(options.allow_edits.as_deref());
            finished(context, resume(context, variant, wishes, allowed)?)
        }
        _ => begin(context, options),
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
    (variant, upstream): (Option<&str>, Upstream<'_>),
    choices: Choices,
) -> Result<Prepared> {
    let pins = context.pins()?;
    let variant = pins.variant(variant)?;
    pins.refuse_generation(variant, "rebase --to REF")?;
    waiting::refuse_waiting(context, variant)?;
    let store = Store::open(&context.layout.store())?;
    let moved = target::load(context, &pins, &store, (variant, upstream))?;
    start::start(&Target::Pin(moved), choices, Vec::new())
}

/// Returns the tree of the series on `tip`, without overlays, in memory.
///
/// # Errors
///
/// When a patch does not apply there automatically; the error names the obstacle.
pub fn tree_on(context: &Context, pins: &Pins, store: &Store, stack: &Stack, tip: &Tip) -> Result<ObjectId> {
    let stack = generation::placed(store, stack)?.into_owned();
    let series_move = target::onto(context, pins, store, stack, tip.clone());
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
    let variant = pins.variant(options.common.variant.as_deref())?;
    if !options.dry_run {
        waiting::refuse_waiting(context, variant)?;
    }
    let store = Store::open(&context.layout.store())?;
    let target = match &options.to {
        Some(to) => {
            pins.refuse_generation(variant, "rebase --to REF")?;
            let upstream = Upstream { to, from: options.common.from.as_deref() };
            Some(Target::Pin(target::load(context, &pins, &store, (variant, upstream))?))
        }
        None if variant.like.is_none() && options.edit.is_empty() => {
            parent::load(context, &pins, &store, variant)?
        }
        None if variant.like.is_none() => Some(in_place(context, &pins, &store, variant)?),
        None if options.dry_run => {
            return on_generation::dry_run(context, &pins, &store, (variant, options.choices()));
        }
        None if options.edit.is_empty() => on_generation::load_if_needed(context, &pins, &store, variant)?,
        None => Some(on_generation::load(context, &pins, &store, variant)?),
    };
    match target {
        None => Ok(nothing_to_do(variant)),
        Some(target) if options.dry_run => dry_run(&target, options),
        Some(target) => {
            let mut edit = edit_stops(&target, &options.edit, &[])?;
            edit.extend(on_generation::behind(&target));
            edit.sort();
            edit.dedup();
            finished(context, start::start(&target, options.choices(), edit)?)
        }
    }
}

/// Returns the replay for a stop without a move: of the series of `variant` onto the one that it extends if it no longer
/// applies there, otherwise of every series on the pin, onto the pin.
fn in_place<'a>(
    context: &'a Context,
    pins: &'a Pins,
    store: &'a Store,
    variant: &'a Variant,
) -> Result<Target<'a>> {
    if pins.parent_series(variant).is_some()
        && let Some(target) = parent::load(context, pins, store, variant)?
    {
        return Ok(target);
    }
    let present = |pin: &Pin| tip_of(store, pin);
    Ok(Target::Pin(target::load_with_tip(context, pins, store, variant, present)?))
}

/// Returns the files of the patches that `names` select among those of the named variant and its parents. `series` has
/// the patches that are replayed already.
fn edit_stops(target: &Target<'_>, names: &[String], series: &[SeriesState]) -> Result<Vec<String>> {
    let stack = &target.named().stack;
    let file_of = |name: &String| {
        let found = find_patch(&stack.files, name).and_then(|at| stack.files.get(at));
        let Some(found) = found else {
            let all: Vec<&str> = stack.files.iter().map(|file| file.file.as_str()).collect();
            return Err(Error::usage(format!("`{}` has no patch `{name}`", stack.variant.name))
                .detail(all.join("\n"))
                .hint("name one by its number: --edit 0001"));
        };
        let is_done = series.iter().flat_map(|series| &series.done).any(|done| done.file == found.file);
        match is_done {
            true => Err(Error::usage(format!("{} is replayed already", found.file))
                .hint(edit_afterwards(target, &found.file))),
            false => Ok(found.file.clone()),
        }
    };
    names.iter().map(file_of).collect()
}

/// Returns the hint for a patch that is past the point at which it could be edited.
fn edit_afterwards(target: &Target<'_>, file: &str) -> String {
    let Stack { variant, files, .. } = &target.named().stack;
    match target {
        Target::Generation(_) => {
            format!("change its sibling afterwards: {}", generation::edit_command(&variant.name, files, file))
        }
        Target::Pin(_) | Target::Series(_) => "change it after the move: cargo xtask edit".to_string(),
    }
}

fn nothing_to_do(variant: &Variant) -> Outcome {
    let name = &variant.name;
    let text = match &variant.like {
        Some(_) => format!("{name} applies to its generation, {}; there is nothing to rebase", variant.pin),
        None => format!("{name} applies to what it extends; there is nothing to rebase"),
    };
    Outcome::ok(text, json!({ "variant": name, "written": false }))
}

fn dry_run(target: &Target<'_>, options: &Options) -> Result<Outcome> {
    let choices = options.choices();
    let mut report = in_memory::run(target, choices)?;
    let code = if report.patches.iter().any(|patch| patch.fate.waits()) {
        Kind::Conflict.exit_code()
    } else {
        let is_refused = choices.is_strict() && report.undone().next().is_some();
        u8::from(is_refused || !report.overlays.is_empty())
    };
    report.next = after_dry_run(&report, options).into_iter().collect();
    Ok(Outcome { text: rebase_text::text(&report), json: json!(report), code })
}

/// Returns the command of the rebase that was tried, with what it does first.
fn after_dry_run(report: &RebaseReport, options: &Options) -> Option<String> {
    if !report.overlays.is_empty() || report.is_there() {
        return None;
    }
    let (to, from) = (options.to.as_deref(), options.common.from.as_deref());
    let mut command = next_command("rebase", &[("--to", to), ("--from", from)]);
    let choices = options.choices();
    let is_met = |fate: Fate| report.count(|other| other == fate) > 0;
    // The two exclude each other: an explicit choice holds. A counter in doubt is edited, because trimming keeps it.
    let is_in_doubt = report.patches.iter().any(|patch| patch.counter_in_doubt);
    let edits = choices.edit_upstreamed || is_in_doubt && !choices.trim_upstreamed;
    for (flag, is_needed) in [
        ("--drop-upstreamed", choices.drop_upstreamed || is_met(Fate::Upstreamed)),
        ("--trim-upstreamed", !edits && (choices.trim_upstreamed || is_met(Fate::PartlyUpstreamed))),
        ("--edit-upstreamed", edits),
    ] {
        if is_needed {
            command += &format!(" {flag}");
        }
    }
    let effect = match (is_met(Fate::Conflict), edits && is_met(Fate::PartlyUpstreamed)) {
        (true, false) => "it stops at each patch in conflict",
        (true, true) => "it stops at each patch in conflict, and at those that upstream has in part",
        (false, true) => "it stops at each patch that upstream has in part",
        (false, false) => "move them",
    };
    Some(format!("{effect}: {command}"))
}

fn finished(context: &Context, prepared: Prepared) -> Result<Outcome> {
    if prepared.choices.is_strict() && prepared.report.undone().next().is_some() {
        let error =
            Error::no("the rebase would undo what upstream did since the old pin; nothing was written");
        let undone = prepared.report.undone();
        return Err(undone
            .fold(error, |error, revert| error.detail(revert.to_string()))
            .hint("look at those patches; if it is intended, run the same command with `--no-strict`"));
    }
    prepared.stage.commit(prepared.what)?;
    let mut report = RebaseReport { written: true, ..prepared.report };
    // Additions: the move is done.
    if let Err(error) = take_reasons(context, &mut report) {
        let text = error.to_string();
        context.ui.warn(text.strip_prefix("error: ").unwrap_or(&text));
    }
    report.references = references::stale(context, &report).unwrap_or_default();
    Ok(Outcome::ok(rebase_text::text(&report), json!(report)))
}

/// Takes over the reasons that the project has for differences. On a generation, these are there after each rebase:
/// every sibling is compared with its patch on the pin.
fn take_reasons(context: &Context, report: &mut RebaseReport) -> Result<()> {
    let mut proof = MoveProof { series: std::mem::take(&mut report.proof), ..MoveProof::default() };
    let taken = proof.take_reasons(|file| disk::read_if_there(&context.layout.root().join(file)));
    (report.proof, report.stale) = (proof.series, proof.stale);
    taken
}
