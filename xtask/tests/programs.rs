//! `cargo xtask` and `espalier` start `espalier-qa` for the commands that check and measure.
#![allow(clippy::disallowed_methods, reason = "tests set up and look at real files and processes")]
#![cfg(unix)]

use std::path::Path;
use std::process::{Command, Output};

/// Copies `espalier` into an empty folder, optionally with a script in place of `espalier-qa`, and runs it.
fn espalier(script: Option<&str>, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("espalier");
    shell("cp \"$1\" \"$2\"", &[Path::new(env!("CARGO_BIN_EXE_espalier")), &program]);
    if let Some(script) = script {
        let text = format!("printf '#!/bin/sh\\n%s\\n' '{script}' > \"$1\"; chmod 755 \"$1\"");
        shell(&text, &[&folder.path().join("espalier-qa")]);
    }
    let mut command = Command::new(program);
    command.args(arguments).env_clear().env("GITHUB_TOKEN", "secret").current_dir(folder.path());
    command.output().unwrap()
}

/// Runs `commands`, in which `$1` is the first of `paths`. Programs are written like this because one that another test
/// starts at that moment would inherit this process's descriptor, and a file that is open for writing cannot be
/// executed.
fn shell(commands: &str, paths: &[&Path]) {
    let status = Command::new("/bin/sh").args(["-c", commands, "sh"]).args(paths).status().unwrap();
    assert!(status.success());
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn all_arguments_and_the_name_are_passed_on_and_the_exit_code_comes_back() {
    let script = "echo \"$ESPALIER_CALLED_AS:$*\"; exit 4";
    let arguments = ["--json", "gate", "--only", "logits", "--root", "a b", "--no-such-option"];
    let output = espalier(Some(script), &arguments);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert_eq!(text(&output.stdout), "espalier:--json gate --only logits --root a b --no-such-option\n");
}

/// `canary --github` needs it.
#[test]
fn the_token_is_passed_on() {
    let output = espalier(Some("echo \"$GITHUB_TOKEN\""), &["canary", "--github"]);
    assert_eq!(text(&output.stdout), "secret\n", "{output:?}");
}

/// As with `nohup cargo xtask bench ... &` in a shell that ends.
#[test]
fn a_command_outlives_the_shell_that_started_it() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("espalier");
    let (other, done) = (folder.path().join("espalier-qa"), folder.path().join("done"));
    shell("cp \"$1\" \"$2\"", &[Path::new(env!("CARGO_BIN_EXE_espalier")), &program]);
    shell("printf '#!/bin/sh\nsleep 1\n: > \"%s\"\n' \"$2\" > \"$1\"; chmod 755 \"$1\"", &[&other, &done]);
    shell("\"$1\" bench burst >/dev/null 2>&1 & sleep 0.3", &[&program]);
    let is_done = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        done.exists()
    });
    assert!(is_done, "the command was killed with its shell");
}

#[test]
fn help_of_such_a_command_is_that_of_the_other_program() {
    for flag in ["--help", "-h"] {
        let output = espalier(Some("echo \"$*\""), &["bench", flag]);
        assert_eq!(text(&output.stdout), format!("bench {flag}\n"), "{output:?}");
    }
}

#[test]
fn without_the_other_program_the_error_says_how_to_install_it() {
    let output = espalier(None, &["gate"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let stderr = text(&output.stderr);
    let missing = "espalier-qa`, which implements this command, is not installed\n  next: ";
    assert!(stderr.contains(missing), "{stderr}");
    assert!(stderr.contains("cargo install --locked --path xtask/crates/qa"), "{stderr}");
}

#[test]
fn the_commands_that_build_need_no_other_program() {
    let output = espalier(None, &["fetch"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("there is no `pins.toml`"), "{output:?}");
}
