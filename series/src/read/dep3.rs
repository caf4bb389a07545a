//! The text before a diff in a quilt series or a lone `.diff`: a header of DEP-3 fields
//! (<https://dep-team.pages.debian.net/deps/dep3/>), the header of `hg export`, `git show` or a dpatch, some prose, or a
//! mixture of them.

use super::hg_header::{HgHeader, date_of_field, read_hg_header};
use super::log_header::without_log_header;
use super::subject::is_useless;

/// The header, in normalised form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffHeader {
    /// The first informative line of its description.
    pub subject: Option<String>,
    /// The rest, and all fields without a field of their own here, without blank lines at either end.
    pub body: String,
    /// `Name <address>`.
    pub author: Option<String>,
    /// The date, as written in the header.
    pub date: Option<String>,
    /// The value for `Upstream-Status:`, if `Forwarded`, `Applied-Upstream`, `Origin` or `Bug` give one.
    pub status: Option<String>,
}

/// Fields that a header may have, besides those that begin with `Bug-` or end with `-by`. None of them is used as a
/// subject.
const KEYS: &[&str] = &[
    "applied-upstream",
    "author",
    "bug",
    "change-id",
    "content-transfer-encoding",
    "content-type",
    "cve",
    "date",
    "description",
    "drop-when",
    "forwarded",
    "from",
    "git-commit",
    "git-repo",
    "last-update",
    "message-id",
    "mime-version",
    "numerics",
    "origin",
    "patch-id",
    "patch-mainline",
    "patch-name",
    "patch-source",
    "subject",
    "upstream",
    "upstream-commit",
    "upstream-status",
];

/// Keys that are also names of parts of a program, as in `url: parse ports`: they are fields only if the value is a
/// link, an address, a number or an id.
const AMBIGUOUS_KEYS: &[&str] =
    &["cc", "closes", "commit", "fixes", "link", "references", "source", "to", "url"];

struct Field<'a> {
    key: &'a str,
    value: Vec<&'a str>,
}

impl Field<'_> {
    fn is(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.key.eq_ignore_ascii_case(name))
    }

    fn line(&self) -> String {
        self.value.join(" ").trim().to_owned()
    }
}

/// The parsed header: fields, and paragraphs of everything else.
#[derive(Default)]
struct Parts<'a> {
    fields: Vec<Field<'a>>,
    prose: Vec<String>,
}

/// Reads the text before the diff.
pub fn read_diff_header(text: &str) -> DiffHeader {
    let (hg, text) = read_hg_header(text);
    let text = plain_text(&without_log_header(text));
    let Parts { fields, mut prose } = take_apart(&text);
    let HgHeader { author, date } = hg.unwrap_or_default();
    let mut header = DiffHeader { status: status_of(&fields), author, date, ..DiffHeader::default() };
    let mut kept = Vec::new();
    for field in &fields {
        if field.is(&["description", "subject"]) && header.subject.is_none() {
            let (first, rest) = split_description(&field.value);
            header.subject = first;
            prose.insert(0, long_text(rest));
        } else if field.is(&["author", "from"]) && header.author.is_none() {
            header.author = Some(field.line());
        } else if field.is(&["date", "last-update"]) && header.date.is_none() {
            header.date = Some(date_of_field(field.line()));
        } else {
            kept.push(format!("{}: {}", field.key, field.line()));
        }
    }
    if header.subject.is_none() {
        header.subject = take_subject(&mut prose);
    }
    prose.push(kept.join("\n"));
    prose.retain(|paragraph| !paragraph.trim().is_empty());
    header.body = prose.join("\n\n").trim_matches('\n').to_owned();
    header
}

/// Splits a description into its first line and the rest. `Description:` may begin on the line of its key or on the
/// next one.
fn split_description<'a, 'b>(value: &'b [&'a str]) -> (Option<String>, &'b [&'a str]) {
    let first = value.iter().position(|line| !line.is_empty()).unwrap_or(value.len());
    let rest = value.get(first + 1..).unwrap_or_default();
    let subject = value.get(first).map(|line| without_prefix(line).to_owned());
    (subject.filter(|subject| !is_useless(subject)), rest)
}

/// Removes the first informative line from the prose; the lines before it stay in the body.
fn take_subject(prose: &mut [String]) -> Option<String> {
    for paragraph in prose {
        let lines: Vec<&str> = paragraph.lines().collect();
        let Some(at) = lines.iter().position(|line| !is_useless(without_prefix(line))) else { continue };
        let subject = without_prefix(lines.get(at)?).to_owned();
        let rest: Vec<&str> =
            lines.iter().enumerate().filter(|(line, _)| *line != at).map(|(_, line)| *line).collect();
        *paragraph = rest.join("\n");
        return Some(subject);
    }
    None
}

/// Returns the value for `Upstream-Status:` from the fields in the body of a mail.
pub fn status_in_body(body: &str) -> Option<String> {
    // Yocto puts it beside trailers of its own, such as `CVE:`, and sometimes below a sentence.
    let stated = body.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case("upstream-status").then(|| value.trim())
    });
    if let Some(status) = stated.filter(|status| !status.is_empty()) {
        return Some(status.to_owned());
    }
    let paragraphs = body.split("\n\n").map(|paragraph| paragraph.lines().collect::<Vec<_>>());
    // A field in a sentence of a message is prose: only paragraphs of nothing else count.
    let are_fields = |lines: &Vec<&str>| {
        !lines.is_empty()
            && lines.iter().all(|line| line.starts_with([' ', '\t']) || field_of(line).is_some())
    };
    let paragraphs: Vec<Vec<&str>> = paragraphs.filter(are_fields).collect();
    let mut parts = Parts::default();
    paragraphs.iter().for_each(|lines| read_paragraph(lines, &mut parts));
    status_of(&parts.fields)
}

/// Removes the lines that tools put on top: `#! /bin/sh`, and the comments of a dpatch, which begin with `##` and hold
/// its description and its author. Any other line that begins with `#` belongs to the text, such as `#123: fix a crash`.
fn plain_text(text: &str) -> String {
    let is_dpatch = text.lines().any(is_of_dpatch);
    let plain = |line: &str| -> Option<String> {
        let is_script = line.starts_with("#!/") || line.starts_with("#! /");
        match line.strip_prefix("## DP:") {
            Some(description) => Some(description.trim().to_owned()),
            None if is_script => None,
            None if is_dpatch && line.starts_with("##") => author_of_dpatch(line),
            None => Some(line.trim_end().to_owned()),
        }
    };
    text.lines().filter_map(plain).collect::<Vec<_>>().join("\n")
}

/// Returns the author of a dpatch, as a field: its first comment is `## NAME by AUTHOR <ADDRESS>`.
fn author_of_dpatch(line: &str) -> Option<String> {
    let (_, author) = line.split_once(" by ")?;
    let is_author = author.contains('@') && author.trim_end().ends_with('>');
    is_author.then(|| format!("Author: {}", author.trim()))
}

/// Returns whether only a dpatch has such a line.
fn is_of_dpatch(line: &str) -> bool {
    line == "@DPATCH@" || line.starts_with("## DP:") || (line.starts_with('#') && line.contains("dpatch"))
}

fn take_apart(text: &str) -> Parts<'_> {
    let lines: Vec<&str> = text.lines().collect();
    let mut parts = Parts::default();
    lines.split(|line| line.is_empty()).for_each(|paragraph| read_paragraph(paragraph, &mut parts));
    parts
}

/// Reads fields beside prose: an `Origin:` below a sentence belongs to no sentence, and never becomes a subject.
fn read_paragraph<'a>(lines: &[&'a str], parts: &mut Parts<'a>) {
    let mut prose: Vec<&str> = Vec::new();
    let mut in_field = false;
    for &line in lines {
        if in_field && line.starts_with([' ', '\t']) {
            parts.fields.last_mut().into_iter().for_each(|field| field.value.push(line.trim()));
        } else if let Some((key, value)) = field_of(line) {
            parts.fields.push(Field { key, value: vec![value] });
            in_field = true;
        } else {
            prose.push(line);
            in_field = false;
        }
    }
    if !prose.is_empty() {
        parts.prose.push(prose.join("\n"));
    }
}

/// Returns key and value if the line is a known field.
fn field_of(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let lower = key.to_ascii_lowercase();
    let is_token = lower.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_ambiguous = AMBIGUOUS_KEYS.contains(&lower.as_str());
    let is_known = KEYS.contains(&lower.as_str())
        || lower.starts_with("bug-")
        || lower.ends_with("-by")
        || (is_ambiguous && is_reference(value));
    (is_token && is_known).then(|| (key, value.trim()))
}

fn is_reference(value: &str) -> bool {
    let first = value.split_whitespace().next().unwrap_or_default();
    let is_id = first.len() >= 7 && first.bytes().all(|byte| byte.is_ascii_hexdigit());
    first.contains("://") || value.contains('@') || first.starts_with('#') || is_id
}

/// Returns the fields in the headers of a mail that a mail program would drop, as lines: `Origin:`, `Bug:`.
pub fn fields_in_mail_header(text: &str) -> Vec<String> {
    let header: Vec<&str> = text.lines().take_while(|line| !line.trim().is_empty()).collect();
    let mut parts = Parts::default();
    read_paragraph(&header, &mut parts);
    let is_for_mail = |field: &&Field<'_>| {
        let key = field.key.to_ascii_lowercase();
        key.starts_with("content-")
            || ["from", "date", "subject", "to", "cc", "mime-version", "message-id", "references"]
                .contains(&key.as_str())
    };
    let fields = parts.fields.iter().filter(|field| !is_for_mail(field));
    fields.map(|field| format!("{}: {}", field.key, field.line())).collect()
}

/// Joins lines; a line of a single dot stands for an empty one.
fn long_text(lines: &[&str]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| if *line == "." { "" } else { line }).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

fn without_prefix(subject: &str) -> &str {
    let rest = subject.strip_prefix("[PATCH").and_then(|rest| rest.split_once(']'));
    rest.map_or(subject, |(_, rest)| rest).trim()
}

fn status_of(fields: &[Field<'_>]) -> Option<String> {
    let value = |names: &[&str]| fields.iter().find(|field| field.is(names)).map(Field::line);
    if let Some(status) = value(&["upstream-status"]) {
        return Some(status);
    }
    let from_upstream = value(&["origin"]).filter(|origin| {
        let kind = origin.split([',', ' ']).next().unwrap_or_default();
        ["upstream", "backport"].contains(&kind)
    });
    let applied = [value(&["applied-upstream"]), from_upstream].into_iter().flatten();
    if let Some(commit) = applied.filter_map(|text| commit_in(&text).map(str::to_owned)).next() {
        return Some(format!("Backport {commit}"));
    }
    let bug = || value(&["bug"]).filter(|bug| is_url(bug));
    match value(&["forwarded"]) {
        Some(url) if is_url(&url) => Some(format!("Submitted {url}")),
        Some(no) if no == "no" => Some("Pending".to_owned()),
        Some(why) if why.starts_with("not-needed") => {
            Some("Inappropriate not needed upstream (DEP-3: not-needed)".to_owned())
        }
        // Forwarded, or unspecified, with a bug: it was sent to that bug.
        _ => bug().map(|url| format!("Submitted {url}")),
    }
}

fn is_url(text: &str) -> bool {
    text.starts_with("https://") && !text.contains(char::is_whitespace)
}

/// Returns the first word of 12 to 40 hexadecimal digits, also at the end of a URL.
fn commit_in(text: &str) -> Option<&str> {
    let is_commit = |word: &&str| {
        (12..=40).contains(&word.len())
            && word.bytes().all(|byte| byte.is_ascii_hexdigit())
            && word.bytes().any(|byte| byte.is_ascii_digit())
    };
    text.split(|letter: char| !letter.is_ascii_alphanumeric()).find(is_commit)
}

#[cfg(test)]
mod tests {
    use super::{read_diff_header, status_in_body};

    #[test]
    fn reads_dep_3() {
        let header = read_diff_header(
            "## 01-x.dpatch\nDescription: server: keep the port\n It is closed too early.\n .\n Twice.\n\
             Author: Jane Doe <jane@example.org>\nBug-Debian: https://bugs.example.org/7\nForwarded: no\n\
             Last-Update: 2024-05-01\n\nMore words.\n",
        );
        assert_eq!(header.subject.as_deref(), Some("server: keep the port"));
        assert_eq!(
            header.body,
            "It is closed too early.\n\nTwice.\n\nMore words.\n\nBug-Debian: https://bugs.example.org/7\nForwarded: no"
        );
        assert_eq!(header.author.as_deref(), Some("Jane Doe <jane@example.org>"));
        assert_eq!(header.date.as_deref(), Some("2024-05-01"));
        assert_eq!(header.status.as_deref(), Some("Pending"));
    }

    #[test]
    fn reads_the_header_of_a_dpatch() {
        let header = read_diff_header(
            "#! /bin/sh /usr/share/dpatch/dpatch-run\n## 01_x.dpatch by Jane Doe <jane@example.org>\n##\n## All lines \
             beginning with `## DP:' are a description of the patch.\n## DP: keep the port\n\n@DPATCH@\n",
        );
        assert_eq!(header.author.as_deref(), Some("Jane Doe <jane@example.org>"));
        assert_eq!(header.subject.as_deref(), Some("keep the port"));
        assert_eq!(read_diff_header("## DP: made by hand, see <x>\n## by hand\n").author, None);
    }

    #[test]
    fn reads_the_header_of_git_show() {
        let header = read_diff_header(
            "commit 0123456789abcdef0123456789abcdef01234567 (HEAD)\nAuthor: Jane Doe <jane@example.org>\n\
             Date:   Mon Mar 2 10:00:00 2020 +0100\n\n    keep the port\n\n    It is closed too early.\n",
        );
        assert_eq!(header.author.as_deref(), Some("Jane Doe <jane@example.org>"));
        assert_eq!(header.date.as_deref(), Some("Mon Mar 2 10:00:00 2020 +0100"));
        assert_eq!(header.subject.as_deref(), Some("keep the port"));
        assert_eq!(header.body, "It is closed too early.");
    }

    #[test]
    fn a_line_may_begin_with_a_hash() {
        let header =
            read_diff_header("#! /bin/sh\n#123: keep the port\n\n## Why\n# 2 of them\nAuthor: A <a@b>\n");
        assert_eq!(header.subject.as_deref(), Some("#123: keep the port"));
        assert_eq!(
            (header.body.as_str(), header.author.as_deref()),
            ("## Why\n# 2 of them", Some("A <a@b>"))
        );
    }

    #[test]
    fn a_few_words_are_a_subject_and_a_body() {
        let header = read_diff_header("Fix it: now\nas said\n\nSigned-off-by: A <a@b>\n");
        assert_eq!(header.subject.as_deref(), Some("Fix it: now"));
        assert_eq!(header.body, "as said\n\nSigned-off-by: A <a@b>");
        assert_eq!(read_diff_header("\n"), super::DiffHeader::default());
    }

    #[test]
    fn a_field_beside_prose_is_never_the_subject() {
        for text in [
            "Origin: upstream, see the list\nkeep the port\n",
            "keep the port\nOrigin: vendor\nBug: https://x.org/1\nReviewed-by: A <a@b>\n",
            "Origin: vendor, in a sentence that\n goes on\n\nkeep the port\n",
            "Description:\n keep the port\n",
            "Subject: [PATCH 2/3] keep the port\nMIME-Version: 1.0\nFrom: A <a@b>\n",
            "$NetBSD: patch-aa,v 1.1 $\n\nkeep the port\n",
            "https://x.org/commit/1\n=======\nkeep the port\n",
            "#! /bin/sh /usr/share/dpatch/dpatch-run\n## 01_x.dpatch by A <a@b>\n## DP: keep the port\n@DPATCH@\n",
        ] {
            let header = read_diff_header(text);
            assert_eq!(header.subject.as_deref(), Some("keep the port"), "{text}");
        }
        let header = read_diff_header("Origin: somewhere\nForwarded: no\n");
        assert_eq!((header.subject, header.body.as_str()), (None, "Origin: somewhere\nForwarded: no"));
    }

    #[test]
    fn a_part_of_a_program_is_not_a_field() {
        for subject in ["url: parse ports", "link: keep the order", "Fixes: the port", "source: close it"] {
            assert_eq!(read_diff_header(subject).subject.as_deref(), Some(subject));
        }
        let header = read_diff_header("Link: https://x.org/1\nFixes: 0123456789ab (\"x\")\nkeep the port\n");
        assert_eq!(header.subject.as_deref(), Some("keep the port"));
    }

    #[test]
    fn fields_among_the_headers_of_a_mail_are_found() {
        let text = "From: A <a@b>\nDate: x\nSubject: Origin: y\nOrigin: upstream, see\n the list\nForwarded: no\n\nBug: z\n";
        assert_eq!(super::fields_in_mail_header(text), ["Origin: upstream, see the list", "Forwarded: no"]);
    }

    #[test]
    fn reads_the_header_of_hg_export() {
        let header = read_diff_header(
            "# HG changeset patch\n# User Jane Doe <jane@example.org>\n# Date 1136214245 -3600\n\
             #      Mon Jan 02 16:04:05 2006 +0100\n# Node ID 0123456789abcdef\n# Parent  fedcba9876543210\n\
             Core: keep the port.\n\nIt is closed too early.\n",
        );
        assert_eq!(header.author.as_deref(), Some("Jane Doe <jane@example.org>"));
        assert_eq!(header.date.as_deref(), Some("2 Jan 2006 16:04:05 +0100"));
        assert_eq!(header.subject.as_deref(), Some("Core: keep the port."));
        assert_eq!(header.body, "It is closed too early.");
    }

    #[test]
    fn knows_where_a_patch_was_sent() {
        let status = |text: &str| status_in_body(&format!("words\n\n{text}\n"));
        let is = |text: &str, wanted: &str| assert_eq!(status(text).as_deref(), Some(wanted), "{text}");
        is("Forwarded: https://x.org/pull/1", "Submitted https://x.org/pull/1");
        is("Forwarded: yes\nBug: https://x.org/2", "Submitted https://x.org/2");
        is("Bug: https://x.org/2", "Submitted https://x.org/2");
        is("Forwarded: not-needed", "Inappropriate not needed upstream (DEP-3: not-needed)");
        is("Forwarded: no\nApplied-Upstream: 1.2, commit:0123456789abcdef", "Backport 0123456789abcdef");
        is("Origin: upstream, https://x.org/commit/0123456789abcdef", "Backport 0123456789abcdef");
        is("Upstream-Status: Inappropriate ours", "Inappropriate ours");
        is(
            "CVE: CVE-2026-1\nUpstream-Status: Backport [https://x.org/1]\nSigned-off-by: A",
            "Backport [https://x.org/1]",
        );
        is("as said.\nUpstream-Status: Pending", "Pending");
        assert_eq!(status("Origin: vendor, 0123456789abcdef"), None);
        assert_eq!(status("Applied-Upstream: 1.2"), None);
    }
}
