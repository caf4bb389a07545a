//! Lines that are in every file, such as `} else {`.

/// Words that lines between statements consist of.
const COMMON_WORDS: [&[u8]; 8] =
    [b"break", b"continue", b"default", b"do", b"else", b"endif", b"return", b"try"];

/// Returns whether a line has a word or a number, apart from those that lines between statements consist of.
///
/// # Examples
///
/// ```
/// use espalier_series::says_something;
///
/// assert!(says_something(b"    return value;\n"));
/// assert!(!says_something(b"    return;\n") && !says_something(b"} else {\n"));
/// ```
pub fn says_something(line: &[u8]) -> bool {
    let is_part_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    let mut words = line.split(|byte| !is_part_of_word(byte));
    words.any(|word| !word.is_empty() && !COMMON_WORDS.contains(&word))
}
