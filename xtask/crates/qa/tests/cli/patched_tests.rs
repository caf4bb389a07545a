//! Tests that the patches of this repository change are run by the gate: a test that nothing runs covers nothing.

use std::collections::BTreeSet;

use super::support::files;

/// Returns the names and the texts of the patches of a variant, siblings included.
fn patches(variant: &str) -> Vec<(String, String)> {
    let folder = files::of_this_repository("patches").join(variant);
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut patches: Vec<(String, String)> =
        entries.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), read(&path))).collect();
    patches.sort();
    patches
}

fn read(path: &std::path::Path) -> String {
    // Some patches contain bytes that are not UTF-8.
    espalier_series::lossy(&std::fs::read(path).unwrap()).into_owned()
}

fn suites() -> toml::Table {
    toml::from_str(&read(&files::of_this_repository("ci/suites/suites.toml"))).unwrap()
}

/// The paths that a patch changes.
fn changed(patch: &str) -> impl Iterator<Item = &str> {
    patch.lines().filter_map(|line| line.strip_prefix("+++ b/"))
}

/// Returns the CMake target of a test's source; parts of a program are in a folder of their own.
fn target_of(path: &str) -> Option<&str> {
    let path = path.strip_prefix("tests/")?;
    match path.split_once('/') {
        Some((part, _)) => (part == "peg-parser").then_some("test-peg-parser"),
        None => path.strip_suffix(".cpp"),
    }
}

#[test]
fn every_test_program_that_a_patch_changes_is_run() {
    let suites = suites();
    let programs = suites["programs"].as_array().unwrap();
    let run: BTreeSet<&str> = programs.iter().map(|program| program["target"].as_str().unwrap()).collect();
    for variant in ["server-fixes", "paged", "front", "upstream-fixes"] {
        for (name, patch) in patches(variant) {
            for path in changed(&patch).filter(|path| path.starts_with("tests/") && path.ends_with(".cpp")) {
                let target = target_of(path);
                let is_run = target.is_some_and(|target| run.contains(target));
                assert!(is_run, "{name} changes {path}, which no program of ci/suites/suites.toml runs");
            }
        }
    }
}

/// Tests that need a model from the network, which the gate does not run, and the tests that check the same without it.
const SLOW: [(&str, &str); 4] = [
    ("test_vision_place_of_media_without_media_is_refused", "test_place_of_media_without_media_is_refused"),
    ("test_vision_images_of_too_many_pixels_are_refused", "test_size_of_an_image_is_limited"),
    ("test_vision_memory_of_an_image_is_limited", "test_memory_of_an_image_is_limited"),
    ("test_audio_of_any_length_does_not_end_the_server", "test_audio_of_any_length_does_not_end_the_server"),
];

/// A server test that a patch adds: its file, its name, and whether it is marked as slow.
#[derive(Debug, PartialEq)]
struct Added<'p> {
    file: &'p str,
    name: &'p str,
    is_slow: bool,
}

/// Returns the tests that a patch adds to the files of the server's tests.
fn added(patch: &str) -> Vec<Added<'_>> {
    let (mut file, mut is_slow) = ("", false);
    let mut all = Vec::new();
    for line in patch.lines() {
        if let Some(path) = line.strip_prefix("+++ b/") {
            file = path.strip_prefix("tools/server/tests/unit/").unwrap_or_default();
        }
        let Some(line) = line.strip_prefix('+').filter(|_| !file.is_empty()) else { continue };
        is_slow |= line.starts_with("@pytest.mark.slow");
        if let Some(name) = line.strip_prefix("def ").and_then(|rest| rest.split('(').next()) {
            if name.starts_with("test_") {
                all.push(Added { file, name, is_slow });
            }
            is_slow = false;
        }
    }
    all
}

#[test]
fn every_server_test_that_a_patch_adds_is_run_or_has_one_that_is() {
    let suites = suites();
    let own = suites["server-tests"]["own"].as_array().unwrap().iter();
    let own = own.flat_map(|own| own["names"].as_array().unwrap());
    let own: Vec<&str> = own.map(|name| name.as_str().unwrap()).collect();
    let patches: Vec<(String, String)> =
        ["server-fixes", "paged", "front", "upstream-fixes"].into_iter().flat_map(patches).collect();
    let all: Vec<Added<'_>> = patches.iter().flat_map(|(_, patch)| added(patch)).collect();
    let is_run = |test: &Added<'_>| {
        let name = format!("{}::{}", test.file, test.name);
        !test.is_slow && own.iter().any(|part| name.contains(part))
    };
    for test in &all {
        let other = SLOW.iter().find(|(slow, _)| test.is_slow && *slow == test.name);
        let is_covered =
            other.is_some_and(|(_, other)| all.iter().any(|test| test.name == *other && is_run(test)));
        assert!(is_run(test) || is_covered, "{test:?} is not in `server-tests.own` of ci/suites/suites.toml");
    }
    for (slow, _) in SLOW {
        assert!(all.iter().any(|test| test.is_slow && test.name == slow), "no patch adds {slow} any more");
    }
}

#[test]
fn tests_of_a_patch_are_found_with_their_marks() {
    let patch = "+++ b/tools/server/tests/unit/test_a.py\n+@pytest.mark.slow # needs a model\n\
                 +@pytest.mark.parametrize(\"x\", [1])\n+def test_one(x: int):\n+    pass\n+def helper():\n\
                 +def test_two():\n def test_old():\n+++ b/common/a.cpp\n+def test_three():\n";
    let test = |name, is_slow| Added { file: "test_a.py", name, is_slow };
    assert_eq!(added(patch), [test("test_one", true), test("test_two", false)]);
    assert_eq!(target_of("tests/test-chat.cpp"), Some("test-chat"));
    assert_eq!(target_of("tests/peg-parser/test-basic.cpp"), Some("test-peg-parser"));
    assert_eq!(target_of("tests/snapshots/a.cpp"), None);
}
