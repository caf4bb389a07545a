//! Edits beside the conflict that the user accepts, and the refusal of the others.

use std::collections::BTreeSet;
use std::ffi::OsString;

use espalier_core::error::{Error, Kind, Result};
use espalier_core::next_command::{git_in, quoted_bytes};
use espalier_core::sys::work_trees::rebase_repo::AUTOMATIC;
use espalier_series::printable;
use serde_json::json;

use super::edits_beside::{EditBeside, EditData, SHOWN_FILES, Undo, listed};

/// Start of a path that is relative to the root of the work tree in any case.
const HERE: &[u8] = b"./";
/// Maximum number of edits in the data of a refusal.
const EDITS_LIMIT: usize = 200;

/// Edits beside the conflict that the user accepts as a part of the patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedEdits {
    /// None.
    Nothing,
    /// Those of these files.
    InFiles(Vec<Vec<u8>>),
    /// All.
    All,
}

impl AllowedEdits {
    /// Returns what the values of `--allow-edits` accept; `None` if it was not given.
    pub fn of(given: Option<&[OsString]>) -> AllowedEdits {
        let path = |path: &OsString| {
            let path = path.as_encoded_bytes();
            path.strip_prefix(HERE).unwrap_or(path).to_vec()
        };
        match given {
            None => AllowedEdits::Nothing,
            Some([]) => AllowedEdits::All,
            Some(paths) => AllowedEdits::InFiles(paths.iter().map(path).collect()),
        }
    }

    fn has(&self, edit: &EditBeside) -> bool {
        match self {
            AllowedEdits::Nothing => false,
            AllowedEdits::InFiles(paths) => paths.contains(&edit.path),
            AllowedEdits::All => true,
        }
    }

    /// Refuses a file without such an edit: a path that is misspelt would allow nothing without a word.
    fn refuse_unused(&self, beside: &[EditBeside]) -> Result<()> {
        let AllowedEdits::InFiles(paths) = self else { return Ok(()) };
        let Some(unused) = paths.iter().find(|path| !beside.iter().any(|edit| edit.path == **path)) else {
            return Ok(());
        };
        let what = format!("`{}` has no edit outside the conflict", printable(unused));
        let error = listed(beside).into_iter().fold(Error::usage(what), Error::detail);
        Err(match beside.is_empty() {
            true => error.hint("leave it out: cargo xtask rebase --continue"),
            false => error.hint(format!("name these files: {}", command_that_allows(beside))),
        })
    }
}

/// Returns the command that accepts all of the edits, by the names of their files unless there are very many.
fn command_that_allows(beside: &[EditBeside]) -> String {
    let paths: BTreeSet<&[u8]> = beside.iter().map(EditBeside::path).collect();
    let mut command = "cargo xtask rebase --continue --allow-edits".to_string();
    if paths.len() <= SHOWN_FILES {
        for path in paths {
            // A name that begins with `-` would be read as a flag.
            let path = if path.starts_with(b"-") { [HERE, path].concat() } else { path.to_vec() };
            command += &format!(" {}", quoted_bytes(&path));
        }
    }
    command
}

/// Returns an error that names the edits that are not allowed and the way to undo them, unless there are none; `later` is
/// the way to make them after the rebase.
pub fn refuse(
    beside: &[EditBeside],
    allowed: &AllowedEdits,
    (file, work): (&str, &str),
    later: &str,
) -> Result<()> {
    allowed.refuse_unused(beside)?;
    let refused: Vec<EditBeside> = beside.iter().filter(|edit| !allowed.has(edit)).cloned().collect();
    let what = match refused.len() {
        0 => return Ok(()),
        1 => format!("an edit outside the conflict in {file}"),
        count => format!("{count} edits outside the conflict in {file}"),
    };
    let data: Vec<EditData<'_>> = refused.iter().take(EDITS_LIMIT).map(EditData::of).collect();
    let error = Error::new(Kind::Conflict, what)
        .with_data("edits", json!(data))
        .with_data("edits_left_out", json!(refused.len() - data.len()));
    let error = listed(&refused).into_iter().fold(error, Error::detail);
    // The files that are allowed already are in the command too.
    let allow = command_that_allows(beside);
    Err(with_ways_to_undo(error, &refused, &git_in(work))
        .hint(format!("or accept it as a part of this patch: {allow}"))
        .hint(format!("or make it later, {later}")))
}

/// Adds the commands that undo the edits; `git` is the start of a git command in the work tree.
fn with_ways_to_undo(error: Error, beside: &[EditBeside], git: &str) -> Error {
    let ways = [
        (Undo::Unstage, "leave the new files out", "rm --cached --quiet".to_string()),
        (Undo::Restore, "undo it", format!("checkout {AUTOMATIC}")),
        (Undo::ByHand, "compare with the automatic result, and undo it by hand", format!("diff {AUTOMATIC}")),
    ];
    let mut error = error;
    let mut is_by_hand = false;
    for (undo, intention, command) in ways {
        let mut paths: Vec<&[u8]> = Vec::new();
        paths.extend(beside.iter().filter(|edit| edit.undo == undo).map(|edit| edit.path.as_slice()));
        paths.dedup();
        if !paths.is_empty() {
            let names: Vec<String> = paths.iter().take(SHOWN_FILES).map(|path| quoted_bytes(path)).collect();
            error = error.hint(format!("{intention}: {git} {command} -- {}", names.join(" ")));
            is_by_hand = undo == Undo::ByHand;
        }
    }
    match is_by_hand {
        true => error.hint("`git add` the files, then: cargo xtask rebase --continue"),
        false => error.hint("then: cargo xtask rebase --continue"),
    }
}

#[cfg(test)]
mod tests {
    use super::{AllowedEdits, EditBeside, Undo, command_that_allows};

    #[test]
    fn the_command_that_allows_edits_names_each_file_once_and_is_read_back() {
        let edit = |path: &str| EditBeside::new(path.as_bytes(), Undo::Restore, "it is changed");
        let edits = ["-f.c", "a b.c", "a b.c"].map(edit);
        let command = command_that_allows(&edits);
        assert_eq!(command, "cargo xtask rebase --continue --allow-edits ./-f.c 'a b.c'");
        let allowed = AllowedEdits::of(Some(&["./-f.c".into(), "a b.c".into()]));
        assert!(edits.iter().all(|edit| allowed.has(edit)));
        assert!(!allowed.has(&edit("c.c")));
        let many: Vec<EditBeside> = (0..21).map(|number| edit(&format!("{number}.c"))).collect();
        assert!(command_that_allows(&many).ends_with(" --allow-edits"));
    }
}
