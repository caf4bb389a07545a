//! The error for a series that is not exact: every patch's report, and the next step.

use std::collections::BTreeSet;

use espalier_core::error::{Error, Kind, Result};
use espalier_series::{PatchClass, PatchOutcome, Verdict};

use crate::stack::Stack;

/// Returns an error if any patch is less than exact; all patches have been examined by then.
pub fn refuse_drift(stack: &Stack, outcomes: &[PatchOutcome]) -> Result<()> {
    let drifted: Vec<(&str, &PatchOutcome)> = stack
        .files
        .iter()
        .map(|patch| patch.file.as_str())
        .zip(outcomes)
        .filter(|(_, outcome)| outcome.class != PatchClass::Exact)
        .collect();
    if drifted.is_empty() {
        return Ok(());
    }
    let what = format!(
        "{} of {} patches do not apply exactly to {} {}; nothing was written",
        drifted.len(),
        outcomes.len(),
        stack.pin.upstream,
        stack.pin.revision
    );
    let mut error = Error::new(Kind::No, what);
    for (file, outcome) in drifted {
        error = error.detail(report(file, outcome));
    }
    if is_child_alone(stack, outcomes) {
        let name = &stack.variant.name;
        error = error
            .hint(format!("if a variant that it extends has changed: cargo xtask rebase --variant {name}"));
    }
    let hints: BTreeSet<&str> = outcomes.iter().filter_map(|outcome| next_step(outcome)).collect();
    Err(hints.into_iter().fold(error, |error, hint| error.hint(hint)))
}

/// Whether all patches of the extended variants are exact, and some of the variant's own are not.
fn is_child_alone(stack: &Stack, outcomes: &[PatchOutcome]) -> bool {
    let parents = outcomes.get(..stack.parents).unwrap_or_default();
    !parents.is_empty() && parents.iter().all(|outcome| outcome.class == PatchClass::Exact)
}

/// Returns the next command or action for one patch.
fn next_step(outcome: &PatchOutcome) -> Option<&'static str> {
    Some(match outcome.class {
        PatchClass::Exact => return None,
        PatchClass::Upstreamed => {
            "drop what is upstreamed: delete the patch, renumber the rest, cargo xtask lock"
        }
        PatchClass::PartlyUpstreamed => "trim the hunks that are upstreamed: docs/guides/change-a-patch.md",
        PatchClass::Blocked => "fix the blocking patch first; the blocked one may then apply unchanged",
        PatchClass::Refused => {
            "if it was edited by hand, give its `index` line the blob id of the result; if not, do not trust it"
        }
        PatchClass::TargetRenamed | PatchClass::TargetDeleted => {
            "follow the file: regenerate the patch on the pinned tree: docs/guides/change-a-patch.md"
        }
        PatchClass::Shifted
        | PatchClass::Merged
        | PatchClass::Followed
        | PatchClass::MovedFunction
        | PatchClass::Ambiguous
        | PatchClass::Conflict => {
            "regenerate the patch from a commit on the pinned tree: docs/guides/change-a-patch.md"
        }
    })
}

/// Renders the patch's own report under our heading: its class in the series, and the path to open.
fn report(file: &str, outcome: &PatchOutcome) -> String {
    let mut heading = format!("{file}: {}", outcome.class.describe());
    if !outcome.blocked_by.is_empty() {
        heading += &format!(" by {}", outcome.blocked_by.join(", "));
    }
    if outcome.provisional {
        heading += " (provisional: an earlier patch failed)";
    }
    let Verdict::Drifted(drift) = &*outcome.verdict else { return heading };
    let text = drift.to_string();
    let body: Vec<&str> = text.lines().skip(1).collect();
    format!("{heading}\n{}", body.join("\n"))
}
