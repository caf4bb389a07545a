//! Rewrites diffs that patch(1) accepts and git does not.

use super::hunk_lines::{DiffLine, HunkLines};

/// A diff that git accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tolerated {
    /// The diff; unchanged if git accepts it as it is.
    pub diff: Vec<u8>,
    /// Number of blank context lines that were missing at its end and have been added.
    pub added: usize,
}

/// Maximum number of blank lines at the end of a diff that patch(1) assumes to be missing.
const MOST_ADDED: u64 = 3;

/// Rewrites what patch(1) accepts and git does not: dates after a space instead of a tab, a last line without its line
/// feed, and blank lines of context that an editor or a mail program removed at the end.
pub fn tolerate(diff: &[u8]) -> Tolerated {
    let mut tolerated = Tolerated { diff: Vec::with_capacity(diff.len()), added: 0 };
    let mut lacks = HunkLines::default();
    let mut has_hunks = false;
    for line in diff.split_inclusive(|byte| *byte == b'\n') {
        let kind = lacks.next(line);
        has_hunks |= kind == DiffLine::HunkHead;
        match date_at(line).filter(|_| kind == DiffLine::Other) {
            Some(at) => {
                tolerated.diff.extend(line[..at].trim_ascii_end());
                tolerated.diff.push(b'\t');
                tolerated.diff.extend(line[at..].trim_ascii_start());
            }
            None => tolerated.diff.extend(line),
        }
    }
    if has_hunks && !tolerated.diff.ends_with(b"\n") {
        tolerated.diff.push(b'\n');
    }
    if lacks.old == lacks.new && (1..=MOST_ADDED).contains(&lacks.old) {
        for _ in 0..lacks.old {
            tolerated.diff.extend(b" \n");
            tolerated.added += 1;
        }
    }
    tolerated
}

/// Returns the offset of the date in `--- a/x.c Thu Dec 17 16:39:15 2015 +0300`, as Mercurial writes it. git recognizes
/// dates of this form only after a tab.
fn date_at(line: &[u8]) -> Option<usize> {
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    if !line.starts_with(b"--- ") && !line.starts_with(b"+++ ") {
        return None;
    }
    let text = std::str::from_utf8(line).ok()?;
    let is_time = |word: &str| {
        word.len() == 8 && word.split(':').filter_map(|part| part.parse::<u8>().ok()).count() == 3
    };
    let is_date = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [day, _, number, time, year, zone @ ..] = &words[..] else { return false };
        let (number, year) = (number.parse::<u8>().is_ok(), year.parse::<u16>().is_ok());
        DAYS.contains(day) && number && is_time(time) && year && zone.len() < 2
    };
    let blanks = text.match_indices(' ').map(|(at, _)| at + 1);
    blanks.into_iter().find(|at| text.get(*at..).is_some_and(is_date))
}

#[cfg(test)]
mod tests {
    use super::{Tolerated, tolerate};

    fn tolerated(diff: &str) -> (String, usize) {
        let Tolerated { diff, added } = tolerate(diff.as_bytes());
        (String::from_utf8(diff).unwrap(), added)
    }

    #[test]
    fn a_date_comes_after_a_tab() {
        let diff = "--- a/x y.c Thu Dec 17 16:39:15 2015 +0300\n+++ b/x y.c  Sat Jan 2 11:14:44 2016\n@@ -1 +1 @@\n\
                    --- a Thu Dec 17 16:39:15 2015\n+++ b Thu Dec 17 16:39:15 2015\n";
        let wanted = "--- a/x y.c\tThu Dec 17 16:39:15 2015 +0300\n+++ b/x y.c\tSat Jan 2 11:14:44 2016\n@@ -1 +1 @@\n\
                      --- a Thu Dec 17 16:39:15 2015\n+++ b Thu Dec 17 16:39:15 2015\n";
        assert_eq!(tolerated(diff), (wanted.to_owned(), 0));
        for same in
            ["--- a/x\tThu Dec 17 16:39:15 2015\n", "--- Thu Dec 17.c\n", "--- a/x 2015-12-17 16:39:15\n"]
        {
            assert_eq!(tolerated(same), (same.to_owned(), 0), "{same}");
        }
    }

    #[test]
    fn blank_lines_at_the_end_come_back() {
        let cut = "--- a/x\n+++ b/x\n@@ -1,3 +1,4 @@\n a\n+b\n";
        assert_eq!(tolerated(&format!("{cut} c\n")), (format!("{cut} c\n \n"), 1));
        assert_eq!(tolerated(&format!("{cut} c")), (format!("{cut} c\n \n"), 1));
        assert_eq!(tolerated(&format!("{cut} c\n\n")), (format!("{cut} c\n\n"), 0));
        assert_eq!(tolerated(&format!("{cut} c\n ")), (format!("{cut} c\n \n"), 0));
        for other in ["@@ -1,9 +1,9 @@\n a\n", "@@ -1,3 +1,2 @@\n a\n", "words", ""] {
            assert_eq!(tolerated(other), (other.to_owned(), 0), "{other}");
        }
    }
}
