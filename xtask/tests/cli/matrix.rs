//! What CI builds, and what of it a change affects: by what decides the bytes, never by guessing from paths.

use super::support::{Project, files, git};

/// A committed project with two flavors, of which one takes the programs of the other.
fn committed() -> Project {
    let project = Project::new();
    let flavors = project
        .read("ci/flavors.toml")
        .replace("about =", "platforms = [\"linux-x86_64\"]\nabout =")
        + "\n[flavors.card]\nabout = \"a card\"\nplatforms = [\"linux-x86_64\", \"windows-x86_64\"]\n\
           host = \"cpu-native\"\nmodules = [\"card\"]\ntoolchain = \"card\"\n\
           \n[platforms]\nlinux-x86_64 = { runner = \"ubuntu\" }\nwindows-x86_64 = { runner = \"windows\" }\n";
    files::write(&project.path("ci/flavors.toml"), flavors);
    files::write(
        &project.path("ci/toolchains.toml"),
        "[toolchains.card]\nabout = \"its compiler\"\nown = { program = \"cardcc\", at-least = \"2.0\" }\n",
    );
    project.run(&["lock"]).success();
    git::init(project.root());
    git::commit(project.root(), "All of it");
    project
}

/// `variant flavor platform` of each row.
fn rows(project: &Project, more: &[&str]) -> Vec<String> {
    let json = project.run(&[&["--json", "matrix"], more].concat()).success().json();
    let word = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap().to_string();
    let row = |row| format!("{} {} {}", word(row, "variant"), word(row, "flavor"), word(row, "platform"));
    json["rows"].as_array().unwrap().iter().map(row).collect()
}

fn changed(project: &Project) -> Vec<String> {
    rows(project, &["--changed-since", "HEAD"])
}

const ALL: [&str; 6] = [
    "paged card linux-x86_64",
    "paged card windows-x86_64",
    "paged cpu-native linux-x86_64",
    "stock card linux-x86_64",
    "stock card windows-x86_64",
    "stock cpu-native linux-x86_64",
];

#[test]
fn there_is_a_row_for_each_variant_flavor_and_platform() {
    let project = committed();
    assert_eq!(rows(&project, &[]), ALL);
    let json = project.run(&["--json", "matrix"]).success().json();
    let first = &json["rows"][0];
    assert_eq!((&first["runner"], &first["image"]), (&"ubuntu".into(), &"paged-card-v1.0".into()));
    assert_ne!(first["toolchain"], "");
    assert_eq!(json["rows"][2]["toolchain"], "");
    let said = project.run(&["matrix"]).success().stdout;
    assert!(said.starts_with("paged      card") && said.trim_end().ends_with("6 rows"), "{said}");
}

#[test]
fn what_decides_no_byte_affects_nothing() {
    let project = committed();
    assert!(changed(&project).is_empty());
    project.write("README.md", "other words\n");
    project.edit("ci/flavors.toml", "about = \"a card\"", "about = \"a better card\"");
    project.edit("ci/toolchains.toml", "its compiler", "the compiler");
    assert!(changed(&project).is_empty());
    let said = project.run(&["matrix", "--changed-since", "HEAD", "--github"]).success().stdout;
    assert_eq!(said, "rows=0\nparts=0\n");
}

#[test]
fn a_change_affects_the_rows_that_it_is_in() {
    let project = committed();
    project.edit("ci/toolchains.toml", "2.0", "2.1");
    let cards: Vec<&str> = ALL.into_iter().filter(|row| row.contains(" card ")).collect();
    assert_eq!(changed(&project), cards);

    let project = committed();
    project.edit("ci/flavors.toml", "modules = [\"card\"]", "modules = [\"card\", \"cards\"]");
    assert_eq!(changed(&project), cards);

    let project = committed();
    std::fs::remove_file(project.path("patches/paged/0003-greet-dearly.patch")).unwrap();
    project.run(&["lock"]).success();
    let paged: Vec<&str> = ALL.into_iter().filter(|row| row.starts_with("paged")).collect();
    assert_eq!(changed(&project), paged);

    let project = committed();
    project.edit("ci/flavors.toml", "\"Release\"", "\"Debug\"");
    assert_eq!(changed(&project), ALL);
}

#[test]
fn what_cannot_be_understood_builds_everything() {
    let project = committed();
    let all = |reference: &str| {
        let said = project.run(&["matrix", &format!("--changed-since={reference}")]).success();
        assert!(said.stdout.trim_end().ends_with("6 rows"), "{}", said.stdout);
        said.says(&[&format!("warning: everything is built: `{reference}` cannot be compared")]);
    };
    all("no-such-branch");
    all("--output=x");
    assert!(!project.path("x").exists());
    project.edit("ci/flavors.toml", "[platforms]", "[platform]");
    git::commit(project.root(), "A mistake");
    project.edit("ci/flavors.toml", "[platform]", "[platforms]");
    all("HEAD");
}

#[test]
fn a_mistake_of_today_is_an_error() {
    let project = committed();
    project.edit("ci/flavors.toml", "windows-x86_64 = { runner = \"windows\" }\n", "");
    project.run(&["matrix"]).code(2).says(&["has no runner for windows-x86_64"]);
    let project = committed();
    project.edit("espalier.lock", "[variants.stock]", "[variants.other]");
    project
        .run(&["matrix"])
        .code(2)
        .says(&["variant stock is not in `espalier.lock`", "next: cargo xtask lock"]);
}

#[test]
fn more_rows_than_a_matrix_may_have_are_split() {
    let project = committed();
    let more: String = (0..130)
        .map(|number| format!("\n[flavors.f{number}]\nabout = \"\"\nplatforms = [\"linux-x86_64\"]\n"))
        .collect();
    files::write(&project.path("ci/flavors.toml"), project.read("ci/flavors.toml") + &more);
    let said = project.run(&["matrix", "--github"]).success().stdout;
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..2], ["rows=266", "parts=2"]);
    let count = |line: &str| {
        let json: serde_json::Value = serde_json::from_str(line.split_once('=').unwrap().1).unwrap();
        json["include"].as_array().unwrap().len()
    };
    assert_eq!((count(lines[2]), count(lines[3]), lines.len()), (256, 10, 4));
}
