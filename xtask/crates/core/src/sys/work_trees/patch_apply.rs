//! Parses mails and applies diffs to a tree, with git and without a work tree.

use std::path::Path;

use espalier_series::{
    FileAfter, FileHere, LooseReading, NotUtf8, ObjectId, PlacedHunks, Tree, before_diff, place_hunks,
    printable, whole_mails,
};
use tempfile::TempDir;

use super::import_repo::ImportRepo;
use crate::error::{Error, Result};
use crate::next_command::quoted;
use crate::sys::git::command::git;
use crate::sys::git::store_tree::StoreTree;
use crate::sys::machine::disk;
use crate::sys::machine::process::{Finished, Run};

/// A mail, split into its parts by git.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadMail {
    /// `Name <address>`.
    pub author: String,
    /// The date as in the mail.
    pub date: String,
    /// The subject without `[PATCH n/m]`.
    pub subject: String,
    /// The message after the subject.
    pub body: String,
    /// Everything from the diffstat on; empty in a mail without a patch.
    pub diff: Vec<u8>,
}

/// Maximum length of git's output, in bytes.
const OUTPUT_LIMIT: usize = 64 << 20;

/// A file that contains mails.
#[derive(Clone, Copy, Debug)]
pub struct MailFile<'a> {
    /// Name of the file for messages: its path in the folder of its queue.
    pub name: &'a str,
    /// Path of the file, for printed commands.
    pub path: &'a Path,
    /// Its content.
    pub text: &'a [u8],
}

/// Parses the mails of `file`, one or many. A message may have a line at which git would split the file.
pub fn read_mails(repo: &ImportRepo, file: MailFile<'_>) -> Result<Vec<ReadMail>> {
    let scratch = repo.scratch("mail")?;
    let (mbox, folder) = (scratch.path().join("mbox"), scratch.path().join("split"));
    disk::write_atomically(&mbox, file.text)?;
    disk::create_folder(&folder)?;
    let mut run = repo.git().args(["mailsplit", "-d6", "-b"]);
    let first = file.text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if !first.ends_with(b"\r") {
        // Carriage returns are then those of the patched files, not of the mail.
        run = run.arg("--keep-cr");
    }
    run.arg(format!("-o{}", folder.display())).arg("--").arg(&mbox).success()?;
    let parts = disk::files_below(&folder)?;
    let parts = parts.iter().map(|part| disk::read(&folder.join(part))).collect::<Result<Vec<_>>>()?;
    let mail = scratch.path().join("mail");
    let read = |text: Vec<u8>| {
        disk::write_atomically(&mail, &text)?;
        read_mail(repo, &mail, file, &scratch)
    };
    whole_mails(parts).into_iter().map(read).collect()
}

fn read_mail(repo: &ImportRepo, mail: &Path, file: MailFile<'_>, scratch: &TempDir) -> Result<ReadMail> {
    let (message, diff) = (scratch.path().join("message"), scratch.path().join("diff"));
    // No `--encoding`: git then converts nothing. Without the option git converts to UTF-8, unless another charset is
    // configured.
    let finished = repo
        .git()
        .args(["mailinfo", "-b", "--no-scissors", "--no-message-id"])
        .args([&message, &diff])
        .input(mail)?
        .finish()?;
    if !finished.status.success() {
        return Err(Error::usage(format!("git cannot read a mail of {}", file.name))
            .detail(printable(finished.stderr.trim().as_bytes())));
    }
    let headers = in_utf8(finished.stdout, file)?;
    let header =
        |key: &str| headers.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().trim();
    Ok(ReadMail {
        author: format!("{} <{}>", header("Author: "), header("Email: ")),
        date: header("Date: ").to_string(),
        subject: header("Subject: ").to_string(),
        body: in_utf8(disk::read(&message)?, file)?,
        diff: disk::read(&diff)?,
    })
}

/// Returns a part of a mail after git has converted every charset that the mail declares. Other bytes are refused:
/// replacing them would lose them.
fn in_utf8(text: Vec<u8>, file: MailFile<'_>) -> Result<String> {
    String::from_utf8(text).map_err(|error| {
        let bytes = error.as_bytes();
        let is_bad = |line: &&[u8]| std::str::from_utf8(line).is_err();
        let bad = bytes.split(|byte| *byte == b'\n').find(is_bad).unwrap_or_default();
        refuse_bytes(file, bad)
    })
}

/// Returns the error for `bad`, a line of `file` in git's output, possibly after one of git's keys.
fn refuse_bytes(file: MailFile<'_>, bad: &[u8]) -> Error {
    let keys: [&[u8]; 3] = [b"Author: ", b"Email: ", b"Subject: "];
    let value = keys.iter().find_map(|key| bad.strip_prefix(*key)).unwrap_or(bad).trim_ascii();
    let has_it = |line: &[u8]| line.windows(value.len().max(1)).any(|window| window == value);
    let lines = (1..).zip(file.text.split(|byte| *byte == b'\n'));
    match lines.into_iter().find(|(_, line)| has_it(line)) {
        Some((line, found)) => not_utf8(file, &NotUtf8 { line, found: printable(found.trim_ascii_end()) }),
        None => Error::usage(format!("{} is not UTF-8 and does not name its charset", file.name))
            .detail(printable(bad)),
    }
    .hint("name the charset of its message in the mail: `Content-Type: text/plain; charset=ISO-8859-1`")
}

/// Returns the error for a line above the diff of `file`, or of a mail in it, whose charset is not declared.
pub fn not_utf8(file: MailFile<'_>, bad: &NotUtf8) -> Error {
    let MailFile { name, path, text } = file;
    let error = Error::usage(format!("{name} is not UTF-8 and does not name its charset"));
    let error = error.detail(format!("{name}:{}: {}", bad.line, bad.found));
    let above = before_diff(text).split_inclusive(|byte| *byte == b'\n').count();
    let path = quoted(&path.display().to_string());
    error.hint(match bad.line <= above {
        // The diff keeps its bytes: they are those of the patched files.
        true => format!(
            "convert what stands above its diff: (head -n {above} {path} | iconv -f ISO-8859-1 -t UTF-8; \
             tail -n +{} {path}) >converted.patch",
            above + 1
        ),
        false => "convert that line, and not the diffs: iconv -f ISO-8859-1 -t UTF-8".to_string(),
    })
}

/// Options for applying a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HowToApply {
    /// Number of leading path components to strip (`-p`).
    pub strip: u32,
    /// Whether it is applied in reverse.
    pub reverse: bool,
    /// Whether a hunk may be applied with less context if all of it does not fit, as `patch` does.
    pub may_fuzz: bool,
}

/// The choices that git made when it applied a diff.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// The hunks that were applied elsewhere than the diff states, or with less context.
    pub hunks: Vec<String>,
    /// The files that were merged three-way, because the blob that the diff names is in the store.
    pub merged: Vec<String>,
}

/// Result of applying a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The resulting tree, and the choices that git made.
    Tree(ObjectId, Placed),
    /// All of it is in the tree already.
    There,
    /// It does not fit, or not certainly where it belongs; the reasons.
    Not(Vec<String>),
}

/// Applies `diff` to `tree`. A hunk whose context fits at several places goes to the function that its header names.
pub fn apply(repo: &ImportRepo, tree: ObjectId, diff: &[u8], how: HowToApply) -> Result<Applied> {
    let scratch = repo.scratch("apply")?;
    let index = scratch.path().join("index");
    let methods: &[ApplyMethod] = if how.may_fuzz { &METHODS } else { &METHODS[..1] };
    let mut first = Vec::new();
    for method in methods {
        indexed(repo, &index).args(["read-tree", &tree.to_string()]).success()?;
        let placing = method.place(repo, tree, diff, how)?;
        if !placing.without_context.is_empty() {
            return Ok(Applied::Not(placing.without_context));
        }
        let tried = git_apply(repo, &index, &placing.diff, how, method)?;
        if tried.status.success() {
            let written = indexed(repo, &index).arg("write-tree").success()?;
            if placing.is_elsewhere && presence(repo, &index, tree, diff, how)? == Presence::There {
                return Ok(Applied::There);
            }
            return compared(repo, &written, placing, &tried.stderr);
        }
        if first.is_empty() {
            first = complaints(&tried.stderr);
        }
    }
    Ok(match presence(repo, &index, tree, diff, how)? {
        Presence::There => Applied::There,
        Presence::Uncertain(why) => Applied::Not([first, why].concat()),
        Presence::Missing => Applied::Not(first),
    })
}

/// Returns the result of git, whose `write-tree` printed `written`: its tree, if each file in it is as `placing` has
/// it. Otherwise git put a hunk elsewhere, and the notes on its place are wrong.
fn compared(repo: &ImportRepo, written: &[u8], placing: PlacedHunks, output: &str) -> Result<Applied> {
    let id = espalier_series::lossy(written).trim().to_string();
    let tree = id.parse::<ObjectId>().map_err(|error| Error::environment(error.to_string()))?;
    let placed = placements(output);
    let files = StoreTree::new(&repo.store, tree)?;
    let mut others = Vec::new();
    for (path, after) in &placing.files {
        let content = match files.entry(path)? {
            Some(entry) if *after != FileAfter::Unknown => Some(files.blob(entry.id)?.into_owned()),
            _ => None,
        };
        let shown = printable(espalier_series::lossy(path).as_bytes());
        if !after.is_result(content.as_deref(), placed.merged.contains(&shown)) {
            others.push(format!("{shown}: {OTHER_PLACES}"));
        }
    }
    if !others.is_empty() {
        return Ok(Applied::Not(others));
    }
    let hunks = [placing.notes, placed.hunks].concat();
    Ok(Applied::Tree(tree, Placed { hunks, ..placed }))
}

const OTHER_PLACES: &str = "git changed other lines than those where the hunks belong";

/// Whether a tree has the changes of a diff.
#[derive(PartialEq, Eq)]
enum Presence {
    /// It has all of them, each where it belongs.
    There,
    /// It has all of them, but perhaps some only in a place that looks like theirs; those, with both places.
    Uncertain(Vec<String>),
    /// It lacks some.
    Missing,
}

/// Returns whether `tree` has all of `diff`. git alone would find each hunk anywhere in its file.
fn presence(
    repo: &ImportRepo,
    index: &Path,
    tree: ObjectId,
    diff: &[u8],
    how: HowToApply,
) -> Result<Presence> {
    indexed(repo, index).args(["read-tree", &tree.to_string()]).success()?;
    let back = HowToApply { reverse: !how.reverse, ..how };
    let PlacedHunks { diff, is_elsewhere, uncertain, .. } = CHECK.place(repo, tree, diff, back)?;
    if is_elsewhere || !git_apply(repo, index, &diff, back, &CHECK)?.status.success() {
        return Ok(Presence::Missing);
    }
    Ok(if uncertain.is_empty() { Presence::There } else { Presence::Uncertain(uncertain) })
}

/// One way to apply a diff.
struct ApplyMethod {
    option: &'static str,
    /// Whether a file is merged if the store has the blob that the diff names, and the diff fits that blob.
    merges: bool,
    /// Whether less context than the diff has is enough.
    may_fuzz: bool,
    /// Whether each hunk has to be where it belongs for certain.
    finds_uncertain: bool,
}

const METHODS: [ApplyMethod; 3] = [
    ApplyMethod { option: "--3way", merges: true, may_fuzz: false, finds_uncertain: false },
    ApplyMethod { option: "-C2", merges: false, may_fuzz: true, finds_uncertain: false },
    ApplyMethod { option: "-C1", merges: false, may_fuzz: true, finds_uncertain: false },
];
const CHECK: ApplyMethod =
    ApplyMethod { option: "--check", merges: false, may_fuzz: false, finds_uncertain: true };

impl ApplyMethod {
    /// Places the hunks in the text that git applies them to: the file, or the blob that it is merged from.
    fn place(&self, repo: &ImportRepo, tree: ObjectId, diff: &[u8], how: HowToApply) -> Result<PlacedHunks> {
        let files = StoreTree::new(&repo.store, tree)?;
        let HowToApply { strip, reverse, .. } = how;
        let ApplyMethod { may_fuzz, finds_uncertain, .. } = *self;
        let reading = LooseReading { strip, reverse, may_fuzz, finds_uncertain };
        Ok(place_hunks(diff, reading, |path, blob| {
            let id = files.entry(path).ok().flatten()?.id;
            let is_base = blob.is_some_and(|blob| id.to_string().starts_with(blob));
            let base = blob.filter(|_| self.merges && !is_base).and_then(|blob| repo.store.find_short(blob));
            let base = base.and_then(|base| Some(files.blob(base).ok()?.into_owned()));
            let content = files.blob(id).ok()?.into_owned();
            Some(FileHere { content, is_base, base })
        }))
    }
}

fn indexed(repo: &ImportRepo, index: &Path) -> Run {
    repo.git().env("GIT_INDEX_FILE", index)
}

fn git_apply(
    repo: &ImportRepo,
    index: &Path,
    diff: &[u8],
    how: HowToApply,
    method: &ApplyMethod,
) -> Result<Finished> {
    let run = indexed(repo, index).args(["apply", "--cached", "--verbose", "--whitespace=nowarn"]);
    let run = run.arg(format!("-p{}", how.strip)).arg(method.option).args(how.reverse.then_some("--reverse"));
    run.arg("-").converse(diff, OUTPUT_LIMIT)
}

/// Parses git's output: the hunks that were applied elsewhere, each with its file, and the files that were merged.
/// Lines about a merge that git abandoned are left out: they refer to the blob that the diff names, not to the file.
fn placements(output: &str) -> Placed {
    let (mut file, mut begins) = (String::new(), 0);
    let mut placed = Placed::default();
    for line in output.lines() {
        if let Some(name) = line.strip_prefix("Checking patch ") {
            file = printable(name.trim_end_matches("...").as_bytes());
            begins = placed.hunks.len();
        } else if line.starts_with("Falling back to direct application") {
            placed.hunks.truncate(begins);
        } else if let Some(name) = line.strip_prefix("Applied patch to '") {
            let name = name.strip_suffix("' cleanly.").unwrap_or(name);
            placed.merged.push(printable(name.as_bytes()));
        } else if line.starts_with("Hunk #") || line.starts_with("Context reduced") {
            placed.hunks.push(format!("{file}: {}", printable(line.trim_end_matches('.').as_bytes())));
        }
    }
    placed
}

fn complaints(output: &str) -> Vec<String> {
    let in_conflict = |line: &&str| line.starts_with("Applied patch ") && line.ends_with(" with conflicts.");
    let conflicts = output.lines().filter(in_conflict).map(|line| line.trim_end_matches('.'));
    let lines = output.lines().filter_map(|line| line.strip_prefix("error: ")).chain(conflicts);
    let is_why = |line: &&str| !line.starts_with("repository lacks") && !line.starts_with("while searching");
    lines.filter(is_why).map(|line| printable(line.as_bytes())).collect()
}

/// Returns the name and address of git's configured user; `None` if one of them is missing.
pub fn user_of_git() -> Option<String> {
    let ask = |key: &str| {
        let finished = git(Path::new("/dev/null")).args(["config", "--get", key]).finish().ok()?;
        let value = espalier_series::lossy(&finished.stdout).trim().to_string();
        (finished.status.success() && !value.is_empty()).then_some(value)
    };
    Some(format!("{} <{}>", ask("user.name")?, ask("user.email")?))
}

#[cfg(test)]
mod tests {
    use super::{complaints, placements};

    #[test]
    fn messages_of_git_are_kept_with_their_file() {
        let output = "Checking patch m.c...\nApplied patch to 'm.c' cleanly.\nChecking patch d.c...\nHunk #1 succeeded at 900 \
                    (offset 800 lines).\nerror: patch failed: d.c:181\nFalling back to direct application...\n\
                    Checking patch a.c...\nHunk #2 succeeded at 14 (offset 4 lines).\nContext reduced to (1/1) to apply \
                    fragment at 3\nChecking patch b.c...\nerror: patch failed: b.c:3\nerror: repository lacks the \
                    necessary blob to perform 3-way merge.\nApplied patch a.c cleanly.\n";
        let placed = placements(output);
        assert_eq!(placed.merged, ["m.c"]);
        assert_eq!(
            placed.hunks,
            [
                "a.c: Hunk #2 succeeded at 14 (offset 4 lines)",
                "a.c: Context reduced to (1/1) to apply fragment at 3"
            ]
        );
        assert_eq!(complaints(output), ["patch failed: d.c:181", "patch failed: b.c:3"]);
    }
}
