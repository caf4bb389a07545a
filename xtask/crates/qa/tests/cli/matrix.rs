//! CI's builds, and those that a change affects: determined by the inputs of the build, never guessed from paths.

use super::support::{Project, files, git};

/// Creates a committed project with two flavors, one of which reuses the programs of the other.
fn committed() -> Project {
    let project = Project::new();
    let flavors = project
        .read("ci/flavors.toml")
        .replace("about =", "base = \"plain\"\nplatforms = [\"linux-x86_64\"]\nabout =")
        + "\n[flavors.card]\nabout = \"a card\"\nplatforms = [\"linux-x86_64\", \"windows-x86_64\"]\n\
           host = \"cpu-native\"\nmodules = [\"card\"]\ntoolchain = \"card\"\nbase = \"plain\"\n\
           \n[bases.plain]\nabout = \"x\"\npackages = { linux-x86_64 = \"card\" }\n\
           \n[platforms]\nlinux-x86_64 = { runner = \"ubuntu\" }\nwindows-x86_64 = { runner = \"windows\" }\n";
    files::write(&project.path("ci/flavors.toml"), flavors);
    files::write(
        &project.path("ci/toolchains.toml"),
        format!(
            "[toolchains.card]\nabout = \"its compiler\"\nhosts = [\"linux-x86_64\", \"windows-x86_64\"]\n\
             crates = [{{ name = \"cardcc\", version = \"2.0\", bytes = 1, sha256 = \"{}\" }}]\n",
            "0".repeat(64)
        ),
    );
    project.run(&["lock"]).success();
    git::init(project.root());
    git::commit(project.root(), "All of it");
    project
}

/// Returns `variant flavor platform` of each row.
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
    let stdout = project.run(&["matrix"]).success().stdout;
    let first = "paged card       linux-x86_64   ubuntu  ";
    assert!(stdout.starts_with(first) && stdout.trim_end().ends_with("6 rows"), "{stdout}");
}

#[test]
fn a_column_is_as_wide_as_its_longest_entry() {
    let project = committed();
    let pins = project.read("pins.toml");
    let variant = "\n[variants.stock-by-another-name]\npin = \"hello\"\nflavors = [\"cpu-native\"]\n";
    project.write("pins.toml", pins + variant);
    project.run(&["lock"]).success();
    let stdout = project.run(&["matrix"]).success().stdout;
    let rows: Vec<&str> = stdout.lines().filter(|row| row.contains(" ubuntu ")).collect();
    let places: Vec<_> = rows.iter().map(|row| row.find(" linux-x86_64")).collect();
    assert!(rows.len() == 5 && places.iter().all(|place| *place == places[0]), "{stdout}");
}

#[test]
fn a_variant_may_be_for_some_flavors_only() {
    let project = committed();
    project.edit("pins.toml", "[variants.stock]", "[variants.stock]\nflavors = [\"cpu-native\"]");
    let expected: Vec<&str> = ALL.into_iter().filter(|row| !row.starts_with("stock card")).collect();
    assert_eq!(rows(&project, &[]), expected);
    project.edit("pins.toml", "[\"cpu-native\"]", "[\"cpu-nativ\"]");
    project
        .run(&["matrix"])
        .code(2)
        .says(&["there is no flavor `cpu-nativ`", "use one of: card, cpu-native"]);
}

#[test]
fn a_file_that_decides_no_byte_affects_nothing() {
    let project = committed();
    assert!(changed(&project).is_empty());
    project.write("README.md", "other words\n");
    project.edit("ci/flavors.toml", "about = \"a card\"", "about = \"a better card\"");
    project.edit("ci/toolchains.toml", "its compiler", "the compiler");
    assert!(changed(&project).is_empty());
    let stdout = project.run(&["matrix", "--changed-since", "HEAD", "--github"]).success().stdout;
    assert_eq!(stdout, "rows=0\nparts=0\n");
    let stdout =
        project.run(&["matrix", "--changed-since", "HEAD", "--github", "--parts", "1"]).success().stdout;
    assert_eq!(stdout, "rows=0\nparts=0\npart-1={\"include\":[]}\n");
}

#[test]
fn a_row_says_where_and_how_it_is_built() {
    let project = committed();
    let flavors = project.read("ci/flavors.toml")
        + "linux-aarch64 = { runner = \"arm\" }\n\
           \n[flavors.away]\nabout = \"\"\nplatforms = [\"linux-aarch64\"]\ntoolchain = \"card\"\n\
           \n[flavors.own]\nabout = \"\"\nplatforms = [\"linux-x86_64\"]\ntoolchain = \"own\"\n\
           \n[flavors.native]\nabout = \"\"\nbase = \"plain\"\nplatforms = [\"linux-x86_64\"]\ncmake = { GGML_NATIVE = \"ON\" }\n";
    files::write(
        &project.path("ci/flavors.toml"),
        flavors.replace("\"ubuntu\" }", "\"ubuntu\", container = \"debian@sha256:0\" }"),
    );
    let toolchains = project.read("ci/toolchains.toml");
    project.write(
        "ci/toolchains.toml",
        format!("{toolchains}[toolchains.own]\nabout = \"on PATH\"\nown = {{ program = \"owncc\" }}\n"),
    );
    let json = project.run(&["--json", "matrix"]).success().json();
    let row = |flavor: &str| {
        let rows = json["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["flavor"] == flavor).unwrap();
        ["runner", "container", "flags"].map(|key| row[key].as_str().unwrap().to_string())
    };
    assert_eq!(row("cpu-native"), ["ubuntu", "debian@sha256:0", ""]);
    // Its toolchain does not declare a device that it runs on.
    assert_eq!(row("card"), ["ubuntu", "debian@sha256:0", "--no-smoke"]);
    // Runs on the platform that its toolchain supports.
    assert_eq!(row("away"), ["ubuntu", "debian@sha256:0", "--no-smoke"]);
    assert_eq!(
        json["left_out"][0],
        serde_json::json!({ "row": "paged own linux-x86_64", "why": "no packages for own: on PATH" })
    );
    let images = rows(&project, &["--images"]);
    // `away` has no base image, `card` none for Windows, and `native` runs only where it was built.
    let expected = ["paged card linux-x86_64", "paged cpu-native linux-x86_64"];
    assert_eq!(images[..2], expected);
    assert_eq!(images.len(), 4, "{images:?}");
}

#[test]
fn another_machine_is_another_build() {
    let project = committed();
    project.edit("ci/flavors.toml", "runner = \"ubuntu\"", "runner = \"newer\"");
    let on_linux: Vec<&str> = ALL.into_iter().filter(|row| row.contains("linux")).collect();
    assert_eq!(changed(&project), on_linux);
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

    let project = committed();
    let pins = project.read("pins.toml");
    let (_, cmake) = pins.split_once("[tools.cmake]").unwrap();
    let version = cmake.lines().find(|line| line.starts_with("version = ")).unwrap();
    project.edit("pins.toml", version, "version = \"4.0.0\"");
    assert_eq!(changed(&project), ALL);
}

#[test]
fn a_comparison_that_fails_builds_everything() {
    let project = committed();
    let all = |reference: &str| {
        let output = project.run(&["matrix", &format!("--changed-since={reference}")]).success();
        assert!(output.stdout.trim_end().ends_with("6 rows"), "{}", output.stdout);
        output.says(&[&format!("warning: everything is built: `{reference}` cannot be compared")]);
    };
    all("no-such-branch");
    all("");
    all("0000000000000000000000000000000000000000");
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
    project.edit("ci/flavors.toml", "\"ubuntu\" }", "\"ubuntu\", container = \"debian:12\" }");
    project.run(&["matrix"]).code(2).says(&["expected an image with its digest: NAME@sha256:..."]);
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
    let stdout = project.run(&["matrix", "--github"]).success().stdout;
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines[..2], ["rows=266", "parts=2"]);
    let stdout = project.run(&["matrix", "--github", "--parts", "3"]).success().stdout;
    assert!(
        stdout.starts_with("rows=266\nparts=2\n") && stdout.ends_with("\npart-3={\"include\":[]}\n"),
        "{stdout}"
    );
    project.run(&["matrix", "--github", "--parts", "1"]).code(2).says(&[
        "error: 266 rows make 2 parts, and there are jobs for 1",
        "next: add a job for each part to the workflow, and raise `--parts`",
    ]);
    let count = |line: &str| {
        let json: serde_json::Value = serde_json::from_str(line.split_once('=').unwrap().1).unwrap();
        json["include"].as_array().unwrap().len()
    };
    assert_eq!((count(lines[2]), count(lines[3]), lines.len()), (256, 10, 4));
}
