//! `prove --write-intended`: an entry for every difference that has none, for a person to fill in the reason. Entries that
//! have a number alone are completed first, with the differences that it is of.

use std::collections::BTreeMap;

use espalier_core::config::intended::{Intended, NamedDifferences, with_entries, with_names};
use espalier_core::config::snippet::SourceText;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::next_command::quoted;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::run_lock::{self, Access};
use espalier_core::sys::project::stage::Stage;
use serde_json::json;

use super::state::ON_DISK;
use super::{Options, json_of, on_generation, prove_states};
use crate::report::proof::MoveProof;
use crate::report::proof_text;

/// Compares the two states and writes what is missing; exits with 1 if anything is, because a person has to read it.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let old = options.old.as_deref().unwrap_or_default();
    if options.generation.is_none() && options.new != ON_DISK {
        let what = format!("`{}` is a commit, and entries are written into the files on disk", options.new);
        return Err(Error::usage(what).hint(format!("cargo xtask prove {} . --write-intended", quoted(old))));
    }
    let _lock = run_lock::take(&context.layout, &context.ui, Access::Change)?;
    let variant = options.variant.as_deref();
    let (proof, again) = match &options.generation {
        Some(generation) => {
            let again = format!("--generation {}", quoted(generation));
            (on_generation::prove(context, generation, variant)?, again)
        }
        None => (prove_states(context, (old, ON_DISK), variant)?, quoted(old)),
    };
    let (written, lines) = match proof.numbered.is_empty() {
        true => added(context, &proof.missing_entries())?,
        false => completed(context, &proof.numbered)?,
    };
    let mut json = json_of(&proof);
    json["written"] = json!(written.keys().collect::<Vec<_>>());
    if written.is_empty() {
        let text = format!("no entry is missing\n{}", proof_text::text(&proof, false));
        return Ok(Outcome { text, json, code: u8::from(!proof.holds()) });
    }
    let mut stage = Stage::begin(&context.layout)?;
    for (file, text) in &written {
        stage.write(file, text.as_bytes())?;
    }
    stage.commit("the entries for intended differences".to_string())?;
    Ok(Outcome { text: lines.join("\n") + &next(&again, &proof), json, code: 1 })
}

/// The new text of each file.
type Texts = BTreeMap<String, String>;

/// Returns the files with entries for all differences that have none, and a line about each file.
fn added(context: &Context, missing: &BTreeMap<String, Vec<Intended>>) -> Result<(Texts, Vec<String>)> {
    let (mut texts, mut lines) = (Texts::new(), Vec::new());
    for (file, entries) in missing {
        texts.insert(file.clone(), with_entries(&text_of(context, file)?, entries));
        let differences: usize = entries.iter().map(|entry| entry.named.count()).sum();
        lines.push(format!(
            "wrote {} for {} into {file}: give each its reason (`why`), or fix the series and remove it",
            counted(entries.len(), "entry", "entries"),
            counted(differences, "difference", "differences")
        ));
    }
    Ok((texts, lines))
}

/// Returns the files with names in the entries that have a number alone, and a line about each file.
fn completed(
    context: &Context,
    numbered: &BTreeMap<String, Vec<(usize, NamedDifferences)>>,
) -> Result<(Texts, Vec<String>)> {
    let (mut texts, mut lines) = (Texts::new(), Vec::new());
    for (file, named) in numbered {
        let text = text_of(context, file)?;
        texts.insert(file.clone(), with_names(SourceText { name: file, text: &text }, named)?);
        let differences: usize = named.iter().map(|(_, named)| named.count()).sum();
        lines.push(format!(
            "named {} in {} of {file}, which had a number alone: check that each reason is about these lines",
            counted(differences, "difference", "differences"),
            counted(named.len(), "entry", "entries")
        ));
    }
    Ok((texts, lines))
}

fn text_of(context: &Context, file: &str) -> Result<String> {
    Ok(disk::read_text_if_there(&context.layout.root().join(file))?.unwrap_or_default())
}

fn counted(number: usize, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    }
}

/// Entries that name what is not there are printed here: they stay, and have to be corrected too.
fn next(again: &str, proof: &MoveProof) -> String {
    let is_completed = !proof.numbered.is_empty();
    let stale = proof.stale.iter().filter(|_| !is_completed);
    let stale: String = stale.map(|stale| format!("\n{stale}")).collect();
    format!("{stale}\nnext: then: cargo xtask prove {again}")
}
