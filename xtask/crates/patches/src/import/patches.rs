//! Converting a sequence of commits to patch files, with every reason why a commit cannot be a patch.

use espalier_core::config::overlay::OverlayFile;
use espalier_core::error::{Error, Kind, Result};
use espalier_core::next_command::quoted_bytes;
use espalier_core::sys::git::format_patch::format_series;
use espalier_core::sys::work_trees::import_repo::ImportRepo;
use espalier_series as series;
use espalier_series::ObjectId;
use espalier_series::{
    LintRules, PLACEHOLDER, Patch, add_trailers, lint_owners, patch_message, printable, slug_from_subject,
};

use super::sequence::{PatchSequence, SequenceCommit};

/// A patch file of the new series.
pub struct NewPatch {
    /// Its file name.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// The base of the new patches, and the rules for them.
pub struct ImportBase<'a> {
    /// Parent of the first commit.
    pub base: ObjectId,
    /// Number of patches that the series already has.
    pub before: usize,
    /// Rules that decide which trailers are required.
    pub rules: &'a LintRules,
    /// Overlays, whose paths no patch may touch.
    pub overlays: &'a [OverlayFile],
}

/// Formats every commit of `sequence` with git, and parses the result.
///
/// # Errors
///
/// Everything that cannot be represented in a patch, for all commits.
pub fn write_patches(
    repo: &ImportRepo,
    sequence: &mut PatchSequence,
    import_base: &ImportBase<'_>,
) -> Result<Vec<NewPatch>> {
    let mut tip = import_base.base;
    for commit in &mut sequence.commits {
        let message = message_of(commit, import_base.rules);
        tip = repo.commit(&commit.author, commit.tree, tip, &message)?;
    }
    let scratch = repo.scratch("format")?;
    let texts = format_series(repo.git_dir(), import_base.base, tip, 1, scratch.path())?;
    if texts.len() != sequence.commits.len() {
        let what = format!("git wrote {} patches for {} commits", texts.len(), sequence.commits.len());
        return Err(Error::environment(what));
    }
    let mut refused = Refused::default();
    let mut patches = Vec::new();
    for ((number, commit), text) in (import_base.before + 1..).zip(&sequence.commits).zip(texts) {
        let slug = slug_from_subject(commit.message.lines().next().unwrap_or_default());
        let name = format!("{number:04}-{slug}.patch");
        match series::parse(&name, &text.bytes) {
            Ok(patch) => refused.look_at(commit, &patch, import_base.overlays),
            Err(error) => refused.unreadable(commit, &error, &series::refusals(&name, &text.bytes)),
        }
        patches.push(NewPatch { name, bytes: text.bytes });
    }
    refused.into_result().map(|()| patches)
}

/// Returns the message in the form that a patch preserves, with the trailers that lint requires.
fn message_of(commit: &mut SequenceCommit, rules: &LintRules) -> String {
    let (message, moved) = patch_message(&commit.message);
    if moved > 0 {
        let note = format!("{moved} lines of its message would end the patch's message, and were indented");
        commit.notes.push(note);
    }
    let status = || commit.status.clone().unwrap_or_else(|| PLACEHOLDER.to_string());
    let mut wanted: Vec<(String, String)> = Vec::new();
    for key in rules.required() {
        let value = if *key == STATUS { status() } else { PLACEHOLDER.to_string() };
        wanted.push(((*key).to_string(), value));
    }
    if commit.status.is_some() && !rules.required().contains(&STATUS) {
        wanted.push((STATUS.to_string(), status()));
    }
    commit.message = add_trailers(&message, &wanted);
    commit.message.clone()
}

/// The trailer that states whether upstream knows a patch.
pub const STATUS: &str = "Upstream-Status";

/// Content that cannot be represented in a patch.
#[derive(Default)]
struct Refused {
    lines: Vec<String>,
    /// Paths whose removal would fix it.
    paths: Vec<Vec<u8>>,
}

impl Refused {
    fn look_at(&mut self, commit: &SequenceCommit, patch: &Patch, overlays: &[OverlayFile]) {
        if let Err(why) = series::authorship(patch) {
            self.lines.push(format!("{}: {why}", commit.origin));
        }
        let owner = |path: &series::RepoPath| {
            let is_it = |file: &&OverlayFile| file.path.as_bytes().eq_ignore_ascii_case(path.as_bytes());
            overlays.iter().find(is_it).map(|file| format!("brought by the overlay file {}", file.from))
        };
        let findings = lint_owners(patch, owner);
        self.lines.extend(findings.iter().map(|finding| format!("{}: {}", commit.origin, finding.message)));
    }

    fn unreadable(
        &mut self,
        commit: &SequenceCommit,
        error: &series::ParseError,
        files: &[series::FileRefusal],
    ) {
        let says = |error: &series::ParseError| format!("{} (`{}`)", error.refusal.describe(), error.found);
        if files.is_empty() {
            self.lines.push(format!("{}: {}", commit.origin, says(error)));
        }
        for file in files {
            let path = file.path.as_deref().map(printable).unwrap_or_default();
            self.lines.push(format!("{}: {path}: {}", commit.origin, says(&file.error)));
            if let Some(path) = file.path.as_ref().filter(|path| !self.paths.contains(path)) {
                self.paths.push(path.clone());
            }
        }
    }

    fn into_result(self) -> Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let count = self.lines.len();
        let things = if count == 1 { "thing" } else { "things" };
        let what = format!("{count} {things} cannot be expressed as a patch; nothing was written");
        let error = Error::new(Kind::Conflict, what).detail(self.lines.join("\n"));
        let error = error.hint("change these commits where they come from, and import again");
        if self.paths.is_empty() {
            return Err(error);
        }
        let flags: Vec<String> =
            self.paths.iter().map(|path| format!("--leave-out {}", quoted_bytes(path))).collect();
        Err(error.hint(format!("or import all but these files: the same command with {}", flags.join(" "))))
    }
}
