//! Patches from elsewhere: each file parsed into the data of a commit, whatever its format.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use espalier_core::error::{Error, Result};
use espalier_core::next_command::quoted;
use espalier_core::sys::machine::native_path::to_bytes;
use espalier_core::sys::project::patch_files::{self, PatchFiles};
use espalier_core::sys::work_trees::import_repo::ImportRepo;
use espalier_core::sys::work_trees::patch_apply::{MailFile, ReadMail, not_utf8, read_mails};
use espalier_series::{
    DiffHeader, NotUtf8, Tolerated, before_diff, begins_with_mail, fields_in_mail_header, has_diff,
    is_useless, lossy, printable, read_diff_header, read_hg_header, read_patch_script, status_in_body,
    tolerate, utf8,
};

/// One patch from elsewhere.
#[derive(Clone, Debug)]
pub struct LoosePatch {
    /// Its file in the folder of its queue, and its number in the file if there are several.
    pub origin: String,
    /// Path of its file.
    file: PathBuf,
    /// Author as given: `Name <address>`.
    pub author: Option<String>,
    /// Date as given.
    pub date: Option<String>,
    /// First line of the commit message.
    pub subject: String,
    /// Rest of the message.
    pub body: String,
    /// `Upstream-Status:`, if its header has one.
    pub status: Option<String>,
    /// The diff, including surrounding text.
    pub diff: Vec<u8>,
    /// Settings for applying it.
    pub options: PatchOptions,
    /// Changes made to the diff so that git accepts it.
    pub notes: Vec<String>,
    /// Words from its file name, if it is the only patch in the file.
    words: Option<String>,
}

/// Settings for applying a patch, as far as they are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchOptions {
    /// Number of leading path components to strip (`-p`), if its queue, the user or the format of its queue sets it.
    pub strip: Option<u32>,
    /// Whether it is applied in reverse.
    pub reverse: bool,
    /// Whether a hunk may be applied with less context if all of it does not fit.
    pub may_fuzz: bool,
    /// Whether a recipe applies it: it then has to change something.
    pub is_of_recipe: bool,
}

/// Patches in order, and the files that are not patches.
#[derive(Clone, Debug, Default)]
pub struct Loose {
    /// The patches.
    pub patches: Vec<LoosePatch>,
    /// Files that were left out, with the reason.
    pub others: Vec<(String, String)>,
    /// Notes for the user on the order and the files.
    pub notes: Vec<String>,
    /// Changes of the sources that no diff has, each with its file and line.
    pub changes: Vec<String>,
}

/// Reads everything at `path`. `strip` is the number of leading path components to remove where the queue or the recipe
/// does not set it. Without it the format decides, and if it defines none, the diffs do.
pub fn read(repo: &ImportRepo, path: &Path, strip: Option<u32>) -> Result<Loose> {
    let PatchFiles { patches, others, notes, changes } = patch_files::find(path)?;
    let others = others.into_iter().map(|(name, why)| (printable(name.as_bytes()), why)).collect();
    let mut loose = Loose { others, notes, changes, ..Loose::default() };
    for patch in patches {
        if patch.path.to_str().is_none() {
            let name = printable(&to_bytes(&patch.path));
            return Err(Error::usage(format!("the file name `{name}` is not UTF-8")).hint("rename the file"));
        }
        let name = printable(patch.name.as_bytes());
        let mut text = without_mark(&name, &patch.path, patch_files::read(&patch.path)?)?;
        if !text.is_empty() && !text.ends_with(b"\n") {
            // Without a final newline, git reports the diff as corrupt.
            text.push(b'\n');
            loose.notes.push(format!("{name}: its last line had no line feed, which was added"));
        }
        let options = PatchOptions {
            strip: patch.strip.or(strip).or(patch.usual_strip),
            reverse: patch.reverse,
            // A diff is for patch(1), which applies it with less context unless the queue says otherwise; a mail is for
            // git, which does not.
            may_fuzz: patch.may_fuzz.unwrap_or(!is_mail(&text)),
            is_of_recipe: patch.is_of_recipe,
        };
        loose.read_file(repo, MailFile { name: &name, path: &patch.path, text: &text }, options)?;
    }
    loose.tell_apart();
    Ok(loose)
}

/// Returns `text` without a byte order mark: the line behind one is not recognised as the first of a mail or a header.
///
/// # Errors
///
/// The text is UTF-16, as PowerShell redirects the output of `git diff`.
fn without_mark(name: &str, path: &Path, text: Vec<u8>) -> Result<Vec<u8>> {
    if text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff") {
        let file = quoted(&path.display().to_string());
        return Err(Error::usage(format!("{name} is UTF-16"))
            .hint(format!("convert it: iconv -f UTF-16 -t UTF-8 {file} >converted.patch")));
    }
    match text.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) => Ok(rest.to_vec()),
        None => Ok(text),
    }
}

impl Loose {
    /// Leaves out the patches with these names, which are those of the report.
    ///
    /// # Errors
    ///
    /// The names that no patch has.
    pub fn skip(&mut self, names: &[String]) -> Result<()> {
        let has = |patch: &LoosePatch, name: &String| patch.origin == *name;
        let is_unknown = |name: &&String| !self.patches.iter().any(|patch| has(patch, name));
        let unknown: Vec<String> = names.iter().filter(is_unknown).map(|name| quoted(name)).collect();
        if !unknown.is_empty() {
            let known: Vec<&str> = self.patches.iter().map(|patch| patch.origin.as_str()).collect();
            return Err(Error::usage(format!("`--skip` names no patch: {}", unknown.join(", ")))
                .detail(format!("the patches are:\n{}", known.join("\n")))
                .hint("write the name as this list has it"));
        }
        let patches = std::mem::take(&mut self.patches);
        let (skipped, kept): (Vec<LoosePatch>, Vec<LoosePatch>) =
            patches.into_iter().partition(|patch| names.iter().any(|name| has(patch, name)));
        self.patches = kept;
        let why = "`--skip` names it";
        self.others.extend(skipped.into_iter().map(|patch| (patch.origin, why.to_string())));
        Ok(())
    }

    fn read_file(&mut self, repo: &ImportRepo, file: MailFile<'_>, options: PatchOptions) -> Result<()> {
        let file = MailFile { text: from_first_mail(file.text), ..file };
        self.read_script(file, options)?;
        if is_script(file.text) {
            self.others.push((file.name.to_string(), SCRIPT.to_string()));
            return Ok(());
        }
        if !is_mail(file.text) {
            self.take(LoosePatch::from_diff(file, options)?);
            return Ok(());
        }
        let mails = read_mails(repo, file)?;
        if let [mail] = &mails[..] {
            let fields = header_fields(file)?;
            let mut patch = LoosePatch::from_mail(file, mail.clone(), &fields, options);
            patch.words = Some(words_of(file.name));
            self.take(patch);
            return Ok(());
        }
        for (number, mail) in (1..).zip(mails) {
            let name = format!("{} #{number}", file.name);
            self.take(LoosePatch::from_mail(MailFile { name: &name, ..file }, mail, &[], options));
        }
        Ok(())
    }

    /// Adds the changes that the script around a diff makes by itself, if there is one.
    ///
    /// # Errors
    ///
    /// It applies the diff with another strip count than the import would.
    fn read_script(&mut self, file: MailFile<'_>, options: PatchOptions) -> Result<()> {
        let script = read_patch_script(&lossy(before_diff(file.text)));
        let placed = script.changes.into_iter().map(|change| match change.line {
            Some(line) => format!("{}:{line}: {}", file.name, change.text),
            None => format!("{}: {}", file.name, change.text),
        });
        self.changes.extend(placed);
        match (script.strip, options.strip) {
            (Some(stated), Some(strip)) if stated != strip => {
                let what = format!("{} applies its diff with -p{stated}, not with -p{strip}", file.name);
                Err(Error::usage(what)
                    .hint(format!("write `-p{stated}` after its name in the order file"))
                    .hint(format!("or set it for all of them: the same command with -p {stated}")))
            }
            _ => Ok(()),
        }
    }

    fn take(&mut self, mut patch: LoosePatch) {
        if !has_diff(&patch.diff) {
            self.others.push((patch.origin, "it has no diff, like a cover letter".to_string()));
            return;
        }
        let Tolerated { diff, added } = tolerate(&patch.diff);
        patch.diff = diff;
        if added > 0 {
            // A diff that was truncated in the middle of a change must not apply by dropping trailing additions.
            patch.options.may_fuzz = false;
            let lines =
                if added == 1 { "1 blank line was".to_string() } else { format!("{added} blank lines were") };
            patch.notes.push(format!("{lines} cut off at the end of its last hunk, and added again"));
        }
        self.patches.push(patch);
    }

    /// Gives patches with the same subject the words of their file names as subject, if those differ: people know
    /// such patches by file name. A copy of an earlier patch does not count: it will be left out.
    fn tell_apart(&mut self) {
        let key = |text: &str| text.trim().to_lowercase();
        let mut subjects: HashMap<String, usize> = HashMap::new();
        let mut names: HashMap<String, usize> = HashMap::new();
        let mut seen: HashSet<(String, &[u8])> = HashSet::new();
        let mut is_copy = Vec::with_capacity(self.patches.len());
        for patch in &self.patches {
            is_copy.push(!seen.insert((key(&patch.subject), &patch.diff)));
            if is_copy.last() == Some(&true) {
                continue;
            }
            *subjects.entry(key(&patch.subject)).or_default() += 1;
            *names.entry(patch.words.as_deref().map(key).unwrap_or_default()).or_default() += 1;
        }
        let originals = self.patches.iter_mut().zip(is_copy).filter(|(_, is_copy)| !is_copy);
        for (patch, _) in originals {
            let Some(words) = patch.words.clone() else { continue };
            let is_repeated = subjects.get(&key(&patch.subject)).is_some_and(|count| *count > 1);
            let is_known_by_name =
                names.get(&key(&words)) == Some(&1) && !subjects.contains_key(&key(&words));
            if is_repeated && is_known_by_name {
                let subject = std::mem::replace(&mut patch.subject, words);
                patch.body = format!("{subject}\n\n{}", patch.body).trim_end().to_string();
            }
        }
    }
}

/// The reason for leaving out a script.
const SCRIPT: &str = "it is a script without a diff, which is not run: its changes are missing";

/// Returns whether the text is a script without a diff: dpatch runs its files, and some of them change the sources with
/// commands.
fn is_script(text: &[u8]) -> bool {
    text.starts_with(b"#!") && !has_diff(text)
}

/// Returns the fields in the header of a mail that git drops and the message keeps.
///
/// # Errors
///
/// A field is not UTF-8: git does not convert raw bytes of a header.
fn header_fields(file: MailFile<'_>) -> Result<Vec<String>> {
    let header = before_diff(file.text);
    let fields = fields_in_mail_header(&lossy(header));
    let is_kept = |line: &[u8]| {
        let line = lossy(line);
        let value = line.split_once(':').map_or(&*line, |(_, value)| value).trim();
        fields.iter().any(|field| field.contains(value))
    };
    let lines = (1..).zip(header.split(|byte| *byte == b'\n'));
    let bad = lines.into_iter().find_map(|(number, line)| {
        let bad = utf8(line).err().filter(|_| is_kept(line))?;
        Some(NotUtf8 { line: number, ..bad })
    });
    bad.map_or(Ok(fields), |bad| Err(not_utf8(file, &bad)))
}

/// Returns `text` without the notes above its first mail, if it has several mails.
fn from_first_mail(text: &[u8]) -> &[u8] {
    let mut starts =
        (0..text.len()).filter(|at| (*at == 0 || text[at - 1] == b'\n') && begins_with_mail(&text[*at..]));
    match (starts.next(), starts.next()) {
        (Some(first), Some(_)) if first < before_diff(text).len() => &text[first..],
        _ => text,
    }
}

/// Whether the text begins like an mbox, or with mail headers.
fn is_mail(text: &[u8]) -> bool {
    if begins_with_mail(text) {
        return true;
    }
    let head = lossy(before_diff(text));
    let headers: Vec<&str> = head.lines().take_while(|line| !line.trim().is_empty()).collect();
    let has = |key: &str| headers.iter().any(|line| line.to_ascii_lowercase().starts_with(key));
    has("from:") && has("subject:") && has("date:")
}

impl LoosePatch {
    fn from_mail(file: MailFile<'_>, mail: ReadMail, fields: &[String], options: PatchOptions) -> LoosePatch {
        let (hg, body) = read_hg_header(&mail.body);
        let hg = hg.unwrap_or_default();
        let body = match fields {
            [] => body,
            fields => format!("{}\n\n{}\n", body.trim_end(), fields.join("\n")),
        };
        let subject = Some(mail.subject).filter(|subject| !is_useless(subject));
        LoosePatch {
            origin: file.name.to_string(),
            file: file.path.to_path_buf(),
            status: status_in_body(&body),
            subject: subject.unwrap_or_else(|| words_of(file.name)),
            body,
            author: hg.author.or(Some(mail.author).filter(|author| !author.starts_with(" <"))),
            date: hg.date.or(Some(mail.date)),
            diff: mail.diff,
            options,
            notes: Vec::new(),
            words: None,
        }
    }

    fn from_diff(file: MailFile<'_>, options: PatchOptions) -> Result<LoosePatch> {
        let MailFile { name: origin, path, text } = file;
        let before = before_diff(text);
        let header = read_diff_header(utf8(before).map_err(|bad| not_utf8(file, &bad))?);
        let DiffHeader { subject, body, author, date, status } = header;
        Ok(LoosePatch {
            origin: origin.to_string(),
            file: path.to_path_buf(),
            author,
            date,
            subject: subject.unwrap_or_else(|| words_of(origin)),
            body,
            status,
            diff: text.get(before.len()..).unwrap_or_default().to_vec(),
            options,
            notes: Vec::new(),
            words: Some(words_of(origin)),
        })
    }

    /// Returns the path of its file, quoted for a printed command.
    pub fn quoted_file(&self) -> String {
        quoted(&self.file.display().to_string())
    }

    /// Returns the commit message.
    pub fn message(&self) -> String {
        format!("{}\n\n{}\n", self.subject, self.body)
    }
}

/// Extracts words from a file name: `sub/01-fix_port.diff` yields "fix port", and `patch-src_a.c` of a port "src
/// a.c".
fn words_of(name: &str) -> String {
    let path = Path::new(name);
    let of_port = path
        .file_name()
        .and_then(|name| name.to_str()?.strip_prefix("patch-"))
        .filter(|rest| rest.contains(['.', '_']) && !rest.ends_with(".patch") && !rest.ends_with(".diff"));
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let stem = of_port.map(str::to_string).or(stem).unwrap_or_else(|| name.to_string());
    let words = stem.replace(['-', '_'], " ");
    let words = words.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ' ');
    if words.is_empty() { stem } else { words.to_string() }
}

#[cfg(test)]
mod tests {
    use super::{is_mail, is_script, words_of};

    #[test]
    fn knows_a_mail() {
        assert!(is_mail(b"From 0123 Mon Sep 17 00:00:00 2001\nFrom: A <a@b>\n"));
        assert!(is_mail(b"Subject: x\nFrom: A <a@b>\nDate: now\n\nwords\n"));
        assert!(!is_mail(b"Description: x\nAuthor: A <a@b>\n--- a/x\n+++ b/x\n"));
        assert!(!is_mail(b"words\n\nFrom: A\nSubject: b\nDate: c\n"));
        assert!(is_mail(b"From a@b.org Mon Sep 17 00:00:00 2001\nSubject: x\n"));
        assert!(!is_mail(b"From a@b.org Mon Sep 17 00:00:00 2001\n\nwords\n"));
        assert!(!is_mail(b"From https://example.org/commit/1\n\nkeep the port\n"));
        assert!(!is_mail(b"From now on the port is kept, as said at 00:00:00 2001\n"));
    }

    #[test]
    fn knows_a_script_from_a_diff_with_commands() {
        let script = "#! /bin/sh -e\n## DP: words\nsed -i s/a/b/ x\n";
        assert!(is_script(script.as_bytes()));
        let with_diff = format!("{script}--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n");
        assert!(!is_script(with_diff.as_bytes()));
        assert!(!is_script(b"words\n"));
    }

    #[test]
    fn a_name_has_words() {
        assert_eq!(words_of("sub/01-fix_the-port.diff"), "fix the port");
        assert_eq!(words_of("007.patch"), "007");
        assert_eq!(words_of("patch-src_a.c"), "src a.c");
        assert_eq!(words_of("patch-aa"), "patch aa");
        assert_eq!(words_of("patch-src_a.c.diff"), "patch src a.c");
    }
}
