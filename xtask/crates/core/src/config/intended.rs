//! Differences that a move of a pin is meant to make: `docs/syncs/OLD-to-NEW.toml`, beside the report of the move.

use espalier_series::FindingClass;
use serde::Deserialize;
use toml::Spanned;

use super::lock::toml_string;
use super::pins::short_name;
use super::snippet::SourceText;
use crate::error::Result;

/// One difference, or several of one class, that a person has named as intended: those of one line, of a function or of
/// a whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intended {
    /// Its class.
    pub class: FindingClass,
    /// The file; for a whole patch, its file name.
    pub path: String,
    /// The head of the function; `None` for any place in the file.
    pub function: Option<String>,
    /// The line, without white space around it; `None` for any line, and for a difference that is not about one line.
    pub line: Option<String>,
    /// Number of differences. As many have to be there, so that it hides no other one.
    pub count: usize,
    /// The reason.
    pub why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    intended: Option<Vec<RawIntended>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawIntended {
    class: Spanned<FindingClass>,
    path: String,
    function: Option<String>,
    line: Option<String>,
    count: Option<Spanned<usize>>,
    why: Spanned<String>,
}

/// Returns the path of the file for the move from `old` to `new`, two pins, relative to the root.
#[must_use]
pub fn intended_file(old: &str, new: &str) -> String {
    format!("{}.toml", move_file(old, new))
}

/// Returns the path of the report of the move, relative to the root.
#[must_use]
pub fn report_file(old: &str, new: &str) -> String {
    format!("{}.md", move_file(old, new))
}

/// A `/` in a name would create folders.
fn move_file(old: &str, new: &str) -> String {
    let plain = |name: &str| short_name(name).replace('/', "-");
    format!("docs/syncs/{}-to-{}", plain(old), plain(new))
}

/// Reads the text of such a file.
///
/// # Errors
///
/// An unknown key or class, a class that needs no reason, or a missing reason, each with its line.
pub fn read_intended(source: SourceText<'_>) -> Result<Vec<Intended>> {
    let raw: RawFile = source.parse_toml()?;
    let entries = raw.intended.unwrap_or_default();
    let without_reason = entries.iter().filter(|entry| !entry.has_reason()).count();
    entries.into_iter().map(|entry| checked(source, entry, without_reason)).collect()
}

impl RawIntended {
    fn has_reason(&self) -> bool {
        !self.why.get_ref().trim().is_empty()
    }
}

/// `without_reason` is the number of entries in the file without a reason.
fn checked(source: SourceText<'_>, raw: RawIntended, without_reason: usize) -> Result<Intended> {
    let class = *raw.class.get_ref();
    if class.is_accounted_for() {
        return Err(source.error_at(raw.class.span(), "a difference of this class needs no reason"));
    }
    if !raw.has_reason() {
        let label = match without_reason {
            1 => "the reason why the difference is intended is missing".to_string(),
            _ => format!(
                "the reason why the difference is intended is missing, as in {without_reason} entries"
            ),
        };
        return Err(source.error_at(raw.why.span(), &label).hint(format!("write it into {}", source.name)));
    }
    let count = raw.count.as_ref().map_or(1, |count| *count.get_ref());
    if let Some(raw) = raw.count.filter(|_| count == 0) {
        return Err(source.error_at(raw.span(), "how often it occurs: 1 or more"));
    }
    Ok(Intended {
        class,
        path: raw.path,
        function: raw.function.map(|head| head.trim().to_string()),
        line: raw.line.map(|line| line.trim().to_string()),
        count,
        why: raw.why.into_inner(),
    })
}

/// Returns `text`, that of such a file or none, with more entries at its end.
#[must_use]
pub fn with_entries(text: &str, entries: &[Intended]) -> String {
    const TITLE: &str =
        "# Differences that this move is meant to make: `cargo xtask prove` requires a reason for each.\n";
    let begin = match text {
        "" => TITLE.to_string(),
        _ if text.ends_with('\n') => text.to_string(),
        _ => format!("{text}\n"),
    };
    entries.iter().fold(begin, |text, entry| text + "\n" + &render_entry(entry))
}

/// Renders one entry.
#[must_use]
pub fn render_entry(entry: &Intended) -> String {
    let mut text = format!("[[intended]]\nclass = \"{}\"\n", entry.class.name());
    text += &format!("path = {}\n", toml_string(&entry.path));
    if let Some(function) = &entry.function {
        text += &format!("function = {}\n", toml_string(function));
    }
    if let Some(line) = &entry.line {
        text += &format!("line = {}\n", toml_string(line));
    }
    if entry.count != 1 {
        text += &format!("count = {}\n", entry.count);
    }
    text + &format!("why = {}\n", toml_string(&entry.why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Intended>> {
        read_intended(SourceText { name: "docs/syncs/v1-to-v2.toml", text })
    }

    #[test]
    fn entries_are_read_as_they_were_written() {
        let line = Intended {
            class: FindingClass::LostOwnLine,
            path: "src/a \"b\".c".into(),
            function: None,
            line: Some("puts(\"a\\tb\");".into()),
            count: 2,
            why: "upstream has another call".into(),
        };
        let patch = Intended { class: FindingClass::LostPatch, line: None, count: 1, ..line.clone() };
        let function =
            Intended { function: Some("int f(char * \"x\") {".into()), line: None, ..line.clone() };
        let entries = vec![line, patch, function];
        let text = with_entries("", &entries[..1]);
        assert_eq!(read(&with_entries(&text, &entries[1..])).unwrap(), entries);
        assert_eq!(read(&with_entries(text.trim_end(), &entries[1..])).unwrap(), entries);
        assert!(read("").unwrap().is_empty());
        assert_eq!(intended_file("release/v1", "v2"), "docs/syncs/release-v1-to-v2.toml");
        assert_eq!(report_file("v1", "v2"), "docs/syncs/v1-to-v2.md");
        let commit = "0c1e57098bba43ac29e6e3b677cdceebdd22334f";
        assert_eq!(report_file("v0.5.0", commit), "docs/syncs/v0.5.0-to-0c1e57098bba.md");
    }

    #[test]
    fn mistakes_are_underlined() {
        let refusal = |more: &str| {
            let text = format!("[[intended]]\npath = \"a\"\n{more}\n");
            read(&text).unwrap_err().to_string()
        };
        let why = "why = \"so\"";
        assert!(refusal(&format!("class = \"lost\"\n{why}")).contains("unknown variant `lost`"));
        assert!(refusal(&format!("class = \"upstreamed\"\n{why}")).contains("needs no reason"));
        assert!(refusal("class = \"doubled\"\nwhy = \" \"").contains("the reason why"));
        let two =
            "class = \"doubled\"\nwhy = \"\"\n[[intended]]\npath = \"b\"\nclass = \"added\"\nwhy = \"\"";
        assert!(refusal(two).contains("is missing, as in 2 entries"));
        assert!(refusal(&format!("class = \"doubled\"\ncount = 0\n{why}")).contains("1 or more"));
        assert!(refusal("class = \"doubled\"").contains("missing field `why`"));
    }
}
