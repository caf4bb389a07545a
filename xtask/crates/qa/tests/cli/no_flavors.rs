//! A project that has patches but no builds has no `ci/flavors.toml`.

use super::support::importing::started;
use super::support::{Project, files};

#[test]
fn nothing_to_build_is_not_an_error() {
    let project = started();
    project.write("target/espalier/dist/my-cpu/bin/llama-server", "built elsewhere");
    let matrix = project.run(&["matrix"]).success();
    assert!(matrix.stdout.starts_with("0 rows: there is no `ci/flavors.toml`"), "{matrix}");
    assert_eq!(project.run(&["matrix", "--github"]).success().stdout, "rows=0\nparts=0\n");
    let doctor = project.run(&["doctor"]).success();
    assert!(doctor.stdout.contains("\nno flavors: "), "{doctor}");
    project.run(&["gc"]).success();
    assert!(
        project.path("target/espalier/dist/my-cpu/bin/llama-server").exists(),
        "it is not known which builds are used"
    );
}

/// Nothing is fetched and compared first.
#[test]
fn the_canary_refuses_levels_that_build() {
    let project = started();
    for command in [&["canary"][..], &["canary", "--dry-run"], &["canary", "--until", "contract"]] {
        let output = project.run(command).code(2);
        output.says(&["`ci/flavors.toml` is missing", "the same command with --until status"]);
    }
    let plan = project.run(&["canary", "--dry-run", "--until", "status"]).success().stdout;
    assert_eq!(plan.lines().count(), 2, "{plan}");
}

#[test]
fn no_hint_names_a_file_that_never_was() {
    let project = started();
    for command in [&["doctor", "cpu"][..], &["build"], &["toolchain", "cpu"]] {
        let output = project.run(command).code(2);
        let output =
            output.says(&["`ci/flavors.toml` is missing", "next: copy the one of a clone of Espalier"]);
        output.says_nothing_of("git checkout");
    }
}

/// Each `next:` line of `doctor` for the flavors of this repository, on a machine that has nothing installed.
#[test]
fn every_next_line_of_doctor_can_be_pasted() {
    let project = Project::new();
    for name in ["ci/flavors.toml", "ci/toolchains.toml"] {
        project.write(name, std::fs::read(files::of_this_repository(name)).unwrap());
    }
    let output = project.run_with_path(&["doctor"], "").success();
    let lines: Vec<&str> = output.stdout.lines().filter_map(|line| line.strip_prefix("  next: ")).collect();
    assert!(lines.len() > 8, "{output}");
    for line in lines {
        let program = line.split(' ').next().unwrap();
        let programs = ["cargo", "apt-get", "dnf", "pacman", "brew", "winget", "xcode-select", "unset"];
        assert!(programs.contains(&program), "{line}");
        let command = line.split('#').next().unwrap();
        assert!(!command.contains(','), "{line}");
        let checked = std::process::Command::new("sh").args(["-n", "-c", line]).status().unwrap();
        assert!(checked.success(), "{line}");
    }
}

#[test]
fn a_misspelt_variable_is_reported() {
    let project = Project::new();
    let mut command = project.command(&["doctor"]);
    command.env("ESPALIER_ENABEL", "attention").env("ESPALIER_ENABLE", "attention");
    let output = project.finish(command).success();
    let output =
        output.says(&["nothing reads the variable `ESPALIER_ENABEL`; did you mean `ESPALIER_ENABLE`?"]);
    assert_eq!(output.stderr.matches("nothing reads").count(), 1, "{output}");
}
