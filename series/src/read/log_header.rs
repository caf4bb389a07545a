//! The header that `git show` and `git log` print above a commit.

/// Returns whether `line` begins a commit in the output of `git log`: `commit ID`, perhaps with names of it behind.
pub(crate) fn begins_commit(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"commit ") else { return false };
    let id = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    (id == 40 || id == 64) && matches!(rest.get(id), None | Some(b' ' | b'\r' | b'\n'))
}

/// Removes from `text` what git adds to a commit: the line of its id, `Merge:`, and four spaces before each line of the
/// message. `Author:` and `Date:` stay; they are read like those of any other header.
pub(super) fn without_log_header(text: String) -> String {
    let mut lines = text.trim_start().lines();
    if !lines.next().is_some_and(|line| begins_commit(line.as_bytes())) {
        return text;
    }
    let is_message = |line: &&str| !line.starts_with("Merge: ");
    let plain = lines.filter(is_message).map(|line| line.strip_prefix("    ").unwrap_or(line));
    plain.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::{begins_commit, without_log_header};

    const ID: &str = "0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn a_commit_begins_with_its_whole_id() {
        for line in [format!("commit {ID}"), format!("commit {ID} (HEAD -> main)\r")] {
            assert!(begins_commit(line.as_bytes()), "{line}");
        }
        for line in
            [format!("commit {ID}0"), format!("Commit {ID}"), "commit 0123".to_owned(), "commit ".to_owned()]
        {
            assert!(!begins_commit(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn the_message_stays() {
        let log = format!(
            "commit {ID}\nMerge: 1 2\nAuthor: A <a@b>\nDate:   now\n\n    keep the port\n    \n        int x;\n"
        );
        assert_eq!(without_log_header(log), "Author: A <a@b>\nDate:   now\n\nkeep the port\n\n    int x;");
        let other = "    indented\n".to_owned();
        assert_eq!(without_log_header(other.clone()), other);
    }
}
