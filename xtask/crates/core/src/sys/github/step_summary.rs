//! The summary that GitHub shows for a step: Markdown appended to a file that the environment names.

use std::io::Write;
use std::path::PathBuf;

use crate::error::Result;
use crate::sys::machine::disk;

/// GitHub accepts at most one mebibyte per step.
const LIMIT: usize = 1_000_000;

/// Appends `markdown`; does nothing where no file is named.
pub fn append(markdown: &str) -> Result<()> {
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let path = PathBuf::from(path);
    let shown: String = markdown.chars().scan(0, within_limit).collect();
    let file = std::fs::File::options().create(true).append(true).open(&path);
    file.and_then(|mut file| file.write_all(shown.as_bytes()))
        .map_err(|error| disk::explain("write", &path, &error))
}

/// Returns `next` while the total is within the limit.
fn within_limit(so_far: &mut usize, next: char) -> Option<char> {
    *so_far += next.len_utf8();
    (*so_far <= LIMIT).then_some(next)
}
