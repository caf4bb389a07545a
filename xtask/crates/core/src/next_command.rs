//! The next command that a report suggests, ready to paste: with every flag that it needs, and quoted for a shell.

use espalier_series::visible;

/// Returns `cargo xtask` with `words` and those of `flags` that have a value.
pub fn next_command(words: &str, flags: &[(&str, Option<&str>)]) -> String {
    let given = flags.iter().filter_map(|(flag, value)| Some((flag, (*value)?)));
    let flags: String = given.map(|(flag, value)| format!(" {}", flag_with(flag, value))).collect();
    format!("cargo xtask {words}{flags}")
}

/// Returns `flag` with its value. A value that begins with `-` would be read as another flag if it were a word of its
/// own.
pub fn flag_with(flag: &str, value: &str) -> String {
    let between = if value.starts_with('-') { '=' } else { ' ' };
    format!("{flag}{between}{}", quoted(value))
}

/// Returns the start of a git command that works in `folder`. No printed command changes the current folder: the ones
/// that follow it may have relative paths, such as that of `--root`.
pub fn git_in(folder: &str) -> String {
    format!("git -C {}", quoted(folder))
}

/// Quotes `word` so that a shell reads it as one word, whatever it contains.
pub fn quoted(word: &str) -> String {
    quoted_bytes(word.as_bytes())
}

/// Quotes a word that need not be UTF-8. Bytes that the output would not show as they are become escapes, so that the
/// printed word can be pasted.
pub fn quoted_bytes(word: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-/+@:=,~^%".contains(byte);
    let is_bare = !word.is_empty() && !word.starts_with(b"~") && word.iter().all(is_plain);
    let is_shown = |text: &str| visible(text) == text && !text.contains(['\n', '\t']);
    match std::str::from_utf8(word) {
        Ok(text) if is_bare => text.to_string(),
        Ok(text) if is_shown(text) => single_quoted(text),
        _ => format!("$'{}'", word.iter().map(escaped).collect::<String>()),
    }
}

/// Quotes `word` for any POSIX shell, where it is executed and not shown.
pub fn quoted_for_sh(word: &str) -> String {
    let quoted = quoted(word);
    if quoted.starts_with('$') { single_quoted(word) } else { quoted }
}

fn single_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Spells a byte for a word in `$'...'`.
fn escaped(byte: &u8) -> String {
    match byte {
        b'\'' | b'\\' => format!("\\{}", char::from(*byte)),
        b' '..=b'~' => char::from(*byte).to_string(),
        other => format!("\\x{other:02x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_what_was_meant() {
        let flags = [("--to", Some("v1~3")), ("--from", Some("/it's a/place")), ("--variant", None)];
        assert_eq!(next_command("rebase", &flags), r"cargo xtask rebase --to v1~3 --from '/it'\''s a/place'");
        assert_eq!(next_command("lint", &[("--root", Some("-p q"))]), "cargo xtask lint --root='-p q'");
        assert_eq!(git_in("a b/edit"), "git -C 'a b/edit'");
        assert_eq!(quoted("~/x;y"), "'~/x;y'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("a folder/ü.txt"), "'a folder/ü.txt'");
        assert_eq!(quoted("a\u{1b}'"), r"$'a\x1b\''");
        assert_eq!(quoted_bytes(b"a b'\t\xc3"), r"$'a b\'\x09\xc3'");
    }
}
