//! `doctor` reports which flavors this machine can build, and its hints work.

use super::support::registries::Registries;
use super::support::{Project, files, program_path};

#[test]
fn missing_parts_and_their_fixes() {
    let registries = Registries::new();
    let output = registries.run(&["doctor", "gpu"]).code(1);
    for line in [
        "\ngpu: missing\n",
        "  missing  C++ compiler",
        "  missing  toolchain gpu: 0 MB to download",
        "  missing  to run it, soft: a GPU in software",
        "  next: cargo xtask toolchain gpu",
    ] {
        assert!(output.stdout.contains(line), "no {line:?} in\n{output}");
    }
    assert_eq!(registries.asked(), "");
    registries.run(&["toolchain", "gpu"]).success();
    let output = registries.run(&["doctor", "gpu"]).code(1);
    assert!(output.stdout.contains("  there    toolchain gpu: target/toolchains/gpu-"), "{output}");
    assert!(!output.stdout.contains("next: cargo xtask toolchain"), "{output}");
}

#[test]
fn a_machine_that_has_it_all() {
    let project = Project::new();
    let output = project.run_build(&["doctor", "cpu-native"]).success();
    assert!(
        output.stdout.starts_with("this machine: ")
            && output.stdout.trim_end().ends_with("\ncpu-native: ready"),
        "{output}"
    );
    assert!(output.stdout.contains("\n  there    cmake: "), "{output}");
    assert!(!project.path("target").exists());
    project
        .run(&["doctor", "cuda99"])
        .code(2)
        .says(&["there is no flavor `cuda99`", "use one of: cpu-native"]);
}

#[test]
fn all_flavors_are_examined_and_the_exit_code_is_0() {
    let registries = Registries::new();
    let json = registries.run(&["--json", "doctor"]).success().json();
    assert_eq!(json["flavors"]["gpu"]["verdict"], "missing");
    assert_eq!(json["flavors"].as_object().unwrap().len(), 2);
    let fixes = json["flavors"]["gpu"]["fix"].as_array().unwrap();
    assert!(fixes.iter().any(|line| line == "cargo xtask toolchain gpu"), "{json}");
}

/// Every flavor can be built without npm, but the consequence is reported.
#[test]
fn without_npm_the_missing_features_are_reported() {
    let project = Project::new();
    let without =
        program_path::only(&project.beside("bin"), &["git", "cmake", "ninja", "cc", "c++", "python3"]);
    let output = project.run_with_path(&["doctor", "cpu-native"], without.as_os_str());
    assert!(output.stdout.contains("\n  lacks    npm: builds have no chat page at `/`"), "{output}");
    files::write_script(&project.beside("bin/npm"), "true");
    let output = project.run_with_path(&["doctor", "cpu-native"], without.as_os_str());
    assert!(!output.stdout.contains("npm"), "{output}");
}
