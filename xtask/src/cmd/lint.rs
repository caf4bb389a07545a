//! `cargo xtask lint`: what a machine can say about our own patches without applying them.

use serde_json::json;

use super::{Context, Outcome};
use crate::error::{Error, Result};
use crate::series::{self, Finding};
use crate::sys::inputs::{PatchFile, read_stack};

/// Reads every patch of every variant; any finding makes the answer no.
pub fn run(context: &Context) -> Result<Outcome> {
    let pins = context.pins()?;
    let mut lines = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for variant in pins.variants.values() {
        for patch in read_stack(&context.layout, &pins.stack(variant))?.patches {
            if seen.insert(patch.file.clone()) {
                lines.extend(findings_of(&patch)?.iter().map(|finding| describe(&patch.file, finding)));
            }
        }
    }
    if lines.is_empty() {
        let text = format!("{} patches, nothing to complain about", seen.len());
        return Ok(Outcome::ok(text, json!({ "patches": seen, "findings": [] })));
    }
    Err(Error::no(format!("{} findings in {} patches", lines.len(), seen.len())).detail(lines.join("\n")))
}

fn findings_of(patch: &PatchFile) -> Result<Vec<Finding>> {
    Ok(series::lint_patch(&patch.parse()?, &patch.bytes))
}

fn describe(file: &str, finding: &Finding) -> String {
    let line = finding.line.map(|line| format!(":{line}")).unwrap_or_default();
    format!("{file}{line}: {}\n  {}", finding.message, finding.hint)
}
