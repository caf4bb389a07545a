//! Messages about a person's own changes to a tree on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use espalier_series::printable;
use git2::IndexEntry;

use super::Plan;
use crate::error::{Error, Kind, Result};
use crate::ui::Ui;

/// Refuses to touch anything while a file exists that we did not write.
pub(super) fn refuse_edits(plan: &Plan, folder: &Path) -> Result<()> {
    if plan.edited.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> =
        plan.edited.iter().take(10).map(|path| espalier_series::lossy(path).into_owned()).collect();
    let more = plan.edited.len().saturating_sub(shown.len());
    let more = if more > 0 { format!("\nand {more} more") } else { String::new() };
    let variant = folder.file_name().unwrap_or_default().to_string_lossy();
    Err(Error::new(
        Kind::Conflict,
        format!("`{}` has changes that are in no patch; nothing was changed", folder.display()),
    )
    .detail(format!("{}{more}", shown.join("\n")))
    .hint("keep them: copy the files away, or turn them into a patch (docs/guides/change-a-patch.md)")
    .hint(format!("discard them: cargo xtask apply --variant {variant} --discard-edits")))
}

/// Reports files that are restored: a deleted file, or one with a changed mode, contains no work of a person.
pub(super) fn report_restored(
    plan: &Plan,
    have: &BTreeMap<Vec<u8>, IndexEntry>,
    there: &BTreeSet<Vec<u8>>,
    ui: &Ui,
) {
    let is_gone = |path: &&Vec<u8>| have.contains_key(*path) && !there.contains(*path);
    let gone: Vec<&Vec<u8>> = plan.write.iter().filter(is_gone).collect();
    for (paths, what) in [(gone, "removed"), (plan.remoded.iter().collect(), "mode changed")] {
        if let Some(first) = paths.first() {
            let more = if paths.len() > 1 { format!(" and {} more", paths.len() - 1) } else { String::new() };
            ui.status("Restoring", format!("{}{more}, {what} by hand", printable(first)));
        }
    }
}
