//! The hidden first line of an issue, which names its subject.

use crate::http::percent_encoded;

/// The subject of an issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A patch that one upstream commit broke.
    Patch {
        /// Its file.
        file: String,
        /// The commit.
        culprit: String,
    },
    /// A canary level that fails although every patch applies.
    Level {
        /// The level's name.
        level: String,
        /// The variant.
        variant: String,
    },
}

const OPEN: &str = "<!-- espalier-canary ";
const CLOSE: &str = " -->";

impl Subject {
    /// The hidden first line of its issue.
    pub fn marker(&self) -> String {
        match self {
            Subject::Patch { file, culprit } => {
                format!("{OPEN}patch={} culprit={}{CLOSE}", spell(file), spell(culprit))
            }
            Subject::Level { level, variant } => {
                format!("{OPEN}level={} variant={}{CLOSE}", spell(level), spell(variant))
            }
        }
    }

    /// Parses a whole line; `None` unless it is exactly a marker.
    pub fn read(line: &str) -> Option<Subject> {
        let inside = line.trim_end().strip_prefix(OPEN)?.strip_suffix(CLOSE)?;
        let (first, second) = inside.split_once(' ')?;
        let subject = match (first.split_once('=')?, second.split_once('=')?) {
            (("patch", file), ("culprit", culprit)) => {
                Subject::Patch { file: unspell(file)?, culprit: unspell(culprit)? }
            }
            (("level", level), ("variant", variant)) => {
                Subject::Level { level: unspell(level)?, variant: unspell(variant)? }
            }
            _ => return None,
        };
        Some(subject)
    }
}

/// Percent-encodes `text` so that nothing in it can end a marker.
fn spell(text: &str) -> String {
    percent_encoded(text, b"._-/")
}

fn unspell(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend(part.get(2..)?.bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch() -> Subject {
        Subject::Patch { file: "patches/p/0001-a b.patch".into(), culprit: "00".into() }
    }

    #[test]
    fn a_marker_reads_back_and_nothing_else_does() {
        for subject in [patch(), Subject::Level { level: "build".into(), variant: "--> %".into() }] {
            assert_eq!(Subject::read(&subject.marker()), Some(subject));
        }
        assert_eq!(patch().marker(), "<!-- espalier-canary patch=patches/p/0001-a%20b.patch culprit=00 -->");
        for bad in ["", "x <!-- espalier-canary patch=a culprit=b -->", "<!-- espalier-canary patch=a -->"] {
            assert_eq!(Subject::read(bad), None, "{bad}");
        }
        assert_eq!(Subject::read("<!-- espalier-canary patch=%+1 culprit=%zz -->"), None);
    }
}
