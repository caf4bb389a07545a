//! State of an unfinished rebase: its target, its progress, and the decisions made so far.

use std::collections::BTreeSet;

use espalier_core::error::{Error, Result};
use espalier_series::ObjectId;
use espalier_series::{RepoPath, SameFunction};
use serde::{Deserialize, Serialize};

/// The version of the file format.
const FORMAT: u32 = 3;

/// `state.json` of a rebase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RebaseState {
    /// Format version; any other is rejected.
    pub format: u32,
    /// The named variant.
    pub variant: String,
    /// Its scope; a record without one is for a pin.
    #[serde(default, skip_serializing_if = "Scope::is_pin")]
    pub scope: Scope,
    /// The base that the patches were made for.
    pub from: NamedTree,
    /// The target tree.
    pub to: NamedTree,
    /// The target commit; zeros when only its tree is known.
    pub commit: String,
    /// Every series that is rebased, parents first.
    pub series: Vec<SeriesState>,
    /// Whether the work tree shows the next patch with its conflicts; false after a run was killed.
    pub ready: bool,
    /// The paths with unresolved conflicts.
    #[serde(with = "exact_paths")]
    pub conflicts: Vec<RepoPath>,
    /// Files of the patches at which the user asked to stop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edit: Vec<String>,
    /// Whether it waits at one of them, without a conflict.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub editing: bool,
    /// Whether a resolution of these conflicts was refused, so that it must not be recorded as it was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// Functions that a person has taken as the same, by accepting a change of one in the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub same_functions: Vec<SameFunction>,
    /// Decisions made in advance, at the start or in between.
    pub choices: Choices,
}

/// The scope of a rebase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// A pin, with every series on it.
    #[default]
    Pin,
    /// The patches of one variant, onto its parent series as it is now.
    Series,
    /// The siblings of a generation, for every series that is used there.
    Generation,
}

impl Scope {
    fn is_pin(&self) -> bool {
        *self == Scope::Pin
    }

    /// Describes a rebase of this scope for people: that of the pin `pin`, or of the series of `variant`.
    pub fn describe(self, pin: &str, variant: &str) -> String {
        match self {
            Scope::Pin => format!("the move of the pin {pin}"),
            Scope::Series => format!("the rebase of {variant}"),
            Scope::Generation => format!("the replay of {variant} on the generation {pin}"),
        }
    }
}

/// Progress of the replay of one series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesState {
    /// A variant that has this series.
    pub variant: String,
    /// The patches at the start, including those of its parents: file and sha256.
    pub files: Vec<(String, String)>,
    /// Number of patches that belong to its parents; they come first, and are replayed with the parent's series.
    pub parents: usize,
    /// Upstream status of each patch, from upstream's commits.
    pub upstream: Vec<PatchInUpstream>,
    /// Results of the patches replayed so far, in order.
    pub done: Vec<DonePatch>,
    /// On a generation, its siblings at the start: file and sha256.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub siblings: Vec<(String, String)>,
}

impl SeriesState {
    /// A series of which nothing is replayed yet.
    pub fn new(variant: &str, files: Vec<(String, String)>, parents: usize) -> SeriesState {
        SeriesState {
            variant: variant.to_string(),
            files,
            parents,
            upstream: Vec::new(),
            done: Vec::new(),
            siblings: Vec::new(),
        }
    }

    /// Index of the next patch in the series.
    pub fn position(&self) -> usize {
        self.done.len()
    }

    /// Whether every patch is replayed.
    pub fn is_complete(&self) -> bool {
        self.position() >= self.files.len()
    }

    /// Number of its own patches that are replayed.
    fn own_done(&self) -> usize {
        self.position().saturating_sub(self.parents)
    }

    /// Number of its own patches.
    fn own_len(&self) -> usize {
        self.files.len().saturating_sub(self.parents)
    }

    /// The commits of the replayed patches, in order; dropped patches have none.
    pub fn commits(&self) -> Result<Vec<ObjectId>> {
        self.done.iter().filter_map(|done| done.commit.as_deref()).map(read_id).collect()
    }
}

/// Decisions that a person made in advance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choices {
    /// Drop patches that are fully upstreamed.
    pub drop_upstreamed: bool,
    /// Omit the upstreamed part of a patch.
    pub trim_upstreamed: bool,
    /// Stop at a partly upstreamed patch, so that a person can edit it.
    #[serde(default)]
    pub edit_upstreamed: bool,
    /// Whether a patch that reverts an upstream change fails the check; the last value given wins.
    pub strict: Option<bool>,
    /// Omit the range-diff of each patch from the report.
    pub no_range_diff: bool,
}

impl Choices {
    /// Whether a patch that reverts an upstream change fails the check.
    pub fn is_strict(self) -> bool {
        self.strict.unwrap_or(false)
    }

    /// Returns the options that make the choices about upstreamed patches, each after a blank.
    pub fn flags(self) -> String {
        let flags = [
            (self.drop_upstreamed, " --drop-upstreamed"),
            (self.trim_upstreamed, " --trim-upstreamed"),
            (self.edit_upstreamed, " --edit-upstreamed"),
        ];
        flags.iter().filter(|(is_given, _)| *is_given).map(|(_, flag)| *flag).collect()
    }

    /// Adds `more` to these choices: earlier decisions hold until they are overridden.
    pub fn and(self, more: Choices) -> Choices {
        Choices {
            drop_upstreamed: self.drop_upstreamed || more.drop_upstreamed,
            // The two exclude each other: the last one given wins.
            trim_upstreamed: more.trim_upstreamed || (self.trim_upstreamed && !more.edit_upstreamed),
            edit_upstreamed: more.edit_upstreamed || (self.edit_upstreamed && !more.trim_upstreamed),
            strict: more.strict.or(self.strict),
            no_range_diff: self.no_range_diff || more.no_range_diff,
        }
    }
}

/// A tree and its name for display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedTree {
    /// Tag, branch or commit.
    pub name: String,
    /// Tree id.
    pub tree: String,
}

/// Indices in the series of the patches that are upstreamed according to upstream's history.
pub fn places_of_upstreamed(upstream: &[PatchInUpstream]) -> BTreeSet<usize> {
    upstream.iter().enumerate().filter(|(_, patch)| patch.upstreamed).map(|(at, _)| at).collect()
}

/// Notes from upstream's commits on the patch at index `at`.
pub fn notes_of_patch(upstream: &[PatchInUpstream], at: usize) -> &[String] {
    upstream.get(at).map(|patch| patch.notes.as_slice()).unwrap_or_default()
}

/// Upstream status of one patch, from upstream's commits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatchInUpstream {
    /// Whether upstream has it.
    #[serde(rename = "taken")]
    pub upstreamed: bool,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// One patch that has been replayed or dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DonePatch {
    /// Its original file, relative to the root.
    pub file: String,
    /// Its new commit; `None` when it was dropped.
    pub commit: Option<String>,
    /// Whether a person resolved its conflicts.
    pub by_hand: bool,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Whether it was trimmed and keeps upstream's value of what may be a counter.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counter_in_doubt: bool,
}

impl RebaseState {
    /// A rebase that has not begun.
    pub fn new(
        (variant, scope): (&str, Scope),
        from: NamedTree,
        to: NamedTree,
        series: Vec<SeriesState>,
        choices: Choices,
    ) -> Self {
        RebaseState {
            format: FORMAT,
            variant: variant.to_string(),
            scope,
            from,
            to,
            commit: ObjectId::ZERO.to_string(),
            series,
            ready: false,
            conflicts: Vec::new(),
            edit: Vec::new(),
            editing: false,
            refused: false,
            same_functions: Vec::new(),
            choices,
        }
    }

    /// Reads `state.json`.
    pub fn parse(text: &[u8]) -> Result<RebaseState> {
        let state: RebaseState = serde_json::from_slice(text).map_err(|error| damaged(error.to_string()))?;
        match state.format {
            FORMAT => state.check_ids().map(|()| state),
            other => Err(damaged(format!("it has format {other}, this tool writes {FORMAT}"))),
        }
    }

    fn check_ids(&self) -> Result<()> {
        let done = self.series.iter().flat_map(|series| &series.done);
        let done = done.filter_map(|done| done.commit.as_ref());
        [&self.commit, &self.from.tree, &self.to.tree]
            .into_iter()
            .chain(done)
            .try_for_each(|id| read_id(id).map(drop))
    }

    /// The text of `state.json`.
    pub fn render(&self) -> Vec<u8> {
        // Strings, lists and flags always serialize to JSON.
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }

    /// Index of the series that is being replayed; `None` after the last patch of the last series.
    pub fn current(&self) -> Option<usize> {
        self.series.iter().position(|series| !series.is_complete())
    }

    /// Number of replayed patches and total number of patches, each counted once.
    pub fn progress(&self) -> (usize, usize) {
        let done = self.series.iter().map(SeriesState::own_done).sum();
        (done, self.series.iter().map(SeriesState::own_len).sum())
    }

    /// Starts the series at `place` with the result of its parent's replay.
    pub fn inherit(&mut self, place: usize) {
        let Some((before, rest)) = self.series.split_at_mut_checked(place) else { return };
        let Some(series) = rest.first_mut().filter(|series| series.position() <= series.parents) else {
            return;
        };
        let of_parents = series.files.get(..series.parents);
        let parent = before.iter().find(|other| Some(other.files.as_slice()) == of_parents);
        if let Some(done) = parent.map(|parent| parent.done.clone()) {
            series.done = done;
        }
    }

    /// Records that the patch at which the rebase waited is done.
    pub fn leave_stop(&mut self) {
        self.ready = false;
        self.editing = false;
        self.refused = false;
        self.conflicts.clear();
    }

    /// The target commit; zeros when only its tree is known.
    pub fn tip_commit(&self) -> Result<ObjectId> {
        read_id(&self.commit)
    }

    /// The tree that the patches were made for.
    pub fn old_tree(&self) -> Result<ObjectId> {
        read_id(&self.from.tree)
    }

    /// The target tree.
    pub fn tip_tree(&self) -> Result<ObjectId> {
        read_id(&self.to.tree)
    }
}

/// Paths as text, without loss: a name that is not UTF-8 is written in hexadecimal. No path contains a colon.
mod exact_paths {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use espalier_series::RepoPath;

    const HEX: &str = "hex:";

    pub fn serialize<S: Serializer>(paths: &[RepoPath], serializer: S) -> Result<S::Ok, S::Error> {
        let texts = paths.iter().map(|path| match std::str::from_utf8(path.as_bytes()) {
            Ok(text) => text.to_string(),
            Err(_) => {
                HEX.to_string() + &path.as_bytes().iter().map(|b| format!("{b:02x}")).collect::<String>()
            }
        });
        texts.collect::<Vec<_>>().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<RepoPath>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        let paths = texts.iter().map(|text| {
            let bytes = match text.strip_prefix(HEX) {
                Some(digits) => {
                    bytes_of(digits).ok_or_else(|| D::Error::custom("a path in bad hexadecimal"))?
                }
                None => text.as_bytes().to_vec(),
            };
            RepoPath::new(&bytes).map_err(D::Error::custom)
        });
        paths.collect()
    }

    fn bytes_of(digits: &str) -> Option<Vec<u8>> {
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        digits.as_bytes().chunks(2).map(byte).collect()
    }
}

/// Parses an object id of the record.
pub fn read_id(text: &str) -> Result<ObjectId> {
    text.parse().map_err(|_| damaged(format!("`{text}` is not an object id")))
}

fn damaged(why: String) -> Error {
    Error::environment("the record of the rebase is damaged")
        .detail(why)
        .hint("cargo xtask rebase --abort    # nothing in your project has changed")
}

#[cfg(test)]
mod tests {
    use super::{Choices, DonePatch, NamedTree, RebaseState, Scope, SeriesState};
    use espalier_series::RepoPath;

    #[test]
    fn a_written_state_is_read_back() {
        let tree = NamedTree { name: "v1".into(), tree: "0".repeat(40) };
        let choices = Choices { strict: Some(true), ..Choices::default() };
        let mut state = RebaseState::new(("paged", Scope::Series), tree.clone(), tree, Vec::new(), choices);
        let names: [&[u8]; 3] = [b"a.c", "\u{e9}.c".as_bytes(), b"n\xef.c"];
        state.conflicts = names.map(|name| RepoPath::new(name).unwrap()).to_vec();
        state.edit = vec!["patches/p/0002-b.patch".into()];
        state.editing = true;
        assert_eq!(RebaseState::parse(&state.render()).unwrap(), state);
    }

    #[test]
    fn a_record_without_a_scope_is_of_a_pin() {
        let tree = NamedTree { name: "v1".into(), tree: "0".repeat(40) };
        let named = ("paged", Scope::Pin);
        let state = RebaseState::new(named, tree.clone(), tree, Vec::new(), Choices::default());
        let text = String::from_utf8(state.render()).unwrap();
        assert!(!text.contains("scope") && !text.contains("edit\""), "{text}");
        assert_eq!(RebaseState::parse(text.as_bytes()).unwrap(), state);
    }

    #[test]
    fn a_damaged_id_is_reported_and_not_skipped() {
        let tree = NamedTree { name: "v1".into(), tree: "ab".repeat(20) };
        let mut state =
            RebaseState::new(("paged", Scope::Pin), tree.clone(), tree, Vec::new(), Choices::default());
        let done = |commit: &str| DonePatch {
            file: "patches/p/0001-a.patch".into(),
            commit: Some(commit.into()),
            by_hand: false,
            notes: Vec::new(),
            counter_in_doubt: false,
        };
        let mut series = SeriesState::new("paged", Vec::new(), 0);
        series.done = vec![done(&"cd".repeat(20)), done(&"cd".repeat(19))];
        state.series = vec![series];
        let error = RebaseState::parse(&state.render()).unwrap_err().to_string();
        assert!(error.contains(&format!("`{}` is not an object id", "cd".repeat(19))), "{error}");
        assert!(error.contains("next: cargo xtask rebase --abort"), "{error}");
        state.series[0].done.pop();
        assert_eq!(RebaseState::parse(&state.render()).unwrap(), state);
        state.commit = "x".into();
        assert!(RebaseState::parse(&state.render()).is_err());
    }

    #[test]
    fn a_series_begins_where_its_parent_ends_and_no_patch_is_counted_twice() {
        let tree = NamedTree { name: "v1".into(), tree: "ab".repeat(20) };
        let file = |name: &str| (name.to_string(), "digest".to_string());
        let done = |name: &str| DonePatch {
            file: name.into(),
            commit: None,
            by_hand: false,
            notes: Vec::new(),
            counter_in_doubt: false,
        };
        let series = vec![
            SeriesState::new("a", vec![file("a/1"), file("a/2")], 0),
            SeriesState::new("b", vec![file("b/1")], 0),
            SeriesState::new("ac", vec![file("a/1"), file("a/2"), file("c/1")], 2),
        ];
        let mut state = RebaseState::new(("b", Scope::Pin), tree.clone(), tree, series, Choices::default());
        assert_eq!((state.current(), state.progress()), (Some(0), (0, 4)));
        state.series[0].done = vec![done("a/1"), done("a/2")];
        assert_eq!((state.current(), state.progress()), (Some(1), (2, 4)));
        state.inherit(1);
        assert_eq!(state.series[1].position(), 0);
        state.series[1].done.push(done("b/1"));
        state.inherit(2);
        assert_eq!((state.current(), state.series[2].position(), state.progress()), (Some(2), 2, (3, 4)));
        state.series[2].done.push(done("c/1"));
        state.inherit(2);
        assert_eq!((state.current(), state.progress()), (None, (4, 4)));
    }
}
