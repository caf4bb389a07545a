//! Suitability of a line as the subject of a commit.

/// Returns whether `line` is uninformative: decoration, a link, a keyword of a version control system, a line of a
/// diffstat.
pub fn is_useless(line: &str) -> bool {
    let line = line.trim();
    let is_keyword = line.len() > 1 && line.starts_with('$') && line.ends_with('$');
    let is_marker = line.len() > 1 && line.starts_with('@') && line.ends_with('@') && !line.contains(' ');
    let words = || line.split_whitespace();
    let is_link = |word: &str| word.contains("://");
    let is_only_link =
        words().any(is_link) && words().filter(|word| !is_link(word)).all(|word| word == "From");
    let says_nothing = ["patch", "diff", "no subject", "(no subject)", "none", "todo", "untitled"];
    !line.contains(char::is_alphanumeric)
        || is_keyword
        || is_marker
        || is_only_link
        || is_of_diffstat(line)
        || says_nothing.iter().any(|phrase| line.eq_ignore_ascii_case(phrase))
}

/// Returns whether `line` is part of a diffstat: `src/a.c | 3 +--` or its last line, `1 file changed, ...`.
fn is_of_diffstat(line: &str) -> bool {
    fn is_number(word: &str) -> bool {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        [number, "file" | "files", "changed" | "changed,", ..] | [.., "|", number] => is_number(number),
        [.., "|", number, graph] => {
            is_number(number) && graph.bytes().all(|byte| byte == b'+' || byte == b'-')
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_useless;

    #[test]
    fn decoration_links_and_keywords_say_nothing() {
        for line in [
            "",
            " ",
            "=====",
            "----",
            "$Id$",
            "$NetBSD: a,v 1.1 $",
            "https://x.org/1",
            "From https://x.org/1",
            "@DPATCH@",
            "Patch",
            " src/a.c | 3 +--",
            " src/a.c => src/b.c | 0",
            " 1 file changed, 1 insertion(+), 2 deletions(-)",
            " 2 files changed",
        ] {
            assert!(is_useless(line), "{line}");
        }
        for line in [
            "fix it",
            "Fix https://x.org/1 in the parser",
            "ö",
            "$HOME is read once",
            "patch the loader",
            "accept a | b",
            "2 files are read at once",
        ] {
            assert!(!is_useless(line), "{line}");
        }
    }
}
