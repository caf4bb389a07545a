//! Detection of upstream commits that contain a patch of the series, and of commits that revert it.
//!
//! A commit contains a patch if it adds and deletes the lines that the patch adds and deletes, in the same files,
//! whatever else it does. Lines are counted; their positions and whitespace do not matter, so reworded, moved and
//! squashed patches are recognised, as they are by git's patch-id and by the similarity of `git range-diff`. Several
//! commits can contain a patch together. Later changes to those lines are ignored, unless one commit reverts all of
//! them.

use hashbrown::{HashMap, HashSet};

use super::counted_change::{
    ChangedFile, ChangedLine, CountedChange, Counts, changed_files, common, has_no_text, is_blob,
    says_something, undone_line,
};
use crate::model::patch::{FilePatch, Patch};
use crate::model::tree::TreeError;
use crate::replay::applied_series::{AppliedSeries, PatchEffect};

/// A patch of fewer lines than this could match another change by chance: some context must match too.
const FEW_LINES: usize = 5;
/// A commit that makes less than this share of a patch is not counted as a part of it.
const PART_PERCENT: usize = 20;
/// A commit that makes at least this share of a patch is reported as similar.
const ALIKE_PERCENT: usize = 60;

/// A relation of an upstream commit to a patch. Commits are indexes into a history, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// With this commit the whole patch is upstream: by it alone, or together with `earlier` ones.
    Upstreamed {
        /// The commit.
        by: usize,
        /// Commits that contain the other parts.
        earlier: Vec<usize>,
    },
    /// This commit reverted all of it.
    Reverted {
        /// The commit.
        by: usize,
    },
}

/// The history of one patch upstream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpstreamHistory {
    /// Upstreamed, reverted, upstreamed again: in the order of the commits.
    pub events: Vec<Event>,
    /// For a patch that was never upstreamed: the most similar commit, and how many of 100 lines it has in common.
    pub alike: Option<(usize, usize)>,
}

impl UpstreamHistory {
    /// Returns whether upstream contains it, as of the last commit seen.
    pub fn is_upstreamed(&self) -> bool {
        matches!(self.events.last(), Some(Event::Upstreamed { .. }))
    }
}

/// A patch that the scan searches for.
struct SearchedPatch {
    subject: String,
    paths: HashSet<Vec<u8>>,
    lines: Counts,
    /// The same lines as a revert has them.
    undone_lines: Counts,
    total: usize,
    around: HashSet<(Vec<u8>, Vec<u8>)>,
    /// Lines that no commit has made so far.
    missing: Counts,
    parts: Vec<usize>,
    history: UpstreamHistory,
    /// Confidence that the last matching commit is the right one.
    likeness: Likeness,
}

/// Similarity of a patch and a commit that contains all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    /// The commit changes more in the same files.
    #[default]
    Holds,
    /// The commit changes nothing else in them.
    Equals,
    /// The commit has the same subject too.
    IsCalledTheSame,
}

/// Scans a history, from the pin to a tip, for the patches of a series.
pub struct UpstreamScan {
    wanted: Vec<SearchedPatch>,
    /// Paths to which commits moved files, each with all earlier paths of the file.
    moved: HashMap<Vec<u8>, Vec<Vec<u8>>>,
}

impl UpstreamScan {
    /// Creates a scan for the patches of a series. A patch that is not exact on its own base is skipped.
    ///
    /// # Errors
    ///
    /// When a blob cannot be read.
    pub fn new(applied: &AppliedSeries<'_>) -> Result<UpstreamScan, TreeError> {
        let patches = (0..applied.patches().len()).filter_map(|at| applied.patch(at));
        let wanted = patches.map(|(patch, made)| SearchedPatch::new(patch, made, applied));
        Ok(UpstreamScan { wanted: wanted.collect::<Result<_, _>>()?, moved: HashMap::new() })
    }

    /// Returns whether a change to the file at `path` can be relevant.
    pub fn cares_about(&self, path: &[u8]) -> bool {
        let is_wanted = |path: &[u8]| self.wanted.iter().any(|wanted| wanted.paths.contains(path));
        is_wanted(path) || self.moved.get(path).is_some_and(|names| names.iter().any(|name| is_wanted(name)))
    }

    /// Returns the path and all earlier paths of the file.
    fn names(&self, path: &[u8]) -> Vec<Vec<u8>> {
        let before = self.moved.get(path).into_iter().flatten();
        std::iter::once(path).chain(before.map(Vec::as_slice)).map(<[u8]>::to_vec).collect()
    }

    /// Returns each file under each of its paths. A file that a commit moves keeps its old ones: the change is to the
    /// same file.
    fn named<'f>(&mut self, files: &'f [ChangedFile]) -> Vec<(Vec<u8>, &'f ChangedFile)> {
        let mut named = Vec::new();
        for (file, from) in files.iter().filter_map(|file| Some((file, file.moved_from.as_ref()?))) {
            let names = self.names(from);
            named.extend(names.iter().map(|name| (name.clone(), file)));
            self.moved.insert(file.path.clone(), names);
        }
        for file in files.iter().filter(|file| file.moved_from.is_none()) {
            let is_new = |name: &Vec<u8>| !named.iter().any(|(known, _)| known == name);
            let names: Vec<_> = match file.old.is_empty() {
                true => vec![file.path.clone()],
                false => self.names(&file.path),
            };
            let new: Vec<_> = names.into_iter().filter(is_new).collect();
            named.extend(new.into_iter().map(|name| (name, file)));
        }
        named
    }

    /// Processes the commit `at`. Of its files, only those that the series [cares about](UpstreamScan::cares_about) are
    /// needed. Returns the patches, from 0, that have a new event.
    pub fn see(&mut self, at: usize, subject: &str, files: &[ChangedFile]) -> Vec<usize> {
        let files = self.named(files);
        let change = CountedChange::new(files.iter().map(|(name, file)| (name.as_slice(), *file)));
        let mut moved = Vec::new();
        for (patch, wanted) in self.wanted.iter_mut().enumerate() {
            if !files.iter().any(|(name, _)| wanted.paths.contains(name)) {
                continue;
            }
            let events = wanted.history.events.len();
            wanted.see(at, subject, &change);
            if wanted.history.events.len() > events {
                moved.push(patch);
            }
        }
        moved
    }

    /// Returns the history of the patch `at` so far.
    pub fn history(&self, at: usize) -> Option<&UpstreamHistory> {
        self.wanted.get(at).map(|wanted| &wanted.history)
    }
}

impl SearchedPatch {
    /// Finds the patch's lines by a diff, as for commits, and not from its text: different diffs of the same two texts
    /// can differ.
    fn new(
        patch: &Patch,
        made: Option<&PatchEffect>,
        applied: &AppliedSeries<'_>,
    ) -> Result<SearchedPatch, TreeError> {
        let files = made.map_or(Ok(Vec::new()), |made| changed_files(patch, made, applied))?;
        let CountedChange { made: mut lines, around, .. } =
            CountedChange::new(files.iter().map(|file| (file.path.as_slice(), file)));
        lines.retain(|line, _| !is_blob(line) || has_no_text(patch, line));
        if lines.keys().any(says_something) {
            lines.retain(|line, _| says_something(line));
        }
        let paths = patch.files.iter().flat_map(FilePatch::paths).map(|path| path.as_bytes().to_vec());
        Ok(SearchedPatch {
            subject: plain_subject(&patch.subject).to_string(),
            paths: paths.collect(),
            undone_lines: lines.iter().map(|(line, count)| (undone_line(line, &files), *count)).collect(),
            total: lines.values().sum(),
            missing: lines.clone(),
            lines,
            around,
            parts: Vec::new(),
            history: UpstreamHistory::default(),
            likeness: Likeness::default(),
        })
    }

    fn see(&mut self, at: usize, subject: &str, change: &CountedChange) {
        if self.total == 0 {
            return;
        }
        let (made, undone) = (common(&self.lines, &change.made), common(&self.undone_lines, &change.undone));
        if undone == self.total && made < self.total && self.history.is_upstreamed() {
            self.history.events.push(Event::Reverted { by: at });
            (self.missing, self.parts) = (self.lines.clone(), Vec::new());
        } else if made == self.total && self.is_certain(subject, change) {
            self.take_whole(at, self.likeness_of(subject, change));
        } else if !self.history.is_upstreamed() {
            self.take_part(at, made, change);
        }
    }

    /// Records a commit that makes all of the patch. It supersedes an earlier match that was less similar.
    fn take_whole(&mut self, at: usize, likeness: Likeness) {
        if self.history.is_upstreamed() && likeness <= self.likeness {
            return;
        }
        if self.history.is_upstreamed() {
            self.history.events.pop();
        }
        self.likeness = likeness;
        self.take(at, Vec::new());
    }

    fn take(&mut self, at: usize, earlier: Vec<usize>) {
        self.history.events.push(Event::Upstreamed { by: at, earlier });
        self.history.alike = None;
        self.missing.clear();
    }

    fn likeness_of(&self, subject: &str, change: &CountedChange) -> Likeness {
        let is_here =
            |line: &ChangedLine| says_something(line) && !is_blob(line) && self.paths.contains(&line.path);
        let size =
            || change.made.iter().filter(|(line, _)| is_here(line)).map(|(_, count)| count).sum::<usize>();
        match () {
            () if self.subject == plain_subject(subject) => Likeness::IsCalledTheSame,
            () if size() == self.total => Likeness::Equals,
            () => Likeness::Holds,
        }
    }

    fn take_part(&mut self, at: usize, made: usize, change: &CountedChange) {
        let percent = made * 100 / self.total;
        if self.history.events.is_empty()
            && percent >= ALIKE_PERCENT
            && self.history.alike.is_none_or(|(_, most)| percent > most)
        {
            self.history.alike = Some((at, percent));
        }
        let new = common(&self.missing, &change.made);
        if new * 100 < self.total * PART_PERCENT || self.total < FEW_LINES {
            return;
        }
        for (line, count) in &change.made {
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

    fn is_certain(&self, subject: &str, change: &CountedChange) -> bool {
        let alike = self.around.iter().filter(|line| change.around.contains(*line)).count();
        self.total >= FEW_LINES
            || self.subject == plain_subject(subject)
            || (alike > 0 && alike * 2 >= self.around.len())
    }
}

/// Returns a subject without the suffix that a host appends: `(#1234)`.
fn plain_subject(subject: &str) -> &str {
    let number = subject.rsplit_once(" (#").filter(|(_, number)| {
        number.strip_suffix(')').is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    });
    number.map_or(subject, |(words, _)| words).trim()
}
