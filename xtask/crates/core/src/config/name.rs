//! The name of a variant, a flavor, a pin or a tool.
//!
//! A name becomes a folder below `target/espalier/` and part of branch and file names, on Linux, macOS and Windows. It
//! is therefore validated on input, and the type guarantees that it was.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Lower-case letters, digits, `-` and `_`, at most `LENGTH_LIMIT` of them: valid as a TOML key without quotes, and
/// in one case only because some file systems are case-insensitive. Dots are excluded: we use them in the names of
/// files beside a variant's own folder, such as `paged.index` or `canary.paged`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// Two names with our additions fit into the 255 bytes allowed for a file name.
const LENGTH_LIMIT: usize = 64;

/// Windows treats these as devices in every folder, alone or followed by a digit from 1 to 9.
const DEVICES: [&str; 6] = ["aux", "con", "nul", "prn", "com", "lpt"];

impl Name {
    /// Validates `text`.
    ///
    /// # Errors
    ///
    /// A sentence that states the rule which `text` breaks.
    pub fn new(text: &str) -> Result<Name, String> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
        if text.is_empty() || text.starts_with('-') || !text.bytes().all(is_plain) {
            return Err(
                "a name has lower-case letters, digits, `-` and `_` only, and does not begin with `-`".into(),
            );
        }
        if text.len() > LENGTH_LIMIT {
            return Err(format!("a name has at most {LENGTH_LIMIT} characters"));
        }
        if DEVICES.contains(&text.trim_end_matches(|digit| ('1'..='9').contains(&digit))) {
            return Err("Windows takes this name for a device".into());
        }
        Ok(Name(text.to_string()))
    }

    /// Returns the name of something that belongs to this one; its dot keeps it distinct from every variant name.
    #[must_use]
    pub fn beside(&self, what: &str) -> Name {
        Name(format!("{what}.{self}"))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Name, String> {
        Name::new(text)
    }
}

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(text: String) -> Result<Name, String> {
        Name::new(&text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.0
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Name;

    #[test]
    fn names_of_folders_on_every_system() {
        for name in
            ["paged", "stock", "cuda12", "sycl-f16", "x_1", "7b", "console", "com", "com10", &"a".repeat(64)]
        {
            let is_device = name == "com";
            assert_eq!(Name::new(name).is_ok(), !is_device, "{name}");
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let long = "a".repeat(65);
        let cases = [
            "",
            ".",
            "..",
            "/home/me",
            "../x",
            "v/x",
            "v\\x",
            "v.index",
            "v.lock",
            ".v",
            "-v",
            "c:",
            "a b",
            "a\0b",
            "a\nb",
            "a\u{1b}[2J",
            "Paged",
            "é",
            "nul",
            "com1",
            "lpt9",
            &long,
        ];
        for name in cases {
            assert!(Name::new(name).is_err(), "{name:?}");
        }
    }
}
