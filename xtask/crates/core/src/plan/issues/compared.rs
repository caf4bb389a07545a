//! Whether two texts of an issue describe the same break. Any commit that changes a file gives it another blob, and the
//! lines below the change other numbers; neither is compared. Nor is where the hunks are that still apply.

/// Length of the shortest id, which is an abbreviated one.
const ID_LENGTH: usize = 12;

/// Keys of `conflict.json` whose numbers are places.
const PLACE_KEYS: [&str; 3] = ["\"line\": ", "\"start\": ", "\"lines\": "];

/// Whether two texts differ by more than line endings, ids of objects, and the numbers of lines.
pub(super) fn describe_other_breaks(left: &str, right: &str) -> bool {
    comparable(left) != comparable(right)
}

fn comparable(text: &str) -> String {
    let lines = text.lines().filter(|line| !is_of_hunk_that_applies(line.trim()));
    let lines: Vec<String> = lines.map(|line| comparable_line(line.trim_end())).collect();
    lines.join("\n").trim_end().to_string()
}

/// Whether a line is about a hunk that applies as it is or on other lines, or is one that such a hunk has after it was
/// shifted.
fn is_of_hunk_that_applies(line: &str) -> bool {
    line.starts_with("fits at line ")
        || line.starts_with("made for: ")
        || (line.starts_with("hunk ") && (line.ends_with(": exact") || line.contains(": shifted by ")))
}

/// Returns `line` with `#` in place of each id and of each number of a line, and without its indentation, which aligns
/// such numbers.
fn comparable_line(line: &str) -> String {
    let line = line.trim_start();
    let mut text = String::new();
    let (mut before, mut rest) = ("", line);
    while !rest.is_empty() {
        let is_word = rest.starts_with(|letter: char| letter.is_ascii_alphanumeric());
        let end = rest.find(|letter: char| letter.is_ascii_alphanumeric() != is_word).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        let is_place = is_number(run) && is_at_place(before, after);
        text += if is_place || is_id(run) { "#" } else { run };
        (before, rest) = (&line[..line.len() - after.len()], after);
    }
    text
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_id(word: &str) -> bool {
    word.len() >= ID_LENGTH && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a number between these texts is a place in a file, and not content: `line 3`, `a.c:3:`, `+3 lines`,
/// `"start": 3`, or the margin of an excerpt by a compiler. `3 of 4 hunks exact` depends on places too.
fn is_at_place(before: &str, after: &str) -> bool {
    before.ends_with("line ")
        || PLACE_KEYS.iter().any(|key| before.ends_with(key))
        || (before.ends_with(['+', '-']) && after.starts_with(" lines"))
        || (before.trim().is_empty() && after.starts_with(" |"))
        || (after.starts_with(" of ") && after.ends_with(" hunks exact"))
        || (is_path_with_colon(before) && after.starts_with([':', ',', ')']))
}

/// Whether `text` ends with the path of a file and a `:`.
fn is_path_with_colon(text: &str) -> bool {
    let word = text.rsplit([' ', '(', '`']).next().unwrap_or(text);
    word.strip_suffix(':').is_some_and(|path| path.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_blobs_are_not_compared() {
        for (left, right) in [
            ("nearest: line 3, 6 of 7 lines agree", "nearest: line 40, 6 of 7 lines agree"),
            ("found    (file line 6): return 1;", "found    (file line 16): return 1;"),
            ("found blob     b04e97ea75f5cac9", "found blob     5018084159e5151b"),
            (
                "1 of 2 hunks exact\n  hunk 1 @@ -3 +3 @@ (0001:14): exact\n",
                "0 of 2 hunks exact\n  hunk 1 @@ -3 +3 @@ (0001:14): shifted by +4 lines\n    made for: f\n    fits at line 7\n",
            ),
            ("hunk 1: moved function, +3 lines: it fits", "hunk 1: moved function, +14 lines: it fits"),
            ("src/a.c:3:10: error: no", "src/a.c:31:10: error: no"),
            ("In file included from src/a.h:3,", "In file included from src/a.h:4,"),
            (
                "upstream src/a.c:3, the patch src/a.c:5: both have",
                "upstream src/a.c:4, the patch src/a.c:5: both have",
            ),
            ("    3 | int a;", "   31 | int a;"),
            ("  \"start\": 3,\n  \"lines\": 2", "  \"start\": 31,\r\n  \"lines\": 2\r\n"),
        ] {
            assert!(!describe_other_breaks(left, right), "{left}\n{right}");
        }
    }

    #[test]
    fn content_is_compared() {
        for (left, right) in [
            ("+    case 81:", "+    case 82:"),
            ("expected (patch line 3): return 1;", "expected (patch line 3): return 2;"),
            ("6 of 7 lines agree", "5 of 7 lines agree"),
            ("a ? 1:2", "a ? 1:3"),
            ("a.patch: conflict", "a.patch: upstreamed"),
            ("return \"hi\";", "return \"hey\";"),
            ("Waiting for it: `0002-a.patch`.", "Waiting for it: `0003-a.patch`."),
        ] {
            assert!(describe_other_breaks(left, right), "{left}\n{right}");
        }
    }
}
