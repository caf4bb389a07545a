//! Counts of added and deleted lines, so that two changes can be compared wherever they are made.

use hashbrown::{HashMap, HashSet};

use crate::model::patch::{Content, FilePatch, Patch};
use crate::model::tree::TreeError;
use crate::replay::applied_series::{AppliedSeries, PatchEffect};
use crate::text::line_diff::{ChangedRun, histogram_runs, lines_of, slice};

/// Number of lines around a change that count as its context.
const CONTEXT: usize = 3;

/// The change of one upstream commit to one file.
#[derive(Debug, Clone)]
pub struct ChangedFile {
    /// Its path.
    pub path: Vec<u8>,
    /// Its earlier path, if the commit moved it.
    pub moved_from: Option<Vec<u8>>,
    /// Blob id before, in hexadecimal; empty if it did not exist.
    pub old_id: String,
    /// Blob id afterwards, in hexadecimal; empty if it was deleted.
    pub new_id: String,
    /// Content before; empty if it did not exist.
    pub old: Vec<u8>,
    /// Content afterwards; empty if it was deleted.
    pub new: Vec<u8>,
}

/// A line that is added to or deleted from a file, without its whitespace if it has other characters; or the blob that
/// a file becomes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ChangedLine {
    pub path: Vec<u8>,
    added: bool,
    text: Vec<u8>,
}

/// Number of times that each line is added or deleted.
pub(crate) type Counts = HashMap<ChangedLine, usize>;

/// A change, line by line, and the change that it would revert.
#[derive(Debug, Default)]
pub(crate) struct CountedChange {
    /// The lines that it adds and deletes.
    pub made: Counts,
    /// The lines that the reverted change adds and deletes, if this change is a revert.
    pub undone: Counts,
    /// The context lines: path and text.
    pub around: HashSet<(Vec<u8>, Vec<u8>)>,
}

impl CountedChange {
    /// Counts the changes of the files, each under the path beside it.
    pub fn new<'f>(files: impl IntoIterator<Item = (&'f [u8], &'f ChangedFile)>) -> CountedChange {
        let mut seen = CountedChange::default();
        for (path, file) in files {
            let (old, new) = (lines_of(&file.old), lines_of(&file.new));
            for run in histogram_runs(&old, &new) {
                let (went, came) = (slice(&old, run.old.clone()), slice(&new, run.new.clone()));
                went.iter().for_each(|line| seen.count(path, false, line));
                came.iter().for_each(|line| seen.count(path, true, line));
                seen.add_around(path, &old, &run);
            }
            let blob = ChangedLine {
                path: path.to_vec(),
                added: true,
                text: [BLOB, file.new_id.as_bytes()].concat(),
            };
            *seen.made.entry(blob).or_default() += 1;
            let home = file.moved_from.as_ref().map_or(path, |_| &file.path);
            let undone = blob_undone(path, [&file.old_id, &file.new_id], home);
            *seen.undone.entry(undone).or_default() += 1;
        }
        seen
    }

    fn count(&mut self, path: &[u8], added: bool, line: &[u8]) {
        let text = plain(line).unwrap_or_else(|| line.to_vec());
        let line = |added: bool, text: Vec<u8>| ChangedLine { path: path.to_vec(), added, text };
        *self.undone.entry(line(!added, text.clone())).or_default() += 1;
        *self.made.entry(line(added, text)).or_default() += 1;
    }

    fn add_around(&mut self, path: &[u8], old: &[&[u8]], run: &ChangedRun) {
        let above = slice(old, run.old.start.saturating_sub(CONTEXT)..run.old.start);
        let below = slice(old, run.old.end..(run.old.end + CONTEXT).min(old.len()));
        let around = above.iter().chain(below).filter_map(|line| plain(line));
        self.around.extend(around.map(|text| (path.to_vec(), text)));
    }
}

/// Returns the number of lines that both have in common.
pub(crate) fn common(left: &Counts, right: &Counts) -> usize {
    let in_both = left.iter().filter_map(|(line, count)| Some((*count).min(*right.get(line)?)));
    in_both.sum()
}

/// Returns the changes of a patch on its own base, file by file.
pub(crate) fn changed_files(
    patch: &Patch,
    made: &PatchEffect,
    applied: &AppliedSeries<'_>,
) -> Result<Vec<ChangedFile>, TreeError> {
    let mut files = Vec::new();
    for (file, base) in patch.files.iter().zip(&made.bases) {
        let Some(path) = file.path() else { continue };
        let after =
            made.changes.iter().find(|change| change.path == *path).and_then(|change| change.new.as_ref());
        let content = |id| Ok::<_, TreeError>(applied.blob(id)?.into_owned());
        files.push(ChangedFile {
            path: path.as_bytes().to_vec(),
            moved_from: base
                .as_ref()
                .map(|base| base.path.as_bytes().to_vec())
                .filter(|old| old != path.as_bytes()),
            old_id: base.as_ref().map(|base| base.id.to_string()).unwrap_or_default(),
            new_id: after.map(|new| new.id.to_string()).unwrap_or_default(),
            old: base.as_ref().map_or(Ok(Vec::new()), |base| content(base.id))?,
            new: after.map_or(Ok(Vec::new()), |new| content(new.id))?,
        });
    }
    Ok(files)
}

/// Returns whether `line` represents a file of `patch` without lines to compare.
pub(crate) fn has_no_text(patch: &Patch, line: &ChangedLine) -> bool {
    let is_text = |file: &FilePatch| matches!(file.content, Content::Text(_));
    let is_it = |file: &&FilePatch| file.path().is_some_and(|path| path.as_bytes() == line.path);
    patch.files.iter().find(is_it).is_some_and(|file| !is_text(file))
}

/// Prefix of the line that represents a file's blob afterwards. No line of text looks like this, because its whitespace
/// is removed.
const BLOB: &[u8] = b"blob ";

/// Returns the line for the reverse of a file at `path` going from one blob to another; the file is then at `home`.
fn blob_undone(path: &[u8], [from, to]: [&str; 2], home: &[u8]) -> ChangedLine {
    let text = [BLOB, from.as_bytes(), b">", to.as_bytes(), b"@", home].concat();
    ChangedLine { path: path.to_vec(), added: true, text }
}

/// Returns the line that a revert has for `line`, which one of `files` made.
pub(crate) fn undone_line(line: &ChangedLine, files: &[ChangedFile]) -> ChangedLine {
    let Some(file) = files.iter().find(|file| file.path == line.path).filter(|_| is_blob(line)) else {
        return line.clone();
    };
    let home = file.moved_from.as_ref().unwrap_or(&file.path);
    blob_undone(&file.path, [&file.new_id, &file.old_id], home)
}

/// Returns whether it represents a blob.
pub(crate) fn is_blob(line: &ChangedLine) -> bool {
    line.text.starts_with(BLOB)
}

/// Returns whether it has a letter or a digit: other lines occur in every file.
pub(crate) fn says_something(line: &ChangedLine) -> bool {
    has_a_word(&line.text)
}

fn has_a_word(text: &[u8]) -> bool {
    text.iter().any(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80)
}

/// Returns a line without its whitespace; `None` for an uninformative one.
fn plain(line: &[u8]) -> Option<Vec<u8>> {
    has_a_word(line).then(|| line.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect())
}
