//! Describes the first difference of two files that should be equal, to help find the cause.

use object::{Object, ObjectSection};

/// Describes the first differing section of two programs or libraries, or the first differing byte of other files.
#[must_use]
pub fn first(one: &[u8], other: &[u8]) -> String {
    section(one, other).unwrap_or_else(|| format!("from byte {} on", first_byte(one, other)))
}

fn first_byte(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// `None` when one of them is not an object file, or when all sections are equal.
fn section(one: &[u8], other: &[u8]) -> Option<String> {
    let (one, other) = (object::File::parse(one).ok()?, object::File::parse(other).ok()?);
    // Compare the build id last: it is a digest of the other sections and only repeats their differences.
    let is_id = |section: &object::Section<'_, '_>| section.name() == Ok(".note.gnu.build-id");
    let pairs = || one.sections().zip(other.sections());
    let (ids, others) = (pairs().filter(|(a, _)| is_id(a)), pairs().filter(|(a, _)| !is_id(a)));
    others.chain(ids).find_map(|(a, b)| {
        let (name, other_name) = (a.name().ok()?, b.name().ok()?);
        if name != other_name {
            return Some(format!("section `{name}` of the first is `{other_name}` in the second"));
        }
        let (a, b) = (a.data().ok()?, b.data().ok()?);
        (a != b).then(|| format!("section `{name}` from byte {} on{}", first_byte(a, b), around(a, b)))
    })
}

/// The strings at the first difference, if both are printable: a path usually explains the cause.
fn around(one: &[u8], other: &[u8]) -> String {
    let at = first_byte(one, other);
    match (text(one, at), text(other, at)) {
        (Some(one), Some(other)) => format!(": `{one}` and `{other}`"),
        _ => String::new(),
    }
}

/// The printable string that contains `at`; `None` if it has fewer than four characters, which may be chance.
fn text(data: &[u8], at: usize) -> Option<String> {
    let is_text = |byte: &&u8| byte.is_ascii_graphic() || **byte == b' ';
    let begin = at - data.get(..at)?.iter().rev().take_while(is_text).count();
    let text: Vec<u8> = data[begin..].iter().take_while(is_text).take(LONGEST).copied().collect();
    (text.len() >= 4).then(|| espalier_series::lossy(&text).into_owned())
}

const LONGEST: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_different_byte_of_other_files_is_named() {
        assert_eq!(first(b"abc", b"abd"), "from byte 2 on");
        assert_eq!(first(b"abc", b"abcd"), "from byte 3 on");
    }

    #[test]
    fn texts_are_shown_with_what_is_in_front_of_the_difference() {
        assert_eq!(around(b"\0/home/a/x.c\0", b"\0/home/b/x.c\0"), ": `/home/a/x.c` and `/home/b/x.c`");
        assert_eq!(around(&[1, 2, 3], &[1, 2, 4]), "");
    }
}
