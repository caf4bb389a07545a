//! The change of a patch as text, without what follows from the tree that it is applied to.

use crate::model::mode::FileMode;
use crate::model::patch::{BinaryHalf, Change, Content, FilePatch, FileSide, Hunk, Patch};
use crate::model::path::RepoPath;

/// Returns the change of a patch: paths, modes that change, and each hunk with its context and the function above it.
/// Line numbers, ids of blobs and the message are left out, so an edit of an earlier patch elsewhere in the same file
/// leaves the text as it is, and a hunk that moves to another place does not.
///
/// # Examples
///
/// ```
/// use espalier_series::{change_text, parse};
///
/// let text = "\
/// From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
/// From: A U Thor <author@example.com>
/// Date: Thu, 1 Jan 2026 00:00:00 +0000
/// Subject: [PATCH] raise the limit
///
/// diff --git a/limits.conf b/limits.conf
/// index 5dd13c4522b0ebe26082a80a5b77e18f00b5eeb5..8057e6037526abf6e5e4faeebf5dcd655606f8d9 100644
/// --- a/limits.conf
/// +++ b/limits.conf
/// @@ -1,2 +1,2 @@
///  timeout = 30
/// -limit = 8
/// +limit = 16
/// ";
/// let patch = parse("0001-raise-the-limit.patch", text.as_bytes()).unwrap();
/// let change = "modify limits.conf limits.conf\n@@\n timeout = 30\n-limit = 8\n+limit = 16\n";
/// assert_eq!(change_text(&patch), change.as_bytes());
///
/// let moved = text.replace("@@ -1,2 +1,2 @@", "@@ -7,2 +7,2 @@").replace("5dd13c45", "00000000");
/// let moved = parse("0002-raise-the-limit.patch", moved.as_bytes()).unwrap();
/// assert_eq!(change_text(&moved), change.as_bytes());
/// ```
pub fn change_text(patch: &Patch) -> Vec<u8> {
    let mut text = Vec::new();
    for file in &patch.files {
        add_head(&mut text, file);
        match &file.content {
            Content::Unchanged => {}
            Content::Text(hunks) => hunks.iter().for_each(|hunk| add_hunk(&mut text, hunk)),
            Content::Binary(binary) => add_half(&mut text, &binary.forward),
        }
    }
    text
}

/// Adds the kind of the change, both paths, and both modes if they differ.
fn add_head(text: &mut Vec<u8>, file: &FilePatch) {
    let kind = match file.change {
        Change::Create => "create",
        Change::Delete => "delete",
        Change::Modify => "modify",
        Change::Rename => "rename",
        Change::Copy => "copy",
    };
    let sides = [file.old.as_ref(), file.new.as_ref()];
    let path = |side: Option<&FileSide>| side.map_or(b"-".to_vec(), |side| bytes_of(&side.path));
    let mode = |side: Option<&FileSide>| side.and_then(|side| side.mode).map(FileMode::as_git_mode);
    let shown = |mode: Option<u32>| mode.map_or("-".to_owned(), |mode| format!("{mode:o}")).into_bytes();
    let mut words = vec![kind.as_bytes().to_vec()];
    words.extend(sides.map(path));
    let modes = sides.map(mode);
    if modes[0] != modes[1] {
        words.extend(modes.map(shown));
    }
    text.extend(words.join(&b' '));
    text.push(b'\n');
}

fn bytes_of(path: &RepoPath) -> Vec<u8> {
    path.as_bytes().to_vec()
}

fn add_hunk(text: &mut Vec<u8>, hunk: &Hunk) {
    text.extend_from_slice(b"@@");
    if !hunk.section.is_empty() {
        text.push(b' ');
        text.extend_from_slice(&hunk.section);
    }
    text.push(b'\n');
    for line in hunk.lines.iter() {
        text.push(line.kind.sign());
        text.extend_from_slice(line.bytes);
        if line.lacks_final_newline() {
            text.extend_from_slice(b"\n\\\n");
        }
    }
}

fn add_half(text: &mut Vec<u8>, half: &BinaryHalf) {
    let (kind, bytes) = match half {
        BinaryHalf::Literal(bytes) => ("literal", bytes),
        BinaryHalf::Delta(bytes) => ("delta", bytes),
    };
    text.extend(format!("{kind} {}\n", bytes.len()).into_bytes());
    text.extend_from_slice(bytes);
    text.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::change_text;
    use crate::read::parse::parse;

    const HEAD: &str = "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n\
                        From: A U Thor <author@example.com>\nDate: Thu, 1 Jan 2026 00:00:00 +0000\n\
                        Subject: [PATCH] change a file\n\n";

    fn text_of(diff: &str) -> String {
        let patch = parse("0001-change-a-file.patch", format!("{HEAD}{diff}").as_bytes()).unwrap();
        String::from_utf8(change_text(&patch)).unwrap()
    }

    #[test]
    fn the_change_of_the_patch_is_in_it() {
        let modify = "diff --git a/a.c b/a.c\nindex 1111111111111111111111111111111111111111\
                      ..2222222222222222222222222222222222222222 100644\n--- a/a.c\n+++ b/a.c\n\
                      @@ -5,2 +5,2 @@ int f(void)\n one\n-two\n\\ No newline at end of file\n+2\n";
        assert_eq!(text_of(modify), "modify a.c a.c\n@@ int f(void)\n one\n-two\n\\\n+2\n");
        let create = "diff --git a/b.c b/b.c\nnew file mode 100755\nindex \
                      0000000000000000000000000000000000000000..2222222222222222222222222222222222222222\n\
                      --- /dev/null\n+++ b/b.c\n@@ -0,0 +1 @@\n+x\n";
        assert_eq!(text_of(create), "create - b.c - 100755\n@@\n+x\n");
    }

    /// The same lines in another function are another change.
    #[test]
    fn another_place_is_another_text() {
        let at = |section: &str, above: &str| {
            text_of(&format!(
                "diff --git a/a.c b/a.c\nindex 1111111111111111111111111111111111111111\
                 ..2222222222222222222222222222222222222222 100644\n--- a/a.c\n+++ b/a.c\n\
                 @@ -5 +5,2 @@{section}\n {above}\n+new\n"
            ))
        };
        assert_eq!(at("", "one"), at("", "one"));
        assert_ne!(at("", "one"), at("", "two"));
        assert_ne!(at(" int f(void)", "one"), at(" int g(void)", "one"));
    }
}
