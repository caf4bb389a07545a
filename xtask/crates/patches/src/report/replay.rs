//! Descriptions of the results of a replayed patch, shared by all reports.

use espalier_series::{
    Ambiguity, ConflictHunk, ConflictKind, ConflictReason, Counter, FileConflict, Followed, MergeKind,
    PatchClass, RenameCandidate, Replayed, SharedChange, describe_refusal,
};

/// Maximum number of changes beside a conflict that are named.
const BESIDE_SHOWN: usize = 10;

/// Describes one conflict, without the next step.
pub fn describe_conflict(conflict: &FileConflict) -> String {
    let path = &conflict.path;
    match &conflict.reason {
        ConflictReason::SameLines => format!("{path}: {}", describe_same_lines(&conflict.hunks)),
        ConflictReason::FileExists => {
            format!("{path}: the patch creates this file, but a different one exists")
        }
        ConflictReason::FolderMoved { from, to } if path == to => format!(
            "{from}: upstream moved the folder that this new file belongs in\n  it was placed at {to}: leave it there or \
             move it"
        ),
        ConflictReason::FolderMoved { from, to } => format!(
            "{from}: upstream moved the folder that this new file belongs in\n  it would be {to}, where another file exists"
        ),
        ConflictReason::FolderLeft { to } => format!(
            "{path}: upstream has put it into a folder that the patch moves away\n  leave it there or move it: {to}"
        ),
        ConflictReason::RenamedTwice { from, by_patch, by_upstream } => format!(
            "{from}: upstream has renamed it to {by_upstream}, and the patch renames it to {by_patch}"
        ),
        ConflictReason::DeletedButChanged => {
            format!("{path}: the patch deletes this file, and upstream changed it")
        }
        ConflictReason::Binary => format!("{path}: it is not text, and both sides changed it"),
        ConflictReason::Refused { refusal } => {
            format!("{path}: the patch must not write here: {}", describe_refusal(refusal))
        }
        ConflictReason::FileGone { candidates } => {
            let maybe: String = candidates.iter().map(describe_candidate).collect();
            format!("{path}: upstream no longer has this file{maybe}")
        }
        ConflictReason::SharedChanges { changes } => {
            let changes = changes.iter().map(|change| describe_shared(change, "upstream"));
            let changes: Vec<String> =
                changes.map(|change| format!("\n  {}", change.replace('\n', "\n  "))).collect();
            format!("{path}: review it: upstream has made a part of the change{}", changes.concat())
        }
        ConflictReason::LookAlike { ambiguities } => {
            let ambiguities: String = ambiguities.iter().map(describe_ambiguity).collect();
            format!("{path}: review it: the change fits, but maybe not where it was meant to go{ambiguities}")
        }
    }
}

/// Describes a conflict of a sibling with the change that its patch has got since, or, if it is `outdated`, with the
/// changes of earlier patches.
pub fn describe_in_sibling(conflict: &FileConflict, outdated: bool) -> String {
    match conflict.reason {
        ConflictReason::SameLines if outdated => {
            format!("{}: earlier patches have changed the same lines as the sibling", conflict.path)
        }
        ConflictReason::SameLines => {
            format!("{}: the sibling has other lines where the patch has changed", conflict.path)
        }
        _ => describe_conflict(conflict),
    }
}

/// Describes a conflict of lines that upstream has not changed: earlier patches have, as they were resolved or dropped.
pub fn describe_by_earlier(conflict: &FileConflict, patches: &[String]) -> String {
    format!("{}: {}", conflict.path, by_earlier(patches))
}

/// `upstream did not change these lines: 0001-a.patch did, as it was resolved or dropped`.
pub fn by_earlier(patches: &[String]) -> String {
    let did = match patches {
        [] => "earlier patches did".to_string(),
        [one] => format!("{one} did, as it was resolved or dropped"),
        several => format!("{} did, as they were resolved or dropped", several.join(" and ")),
    };
    format!("upstream did not change these lines: {did}")
}

/// Describes conflicts between markers: what all of them have in common.
fn describe_same_lines(hunks: &[ConflictHunk]) -> &'static str {
    let are_all = |kinds: &[ConflictKind]| hunks.iter().all(|hunk| kinds.contains(&hunk.kind()));
    if are_all(&[ConflictKind::BothChanged]) {
        "upstream changed the same lines"
    } else if are_all(&[ConflictKind::OursHasTheirs]) {
        "upstream added the lines of the patch, and more at the same place"
    } else if !hunks.iter().any(|hunk| hunk.kind() == ConflictKind::BothChanged) {
        "upstream added lines at the same place"
    } else {
        "upstream changed the same lines, and added lines at the same place"
    }
}

/// Describes a change that both sides made: its place, its lines, and whether it may be a counter. `tip` names
/// upstream's side.
pub fn describe_shared(change: &SharedChange, tip: &str) -> String {
    let SharedChange { path, line, patch_line, before, after, counter } = change;
    let mut text = format!("{tip} {path}:{line}, the patch {path}:{patch_line}: both have");
    text.extend(before.iter().map(|line| format!("\n  -{line}")));
    text.extend(after.iter().map(|line| format!("\n  +{line}")));
    if let Some(Counter { before, after, sum }) = counter {
        text += &format!(
            "\n  possibly a counter: both sides changed it from {before} to {after}; if each added an entry of its own, the \
             right value is {sum}"
        );
    }
    text
}

/// Describes the value that a patch without its upstreamed parts keeps, if the change may be one of a counter.
pub fn describe_kept(change: &SharedChange) -> String {
    let Some(Counter { after, .. }) = change.counter else { return String::new() };
    format!("\n  trimming keeps {after}")
}

/// Describes changes that both sides made in a file with a conflict, outside of the markers; empty if there are none.
pub fn describe_beside(changes: &[SharedChange]) -> String {
    if changes.is_empty() {
        return String::new();
    }
    let mut text = "\n  outside of the markers, both sides made the same change; if each needs one of its own, as a counter \
                    does, correct it there and continue with `--allow-edits`:"
        .to_string();
    for change in changes.iter().take(BESIDE_SHOWN) {
        text += &format!("\n    {}", describe_shared(change, "upstream").replace('\n', "\n    "));
    }
    match changes.len().checked_sub(BESIDE_SHOWN) {
        Some(more @ 1..) => text + &format!("\n    and {more} more"),
        _ => text,
    }
}

fn describe_candidate(candidate: &RenameCandidate) -> String {
    format!("\n  maybe {}: {} % of it is the same", candidate.path, candidate.percent)
}

fn describe_ambiguity(ambiguity: &Ambiguity) -> String {
    let function =
        |name: &Option<String>| name.as_ref().map_or("no function".to_string(), |name| format!("`{name}`"));
    let (made_for, lands_in) = (function(&ambiguity.made_for), function(&ambiguity.lands_in));
    let lines = (ambiguity.made_for_line, ambiguity.lands_in_line);
    let place = match (ambiguity.class, lines) {
        (PatchClass::MovedFunction, (Some(own), Some(there))) if made_for == lands_in => {
            format!("made for {made_for} of line {own}, would land in the one of line {there}")
        }
        (PatchClass::MovedFunction, _) => format!("made for {made_for}, would land in {lands_in}"),
        (PatchClass::Ambiguous, _) => {
            format!("in {lands_in}: lines there are repeated, and it fits more than one of them")
        }
        _ => format!("in {lands_in}"),
    };
    format!("\n  line {}: {}: {place}", ambiguity.line, ambiguity.class.describe())
}

/// Notes for the user on a patch that was replayed without conflicts.
pub fn notes_on(replayed: &Replayed) -> Vec<String> {
    let mut notes = Vec::new();
    for file in &replayed.files {
        if let Some(Followed { from, to, percent }) = &file.followed {
            let how = if *percent == 100 {
                "the same content".into()
            } else {
                format!("{percent} % of it is the same")
            };
            notes.push(format!("{from} is followed to {to} ({how})"));
        }
        let path = file.after.as_ref().or(file.before.as_ref()).map(|version| version.path.to_string());
        let path = path.unwrap_or_default();
        match &file.merge_kind {
            MergeKind::AlreadyThere => notes.push(format!("{path}: upstream has all of the change")),
            MergeKind::PartlyThere { lines, of } => {
                notes.push(format!("{path}: upstream has {lines} of {of} changed lines"));
            }
            MergeKind::DeletedByBoth { lines: 1 } => {
                notes.push(format!("{path}: both sides deleted the same line"));
            }
            MergeKind::DeletedByBoth { lines } => {
                notes.push(format!("{path}: both sides deleted the same {lines} lines"));
            }
            MergeKind::Unchanged | MergeKind::Placed | MergeKind::Merged | MergeKind::Conflict(_) => {}
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_patches_are_named() {
        let names = |names: &[&str]| by_earlier(&names.iter().map(ToString::to_string).collect::<Vec<_>>());
        let same = "upstream did not change these lines";
        assert_eq!(names(&[]), format!("{same}: earlier patches did"));
        assert_eq!(names(&["1.patch"]), format!("{same}: 1.patch did, as it was resolved or dropped"));
        let two = format!("{same}: 1.patch and 2.patch did, as they were resolved or dropped");
        assert_eq!(names(&["1.patch", "2.patch"]), two);
    }

    #[test]
    fn two_additions_are_not_called_a_change() {
        let hunk = |base, ours, theirs| ConflictHunk {
            marked: 0..9,
            base: 0..base,
            ours: 0..ours,
            theirs: 0..theirs,
        };
        let (change, addition, known) = (hunk(1, 1, 1), hunk(0, 1, 1), hunk(0, 1, 0));
        for (hunks, text) in [
            (vec![change.clone()], "upstream changed the same lines"),
            (vec![addition.clone()], "upstream added lines at the same place"),
            (vec![addition.clone(), known.clone()], "upstream added lines at the same place"),
            (vec![known], "upstream added the lines of the patch, and more at the same place"),
            (vec![change, addition], "upstream changed the same lines, and added lines at the same place"),
        ] {
            assert_eq!(describe_same_lines(&hunks), text);
        }
    }
}
