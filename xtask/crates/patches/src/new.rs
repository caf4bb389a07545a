//! `cargo xtask new`: the start of a patch, as a commit message with everything that a patch must state.

use clap::Args;
use espalier_core::config::name::Name;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::next_command::git_in;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::project::run_lock::Access;
use espalier_series::{LintRules, SUBJECT_LIMIT, TRAILER_KEYS};
use serde_json::json;

use crate::ready::ready;
use crate::ready::{When, series_folder};

/// Options of `new`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Subject of the patch, at most 72 characters.
    pub subject: String,
    /// Variant of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<Name>,
    /// Print the message and write nothing.
    #[arg(long)]
    pub dry_run: bool,
}

/// Prepares the edit repository so that `git commit` there offers the message. Existing work there is kept.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let subject = check_subject(&options.subject)?;
    let (_lock, pins) = context.begin(options.dry_run, Access::Change)?;
    let variant = pins.variant(options.variant.as_deref())?;
    series_folder(variant)?;
    let message = offered_message(subject, &context.lint_rules()?);
    let folder = context.layout.show(&context.layout.edit(&variant.name));
    if !options.dry_run {
        let store = Store::open(&context.layout.store())?;
        let ready = ready(context, &store, &pins, variant, When::Keep)?;
        ready.repo.offer_message(&context.layout.scratch(), Some(&message))?;
    }
    let json = json!({ "variant": variant.name, "folder": folder, "message": message });
    let text = if options.dry_run { message } else { next_steps(&folder, &variant.name) };
    Ok(Outcome::ok(text, json))
}

fn check_subject(subject: &str) -> Result<&str> {
    let subject = subject.trim();
    let length = subject.chars().count();
    let wrong = if subject.is_empty() {
        "is empty".to_string()
    } else if length > SUBJECT_LIMIT {
        format!("has {length} characters")
    } else if subject.starts_with('#') {
        "would be taken for a comment by git".to_string()
    } else if subject.chars().any(char::is_control) {
        "has a line end or another control character".to_string()
    } else {
        return Ok(subject);
    };
    Err(Error::usage(format!("the subject {wrong}")).hint(format!(
        "say what the patch does in 1 to {SUBJECT_LIMIT} characters: `models: flatten the input`"
    )))
}

/// Builds the message with the trailers that lint requires in this project.
fn offered_message(subject: &str, rules: &LintRules) -> String {
    let wanted = || TRAILER_KEYS.iter().filter(|(key, _)| rules.required().contains(key));
    let trailers: String = wanted().map(|(key, _)| format!("{key}: \n")).collect();
    let words: String = wanted().map(|(key, says)| format!("# {key}: {says}\n")).collect();
    let message = format!("{subject}\n\n# Why, in a few paragraphs.\n");
    if trailers.is_empty() {
        return message;
    }
    format!(
        "{message}\n{trailers}\n# Every patch has these trailers (docs/reference/patches.md):\n#\n{words}"
    )
}

fn next_steps(folder: &str, variant: &str) -> String {
    let git = git_in(folder);
    format!(
        "{folder}: `git commit` offers the message\n  next: change files there, then: {git} add --all && \
         {git} commit    # fill the trailers in\n  next: cargo xtask export {variant}    # writes the patch"
    )
}
