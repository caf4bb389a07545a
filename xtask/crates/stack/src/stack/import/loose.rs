//! Patches made elsewhere: each file read into what a commit needs, whatever its form.

use std::path::Path;

use crate::error::Result;
use crate::series::{
    DiffHeader, QuiltEntry, before_diff, has_diff, printable, read_diff_header, status_in_body,
};
use crate::sys::project::patch_files::{self, PatchFiles};
use crate::sys::work_trees::import_repo::ImportRepo;
use crate::sys::work_trees::patch_apply::{HowToApply, ReadMail, read_mails};

/// One patch that was made elsewhere.
#[derive(Clone, Debug)]
pub struct LoosePatch {
    /// Its file, and its number in it when there are more.
    pub origin: String,
    /// `Name <address>`, when it says one.
    pub author: Option<String>,
    /// When, as it says it.
    pub date: Option<String>,
    /// The commit message.
    pub message: String,
    /// `Upstream-Status:`, when its header gives one.
    pub status: Option<String>,
    /// The diff, with whatever stands around it.
    pub diff: Vec<u8>,
    /// How it is applied.
    pub how: HowToApply,
}

/// Patches in order, and the files that are none.
#[derive(Clone, Debug, Default)]
pub struct Loose {
    /// The patches.
    pub patches: Vec<LoosePatch>,
    /// What was left out, and why.
    pub others: Vec<(String, String)>,
}

/// Reads all that is at `path`. `strip` says how many parts are taken off the paths of diffs, where no
/// `series` file says it.
pub fn read(repo: &ImportRepo, path: &Path, strip: u32) -> Result<Loose> {
    let mut loose = Loose::default();
    match patch_files::find(path)? {
        PatchFiles::Files(files, others) => {
            let no_patch =
                |name: String| (printable(name.as_bytes()), "its name is not that of a patch".to_string());
            loose.others.extend(others.into_iter().map(no_patch));
            for file in files {
                let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
                let name = printable(name.as_bytes());
                let how = HowToApply { strip, reverse: false, may_fuzz: false };
                loose.read_file(repo, &name, &patch_files::read(&file)?, how)?;
            }
        }
        PatchFiles::Quilt(folder, entries) => {
            for QuiltEntry { name, strip, reverse } in entries {
                let text = patch_files::read(&folder.join(&name))?;
                loose.read_file(repo, &name, &text, HowToApply { strip, reverse, may_fuzz: true })?;
            }
        }
    }
    Ok(loose)
}

impl Loose {
    fn read_file(&mut self, repo: &ImportRepo, name: &str, text: &[u8], how: HowToApply) -> Result<()> {
        if !is_mail(text) {
            self.take(name, LoosePatch::from_diff(name, text, HowToApply { may_fuzz: true, ..how }));
            return Ok(());
        }
        let mails = read_mails(repo, text)?;
        let is_many = mails.len() > 1;
        for (number, mail) in (1..).zip(mails) {
            let origin = if is_many { format!("{name} #{number}") } else { name.to_string() };
            self.take(&origin, LoosePatch::from_mail(&origin, mail, how));
        }
        Ok(())
    }

    fn take(&mut self, origin: &str, patch: LoosePatch) {
        if has_diff(&patch.diff) {
            self.patches.push(patch);
        } else {
            self.others.push((origin.to_string(), "it has no diff, like a cover letter".to_string()));
        }
    }
}

/// Whether it begins as an mbox does, or with the headers of a mail.
fn is_mail(text: &[u8]) -> bool {
    let head = String::from_utf8_lossy(before_diff(text)).into_owned();
    if head.starts_with("From ") {
        return true;
    }
    let headers: Vec<&str> = head.lines().take_while(|line| !line.trim().is_empty()).collect();
    let has = |key: &str| headers.iter().any(|line| line.to_ascii_lowercase().starts_with(key));
    has("from:") && has("subject:") && has("date:")
}

impl LoosePatch {
    fn from_mail(origin: &str, mail: ReadMail, how: HowToApply) -> LoosePatch {
        LoosePatch {
            origin: origin.to_string(),
            status: status_in_body(&mail.body),
            message: message(Some(mail.subject), &mail.body, origin),
            author: Some(mail.author).filter(|author| !author.starts_with(" <")),
            date: Some(mail.date),
            diff: mail.diff,
            how,
        }
    }

    fn from_diff(origin: &str, text: &[u8], how: HowToApply) -> LoosePatch {
        let before = before_diff(text);
        let header = read_diff_header(&String::from_utf8_lossy(before));
        let DiffHeader { subject, body, author, date, status } = header;
        LoosePatch {
            origin: origin.to_string(),
            author,
            date,
            message: message(subject, &body, origin),
            status,
            diff: text.get(before.len()..).unwrap_or_default().to_vec(),
            how,
        }
    }
}

fn message(subject: Option<String>, body: &str, origin: &str) -> String {
    let subject = subject.filter(|subject| !subject.trim().is_empty()).unwrap_or_else(|| words_of(origin));
    format!("{subject}\n\n{body}\n")
}

/// `sub/01-fix_port.diff` says "fix port".
fn words_of(name: &str) -> String {
    let stem = Path::new(name).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let stem = stem.unwrap_or_else(|| name.to_string());
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
    }

    #[test]
    fn a_name_has_words() {
        assert_eq!(words_of("sub/01-fix_the-port.diff"), "fix the port");
        assert_eq!(words_of("007.patch"), "007");
    }
}
