//! Moves a pin in the text of `pins.toml`: its commit and its tree change, every other byte is kept.

use std::ops::Range;

use espalier_series::ObjectId;

use super::Revision;
use super::read::RawPins;
use crate::config::snippet::SourceText;
use crate::error::{Error, Result};

/// Returns the text of `pins.toml` with the pin called `name` at another commit and tree.
///
/// # Errors
///
/// When the text cannot be read, or has no such pin.
pub fn move_pin(source: SourceText<'_>, name: &str, revision: &Revision, tree: ObjectId) -> Result<String> {
    let raw: RawPins = source.parse_toml()?;
    let no_pin = || Error::usage(format!("`{}` has no pin `{name}`", source.name));
    let pin = raw.pins.get(name).ok_or_else(no_pin)?;
    let old = pin.tag.as_ref().or(pin.commit.as_ref()).ok_or_else(no_pin)?.span();
    let mut edits = [
        (key_of(source.text, old.start), revision.key().to_string()),
        (old, quoted(&revision.to_string())),
        (pin.tree.span(), quoted(&tree.to_string())),
    ];
    // Edit from the end, so that earlier spans stay valid.
    edits.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
    let mut text = source.text.to_string();
    for (span, value) in edits {
        text.replace_range(span, &value);
    }
    Ok(text)
}

fn quoted(text: &str) -> String {
    serde_json::Value::String(text.to_string()).to_string()
}

/// Returns the span of the key of the value that begins at `value`: in TOML only blanks and one `=` separate the two.
fn key_of(text: &str, value: usize) -> Range<usize> {
    let before = text.get(..value).unwrap_or_default().trim_end();
    let before = before.strip_suffix('=').unwrap_or(before).trim_end();
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let start = match before.strip_suffix(['"', '\'']) {
        Some(open) => open.rfind(['"', '\'']),
        None => before.rfind(|c| !is_bare(c)).map(|at| at + 1),
    };
    start.unwrap_or(0)..before.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_layout_stay() {
        let old = "# why\ndefault-variant = \"a\"\n[pins.other]\nupstream = 'o'\ntag='v0'\ntree = '1'\nsources = []\n\
                   [pins.llama] # this one\nupstream = \"l\"\ntree   = '1111111111111111111111111111111111111111' # tree\n\
                   tag = \"v1\" # tag\nsources = []\n[variants.a]\npin = \"llama\"\n";
        let v2 = Revision::parse("v2").unwrap();
        let tree = "2".repeat(40).parse::<ObjectId>().unwrap();
        let new = move_pin(SourceText { name: "pins.toml", text: old }, "llama", &v2, tree).unwrap();
        let expected = old
            .replace("'1111111111111111111111111111111111111111'", &format!("\"{}\"", "2".repeat(40)))
            .replace("\"v1\"", "\"v2\"");
        assert_eq!(new, expected);
        assert!(move_pin(SourceText { name: "pins.toml", text: old }, "none", &v2, tree).is_err());
    }

    /// The key may be bare, quoted, dotted, or in one line with others.
    #[test]
    fn a_tag_becomes_a_commit_and_a_commit_a_tag() {
        let (id, tree) = ("0aceb8d1".repeat(5), "1".repeat(40));
        let rest = format!("tree = \"{tree}\"\nsources = []\n[variants.a]\npin = \"l\"\n");
        let head = "default-variant = \"a\"\n";
        let tag_is_the_word = format!("{head}[pins.l] # tag =\nupstream = \"tag\"\n");
        let forms = [
            (format!("{tag_is_the_word}tag   =  \"v1\" # a tag\n{rest}"), "tag   =  \"v1\"", "commit   =  "),
            (format!("{tag_is_the_word}\"tag\"='v1'\n{rest}"), "\"tag\"='v1'", "commit="),
            (
                format!(
                    "{head}pins.l.upstream = \"l\"\npins.l.tag = \"v1\"\npins.l.{}",
                    rest.replace("sources", "pins.l.sources")
                ),
                "tag = \"v1\"",
                "commit = ",
            ),
        ];
        for (old, tag, commit) in forms {
            let moved = |text: &str, to: &str| {
                let to = Revision::parse(to).unwrap();
                let tree = tree.parse::<ObjectId>().unwrap();
                move_pin(SourceText { name: "pins.toml", text }, "l", &to, tree).unwrap()
            };
            let by_commit = moved(&old, &id);
            assert_eq!(by_commit, old.replace(tag, &format!("{commit}\"{id}\"")));
            let back = moved(&by_commit, "v1");
            assert_eq!(
                back,
                by_commit.replace(
                    &format!("{commit}\"{id}\""),
                    &format!("{}\"v1\"", commit.replace("commit", "tag"))
                )
            );
        }
    }
}
