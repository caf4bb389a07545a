//! The files of synthetic histories, and the series for them.

use std::collections::BTreeMap;

/// Contents by path.
pub type Files = BTreeMap<String, String>;

/// The file that only planted commits change.
pub const VICTIM: &str = "src/victim.c";

/// Returns a file of `count` functions that are unique to it.
pub fn functions(number: usize, count: usize) -> String {
    let function = |at: usize| {
        let body: String =
            (0..7).map(|line| format!("    value = value * {} + {line};\n", at * 10 + number)).collect();
        format!("static int function_{number}_{at}(int value) {{\n{body}    return value;\n}}\n\n")
    };
    (0..count).map(function).collect()
}

/// Returns two functions with the same body.
fn twins() -> String {
    let body: String = (0..9).map(|line| format!("    value = value + {line};\n")).collect();
    ["left", "right"]
        .map(|name| format!("static int {name}(int value) {{\n{body}    return value;\n}}\n\n"))
        .concat()
}

/// Returns the file that planted commits change; `result` is the return value of its function.
pub fn victim(result: &str) -> String {
    format!(
        "{}static int victim(int value) {{\n    return {result};\n}}\n\n{}",
        functions(8, 2),
        functions(9, 2)
    )
}

/// Returns the pinned tree.
pub fn base() -> Files {
    let mut files: Files = (0..6).map(|at| (format!("src/part{at}.c"), functions(at, 4))).collect();
    files.insert("src/twins.c".to_string(), twins());
    files.insert("README".to_string(), "about\n".to_string());
    files.insert(VICTIM.to_string(), victim("value + 1"));
    files
}

/// Returns the tree after each patch: edits, two of them on top of earlier ones, a new file, a rename with an edit, a
/// deleted file, and a change in one of two twins.
pub fn series() -> Vec<Files> {
    type Step = fn(&mut Files);
    let steps: [Step; 10] = [
        |files| replace(files, "src/part0.c", "value * 10 + 3", "value / 3"),
        |files| {
            replace(files, "src/part1.c", "value * 1 + 2", "value / 2");
            replace(files, "src/part2.c", "value * 32 + 2", "value / 2");
        },
        |files| replace(files, "src/part0.c", "value / 3", "value / 4"),
        |files| drop(files.insert("src/new.c".to_string(), functions(7, 3))),
        |files| {
            let text = files.remove("src/part3.c").unwrap();
            files.insert("src/moved.c".to_string(), text.replacen("value * 3 + 4", "value", 1));
        },
        |files| {
            replace(files, "src/new.c", "value * 7 + 2", "value / 2");
            replace(files, "src/part4.c", "value * 24 + 2", "value / 2");
        },
        |files| {
            let text = files.get_mut("src/twins.c").unwrap();
            let right = text.find("right").unwrap();
            text.replace_range(right.., &text[right..].replace("value + 4", "value - 4"));
        },
        |files| drop(files.remove("src/part5.c")),
        |files| replace(files, VICTIM, "return value + 1", "return value + 2"),
        |files| replace(files, VICTIM, "return value + 2", "return value + 3"),
    ];
    let mut files = base();
    let after = steps.iter().map(|step| {
        step(&mut files);
        files.clone()
    });
    after.collect()
}

fn replace(files: &mut Files, path: &str, from: &str, to: &str) {
    let text = files.get_mut(path).unwrap();
    assert!(text.contains(from), "{path} has no {from}");
    *text = text.replacen(from, to, 1);
}
