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
/// lines. `frame` is the size of a hunk without its lines, `line` that of one line.
pub(super) fn first_hunks(
    hunks: &[HunkText],
    mut limit: usize,
    frame: impl Fn(&HunkText) -> usize,
    line: impl Fn(&str) -> usize,
) -> (Vec<HunkText>, usize) {
    let mut shown = Vec::new();
    let mut left = 0;
    for hunk in hunks {
        let mut rest = limit.checked_sub(frame(hunk));
        let mut kept = 0;
        while let (Some(free), Some(text)) = (rest, hunk.lines.get(kept)) {
            rest = free.checked_sub(line(text));
            kept += usize::from(rest.is_some());
        }
        // A change without hunks has a header alone.
        left += if hunk.lines.is_empty() && rest.is_none() { 1 } else { hunk.lines.len() - kept };
        if kept > 0 || rest.is_some() {
            let lines = hunk.lines.iter().take(kept).cloned().collect();
            shown.push(HunkText { path: hunk.path.clone(), header: hunk.header.clone(), lines });
        }
        limit = rest.unwrap_or(0);
    }
    (shown, left)
}

/// Returns the size limit in bytes of each part of a page that needs so much, when all of them together may take
/// `whole`: what a small part does not need is left to the others.
pub(super) fn fair_limit(mut needs: Vec<usize>, mut whole: usize) -> usize {
    needs.sort_unstable();
    let parts = needs.len();
    for (at, need) in needs.into_iter().enumerate() {
        let limit = whole / (parts - at);
        if need > limit {
            return limit;
        }
        whole -= need;
    }
    usize::MAX
}

/// Returns the last of `parts` that fit into `limit` bytes, in order.
pub(super) fn last_parts(parts: Vec<String>, mut limit: usize) -> Vec<String> {
    let mut shown = Vec::new();
    for part in parts.into_iter().rev() {
        let Some(rest) = limit.checked_sub(part.len()) else { break };
        limit = rest;
        shown.push(part);
    }
    shown.reverse();
    shown
}

/// Returns `text` with at most `limit` letters; the last one is an ellipsis if some are omitted.
pub(super) fn first_letters(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_string();
    }
    let kept: String = text.chars().take(limit.saturating_sub(1)).collect();
    format!("{}\u{2026}", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunk(lines: usize) -> HunkText {
        let lines = (0..lines).map(|_| "+23456789".to_string()).collect();
        HunkText { path: "a".into(), header: "@@".into(), lines }
    }

    #[test]
    fn shown_and_omitted_lines_are_all_lines() {
        assert_eq!(first_lines("one\ntwo\n", 8), ("one\ntwo\n", 0));
        assert_eq!(first_lines("one\ntwo\nthree", 9), ("one\ntwo\n", 1));
        assert_eq!(first_lines("longer than that\nx", 4), ("", 2));
        let hunks = [hunk(3), hunk(5), hunk(1)];
        let cut = |limit: usize| first_hunks(&hunks, limit, |_| 7, |line| line.len() + 1);
        for limit in 0..150 {
            let (shown, left) = cut(limit);
            let lines: usize = shown.iter().map(|hunk| hunk.lines.len()).sum();
            assert_eq!(lines + left, 9, "{limit}");
            assert!(lines * 10 + shown.len() * 7 <= limit, "{limit}");
        }
        assert_eq!((cut(110).1, cut(111).1), (1, 0));
        let renamed = [hunk(0), hunk(0)];
        let cut = |limit: usize| first_hunks(&renamed, limit, |_| 7, str::len);
        assert_eq!([6, 7, 14].map(|limit| (cut(limit).0.len(), cut(limit).1)), [(0, 2), (1, 1), (2, 0)]);
    }

    #[test]
    fn small_parts_leave_their_share_to_large_ones() {
        assert_eq!(fair_limit(vec![10, 500, 20, 500], 230), 100);
        assert_eq!(fair_limit(vec![10, 20], 30), usize::MAX);
        assert_eq!(fair_limit(vec![10, 20, 30], 15), 5);
        assert_eq!(fair_limit(Vec::new(), 0), usize::MAX);
    }

    #[test]
    fn the_last_parts_and_the_first_letters_are_kept() {
        let parts = || ["aaa", "b", "cc"].map(String::from).to_vec();
        assert_eq!(last_parts(parts(), 5), ["b", "cc"]);
        assert_eq!(last_parts(parts(), 6), ["aaa", "b", "cc"]);
        assert_eq!([3, 4].map(|limit| first_letters("a \u{e9}c", limit)), ["a\u{2026}", "a \u{e9}c"]);
    }
}
