//! Meaning of a path on systems with other rules for names.

use super::path_refusal::PathRefusal;
use super::printable::obeyed_or_hidden;

pub(super) fn check_letters(text: &str) -> Result<(), PathRefusal> {
    // Combining characters that Unicode also has in composed form: accents, Korean vowels and finals, Kana marks.
    let is_part =
        |c: char| matches!(c, '\u{300}'..='\u{36f}' | '\u{1161}'..='\u{11ff}' | '\u{3099}' | '\u{309a}');
    match text.chars().find(|c| obeyed_or_hidden(*c) || is_part(*c)) {
        None => Ok(()),
        Some(c) if is_part(c) => Err(PathRefusal::LetterInParts),
        Some(_) => Err(PathRefusal::HiddenCharacter),
    }
}

/// Windows ignores everything after the first dot of a device name, and spaces before it.
pub(super) fn is_windows_device(component: &[u8]) -> bool {
    let stem = component.split(|byte| *byte == b'.').next().unwrap_or_default();
    let stem = crate::model::utf8::lossy(stem).trim_end().to_ascii_lowercase();
    let numbered = |name: &str| {
        let rest = stem.strip_prefix(name);
        rest.is_some_and(|rest| {
            matches!(rest, "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³")
        })
    };
    matches!(stem.as_str(), "con" | "prn" | "aux" | "nul" | "conin$" | "conout$")
        || numbered("com")
        || numbered("lpt")
}

/// Returns whether some file system opens `.git` for the name `component`.
///
/// NTFS drops trailing dots and spaces and has `git~1` as the short name of `.git`; HFS+ ignores invisible characters
/// and case. (Streams, `.git::$INDEX_ALLOCATION`, are refused with every other colon, but a colon is cut off here too
/// so that this function is correct on its own.)
pub(super) fn is_git_folder(component: &[u8]) -> bool {
    let text = crate::model::utf8::lossy(component);
    let visible: String = text.chars().filter(|c| !is_ignored_by_hfs(*c)).collect();
    let name = visible.split(':').next().unwrap_or_default();
    let name = name.trim_end_matches([' ', '.']).to_lowercase();
    name == ".git" || name == "git~1"
}

fn is_ignored_by_hfs(character: char) -> bool {
    matches!(
        character,
        '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use super::is_git_folder;

    #[test]
    fn knows_the_stream_form_of_the_git_folder() {
        assert!(is_git_folder(b".git::$INDEX_ALLOCATION"));
        assert!(!is_git_folder(b".gitx"));
    }
}
