//! `test --long` builds and records the flavors that this machine can build, and lists those that it skips.

use super::support::{Project, files};

/// Creates a project with a flavor for every outcome; `plugged` is built, and broken if `wrong` is requested.
fn project() -> Project {
    let project = Project::new();
    let plug = project.path("plug.cmake");
    files::write(
        &plug,
        "add_library(plug MODULE ${CMAKE_SOURCE_DIR}/src/count.c)\n\
         target_include_directories(plug PRIVATE ${CMAKE_SOURCE_DIR}/include)\n\
         set_target_properties(plug PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)\n",
    );
    let flavors = project.read("ci/flavors.toml")
        + &format!(
            "\n[flavors.away]\nabout = \"\"\nplatforms = [\"windows-x86_64\"]\n\
             \n[flavors.card]\nabout = \"\"\ntoolchain = \"card\"\n\
             \n[flavors.plugged]\nabout = \"\"\nhost = \"cpu-native\"\nmodules = [\"plug\"]\n\
             toolchain = \"plugs\"\ncmake = {{ CMAKE_PROJECT_INCLUDE = {:?} }}\n",
            plug.display().to_string()
        );
    project.write("ci/flavors.toml", flavors);
    project.write(
        "ci/toolchains.toml",
        "[toolchains.card]\nabout = \"a compiler\"\nown = { program = \"no-such-compiler\" }\n\
         [toolchains.plugs]\nabout = \"a compiler\"\nown = { program = \"git\" }\n",
    );
    project.run(&["lock"]).success();
    project
}

#[test]
fn built_and_skipped_flavors_are_listed() {
    let project = project();
    let stdout = project.run_build(&["test", "--long", "--dry-run"]).success().stdout;
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(
        lines[..4],
        [
            "cargo xtask build --record --variant paged --flavor cpu-native",
            "cargo xtask build --record --variant stock --flavor cpu-native",
            "cargo xtask build --record --variant paged --flavor plugged --no-smoke",
            "cargo xtask build --record --variant stock --flavor plugged --no-smoke",
        ]
    );
    assert_eq!(lines[4], "left out: away: it is built on windows-x86_64");
    assert!(lines[5].starts_with("left out: card: toolchain card"), "{stdout}");
    assert!(!project.path("ci/proofs").exists());
    let output = project
        .run_build(&["test", "--long"])
        .success()
        .says(&["Recorded under ci/proofs\n  next: cargo xtask docs    # then commit both"]);
    for line in [
        "left out: away: ",
        "left out: card: ",
        "paged-plugged    ok",
        "answers          ok",
        "5 passed, 0 failed",
    ] {
        assert!(output.stdout.contains(line), "no {line:?} in\n{output}");
    }
    let level = |name: &str| {
        let proof: serde_json::Value =
            serde_json::from_str(&project.read(&format!("ci/proofs/{name}.json"))).unwrap();
        proof["level"].as_str().unwrap().to_string()
    };
    assert_eq!([level("cpu-native-paged"), level("plugged-stock")], ["run", "compiled"]);
    // Flavors that take hours are built only when named.
    let mut proof = project.read("ci/proofs/plugged-stock.json");
    let at = proof.find("\"seconds\": ").unwrap() + "\"seconds\": ".len();
    proof.insert_str(at, "7201");
    project.write("ci/proofs/plugged-stock.json", proof);
    let stdout = project.run_build(&["test", "--long", "--dry-run"]).success().stdout;
    assert!(stdout.contains("s to compile; build it with `--only plugged`"), "{stdout}");
    let stdout = project.run_build(&["test", "--long", "--dry-run", "--only", "plugged"]).success().stdout;
    assert_eq!(stdout.lines().count(), 2, "{stdout}");
}

#[test]
fn a_failure_hides_no_other_result() {
    let project = project();
    project.edit("ci/flavors.toml", "modules = [\"plug\"]", "modules = [\"no-such\"]");
    let output = project.run_build(&["test", "--long"]).code(1);
    for line in
        ["paged-cpu-native ok", "paged-plugged    FAILED", "stock-plugged    FAILED", "3 passed, 2 failed"]
    {
        assert!(output.stdout.contains(line), "no {line:?} in\n{output}");
    }
    project.run(&["test", "--long", "--only", "nothing"]).code(2).says(&["there is no flavor `nothing`"]);
    project.run(&["test", "--list", "--dry-run"]).code(2);
}
