//! Which upstream commits took a patch, and which took it back.
//!
//! A commit took a patch when it adds and deletes what the patch adds and deletes, in the same files, whatever else it
//! does: lines are counted, and neither their numbers nor blanks matter, so that a reworded, a moved and a squashed
//! patch are known again, as they are by git's patch-id and by the measure of `git range-diff`. Several commits can take
//! a patch between them. What later commits make of those lines changes nothing, unless one of them undoes all.

use std::collections::{HashMap, HashSet};

use super::line_diff::{ChangedRun, histogram_runs, lines_of};
use super::model::{Content, FilePatch, Patch};
use super::origin::{Made, Origin};
use super::tree::TreeError;

/// A patch of fewer lines than this could be like another change by chance: something around it must be alike too.
const FEW_LINES: usize = 5;
/// A commit that makes less than this share of a patch takes no part of it.
const PART_PERCENT: usize = 20;
/// A commit that makes this share of a patch is worth a look.
const ALIKE_PERCENT: usize = 60;
/// Lines around a change that count as around it.
const CONTEXT: usize = 3;

/// What an upstream commit has to do with a patch. Commits are places in a history, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// With this commit all of the patch was taken: by it alone, or together with `earlier` ones.
    Taken {
        /// The commit.
        by: usize,
        /// Those that had taken parts before.
        earlier: Vec<usize>,
    },
    /// This commit took all of it back.
    Reverted {
        /// The commit.
        by: usize,
    },
}

/// What became of one patch upstream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Story {
    /// Taken, reverted, taken again: in the order of the commits.
    pub events: Vec<Event>,
    /// Of a patch that was never taken: the commit that is most like it, and how many of 100 lines that makes.
    pub alike: Option<(usize, usize)>,
}

impl Story {
    /// Whether upstream has it, as far as the commits go that were seen.
    pub fn is_taken(&self) -> bool {
        matches!(self.events.last(), Some(Event::Taken { .. }))
    }
}

/// What one upstream commit did to one file.
#[derive(Debug, Clone)]
pub struct ChangedFile {
    /// Where it is.
    pub path: Vec<u8>,
    /// Its blob afterwards, in hexadecimal; empty where it is gone.
    pub new_id: String,
    /// Its content before; empty where it was not there.
    pub old: Vec<u8>,
    /// Its content afterwards; empty where it is gone.
    pub new: Vec<u8>,
}

/// One line that is added or deleted in a file, without its blanks if it says anything; or a blob that a file becomes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Line {
    path: Vec<u8>,
    added: bool,
    text: Vec<u8>,
}

type Counts = HashMap<Line, usize>;

/// One patch that is looked out for.
struct Wanted {
    subject: String,
    paths: HashSet<Vec<u8>>,
    lines: Counts,
    total: usize,
    around: HashSet<(Vec<u8>, Vec<u8>)>,
    /// What no commit has made yet.
    missing: Counts,
    parts: Vec<usize>,
    story: Story,
    /// How sure it is that the last commit that took it is the one.
    likeness: Likeness,
}

/// How like a patch a commit is that makes all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    /// It does more in the same files.
    #[default]
    Holds,
    /// It does nothing else in them.
    Equals,
    /// It has its subject too.
    IsCalledTheSame,
}

/// Watches a history go by, from the pin to a tip, for the patches of a series.
pub struct Lookout {
    wanted: Vec<Wanted>,
}

impl Lookout {
    /// For the patches of a series. One that is not exact where it was made is not looked out for.
    ///
    /// # Errors
    ///
    /// When a blob cannot be read.
    pub fn new(origin: &Origin<'_>) -> Result<Lookout, TreeError> {
        let patches = (0..origin.patches().len()).filter_map(|at| origin.patch(at));
        let wanted = patches.map(|(patch, made)| Wanted::new(patch, made.ok(), origin));
        Ok(Lookout { wanted: wanted.collect::<Result<_, _>>()? })
    }

    /// Whether a change of the file at `path` can say anything.
    pub fn cares_about(&self, path: &[u8]) -> bool {
        self.wanted.iter().any(|wanted| wanted.paths.contains(path))
    }

    /// The commit `at` comes by. Of its files those are enough that the series [cares about](Lookout::cares_about).
    /// Gives the patches, from 0, of which something happened.
    pub fn see(&mut self, at: usize, subject: &str, files: &[ChangedFile]) -> Vec<usize> {
        let seen = Seen::new(subject, files);
        let mut moved = Vec::new();
        for (patch, wanted) in self.wanted.iter_mut().enumerate() {
            if !files.iter().any(|file| wanted.paths.contains(&file.path)) {
                continue;
            }
            let events = wanted.story.events.len();
            wanted.see(at, &seen);
            if wanted.story.events.len() > events {
                moved.push(patch);
            }
        }
        moved
    }

    /// What became of the patch `at` so far.
    pub fn story(&self, at: usize) -> Option<&Story> {
        self.wanted.get(at).map(|wanted| &wanted.story)
    }
}

impl Wanted {
    /// Its lines are found as those of a commit are, and not read from its text: there are several ways to tell two
    /// texts apart.
    fn new(patch: &Patch, made: Option<&Made>, origin: &Origin<'_>) -> Result<Wanted, TreeError> {
        let files = made.map_or(Ok(Vec::new()), |made| changed_files(patch, made, origin))?;
        let Seen { made: mut lines, around, .. } = Seen::new(&patch.subject, &files);
        lines.retain(|line, _| !is_blob(line) || has_no_text(patch, line));
        if lines.keys().any(says_something) {
            lines.retain(|line, _| says_something(line));
        }
        let paths = patch.files.iter().flat_map(FilePatch::paths).map(|path| path.as_bytes().to_vec());
        Ok(Wanted {
            subject: plain_subject(&patch.subject).to_string(),
            paths: paths.collect(),
            total: lines.values().sum(),
            missing: lines.clone(),
            lines,
            around,
            parts: Vec::new(),
            story: Story::default(),
            likeness: Likeness::default(),
        })
    }

    fn see(&mut self, at: usize, seen: &Seen<'_>) {
        if self.total == 0 {
            return;
        }
        let (made, undone) = (common(&self.lines, &seen.made), common(&self.lines, &seen.undone));
        let likeness = self.likeness_of(seen);
        if undone == self.total && made < self.total && self.story.is_taken() {
            self.story.events.push(Event::Reverted { by: at });
            (self.missing, self.parts) = (self.lines.clone(), Vec::new());
        } else if made == self.total && self.is_certain(seen) {
            self.take_whole(at, likeness);
        } else if !self.story.is_taken() {
            self.take_part(at, made, seen);
        }
    }

    /// By a commit that makes all of it. One that took it before, and is less like it, did not mean it.
    fn take_whole(&mut self, at: usize, likeness: Likeness) {
        if self.story.is_taken() && likeness <= self.likeness {
            return;
        }
        if self.story.is_taken() {
            self.story.events.pop();
        }
        self.likeness = likeness;
        self.take(at, Vec::new());
    }

    fn take(&mut self, at: usize, earlier: Vec<usize>) {
        self.story.events.push(Event::Taken { by: at, earlier });
        self.story.alike = None;
        self.missing.clear();
    }

    fn likeness_of(&self, seen: &Seen<'_>) -> Likeness {
        let is_here = |line: &Line| says_something(line) && !is_blob(line) && self.paths.contains(&line.path);
        let size =
            || seen.made.iter().filter(|(line, _)| is_here(line)).map(|(_, count)| count).sum::<usize>();
        match () {
            () if self.subject == plain_subject(seen.subject) => Likeness::IsCalledTheSame,
            () if size() == self.total => Likeness::Equals,
            () => Likeness::Holds,
        }
    }

    fn take_part(&mut self, at: usize, made: usize, seen: &Seen<'_>) {
        let percent = made * 100 / self.total;
        if self.story.events.is_empty()
            && percent >= ALIKE_PERCENT
            && self.story.alike.is_none_or(|(_, most)| percent > most)
        {
            self.story.alike = Some((at, percent));
        }
        let new = common(&self.missing, &seen.made);
        if new * 100 < self.total * PART_PERCENT || self.total < FEW_LINES {
            return;
        }
        for (line, count) in &seen.made {
            if let Some(missing) = self.missing.get_mut(line) {
                *missing = missing.saturating_sub(*count);
            }
        }
        self.parts.push(at);
        if self.missing.values().all(|count| *count == 0) {
            self.parts.pop();
            self.likeness = Likeness::Holds;
            let earlier = std::mem::take(&mut self.parts);
            self.take(at, earlier);
        }
    }

    fn is_certain(&self, seen: &Seen<'_>) -> bool {
        let alike = self.around.iter().filter(|line| seen.around.contains(*line)).count();
        self.total >= FEW_LINES
            || self.subject == plain_subject(seen.subject)
            || (alike > 0 && alike * 2 >= self.around.len())
    }
}

/// What a commit does, and what it would be a revert of.
struct Seen<'a> {
    subject: &'a str,
    made: Counts,
    undone: Counts,
    around: HashSet<(Vec<u8>, Vec<u8>)>,
}

impl<'a> Seen<'a> {
    fn new(subject: &'a str, files: &[ChangedFile]) -> Seen<'a> {
        let mut seen = Seen { subject, made: Counts::new(), undone: Counts::new(), around: HashSet::new() };
        for file in files {
            let (old, new) = (lines_of(&file.old), lines_of(&file.new));
            for run in histogram_runs(&old, &new) {
                let (went, came) =
                    (slice(&old, run.old.start, run.old.end), slice(&new, run.new.start, run.new.end));
                went.iter().for_each(|line| seen.count(&file.path, false, line));
                came.iter().for_each(|line| seen.count(&file.path, true, line));
                seen.add_around(&file.path, &old, &run);
            }
            let blob =
                Line { path: file.path.clone(), added: true, text: [BLOB, file.new_id.as_bytes()].concat() };
            *seen.made.entry(blob).or_default() += 1;
        }
        seen
    }

    fn count(&mut self, path: &[u8], added: bool, line: &[u8]) {
        let text = plain(line).unwrap_or_else(|| line.to_vec());
        let line = |added: bool, text: Vec<u8>| Line { path: path.to_vec(), added, text };
        *self.undone.entry(line(!added, text.clone())).or_default() += 1;
        *self.made.entry(line(added, text)).or_default() += 1;
    }

    fn add_around(&mut self, path: &[u8], old: &[&[u8]], run: &ChangedRun) {
        let above = slice(old, run.old.start.saturating_sub(CONTEXT), run.old.start);
        let below = slice(old, run.old.end, (run.old.end + CONTEXT).min(old.len()));
        let around = above.iter().chain(below).filter_map(|line| plain(line));
        self.around.extend(around.map(|text| (path.to_vec(), text)));
    }
}

fn slice<'l, 'a>(lines: &'l [&'a [u8]], from: usize, to: usize) -> &'l [&'a [u8]] {
    lines.get(from..to).unwrap_or_default()
}

/// How many lines the two have in common.
fn common(left: &Counts, right: &Counts) -> usize {
    let in_both = left.iter().filter_map(|(line, count)| Some((*count).min(*right.get(line)?)));
    in_both.sum()
}

/// What a patch does where it was made, file by file.
fn changed_files(patch: &Patch, made: &Made, origin: &Origin<'_>) -> Result<Vec<ChangedFile>, TreeError> {
    let mut files = Vec::new();
    for (file, base) in patch.files.iter().zip(&made.bases) {
        let Some(path) = file.path() else { continue };
        let after =
            made.changes.iter().find(|change| change.path == *path).and_then(|change| change.new.as_ref());
        let content = |id| Ok::<_, TreeError>(origin.blob(id)?.into_owned());
        files.push(ChangedFile {
            path: path.as_bytes().to_vec(),
            new_id: after.map(|new| new.id.to_string()).unwrap_or_default(),
            old: base.as_ref().map_or(Ok(Vec::new()), |base| content(base.id))?,
            new: after.map_or(Ok(Vec::new()), |new| content(new.id))?,
        });
    }
    Ok(files)
}

/// Whether `line` stands for a file of `patch` that has no lines to compare.
fn has_no_text(patch: &Patch, line: &Line) -> bool {
    let is_text = |file: &FilePatch| matches!(file.content, Content::Text(_));
    let is_it = |file: &&FilePatch| file.path().is_some_and(|path| path.as_bytes() == line.path);
    patch.files.iter().find(is_it).is_some_and(|file| !is_text(file))
}

/// How a file's blob afterwards is written as a line. No line of a text is like this: blanks are taken out of those.
const BLOB: &[u8] = b"blob ";

fn is_blob(line: &Line) -> bool {
    line.text.starts_with(BLOB)
}

fn says_something(line: &Line) -> bool {
    line.text.iter().any(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80)
}

/// A line without its blanks; nothing for one without a letter or digit, which is in every file.
fn plain(line: &[u8]) -> Option<Vec<u8>> {
    let says_something = line.iter().any(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80);
    says_something.then(|| line.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect())
}

/// A subject without what a host puts behind it: `(#1234)`.
fn plain_subject(subject: &str) -> &str {
    let number = subject.rsplit_once(" (#").filter(|(_, number)| {
        number.strip_suffix(')').is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    });
    number.map_or(subject, |(words, _)| words).trim()
}
