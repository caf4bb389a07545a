//! docs/measurements/findings-3-v0.5.0.md: what each row names as its check is there.

use std::path::Path;

use super::support::files;

const PAGE: &str = "docs/measurements/findings-3-v0.5.0.md";

/// The head of the column that names checks.
const HELD_BY: &str = "held by";

/// Returns the id of each row, and the names in its column of checks.
fn rows(page: &str) -> Vec<(String, Vec<String>)> {
    let mut column = None;
    let mut rows = Vec::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        if !line.starts_with('|') {
            column = None;
        } else if let Some(at) = cells.iter().position(|cell| *cell == HELD_BY) {
            column = Some(at);
        } else if let Some(cell) = column.and_then(|at| cells.get(at)).filter(|cell| !cell.starts_with("---"))
        {
            let names = cell.split('`').skip(1).step_by(2).map(str::to_string).collect();
            rows.push((cells[0].to_string(), names));
        }
    }
    rows
}

/// Returns the texts of all files below these folders with this ending.
fn texts(folders: &[&str], ending: &str) -> String {
    let root = files::of_this_repository("");
    let mut all = String::new();
    for folder in folders {
        let found = files::list(&root.join(folder)).into_iter();
        let is_it = |name: &String| Path::new(name).extension().is_some_and(|found| found == ending);
        for name in found.filter(is_it) {
            all += &std::fs::read_to_string(root.join(folder).join(name)).unwrap();
        }
    }
    all
}

#[test]
fn every_check_that_a_row_names_is_there() {
    let page = std::fs::read_to_string(files::of_this_repository(PAGE)).unwrap();
    let sources = texts(&["xtask/crates", "series", "kernels"], "rs");
    let patches = texts(&["patches"], "patch");
    let is_there = |name: &str| {
        let is_promise = sources.contains(&format!("promise(\"{name}\","));
        let is_test = sources.contains(&format!("fn {name}(")) || patches.contains(&format!("def {name}("));
        let is_file = name.contains('/') && files::of_this_repository(name).exists();
        is_promise || is_test || is_file
    };
    let rows = rows(&page);
    let missing = rows.iter().flat_map(|(id, names)| names.iter().map(move |name| (id, name)));
    let missing: Vec<_> = missing.filter(|(_, name)| !is_there(name)).collect();
    assert!(missing.is_empty(), "{PAGE}: {missing:?}");
    for (letter, count) in [("A", 14), ("B", 5), ("C", 14), ("D", 14), ("00", 9)] {
        let found = rows.iter().filter(|(id, _)| id.starts_with(letter)).count();
        assert_eq!(found, count, "rows of {letter}");
    }
}

#[test]
fn rows_are_read_by_the_head_of_their_column() {
    let page = "| a | b |\n|---|---|\n| `x` | y |\n\n| id | held by |\n|---|---|\n| A1 | `one`, `two` |\n\n| A2 | `no` |\n";
    assert_eq!(rows(page), [("A1".to_string(), vec!["one".to_string(), "two".to_string()])]);
}
