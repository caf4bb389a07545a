//! Patches from elsewhere: each file parsed into the data of a commit, whatever its format.

use std::path::Path;

use std::collections::{HashMap, HashSet};

use crate::error::{Error, Result};
use crate::series::{
    DiffHeader, NotUtf8, Tolerated, before_diff, fields_in_mail_header, has_diff, has_no_prefixes,
    has_prefixes, is_useless, lossy, printable, read_diff_header, read_hg_header, status_in_body, tolerate,
    utf8,
};
use crate::sys::machine::native_path::to_bytes;
use crate::sys::project::patch_files::{self, PatchFiles};
use crate::sys::work_trees::import_repo::ImportRepo;
use crate::sys::work_trees::patch_apply::{HowToApply, MailFile, ReadMail, not_utf8, read_mails};

/// One patch from elsewhere.
#[derive(Clone, Debug)]
pub struct LoosePatch {
    /// Its file, and its number in the file if there are several.
    pub origin: String,
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
    /// Settings for applying it. The strip count is the likely one.
    pub how: HowToApply,
    /// Other strip counts to try; empty if its queue sets the count.
    pub other_strips: Vec<u32>,
    /// Changes made to the diff so that git accepts it.
    pub notes: Vec<String>,
    /// Words from its file name, if it is the only patch in the file.
    words: Option<String>,
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
}

/// Reads everything at `path`. `strip` is the number of leading path components to remove where the queue does not
/// set it.
pub fn read(repo: &ImportRepo, path: &Path, strip: u32) -> Result<Loose> {
    let PatchFiles { patches, others, notes } = patch_files::find(path)?;
    let others = others.into_iter().map(|(name, why)| (printable(name.as_bytes()), why)).collect();
    let mut loose = Loose { others, notes, ..Loose::default() };
    for patch in patches {
        if patch.path.to_str().is_none() {
            let name = printable(&to_bytes(&patch.path));
            return Err(Error::usage(format!("the file name `{name}` is not UTF-8")).hint("rename the file"));
        }
        let name = printable(patch.name.as_bytes());
        let mut text = patch_files::read(&patch.path)?;
        if !text.is_empty() && !text.ends_with(b"\n") {
            // Without a final newline, git reports the diff as corrupt.
            text.push(b'\n');
            loose.notes.push(format!("{name}: its last line had no line feed, which was added"));
        }
        let how = HowToApply {
            strip: patch.strip.unwrap_or(strip),
            reverse: patch.reverse,
            // A diff is for patch(1), which applies it with less context unless the queue says otherwise; a mail is for
            // git, which does not.
            may_fuzz: patch.may_fuzz.unwrap_or(!is_mail(&text)),
        };
        loose.read_file(repo, &name, &text, (how, patch.strip.is_some()))?;
    }
    loose.tell_apart();
    Ok(loose)
}

impl Loose {
    fn read_file(
        &mut self,
        repo: &ImportRepo,
        name: &str,
        text: &[u8],
        (how, is_strip_said): (HowToApply, bool),
    ) -> Result<()> {
        let strips =
            if is_strip_said { vec![how.strip] } else { strips(how.strip, text, name.starts_with("patch-")) };
        if !is_mail(text) {
            self.take(LoosePatch::from_diff(MailFile { name, text }, how)?, &strips);
            return Ok(());
        }
        let file = MailFile { name, text };
        let mails = read_mails(repo, file)?;
        if let [mail] = &mails[..] {
            let fields = header_fields(file)?;
            self.take(LoosePatch::from_mail(name, Some(name), mail.clone(), &fields, how), &strips);
            return Ok(());
        }
        for (number, mail) in (1..).zip(mails) {
            self.take(LoosePatch::from_mail(&format!("{name} #{number}"), None, mail, &[], how), &strips);
        }
        Ok(())
    }

    fn take(&mut self, mut patch: LoosePatch, strips: &[u32]) {
        if !has_diff(&patch.diff) {
            self.others.push((patch.origin, "it has no diff, like a cover letter".to_string()));
            return;
        }
        let Tolerated { diff, added } = tolerate(&patch.diff);
        patch.diff = diff;
        if added > 0 {
            // A diff that was truncated in the middle of a change must not apply by dropping trailing additions.
            patch.how.may_fuzz = false;
            let lines =
                if added == 1 { "1 blank line was".to_string() } else { format!("{added} blank lines were") };
            patch.notes.push(format!("{lines} cut off at the end of its last hunk, and added again"));
        }
        if let Some((first, others)) = strips.split_first() {
            patch.how.strip = *first;
            patch.other_strips = others.to_vec();
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
                let said = std::mem::replace(&mut patch.subject, words);
                patch.body = format!("{said}\n\n{}", patch.body).trim_end().to_string();
            }
        }
    }
}

/// Returns strip counts for `text`, likeliest first. 0 comes first for a diff in which git names both sides alike,
/// without prefixes: otherwise a new file would silently end up in a wrong place. Patches of the BSD and macOS ports,
/// named `patch-FILE`, strip nothing either.
fn strips(strip: u32, text: &[u8], is_of_ports: bool) -> Vec<u32> {
    let first =
        if strip == 1 && (has_no_prefixes(text) || (is_of_ports && !has_prefixes(text))) { 0 } else { strip };
    let others = [1, 0, 2].into_iter().filter(|other| *other != first);
    std::iter::once(first).chain(others).collect()
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

/// Whether the text begins like an mbox, or with mail headers.
fn is_mail(text: &[u8]) -> bool {
    let head = lossy(before_diff(text));
    if head.lines().next().is_some_and(begins_mail) {
        return true;
    }
    let headers: Vec<&str> = head.lines().take_while(|line| !line.trim().is_empty()).collect();
    let has = |key: &str| headers.iter().any(|line| line.to_ascii_lowercase().starts_with(key));
    has("from:") && has("subject:") && has("date:")
}

/// Whether a line begins a mail in an mbox, as git recognizes it: `From SENDER Mon Sep 17 00:00:00 2001`. A text may
/// begin with `From https://example.org`.
fn begins_mail(line: &str) -> bool {
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["From", _, day, _, number, time, year, ..] = words[..] else { return false };
    let is_time = time.contains(':') && time.split(':').all(|part| part.parse::<u8>().is_ok());
    let is_date = number.parse::<u8>().is_ok() && is_time && year.parse::<u16>().is_ok();
    DAYS.contains(&day) && is_date
}

impl LoosePatch {
    fn from_mail(
        origin: &str,
        file: Option<&str>,
        mail: ReadMail,
        fields: &[String],
        how: HowToApply,
    ) -> LoosePatch {
        let (hg, body) = read_hg_header(&mail.body);
        let hg = hg.unwrap_or_default();
        let body = match fields {
            [] => body,
            fields => format!("{}\n\n{}\n", body.trim_end(), fields.join("\n")),
        };
        let subject = Some(mail.subject).filter(|subject| !is_useless(subject));
        LoosePatch {
            origin: origin.to_string(),
            status: status_in_body(&body),
            subject: subject.unwrap_or_else(|| words_of(origin)),
            body,
            author: hg.author.or(Some(mail.author).filter(|author| !author.starts_with(" <"))),
            date: hg.date.or(Some(mail.date)),
            diff: mail.diff,
            how,
            other_strips: Vec::new(),
            notes: Vec::new(),
            words: file.map(words_of),
        }
    }

    fn from_diff(file: MailFile<'_>, how: HowToApply) -> Result<LoosePatch> {
        let MailFile { name: origin, text } = file;
        let before = before_diff(text);
        let header = read_diff_header(utf8(before).map_err(|bad| not_utf8(file, &bad))?);
        let DiffHeader { subject, body, author, date, status } = header;
        Ok(LoosePatch {
            origin: origin.to_string(),
            author,
            date,
            subject: subject.unwrap_or_else(|| words_of(origin)),
            body,
            status,
            diff: text.get(before.len()..).unwrap_or_default().to_vec(),
            how,
            other_strips: Vec::new(),
            notes: Vec::new(),
            words: Some(words_of(origin)),
        })
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
    use super::{is_mail, words_of};

    #[test]
    fn knows_a_mail() {
        assert!(is_mail(b"From 0123 Mon Sep 17 00:00:00 2001\nFrom: A <a@b>\n"));
        assert!(is_mail(b"Subject: x\nFrom: A <a@b>\nDate: now\n\nwords\n"));
        assert!(!is_mail(b"Description: x\nAuthor: A <a@b>\n--- a/x\n+++ b/x\n"));
        assert!(!is_mail(b"words\n\nFrom: A\nSubject: b\nDate: c\n"));
        assert!(is_mail(b"From a@b.org Mon Sep 17 00:00:00 2001\n"));
        assert!(!is_mail(b"From https://example.org/commit/1\n\nkeep the port\n"));
        assert!(!is_mail(b"From now on the port is kept, as said at 00:00:00 2001\n"));
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
