//! The text of a sibling that drops its patch.

use crate::model::patch::{DROPPED_BECAUSE, Patch};

/// Returns the text of a sibling that drops `patch` in its generation: author, date and subject of the patch, and the
/// reason.
///
/// # Examples
///
/// ```
/// use espalier_series::{dropped_sibling, parse, parse_sibling};
///
/// let text = "\
/// From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
/// From: A U Thor <author@example.com>
/// Date: Thu, 1 Jan 2026 00:00:00 +0000
/// Subject: [PATCH] add an empty file
///
/// diff --git a/empty b/empty
/// new file mode 100644
/// index 0000000000000000000000000000000000000000..e69de29bb2d1d6434b8b29ae775ad8c2e48c5391
/// ";
/// let patch = parse("0001-add-an-empty-file.patch", text.as_bytes()).unwrap();
/// let dropped = dropped_sibling(&patch, "upstream has the file");
/// let sibling = parse_sibling("0001-add-an-empty-file@v2.patch", &dropped).unwrap();
/// assert_eq!(sibling.subject, patch.subject);
/// assert_eq!(sibling.dropped_because(), Some("upstream has the file"));
/// assert!(parse("0001-add-an-empty-file.patch", &dropped).is_err());
/// ```
pub fn dropped_sibling(patch: &Patch, because: &str) -> Vec<u8> {
    let Patch { author, date, subject, .. } = patch;
    let because = because.split_whitespace().collect::<Vec<_>>().join(" ");
    let id = "0".repeat(40);
    format!(
        "From {id} Mon Sep 17 00:00:00 2001\nFrom: {author}\nDate: {date}\nSubject: [PATCH] {subject}\n\n\
         {DROPPED_BECAUSE}: {because}\n---\n"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use crate::read::parse::parse_sibling;
    use crate::read::parse_error::Refusal;

    const HEAD: &str = "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\nFrom: A <a@b>\n\
                        Date: Thu, 1 Jan 2026 00:00:00 +0000\nSubject: [PATCH] s\n\n";

    /// A file that lost its diff, for example in a bad merge, must not drop the patch.
    #[test]
    fn only_a_reason_stands_for_a_diff() {
        let parse = |body: &str| parse_sibling("0001-s@b1.patch", format!("{HEAD}{body}").as_bytes());
        let dropped = parse("Dropped-because: upstream has it\n---\n").unwrap();
        assert_eq!((dropped.is_dropped(), dropped.dropped_because()), (true, Some("upstream has it")));
        for body in ["Numerics: identical\n---\n", "", "Dropped-because: x\n\nMore.\n---\n"] {
            assert_eq!(parse(body).unwrap_err().refusal, Refusal::NoDiff, "{body}");
        }
    }
}
