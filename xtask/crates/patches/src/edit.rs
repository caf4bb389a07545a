//! `cargo xtask edit`: a variant's series as real commits, in a repository where any git tool works.

use clap::Args;
use espalier_core::config::name::Name;
use espalier_core::config::pins::Variant;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::next_command::git_in;
use espalier_core::plan::steps::Step;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::project::run_lock::Access;
use serde_json::json;

use crate::apply;
use crate::ready::{Ready, When, ready, series_folder};

/// Options of `edit`.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// Variant of `pins.toml`.
    pub variant: Option<Name>,
    /// Discard work in the edit repository that is in no patch.
    #[arg(long)]
    pub discard: bool,
    /// Print what would be done.
    #[arg(long)]
    pub dry_run: bool,
}

/// Creates the edit repository of a variant, unless it exists and is up to date.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let (_lock, pins) = context.begin(options.dry_run, Access::Change)?;
    let variant = pins.variant(options.variant.as_deref())?;
    series_folder(variant)?;
    if options.dry_run {
        let mut steps = apply::steps(context, &pins, variant)?;
        steps.push(Step::Edit { folder: context.layout.show(&context.layout.edit(&variant.name)) });
        let steps: Vec<String> = steps.iter().map(Step::to_string).collect();
        return Ok(Outcome::ok(steps.join("\n"), json!({ "steps": steps })));
    }
    let store = Store::open(&context.layout.store())?;
    let when = if options.discard { When::Discard } else { When::Refuse };
    let ready = ready(context, &store, &pins, variant, when)?;
    Ok(outcome(context, variant, &ready))
}

fn outcome(context: &Context, variant: &Variant, ready: &Ready) -> Outcome {
    let folder = context.layout.show(ready.repo.folder());
    let own = ready.series.stack.own_files().len();
    let done = if ready.made { "made" } else { "there already" };
    let after = match ready.series.stack.parents {
        0 => String::new(),
        parents => format!(", after {parents} of the variants it extends"),
    };
    let commits = if own == 1 { "commit" } else { "commits" };
    let overlay = match ready.series.stack.overlays.is_empty() {
        true => "",
        false => "  overlay files are links, in no commit: a build uses a change of one without an export\n",
    };
    let steps = next_steps(&folder, &variant.name);
    let text = format!("{folder}: {done}, {own} {commits} of {}{after}\n{overlay}{steps}", variant.name);
    let marks = &ready.marks;
    let json = json!({
        "variant": variant.name,
        "folder": folder,
        "branch": ready.repo.branch(),
        "made": ready.made,
        "pin": marks.pin.to_string(),
        "base": marks.base.to_string(),
        "tip": marks.made.to_string(),
        "commits": own,
    });
    Outcome::ok(text, json)
}

fn next_steps(folder: &str, variant: &str) -> String {
    let git = git_in(folder);
    format!(
        "  next: {git} rebase -i    # or commit, amend: any git tool\n  \
         next: cargo xtask export {variant}    # writes the patches"
    )
}
