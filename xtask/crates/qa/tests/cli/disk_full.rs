//! A full disk and a read-only one: the error says so, and the same command works afterwards.
//!
//! A tiny file system is mounted over the project's `target/` in a separate mount namespace, which needs no privileges
//! on most Linux systems. Where that is not allowed, the tests print that they are skipped.

use std::ffi::OsStr;
use std::process::Command;

use super::support::registries::Registries;
use super::support::upstream::moved;
use super::support::{Output, Project, files, program_path};

/// Runs shell commands in a separate mount namespace.
fn in_own_namespace(commands: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-euc", commands, "sh"]);
    command
}

/// Whether mounting is possible; prints the reason when the system does not allow it.
fn can_mount() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let mut probe = in_own_namespace("mount -t tmpfs -o size=64k none \"$1\"");
    let refusal = match probe.arg(folder.path()).output() {
        Ok(output) if output.status.success() => return true,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    eprintln!("SKIPPED: no file system can be mounted here for this test: {}", refusal.trim());
    false
}

/// Runs the tool with a `target/` of a given size, and again after enlarging it; saves both outputs.
const TWICE: &str = "mount -t tmpfs -o \"$1\" none target
shift
set +e
\"$@\" > ../first.out 2> ../first.err; echo $? > ../first.code
mount -o remount,rw,size=64m target
\"$@\" > ../second.out 2> ../second.err; echo $? > ../second.code
git -C target/espalier/store.git fsck --full > ../fsck 2>&1; echo $? >> ../fsck
find target -name '*tmp-*' > ../left";

fn twice(project: &Project, options: &str, arguments: &[&str]) -> [Output; 2] {
    twice_with_path(project, options, arguments, &program_path::with_build_tools())
}

/// Does the same with another PATH.
fn twice_with_path(project: &Project, options: &str, arguments: &[&str], path: &OsStr) -> [Output; 2] {
    let tool = project.command(arguments);
    std::fs::create_dir_all(project.path("target")).unwrap();
    let mut command = in_own_namespace(TWICE);
    command.arg(options).arg(tool.get_program()).args(tool.get_args()).current_dir(project.root());
    command.env_clear().env("PATH", path).env("HOME", project.beside("home"));
    let status = command.status().unwrap();
    assert!(status.success());
    ["first", "second"].map(|which| read_output(project, which))
}

fn read_output(project: &Project, which: &str) -> Output {
    let read = |end: &str| std::fs::read(project.beside(&format!("{which}.{end}"))).unwrap();
    let code: i32 = String::from_utf8(read("code")).unwrap().trim().parse().unwrap();
    let status = std::os::unix::process::ExitStatusExt::from_raw(code << 8);
    project.output(&std::process::Output { status, stdout: read("out"), stderr: read("err") })
}

/// Asserts that the first run reports the full disk and nothing else, and that the second one succeeds.
fn assert_full_then_well(project: &Project, kib: usize, outputs: [Output; 2]) -> bool {
    let [first, second] = outputs;
    second.success();
    let fsck = std::fs::read_to_string(project.beside("fsck")).unwrap();
    assert!(fsck.ends_with("0\n") && !fsck.contains("missing"), "{kib} KiB: {fsck}");
    assert_eq!(std::fs::read_to_string(project.beside("left")).unwrap(), "", "{kib} KiB");
    if first.code == Some(0) {
        return false;
    }
    let first = first.code(3);
    assert!(first.stderr.contains("free some disk space"), "{kib} KiB: {first}");
    true
}

/// Sizes from too small for anything to large enough for everything: each fails at another step.
#[test]
fn a_full_disk_at_every_step_of_fetch_and_apply() {
    if !can_mount() {
        return;
    }
    let mut places = std::collections::BTreeSet::new();
    for kib in (4..=240).step_by(12) {
        let project = Project::new();
        let outputs = twice(&project, &format!("size={kib}k"), &["apply"]);
        let error = outputs[0].stderr.lines().find(|line| line.starts_with("error: ")).map(String::from);
        if assert_full_then_well(&project, kib, outputs) {
            places.extend(error.map(|error| error.split('`').next().unwrap().to_string()));
        }
    }
    assert!(places.len() >= 3, "too few places were tried: {places:?}");
}

#[test]
fn a_full_disk_in_a_build() {
    if !can_mount() {
        return;
    }
    let mut failed = 0;
    for kib in [300, 450, 600] {
        let project = Project::new();
        let outputs = twice(&project, &format!("size={kib}k"), &["build"]);
        failed += usize::from(assert_full_then_well(&project, kib, outputs));
    }
    assert!(failed > 0, "every size had room for everything");
}

/// The compiler is larger than all other written files together.
#[test]
fn a_full_disk_while_a_toolchain_is_set_up() {
    if !can_mount() {
        return;
    }
    let registries = Registries::new();
    registries.serve_deb("usr/bin/gpu-cc", &"x".repeat(1_500_000));
    registries.pin();
    // Enough for the package, or for a part of it, but not for its unpacked content.
    for kib in [700, 2200] {
        let arguments = ["toolchain", "gpu", "--build-only"];
        let path = registries.path_before_the_machines();
        let size = format!("size={kib}k");
        let [first, second] = twice_with_path(&registries.project, &size, &arguments, &path);
        first.code(3).says(&["is full", "free some disk space"]);
        second.success();
    }
}

#[test]
fn a_read_only_file_system() {
    if !can_mount() {
        return;
    }
    let project = Project::new();
    let [first, second] = twice(&project, "ro", &["apply"]);
    insta::assert_snapshot!(first, @r"
    exit: 3
    -- stdout --

    -- stderr --
    error: could not create the folder `target/espalier`
      Read-only file system
      next: make the folder writable for you, then run the same command again
    ");
    second.success();
}

#[test]
fn a_folder_that_may_not_be_written() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new();
    let target = project.path("target");
    std::fs::create_dir_all(&target).unwrap();
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o555)).unwrap();
    if std::fs::write(target.join("probe"), "").is_ok() {
        eprintln!("SKIPPED: this user (root?) may write everywhere");
        return;
    }
    project
        .run(&["apply"])
        .code(3)
        .says(&["could not create the folder", "make the folder writable for you"]);
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o755)).unwrap();
    project.run(&["apply"]).success();
    assert!(!files::list(&target).is_empty());
}

/// Mounts the project read-only over itself, and runs a command there.
const READ_ONLY: &str = "mount --bind . . && mount -o remount,bind,ro . && cd . && exec \"$@\"";

#[test]
fn a_look_into_a_project_that_cannot_be_written() {
    if !can_mount() {
        return;
    }
    for fetched in [false, true] {
        let project = Project::new();
        let made = Project::new();
        made.run(&["lock"]).success();
        project.write("espalier.lock", made.read("espalier.lock"));
        if fetched {
            project.run(&["fetch"]).success();
        }
        for arguments in [&["status"][..], &["lock", "--check"], &["apply", "--check"]] {
            let output = read_only(&project, arguments).success();
            assert_eq!(output.stderr.contains("Fetching"), !fetched, "{output}");
        }
        assert_eq!(project.path("target").exists(), fetched);
    }
}

/// Upstream's newest commits are in no store yet, and are read without leaving a trace.
#[test]
fn a_look_at_a_new_tip_from_a_project_that_cannot_be_written() {
    if !can_mount() {
        return;
    }
    for fetched in [false, true] {
        let project = Project::new();
        let upstream = moved(&project, &[("Go on", "README.md", "Hello", "Hello!")]);
        if fetched {
            project.run(&["fetch"]).success();
        }
        let before = files::list(project.root());
        let from = ["--from", upstream.to_str().unwrap()];
        for command in [
            &["status", "--tip", "main"][..],
            &["newest", "--tip", "main"],
            &["bisect", "--tip", "main", "--every-commit"],
        ] {
            let output = read_only(&project, &[command, &from].concat()).success();
            assert!(output.stderr.contains("Fetching hello main"), "{output}");
        }
        assert_eq!(files::list(project.root()), before);
    }
}

/// Runs the tool with the project mounted read-only.
fn read_only(project: &Project, arguments: &[&str]) -> Output {
    let tool = project.command(arguments);
    let mut command = in_own_namespace(READ_ONLY);
    command.arg(tool.get_program()).args(tool.get_args()).current_dir(project.root());
    command.env_clear().env("PATH", program_path::of_this_machine()).env("HOME", project.beside("home"));
    project.finish(command)
}
