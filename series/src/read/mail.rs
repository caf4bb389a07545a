//! The mail part of a patch file: headers, commit message, trailers, diffstat.

use super::cursor::{Cursor, RawLine};
use super::encoded_word::decode_header;
use super::parse_error::{ParseError, Refusal};
use crate::model::patch::Trailer;

/// The part before the first diff.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    pub author: String,
    pub author_line: usize,
    pub date: String,
    pub date_line: usize,
    pub subject: String,
    pub subject_line: usize,
    pub body: String,
    pub trailers: Vec<Trailer>,
}

/// Reads up to the first `diff --git`, which is not consumed.
pub(crate) fn read_mail(cursor: &mut Cursor<'_>) -> Result<Mail, ParseError> {
    check_first_line(cursor)?;
    let mut mail = Mail::default();
    while let Some(header) = read_header(cursor)? {
        keep_header(&mut mail, header)?;
    }
    check_headers(&mail, cursor.line_number())?;
    let body = read_body(cursor)?;
    mail.trailers = find_trailers(&body);
    mail.body = join_body(&body);
    skip_diffstat(cursor)?;
    Ok(mail)
}

fn check_first_line(cursor: &mut Cursor<'_>) -> Result<(), ParseError> {
    const EXPECTED: &str = "`From <commit> Mon Sep 17 00:00:00 2001`";
    let first = cursor.require(EXPECTED)?;
    if first.bytes.ends_with(b"\r") {
        let expected =
            "LF line ends: git converts them at checkout where `.gitattributes` does not say `-text`";
        return Err(first.refused(Refusal::PatchFileHasCarriageReturns, expected));
    }
    let commit = first.bytes.strip_prefix(b"From ");
    let commit = commit.and_then(|rest| rest.strip_suffix(b" Mon Sep 17 00:00:00 2001"));
    match commit {
        Some(id) if id.len() == 40 && id.iter().all(u8::is_ascii_hexdigit) => Ok(()),
        _ => Err(first.refused(Refusal::NoMailHeader, EXPECTED)),
    }
}

/// One header with its continuation lines joined.
struct Header<'a> {
    line: RawLine<'a>,
    key: String,
    value: String,
}

/// Reads the next header; `None` after the blank line that ends them.
fn read_header<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Header<'a>>, ParseError> {
    const EXPECTED: &str = "a mail header `Key: value` or the blank line after the headers";
    let line = cursor.require(EXPECTED)?;
    if line.bytes.is_empty() {
        return Ok(None);
    }
    let text = utf8(&line)?;
    let (key, first_value) = text
        .split_once(':')
        .filter(|(key, _)| is_token(key))
        .ok_or_else(|| line.refused(Refusal::BadMailHeader, EXPECTED))?;
    let mut value = first_value.trim_start().to_owned();
    while let Some(next) = cursor.peek_prefix(b" ").or_else(|| cursor.peek_prefix(b"\t")) {
        value.push(' ');
        value.push_str(utf8(&next)?.trim_start());
        cursor.take();
    }
    let key = key.to_ascii_lowercase();
    Ok(Some(Header { line, key, value }))
}

fn keep_header(mail: &mut Mail, header: Header<'_>) -> Result<(), ParseError> {
    match header.key.as_str() {
        "from" => {
            mail.author_line = header.line.number;
            set_once(&mut mail.author, decoded(&header)?, &header.line)
        }
        "date" => {
            mail.date_line = header.line.number;
            set_once(&mut mail.date, decoded(&header)?, &header.line)
        }
        "subject" => {
            mail.subject_line = header.line.number;
            let subject = without_patch_prefix(&decoded(&header)?).to_owned();
            set_once(&mut mail.subject, subject, &header.line)
        }
        "content-transfer-encoding" => check_transfer_encoding(&header),
        _ => Ok(()),
    }
}

fn set_once(slot: &mut String, value: String, line: &RawLine<'_>) -> Result<(), ParseError> {
    if !slot.is_empty() {
        return Err(line.refused(Refusal::BadMailHeader, "each header once"));
    }
    *slot = value;
    Ok(())
}

fn decoded(header: &Header<'_>) -> Result<String, ParseError> {
    let expected = "encoded words in UTF-8, such as `=?UTF-8?q?J=C3=B6rg?=`";
    let value =
        decode_header(&header.value).ok_or_else(|| header.line.refused(Refusal::BadEncodedWord, expected))?;
    if value.chars().any(char::is_control) {
        return Err(header.line.refused(Refusal::ControlCharacterInHeader, "spaces instead"));
    }
    Ok(value)
}

fn check_transfer_encoding(header: &Header<'_>) -> Result<(), ParseError> {
    match header.value.to_ascii_lowercase().as_str() {
        "7bit" | "8bit" => Ok(()),
        _ => Err(header.line.refused(Refusal::UnsupportedTransferEncoding, "`8bit`")),
    }
}

/// Removes one `[PATCH]` or `[PATCH 2/7]`; any other bracket belongs to the subject.
fn without_patch_prefix(subject: &str) -> &str {
    subject
        .strip_prefix("[PATCH")
        .and_then(|rest| rest.split_once(']'))
        .filter(|(number, _)| number.is_empty() || number.starts_with(' '))
        .map_or(subject, |(_, rest)| rest)
        .trim()
}

fn check_headers(mail: &Mail, line: usize) -> Result<(), ParseError> {
    let missing = [
        ("`From:`", mail.author.is_empty()),
        ("`Date:`", mail.date.is_empty()),
        ("`Subject:`", mail.subject.is_empty()),
    ];
    match missing.iter().find(|(_, is_missing)| *is_missing) {
        Some((name, _)) => {
            let found = format!("no {name} header");
            Err(ParseError::new(line, Refusal::BadMailHeader, found.as_bytes(), name))
        }
        None => Ok(()),
    }
}

/// Returns the lines of the message after the subject, with their numbers.
///
/// `git format-patch --no-stat` writes no `---`, so a `diff --git` ends the message too.
fn read_body<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<(usize, &'a str)>, ParseError> {
    let mut body = Vec::new();
    while let Some(line) = cursor.peek() {
        if ends_message(line.bytes) {
            break;
        }
        refuse_stray_diff(&line)?;
        body.push((line.number, utf8(&line)?));
        cursor.take();
    }
    Ok(body)
}

/// Returns whether a line of a patch, without its line end, ends the message.
pub(crate) fn ends_message(line: &[u8]) -> bool {
    line == b"---" || line.starts_with(b"diff --git ")
}

fn utf8<'a>(line: &RawLine<'a>) -> Result<&'a str, ParseError> {
    std::str::from_utf8(line.bytes).map_err(|_| line.refused(Refusal::MessageNotUtf8, "UTF-8 text"))
}

fn join_body(body: &[(usize, &str)]) -> String {
    let lines: Vec<&str> = body.iter().map(|(_, text)| text.trim_end()).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

/// Returns the trailers: the last paragraph, if every line of it is a trailer or continues one.
pub(crate) fn find_trailers(body: &[(usize, &str)]) -> Vec<Trailer> {
    let mut lines = body.iter().rev().skip_while(|(_, text)| text.trim().is_empty());
    let mut paragraph: Vec<_> = lines.by_ref().take_while(|(_, text)| !text.trim().is_empty()).collect();
    paragraph.reverse();
    let mut trailers: Vec<Trailer> = Vec::new();
    for (line, text) in paragraph {
        match (trailer_parts(text), trailers.last_mut()) {
            (Some((key, value)), _) => {
                trailers.push(Trailer { key: key.to_owned(), value: value.trim().to_owned(), line: *line })
            }
            (None, Some(last)) if text.starts_with([' ', '\t']) => {
                last.value.push(' ');
                last.value.push_str(text.trim());
            }
            _ => return Vec::new(),
        }
    }
    trailers
}

fn trailer_parts(text: &str) -> Option<(&str, &str)> {
    text.split_once(':').filter(|(key, _)| is_token(key))
}

fn is_token(key: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !key.is_empty() && key.bytes().all(allowed)
}

fn skip_diffstat(cursor: &mut Cursor<'_>) -> Result<(), ParseError> {
    while let Some(line) = cursor.peek() {
        if line.bytes.starts_with(b"diff --git ") {
            break;
        }
        refuse_stray_diff(&line)?;
        cursor.take();
    }
    Ok(())
}

/// Returns whether other tools would treat a line as part of a diff, wherever it is.
pub(crate) fn looks_like_diff(line: &[u8]) -> bool {
    let starts: [&[u8]; 4] = [b"--- ", b"+++ ", b"@@ -", b"GIT binary patch"];
    starts.iter().any(|start| line.starts_with(start))
}

/// Refuses lines that other tools would treat as a diff and apply, while this parser would skip them as prose.
fn refuse_stray_diff(line: &RawLine<'_>) -> Result<(), ParseError> {
    if looks_like_diff(line.bytes) {
        let expected = "nothing that looks like a diff before the first `diff --git`";
        return Err(line.refused(Refusal::DiffOutsideOfGitDiff, expected));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Mail, read_mail};
    use crate::read::cursor::Cursor;
    use crate::read::parse_error::{ParseError, Refusal};

    const START: &str = "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n";

    fn read(rest: &str) -> Result<Mail, ParseError> {
        let text = format!("{START}{rest}");
        read_mail(&mut Cursor::new(text.as_bytes()))
    }

    #[test]
    fn reads_a_mail() {
        let mail = read(
            "From: =?UTF-8?q?J=C3=B6rg?= <j@x>\nDate: today\nSubject: [PATCH 2/7] [core] a\n b\n\n\
             Why.\n\nUpstream-Status: Submitted\n https://x\nNumerics: identical\n---\n a | 2 +-\n\n\
             diff --git a/a b/a\n",
        )
        .unwrap();
        assert_eq!((mail.author.as_str(), mail.date.as_str()), ("Jörg <j@x>", "today"));
        assert_eq!((mail.subject.as_str(), mail.subject_line), ("[core] a b", 4));
        assert!(mail.body.starts_with("Why.\n\nUpstream-Status"), "{}", mail.body);
        let seen: Vec<_> = mail.trailers.iter().map(|t| (&*t.key, &*t.value, t.line)).collect();
        let status = ("Upstream-Status", "Submitted https://x", 9);
        assert_eq!(seen, [status, ("Numerics", "identical", 11)]);
    }

    #[test]
    fn a_paragraph_with_prose_holds_no_trailers() {
        let mail = read("From: a\nDate: b\nSubject: c\n\nprose\nKey: value\n---\n").unwrap();
        assert!(mail.trailers.is_empty());
    }

    #[test]
    fn refuses_by_name() {
        let head = "From: a\nDate: b\nSubject: c\n";
        let cases = [
            (format!("{head}Subject: d\n\n"), Refusal::BadMailHeader),
            ("From: a\nDate: b\n\n".to_owned(), Refusal::BadMailHeader),
            ("From: a\nwhat\n\n".to_owned(), Refusal::BadMailHeader),
            (head.to_owned(), Refusal::TruncatedPatch),
            (format!("{head}Content-Transfer-Encoding: base64\n\n"), Refusal::UnsupportedTransferEncoding),
            ("Subject: =?koi8-r?q?a?=\n\n".to_owned(), Refusal::BadEncodedWord),
            ("Subject: a\tb\n\n".to_owned(), Refusal::ControlCharacterInHeader),
            (format!("{head}\n--- a/x\n+++ b/x\n"), Refusal::DiffOutsideOfGitDiff),
            (format!("{head}\n---\n@@ -1 +1 @@\n"), Refusal::DiffOutsideOfGitDiff),
        ];
        for (text, refusal) in cases {
            assert_eq!(read(&text).unwrap_err().refusal, refusal, "{text}");
        }
        let crlf = read_mail(&mut Cursor::new(b"From x\r\n")).unwrap_err();
        assert_eq!(crlf.refusal, Refusal::PatchFileHasCarriageReturns);
        let bare = read_mail(&mut Cursor::new(b"diff --git a/x b/x\n")).unwrap_err();
        assert_eq!(bare.refusal, Refusal::NoMailHeader);
    }
}
