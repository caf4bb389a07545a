//! Flavors that share programs, early refusals, and the record of a build.

use super::support::{Project, files, program_path};

const BUILD: &str = "target/espalier/build";
const DIST: &str = "target/espalier/dist";

/// Creates a project with a flavor `plugged` that adds the module `plug` to the programs of `cpu-native`.
fn with_plugged() -> Project {
    let project = Project::new();
    let plug = project.path("plug.cmake");
    files::write(
        &plug,
        "add_library(plug MODULE ${CMAKE_SOURCE_DIR}/src/count.c)\n\
         target_include_directories(plug PRIVATE ${CMAKE_SOURCE_DIR}/include)\n\
         set_target_properties(plug PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)\n",
    );
    add(
        &project,
        &format!(
            "\n[flavors.plugged]\nabout = \"with a plug\"\nhost = \"cpu-native\"\nmodules = [\"plug\"]\n\
             cmake = {{ CMAKE_PROJECT_INCLUDE = {:?} }}\n",
            plug.display().to_string()
        ),
    );
    project
}

fn add(project: &Project, text: &str) {
    let flavors = project.read("ci/flavors.toml") + text;
    files::write(&project.path("ci/flavors.toml"), &flavors);
}

#[test]
fn a_flavor_with_a_host_compiles_its_module_and_takes_the_rest() {
    let project = with_plugged();
    project.run_build(&["build"]).success();
    let before = files::times(&project.path(&format!("{BUILD}/paged-cpu-native")));
    let output = project.run_build(&["build", "--flavor", "plugged"]).success();
    output.says(&["Current paged-cpu-native", "Finished paged-plugged"]);
    assert_eq!(files::times(&project.path(&format!("{BUILD}/paged-cpu-native"))), before);
    let package = files::list(&project.path(&format!("{DIST}/paged-plugged")));
    let documents = ["manifest.json", "provenance.json", "sbom.cdx.json"];
    assert_eq!(package, [&["bin/hello", "bin/libplug.so", "bin/llama-server"][..], &documents].concat());
    let compiled = project.read(&format!("{BUILD}/paged-plugged/.ninja_log"));
    assert!(compiled.contains("libplug.so") && !compiled.contains("hello"), "{compiled}");
    project.run_build(&["build", "--flavor", "plugged"]).success().says(&["Current paged-plugged"]);
}

#[test]
fn a_host_that_is_not_built_is_built_first_and_the_dry_run_says_so() {
    let project = with_plugged();
    let stdout = project.run(&["build", "--flavor", "plugged", "--dry-run"]).success().stdout;
    let compiled: Vec<&str> = stdout.lines().filter(|line| line.starts_with("compile")).collect();
    assert!(compiled[0].ends_with("paged-cpu-native hello llama-server"), "{stdout}");
    assert!(compiled[1].ends_with("paged-plugged plug") && compiled.len() == 2, "{stdout}");
    let output = project.run_build(&["build", "--flavor", "plugged"]).success();
    output.says(&["Finished paged-cpu-native", "Finished paged-plugged"]);
}

#[test]
fn a_module_that_was_not_built_is_named_and_no_package_appears() {
    let project = with_plugged();
    project.edit("ci/flavors.toml", "modules = [\"plug\"]", "modules = [\"plug\", \"words\"]");
    let output = project.run_build(&["build", "--flavor", "plugged"]).code(1);
    output.says(&["error: the module `words` was not built"]);
    assert!(!project.path(&format!("{DIST}/paged-plugged")).exists());
}

#[test]
fn flavors_that_cannot_be_built_are_refused_before_a_step_starts() {
    let project = Project::new();
    add(
        &project,
        "\n[flavors.elsewhere]\nabout = \"another system\"\nplatforms = [\"windows-x86_64\"]\n\
         \n[families.chips]\noption = \"CHIPS\"\nknown = [\"one\", \"two\"]\n\
         \n[flavors.chip]\nabout = \"a chip\"\nfamily = \"chips\"\narchitectures = [\"one\"]\n",
    );
    let refused = |arguments: &[&str]| project.run(&[&["build", "--flavor"], arguments].concat());
    refused(&["elsewhere"]).code(3).says(&[
        "error: the flavor `elsewhere` is built on windows-x86_64, and this is ",
        "next: run it there, or build the one for this machine: --flavor cpu-native",
    ]);
    insta::assert_snapshot!(refused(&["chip", "--architectures", "one,three"]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: there is no architecture `three`: one or more of one, two
    ");
    insta::assert_snapshot!(refused(&["cpu-native", "--architectures", "one"]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: this flavor is not compiled for an architecture: leave `--architectures` out
    ");
    insta::assert_snapshot!(refused(&["gpu"]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: there is no flavor `gpu` in `ci/flavors.toml`
      next: use one of: chip, cpu-native, elsewhere
    ");
    assert!(!project.path("target/espalier/store.git").exists());
}

#[test]
fn a_mistake_in_the_table_is_underlined() {
    let project = Project::new();
    let table = project.read("ci/flavors.toml");
    let with = |text: &str| {
        files::write(&project.path("ci/flavors.toml"), format!("{table}\n{text}"));
        project.run(&["build"])
    };
    let chips =
        "[families.chips]\noption = \"CHIPS\"\nknown = [\"one\", \"two\"]\n[flavors.chip]\nabout = \"\"\n";
    insta::assert_snapshot!(with("[flavors.a]\nabout = \"\"\nhost = \"b\"\n"), @r#"
    exit: 2
    -- stdout --

    -- stderr --
    error: invalid `ci/flavors.toml`
        --> ci/flavors.toml:11:8
         |
      11 | host = "b"
         |        ^^^ there is no such flavor
    "#);
    with("[flavors.a]\nabout = \"\"\nhost = \"cpu-native\"\n[flavors.b]\nabout = \"\"\nhost = \"a\"\n")
        .code(2)
        .says(&["this flavor has no programs of its own"]);
    with(&format!("{chips}family = \"chips\"\n")).code(2).says(&["`architectures` is missing"]);
    with(&format!("{chips}architectures = [\"one\"]\n")).code(2).says(&["`family` is missing"]);
    with(&format!("{chips}family = \"cards\"\narchitectures = [\"one\"]\n"))
        .code(2)
        .says(&["there is no such `[families.*]`"]);
    insta::assert_snapshot!(with(&format!("{chips}family = \"chips\"\narchitectures = []\n")), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: invalid `ci/flavors.toml`
        --> ci/flavors.toml:15:17
         |
      15 | architectures = []
         |                 ^^ no architecture is named: one or more of one, two
    ");
    insta::assert_snapshot!(with(&format!("{chips}family = \"chips\"\narchitectures = [\"one\", \"three\"]\n")), @r#"
    exit: 2
    -- stdout --

    -- stderr --
    error: invalid `ci/flavors.toml`
        --> ci/flavors.toml:15:17
         |
      15 | architectures = ["one", "three"]
         |                 ^^^^^^^^^^^^^^^^ there is no architecture `three`: one or more of one, two
    "#);
}

/// Creates a project with a flavor whose toolchain is a program that prints its version, on PATH or not.
fn with_toolchain() -> Project {
    let project = Project::new();
    add(&project, "\n[flavors.gpu]\nabout = \"a card\"\nhost = \"cpu-native\"\ntoolchain = \"card\"\n");
    files::write(
        &project.path("ci/toolchains.toml"),
        "[toolchains.card]\nabout = \"the card's compiler\"\nown = { program = \"cardcc\", at-least = \"2.0\" }\n",
    );
    project
}

#[test]
fn a_toolchain_that_is_not_there_is_named_with_the_command_that_sets_it_up() {
    let project = with_toolchain();
    insta::assert_snapshot!(project.run_build(&["build", "--flavor", "gpu", "--dry-run"]), @"
    exit: 3
    -- stdout --

    -- stderr --
    error: the flavor `gpu` needs the toolchain `card`: the card's compiler
      next: cargo xtask toolchain gpu
      next: or see what is there and what is not: cargo xtask doctor gpu
    ");
}

#[test]
fn a_compiler_of_the_machines_own_does_instead() {
    let project = with_toolchain();
    for (version, code) in [("1.9", 3), ("2.1", 0)] {
        let tool = project.path("tools/cardcc");
        files::write_script(&tool, &format!("echo cardcc {version}"));
        let path = std::env::join_paths(
            [tool.parent().unwrap().to_path_buf()]
                .into_iter()
                .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
        );
        let path = path.unwrap().into_string().unwrap();
        project.run_with_path(&["build", "--flavor", "gpu", "--dry-run"], &path).code(code);
    }
}

const TABLE: &str =
    "# Flavors\n\n<!-- flavors: generated by `cargo xtask docs`, do not edit -->\n<!-- end of flavors -->\n";

#[test]
fn a_record_says_how_far_a_build_got_and_the_documents_follow() {
    let project = Project::new();
    files::write(&project.path("README.md"), TABLE);
    files::write(&project.path("docs/guides/flavors.md"), TABLE);
    project.run(&["docs"]).success();
    assert!(
        project
            .read("README.md")
            .contains("| `cpu-native` | the processor of the machine that builds it | 3 (declared) |  |  |")
    );
    for (arguments, tier, level) in
        [(&["--configure-only"][..], 3, "configured"), (&["--no-smoke"], 2, "compiled"), (&[], 1, "run")]
    {
        let command = [&["build", "--record"], arguments].concat();
        project.run_build(&command).success().says(&["Recorded paged-cpu-native", level]);
        project.run(&["docs", "--check"]).code(1).says(&["`README.md` is stale", "flavors.toml or a proof"]);
        project.run(&["docs"]).success();
        let row = format!(
            "| `cpu-native` | the processor of the machine that builds it | {tier} ({level}) | v1.0 | 20"
        );
        assert!(project.read("README.md").contains(&row), "{}", project.read("README.md"));
    }
    let proof: serde_json::Value =
        serde_json::from_str(&project.read("ci/proofs/cpu-native-paged.json")).unwrap();
    assert_eq!(proof["command"], "cargo xtask build --record --variant paged --flavor cpu-native");
    assert!(proof["bytes"].as_u64().unwrap() > 0, "{proof}");
    project.edit("ci/proofs/cpu-native-paged.json", "\"run\"", "\"perfect\"");
    project.run(&["docs"]).code(2).says(&["invalid `ci/proofs/cpu-native-paged.json`", "perfect"]);
}

/// Runs before `main`: lists a device when the environment asks for one.
const LISTS_DEVICES: &str = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
    __attribute__((constructor)) static void devices(int argc, char ** argv) {\n\
    if (argc == 2 && !strcmp(argv[1], \"--list-devices\")) {\n\
    printf(\"Available devices:\\n  %s\\n\", getenv(\"A_DEVICE\") ? \"Plug0: a plug\" : \"(none)\");\n\
    exit(0);\n}\n}\n";

#[test]
fn an_accelerator_that_answers_on_the_processor_has_not_run() {
    let project = with_plugged();
    let header = project.path("devices.h");
    files::write(&header, LISTS_DEVICES);
    let flag = format!("CMAKE_C_FLAGS = {:?}", format!("-include {}", header.display()));
    project.edit("ci/flavors.toml", "[cmake]", &format!("[cmake]\n{flag}"));
    let record = |device: Option<&str>| {
        let arguments = ["build", "--record", "--flavor", "plugged"];
        let mut command = project.command_with_path(&arguments, &program_path::with_build_tools());
        command.envs(device.map(|device| ("A_DEVICE", device)));
        project.finish(command).success()
    };
    record(None).says(&["it finds no device of its own, so it counts as compiled", "plugged: compiled in"]);
    record(Some("1")).says(&["plugged: run in"]).says_nothing_of("no device");
}

#[test]
fn a_build_that_fails_leaves_no_record() {
    let project = Project::new();
    project.edit("ci/flavors.toml", "\"hello\", ", "\"hello\", \"no-such-program\", ");
    project.run_build(&["build", "--record"]).code(1);
    assert!(!project.path("ci/proofs").exists());
}
