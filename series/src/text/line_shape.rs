//! The shape of a line by itself: its indentation, its first word, and whether it is a label or closes something.

/// Matches `public:`, `error:`, `case X:`, but not `class A::B` or `A::A() :`.
pub(crate) fn is_label(text: &[u8]) -> bool {
    let Some(name) = text.strip_suffix(b":") else {
        return false;
    };
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b' ' | b'$');
    name.iter().all(is_name)
}

/// Returns the letters, digits and underscores that `text` begins with.
pub(crate) fn first_word(text: &[u8]) -> &[u8] {
    let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    text.split(|byte| !is_of_word(byte)).next().unwrap_or_default()
}

/// Returns the width of the whitespace at the start of a line that is not blank; a tab counts for eight. Preprocessor
/// lines are skipped: their column means nothing.
pub(crate) fn indentation(line: &[u8]) -> Option<usize> {
    let (width, first) = leading_white_space(line);
    first.filter(|byte| !b"\r\n#".contains(byte)).map(|_| width)
}

/// Returns the width of the spaces and tabs at the start of a line, and the byte after them.
pub(crate) fn leading_white_space(line: &[u8]) -> (usize, Option<u8>) {
    let mut width = 0usize;
    for byte in line {
        match byte {
            b' ' => width += 1,
            b'\t' => width += 8,
            _ => return (width, Some(*byte)),
        }
    }
    (width, None)
}

/// Returns whether `text`, a line without the white space around it, closes a function or its list of parameters, so
/// that it is a part of the function although it is not indented more than the head.
pub(crate) fn is_closing(text: &[u8]) -> bool {
    text == b"end" || text.first().is_some_and(|byte| b")]}".contains(byte))
}
