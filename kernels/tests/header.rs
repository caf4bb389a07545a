//! The checked-in C header and the Rust exports are the same border.
//!
//! One test compares the names in both texts. The others compile `border.c` against the header
//! and the static library, run it, and compare numbers, layouts and behaviour.

// The ban on starting processes is for the orchestrator; here a C compiler is the subject.
#![allow(clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use espalier_kernels::exports::ABI_VERSION;
use espalier_kernels::features::Feature;
use espalier_kernels::gdn_output::OutputFacts;

const HEADER: &str = include_str!("../include/espalier_kernels.h");
const EXPORTS: &str = include_str!("../src/exports.rs");

#[test]
fn header_declares_exactly_the_exports() {
    let exported = names_between(EXPORTS, "extern \"C\" fn ", '(');
    assert!(exported.len() >= 4, "the exports were not found: {exported:?}");
    assert_eq!(declared_functions(HEADER), exported);
}

#[test]
fn every_declared_function_is_called_by_the_c_program() {
    let program = include_str!("border.c");
    for name in declared_functions(HEADER) {
        assert!(program.contains(&format!("{name}(")), "border.c does not call `{name}`");
    }
}

#[test]
fn numbers_and_layouts_agree() {
    let printed = run_border_program(None).values;
    let expected = [
        ("constant.abi_version", ABI_VERSION as usize),
        ("call.abi_version", ABI_VERSION as usize),
        ("constant.gdn_flat_output", Feature::GdnFlatOutput as usize),
        ("size.enum", size_of::<u32>()),
        ("size.facts", size_of::<OutputFacts>()),
        ("offset.weight_type", offset_of!(OutputFacts, weight_type)),
        ("offset.weight_in_cpu_memory", offset_of!(OutputFacts, weight_in_cpu_memory)),
        ("offset.only_cpu_devices", offset_of!(OutputFacts, only_cpu_devices)),
        ("offset.cpu_kernels_use_avx2", offset_of!(OutputFacts, cpu_kernels_use_avx2)),
        ("offset.adapter_covers_weight", offset_of!(OutputFacts, adapter_covers_weight)),
    ];
    for (name, value) in expected {
        assert_eq!(printed.get(name), Some(&value.to_string()), "{name}");
    }
}

#[test]
fn everything_is_off_until_asked_for() {
    let run = run_border_program(None);
    assert_eq!(run.values["call.enabled"], "0");
    assert_eq!(run.values["call.features"], "[]");
    assert_eq!(run.values["call.flat_q8_0"], "0");
    assert_eq!(run.errors, "");
}

#[test]
fn an_enabled_feature_is_on_where_it_is_proven() {
    let run = run_border_program(Some("gdn-flat-output"));
    assert_eq!(run.values["call.enabled"], "1");
    assert_eq!(run.values["call.features"], "[gdn-flat-output]");
    assert_eq!(run.values["call.features_length"], "15");
    assert_eq!(run.values["call.flat_q8_0"], "1");
    assert_eq!(run.values["call.flat_f16"], "0");
    assert_eq!(run.values["call.flat_null"], "0");
    let refusal = "espalier: gdn-flat-output keeps the stock shape: \
                   only q4_0 and q8_0 weights are proven bit-identical\n";
    assert_eq!(run.errors, refusal);
}

#[test]
fn unknown_names_are_reported_once_and_ignored() {
    let run = run_border_program(Some("no-such-thing"));
    assert_eq!(run.values["call.enabled"], "0");
    assert_eq!(run.errors.matches("`no-such-thing`").count(), 1);
    assert!(run.errors.contains("known features: gdn-flat-output"), "{}", run.errors);
}

struct BorderRun {
    values: BTreeMap<String, String>,
    errors: String,
}

/// Runs the C program with `ESPALIER_ENABLE` set to `enable`, or unset.
fn run_border_program(enable: Option<&str>) -> BorderRun {
    let mut command = Command::new(border_program());
    command.env_remove("ESPALIER_ENABLE");
    command.envs(enable.map(|names| ("ESPALIER_ENABLE", names)));
    let output = command.output().expect("the compiled border program starts");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("the program prints ASCII");
    let values = text.lines().filter_map(|line| line.split_once(' '));
    BorderRun {
        values: values.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        errors: String::from_utf8(output.stderr).expect("the messages are UTF-8"),
    }
}

/// Compiles the C program once per test run.
fn border_program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(compile_border_program)
}

fn compile_border_program() -> PathBuf {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("border-program");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let output = Command::new(&compiler)
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
        .arg(crate_dir.join("include"))
        .arg(crate_dir.join("tests/border.c"))
        .arg(static_library())
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .unwrap_or_else(|error| panic!("no C compiler ({compiler:?}, set CC): {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Builds the static library as `cargo xtask build` does: in a target directory of its own,
/// because this test runs while the outer cargo may hold the lock on the shared one, and because
/// there the library has its plain name.
fn static_library() -> PathBuf {
    let target_dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("static-library");
    let output = Command::new(env!("CARGO"))
        .args(["build", "--offline", "--package", "espalier-kernels", "--lib", "--target-dir"])
        .arg(&target_dir)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    target_dir.join("debug/libespalier_kernels.a")
}

/// The functions a C header declares: `espalier_...(` at the end of a type, outside comments.
fn declared_functions(header: &str) -> BTreeSet<String> {
    let code = without_comments(header);
    let before_parentheses = code.split('(').map(last_word);
    before_parentheses.filter(|word| word.starts_with("espalier_")).map(str::to_owned).collect()
}

fn last_word(text: &str) -> &str {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    text.rsplit(|character| !is_part(character)).next().unwrap_or("")
}

fn without_comments(text: &str) -> String {
    let pieces = text.split("/*").enumerate();
    pieces
        .map(|(index, piece)| match index {
            0 => piece,
            _ => piece.split_once("*/").map_or("", |(_, code)| code),
        })
        .collect()
}

fn names_between(text: &str, before: &str, after: char) -> BTreeSet<String> {
    let pieces = text.split(before).skip(1);
    pieces.filter_map(|piece| piece.split(after).next()).map(str::to_owned).collect()
}
