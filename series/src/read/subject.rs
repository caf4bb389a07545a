//! Suitability of a line as the subject of a commit.

/// Returns whether `line` is uninformative: decoration, a link, a keyword of a version control system.
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
        || says_nothing.iter().any(|phrase| line.eq_ignore_ascii_case(phrase))
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
        ] {
            assert!(is_useless(line), "{line}");
        }
        for line in
            ["fix it", "Fix https://x.org/1 in the parser", "ö", "$HOME is read once", "patch the loader"]
        {
            assert!(!is_useless(line), "{line}");
        }
    }
}
