//! How much one text is like another.

use std::collections::HashMap;

use super::line_diff::lines_of;

/// Less than this share of equal lines, and a file is another one.
pub const SIMILAR_PERCENT: u8 = 50;

/// Of 100 lines of the longer text, how many are in the other one too. Blank ones and lone brackets are
/// in every file and do not count.
pub fn percent_of_lines(left: &[u8], right: &[u8]) -> u8 {
    let says_something = |line: &&&[u8]| line.iter().any(u8::is_ascii_alphanumeric);
    let (left, right) = (lines_of(left), lines_of(right));
    let mut counts: HashMap<&[u8], usize> = HashMap::new();
    left.iter().filter(says_something).for_each(|line| *counts.entry(line).or_default() += 1);
    let all: usize = counts.values().sum();
    let (mut others, mut common) = (0, 0);
    for line in right.iter().filter(says_something) {
        others += 1;
        if let Some(count) = counts.get_mut(line).filter(|count| **count > 0) {
            *count -= 1;
            common += 1;
        }
    }
    u8::try_from(common * 100 / all.max(others).max(1)).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::percent_of_lines;

    #[test]
    fn similarity_is_a_share_of_the_longer_text() {
        assert_eq!(percent_of_lines(b"a\nb\n{\n", b"a\nb\n{\n}\n"), 100);
        assert_eq!(percent_of_lines(b"a\nb\n", b"a\nb\nc\nd\n"), 50);
        assert_eq!(percent_of_lines(b"a\na\n", b"a\nb\n"), 50);
        assert_eq!(percent_of_lines(b"", b""), 0);
    }
}
