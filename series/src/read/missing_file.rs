//! Lines with which tools state that files differ, without their content.

/// Returns the path of a file that differs by `line` of a diff, as the tool names it; `None` for any other line.
pub(crate) fn missing_file(line: &[u8]) -> Option<Vec<u8>> {
    let line = line.trim_ascii_end();
    if let Some(rest) = line.strip_prefix(b"Only in ") {
        let (folder, name) = split_at_word(rest, b": ")?;
        return Some([folder, b"/", name].concat());
    }
    if let Some(rest) = line.strip_prefix(b"Binary file ") {
        return rest.strip_suffix(b" has changed").map(<[u8]>::to_vec);
    }
    if let Some(rest) = line.strip_prefix(b"Submodule ") {
        let (path, ids) = split_at_word(rest, b" ")?;
        return split_at_word(ids, b"..").map(|_| path.to_vec());
    }
    let pairs: [(&[u8], &[u8], &[u8]); 4] = [
        (b"Binary files ", b" and ", b" differ"),
        (b"Files ", b" and ", b" differ"),
        (b"Symbolic links ", b" and ", b" differ"),
        (b"File ", b" while file ", b""),
    ];
    pairs.iter().find_map(|(start, between, end)| {
        let both = line.strip_prefix(*start)?.strip_suffix(*end)?;
        let (old, new) = split_at_word(both, between)?;
        let new = split_at_word(new, b" is a ").map_or(new, |(name, _)| name);
        let old = split_at_word(old, b" is a ").map_or(old, |(name, _)| name);
        Some(if new == b"/dev/null" { old } else { new }.to_vec())
    })
}

/// Splits `text` at the first `word`; both parts have at least one byte.
fn split_at_word<'a>(text: &'a [u8], word: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = text.windows(word.len()).position(|window| window == word)?;
    let (before, after) = (text.get(..at)?, text.get(at + word.len()..)?);
    (!before.is_empty() && !after.is_empty()).then_some((before, after))
}

#[cfg(test)]
mod tests {
    use super::missing_file;

    #[test]
    fn each_tool_names_the_file() {
        for (line, wanted) in [
            ("Only in b/src: new.c\n", "b/src/new.c"),
            ("Binary files a/x y.bin and b/x y.bin differ\r\n", "b/x y.bin"),
            ("Binary files a/x.bin and /dev/null differ", "a/x.bin"),
            ("Files a/x and b/x differ", "b/x"),
            ("Symbolic links a/x and b/x differ", "b/x"),
            ("File a/x is a directory while file b/x is a regular file", "b/x"),
            ("Binary file x.bin has changed", "x.bin"),
            ("Submodule lib/x 1234567..89abcde:", "lib/x"),
        ] {
            assert_eq!(missing_file(line.as_bytes()), Some(wanted.as_bytes().to_vec()), "{line}");
        }
        for line in [
            "Only in tests",
            "Binary files",
            "Files differ",
            "Submodule x was added",
            " Only in b: x",
            "Common subdirectories: a/x and b/x",
        ] {
            assert_eq!(missing_file(line.as_bytes()), None, "{line}");
        }
    }
}
