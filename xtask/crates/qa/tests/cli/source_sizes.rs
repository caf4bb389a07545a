//! No source file is so long that it has more than one subject.

use std::path::Path;

use super::support::files;

/// Largest number of lines in a source file, tests and comments included.
const MAX_LINES: usize = 600;

/// The folders with sources that people write.
const FOLDERS: [&str; 7] = ["series", "kernels", "front", "health", "xtask", "overlay", "ci"];

const ENDINGS: [&str; 6] = ["rs", "c", "h", "cpp", "py", "mjs"];

#[test]
fn no_source_file_is_too_long() {
    let root = files::of_this_repository("");
    let sources = sources(&root);
    let lines = |file: &String| std::fs::read_to_string(root.join(file)).unwrap().lines().count();
    let found: Vec<&String> = sources.iter().filter(|file| lines(file) > MAX_LINES).collect();
    assert!(found.is_empty(), "more than {MAX_LINES} lines, to be split by subject: {found:?}");
}

fn sources(root: &Path) -> Vec<String> {
    let in_folder = |folder: &&str| {
        let names = files::list(&root.join(folder)).into_iter();
        names.map(|name| format!("{folder}/{name}")).collect::<Vec<_>>()
    };
    let is_source = |file: &String| {
        let ending = Path::new(file).extension().unwrap_or_default();
        ENDINGS.iter().any(|known| ending == *known)
    };
    let found: Vec<String> = FOLDERS.iter().flat_map(in_folder).filter(is_source).collect();
    assert!(found.len() > 500, "{found:?}");
    found
}
