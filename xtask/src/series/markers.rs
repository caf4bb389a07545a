//! Conflict markers around places that a merge by lines called clean and nobody can be sure of.

use super::line_diff::ChangedRun;
use super::replay_text::Labels;

/// `merged`, with conflict markers around those of `runs` (from `ours` to `merged`) that `marked` names.
pub(crate) fn mark_runs(
    ours: &[&[u8]],
    merged: &[&[u8]],
    runs: &[ChangedRun],
    marked: &[usize],
    labels: &Labels,
) -> Vec<u8> {
    let mut text = Vec::new();
    let mut at = 0;
    for (number, run) in runs.iter().enumerate() {
        text.extend(merged.get(at..run.new.start).unwrap_or_default().concat());
        let old = ours.get(run.old.clone()).unwrap_or_default().concat();
        let new = merged.get(run.new.clone()).unwrap_or_default().concat();
        if marked.contains(&number) {
            add_marked(&mut text, &old, &new, labels);
        } else {
            text.extend(new);
        }
        at = run.new.end;
    }
    text.extend(merged.get(at..).unwrap_or_default().concat());
    text
}

fn add_marked(text: &mut Vec<u8>, ours: &[u8], theirs: &[u8], labels: &Labels) {
    let blocks: [(String, &[u8]); 2] =
        [(format!("<<<<<<< {}\n", labels.ours), ours), ("=======\n".to_owned(), theirs)];
    for (marker, block) in blocks {
        start_line(text);
        text.extend(marker.as_bytes());
        text.extend(block);
    }
    start_line(text);
    text.extend(format!(">>>>>>> {}\n", labels.theirs).as_bytes());
}

/// A marker stands at the start of a line, also after a last line without a line feed.
fn start_line(text: &mut Vec<u8>) {
    if !text.is_empty() && !text.ends_with(b"\n") {
        text.push(b'\n');
    }
}

/// The line, from 1, of the first conflict marker in `text`.
pub fn first_marker(text: &[u8]) -> Option<usize> {
    let is_marker = |line: &[u8]| {
        [&b"<<<<<<< "[..], b"||||||| ", b">>>>>>> "].iter().any(|marker| line.starts_with(marker))
            || line.trim_ascii_end() == b"======="
    };
    let mut lines = text.split(|byte| *byte == b'\n');
    // A line of equals signs underlines headings too; the other markers never stand alone.
    let is_certain = |line: &[u8]| is_marker(line) && !line.starts_with(b"=");
    let has_any = text.split(|byte| *byte == b'\n').any(is_certain);
    if has_any { lines.position(is_marker).map(|at| at + 1) } else { None }
}

#[cfg(test)]
mod tests {
    use super::{first_marker, mark_runs};
    use crate::series::line_diff::{changed_runs, lines_of};
    use crate::series::replay_text::Labels;

    #[test]
    fn a_marked_run_shows_both_sides() {
        let (ours, merged) = (lines_of(b"a\nb\nc"), lines_of(b"A\nb\nd"));
        let runs = changed_runs(&ours, &merged);
        let labels = Labels { base: "base".into(), ours: "v2".into(), theirs: "0001-a.patch".into() };
        let text = mark_runs(&ours, &merged, &runs, &[1], &labels);
        let expected = "A\nb\n<<<<<<< v2\nc\n=======\nd\n>>>>>>> 0001-a.patch\n";
        assert_eq!(String::from_utf8(text.clone()).unwrap(), expected);
        assert_eq!(first_marker(&text), Some(3));
        assert_eq!(first_marker(b"Title\n=======\n"), None);
    }
}
