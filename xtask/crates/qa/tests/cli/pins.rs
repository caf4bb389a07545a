//! Mistakes in `pins.toml` and on the command line.

use super::support::{Output, Project, Source};

fn after(from: &str, to: &str) -> Output {
    let project = Project::with_sources(&[Source::Path("upstream".into())]);
    project.edit("pins.toml", from, to);
    let output = project.run(&["apply"]);
    assert!(!project.path("target").exists(), "a mistake in `pins.toml` wrote something");
    output
}

#[test]
fn a_key_that_does_not_exist() {
    insta::assert_snapshot!(after("patches =", "patch ="), @r#"
    exit: 2
    -- stdout --

    -- stderr --
    error: invalid `pins.toml`
        --> pins.toml:16:1
         |
      16 | patch = "patches/paged"
         | ^^^^^ unknown field `patch`, expected one of `pin`, `extends`, `patches`, `overlays`, `kernels`, `front`, `gate`, `flavors`, `cmake`, `like`
    "#);
}

#[test]
fn a_tree_id_that_is_too_short() {
    let tree = super::support::upstream::Upstream::shared().tree();
    insta::assert_snapshot!(after(&tree, &tree[..8]), @r#"
    exit: 2
    -- stdout --

    -- stderr --
    error: invalid `pins.toml`
       --> pins.toml:6:8
        |
      6 | tree = "f11e88fc"
        |        ^^^^^^^^^^ a tree id is 40 hexadecimal digits: `git rev-parse TAG^{tree}`
    "#);
}

#[test]
fn a_line_that_is_not_toml() {
    insta::assert_snapshot!(after("upstream = \"hello\"", "upstream = hello"), @r"
    exit: 2
    -- stdout --

    -- stderr --
    error: invalid `pins.toml`
       --> pins.toml:4:12
        |
      4 | upstream = hello
        |            ^^^^^ string values must be quoted, expected literal string
    ");
}

#[test]
fn a_missing_value() {
    insta::assert_snapshot!(after("upstream = \"hello\"\n", ""), @r"
    exit: 2
    -- stdout --

    -- stderr --
    error: invalid `pins.toml`
       --> pins.toml:3:1
        |
      3 | [pins.hello]
        | ^^^^^^^^^^^^ missing field `upstream`
    ");
}

#[test]
fn a_parent_that_does_not_exist() {
    insta::assert_snapshot!(after("extends = \"stock\"", "extends = \"stok\""), @r#"
    exit: 2
    -- stdout --

    -- stderr --
    error: invalid `pins.toml`
        --> pins.toml:15:11
         |
      15 | extends = "stok"
         |           ^^^^^^ no variant has this name
    "#);
}

#[test]
fn a_circle() {
    insta::assert_snapshot!(after("extends = \"stock\"", "extends = \"paged\""), @r#"
    exit: 2
    -- stdout --

    -- stderr --
    error: invalid `pins.toml`
        --> pins.toml:15:11
         |
      15 | extends = "paged"
         |           ^^^^^^^ this variant extends itself, in a circle
    "#);
}

#[test]
fn a_source_of_two_kinds() {
    insta::assert_snapshot!(after("{ path =", "{ git = \"https://espalier.invalid/x\", path ="), @r#"
    exit: 2
    -- stdout --

    -- stderr --
    error: invalid `pins.toml`
       --> pins.toml:8:5
        |
      8 |     { git = "https://espalier.invalid/x", path = "upstream" },
        |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ a source is `git = URL`, or `npm = PACKAGE` with `member` and `versions`, or `pip = PACKAGE` with `member` or `files`, `versions` and `sha256`, or `path = PATH`
    "#);
}

#[test]
fn a_folder_outside_of_the_repository() {
    insta::assert_snapshot!(after("\"patches/paged\"", "\"../patches\""), @r#"
    exit: 2
    -- stdout --

    -- stderr --
    error: invalid `pins.toml`
        --> pins.toml:16:11
         |
      16 | patches = "../patches"
         |           ^^^^^^^^^^^^ a folder inside the repository, without `..`
    "#);
}

#[test]
fn a_folder_of_patches_below_itself() {
    let twin = "[variants.twin]\nextends = \"paged\"\npatches = \"patches/paged\"\n\n[variants.paged]";
    after("[variants.paged]", twin).code(2).says(&[
        "--> pins.toml:20:11",
        "a folder of patches fits one tree: `twin` has it after `patches/paged` on the pin `hello`",
        "next: remove `patches` from `[variants.twin]`: what `twin` extends has these patches",
    ]);
}

/// Git does not store empty folders: a series without patches is missing in a fresh clone.
#[test]
fn a_series_that_is_not_there_is_empty() {
    let project = Project::new();
    std::fs::remove_dir_all(project.path("patches")).unwrap();
    project.run(&["lint"]).success().says(&["`patches/paged` is not there: an empty series"]);
    for command in ["apply", "lock", "status", "edit", "export"] {
        project.run(&[command]).success();
    }
    assert!(project.tree("paged").join("espalier/note.txt").exists());
}

#[test]
fn a_variant_that_does_not_exist() {
    let project = Project::new();
    insta::assert_snapshot!(project.run(&["apply", "--variant", "pagd"]), @r"
    exit: 2
    -- stdout --

    -- stderr --
    error: there is no variant `pagd` in `pins.toml`
      next: use one of: paged, stock
    ");
}

#[test]
fn a_flavor_that_does_not_exist() {
    let project = Project::new();
    insta::assert_snapshot!(project.run(&["build", "--flavor", "cuda"]), @r"
    exit: 2
    -- stdout --

    -- stderr --
    error: there is no flavor `cuda` in `ci/flavors.toml`
      next: use one of: cpu-native
    ");
}

#[test]
fn a_command_that_does_not_exist() {
    let project = Project::new();
    insta::assert_snapshot!(project.run(&["fetsh"]), @r"
    exit: 2
    -- stdout --

    -- stderr --
    error: unrecognized subcommand 'fetsh'

      tip: a similar subcommand exists: 'fetch'

    Usage: cargo xtask [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
}

#[test]
fn no_pins_toml() {
    let project = Project::new();
    std::fs::remove_file(project.path("pins.toml")).unwrap();
    insta::assert_snapshot!(project.run(&["fetch"]), @r"
    exit: 2
    -- stdout --

    -- stderr --
    error: there is no `pins.toml`
      next: run this inside the repository, or name it: --root DIR
    ");
}

#[test]
fn no_flavors() {
    let project = Project::new();
    std::fs::remove_file(project.path("ci/flavors.toml")).unwrap();
    project.run(&["build"]).code(2).says(&["`ci/flavors.toml` is missing", "  next: "]);
    assert!(!project.path("target").exists());
}

#[test]
fn a_root_that_does_not_exist() {
    let project = Project::new();
    std::fs::remove_dir_all(project.root()).unwrap();
    let mut command = project.command(&["fetch"]);
    command.current_dir(project.beside("home"));
    let output = project.finish(command).code(2).says(&["there is no folder `[ROOT]`", "  next: "]);
    assert!(!project.root().exists(), "{output}");
    output.says(&["next: or, for a new project, create it: mkdir -p [ROOT]"]);
}

#[test]
fn from_a_folder_inside_the_project_its_root_is_found() {
    let project = Project::new();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_espalier-qa"));
    command.current_dir(project.path("patches/paged")).args(["fetch", "--dry-run"]);
    assert!(project.finish(command).success().stdout.starts_with("hello v1.0 tree"));
}

/// Guards against quadratic time: each variant was followed to its pin, and every step was compared with all before it.
#[test]
fn a_long_chain_of_variants_is_read_in_time() {
    let project = Project::new();
    let chain: String =
        (1..3000).map(|at| format!("[variants.v{at}]\nextends = \"{}\"\n", parent_of(at))).collect();
    let text = project.read("pins.toml") + &chain;
    project.write("pins.toml", text);
    let begin = std::time::Instant::now();
    project.run(&["fetch", "--dry-run"]).success();
    assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
    project.edit("pins.toml", "[variants.v1]\nextends = \"stock\"", "[variants.v1]\nextends = \"v2999\"");
    project.run(&["fetch", "--dry-run"]).code(2).says(&["in a circle"]);
}

fn parent_of(at: usize) -> String {
    if at == 1 { "stock".to_string() } else { format!("v{}", at - 1) }
}
