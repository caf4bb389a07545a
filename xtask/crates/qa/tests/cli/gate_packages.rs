//! The packages that a gate, a fuzzer or a bench runs: of the current sources, and the same ones until a gate ends.

use super::support::Project;
use super::support::gating::{break_header, gated};

const OUTDATED: [&str; 2] = [
    "error: paged-cpu-native was built before patches, overlays or Rust sources changed",
    "next: cargo xtask build --variant paged --flavor cpu-native\n",
];

/// A check of an earlier build would pass although the current patches are wrong.
#[test]
fn a_package_of_earlier_sources_is_refused() {
    let project = Project::new();
    project.edit(
        "pins.toml",
        "overlays = [\"overlay/extra\"]\n",
        "overlays = [\"overlay/extra\"]\ngate = \"stock\"\n",
    );
    for probe in ["probe.cpp", "quality.cpp"] {
        project.write(&format!("ci/probe/{probe}"), "");
    }
    for variant in ["stock", "paged"] {
        project.run_build(&["build", "--variant", variant]).success();
    }
    let checks: [&[&str]; 5] = [
        &["gate", "--only", "logits"],
        &["gate", "--only", "promises"],
        &["fuzz", "servers", "--rounds", "1"],
        &["bench", "decode", "--busy-anyway"],
        &["bench", "kv-quality"],
    ];
    // Only this check ends with the program that this project calls its server.
    project.run(checks[0]).says_nothing_of("was built before");
    project.write("overlay/extra/espalier/note.txt", "edited\n");
    for check in checks {
        project.run(check).code(2).says(&OUTDATED);
    }
    // The lock has the new tree, the package has not.
    project.run(&["lock"]).success();
    project.run(checks[0]).code(2).says(&OUTDATED);
    project.run_build(&["build"]).success();
    project.run(checks[0]).says_nothing_of("was built before");
}

/// Otherwise some answers would be of the old build and some of the new one.
#[test]
fn a_package_that_is_built_again_during_the_gate_fails_it() {
    let project = gated();
    let folder = project.path("target/espalier/build/paged-cpu-native").display().to_string();
    let stamp = r#"{\"inputs\": \"of another build\", \"files\": {}}"#;
    let build =
        format!("(system(\"mkdir -p {folder} && echo '{stamp}' > {folder}/espalier-stamp.json\"), 0)");
    break_header(&project, "exit_code", &build);
    let output = project.run(&["gate", "--only", "logits", "--model", "qwen35"]).code(3);
    output.says(&[
        "error: paged-cpu-native was built again while it was checked",
        "run the same command again",
    ]);
}
