//! Each place with a conflict: its texts, the functions around them, and what is known about them.

use std::ops::Range;

use espalier_series::{Ambiguity, ConflictReason, Hunk, LineKind};

use super::Stopped;
use super::changed_files::changed_files;
use super::diff_text::hunk_text;
use super::earlier::changed_by_earlier;
use super::elsewhere::{FileSearch, occurrences};
use super::lines::{ConflictLines, ConflictedVersions, FileText, function_around, text_of};
use super::other_patches::other_patches;
use super::related::{ConflictIdentifiers, ShownHunks};
use super::upstream::UpstreamLines;
use super::upstream_diff::change_around;
use crate::report::conflict::{FunctionText, LineSpan, PackagedHunk, PackagedSide, PatchHunk, RelatedChange};
use crate::report::content::{Content, PathText};

/// Maximum number of places that are described.
const HUNKS_LIMIT: usize = 100;
/// Size limit of the lines of one side, in bytes. Their file in the folder has all of them.
const LINES_LIMIT: usize = 32 << 10;
/// Size limit of a hunk of the patch, in bytes.
const HUNK_LIMIT: usize = 8 << 10;
/// Size limit of the function around one side, in bytes.
const FUNCTION_LIMIT: usize = 32 << 10;

/// The places of all conflicts, and upstream's changes that may matter for them.
#[derive(Default)]
pub struct Places {
    pub hunks: Vec<PackagedHunk>,
    /// Number of further places.
    pub left_out: usize,
    pub related: Vec<RelatedChange>,
}

/// Describes the places of all `conflicts`.
pub fn describe(stopped: &Stopped<'_>, conflicts: &[ConflictedVersions<'_>]) -> Places {
    let mut places = Places::default();
    if conflicts.is_empty() {
        return places;
    }
    // All are additions: the conflict itself is reported without them too.
    let upstream = UpstreamLines::load(stopped.series_move).unwrap_or_default();
    let changed = changed_files(stopped.series_move, conflicts).unwrap_or_default();
    let searches: Vec<FileSearch<'_>> = changed.iter().map(FileSearch::new).collect();
    let (mut wanted, mut shown) = (ConflictIdentifiers::default(), ShownHunks::new());
    for versions in conflicts {
        for lines in versions.places() {
            if places.hunks.len() == HUNKS_LIMIT {
                places.left_out += 1;
                continue;
            }
            let mut hunk = described(versions, &lines, places.hunks.len() + 1);
            hunk.changed_by = changed_by_earlier(stopped, versions, &lines);
            hunk.elsewhere = occurrences(versions, &lines, &searches);
            hunk.commits = upstream.as_ref().and_then(|upstream| upstream.changes(versions, &lines).ok());
            hunk.other_patches = other_patches(stopped, (versions, &lines), hunk.function.as_deref());
            add_upstream_diff(stopped, (versions, &lines), &mut hunk, &mut shown);
            wanted.add(hunk.number, versions, &lines);
            places.hunks.push(hunk);
        }
    }
    places.related = wanted.changes(&changed, &shown);
    places
}

/// Adds upstream's change around one place, and notes which hunks of it are shown.
fn add_upstream_diff(
    stopped: &Stopped<'_>,
    (versions, lines): (&ConflictedVersions<'_>, &ConflictLines),
    hunk: &mut PackagedHunk,
    shown: &mut ShownHunks,
) {
    let Ok(Some(change)) = change_around(stopped.series_move, versions, lines) else { return };
    let path = versions.ours.as_ref().map_or(&versions.conflict.path, |ours| ours.path).as_bytes();
    shown.extend(change.shown.iter().map(|line| (path.to_vec(), *line)));
    hunk.texts.push(("upstream.diff", change.whole));
    hunk.upstream_diff = Some(change.diff);
}

/// Describes one place as far as its texts alone tell.
fn described(versions: &ConflictedVersions<'_>, lines: &ConflictLines, number: usize) -> PackagedHunk {
    let mut texts = Vec::new();
    let mut side = |names: [&'static str; 2], file: &Option<FileText<'_>>, lines: &Option<Range<usize>>| {
        let (file, lines) = file.as_ref().zip(lines.as_ref())?;
        Some(packaged_side(names, file, lines, &mut texts))
    };
    let base = side(["base", "function-base"], &versions.base, &lines.base);
    let ours = side(["ours", "function-ours"], &versions.ours, &lines.ours);
    let theirs = side(["theirs", "function-theirs"], &versions.theirs, &lines.theirs);
    // A function that begins at the place is not around it: a side has added it there.
    let around = |side: &PackagedSide| {
        side.function.name.clone().filter(|_| side.function.span.start < side.span.start)
    };
    let in_base = base.as_ref().and_then(|base| base.function.name.clone());
    let function = in_base.or_else(|| [&ours, &theirs].into_iter().flatten().find_map(around));
    let (doubts, candidates) = match &versions.conflict.reason {
        ConflictReason::LookAlike { ambiguities } => (doubts_about(ambiguities, lines), Vec::new()),
        ConflictReason::FileGone { candidates } => (Vec::new(), candidates.clone()),
        _ => (Vec::new(), Vec::new()),
    };
    let hunks = versions.affected_hunks(lines).into_iter();
    PackagedHunk {
        number,
        folder: format!("hunk-{number:02}"),
        path: PathText::from(&versions.conflict.path),
        function,
        kind: lines.kind,
        marked: lines.marked.as_ref().map(span),
        base,
        ours,
        theirs,
        patch_hunks: hunks.map(packaged_hunk_of_patch).collect(),
        doubts,
        candidates,
        elsewhere: Vec::new(),
        commits: None,
        upstream_diff: None,
        other_patches: Vec::new(),
        changed_by: None,
        texts,
    }
}

fn packaged_hunk_of_patch(hunk: &Hunk) -> PatchHunk {
    let count = |kind: LineKind| hunk.lines.iter().filter(|line| line.kind == kind).count();
    let context = hunk.lines.iter().take_while(|line| line.kind == LineKind::Context).count();
    PatchHunk {
        header: hunk.header(),
        line: hunk.line,
        after: hunk.old_lines_before() + context,
        added: count(LineKind::Add),
        deleted: count(LineKind::Delete),
        content: Content::of(&hunk_text(hunk), HUNK_LIMIT),
    }
}

/// Returns the doubts about one place: their line is the first of its lines, or common to both sides and before them.
fn doubts_about(ambiguities: &[Ambiguity], lines: &ConflictLines) -> Vec<Ambiguity> {
    let start = lines.ours.as_ref().map_or(0, |ours| ours.start + 1);
    let above = ambiguities.iter().map(|doubt| doubt.line).filter(|line| *line <= start).max();
    ambiguities.iter().filter(|doubt| Some(doubt.line) == above).cloned().collect()
}

fn packaged_side(
    [name, function_name]: [&'static str; 2],
    file: &FileText<'_>,
    lines: &Range<usize>,
    texts: &mut Vec<(&'static str, Vec<u8>)>,
) -> PackagedSide {
    let (function, around) = function_around(file, lines);
    let text = text_of(&file.text, lines);
    let function_text = text_of(&file.text, &around);
    texts.push((name, text.to_vec()));
    texts.push((function_name, function_text.to_vec()));
    let content = Content::of(function_text, FUNCTION_LIMIT);
    let is_whole = function.as_ref().is_some_and(|(_, whole)| *whole == around);
    let name = function.map(|(name, _)| name);
    let function = FunctionText { name, is_whole, span: span(&around), content };
    PackagedSide { span: span(lines), content: Content::of(text, LINES_LIMIT), function }
}

fn span(lines: &Range<usize>) -> LineSpan {
    LineSpan { start: lines.start + 1, lines: lines.len() }
}
