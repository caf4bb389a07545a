//! The report of `status`: every patch of a series against one upstream tree.

use espalier_core::config::overlay::Clash;
use espalier_core::config::pins::{Verification, short_name};
use espalier_series::{
    Change, Content, FileDrift, FilePatch, LineKind, ObjectId, Patch, PatchClass, visible,
};
use serde::Serialize;

/// Completes a hint for the readers of a report, where it is not a line of its own.
pub type Completes<'a> = &'a dyn Fn(&str) -> String;

/// The whole report.
#[derive(Debug, Clone, Serialize)]
pub struct StatusReport {
    /// The variant whose series, including its parents', was checked.
    pub variant: String,
    /// The upstream's name.
    pub upstream: String,
    /// The generation that the series is used on, if it is not on the pin that it was made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<String>,
    /// The pin that the series was made for, or the generation.
    pub pin: ReportedTree,
    /// The upstream tree that it was checked against.
    pub tip: ReportedTree,
    /// Whether some patch is not exact at the pin, so that the series cannot be rebased.
    pub inexact_at_pin: bool,
    /// Every patch in order.
    pub patches: Vec<PatchStatus>,
    /// The other series on the pin, which moves only with all of them; empty unless they were judged too.
    pub others: Vec<SeriesStatus>,
    /// Overlay files of the variant whose path something else provides there.
    pub overlays: Vec<Clash>,
    /// URL prefix of the web pages of upstream commits, to which the id is appended; `None` when unknown.
    pub commit_page: Option<String>,
    /// The next commands; empty when every patch of every series is exact.
    pub next: Vec<String>,
    /// Upstream's commits since the pin, oldest first; `None` when the tip was fetched without its history.
    pub history: Option<Vec<UpstreamCommit>>,
}

/// Explains why the pin cannot move while `series` are not exact on it.
pub fn why_not_moved(series: &[&str], pin: &ReportedTree) -> String {
    let are = if series.len() == 1 { "is" } else { "are" };
    format!(
        "{} {are} not exact at the pin, {}; a series is moved only from a pin on which it is exact",
        series.join(" and "),
        pin.shown()
    )
}

/// Another series on the same pin.
#[derive(Debug, Clone, Serialize)]
pub struct SeriesStatus {
    /// A variant that has the series.
    pub variant: String,
    /// Whether some patch of it, and not of its parents, is not exact at the pin.
    pub inexact_at_pin: bool,
    /// Its patches that no series before it in the report has, in order.
    pub patches: Vec<PatchStatus>,
}

impl SeriesStatus {
    /// Number of exact patches.
    pub fn exact(&self) -> usize {
        exact_of(&self.patches)
    }
}

fn exact_of(patches: &[PatchStatus]) -> usize {
    patches.iter().filter(|patch| patch.class == PatchClass::Exact).count()
}

/// A tree in a report, with its name.
#[derive(Debug, Clone, Serialize)]
pub struct ReportedTree {
    /// Tag, branch or commit.
    pub name: String,
    /// Tree id.
    pub tree: String,
    /// Whether the tree id is known to be upstream's; omitted from JSON if it is.
    #[serde(skip_serializing_if = "Verification::is_verified")]
    pub verification: Verification,
}

impl ReportedTree {
    /// Returns the tree `tree` with the name `name`.
    pub fn new(name: impl ToString, tree: ObjectId, verification: Verification) -> ReportedTree {
        ReportedTree { name: name.to_string(), tree: tree.to_string(), verification }
    }

    /// Returns the notice for reports on the tree; `None` if there is nothing to report.
    pub fn notice(&self) -> Option<String> {
        self.verification.notice(&self.name)
    }

    /// Returns the name as texts show it.
    pub fn shown(&self) -> &str {
        short_name(&self.name)
    }
}

/// One upstream commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UpstreamCommit {
    /// Commit id.
    pub id: String,
    /// First line of its message.
    pub subject: String,
    /// Its author.
    pub author: String,
    /// Seconds since 1970.
    pub seconds: i64,
}

/// One patch.
#[derive(Debug, Clone, Serialize)]
pub struct PatchStatus {
    /// File relative to the root.
    pub file: String,
    /// Subject of its message.
    pub subject: String,
    /// Its class in the series.
    pub class: PatchClass,
    /// Whether an earlier patch of the same files is not exact, so that its class may change once that one is resolved.
    pub provisional: bool,
    /// The failed earlier patches that have to be resolved first; none of them is blocked itself.
    pub blocked_by: Vec<String>,
    /// Conflicts that a person would have to resolve in a rebase; empty for a blocked patch, whose own conflicts are
    /// not known before those that block it are resolved.
    pub conflicts: Vec<String>,
    /// Notes from upstream's commits: it was upstreamed, reverted, or something similar was committed.
    pub upstream: Vec<String>,
    /// Other notes of a rebase.
    pub notes: Vec<String>,
    /// The drift of each file from the one that the patch was made for, hunk by hunk; empty for an exact patch. If
    /// upstream's history contains the patch, files that upstream changed since are left out.
    pub files: Vec<FileDrift>,
    /// The commits that changed its files since the pin: indices into `history`, oldest first.
    pub touched_by: Vec<usize>,
    /// The commit since which it has its class: an index into `history`; `None` for an exact patch, for one that had
    /// this class at the pin already, and without a history.
    pub caused_by: Option<usize>,
    /// The next step for it.
    pub next: Option<String>,
    /// Its hunks as in the patch file; omitted from JSON unless requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<HunkText>,
}

/// One hunk, or a single header line for a file change without hunks.
#[derive(Debug, Clone, Serialize)]
pub struct HunkText {
    /// The file.
    pub path: String,
    /// `@@ -1,7 +1,8 @@ function`.
    pub header: String,
    /// The lines with their signs, sanitized for display as text.
    pub lines: Vec<String>,
}

impl StatusReport {
    /// Number of exact patches.
    pub fn exact(&self) -> usize {
        exact_of(&self.patches)
    }

    /// The patches of every series that was judged, each once.
    pub fn all_patches(&self) -> impl Iterator<Item = &PatchStatus> {
        self.patches.iter().chain(self.others.iter().flat_map(|other| &other.patches))
    }

    /// The kind of its pin.
    pub fn kind_of_pin(&self) -> &'static str {
        if self.generation.is_some() { "generation" } else { "pin" }
    }

    /// Whether every patch of every series is exact.
    pub fn all_are_exact(&self) -> bool {
        self.all_patches().all(|patch| patch.class == PatchClass::Exact)
    }

    /// Whether every patch is exact and every overlay file has its path for itself.
    pub fn is_exact(&self) -> bool {
        self.all_are_exact() && self.overlays.is_empty()
    }

    /// Notices about its trees.
    pub fn notices(&self) -> impl Iterator<Item = String> {
        let of_pin = self.pin.notice().filter(|_| self.pin.tree != self.tip.tree);
        of_pin.into_iter().chain(self.tip.notice())
    }

    /// The series that are not exact at the pin: while there is one, no rebase can move the pin.
    pub fn inexact_series(&self) -> Vec<&str> {
        let named = self.inexact_at_pin.then_some(self.variant.as_str());
        let others = self.others.iter().filter(|other| other.inexact_at_pin);
        named.into_iter().chain(others.map(|other| other.variant.as_str())).collect()
    }

    /// Returns the report with the next step of every patch; `rebase` is the command that takes the series to the tip,
    /// if one does.
    #[must_use]
    pub fn with_next_steps(mut self, rebase: Option<&str>) -> StatusReport {
        for patch in self.all_patches_mut() {
            patch.next = next_step(patch.class, rebase);
        }
        self
    }

    fn all_patches_mut(&mut self) -> impl Iterator<Item = &mut PatchStatus> {
        self.patches.iter_mut().chain(self.others.iter_mut().flat_map(|other| &mut other.patches))
    }

    /// Number of patches of each class that occurs, in the order of the classes.
    pub fn counts(&self) -> Vec<(PatchClass, usize)> {
        let mut classes: Vec<PatchClass> = self.patches.iter().map(|patch| patch.class).collect();
        classes.sort();
        let groups = classes.chunk_by(|left, right| left == right);
        groups.filter_map(|group| Some((*group.first()?, group.len()))).collect()
    }

    /// The commits that changed the files of `patch`, oldest first.
    pub fn commits_of<'a>(&'a self, patch: &'a PatchStatus) -> impl Iterator<Item = &'a UpstreamCommit> {
        let history = self.history.as_deref().unwrap_or_default();
        patch.touched_by.iter().filter_map(move |at| history.get(*at))
    }

    /// Returns the report without the text of the patches, which is on disk already.
    pub fn without_hunks(mut self) -> StatusReport {
        for patch in self.all_patches_mut() {
            patch.hunks.clear();
        }
        self
    }

    /// The commit since which `patch` has its class.
    pub fn cause_of(&self, patch: &PatchStatus) -> Option<&UpstreamCommit> {
        self.history.as_ref()?.get(patch.caused_by?)
    }
}

/// Explains the mark `provisional`.
pub const PROVISIONAL: &str =
    "an earlier patch of the same files is not exact: this verdict may change once that one is resolved";

/// Returns the next step for a patch of this class, if there is one. `rebase` is the command that takes the series to
/// the tip; without it, no step is a rebase.
fn next_step(class: PatchClass, rebase: Option<&str>) -> Option<String> {
    let by_rebase = |words: &dyn Fn(&str) -> String| rebase.map(words);
    match class {
        PatchClass::Exact => None,
        PatchClass::Upstreamed => by_rebase(&|rebase| format!("`{rebase} --drop-upstreamed` drops it")),
        PatchClass::PartlyUpstreamed => {
            by_rebase(&|rebase| format!("`{rebase} --trim-upstreamed` leaves out what upstream has"))
        }
        PatchClass::Shifted => by_rebase(&|rebase| format!("nothing to decide: `{rebase}` moves it there")),
        PatchClass::Merged => by_rebase(&|rebase| format!("nothing to decide: `{rebase}` merges it")),
        PatchClass::Followed => {
            by_rebase(&|rebase| format!("nothing to decide: `{rebase}` follows the file to its new name"))
        }
        PatchClass::Conflict => by_rebase(&|rebase| format!("`{rebase}` stops there for you to resolve it")),
        PatchClass::TargetRenamed => by_rebase(&|rebase| {
            format!("choose the renamed file: `{rebase}` stops there and suggests the most likely one")
        }),
        PatchClass::MovedFunction => {
            Some("check that the function it now fits in is the intended one".to_string())
        }
        PatchClass::Ambiguous => Some("decide which of the places is the intended one".to_string()),
        PatchClass::TargetDeleted => Some("find where upstream does this now, or drop the patch".to_string()),
        PatchClass::Blocked => {
            Some("resolve the patches that block it first; it can still conflict itself then".to_string())
        }
        PatchClass::Refused => Some("do not trust it: recreate it from a commit".to_string()),
    }
}

/// Explains a class to readers who do not know its name yet.
pub fn meaning(class: PatchClass) -> &'static str {
    match class {
        PatchClass::Exact => "applies as it is, every hunk on its own line",
        PatchClass::Upstreamed => "upstream has the whole change",
        PatchClass::PartlyUpstreamed => "upstream has some of its hunks",
        PatchClass::Shifted => "the same hunks, on other lines of the same functions",
        PatchClass::Merged => "upstream changed the context; a three-way merge takes both changes",
        PatchClass::Followed => "a file was renamed upstream, and the patch follows it",
        PatchClass::MovedFunction => "a hunk fits only in another function than it was made for",
        PatchClass::Ambiguous => "a hunk fits at more than one place",
        PatchClass::Conflict => "upstream changed the same lines",
        PatchClass::TargetRenamed => "a file was probably renamed upstream",
        PatchClass::TargetDeleted => "a file was deleted upstream",
        PatchClass::Blocked => "it needs an earlier patch that does not apply",
        PatchClass::Refused => "it must not be applied",
    }
}

/// The hunks of a patch as text.
pub fn hunk_texts(patch: &Patch) -> Vec<HunkText> {
    patch.files.iter().flat_map(hunks_of_file).collect()
}

fn hunks_of_file(file: &FilePatch) -> Vec<HunkText> {
    let path = file.path().map(ToString::to_string).unwrap_or_default();
    let Content::Text(hunks) = &file.content else {
        return vec![HunkText { path, header: describe_change(file).to_string(), lines: Vec::new() }];
    };
    hunks
        .iter()
        .map(|hunk| {
            let section = espalier_series::lossy(&hunk.section);
            let header = format!("{} {section}", hunk.header()).trim_end().to_string();
            let lines = hunk.lines.iter().map(|line| signed_line(line.kind, line.bytes)).collect();
            HunkText { path: path.clone(), header, lines }
        })
        .collect()
}

fn describe_change(file: &FilePatch) -> &'static str {
    match (file.change, &file.content) {
        (_, Content::Binary(_)) => "binary content",
        (Change::Create, _) => "an empty file is made",
        (Change::Delete, _) => "an empty file is deleted",
        (Change::Rename, _) => "renamed",
        (Change::Copy, _) => "copied",
        (Change::Modify, _) => "the mode changes",
    }
}

pub(super) fn signed_line(kind: LineKind, bytes: &[u8]) -> String {
    let sign = char::from(kind.sign());
    let text = espalier_series::lossy(bytes);
    let shown = text.trim_end_matches(['\n', '\r']);
    format!("{sign}{}", visible(shown))
}

#[cfg(test)]
mod tests {
    use super::{PatchClass, next_step};

    #[test]
    fn a_step_names_the_command_that_does_it() {
        let rebase = "cargo xtask rebase --to v2.0";
        let conflict = next_step(PatchClass::Conflict, Some(rebase)).unwrap();
        assert_eq!(conflict, "`cargo xtask rebase --to v2.0` stops there for you to resolve it");
        assert_eq!(next_step(PatchClass::Conflict, None), None);
        assert_eq!(next_step(PatchClass::Exact, Some(rebase)), None);
    }
}
