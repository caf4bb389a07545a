//! Splits the header of a hunk into its parts.

/// `@@ -<start>[,<count>] +<start>[,<count>] @@[ <section>]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HunkHeader<'a> {
    /// The range after `-`.
    pub old: Range<'a>,
    /// The range after `+`.
    pub new: Range<'a>,
    /// Everything after the second `@@`, including the space before it.
    pub section: &'a [u8],
}

/// The range of one side as written; the parts need not be numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range<'a> {
    /// The first line.
    pub start: &'a [u8],
    /// Number of lines; one if absent.
    pub count: Option<&'a [u8]>,
}

impl<'a> HunkHeader<'a> {
    /// Splits `line`; `None` if it is not the header of a hunk.
    pub fn split(line: &'a [u8]) -> Option<HunkHeader<'a>> {
        let (old, rest) = split_once(line.strip_prefix(b"@@ -")?, b" +")?;
        let (new, section) = split_once(rest, b" @@")?;
        Some(HunkHeader { old: Range::split(old), new: Range::split(new), section })
    }
}

impl<'a> Range<'a> {
    fn split(text: &'a [u8]) -> Range<'a> {
        match split_once(text, b",") {
            Some((start, count)) => Range { start, count: Some(count) },
            None => Range { start: text, count: None },
        }
    }
}

fn split_once<'a>(text: &'a [u8], separator: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = text.windows(separator.len()).position(|window| window == separator)?;
    let (before, rest) = text.split_at_checked(at)?;
    Some((before, rest.strip_prefix(separator)?))
}

#[cfg(test)]
mod tests {
    use super::{HunkHeader, Range};

    #[test]
    fn a_header_has_two_ranges_and_a_section() {
        let header = HunkHeader::split(b"@@ -3,4 +5 @@ int f() @@ x").unwrap();
        assert_eq!(header.old, Range { start: b"3", count: Some(b"4") });
        assert_eq!(header.new, Range { start: b"5", count: None });
        assert_eq!(header.section, b" int f() @@ x");
        for other in ["@@ -1 +1", "@@ -1 @@", "@@ +1 -1 @@", "@@@ -1 +1 @@@", "-- ", ""] {
            assert_eq!(HunkHeader::split(other.as_bytes()), None, "{other}");
        }
    }
}
