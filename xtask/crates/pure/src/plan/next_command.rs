//! The next command that a report suggests, ready to paste: with every flag that it needs, and quoted for a shell.

/// Returns `cargo xtask` with `words` and those of `flags` that have a value.
pub fn next_command(words: &str, flags: &[(&str, Option<&str>)]) -> String {
    let given = flags.iter().filter_map(|(flag, value)| Some((flag, (*value)?)));
    let flags: String = given.map(|(flag, value)| format!(" {flag} {}", quoted(value))).collect();
    format!("cargo xtask {words}{flags}")
}

/// Quotes `word` so that a shell reads it as one word, whatever it contains.
pub fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/+@:=,~^%".contains(&byte);
    let is_bare = !word.is_empty() && !word.starts_with('~') && word.bytes().all(is_plain);
    if is_bare { word.to_string() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_what_was_meant() {
        let flags = [("--to", Some("v1~3")), ("--from", Some("/it's a/place")), ("--variant", None)];
        assert_eq!(next_command("rebase", &flags), r"cargo xtask rebase --to v1~3 --from '/it'\''s a/place'");
        assert_eq!(quoted("~/x;y"), "'~/x;y'");
        assert_eq!(quoted(""), "''");
    }
}
