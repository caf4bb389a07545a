//! Differences that a move of a pin is meant to make: `docs/syncs/OLD-to-NEW.toml`, beside the report of the move.

use espalier_series::{FindingClass, line_digest};
use serde::Deserialize;
use toml::Spanned;

use super::lock::toml_string;
use super::pins::short_name;
use super::snippet::SourceText;
use crate::error::{Error, Result};

/// Number of digits of the digest of a line.
const DIGITS: usize = 12;

/// Differences of one class in one file that a person has named as intended, with one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intended {
    /// Their class.
    pub class: FindingClass,
    /// The file; for a whole patch, its file name.
    pub path: String,
    /// The head of the function; `None` for any place in the file.
    pub function: Option<String>,
    /// The differences. An entry covers no others, however many there are.
    pub named: NamedDifferences,
    /// The reason.
    pub why: String,
}

/// The differences that an entry names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedDifferences {
    /// The [digests](line_digest) of lines, each with the number of times that the line differs. A line itself may be
    /// upstream's code, which is not kept here.
    Lines(Vec<(String, usize)>),
    /// Differences that are not about one line, by their description, and their number.
    Whole(String, usize),
    /// The patch that the path names, and the number of series that have lost it.
    Patch(usize),
    /// None: the entry has a number alone, as entries had before they named lines. It covers nothing.
    Number(usize),
}

impl NamedDifferences {
    /// Names lines by their digests; one that differs several times is there as often.
    pub fn lines<'l>(digests: impl IntoIterator<Item = &'l str>) -> NamedDifferences {
        let mut counted: Vec<(String, usize)> = Vec::new();
        for line in digests {
            match counted.iter_mut().find(|(known, _)| known.as_str() == line) {
                Some((_, count)) => *count += 1,
                None => counted.push((line.to_string(), 1)),
            }
        }
        NamedDifferences::Lines(counted)
    }

    /// Returns the number of differences.
    #[must_use]
    pub fn count(&self) -> usize {
        match self {
            NamedDifferences::Lines(lines) => lines.iter().map(|(_, count)| count).sum(),
            NamedDifferences::Whole(_, count)
            | NamedDifferences::Patch(count)
            | NamedDifferences::Number(count) => *count,
        }
    }
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
    line: Option<Spanned<String>>,
    lines: Option<Spanned<Vec<Spanned<String>>>>,
    what: Option<String>,
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
    Ok(Intended {
        class,
        named: named(source, &raw)?,
        path: raw.path,
        function: raw.function.map(|head| head.trim().to_string()),
        why: raw.why.into_inner(),
    })
}

/// Returns the differences that an entry names.
fn named(source: SourceText<'_>, raw: &RawIntended) -> Result<NamedDifferences> {
    let count = raw.count.as_ref().map_or(1, |count| *count.get_ref());
    if let Some(raw) = raw.count.as_ref().filter(|_| count == 0) {
        return Err(source.error_at(raw.span(), "how often it occurs: 1 or more"));
    }
    match (&raw.line, &raw.lines, &raw.what) {
        (Some(line), None, None) => {
            Ok(NamedDifferences::Lines(vec![(digest(source, line)?.to_string(), count)]))
        }
        (None, Some(lines), None) => match &raw.count {
            _ if lines.get_ref().is_empty() => Err(source.error_at(lines.span(), "the lines: 1 or more")),
            Some(count) => Err(source.error_at(count.span(), "`lines` has each line as often as it differs")),
            None => {
                let digests = lines.get_ref().iter().map(|line| digest(source, line));
                Ok(NamedDifferences::lines(digests.collect::<Result<Vec<&str>>>()?))
            }
        },
        (None, None, Some(what)) => Ok(NamedDifferences::Whole(what.trim().to_string(), count)),
        (None, None, None) if *raw.class.get_ref() == FindingClass::LostPatch => {
            Ok(NamedDifferences::Patch(count))
        }
        (None, None, None) => Ok(NamedDifferences::Number(count)),
        _ => Err(source.error_at(raw.class.span(), "an entry has one of `line`, `lines` and `what`")),
    }
}

/// Returns the digest that an entry has for a line. The text of the line is refused.
fn digest<'r>(source: SourceText<'_>, raw: &'r Spanned<String>) -> Result<&'r str> {
    let text = raw.get_ref();
    let is_digit = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
    if text.len() == DIGITS && text.bytes().all(is_digit) {
        return Ok(text);
    }
    let label = format!(
        "a line is named by its digest of {DIGITS} digits; that of the line with this text is {}",
        line_digest(text.as_bytes())
    );
    Err(source.error_at(raw.span(), &label))
}

/// Returns the text of `source`, which is such a file, with the differences of entries that have a number alone in place
/// of it. `named` has the index of each of them, in order.
///
/// # Errors
///
/// The file is not valid, or it is laid out in a way that cannot be edited automatically.
pub fn with_names(source: SourceText<'_>, named: &[(usize, NamedDifferences)]) -> Result<String> {
    let raw: RawFile = source.parse_toml()?;
    let raw = raw.intended.unwrap_or_default();
    let mut wanted = read_intended(source)?;
    let mut text = source.text.to_string();
    // From the end: the places before a change stay where they are.
    for (at, named) in named.iter().rev() {
        let (Some(raw), Some(entry)) = (raw.get(*at), wanted.get_mut(*at)) else { continue };
        entry.named = named.clone();
        let value = raw.count.as_ref().map_or_else(|| raw.class.span(), Spanned::span);
        let begin = source.text.get(..value.start).and_then(|before| before.rfind('\n'));
        let begin = begin.map_or(0, |line_feed| line_feed + 1);
        match &raw.count {
            Some(_) => text.replace_range(begin..value.end, render_named(named).trim_end()),
            None => text.insert_str(begin, &render_named(named)),
        }
    }
    match read_intended(SourceText { name: source.name, text: &text }) {
        Ok(found) if found == wanted => Ok(text),
        _ => Err(Error::usage(format!(
            "`{}` is laid out in a way that cannot be edited automatically",
            source.name
        ))
        .hint("write `count = N` on a line of its own in each entry")),
    }
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
    text += &render_named(&entry.named);
    text + &format!("why = {}\n", toml_string(&entry.why))
}

fn render_named(named: &NamedDifferences) -> String {
    let counted = |count: usize| if count == 1 { String::new() } else { format!("count = {count}\n") };
    match named {
        NamedDifferences::Lines(lines) => match &lines[..] {
            [(line, count)] => format!("line = {}\n{}", toml_string(line), counted(*count)),
            lines => render_lines(lines),
        },
        NamedDifferences::Whole(what, count) => format!("what = {}\n{}", toml_string(what), counted(*count)),
        NamedDifferences::Patch(count) | NamedDifferences::Number(count) => counted(*count),
    }
}

fn render_lines(lines: &[(String, usize)]) -> String {
    let lines = lines.iter().flat_map(|(line, count)| std::iter::repeat_n(line, *count));
    let rows: String = lines.map(|line| format!("    {},\n", toml_string(line))).collect();
    format!("lines = [\n{rows}]\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = "cd06e8a6b636";
    const BRACE: &str = "ff30235f076b";
    const BLANK: &str = "e69de29bb2d1";

    fn read(text: &str) -> Result<Vec<Intended>> {
        read_intended(SourceText { name: "docs/syncs/v1-to-v2.toml", text })
    }

    #[test]
    fn entries_are_read_as_they_were_written() {
        let line = Intended {
            class: FindingClass::LostOwnLine,
            path: "src/a \"b\".c".into(),
            function: None,
            named: NamedDifferences::Lines(vec![(line_digest(b"a();"), 2)]),
            why: "upstream has another call".into(),
        };
        let of = |named: NamedDifferences| Intended { named, ..line.clone() };
        let patch = Intended { class: FindingClass::LostPatch, ..of(NamedDifferences::Patch(1)) };
        let whole = of(NamedDifferences::Whole("the mode is 100755, and 100644 was expected".into(), 2));
        let lines = of(NamedDifferences::lines([BRACE, CALL, BLANK, BRACE]));
        let function = Intended { function: Some("int f(char * \"x\") {".into()), ..lines.clone() };
        assert_eq!(lines.named.count(), 4);
        let entries = vec![line, patch, whole, lines, function];
        let text = with_entries("", &entries[..1]);
        assert_eq!(read(&with_entries(&text, &entries[1..])).unwrap(), entries);
        assert_eq!(read(&with_entries(text.trim_end(), &entries[1..])).unwrap(), entries);
        assert!(read("").unwrap().is_empty());
        let rows = [BRACE, BRACE, CALL, BLANK].map(|digest| format!("    \"{digest}\",\n")).concat();
        let lines = format!("lines = [\n{rows}]\n");
        assert!(render_entry(&entries[3]).contains(&lines), "{}", render_entry(&entries[3]));
        assert_eq!(intended_file("release/v1", "v2"), "docs/syncs/release-v1-to-v2.toml");
        assert_eq!(report_file("v1", "v2"), "docs/syncs/v1-to-v2.md");
        let commit = "0c1e57098bba43ac29e6e3b677cdceebdd22334f";
        assert_eq!(report_file("v0.5.0", commit), "docs/syncs/v0.5.0-to-0c1e57098bba.md");
    }

    /// Text that a person has written around a number stays as it is.
    #[test]
    fn names_take_the_place_of_a_number_alone() {
        let entry =
            |more: &str| format!("[[intended]]\nclass = \"added\"\npath = \"a\"\n{more}why = \"so\"\n");
        let number = "  count = 2 # two\n";
        let brace = entry(&format!("line = \"{BRACE}\"\n"));
        let text = format!("# Ours.\n\n{}\n{brace}\n{}", entry(number), entry(""));
        let entries = read(&text).unwrap();
        assert_eq!(entries[0].named, NamedDifferences::Number(2));
        assert_eq!(entries[2].named, NamedDifferences::Number(1));
        let source = SourceText { name: "docs/syncs/v1-to-v2.toml", text: &text };
        let named = [(0, NamedDifferences::lines([CALL, BLANK])), (2, NamedDifferences::lines([BRACE]))];
        let lines = format!("lines = [\n    \"{CALL}\",\n    \"{BLANK}\",\n] # two\n");
        let last = entry("").replace("class", &format!("line = \"{BRACE}\"\nclass"));
        let wanted = format!("# Ours.\n\n{}\n{brace}\n{last}", entry(&lines));
        assert_eq!(with_names(source, &named).unwrap(), wanted);
        let inline = "intended = [{ class = \"added\", path = \"a\", count = 2, why = \"so\" }]\n";
        let source = SourceText { text: inline, ..source };
        let refused = with_names(source, &named[..1]).unwrap_err().to_string();
        assert!(refused.contains("is laid out in a way that cannot be edited automatically"), "{refused}");
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
        for (more, wanted) in [
            ("lines = []", "1 or more"),
            ("lines = [\"a\"]\ncount = 2", "`lines` has each line as often as it differs"),
            ("line = \"a\"\nlines = [\"a\"]", "one of `line`, `lines` and `what`"),
            ("line = \"a\"\nwhat = \"b\"", "one of `line`, `lines` and `what`"),
            ("line = \"  a();\"", format!("that of the line with this text is {CALL}").as_str()),
            ("lines = [\"e69de29bb2d1\", \"E69DE29BB2D1\"]", "a line is named by its digest of 12 digits"),
            ("line = \"e69de29bb2\"", "a line is named by its digest of 12 digits"),
        ] {
            let refused = refusal(&format!("class = \"doubled\"\n{more}\n{why}"));
            assert!(refused.contains(wanted), "{more}: {refused}");
        }
        assert!(refusal("class = \"doubled\"").contains("missing field `why`"));
    }
}
