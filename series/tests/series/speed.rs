//! 120 patches on a tree of 2,000 files, as measured for other tools.

use std::time::{Duration, Instant};

use espalier_series::{
    FileAfter, FileHere, LooseReading, MemoryTree, Mode, PatchClass, PatchOutcome, parse, place_hunks,
    run_series,
};
use git2::{ObjectType, Oid};

use crate::support::{create, mail, modify};

const PATCHES: usize = 120;
const FILES: usize = 2000;

fn source(file: usize) -> String {
    (0..400).map(|line| format!("    int value_{line} = compute({file}, {line});\n")).collect()
}

#[test]
fn a_series_on_a_large_tree() {
    let mut tree = MemoryTree::new();
    for file in 0..FILES {
        tree.put(&format!("src/{}/{file}.c", file % 20), Mode::File, source(file).as_bytes());
    }
    let texts: Vec<String> = (0..PATCHES).map(patch_text).collect();
    let start = Instant::now();
    let patches: Vec<_> = texts.iter().map(|text| parse("0001-x.patch", text.as_bytes()).unwrap()).collect();
    let parsed = start.elapsed();
    let outcomes = run_series(&patches, &tree).unwrap();
    let applied = start.elapsed() - parsed;
    let hashing = time_of_hashing(&outcomes);
    assert!(outcomes.iter().all(|outcome| outcome.class == PatchClass::Exact));
    println!(
        "{PATCHES} patches on {FILES} files: parse {parsed:?}, apply {applied:?}, of which hashing {hashing:?}"
    );
    // A generous limit, because tests share their machine; quote the printed figures instead.
    let without_hashing = (parsed + applied).saturating_sub(hashing);
    assert!(without_hashing.as_millis() < 1000, "{without_hashing:?}");
}

/// Returns the time that hashing every resulting blob takes.
fn time_of_hashing(outcomes: &[PatchOutcome]) -> Duration {
    let start = Instant::now();
    for outcome in outcomes {
        for file in outcome.verdict.changes().iter().filter_map(|change| change.new.as_ref()) {
            let content = file.content.as_ref().unwrap();
            let by_git = Oid::hash_object(ObjectType::Blob, content).unwrap();
            assert_eq!(by_git.as_bytes(), file.id.as_bytes());
        }
    }
    start.elapsed()
}

fn patch_text(number: usize) -> String {
    let mut diff = create(&format!("src/{}/new_{number}.c", number % 20));
    for step in 0..3 {
        let file = number * 3 + step;
        let old = source(file);
        let line = |at: usize| format!("    int value_{at} = compute({file}, {at});\n");
        let new = old.replace(&line(200), "    changed();\n");
        let hunk =
            format!("@@ -200,3 +200,3 @@\n {}-{}+    changed();\n {}", line(199), line(200), line(201));
        diff.push_str(&modify(&format!("src/{}/{file}.c", file % 20), &old, &new, &hunk));
    }
    mail(&diff)
}

/// Each of the hunks fits at nearly every line.
#[test]
fn thousands_of_hunks_in_a_file_of_equal_lines() {
    const HUNKS: usize = 4000;
    let hunk = |at: usize| format!("@@ -{0},3 +{0},3 @@\n x\n-x\n+y\n x\n", 1 + at * 20);
    let diff = format!("--- a/a.txt\n+++ b/a.txt\n{}", (0..HUNKS).map(hunk).collect::<String>());
    let here = FileHere { content: "x\n".repeat(100_000).into_bytes(), is_base: false, base: None };
    let reading = LooseReading { strip: 1, reverse: false, may_fuzz: false, finds_uncertain: false };
    let start = Instant::now();
    let placed = place_hunks(diff.as_bytes(), reading, |_, _| Some(here.clone()));
    let took = start.elapsed();
    let [(_, FileAfter::Content(content))] = &placed.files[..] else { panic!("{:?}", placed.files) };
    let changed: Vec<usize> = (0..)
        .zip(content.iter().step_by(2))
        .filter(|(_, byte)| **byte == b'y')
        .map(|(line, _)| line)
        .collect();
    assert_eq!(changed, (0..HUNKS).map(|at| 1 + at * 20).collect::<Vec<_>>());
    println!("{HUNKS} hunks: {took:?}");
    // Generous as above: listing every place again for each hunk took 10 s.
    assert!(took.as_millis() < 3000, "{took:?}");
}
