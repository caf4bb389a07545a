//! A toolchain that cannot be installed: the reason is reported, and no partial toolchain is left.

use std::time::Duration;

use super::support::registries::Registries;
use super::support::{Output, kill};

/// Runs `toolchain gpu`, which fails and leaves nothing; the next run, after `fix`, succeeds.
fn fails(break_it: impl Fn(&Registries), fix: impl Fn(&Registries), code: i32) -> Output {
    let registries = Registries::new();
    break_it(&registries);
    let output = registries.run(&["toolchain", "gpu", "--build-only"]).code(code);
    assert_eq!(registries.toolchains(), [""; 0], "{output}");
    fix(&registries);
    registries.run(&["toolchain", "gpu", "--build-only"]).success();
    output
}

#[test]
fn a_download_that_is_cut_short() {
    let cut = |registries: &Registries| registries.cut("tools_1%3a2-1_amd64.deb");
    let whole =
        |registries: &Registries| registries.serve_deb("usr/bin/gpu-cc", "#!/bin/sh\necho gpu-cc 2.1\n");
    let output = fails(
        cut,
        |registries| {
            whole(registries);
            registries.pin();
        },
        1,
    );
    output.says(&[
        "error: tools 1:2-1 is not the pinned file",
        "expected sha256",
        "5120 bytes",
        "may have been cut short",
    ]);
}

#[test]
fn a_crate_that_is_another_file() {
    let other = |registries: &Registries| registries.serve_crate("include/gpu.h", "#error hostile\n");
    let output = fails(other, Registries::pin, 1);
    output.says(&["error: vendored 1.0.0 is not the pinned file", "the registry serves another file"]);
}

#[test]
fn a_mirror_that_fails_and_a_version_that_is_gone() {
    let cases = [
        ("E: Failed to fetch a file  Connection failed", "once the mirror answers"),
        (
            "E: Version '1:2-1' for 'tools' was not found",
            "next: Debian replaced it: see `apt-cache policy tools`",
        ),
    ];
    for (words, hint) in cases {
        let fail = |registries: &Registries| registries.mark("apt-fails", words);
        let output = fails(fail, |registries| registries.unmark("apt-fails"), 3);
        output.says(&["error: apt-get could not download tools 1:2-1", words, hint]);
    }
}

#[test]
fn a_machine_without_a_mirror_of_debian() {
    let missing = |registries: &Registries| {
        registries.debs_from_another_debian();
        registries.mark("no-mirror", "");
    };
    fails(missing, |registries| registries.unmark("no-mirror"), 3).says(&[
        "error: no mirror of Debian for non-free of newer",
        "in /etc/apt",
        "next: set it up on Debian 12, or in a container of it",
    ]);
}

#[test]
fn no_apt() {
    let registries = Registries::new();
    registries.without("apt-get");
    registries.run(&["toolchain", "gpu", "--build-only"]).code(3).says(&[
        "error: could not run `apt-get`\n  no such program on PATH\n  next: set it up on Debian 12",
        "next: brew install gpu-cc",
    ]);
    assert_eq!(registries.toolchains(), [""; 0]);
}

#[test]
fn a_disk_that_takes_no_more() {
    let registries = Registries::new();
    let toolchain = ["toolchain", "gpu", "--build-only"];
    let output = registries.project.finish_with_room_for(1, &registries.command(&toolchain)).code(3);
    let output = output.says(&["error: apt-get could not download tools 1:2-1"]);
    assert_eq!(registries.toolchains(), [""; 0], "{output}");
    registries.run(&toolchain).success();
}

#[test]
fn offline_and_elsewhere() {
    let registries = Registries::new();
    registries.run(&["--offline", "toolchain", "gpu"]).code(3).says(&["`--offline` prevents downloading it"]);
    registries.project.edit("ci/flavors.toml", "toolchain = \"gpu\"", "toolchain = \"soft\"");
    registries
        .run(&["toolchain", "gpu"])
        .code(3)
        .says(&["the toolchain `soft` is for windows-x86_64, and this machine is"]);
    registries.run(&["toolchain", "gpu", "--dry-run"]).code(3);
    assert_eq!(registries.asked(), "");
}

#[test]
fn a_package_without_its_program() {
    let other = |registries: &Registries| {
        registries.project.edit("ci/toolchains.toml", "programs = [", "programs = [\"usr/bin/none\", ");
    };
    fails(other, Registries::pin, 3).says(&["the packages of `gpu` have no program `usr/bin/none`"]);
}

/// The run is killed while cargo downloads: unpacked parts are not mistaken for a toolchain, and are removed.
#[test]
fn a_run_that_is_killed() {
    let registries = Registries::new();
    registries.mark("slow", "");
    let waits = registries.project.beside("waits");
    kill::run_and_kill_when(registries.command(&["toolchain", "gpu"]), Duration::from_secs(30), || {
        waits.exists()
    });
    assert!(registries.toolchains().iter().all(|file| file.starts_with("tmp/")));
    assert!(!registries.toolchains().is_empty(), "it was killed before it had unpacked anything");
    registries.unmark("slow");
    registries.run(&["toolchain", "gpu"]).success();
    assert!(registries.toolchains().iter().all(|file| file.starts_with("gpu-")));
}

/// A folder that the tool did not create is left alone.
#[test]
fn a_folder_of_another_user() {
    let registries = Registries::new();
    registries.project.write("target/toolchains/mine", "precious");
    let output = registries.run(&["toolchain", "gpu"]).code(3);
    output.says(&["`target/toolchains` was not created by this tool; left alone"]);
    assert_eq!(registries.project.read("target/toolchains/mine"), "precious");
}
