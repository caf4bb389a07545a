//! The header and the Rust types agree.

use std::collections::BTreeMap;
use std::mem::{offset_of, size_of};
use std::process::Command;

use espalier_front::abi;

const HEADER: &str = include_str!("../../include/espalier_front.h");
const EXPORTS: &str = include_str!("../../src/ffi.rs");
const PROGRAM: &str = include_str!("layout.c");

#[test]
fn the_header_declares_exactly_the_exports() {
    // A declaration begins its line; lines of comments begin with a space or a slash.
    let lines = HEADER.lines().filter(|line| !line.starts_with([' ', '/']));
    let names = lines.filter_map(|line| line.split_once('(')?.0.rsplit_once("espalier_front_"));
    let declared: Vec<&str> = names.map(|(_, name)| name).collect();
    let exported = EXPORTS.split("extern \"C\" fn espalier_front_").skip(1);
    let exported: Vec<&str> = exported.map(|rest| rest.split_once('(').unwrap().0).collect();
    assert_eq!(exported, ["abi", "open", "route", "listen", "wake", "drain", "stop", "close"]);
    assert_eq!(declared, exported);
}

/// Compiles the program with the system's C compiler and returns what it prints.
fn printed() -> BTreeMap<String, usize> {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (folder.join("layout.c"), folder.join("layout"));
    std::fs::write(&source, PROGRAM).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_string());
    let mut command = Command::new(compiler);
    command.args([
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-I",
        concat!(env!("CARGO_MANIFEST_DIR"), "/include"),
    ]);
    let compiled = command.arg("-o").args([&program, &source]).output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let output = Command::new(&program).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(key, value)| (key.to_string(), value.parse().unwrap()))
        .collect()
}

fn layouts() -> Vec<(&'static str, usize)> {
    vec![
        ("text", size_of::<abi::Text>()),
        ("pair", size_of::<abi::Pair>()),
        ("part", size_of::<abi::RawFormPart>()),
        ("part.is_file", offset_of!(abi::RawFormPart, is_file)),
        ("request", size_of::<abi::Request>()),
        ("request.token", offset_of!(abi::Request, token)),
        ("request.key", offset_of!(abi::Request, key)),
        ("request.tenant", offset_of!(abi::Request, tenant)),
        ("request.n_models", offset_of!(abi::Request, n_models)),
        ("request.body", offset_of!(abi::Request, body)),
        ("request.n_headers", offset_of!(abi::Request, n_headers)),
        ("request.n_parts", offset_of!(abi::Request, n_parts)),
        ("head", size_of::<abi::Head>()),
        ("head.ping_ms", offset_of!(abi::Head, ping_ms)),
        ("head.n_headers", offset_of!(abi::Head, n_headers)),
        ("usage", size_of::<abi::Usage>()),
        ("usage.generated", offset_of!(abi::Usage, generated)),
        ("core", size_of::<abi::Table>()),
        ("core.call_next", offset_of!(abi::Table, call_next)),
        ("core.call_free", offset_of!(abi::Table, call_free)),
        ("core.core_log", offset_of!(abi::Table, core_log)),
        ("options", size_of::<abi::RawOptions>()),
        ("options.key_file", offset_of!(abi::RawOptions, key_file)),
        ("options.access_log", offset_of!(abi::RawOptions, access_log)),
        ("options.certificate", offset_of!(abi::RawOptions, certificate)),
        ("options.client_ca", offset_of!(abi::RawOptions, client_ca)),
        ("options.max_body", offset_of!(abi::RawOptions, max_body)),
        ("options.counts_tokens", offset_of!(abi::RawOptions, counts_tokens)),
        ("options.header_ms", offset_of!(abi::RawOptions, header_ms)),
        ("options.max_connections", offset_of!(abi::RawOptions, max_connections)),
    ]
}

fn constants() -> Vec<(&'static str, usize)> {
    vec![
        ("abi", abi::ABI_VERSION as usize),
        ("more", abi::MORE as usize),
        ("end", abi::END as usize),
        ("pending", abi::PENDING as usize),
        ("blocks", abi::BLOCKS as usize),
        ("loading", abi::LOADING as usize),
        ("ready", abi::READY as usize),
        ("stopping", abi::STOPPING as usize),
        ("health", abi::HEALTH as usize),
        ("monitor", abi::MONITOR as usize),
        ("anthropic", abi::ANTHROPIC as usize),
        ("metrics", abi::METRICS as usize),
        ("dispatch", abi::DISPATCH as usize),
        ("error", abi::LOG_ERROR as usize),
        ("warning", abi::LOG_WARNING as usize),
        ("info", abi::LOG_INFO as usize),
    ]
}

#[test]
fn layouts_and_constants_agree() {
    let expected = layouts().into_iter().chain(constants());
    let expected: BTreeMap<String, usize> = expected.map(|(key, value)| (key.to_string(), value)).collect();
    assert_eq!(printed(), expected);
}
