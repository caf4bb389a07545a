//! Which upstream commits took a patch, and which took it back.
//!
//! A commit took a patch when it adds and deletes what the patch adds and deletes, in the same files, whatever else it
//! does: lines are counted, and neither their numbers nor blanks matter, so that a reworded, a moved and a squashed
//! patch are known again, as they are by git's patch-id and by the measure of `git range-diff`. Several commits can take
//! a patch between them. What later commits make of those lines changes nothing, unless one of them undoes all.

use hashbrown::{HashMap, HashSet};

use super::counted_change::{
    ChangedFile, CountedChange, Counts, Line, changed_files, common, has_no_text, is_blob, says_something,
    undone_line,
};
use crate::model::patch::{FilePatch, Patch};
use crate::model::tree::TreeError;
use crate::replay::origin::{Made, Origin};

/// A patch of fewer lines than this could be like another change by chance: something around it must be alike too.
const FEW_LINES: usize = 5;
/// A commit that makes less than this share of a patch takes no part of it.
const PART_PERCENT: usize = 20;
/// A commit that makes this share of a patch is worth a look.
const ALIKE_PERCENT: usize = 60;

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

/// One patch that is looked out for.
struct Wanted {
    subject: String,
    paths: HashSet<Vec<u8>>,
    lines: Counts,
    /// The same as a revert has them.
    undone_lines: Counts,
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
    /// The paths to which commits moved files, each with all that the file was called before.
    moved: HashMap<Vec<u8>, Vec<Vec<u8>>>,
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
        Ok(Lookout { wanted: wanted.collect::<Result<_, _>>()?, moved: HashMap::new() })
    }

    /// Whether a change of the file at `path` can say anything.
    pub fn cares_about(&self, path: &[u8]) -> bool {
        let is_wanted = |path: &[u8]| self.wanted.iter().any(|wanted| wanted.paths.contains(path));
        is_wanted(path) || self.moved.get(path).is_some_and(|names| names.iter().any(|name| is_wanted(name)))
    }

    /// The path, and what the file there was called before.
    fn names(&self, path: &[u8]) -> Vec<Vec<u8>> {
        let before = self.moved.get(path).into_iter().flatten();
        std::iter::once(path).chain(before.map(Vec::as_slice)).map(<[u8]>::to_vec).collect()
    }

    /// Each file under each of its names. What a commit moves has the old ones: the change is to the same file.
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

    /// The commit `at` comes by. Of its files those are enough that the series [cares about](Lookout::cares_about).
    /// Gives the patches, from 0, of which something happened.
    pub fn see(&mut self, at: usize, subject: &str, files: &[ChangedFile]) -> Vec<usize> {
        let files = self.named(files);
        let change = CountedChange::new(files.iter().map(|(name, file)| (name.as_slice(), *file)));
        let mut moved = Vec::new();
        for (patch, wanted) in self.wanted.iter_mut().enumerate() {
            if !files.iter().any(|(name, _)| wanted.paths.contains(name)) {
                continue;
            }
            let events = wanted.story.events.len();
            wanted.see(at, subject, &change);
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
        let CountedChange { made: mut lines, around, .. } =
            CountedChange::new(files.iter().map(|file| (file.path.as_slice(), file)));
        lines.retain(|line, _| !is_blob(line) || has_no_text(patch, line));
        if lines.keys().any(says_something) {
            lines.retain(|line, _| says_something(line));
        }
        let paths = patch.files.iter().flat_map(FilePatch::paths).map(|path| path.as_bytes().to_vec());
        Ok(Wanted {
            subject: plain_subject(&patch.subject).to_string(),
            paths: paths.collect(),
            undone_lines: lines.iter().map(|(line, count)| (undone_line(line, &files), *count)).collect(),
            total: lines.values().sum(),
            missing: lines.clone(),
            lines,
            around,
            parts: Vec::new(),
            story: Story::default(),
            likeness: Likeness::default(),
        })
    }

    fn see(&mut self, at: usize, subject: &str, change: &CountedChange) {
        if self.total == 0 {
            return;
        }
        let (made, undone) = (common(&self.lines, &change.made), common(&self.undone_lines, &change.undone));
        if undone == self.total && made < self.total && self.story.is_taken() {
            self.story.events.push(Event::Reverted { by: at });
            (self.missing, self.parts) = (self.lines.clone(), Vec::new());
        } else if made == self.total && self.is_certain(subject, change) {
            self.take_whole(at, self.likeness_of(subject, change));
        } else if !self.story.is_taken() {
            self.take_part(at, made, change);
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

    fn likeness_of(&self, subject: &str, change: &CountedChange) -> Likeness {
        let is_here = |line: &Line| says_something(line) && !is_blob(line) && self.paths.contains(&line.path);
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
        if self.story.events.is_empty()
            && percent >= ALIKE_PERCENT
            && self.story.alike.is_none_or(|(_, most)| percent > most)
        {
            self.story.alike = Some((at, percent));
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

/// A subject without what a host puts behind it: `(#1234)`.
fn plain_subject(subject: &str) -> &str {
    let number = subject.rsplit_once(" (#").filter(|(_, number)| {
        number.strip_suffix(')').is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    });
    number.map_or(subject, |(words, _)| words).trim()
}
