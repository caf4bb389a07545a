//! `toolchain` installs a compiler from pinned packages, completely or not at all.

use super::support::Project;
use super::support::registries::Registries;

#[test]
fn it_is_set_up_once_and_then_there() {
    let registries = Registries::new();
    registries.run(&["toolchain", "gpu", "--dry-run"]).success();
    let output = registries.run(&["toolchain", "gpu"]).success();
    assert!(output.stdout.starts_with("gpu set up: target/toolchains/gpu-"), "{output}");
    assert!(output.stderr.contains("warning: soft cannot be set up on this machine"), "{output}");
    let folder = output.stdout.split(": ").nth(1).unwrap().split(',').next().unwrap().to_string();
    let in_it: Vec<String> = registries
        .toolchains()
        .iter()
        .map(|file| format!("target/toolchains/{file}").replace(&format!("{folder}/"), ""))
        .collect();
    assert_eq!(in_it, ["bin/gpu-cc", "bin/gpu-cc-wrapper", "include/gpu.h", "usr/bin/gpu-cc"]);
    let asked = registries.asked();
    assert!(asked.contains("download tools:amd64=1:2-1"), "{asked}");
    assert!(asked.contains("-o Dir::State::lists=") && asked.contains("fetch --manifest-path"), "{asked}");
    let again = registries.run(&["--offline", "toolchain", "gpu"]).success();
    assert!(again.stdout.starts_with(&format!("gpu already there: {folder}")), "{again}");
    assert_eq!(registries.asked(), asked);
}

#[test]
fn a_dry_run_asks_no_server_and_writes_nothing() {
    let registries = Registries::new();
    let output = registries.run(&["toolchain", "gpu", "--build-only", "--dry-run"]).success();
    let (head, steps) = output.stdout.split_once('\n').unwrap();
    assert!(head.starts_with("gpu, target/toolchains/gpu-"), "{output}");
    insta::assert_snapshot!(steps, @"
      download with apt-get, unpack without installing (0.0 MB): tools 1:2-1
      download with cargo, unpack (0.0 MB): vendored 1.0.0
      write bin/gpu-cc-wrapper
      move to include; remove vendored-1.0.0; link bin/gpu-cc
      check usr/bin/gpu-cc, bin/gpu-cc, move it into place
    ");
    assert_eq!(registries.asked(), "");
    assert!(!registries.project.path("target").exists());
    let json = registries.run(&["--json", "toolchain", "gpu", "--dry-run"]).success().json();
    assert_eq!(json["toolchains"][0]["download_bytes"], 10440);
    assert_eq!(json["toolchains"][0]["steps"].as_array().unwrap().len(), 5);
}

#[test]
fn packages_of_another_debian_come_from_the_machines_mirror() {
    let registries = Registries::new();
    registries.debs_from_another_debian();
    let plan = registries.run(&["toolchain", "gpu", "--build-only", "--dry-run"]).success();
    assert!(plan.stdout.contains("download with apt-get from non-free of newer, unpack"), "{plan}");
    registries.run(&["toolchain", "gpu", "--build-only"]).success();
    let asked = registries.asked();
    let line =
        "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] mirror:/debian newer non-free\n";
    let download = asked.lines().find(|line| line.contains("download")).unwrap();
    assert!(asked.contains(line) && download.contains("-o Dir::Etc::SourceParts=/dev/null"), "{asked}");
}

#[test]
fn another_pin_is_another_folder() {
    let registries = Registries::new();
    registries.run(&["toolchain", "gpu"]).success();
    registries.serve_crate("include/gpu.h", "long gpu;\n");
    registries.pin();
    registries.run(&["toolchain", "gpu"]).success();
    let headers = registries.toolchains().iter().filter(|file| file.ends_with("include/gpu.h")).count();
    assert_eq!(headers, 2);
}

#[test]
fn an_emptied_toolchain_is_set_up_again() {
    let registries = Registries::new();
    registries.run(&["toolchain", "gpu"]).success();
    let program = registries.toolchains().into_iter().find(|file| file.ends_with("usr/bin/gpu-cc")).unwrap();
    std::fs::remove_file(registries.project.path("target/toolchains").join(program)).unwrap();
    assert!(registries.run(&["toolchain", "gpu"]).success().stdout.contains("gpu set up"));
}

#[test]
fn flavors_without_a_toolchain() {
    let project = Project::new();
    let output = project.run(&["toolchain", "cpu-native"]).success();
    assert_eq!(
        output.stdout.trim_end(),
        "cpu-native needs no toolchain: the machine's own compilers build it"
    );
    insta::assert_snapshot!(project.run(&["toolchain", "cuda99"]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: there is no flavor `cuda99` in `ci/flavors.toml`
      next: use one of: cpu-native
    ");
}

/// A compiler that cannot be installed without root, such as CUDA 12: the machine's own is used, or the command that
/// installs it is printed.
#[test]
fn a_compiler_of_the_machines_own() {
    let registries = Registries::new();
    registries.project.write("ci/toolchains.toml", "[toolchains.gpu]\nabout = \"a compiler for GPUs\"\n\
        own = { program = \"gpu-cc\", at-least = \"2.0\" }\ninstall = { apt-get = \"apt-get install gpu-cc\" }\n");
    registries.run(&["toolchain", "gpu"]).code(3).says(&[
        "the toolchain `gpu` has no packages that could be set up without root",
        "next: apt-get install gpu-cc",
    ]);
    // `--dry-run` fails wherever the run would fail.
    registries.run(&["toolchain", "gpu", "--dry-run"]).code(3);
    registries.run(&["doctor", "gpu"]).code(1);
    registries.program("gpu-cc", "echo gpu-cc 1.9");
    registries.run(&["toolchain", "gpu"]).code(3);
    registries.program("gpu-cc", "echo gpu-cc 2.1");
    let output = registries.run(&["toolchain", "gpu"]).success();
    assert_eq!(output.stdout.trim_end(), "gpu already there: this machine's gpu-cc 2.1.0");
    let output = registries.run(&["doctor", "gpu"]);
    assert!(output.stdout.contains("  there    toolchain gpu: this machine's gpu-cc 2.1.0"), "{output}");
}
