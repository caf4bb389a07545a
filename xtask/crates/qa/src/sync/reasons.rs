//! The reasons for intended differences of a move, in a file beside its report.

use espalier_core::config::intended::{Intended, intended_file, read_intended, with_entries};
use espalier_core::config::snippet::SourceText;
use espalier_core::context::Context;
use espalier_core::error::Result;
use espalier_core::sys::machine::disk;
use espalier_patches::report::proof::MoveProof;
use espalier_patches::report::proof_intended::entry_for;

use crate::report::sync::SyncReport;

/// The file with the reasons, to be written with the move.
pub struct Reasons {
    /// Its path, relative to the root.
    pub file: String,
    /// Its new content.
    pub text: String,
}

/// Takes the reasons over into the report. Returns the file with those that the move itself gives: which upstream
/// commits contain a dropped patch can only be told while they are available, and `prove` needs it later.
pub fn take(context: &Context, report: &mut SyncReport) -> Result<Option<Reasons>> {
    let given = given_by_move(&report.proof);
    let root = context.layout.root();
    report.proof.take_reasons(|file| disk::read_if_there(&root.join(file)))?;
    let file = intended_file(&report.old.name, &report.new.name);
    let text = disk::read_text_if_there(&root.join(&file))?.unwrap_or_default();
    let known = read_intended(SourceText { name: &file, text: &text })?;
    let is_known =
        |entry: &Intended| known.iter().any(|known| known.class == entry.class && known.path == entry.path);
    let added: Vec<Intended> = given.into_iter().filter(|entry| !is_known(entry)).collect();
    if added.is_empty() {
        return Ok(None);
    }
    Ok(Some(Reasons { text: with_entries(&text, &added), file }))
}

fn given_by_move(proof: &MoveProof) -> Vec<Intended> {
    let findings = proof.series.iter().flat_map(|series| series.proof.findings());
    findings.filter_map(|finding| Some(entry_for(finding, finding.intended.as_deref()?))).collect()
}
