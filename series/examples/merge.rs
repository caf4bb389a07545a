//! Merges one change with three versions of a file, as a rebase does, and prints the kind and the result of each merge.
//! All data are in this file.
//!
//! ```text
//! cargo run --package espalier-series --example merge
//! ```

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{self, Write as _};

use espalier_series::{
    AppliedSeries, Change, Content, FileMode, FilePatch, FileSide, MemoryTree, MergeKind, Mode, ObjectId,
    Patch, Replay, RepoPath, TreeNames, hunks_between,
};

const PATH: &str = "server.conf";
const BASE: &str = "limit = 8\nretries = 2\ntimeout = 30\nverbose = no\n";

fn main() -> Result<(), Box<dyn Error>> {
    io::stdout().write_all(report()?.as_bytes())?;
    Ok(())
}

/// Returns the report: theirs changes the timeout; ours adds a line, changes another line, or changes the same line.
pub fn report() -> Result<String, Box<dyn Error>> {
    let theirs = BASE.replace("30", "60");
    let mut text = String::new();
    for ours in [format!("# Defaults\n{BASE}"), BASE.replace("= 8", "= 16"), BASE.replace("30", "45")] {
        let (kind, merged) = merge(BASE, &ours, &theirs)?;
        text += &format!("{kind}:\n{merged}\n");
    }
    Ok(text)
}

/// Returns the kind of the merge and the merged text, with conflict markers if there is a conflict.
fn merge(base: &str, ours: &str, theirs: &str) -> Result<(String, String), Box<dyn Error>> {
    let [pin, tip] = [base, ours].map(tree);
    let (patches, upstreamed) = ([patch_between(base, theirs)?], BTreeSet::new());
    let applied = AppliedSeries::new(&patches, &pin)?;
    let mut replay = Replay::new(&applied, &tip, TreeNames { pin: "base", tip: "ours" }, &upstreamed);
    let step = replay.step(0).map_err(|error| format!("{error:?}"))?;
    let file = step.replayed.files.first().ok_or("the patch changes no file")?;
    let (kind, text) = match (&file.merge_kind, &file.after) {
        (MergeKind::Conflict(conflict), _) => (format!("{:?}", conflict.reason), conflict.marked.clone()),
        (kind, Some(after)) => (format!("{kind:?}"), Some(replay.blob(after.id)?.into_owned())),
        (kind, None) => (format!("{kind:?}"), None),
    };
    Ok((kind, String::from_utf8(text.unwrap_or_default())?))
}

fn tree(text: &str) -> MemoryTree {
    let mut tree = MemoryTree::new();
    tree.put(PATH, Mode::File, text.as_bytes());
    tree
}

/// Returns the patch that turns `base` into `theirs`, as `parse` would read it. Its name becomes a conflict label.
fn patch_between(base: &str, theirs: &str) -> Result<Patch, String> {
    let path = RepoPath::new(PATH.as_bytes()).map_err(|refusal| refusal.to_string())?;
    let side = |text: &str| {
        let id = ObjectId::of_blob(text.as_bytes());
        Some(FileSide { path: path.clone(), mode: Some(FileMode::Regular), id: Some(id) })
    };
    let content = Content::Text(hunks_between(base.as_bytes(), theirs.as_bytes()));
    let file = FilePatch { change: Change::Modify, old: side(base), new: side(theirs), content, line: 6 };
    Ok(Patch {
        name: "theirs".to_owned(),
        author: "A U Thor <author@example.com>".to_owned(),
        date: "Thu, 1 Jan 2026 00:00:00 +0000".to_owned(),
        subject: "change the timeout".to_owned(),
        subject_line: 4,
        body: String::new(),
        trailers: Vec::new(),
        files: vec![file],
    })
}
