//! The mailbox of the overlay, which is C++: it is compiled and tested by a program of its own, without a server.

// The ban on starting processes is for the orchestrator; this test needs a C++ compiler.
#![allow(clippy::disallowed_methods)]

use std::path::{Path, PathBuf};
use std::process::Command;

const OVERLAY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../overlay/front/espalier-front");
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mailbox/mailbox.cpp");

/// Compiles the program with the system's C++ compiler.
fn program() -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mailbox");
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_string());
    // Parsed as make does: a program and its arguments, such as `ccache g++`.
    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command.args(words);
    command.args(["-std=c++17", "-O1", "-pthread", "-Wall", "-Wextra", "-Werror", "-I", OVERLAY, "-o"]);
    let compiled = command.arg(&program).arg(SOURCE).output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    program
}

#[test]
fn the_mailbox_delivers_each_result_to_its_reader() {
    let output = Command::new(program()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.lines().count(), 8, "{text}");
}
