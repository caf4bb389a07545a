//! Conversion of a commit message to a form that survives in a patch.

use super::mail::{ends_message, looks_like_diff};
use super::mbox::is_separator;

/// Returns `message` with its first paragraph as one line, without control characters, and with a space before lines
/// that would end the message when the patch is read. Also returns the number of those lines.
pub fn patch_message(message: &str) -> (String, usize) {
    let mut lines = message.lines().map(str::trim_end).skip_while(|line| line.is_empty());
    let subject: Vec<&str> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    let subject = plain_line(&subject.join(" ")).split_whitespace().collect::<Vec<_>>().join(" ");
    let subject = if subject.is_empty() { "Say nothing".to_owned() } else { subject };
    let mut moved = 0;
    let body: Vec<String> = lines
        .map(|line| {
            let is_end = ends_message(line.as_bytes())
                || looks_like_diff(line.as_bytes())
                || is_separator(line.as_bytes())
                || ENDS_FOR_GIT.iter().any(|start| line.starts_with(start));
            moved += usize::from(is_end);
            if is_end { format!(" {line}") } else { plain_line(line) }
        })
        .collect();
    let body = body.join("\n");
    let body = body.trim_matches('\n');
    let text = if body.is_empty() { format!("{subject}\n") } else { format!("{subject}\n\n{body}\n") };
    (text, moved)
}

/// Words with which a line ends the message for `git am`, besides those of [`ends_message`].
const ENDS_FOR_GIT: [&str; 2] = ["diff -", "Index: "];

/// Strips control characters except tabs, which are used for indentation.
fn plain_line(line: &str) -> String {
    line.chars().map(|letter| if letter.is_control() && letter != '\t' { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::patch_message;

    #[test]
    fn only_what_a_patch_cannot_say_changes() {
        assert_eq!(patch_message("a\n\nb\n\tc\n\nKey: v\n"), ("a\n\nb\n\tc\n\nKey: v\n".to_owned(), 0));
        assert_eq!(patch_message("\n a\tb \nc\n\n\nd\u{1b}[1m \n").0, "a b c\n\nd [1m\n");
        assert_eq!(
            patch_message("a\n\n---\ndiff --git x\n--- a/b\n").0,
            "a\n\n ---\n diff --git x\n --- a/b\n"
        );
        assert_eq!(patch_message("a\n\n---\nb\n").1, 1);
        assert_eq!(
            patch_message("a\n\ndiff -u shows it\nIndex: b\n"),
            ("a\n\n diff -u shows it\n Index: b\n".to_owned(), 2)
        );
        assert_eq!(
            patch_message("a\n\nFrom 0123 Mon Sep 17 00:00:00 2001\nFrom me\n"),
            ("a\n\n From 0123 Mon Sep 17 00:00:00 2001\nFrom me\n".to_owned(), 1)
        );
        assert_eq!(patch_message("").0, "Say nothing\n");
    }
}
