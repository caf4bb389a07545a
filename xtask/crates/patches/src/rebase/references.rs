//! References to renumbered patches in the files of the project that name patches by their number.

use espalier_core::context::Context;
use espalier_core::error::Result;
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::native_path::to_bytes;

use crate::report::number_references::renumbered;
use crate::report::rebase::{NumberReference, RebaseReport};

/// Folders whose texts may name patches, relative to the root. A project need not have them.
const FOLDERS: [&str; 2] = ["ci/suites", "docs"];
/// Reports of earlier moves: the numbers in them are those of their time.
const HISTORY: &str = "docs/syncs/";

/// Returns the places that name a patch by a number that it no longer has after the rebase.
pub fn stale(context: &Context, report: &RebaseReport) -> Result<Vec<NumberReference>> {
    let pins = context.pins()?;
    let renumbered = renumbered(report, pins.default_variant.as_str());
    let mut found = Vec::new();
    if renumbered.is_empty() {
        return Ok(found);
    }
    for folder in FOLDERS {
        let path = context.layout.root().join(folder);
        if !disk::exists(&path) {
            continue;
        }
        for file in disk::files_below(&path)? {
            let name = format!("{folder}/{}", espalier_series::lossy(&to_bytes(&file)));
            let is_text = name.ends_with(".md") || name.ends_with(".toml");
            if !is_text || name.starts_with(HISTORY) {
                continue;
            }
            // A link may lead nowhere, and a file need not be UTF-8: neither is a reason to fail after the move.
            let Ok(text) = disk::read_text(&path.join(&file)) else { continue };
            found.extend(renumbered.iter().flat_map(|series| series.references_in(&name, &text)));
        }
    }
    Ok(found)
}
