//! Truncation of text: a page must stay small however large a patch is.

use super::status::HunkText;

/// Size limit in bytes of each of `parts` equal parts of a page, when all of them together may take `whole`.
pub(super) fn share(whole: usize, parts: usize) -> usize {
    // A smaller part would show nothing useful: prefer a larger page.
    (whole / parts.max(1)).max(1_000)
}

/// Returns the first lines of `text` that fit into `limit` bytes, and the number of omitted lines.
pub(super) fn first_lines(text: &str, limit: usize) -> (&str, usize) {
    if text.len() <= limit {
        return (text, 0);
    }
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        if end + line.len() > limit {
            break;
        }
        end += line.len();
    }
    let (shown, left) = text.split_at(end);
    (shown, left.lines().count())
}

/// Returns the first hunks, the last of them possibly truncated, that fit into `limit` bytes, and the number of omitted
/// lines.
pub(super) fn first_hunks(hunks: &[HunkText], mut limit: usize) -> (Vec<HunkText>, usize) {
    let mut shown = Vec::new();
    let mut left = 0;
    for hunk in hunks {
        let mut kept = 0;
        while let Some(line) = hunk.lines.get(kept).filter(|line| line.len() < limit) {
            limit -= line.len() + 1;
            kept += 1;
        }
        left += hunk.lines.len() - kept;
        if kept < hunk.lines.len() {
            limit = 0;
        }
        if kept > 0 || hunk.lines.is_empty() {
            let lines = hunk.lines.iter().take(kept).cloned().collect();
            shown.push(HunkText { path: hunk.path.clone(), header: hunk.header.clone(), lines });
        }
    }
    (shown, left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunk(lines: usize) -> HunkText {
        let lines = (0..lines).map(|_| "+23456789".to_string()).collect();
        HunkText { path: "a".into(), header: "@@".into(), lines }
    }

    #[test]
    fn what_is_shown_and_what_is_left_out_is_all_of_it() {
        assert_eq!(first_lines("one\ntwo\n", 8), ("one\ntwo\n", 0));
        assert_eq!(first_lines("one\ntwo\nthree", 9), ("one\ntwo\n", 1));
        assert_eq!(first_lines("longer than that\nx", 4), ("", 2));
        let hunks = [hunk(3), hunk(5), hunk(1)];
        for limit in 0..120 {
            let (shown, left) = first_hunks(&hunks, limit);
            let lines: usize = shown.iter().map(|hunk| hunk.lines.len()).sum();
            assert_eq!(lines + left, 9, "{limit}");
            assert!(lines * 10 <= limit, "{limit}");
            assert!(shown.iter().all(|hunk| !hunk.lines.is_empty()));
        }
        assert_eq!(first_hunks(&hunks, 90).1, 0);
    }
}
