//! Bodies of the type multipart/form-data.

use bytes::Bytes;

/// Most parts of a form.
const MOST_PARTS: usize = 1024;

/// Most bytes of the headers of a part.
const MOST_HEADERS: usize = 8192;

/// A part of a form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormPart {
    /// Name of the field.
    pub name: Vec<u8>,
    /// Name of the file; `None` for a field without one.
    pub filename: Option<Vec<u8>>,
    /// Content type.
    pub content_type: Vec<u8>,
    /// Content.
    pub data: Bytes,
}

/// Whether a content type is that of a form.
#[must_use]
pub fn is_form(content_type: &[u8]) -> bool {
    let form = b"multipart/form-data";
    content_type.get(..form.len()).is_some_and(|start| start.eq_ignore_ascii_case(form))
}

/// Splits a body into its parts.
///
/// # Errors
///
/// The body does not have the form that its content type promises.
pub fn parts(content_type: &[u8], body: &Bytes) -> Result<Vec<FormPart>, &'static str> {
    let boundary = parameter(content_type, b"boundary").filter(|boundary| !boundary.is_empty());
    let boundary = boundary.ok_or("the content type of the form has no boundary")?;
    let delimiter = [b"\r\n--", boundary.as_slice()].concat();
    // The first one may be at the beginning, without a line before it.
    let mut at = if body.starts_with(&delimiter[2..]) {
        delimiter.len() - 2
    } else {
        find(body, &delimiter).ok_or(INCOMPLETE)? + delimiter.len()
    };
    let mut parts = Vec::new();
    loop {
        match body.get(at..at + 2) {
            Some(b"--") => return Ok(parts),
            Some(b"\r\n") if parts.len() < MOST_PARTS => {}
            Some(b"\r\n") => return Err("the form has too many parts"),
            _ => return Err(INCOMPLETE),
        }
        at += 2;
        let rest = &body[at..];
        // Without headers, the empty line is the first one.
        let length =
            if rest.starts_with(b"\r\n") { 0 } else { find(rest, b"\r\n\r\n").ok_or(INCOMPLETE)? + 2 };
        if length > MOST_HEADERS {
            return Err("the headers of a part of the form are too long");
        }
        let mut part = headers(&rest[..length])?;
        let begin = at + length + 2;
        let length = find(&body[begin - 2..], &delimiter).ok_or(INCOMPLETE)?;
        // The line end of an empty part belongs to both the headers and the delimiter.
        part.data = body.slice(begin..(begin - 2 + length).max(begin));
        at = begin - 2 + length + delimiter.len();
        parts.push(part);
    }
}

const INCOMPLETE: &str = "the form is incomplete";

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    let first = *pattern.first()?;
    let mut at = 0;
    loop {
        at += text.get(at..)?.iter().position(|byte| *byte == first)?;
        if text[at..].starts_with(pattern) {
            return Some(at);
        }
        at += 1;
    }
}

fn headers(text: &[u8]) -> Result<FormPart, &'static str> {
    let mut part = FormPart::default();
    let mut named = false;
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii();
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-type") {
            part.content_type = value.to_vec();
        } else if name.eq_ignore_ascii_case(b"content-disposition") {
            part.name = parameter(value, b"name").ok_or("a part of the form has no name")?;
            part.filename = parameter(value, b"filename").filter(|name| !name.is_empty());
            named = true;
        }
    }
    if named { Ok(part) } else { Err("a part of the form has no name") }
}

/// Returns a parameter of a header's value, `name=value` or `name="value"`.
fn parameter(value: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let mut rest = value;
    loop {
        let semicolon = rest.iter().position(|byte| *byte == b';')?;
        rest = rest[semicolon + 1..].trim_ascii_start();
        let equals = rest.iter().position(|byte| *byte == b'=' || *byte == b';')?;
        if rest[equals] == b';' {
            rest = &rest[equals..];
            continue;
        }
        let found = rest[..equals].trim_ascii().eq_ignore_ascii_case(name);
        rest = rest[equals + 1..].trim_ascii_start();
        let (value, length) = if rest.first() == Some(&b'"') { quoted(rest)? } else { token(rest) };
        if found {
            return Some(value);
        }
        rest = &rest[length..];
    }
}

fn token(text: &[u8]) -> (Vec<u8>, usize) {
    let length = text.iter().position(|byte| *byte == b';').unwrap_or(text.len());
    (text[..length].trim_ascii().to_vec(), length)
}

/// Returns a quoted string without its quotes, and its length with them.
fn quoted(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut value = Vec::new();
    let mut bytes = text.iter().enumerate().skip(1);
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => return Some((value, at + 1)),
            // Browsers do not escape backslashes in names of files: only a quote is escaped.
            b'\\' if text.get(at + 1) == Some(&b'"') => {
                bytes.next();
                value.push(b'"');
            }
            byte => value.push(*byte),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &[u8] = b"multipart/form-data; boundary=\"x y\"";

    fn read(text: &str) -> Result<Vec<FormPart>, &'static str> {
        parts(TYPE, &Bytes::from(text.to_string()))
    }

    #[test]
    fn fields_and_files_are_told_apart_by_the_file_name() {
        let parts = read(
            "--x y\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper\r\n--x y\r\n\
             content-disposition: form-data; filename=\"a \\\"b\\\" \\c;.wav\"; name=file\r\nContent-Type: audio/wav\r\n\r\n\
             \r\n--x\r\n\r\n--x y--\r\n",
        )
        .unwrap();
        let field = FormPart { name: b"model".to_vec(), data: "whisper".into(), ..FormPart::default() };
        let file = FormPart {
            name: b"file".to_vec(),
            filename: Some(b"a \"b\" \\c;.wav".to_vec()),
            content_type: b"audio/wav".to_vec(),
            data: "\r\n--x\r\n".into(),
        };
        assert_eq!(parts, [field, file]);
    }

    #[test]
    fn empty_parts_and_text_around_the_parts_are_allowed() {
        let parts = read(
            "preamble\r\n--x y\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n--x y--\r\nepilogue",
        )
        .unwrap();
        assert_eq!(parts, [FormPart { name: b"a".to_vec(), ..FormPart::default() }]);
        assert_eq!(read("--x y--").unwrap(), []);
    }

    #[test]
    fn every_prefix_of_a_form_is_incomplete() {
        let whole = "--x y\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n--x y--";
        assert!(read(whole).is_ok());
        for length in 0..whole.len() {
            assert!(read(&whole[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn malformed_forms_are_refused_with_the_reason() {
        let refused =
            |content_type: &str, body: String| parts(content_type.as_bytes(), &body.into()).unwrap_err();
        assert!(refused("multipart/form-data", "--\r\n".into()).contains("no boundary"));
        assert!(refused("multipart/form-data; boundary=", "--\r\n".into()).contains("no boundary"));
        let unnamed = "--x\r\nContent-Type: a\r\n\r\n1\r\n--x--".to_string();
        assert!(refused("multipart/form-data; boundary=x", unnamed).contains("no name"));
        let many =
            "--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n".repeat(MOST_PARTS + 1) + "--x--";
        assert!(refused("multipart/form-data; boundary=x", many).contains("too many parts"));
        let long = format!(
            "--x\r\nContent-Disposition: form-data; name={}\r\n\r\n1\r\n--x--",
            "a".repeat(MOST_HEADERS)
        );
        assert!(refused("multipart/form-data; boundary=x", long).contains("too long"));
    }

    #[test]
    fn a_form_is_recognized_whatever_the_case_of_its_type() {
        assert!(is_form(b"Multipart/Form-Data; boundary=x"));
        assert!(!is_form(b"application/json") && !is_form(b"multipart/mixed"));
    }
}
