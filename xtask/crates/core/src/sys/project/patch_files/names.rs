//! Names of patch files, and the files of a folder.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use espalier_series::{PATCH_SIZE_LIMIT, is_packed};

use crate::error::{Error, Result};
use crate::sys::machine::disk;

/// Compares two file names in natural order: `2.patch` comes before `10.patch`.
pub(super) fn in_natural_order(left: &str, right: &str) -> Ordering {
    let (mut one, mut other) = (left, right);
    loop {
        let (first, second) = (digits_in(one), digits_in(other));
        let (value, other_value) = (first.trim_start_matches('0'), second.trim_start_matches('0'));
        let by_value = (value.len(), value).cmp(&(other_value.len(), other_value));
        if !first.is_empty() && !second.is_empty() && by_value.is_ne() {
            return by_value;
        }
        if !first.is_empty() && !second.is_empty() {
            (one, other) = (one.trim_start_matches(first), other.trim_start_matches(second));
            continue;
        }
        let (mut letters, mut other_letters) = (one.chars(), other.chars());
        match (letters.next(), other_letters.next()) {
            (Some(letter), Some(other_letter)) if letter == other_letter => {
                (one, other) = (letters.as_str(), other_letters.as_str());
            }
            // `01` and `1` have the same value.
            (None, None) => return left.cmp(right),
            (letter, other_letter) => return letter.cmp(&other_letter),
        }
    }
}

/// Returns the leading digits of `text`.
fn digits_in(text: &str) -> &str {
    text.split(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default()
}

/// Reads a text without the byte order mark that some editors write.
pub(super) fn text_of(file: &Path) -> Result<String> {
    let text = String::from_utf8(read(file)?)
        .map_err(|_| Error::usage(format!("`{}` is not UTF-8 text", file.display())))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text))
}

pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Returns the files directly in `folder`, by name.
pub(super) fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    entries_in(folder, false)
}

pub(super) fn folders_in(folder: &Path) -> Result<Vec<PathBuf>> {
    entries_in(folder, true)
}

fn entries_in(folder: &Path, are_folders: bool) -> Result<Vec<PathBuf>> {
    let fail = |error: std::io::Error| disk::explain("list", folder, &error);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        if entry.file_type().map_err(fail)?.is_dir() == are_folders {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

pub(super) fn is_patch(file: &Path) -> bool {
    is_of_ports(&name_of(file))
        || has_ending(file, &["patch", "diff", "dpatch", "patchset", "eml", "mbox", "mbx"])
}

/// Whether a file is named like patches of the BSD ports: `patch-src_main.c`, without a file extension of its own.
fn is_of_ports(name: &str) -> bool {
    let leftovers = [".orig", ".rej", ".bak", "~"];
    name.starts_with("patch-") && !is_packed(name) && !leftovers.iter().any(|ending| name.ends_with(ending))
}

pub(super) fn has_ending(file: &Path, endings: &[&str]) -> bool {
    file.extension().is_some_and(|ending| endings.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

/// Maximum size of one file in bytes: an mbox may hold many patches.
const FILE_LIMIT: u64 = 8 * PATCH_SIZE_LIMIT as u64;

/// Reads a regular file. A link, a pipe or a device is refused: it is not a patch.
pub fn read(file: &Path) -> Result<Vec<u8>> {
    let meta = std::fs::symlink_metadata(file).map_err(|error| disk::explain("read", file, &error))?;
    if !meta.is_file() {
        return Err(Error::usage(format!("`{}` is not a plain file", file.display()))
            .hint("put the file itself in its place"));
    }
    if meta.len() > FILE_LIMIT {
        return Err(Error::usage(format!("`{}` has {} bytes", file.display(), meta.len()))
            .hint(format!("{FILE_LIMIT} are the most that one file of patches may have")));
    }
    disk::read(file)
}

#[cfg(test)]
mod tests {
    use super::in_natural_order;

    #[test]
    fn numbers_in_names_are_compared_by_value() {
        let sorted = [
            "1",
            "0001-a",
            "1-b",
            "02",
            "2",
            "9z",
            "10",
            "10a",
            "99999999999999999999999",
            "a1",
            "a2b",
            "a10",
        ];
        for (at, left) in sorted.iter().enumerate() {
            for right in &sorted[at + 1..] {
                let both = (in_natural_order(left, right), in_natural_order(right, left));
                assert_eq!(both, (std::cmp::Ordering::Less, std::cmp::Ordering::Greater), "{left} {right}");
            }
        }
        assert!(in_natural_order("x", "x").is_eq());
    }
}
