//! Order files of patch queues: the patches, their order, and the options of each. quilt calls it `series`, Electron
//! `.patches`, dpatch `00list`; StGit exports one for quilt.

use super::apply_options::{ApplyOptions, Program, ReadOptions, not_carried_out, read_options};

/// One line of an order file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuiltEntry {
    /// Path of the patch, relative to the file's folder.
    pub name: String,
    /// Settings for applying it.
    pub options: ApplyOptions,
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

/// Returns the lines of an order file that depend on a condition, which is not evaluated: guards of Mercurial's queues
/// and of guilt, such as `a.patch #+stable`, and the directives for which dpatch has its `00list` preprocessed.
pub fn conditional_lines(text: &str) -> Vec<&str> {
    let is_guard = |word: &str| {
        let name = word.strip_prefix("#+").or_else(|| word.strip_prefix("#-"));
        name.is_some_and(|name| name.starts_with(|letter: char| letter.is_ascii_alphanumeric()))
    };
    let is_directive = |line: &str| ["#if", "#ifdef", "#ifndef", "#elif"].contains(&first_word(line));
    let has_guard = |line: &str| !line.starts_with('#') && line.split_whitespace().any(is_guard);
    text.lines().map(str::trim).filter(|line| is_directive(line) || has_guard(line)).collect()
}

fn first_word(line: &str) -> &str {
    line.split_whitespace().next().unwrap_or_default()
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

fn read_entry(line: &str) -> Result<QuiltEntry, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (name, words) = words.split_first().ok_or("an empty line")?;
    refuse_name(name)?;
    let ReadOptions { options, input, operands, is_dry_run, not_followed, .. } =
        read_options(Program::Patch, words)?;
    if let Some(option) = not_followed.first() {
        return Err(not_carried_out(option));
    }
    if let Some(word) = input.or(operands.first().copied()) {
        return Err(format!("`{word}` is a second file; a line has one patch and its options"));
    }
    if is_dry_run {
        return Err("with its options, such as `--dry-run`, `patch` changes nothing".to_owned());
    }
    Ok(QuiltEntry { name: (*name).to_owned(), options })
}

fn refuse_name(name: &str) -> Result<(), String> {
    let leaves = name.starts_with(['/', '-']) || name.split('/').any(|part| part == ".." || part.is_empty());
    if leaves || name.chars().any(char::is_control) {
        return Err(format!("`{}` is not a path inside the folder", name.escape_debug()));
    }
    if is_packed(name) { Err(format!("`{name}` is packed: unpack it first")) } else { Ok(()) }
}

/// Returns whether a file's name indicates that it is compressed.
pub fn is_packed(name: &str) -> bool {
    [".gz", ".bz2", ".xz", ".zst", ".lzma"].iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::{ApplyOptions, QuiltEntry, conditional_lines, read_quilt_series};

    #[test]
    fn reads_names_options_and_comments() {
        let text = "# all\n\n01-a.diff\nsub/b.patch -p0 # why\nc -p 2 -R\nd -pab\nfix-#12.patch\t# x\n\
                    e --strip=3 --reverse -E\nf -F0\ng --fuzz=2 -s\nh -Rp0\r\n";
        let entries = read_quilt_series("series", text).unwrap();
        let entry = |name: &str, strip, reverse, is_strict| QuiltEntry {
            name: name.to_owned(),
            options: ApplyOptions { strip, reverse, is_strict },
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
            entry("h", Some(0), true, false),
        ];
        assert_eq!(entries, wanted);
    }

    #[test]
    fn guards_and_directives_are_conditions() {
        let text = "a.patch\nb.patch #+stable\n  c.patch -p0 #-linux #+x\nd-#+e.patch\nf # -1 + 2\n#+g\n#if of both\n\
                    #ifdef ARCH\nh\n#endif\n# if it is needed\n";
        let found = ["b.patch #+stable", "c.patch -p0 #-linux #+x", "#if of both", "#ifdef ARCH"];
        assert_eq!(conditional_lines(text), found);
    }

    #[test]
    fn says_all_that_is_wrong() {
        let text = "../a\n/b\nc/../d\na//b\nx.gz\ny -q\nz -p\ngood\n-x\nw -l\nv -F\nu t\n";
        let wrong = read_quilt_series("series", text).unwrap_err();
        assert_eq!(wrong.len(), 11, "{wrong:#?}");
        assert_eq!(wrong[0], "series:1: `../a` is not a path inside the folder");
        assert_eq!(wrong[5], "series:6: `-q` is not a known option of patch(1)");
        assert_eq!(
            wrong[8],
            "series:10: `-l` changes what the patch does, which `import` does not carry out"
        );
    }
}
