//! The `series` file of quilt: which patches, in which order, and how each is applied.

/// One line of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuiltEntry {
    /// Path of the patch, relative to the file's folder.
    pub name: String,
    /// How many parts are taken off the paths in it.
    pub strip: u32,
    /// It is applied backwards.
    pub reverse: bool,
}

/// Reads a `series` file. Everything after a `#` is a comment.
///
/// # Errors
///
/// Every line that cannot be followed, with its number and why.
pub fn read_quilt_series(text: &str) -> Result<Vec<QuiltEntry>, Vec<String>> {
    let (mut entries, mut wrong) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        match read_entry(line) {
            Ok(entry) => entries.push(entry),
            Err(why) => wrong.push(format!("series:{number}: {why}")),
        }
    }
    if wrong.is_empty() { Ok(entries) } else { Err(wrong) }
}

fn read_entry(line: &str) -> Result<QuiltEntry, String> {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default().to_owned();
    let mut entry = QuiltEntry { name, strip: 1, reverse: false };
    refuse_name(&entry.name)?;
    while let Some(word) = words.next() {
        match word.strip_prefix("-p") {
            Some("") => entry.strip = strip(words.next().unwrap_or_default())?,
            Some(count) => entry.strip = strip(count)?,
            None if word == "-R" => entry.reverse = true,
            None => return Err(format!("`{word}` is neither `-pN` nor `-R`")),
        }
    }
    Ok(entry)
}

fn strip(count: &str) -> Result<u32, String> {
    match count {
        "ab" => Ok(1),
        count => count.parse().ok().filter(|count| *count < 100).ok_or(format!("`-p{count}` has no number")),
    }
}

fn refuse_name(name: &str) -> Result<(), String> {
    let leaves = name.starts_with(['/', '-']) || name.split('/').any(|part| part == ".." || part.is_empty());
    if leaves || name.chars().any(char::is_control) {
        return Err(format!("`{}` is no path inside the folder", name.escape_debug()));
    }
    let packed = [".gz", ".bz2", ".xz", ".zst"].iter().any(|ending| name.ends_with(ending));
    if packed { Err(format!("`{name}` is packed: unpack it first")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::{QuiltEntry, read_quilt_series};

    #[test]
    fn reads_names_options_and_comments() {
        let entries =
            read_quilt_series("# all\n\n01-a.diff\nsub/b.patch -p0 # why\nc -p 2 -R\nd -pab\n").unwrap();
        let entry = |name: &str, strip, reverse| QuiltEntry { name: name.to_owned(), strip, reverse };
        let wanted = [
            entry("01-a.diff", 1, false),
            entry("sub/b.patch", 0, false),
            entry("c", 2, true),
            entry("d", 1, false),
        ];
        assert_eq!(entries, wanted);
    }

    #[test]
    fn says_all_that_is_wrong() {
        let text = "../a\n/b\nc/../d\na//b\nx.gz\ny -q\nz -p\ngood\n-x\n";
        let wrong = read_quilt_series(text).unwrap_err();
        assert_eq!(wrong.len(), 8, "{wrong:#?}");
        assert_eq!(wrong[0], "series:1: `../a` is no path inside the folder");
        assert_eq!(wrong[5], "series:6: `-q` is neither `-pN` nor `-R`");
    }
}
