//! A patch at which a rebase stopped, as data: `conflict.json`. docs/reference/conflict-json.md describes every key.

use espalier_series::{Ambiguity, ConflictKind, RenameCandidate};
use serde::Serialize;

use super::content::{Content, PathText};
use super::status::ReportedTree;

/// Version of the format: it changes when a key gets another meaning or goes away.
pub const SCHEMA: u32 = 1;

/// The whole description.
#[derive(Debug, Clone, Serialize)]
pub struct ConflictPackage {
    /// Version of the format.
    pub schema: u32,
    /// The reason for the stop.
    pub kind: StopKind,
    /// The variant that owns the patch.
    pub variant: String,
    /// The upstream's name.
    pub upstream: String,
    /// The tree that the patch was made for.
    pub from: ReportedTree,
    /// The tree that it is brought to.
    pub to: Option<ReportedTree>,
    /// The commit of that tree, if it is known.
    pub commit: Option<String>,
    /// The patch.
    pub patch: PackagedPatch,
    /// The sibling of the patch, if the work starts from it.
    pub sibling: Option<PackagedSibling>,
    /// Every file with a conflict.
    pub files: Vec<PackagedFile>,
    /// Every place with a conflict.
    pub hunks: Vec<PackagedHunk>,
    /// Number of further places.
    pub hunks_left_out: usize,
    /// Upstream's other changes of identifiers in the lines in conflict, the likeliest to matter first.
    pub related: Vec<RelatedChange>,
    /// The rebase that waits; none in a report.
    pub rebase: Option<WaitingRebase>,
}

/// The reason for a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopKind {
    /// The patch has conflicts.
    Conflict,
    /// The user asked to edit the patch there.
    Edit,
}

/// The sibling from which the work on a patch starts.
#[derive(Debug, Clone, Serialize)]
pub struct PackagedSibling {
    /// File relative to the root.
    pub file: String,
    /// Whether it is not exact any more, because earlier patches have changed: the work tree has it merged with those.
    /// Base, ours and theirs of a conflict are the tree that it was made for, the present tree, and the sibling.
    pub outdated: bool,
    /// The change that the patch has got since the sibling was made for it.
    pub change: ChangeSince,
    /// That change as a difference of the hunks, without line numbers; `None` if there is none, or if it is not known.
    pub difference: Option<String>,
}

/// The change that a patch has got since its sibling was made for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeSince {
    /// None.
    None,
    /// It is merged into the work tree, maybe with conflicts.
    Merged,
    /// It is not in the work tree: it has to be carried over by hand.
    ByHand,
}

impl PackagedSibling {
    /// Describes the content of the work tree; `patch` is the file of the patch.
    pub fn describe(&self, patch: &str) -> String {
        let since = format!("{patch} has changed since the sibling was made for it");
        if self.outdated {
            let merged =
                "earlier patches have changed: the work tree has the sibling, merged with what they are now";
            return match self.change {
                ChangeSince::None => merged.to_string(),
                ChangeSince::Merged | ChangeSince::ByHand => {
                    format!("{merged}; {since}: carry that change over by hand")
                }
            };
        }
        match self.change {
            ChangeSince::None => "the work tree has the sibling; its patch has not changed since".to_string(),
            ChangeSince::Merged => {
                format!("{since}: the work tree has the sibling, and the change is merged into it")
            }
            ChangeSince::ByHand => {
                format!("{since}: the work tree has the sibling alone, carry the change over by hand")
            }
        }
    }
}

/// A patch with its purpose.
#[derive(Debug, Clone, Serialize)]
pub struct PackagedPatch {
    /// File relative to the root.
    pub file: String,
    /// Author.
    pub author: String,
    /// Subject of the message.
    pub subject: String,
    /// The whole message: subject, body and trailers.
    pub message: String,
    /// The trailers.
    pub trailers: Vec<PackagedTrailer>,
    /// Tests that hold the patch.
    pub verified_by: Vec<Verification>,
    /// Every file that it changes.
    pub files: Vec<PathText>,
}

/// A trailer.
#[derive(Debug, Clone, Serialize)]
pub struct PackagedTrailer {
    /// Its key.
    pub key: String,
    /// Its value.
    pub text: String,
}

/// A test that holds a patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// The place that names it: `Verified-by`, or a file with a line.
    pub source: String,
    /// The test.
    pub text: String,
}

/// A file with a conflict.
#[derive(Debug, Clone, Serialize)]
pub struct PackagedFile {
    /// Path of the resolved file.
    #[serde(flatten)]
    pub path: PathText,
    /// The reason.
    pub reason: String,
    /// The reason in words.
    pub description: String,
    /// The file that the patch was made from.
    pub base: Option<PackagedVersion>,
    /// The file of the new tree.
    pub ours: Option<PackagedVersion>,
    /// The file after the patch on its own base.
    pub theirs: Option<PackagedVersion>,
    /// Numbers of its hunks.
    pub hunks: Vec<usize>,
    /// The patch and target for which the resolution was recorded that is in the work tree already; `None` if the file
    /// is as the merge left it.
    pub recorded: Option<String>,
}

/// One version of a file.
#[derive(Debug, Clone, Serialize)]
pub struct PackagedVersion {
    /// Path.
    #[serde(flatten)]
    pub path: PathText,
    /// Mode as git writes it.
    pub mode: String,
    /// Id of the blob.
    pub id: String,
}

/// A place with a conflict.
#[derive(Debug, Clone, Serialize)]
pub struct PackagedHunk {
    /// Number, from 1.
    pub number: usize,
    /// Folder of its texts, in the folder of the package.
    pub folder: String,
    /// Path of the resolved file.
    #[serde(flatten)]
    pub path: PathText,
    /// The function around it.
    pub function: Option<String>,
    /// The relation of the two sides; `None` without markers, and where the place is what is in doubt.
    pub kind: Option<ConflictKind>,
    /// Its lines in the work tree's file, the markers included.
    pub marked: Option<LineSpan>,
    /// The text that the patch was made from.
    pub base: Option<PackagedSide>,
    /// The text of the new tree.
    pub ours: Option<PackagedSide>,
    /// The text after the patch on its own base.
    pub theirs: Option<PackagedSide>,
    /// The hunks of the patch file that are affected.
    pub patch_hunks: Vec<PatchHunk>,
    /// Places that are uncertain.
    pub doubts: Vec<Ambiguity>,
    /// Possible new paths of a file that is gone.
    pub candidates: Vec<RenameCandidate>,
    /// Other places of the new tree that have the text that the patch expects.
    pub elsewhere: Vec<Occurrence>,
    /// Upstream commits between the two trees that changed the lines, oldest first; `None` if they are not available.
    pub commits: Option<Vec<UpstreamChange>>,
    /// Upstream's change of the file around the lines, from the two trees; `None` if there is none, or if it is not
    /// text.
    pub upstream_diff: Option<UpstreamDiff>,
    /// Other patches of the series that change the file.
    pub other_patches: Vec<OtherPatch>,
    /// The earlier patches that changed the lines when they were resolved or dropped, where upstream has not changed
    /// them; `None` where upstream has, or where that is not known.
    pub changed_by: Option<Vec<String>>,
    /// The texts, whole, by the names of their files.
    #[serde(skip)]
    pub texts: Vec<(&'static str, Vec<u8>)>,
}

/// Consecutive lines of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LineSpan {
    /// The first, from 1; without lines, the one that follows the place.
    pub start: usize,
    /// Number of lines.
    pub lines: usize,
}

/// One side of a hunk.
#[derive(Debug, Clone, Serialize)]
pub struct PackagedSide {
    /// Its lines in the file.
    #[serde(flatten)]
    pub span: LineSpan,
    /// The lines.
    #[serde(flatten)]
    pub content: Content,
    /// The function around them, or the lines around them where there is none.
    pub function: FunctionText,
}

/// The function around one side of a hunk.
#[derive(Debug, Clone, Serialize)]
pub struct FunctionText {
    /// The head of the function; `None` outside of functions.
    pub name: Option<String>,
    /// Whether it is the whole function.
    pub is_whole: bool,
    /// Its lines in the file.
    #[serde(flatten)]
    pub span: LineSpan,
    /// The lines.
    #[serde(flatten)]
    pub content: Content,
}

/// A hunk of a patch file.
#[derive(Debug, Clone, Serialize)]
pub struct PatchHunk {
    /// `@@ -1,7 +1,8 @@`.
    pub header: String,
    /// Line of the header in the patch file, from 1.
    pub line: usize,
    /// The line of the base that its first change follows; 0 at the start of the file.
    pub after: usize,
    /// Number of lines that it adds.
    pub added: usize,
    /// Number of lines that it deletes.
    pub deleted: usize,
    /// The hunk as a patch file has it.
    #[serde(flatten)]
    pub content: Content,
}

/// A place that has the text that a patch expects.
#[derive(Debug, Clone, Serialize)]
pub struct Occurrence {
    /// The file.
    #[serde(flatten)]
    pub path: PathText,
    /// The first line, from 1.
    pub line: usize,
    /// The function around it.
    pub function: Option<String>,
    /// The text that was found.
    pub found: FoundText,
}

/// The text that was found elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FoundText {
    /// A hunk of the patch with its context.
    Hunk,
    /// The lines in conflict alone.
    Lines,
    /// One line that occurs once on either side.
    Line,
}

/// An upstream commit that changed lines in conflict.
#[derive(Debug, Clone, Serialize)]
pub struct UpstreamChange {
    /// Commit id.
    pub id: String,
    /// Author.
    pub author: String,
    /// Day on which it was written, in UTC.
    pub date: String,
    /// First line of the message.
    pub subject: String,
    /// The message.
    pub message: Content,
    /// The change of those lines, as a diff.
    pub diff: Content,
}

/// A part of the difference of a file between the two trees.
#[derive(Debug, Clone, Serialize)]
pub struct UpstreamDiff {
    /// Hunks of the diff.
    #[serde(flatten)]
    pub content: Content,
    /// Number of hunks that are not among them.
    pub hunks_left_out: usize,
}

/// A file that upstream changed where it defines or uses identifiers of lines in conflict.
#[derive(Debug, Clone, Serialize)]
pub struct RelatedChange {
    /// Its path.
    #[serde(flatten)]
    pub path: PathText,
    /// Numbers of the places with these identifiers.
    pub hunks: Vec<usize>,
    /// Identifiers that a changed line defines.
    pub defines: Vec<String>,
    /// Identifiers that changed lines use.
    pub uses: Vec<String>,
    /// The hunks with these identifiers, the likeliest to matter.
    pub diff: UpstreamDiff,
    /// All hunks with these identifiers, as a diff.
    #[serde(skip)]
    pub whole: Vec<u8>,
}

/// Another patch of the series that changes the same file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OtherPatch {
    /// File relative to the root.
    pub file: String,
    /// Whether it changes the same function.
    pub same_function: bool,
    /// Whether it changes, or made, lines that this conflict has.
    pub same_lines: bool,
}

/// A rebase that waits for its user.
#[derive(Debug, Clone, Serialize)]
pub struct WaitingRebase {
    /// Number of patches that are done.
    pub done: usize,
    /// Number of patches.
    pub of: usize,
    /// The work tree, relative to the current folder of the command that stopped.
    pub work: String,
    /// The folder of the package, relative to the same.
    pub folder: String,
    /// The commands that go on.
    pub next: NextCommands,
}

/// The commands that go on with a rebase.
#[derive(Debug, Clone, Serialize)]
pub struct NextCommands {
    /// With what is staged in the work tree.
    #[serde(rename = "continue")]
    pub go_on: String,
    /// Without the patch.
    pub skip: String,
    /// Not at all.
    pub abort: String,
    /// After the end: the builds and tests, which the rebase does not run.
    pub check: String,
}

impl ConflictPackage {
    /// Returns whether upstream changed none of the lines in conflict: all of them are consequences of earlier patches.
    pub fn is_by_earlier(&self) -> bool {
        let mut hunks = self.hunks.iter();
        self.hunks_left_out == 0 && !self.hunks.is_empty() && hunks.all(|hunk| hunk.changed_by.is_some())
    }

    /// Returns the package as indented JSON of at most `limit` characters, for a report on a tip that moves: without
    /// the names of the tip, without changes that other commits can add to, and without as much of the texts as is too
    /// long. `None` if not even its heads fit.
    pub fn excerpt(&self, limit: usize) -> Option<String> {
        let mut package = ConflictPackage { to: None, commit: None, rebase: None, ..self.clone() };
        package.leave_out_changes();
        let reductions: [fn(&mut ConflictPackage); 3] =
            [|_| {}, ConflictPackage::leave_out_functions, ConflictPackage::leave_out_diffs];
        for reduce in reductions {
            reduce(&mut package);
            let text = json_text(&package);
            if text.chars().count() <= limit {
                return Some(text);
            }
        }
        while package.hunks.pop().is_some() {
            package.hunks_left_out += 1;
            let text = json_text(&package);
            if text.chars().count() <= limit {
                return Some(text);
            }
        }
        None
    }

    fn leave_out_changes(&mut self) {
        self.related.clear();
        self.hunks.iter_mut().for_each(|hunk| hunk.upstream_diff = None);
    }

    fn leave_out_functions(&mut self) {
        let sides = |hunk: &mut PackagedHunk| {
            let sides = [hunk.base.take(), hunk.ours.take(), hunk.theirs.take()];
            let [base, ours, theirs] = sides.map(|side| side.map(PackagedSide::without_function));
            (hunk.base, hunk.ours, hunk.theirs) = (base, ours, theirs);
        };
        self.hunks.iter_mut().for_each(sides);
    }

    fn leave_out_diffs(&mut self) {
        let commits = self.hunks.iter_mut().flat_map(|hunk| hunk.commits.iter_mut().flatten());
        for commit in commits {
            commit.diff = Content::default();
            commit.message = Content::default();
        }
        let hunks = self.hunks.iter_mut().flat_map(|hunk| &mut hunk.patch_hunks);
        hunks.for_each(|hunk| hunk.content = Content::default());
    }
}

impl PackagedSide {
    fn without_function(self) -> PackagedSide {
        let function = FunctionText { is_whole: false, content: Content::default(), ..self.function };
        PackagedSide { function, ..self }
    }
}

/// Returns a package as indented JSON, safe to print.
pub fn json_text(package: &ConflictPackage) -> String {
    // Structs, strings, numbers and lists always serialize.
    espalier_series::visible_json(&serde_json::to_string_pretty(package).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use espalier_core::config::pins::Verification;
    use serde_json::json;

    use super::*;

    fn side(text: &str) -> Option<PackagedSide> {
        let span = LineSpan { start: 3, lines: 1 };
        let function = FunctionText {
            name: Some("int f(void) {".into()),
            is_whole: true,
            span: span.clone(),
            content: Content::of("x\n".repeat(500).as_bytes(), 4_000),
        };
        Some(PackagedSide { span, content: Content::of(text.as_bytes(), 100), function })
    }

    fn hunk(number: usize) -> PackagedHunk {
        let change = UpstreamChange {
            id: "ab".repeat(20),
            author: "A".into(),
            date: "2026-01-31".into(),
            subject: "s".into(),
            message: Content::of("m\n".repeat(400).as_bytes(), 4_000),
            diff: Content::of("d\n".repeat(400).as_bytes(), 4_000),
        };
        PackagedHunk {
            number,
            folder: format!("hunk-{number:02}"),
            path: PathText::from(&b"a.c"[..]),
            function: Some("int f(void) {".into()),
            kind: None,
            marked: None,
            base: side("b\n"),
            ours: side("o\n"),
            theirs: side("t\n"),
            patch_hunks: Vec::new(),
            doubts: Vec::new(),
            candidates: Vec::new(),
            elsewhere: Vec::new(),
            commits: Some(vec![change]),
            upstream_diff: Some(diff()),
            other_patches: Vec::new(),
            changed_by: None,
            texts: Vec::new(),
        }
    }

    fn diff() -> UpstreamDiff {
        UpstreamDiff { content: Content::of(b"--- a/a.c\n", 100), hunks_left_out: 0 }
    }

    fn related() -> RelatedChange {
        RelatedChange {
            path: PathText::from(&b"a.h"[..]),
            hunks: vec![1],
            defines: vec!["make_it".into()],
            uses: Vec::new(),
            diff: diff(),
            whole: Vec::new(),
        }
    }

    fn package() -> ConflictPackage {
        let place = |name: &str| ReportedTree {
            name: name.into(),
            tree: "cd".repeat(20),
            verification: Verification::default(),
        };
        ConflictPackage {
            schema: SCHEMA,
            kind: StopKind::Conflict,
            variant: "paged".into(),
            upstream: "hello".into(),
            from: place("v1"),
            to: Some(place("v2")),
            commit: None,
            patch: PackagedPatch {
                file: "patches/p/0001-a.patch".into(),
                author: "A <a@b>".into(),
                subject: "say it\u{202e}".into(),
                message: "say it\n".into(),
                trailers: Vec::new(),
                verified_by: Vec::new(),
                files: vec![PathText::from(&b"a.c"[..])],
            },
            sibling: None,
            files: Vec::new(),
            hunks: vec![hunk(1), hunk(2)],
            hunks_left_out: 0,
            related: vec![related()],
            rebase: None,
        }
    }

    /// Each commit of upstream can add to them, and the report would change with it.
    #[test]
    fn a_report_has_no_changes_around_the_conflict() {
        let text = package().excerpt(100_000).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&value["related"], &value["hunks"][0]["upstream_diff"]), (&json!([]), &json!(null)));
    }

    #[test]
    fn long_parts_are_left_out_step_by_step() {
        let read = |limit: usize| -> Option<serde_json::Value> {
            let text = package().excerpt(limit)?;
            assert!(text.chars().count() <= limit);
            Some(serde_json::from_str(&text).unwrap())
        };
        let whole = read(100_000).unwrap();
        assert_eq!((&whole["to"], &whole["commit"]), (&serde_json::Value::Null, &serde_json::Value::Null));
        assert!(whole["hunks"][0]["ours"]["function"]["text"].is_string());
        let without_functions = read(9_000).unwrap();
        assert_eq!(without_functions["hunks"][1]["ours"]["text"], "o\n");
        assert_eq!(without_functions["hunks"][1]["ours"]["function"]["name"], "int f(void) {");
        assert!(without_functions["hunks"][1]["ours"]["function"].get("text").is_none());
        assert!(without_functions["hunks"][1]["commits"][0]["diff"]["text"].is_string());
        let one = read(2_500).unwrap();
        assert_eq!(
            (one["hunks"].as_array().map(Vec::len), &one["hunks_left_out"]),
            (Some(1), &serde_json::json!(1))
        );
        assert_eq!(read(100), None);
    }

    #[test]
    fn the_text_is_safe_to_print() {
        assert!(!json_text(&package()).contains('\u{202e}'));
    }
}
