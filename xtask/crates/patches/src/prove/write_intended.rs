//! `prove --write-intended`: an entry for every difference that has none, for a person to fill in the reason.

use espalier_core::config::intended::{Intended, with_entries};
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::next_command::quoted;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::run_lock::{self, Access};
use espalier_core::sys::project::stage::Stage;
use serde_json::json;

use super::state::ON_DISK;
use super::{Options, json_of, prove_states};
use crate::report::proof::MoveProof;
use crate::report::proof_text;

/// Compares the two states and writes what is missing; exits with 1 if anything is, because no entry has a reason yet.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let old = options.old.as_deref().unwrap_or_default();
    if options.new != ON_DISK {
        let what = format!("`{}` is a commit, and entries are written into the files on disk", options.new);
        return Err(Error::usage(what).hint(format!("cargo xtask prove {} . --write-intended", quoted(old))));
    }
    let _lock = run_lock::take(&context.layout, &context.ui, Access::Change)?;
    let proof = prove_states(context, (old, ON_DISK), options.variant.as_deref())?;
    let missing = proof.missing_entries();
    let mut json = json_of(&proof);
    json["written"] = json!(missing.keys().collect::<Vec<_>>());
    if missing.is_empty() {
        let text = format!("no entry is missing\n{}", proof_text::text(&proof, false));
        return Ok(Outcome { text, json, code: u8::from(!proof.holds()) });
    }
    let mut stage = Stage::begin(&context.layout)?;
    for (file, entries) in &missing {
        let known = disk::read_text_if_there(&context.layout.root().join(file))?.unwrap_or_default();
        stage.write(file, with_entries(&known, entries).as_bytes())?;
    }
    stage.commit("the entries for intended differences".to_string())?;
    let lines: Vec<String> = missing.iter().map(|(file, entries)| written(file, entries)).collect();
    Ok(Outcome { text: lines.join("\n") + &next(old, &proof), json, code: 1 })
}

fn written(file: &str, entries: &[Intended]) -> String {
    let differences: usize = entries.iter().map(|entry| entry.count).sum();
    let count = |number: usize, one: &str, many: &str| match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    };
    format!(
        "wrote {} for {} into {file}: give each its reason (`why`), or fix the series and remove it",
        count(entries.len(), "entry", "entries"),
        count(differences, "difference", "differences")
    )
}

/// Entries that count too much are printed here: they stay, and have to be corrected too.
fn next(old: &str, proof: &MoveProof) -> String {
    let stale: String = proof.stale.iter().map(|stale| format!("\n{stale}")).collect();
    format!("{stale}\nnext: then: cargo xtask prove {}", quoted(old))
}
