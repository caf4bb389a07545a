//! What stands before a diff in a quilt series or a lone `.diff`: a header of DEP-3 fields
//! (<https://dep-team.pages.debian.net/deps/dep3/>), or a few words.

/// What the header says, in our words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffHeader {
    /// The first line of its description.
    pub subject: Option<String>,
    /// The rest, and every field that has no place of its own here, without blank lines at either end.
    pub body: String,
    /// `Name <address>`.
    pub author: Option<String>,
    /// When, as the header says it.
    pub date: Option<String>,
    /// The value of `Upstream-Status:`, when `Forwarded`, `Applied-Upstream`, `Origin` or `Bug` give one.
    pub status: Option<String>,
}

/// Fields that a paragraph of a header may have, besides those that begin with `Bug-`.
const KEYS: [&str; 19] = [
    "acked-by",
    "applied-upstream",
    "author",
    "bug",
    "co-authored-by",
    "date",
    "description",
    "drop-when",
    "forwarded",
    "from",
    "last-update",
    "numerics",
    "origin",
    "reviewed-by",
    "signed-off-by",
    "subject",
    "tested-by",
    "upstream-status",
    "verified-by",
];

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

/// Reads the text before the diff.
pub fn read_diff_header(text: &str) -> DiffHeader {
    let (mut fields, mut prose) = (Vec::new(), Vec::new());
    for paragraph in paragraphs(text) {
        match read_fields(&paragraph) {
            Some(found) => fields.extend(found),
            None => prose.push(paragraph.join("\n")),
        }
    }
    let mut header = DiffHeader { status: status_of(&fields), ..DiffHeader::default() };
    let mut kept = Vec::new();
    for field in &fields {
        if field.is(&["description", "subject"]) && header.subject.is_none() {
            let (first, rest) = field.value.split_first().unwrap_or((&"", &[]));
            header.subject = Some(without_prefix(first).to_owned()).filter(|subject| !subject.is_empty());
            prose.insert(0, long_text(rest));
        } else if field.is(&["author", "from"]) && header.author.is_none() {
            header.author = Some(field.line());
        } else if field.is(&["date", "last-update"]) && header.date.is_none() {
            header.date = Some(field.line());
        } else {
            kept.push(format!("{}: {}", field.key, field.line()));
        }
    }
    if header.subject.is_none() && !prose.is_empty() {
        let first = prose.remove(0);
        let (subject, rest) = first.split_once('\n').unwrap_or((&first, ""));
        header.subject = Some(without_prefix(subject).to_owned());
        prose.insert(0, rest.to_owned());
    }
    prose.push(kept.join("\n"));
    prose.retain(|paragraph| !paragraph.trim().is_empty());
    header.body = prose.join("\n\n").trim_matches('\n').to_owned();
    header
}

/// The value of `Upstream-Status:` that the fields in the body of a mail give.
pub fn status_in_body(body: &str) -> Option<String> {
    let fields: Vec<Field<'_>> = body
        .split("\n\n")
        .filter_map(|paragraph| read_fields(&paragraph.lines().collect::<Vec<_>>()))
        .flatten()
        .collect();
    status_of(&fields)
}

/// Without the lines of `#` that some tools put on top.
fn paragraphs(text: &str) -> Vec<Vec<&str>> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.starts_with('#')).collect();
    let paragraphs = lines.split(|line| line.is_empty()).filter(|paragraph| !paragraph.is_empty());
    paragraphs.map(<[&str]>::to_vec).collect()
}

/// Nothing when a line is neither a field that we know nor continues one.
fn read_fields<'a>(paragraph: &[&'a str]) -> Option<Vec<Field<'a>>> {
    let mut fields: Vec<Field<'a>> = Vec::new();
    for line in paragraph {
        if line.starts_with([' ', '\t']) {
            fields.last_mut()?.value.push(line.trim());
            continue;
        }
        let (key, value) = line.split_once(':')?;
        let lower = key.to_ascii_lowercase();
        if !KEYS.contains(&lower.as_str()) && !lower.starts_with("bug-") {
            return None;
        }
        fields.push(Field { key, value: vec![value.trim()] });
    }
    Some(fields)
}

/// A line of one dot stands for an empty one.
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
        // Forwarded, or not said, with a bug: that is where it was sent.
        _ => bug().map(|url| format!("Submitted {url}")),
    }
}

fn is_url(text: &str) -> bool {
    text.starts_with("https://") && !text.contains(char::is_whitespace)
}

/// The first word of 12 to 40 hexadecimal digits, also at the end of a URL.
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
    fn a_few_words_are_a_subject_and_a_body() {
        let header = read_diff_header("Fix it: now\nas said\n\nSigned-off-by: A <a@b>\n");
        assert_eq!(header.subject.as_deref(), Some("Fix it: now"));
        assert_eq!(header.body, "as said\n\nSigned-off-by: A <a@b>");
        assert_eq!(read_diff_header("\n"), super::DiffHeader::default());
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
        assert_eq!(status("Origin: vendor, 0123456789abcdef"), None);
        assert_eq!(status("Applied-Upstream: 1.2"), None);
    }
}
