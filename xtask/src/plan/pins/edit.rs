//! Moving a pin in the text of `pins.toml`: two values change, every other byte stays.

use git2::Oid;

use super::read::RawPins;
use crate::error::{Error, Result};
use crate::plan::snippet::SourceText;

/// The text of `pins.toml` with the pin called `name` at another tag and tree.
///
/// # Errors
///
/// When the text cannot be read, or has no such pin.
pub fn move_pin(source: SourceText<'_>, name: &str, tag: &str, tree: Oid) -> Result<String> {
    let raw: RawPins = source.parse_toml()?;
    let no_pin = || Error::usage(format!("`{}` has no pin `{name}`", source.name));
    let pin = raw.pins.get(name).ok_or_else(no_pin)?;
    let mut edits = [(pin.tag.span(), tag.to_string()), (pin.tree.span(), tree.to_string())];
    // From the end, so that the first edit does not move the second place.
    edits.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
    let mut text = source.text.to_string();
    for (span, value) in edits {
        text.replace_range(span, &serde_json::Value::String(value).to_string());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_layout_stay() {
        let old = "# why\ndefault-variant = \"a\"\n[pins.other]\nupstream = 'o'\ntag='v0'\ntree = '1'\nsources = []\n\
                   [pins.llama] # this one\nupstream = \"l\"\ntree   = '1111111111111111111111111111111111111111' # tree\n\
                   tag = \"v1\" # tag\nsources = []\n[variants.a]\npin = \"llama\"\n";
        let tree = Oid::from_str(&"2".repeat(40)).unwrap();
        let new = move_pin(SourceText { name: "pins.toml", text: old }, "llama", "v2", tree).unwrap();
        let expected = old
            .replace("'1111111111111111111111111111111111111111'", &format!("\"{}\"", "2".repeat(40)))
            .replace("\"v1\"", "\"v2\"");
        assert_eq!(new, expected);
        assert!(move_pin(SourceText { name: "pins.toml", text: old }, "none", "v2", tree).is_err());
    }
}
