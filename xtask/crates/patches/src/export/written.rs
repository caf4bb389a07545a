//! The commits as git writes them, parsed again: patches that our own parser would reject are refused here.

use espalier_core::config::overlay::OverlayFile;
use espalier_core::context::Context;
use espalier_core::error::{Error, Kind, Result};
use espalier_core::sys::git::format_patch::format_series;
use espalier_core::sys::machine::disk;
use espalier_core::sys::work_trees::edit_repo::{EditCommit, EditRepo};
use espalier_series as series;
use espalier_series::{Patch, slug_from_subject};

use super::collect::{Collected, rebase_in};

/// A commit as a patch.
pub struct Written {
    /// The parsed patch; its name is only for messages.
    pub patch: Patch,
    /// The text of the patch.
    pub bytes: Vec<u8>,
}

/// Runs git to write every commit as a patch, and checks that the patch is complete.
pub fn write_patches(
    context: &Context,
    repo: &EditRepo,
    collected: &Collected,
    overlays: &[OverlayFile],
) -> Result<Vec<Written>> {
    let Collected { commits, tip, marks } = collected;
    let scratch = disk::scratch_folder(&context.layout.scratch(), "export")?;
    let texts = format_series(&repo.git_dir(), marks.base, *tip, 1, scratch.path())?;
    if texts.len() != commits.len() {
        let what = format!("git wrote {} patches for {} commits", texts.len(), commits.len());
        return Err(Error::environment(what));
    }
    let mut written = Vec::with_capacity(commits.len());
    for (commit, text) in commits.iter().zip(texts) {
        refuse_unknown_charset(repo, commit)?;
        let patch = read(repo, commit, &text.bytes)?;
        refuse_another_message(repo, commit, &patch)?;
        refuse_overlay_paths(commit, &patch, overlays)?;
        written.push(Written { patch, bytes: text.bytes });
    }
    Ok(written)
}

fn read(repo: &EditRepo, commit: &EditCommit, text: &[u8]) -> Result<Patch> {
    let refused = |why: String| {
        Error::new(Kind::Conflict, format!("{} cannot be a patch", commit.describe()))
            .detail(why)
            .hint(format!("change the commit: {}    # and mark it `edit`", rebase_in(repo)))
    };
    let name = format!("{}.patch", slug_from_subject(&commit.subject));
    let patch = series::parse(&name, text).map_err(|error| refused(error.to_string()))?;
    series::authorship(&patch).map_err(refused)?;
    Ok(patch)
}

fn refuse_unknown_charset(repo: &EditRepo, commit: &EditCommit) -> Result<()> {
    if commit.not_utf8.is_empty() {
        return Ok(());
    }
    let what = format!("{} is not UTF-8 and does not name its charset", commit.describe());
    Err(Error::new(Kind::Conflict, what)
        .detail(commit.not_utf8.join("\n"))
        .hint(format!("reword it: {}    # and mark it `reword`", rebase_in(repo))))
}

/// Refuses a message with a line such as `---`, which ends the message for every program that reads the patch.
fn refuse_another_message(repo: &EditRepo, commit: &EditCommit, patch: &Patch) -> Result<()> {
    if as_in_a_patch(&commit.message) == as_in_a_patch(&patch.message()) {
        return Ok(());
    }
    Err(Error::new(
        Kind::Conflict,
        format!("the message of {} does not survive in a patch", commit.describe()),
    )
    .detail("it has a line that means something else there, such as `---`")
    .hint(format!("reword it: {}    # and mark it `reword`", rebase_in(repo))))
}

/// Normalises a message as a patch does: the line breaks of the subject and trailing whitespace are lost.
fn as_in_a_patch(message: &str) -> (String, String) {
    let mut lines = message.lines().map(str::trim_end).skip_while(|line| line.is_empty());
    let subject: Vec<&str> =
        lines.by_ref().take_while(|line| !line.is_empty()).flat_map(str::split_whitespace).collect();
    let body: Vec<&str> = lines.collect();
    (subject.join(" "), body.join("\n").trim_matches('\n').to_string())
}

fn refuse_overlay_paths(commit: &EditCommit, patch: &Patch, overlays: &[OverlayFile]) -> Result<()> {
    for path in patch.files.iter().flat_map(|file| file.paths()) {
        let is_it = |file: &&OverlayFile| file.path.as_bytes().eq_ignore_ascii_case(path.as_bytes());
        if let Some(owner) = overlays.iter().find(is_it) {
            let what = format!("{} touches `{path}`, which an overlay brings", commit.describe());
            return Err(Error::new(Kind::Conflict, what)
                .detail(format!("{}: a path has one owner", owner.from))
                .hint("make the change in the overlay, and take the path out of the commit"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::as_in_a_patch;

    #[test]
    fn only_the_form_of_a_message_may_differ() {
        let (subject, body) = as_in_a_patch("\na  b\nc \n\nbody  \n\nKey: v\n\n");
        assert_eq!((subject.as_str(), body.as_str()), ("a b c", "body\n\nKey: v"));
        assert_eq!(as_in_a_patch("a"), as_in_a_patch("a\n"));
        assert_ne!(as_in_a_patch("a\n\nb"), as_in_a_patch("a\n\n b"));
    }
}
