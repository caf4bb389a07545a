//! The patches of a recipe while it is read.

use std::collections::{HashMap, HashSet};

use super::pattern::{PatchWord, alternatives, last_component, patch_in};
use super::{ApplyOptions, Recipe, RecipePatch, Remark};

/// Maximum number of patches that a recipe may name.
const PATCHES: usize = 10_000;

/// Maximum number of notes on one recipe.
const NOTES: usize = 50;

/// The reason for leaving out a patch that has to be downloaded.
const DOWNLOADED: &str = "the recipe downloads it";

/// Which patches the build system of a recipe downloads. One that it downloads is left out: the file is not here.
#[derive(Clone, Copy, Default)]
pub(super) enum Downloads {
    /// Those that a URL names.
    #[default]
    Urls,
    /// makepkg: those that only a URL names. For `NAME::URL` it takes a file NAME beside the recipe first.
    UrlsWithoutName,
    /// abuild, Portage and haikuporter: those that a URL names, also where a command applies them by the file's name.
    UrlsAndTheirNames,
}

/// The decision which patches of a recipe are downloaded, for those that it applies and those that it only names.
struct Downloaded {
    downloads: Downloads,
    /// The names of all files that URLs in the recipe name.
    names: HashSet<String>,
}

impl Downloaded {
    fn new(downloads: Downloads, named: &[(String, bool)]) -> Downloaded {
        let remote = named.iter().filter(|(_, is_remote)| *is_remote);
        let names = remote.map(|(pattern, _)| last_component(pattern).to_owned()).collect();
        Downloaded { downloads, names }
    }

    /// Returns the reason for leaving a patch out, if it is downloaded; `is_remote`: whether a URL names it.
    fn reason(&self, pattern: &str, is_remote: bool) -> Option<String> {
        let is_downloaded = match self.downloads {
            Downloads::Urls => is_remote,
            Downloads::UrlsWithoutName => is_remote && pattern.contains("://"),
            Downloads::UrlsAndTheirNames => is_remote || self.names.contains(last_component(pattern)),
        };
        is_downloaded.then(|| DOWNLOADED.to_owned())
    }
}

/// The patches of a recipe and the remarks on it, as far as it has been read.
#[derive(Default)]
pub(super) struct Collected {
    downloads: Downloads,
    /// The patches that are applied, in order, and whether a URL names them.
    applied: Vec<(RecipePatch, bool)>,
    /// Their patterns, and whether they are applied in reverse: branches of a condition often apply the same ones.
    seen: HashSet<(String, bool)>,
    /// The patches that occur in the recipe, and whether a URL names them.
    named: Vec<(String, bool)>,
    named_before: HashSet<String>,
    /// Commands that name a patch and do something else with it, by its pattern.
    other_commands: HashMap<String, String>,
    /// The first command that applies patches which it does not name, as an index of `applied`, with its settings.
    rest: Option<(usize, ApplyOptions, Option<u32>)>,
    notes: Vec<Remark>,
    /// Remarks on changes of the sources that no patch has.
    changes: Vec<Remark>,
    wrong: Vec<Remark>,
}

impl Collected {
    /// Creates an empty collection for a build system that downloads these patches.
    pub fn with(downloads: Downloads) -> Collected {
        Collected { downloads, ..Collected::default() }
    }

    /// Adds a patch, which no URL names, to those that are applied, unless it was applied the same way before.
    pub fn apply_named(&mut self, named: RecipePatch) {
        self.push(named, false);
    }

    fn push(&mut self, named: RecipePatch, is_remote: bool) {
        if self.applied.len() >= PATCHES {
            return self.wrong(None, format!("it names more than {PATCHES} patches"));
        }
        if self.seen.insert((named.pattern.clone(), named.options.reverse)) {
            self.applied.push((named, is_remote));
        }
    }

    /// Adds the patch that a word names to those that are applied.
    pub fn apply(&mut self, patch: PatchWord<'_>, options: ApplyOptions, usual_strip: Option<u32>) {
        let PatchWord { pattern, is_remote, is_glob, .. } = patch;
        self.push(RecipePatch { pattern, is_glob, options, usual_strip, left_out: None }, is_remote);
    }

    /// Adds a patch that the recipe does not apply to the source.
    pub fn leave_out(&mut self, patch: PatchWord<'_>, why: &str) {
        let PatchWord { pattern, is_glob, .. } = patch;
        let (options, left_out) = (ApplyOptions::default(), Some(why.to_owned()));
        self.apply_named(RecipePatch { pattern, is_glob, options, usual_strip: None, left_out });
    }

    /// Adds all patches that no other command applies, for a command whose patches are not known.
    pub fn apply_rest(&mut self, options: ApplyOptions, usual_strip: Option<u32>) {
        if self.rest.is_none() {
            self.rest = Some((self.applied.len(), options, usual_strip));
        }
    }

    /// Notes that `word` occurs in the recipe, if it names patches.
    pub fn name(&mut self, word: &str) {
        for word in word.split_whitespace().flat_map(alternatives) {
            if let Some(PatchWord { pattern, is_remote, is_glob: false, .. }) = patch_in(&word)
                && last_component(&pattern).split('.').next() != Some("*")
                // A suffix for backups, as of `%patch -b`.
                && !last_component(&pattern).starts_with('.')
            {
                self.name_pattern(pattern, is_remote);
            }
        }
    }

    /// Notes that a patch with this pattern occurs in the recipe.
    pub fn name_pattern(&mut self, pattern: String, is_remote: bool) {
        if self.named.len() >= PATCHES {
            return self.wrong(None, format!("it names more than {PATCHES} patches"));
        }
        if self.named_before.insert(pattern.clone()) {
            self.named.push((pattern, is_remote));
        }
    }

    /// Records that `command` names a patch and was not followed.
    pub fn name_in_command(&mut self, patch: PatchWord<'_>, command: String) {
        self.other_commands.entry(last_component(&patch.pattern).to_owned()).or_insert(command);
    }

    /// Adds a note for the user.
    pub fn note(&mut self, line: Option<usize>, text: String) {
        add_remark(&mut self.notes, Remark { line, text }, "more commands like these were not followed");
    }

    /// Adds a remark on a change of the sources that no patch has.
    pub fn change(&mut self, line: Option<usize>, text: String) {
        add_remark(&mut self.changes, Remark { line, text }, "more commands like these were not imported");
    }

    /// Returns the remarks on changes.
    pub fn into_changes(self) -> Vec<Remark> {
        self.changes
    }

    /// Adds an error.
    pub fn wrong(&mut self, line: Option<usize>, text: String) {
        let remark = Remark { line, text };
        if self.wrong.len() < NOTES && !self.wrong.contains(&remark) {
            self.wrong.push(remark);
        }
    }

    /// Returns the recipe; `unapplied` is the reason for patches that no command applies.
    ///
    /// # Errors
    ///
    /// Everything that cannot be followed.
    pub fn finish(self, unapplied: &str) -> Result<Recipe, Vec<Remark>> {
        let Collected { downloads, applied, named, other_commands, rest, notes, changes, wrong, .. } = self;
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let downloaded = Downloaded::new(downloads, &named);
        let decided = |(mut patch, is_remote): (RecipePatch, bool)| {
            if patch.left_out.is_none() {
                patch.left_out = downloaded.reason(&patch.pattern, is_remote);
            }
            patch
        };
        let mut patches: Vec<RecipePatch> = applied.into_iter().map(decided).collect();
        let known: HashSet<String> =
            patches.iter().map(|patch| last_component(&patch.pattern).to_owned()).collect();
        let others = named.into_iter().filter(|(pattern, _)| !known.contains(last_component(pattern)));
        let (at, options, usual_strip) = rest.unwrap_or((patches.len(), ApplyOptions::default(), None));
        let others: Vec<RecipePatch> = others
            .map(|(pattern, is_remote)| {
                let why_not_applied = || match other_commands.get(last_component(&pattern)) {
                    _ if rest.is_some() => None,
                    Some(command) => Some(format!("{unapplied}; `{command}` was not followed")),
                    None => Some(unapplied.to_owned()),
                };
                let left_out = downloaded.reason(&pattern, is_remote).or_else(why_not_applied);
                RecipePatch { pattern, is_glob: false, options, usual_strip, left_out }
            })
            .collect();
        drop(patches.splice(at..at, others));
        Ok(Recipe { patches, notes, changes })
    }
}

/// Adds a remark once, unless there are too many: `more` takes the place of the others.
fn add_remark(remarks: &mut Vec<Remark>, remark: Remark, more: &str) {
    let remark = match remarks.len() {
        ..NOTES => remark,
        NOTES => Remark { line: None, text: more.to_owned() },
        _ => return,
    };
    if !remarks.contains(&remark) {
        remarks.push(remark);
    }
}
