//! Validated strings of `ci/toolchains.toml` and `ci/flavors.toml`: arguments, digests, and paths inside a folder.

use serde::{Deserialize, Serialize};

/// A name or a version that is passed to a package manager as an argument; it can be neither an option nor a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Word(String);

impl Word {
    /// The word as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Word {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Word, &'static str> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-~:".contains(&byte);
        let begins_well = text.starts_with(|first: char| first.is_ascii_alphanumeric());
        if begins_well && text.bytes().all(is_plain) {
            Ok(Word(text))
        } else {
            Err("letters, digits, `.`, `_`, `+`, `-`, `~` and `:` only, a letter or digit first")
        }
    }
}

impl std::fmt::Display for Word {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.pad(&self.0)
    }
}

/// A sha256 in lower-case hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Sha256(String);

impl Sha256 {
    /// The 64 digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Sha256 {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Sha256, &'static str> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() == 64 && text.bytes().all(is_digit) {
            Ok(Sha256(text))
        } else {
            Err("a sha256 is 64 lower-case hexadecimal digits")
        }
    }
}

/// A path that stays inside the folder that it is joined to, written with `/`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Inside(String);

impl Inside {
    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Inside {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Inside, &'static str> {
        let is_name = |part: &str| !matches!(part, "" | "." | "..");
        if text.split('/').all(is_name) && !text.contains(['\\', ':', '\0']) {
            Ok(Inside(text))
        } else {
            Err("a path inside of its folder, without `.`, `..`, `:` and backslashes")
        }
    }
}

impl std::fmt::Display for Inside {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Inside, Sha256, Word};

    #[test]
    fn words_that_are_not_packages_are_refused() {
        for word in ["nvidia-nvvm", "1:22.1.8-1~deb12u1", "libstdc++6", "0.38.0+1.3.281"] {
            assert!(Word::try_from(word.to_string()).is_ok(), "{word}");
        }
        for word in ["", "-o", "--index-url=x", "a b", "a/b", "a;b", "a\nb", "a=b", "a@b", "é"] {
            assert!(Word::try_from(word.to_string()).is_err(), "{word}");
        }
    }

    #[test]
    fn paths_outside_the_folder_are_refused() {
        for path in ["a", "a/b.c", "usr/lib/libstdc++.so.6"] {
            assert!(Inside::try_from(path.to_string()).is_ok(), "{path}");
        }
        for path in ["", "/a", "..", "a/../b", "a/..", "./a", "a//b", "a/", "c:a", "a\\b", "a\0"] {
            assert!(Inside::try_from(path.to_string()).is_err(), "{path}");
        }
    }

    #[test]
    fn a_digest_has_64_digits() {
        for (digest, is_one) in [("ab".repeat(32), true), ("AB".repeat(32), false), ("ab".repeat(31), false)]
        {
            assert_eq!(Sha256::try_from(digest.clone()).is_ok(), is_one, "{digest}");
        }
    }
}
