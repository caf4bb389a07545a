//! Order files of patch queues: the patches, their order, and the options of each. quilt calls it `series`, Electron
//! `.patches`, dpatch `00list`; StGit exports one for quilt.

/// One line of an order file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuiltEntry {
    /// Path of the patch, relative to the file's folder.
    pub name: String,
    /// Number of leading path components to strip (`-p`), if the line specifies it.
    pub strip: Option<u32>,
    /// Whether it is applied in reverse.
    pub reverse: bool,
    /// Whether all of its context has to match, as `-F0` requests.
    pub is_strict: bool,
}

impl QuiltEntry {
    /// Creates an entry without options.
    pub fn plain(name: String) -> QuiltEntry {
        QuiltEntry { name, strip: None, reverse: false, is_strict: false }
    }
}

/// Reads an order file; `file` is its name, for messages. A `#` begins a comment where a word could begin.
///
/// # Errors
///
/// Every unsupported line, with its number and the reason.
pub fn read_quilt_series(file: &str, text: &str) -> Result<Vec<QuiltEntry>, Vec<String>> {
    let (mut entries, mut wrong) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        let line = without_comment(line).trim();
        if line.is_empty() {
            continue;
        }
        match read_entry(line) {
            Ok(entry) => entries.push(entry),
            Err(why) => wrong.push(format!("{file}:{number}: {why}")),
        }
    }
    if wrong.is_empty() { Ok(entries) } else { Err(wrong) }
}

/// Strips the comment of a line; `fix-#12.patch` does not contain one.
pub(crate) fn without_comment(line: &str) -> &str {
    let begins = |(at, _): &(usize, &str)| {
        line.get(..*at).is_none_or(|before| before.is_empty() || before.ends_with([' ', '\t']))
    };
    match line.match_indices('#').find(begins) {
        Some((at, _)) => line.get(..at).unwrap_or_default(),
        None => line,
    }
}

/// Options of patch(1) that do not affect where a hunk is applied.
const HARMLESS: [&str; 14] = [
    "-E",
    "--remove-empty-files",
    "-N",
    "--forward",
    "-s",
    "--quiet",
    "--silent",
    "-t",
    "--batch",
    "-f",
    "--force",
    "-u",
    "--unified",
    "--no-backup-if-mismatch",
];

fn read_entry(line: &str) -> Result<QuiltEntry, String> {
    let mut words = line.split_whitespace();
    let mut entry = QuiltEntry::plain(words.next().unwrap_or_default().to_owned());
    refuse_name(&entry.name)?;
    while let Some(word) = words.next() {
        let value = |prefix: &str| word.strip_prefix(prefix).map(str::to_owned);
        if let Some(count) = value("--strip=").or_else(|| value("-p")) {
            let count = if count.is_empty() { words.next().unwrap_or_default().to_owned() } else { count };
            entry.strip = Some(strip(&count)?);
        } else if let Some(lines) = value("--fuzz=").or_else(|| value("-F")) {
            let lines = if lines.is_empty() { words.next().unwrap_or_default().to_owned() } else { lines };
            entry.is_strict = lines.parse::<u32>().map_err(|_| format!("`-F{lines}` has no number"))? == 0;
        } else if ["-R", "--reverse"].contains(&word) {
            entry.reverse = true;
        } else if !HARMLESS.contains(&word) {
            return Err(format!("`{word}` is neither `-pN` nor `-R`, and changes what the patch does"));
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
    if is_packed(name) { Err(format!("`{name}` is packed: unpack it first")) } else { Ok(()) }
}

/// Returns whether a file's name indicates that it is compressed.
pub fn is_packed(name: &str) -> bool {
    [".gz", ".bz2", ".xz", ".zst", ".lzma"].iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::{QuiltEntry, read_quilt_series};

    #[test]
    fn reads_names_options_and_comments() {
        let text = "# all\n\n01-a.diff\nsub/b.patch -p0 # why\nc -p 2 -R\nd -pab\nfix-#12.patch\t# x\n\
                    e --strip=3 --reverse -E\nf -F0\ng --fuzz=2 -s\r\n";
        let entries = read_quilt_series("series", text).unwrap();
        let entry = |name: &str, strip, reverse, is_strict| QuiltEntry {
            name: name.to_owned(),
            strip,
            reverse,
            is_strict,
        };
        let wanted = [
            entry("01-a.diff", None, false, false),
            entry("sub/b.patch", Some(0), false, false),
            entry("c", Some(2), true, false),
            entry("d", Some(1), false, false),
            entry("fix-#12.patch", None, false, false),
            entry("e", Some(3), true, false),
            entry("f", None, false, true),
            entry("g", None, false, false),
        ];
        assert_eq!(entries, wanted);
    }

    #[test]
    fn says_all_that_is_wrong() {
        let text = "../a\n/b\nc/../d\na//b\nx.gz\ny -q\nz -p\ngood\n-x\nw -l\nv -F\n";
        let wrong = read_quilt_series("series", text).unwrap_err();
        assert_eq!(wrong.len(), 10, "{wrong:#?}");
        assert_eq!(wrong[0], "series:1: `../a` is no path inside the folder");
        assert_eq!(wrong[5], "series:6: `-q` is neither `-pN` nor `-R`, and changes what the patch does");
    }
}
