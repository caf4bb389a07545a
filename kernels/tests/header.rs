//! The checked-in C header and the Rust exports agree.
//!
//! One test compares the names in both. The others compile `ffi.c` against the header and the static library, run
//! it, and compare values, layouts and behaviour.
//!
//! One more runs the program under valgrind's memcheck if there is a `valgrind` in `PATH`; else it reports that it was
//! skipped. To see valgrind's output, run the program that the tests leave behind:
//!
//! ```text
//! cargo test --package espalier-kernels --test header
//! valgrind --leak-check=full target/tmp/ffi-program
//! ```

// The ban on starting processes is for the orchestrator; these tests need a C compiler.
#![allow(clippy::disallowed_methods)]
#![allow(clippy::too_many_lines, reason = "a layout is held against the header in one piece")]

mod ffi;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use espalier_kernels::ffi::pool::PoolStatus;
use espalier_kernels::kv_quant::{Block, DenseType, FIRST_NUMBER};
use sha2::Digest;

const HEADER: &str = concat!(
    include_str!("../include/espalier_kernels.h"),
    include_str!("../include/espalier_fit.h"),
    include_str!("../include/espalier_kv_gather.h"),
    include_str!("../include/espalier_mul_mat.h")
);
const EXPORTS: &str = concat!(
    include_str!("../src/ffi/library.rs"),
    include_str!("../src/ffi/mul_mat.rs"),
    include_str!("../src/ffi/attention.rs"),
    include_str!("../src/ffi/boundaries.rs"),
    include_str!("../src/ffi/fit.rs"),
    include_str!("../src/ffi/gdn.rs"),
    include_str!("../src/ffi/kv_gather.rs"),
    include_str!("../src/ffi/kv_quant.rs"),
    include_str!("../src/ffi/pool.rs"),
    include_str!("../src/ffi/scheduler.rs"),
    include_str!("../src/ffi/snapshots.rs")
);
const PROGRAM: &str = concat!(
    include_str!("ffi.c"),
    include_str!("ffi/computations.h"),
    include_str!("ffi/fit.h"),
    include_str!("ffi/kv_gather.h"),
    include_str!("ffi/layouts.h")
);

#[test]
fn header_declares_exactly_the_exports() {
    let exported = names_between(EXPORTS, "extern \"C\" fn ", '(');
    assert!(exported.len() >= 17, "the exports were not found: {exported:?}");
    assert_eq!(declared_functions(HEADER), exported);
}

#[test]
fn every_declared_function_is_called_by_the_c_program() {
    for name in declared_functions(HEADER) {
        assert!(PROGRAM.contains(&format!("{name}(")), "ffi.c does not call `{name}`");
    }
}

#[test]
fn types_of_a_cache_agree_and_go_there_and_back() {
    let printed = run_ffi_program(&[]).values;
    assert_eq!(printed.get("constant.kv_type_first"), Some(&FIRST_NUMBER.to_string()));
    for kind in DenseType::ALL {
        let number = kind.number();
        let short = if kind.block == Block::Of64 { "_64" } else { "" };
        let name = format!("{}{short} {} {}", kind.code.name(), kind.block.values(), kind.bytes());
        assert_eq!(printed.get(&format!("kv_type.{number}")), Some(&name));
        let fingerprint = format!("{:016x}", kind.code.fingerprint());
        assert_eq!(printed.get(&format!("kv_type.{number}.fingerprint")), Some(&fingerprint));
        assert_eq!(printed.get(&format!("kv_type.{number}.works")), Some(&"1".to_string()));
    }
}

#[test]
fn attention_is_computed_where_it_is_asked_for() {
    let (on, off) = (("ESPALIER_ENABLE", "attention"), ("ESPALIER_DISABLE", "attention"));
    for (variables, plain, paged) in
        [(&[][..], "0", "1"), (&[on], "1", "1"), (&[off], "0", "0"), (&[on, off], "0", "0")]
    {
        let printed = run_ffi_program(variables).values;
        let found = ["attention.fits", "attention.mean", "attention.paged"].map(|name| &*printed[name]);
        assert_eq!(found, [plain, if plain == "1" { "4" } else { "0" }, paged], "{variables:?}");
        assert_eq!((&*printed["attention.unknown_type"], &*printed["attention.null"]), ("0", "0"));
    }
}

#[test]
fn a_delta_net_is_computed_in_place_as_c_sees_it() {
    let expected = [
        ("gdn.computed", "1"),
        ("gdn.out", "0 3.75"),
        ("gdn.state", "15 1 2"),
        ("gdn.unknown_thread", "0"),
        ("gdn.unknown_source", "0"),
        ("gdn.unknown_size", "0"),
        ("gdn.null", "0"),
        ("gdn.null_compute", "0"),
        ("gdn_conv.computed", "1"),
        ("gdn_conv.out", "50 65"),
        ("gdn_conv.state", "100 115"),
        ("gdn_conv.unknown_thread", "0"),
        ("gdn_conv.unknown_taps", "0"),
        ("gdn_conv.null", "0"),
        ("gdn_conv.null_compute", "0"),
    ];
    let on = ("ESPALIER_ENABLE", "gdn-recurrence");
    for (variables, is_supported) in [(&[][..], "0"), (&[on], "1")] {
        let printed = run_ffi_program(variables).values;
        for name in ["gdn.is_supported", "gdn_conv.is_supported"] {
            assert_eq!(printed[name], is_supported, "{variables:?}, {name}");
        }
        for (name, value) in expected {
            assert_eq!(printed[name], value, "{name}");
        }
    }
}

/// Without the feature nothing is computed.
#[test]
fn a_matrix_product_is_computed_as_c_sees_it() {
    let rejected = [("mul_mat.unknown_thread", "0"), ("mul_mat.unknown_size", "0"), ("mul_mat.null", "0")];
    let on = ("ESPALIER_ENABLE", "mul-mat");
    for (variables, computed, out) in [(&[][..], "0", "0 0 0 0"), (&[on], "1", "13 -3 14 -14")] {
        let printed = run_ffi_program(variables).values;
        let expected = [("mul_mat.computed", computed), ("mul_mat.out", out)];
        for (name, value) in expected.into_iter().chain(rejected) {
            assert_eq!(printed[name], value, "{name}, {variables:?}");
        }
    }
}

/// The order of some requests; one request that fits and one that does not: as C sees them.
#[test]
fn the_scheduler_answers_one_action() {
    let printed = run_ffi_program(&[]).values;
    let expected = [
        ("order_null", "3"),
        ("order_null_indexes", "3"),
        ("order_of_none", "0"),
        ("order_after_refusals", "77"),
        ("order", "0 3 2 1 4 0"),
        ("schedule_first", "0 action 1 index 0 tokens 0 waits 0 0"),
        ("schedule_second", "0 action 0 index 0 tokens 0 waits 0 2"),
        ("schedule_asleep", "0 action 0 index 0 tokens 0 waits 0 0"),
        ("schedule_null", "3"),
        ("schedule_unknown_sequence", "3"),
        ("schedule_unknown_stage", "3"),
        ("schedule_unknown_retained", "3"),
        ("held", "3"),
        ("held_null", "0"),
        ("changes", "0"),
        ("changes_freed", "3"),
        ("sha256", "ba7816bf"),
        ("sha256_of_nothing", "e3b0c442"),
    ];
    for (name, value) in expected {
        assert_eq!(printed[&format!("scheduler.{name}")], value, "{name}");
    }
}

#[test]
fn hints_follow_the_table_unless_they_are_checked() {
    let (three_blocks, unknown) = ("192", u32::MAX.to_string());
    let check = ("ESPALIER_KV_GATHER_CHECK", "1");
    for (variables, is_check) in [(&[][..], false), (&[check], true)] {
        let printed = run_ffi_program(variables).values;
        let (checked, on_cpu) = if is_check { (three_blocks, "1") } else { ("0", "0") };
        let expected = [
            ("cells", three_blocks),
            ("cells_of_none", "0"),
            ("cells_of_null", unknown.as_str()),
            ("hint", if is_check { three_blocks } else { "256" }),
            ("hint_small", checked),
            ("used", "1"),
            ("used_on_cpu", on_cpu),
            ("used_null", "0"),
            ("used_nameless", "0"),
            ("backend", "1"),
            ("backend_cpu", on_cpu),
            ("backend_null", "0"),
        ];
        for (name, value) in expected {
            assert_eq!(printed[&format!("kv_gather.{name}")], value, "{variables:?}, {name}");
        }
    }
}

/// 1,900 tokens fit on the first of two devices, and 1,000 on the second one.
#[test]
fn a_cache_is_as_large_as_its_smallest_device_allows() {
    let printed = run_ffi_program(&[]).values;
    let expected = [
        ("two", "768 device 1"),
        ("one", "1792 device 0"),
        ("constant", "4096 device 1"),
        ("none", "4096 device 0"),
        ("null", "0 device 77"),
        ("null_device", "0"),
    ];
    for (name, value) in expected {
        assert_eq!(printed[&format!("fit.{name}")], value, "{name}");
    }
}

#[test]
fn the_pool_refuses_what_makes_no_sense() {
    let printed = run_ffi_program(&[]).values;
    let invalid = (PoolStatus::Invalid as i32).to_string();
    let refused = printed.iter().filter(|(_, value)| **value == invalid);
    assert_eq!(refused.filter(|(name, _)| name.starts_with("pool.")).count(), 29);
    for (name, value) in [("new_odd", "1"), ("new_null", "1"), ("null_event", "0"), ("short_reserve", "1")] {
        assert_eq!(printed[&format!("pool.{name}")], value, "{name}");
    }
    assert_eq!(printed["pool.new_unknown_part"], "1");
    // No output was written either.
    assert_eq!(printed["pool.count_after_refusals"], "77");
    assert_eq!(printed["pool.snapshot_after_refusals"], "77");
    assert_eq!(printed["pool.blocks_after_refusals"], "77");
}

/// A state is saved after one block, then after two, in a budget for one snapshot, and matched by another request.
#[test]
fn the_pool_keeps_snapshots_in_their_budget() {
    let printed = run_ffi_program(&[]).values;
    let expected = [
        ("match_0", "0"),
        ("match_0_snapshot", "0"),
        ("stop_at_system_prompt", "0 tokens 4 reason 2"),
        ("stop_at_none", "0 tokens 0 reason 0"),
        ("begin_before_cache", "3 id 77 evicted"),
        ("cache_0", "0 0 4"),
        ("stop_at_awaited", "0 tokens 8 reason 0"),
        ("begin_within_a_block", "3 id 77 evicted"),
        ("begin_first", "0 id 1 evicted"),
        ("match_while_it_is_written", "0"),
        ("match_while_it_is_written_snapshot", "0"),
        ("begin_again", "4 id 77 evicted"),
        ("begin_in_a_full_budget", "1 id 77 evicted"),
        ("end_first", "0"),
        ("begin_without_space", "3 id 77 evicted"),
        ("begin_second", "0 id 2 evicted 1"),
        ("end_second", "0"),
        ("match_1", "0 0 4"),
        ("match_1_snapshot", "2"),
        ("statistics", "0 1 100 0 1 1"),
        ("restored_by_another", "3"),
        ("restored", "0"),
        ("statistics_restored", "0 1 100 1 1 1"),
        ("distrust_without_space", "3 blocks 77: 77 77 snapshots 77: 77"),
        ("distrust", "0 blocks 2: 0 4 snapshots 1: 2"),
        ("statistics_distrusted", "0 0 0 1 1 1"),
        ("statistics_cleared", "0 0 0 1 1 1"),
    ];
    for (name, value) in expected {
        assert_eq!(printed[&format!("snapshot.{name}")], value, "{name}");
    }
}

/// A prompt is matched with the window before its last boundary, whose blocks its first sequence still has.
#[test]
fn the_pool_shares_the_blocks_of_a_window() {
    let printed = run_ffi_program(&[]).values;
    let refused = printed.iter().filter(|(name, value)| name.starts_with("window.") && **value == "3");
    assert_eq!(refused.count(), 9);
    let expected = [
        ("new_without_blocks", "1"),
        ("blocks_of_windows", "4 17"),
        ("unchanged", "77 77 77 77"),
        ("match_0", "0 group 0 group 1"),
        ("reserve_full", "0 0 4 8 12"),
        ("reserve_window", "0 0 4 8 12"),
        ("cache_0", "0 group 0 0 4 8 group 1 0 4 8"),
        ("events", "1:0 1:1 1:2 0:0 0:1 0:2"),
        ("slide", "0 first 8"),
        ("match_1", "0 group 0 0 4 8 group 1 8"),
        ("match_1_snapshot", "0"),
        ("share", "0"),
        ("remove", "0"),
        ("statistics", "0 12 2 2 4"),
    ];
    for (name, value) in expected {
        assert_eq!(printed[&format!("window.{name}")], value, "{name}");
    }
}

/// The tokens of a block are those of the sequence's layout, and a block is full without a request.
#[test]
fn the_pool_knows_where_blocks_end() {
    let printed = run_ffi_program(&[]).values;
    let expected = [
        ("without_request", "0 first 4 end 8"),
        ("in_the_image", "0 first 4 end 6"),
        ("behind_the_image", "0 first 6 end 10"),
        ("unknown_sequence", "3 first 77 end 77"),
        ("too_far", "3 first 77 end 77"),
        ("null", "3"),
        ("null_first", "3"),
        ("null_end", "3"),
        ("unchanged", "77"),
    ];
    for (name, value) in expected {
        assert_eq!(printed[&format!("layout.{name}")], value, "{name}");
    }
}

/// The life of two requests with one prompt of ten tokens, in blocks of four, as C sees it.
#[test]
fn the_pool_serves_two_requests_with_one_prompt() {
    let printed = run_ffi_program(&[]).values;
    let expected = [
        ("match_0", "0"),
        ("match_1_waits", "2"),
        ("reserve_0", "0 0 1 2 3 4 5 6 7 8 9 fresh 0 4 8"),
        ("reserve_0_again", "0 8 9 fresh"),
        ("cache_0", "0 0 4"),
        ("match_1_hits", "0 0 4"),
        ("reserve_1", "0 12 13 fresh 12"),
        ("share_1_2", "0"),
        ("reserve_2", "0 18 fresh 16"),
        ("reserve_0_output", "0 10 11 fresh"),
        ("cache_0_output", "0 8"),
        ("cache_without_capacity", "0"),
        ("statistics", "0 8 4 5 0 3 5 3 0 0 0"),
        ("remove_1", "0"),
        ("statistics_removed", "0 8 4 0 3 5 5 3 0 0 0"),
        ("reserve_after_removal", "0 16 fresh 16"),
        ("statistics_cleared", "0 8 4 0 0 8 5 3 0 0 0"),
        ("events_cleared", "3:2:0:0:0:0:0:00000000:00000000"),
    ];
    for (name, value) in expected {
        assert_eq!(printed[&format!("pool.{name}")], value, "{name}");
    }
    assert_eq!(printed["pool.events"], expected_events());
}

/// Hashes are recomputed here from the documentation alone.
fn expected_events() -> String {
    let extra_keys = |start: i64| {
        let salt = [&[1, 2, 0, 0, 0, 0, 0, 0, 0][..], &[1, 2]].concat();
        let adapters = [&[2, 1, 0, 0, 0, 0, 0, 0, 0][..], &[3]].concat();
        let image = [&[3, 3, 0, 0, 0, 0, 0, 0, 0][..], &[4, 5, 6]].concat();
        let place = [&(2 - start).to_le_bytes()[..], &4u32.to_le_bytes()].concat();
        match start {
            0 => [salt, adapters, image, place].concat(),
            4 => [adapters, image, place].concat(),
            _ => adapters,
        }
    };
    let hash = |parent: &[u8], first: i32, start: i64| -> Vec<u8> {
        let tokens = (first..first + 4).flat_map(i32::to_le_bytes).collect::<Vec<_>>();
        let (has_parent, extra_keys) = ([u8::from(!parent.is_empty())], extra_keys(start));
        let lengths = [4u64.to_le_bytes(), (extra_keys.len() as u64).to_le_bytes()];
        let text = [&has_parent[..], parent, &lengths[0], &tokens, &lengths[1], &extra_keys].concat();
        sha2::Sha256::digest(text).to_vec()
    };
    let short = |hash: &[u8]| format!("{:02x}{:02x}{:02x}{:02x}", hash[0], hash[1], hash[2], hash[31]);
    let first = hash(&[], 5, 0);
    let second = hash(&first, 9, 4);
    let third = hash(&second, 13, 8);
    [
        format!("0:0:0:0:4:0:1:{}:00000000", short(&first)),
        format!("1:0:4:1:4:1:1:{}:{}", short(&second), short(&first)),
        format!("2:0:8:2:4:1:1:{}:{}", short(&third), short(&second)),
    ]
    .join(" ")
}

/// Memcheck detects what assertions cannot: reads of uninitialised memory, and leaks.
#[test]
fn the_ffi_program_is_clean_under_valgrind() {
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--error-exitcode=9", "--leak-check=full", "--show-leak-kinds=all"]);
    match command.arg(ffi_program()).env_remove("ESPALIER_ENABLE").env_remove("ESPALIER_DISABLE").output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        // Bypasses the test harness, which hides the output of a passed test.
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "NOT CHECKED for memory errors: no valgrind ({error})");
        }
    }
}

#[test]
fn everything_is_off_until_asked_for() {
    let run = run_ffi_program(&[]);
    assert_eq!(run.values["call.enabled"], "0");
    assert_eq!(run.values["call.features"], "[]");
    assert_eq!(run.values["call.flat_q8_0"], "0");
    assert_eq!(run.errors, "");
}

#[test]
fn an_enabled_feature_is_on_where_it_is_proven() {
    let run = run_ffi_program(&[("ESPALIER_ENABLE", "gdn-flat-output")]);
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
    let run = run_ffi_program(&[("ESPALIER_ENABLE", "no-such-thing")]);
    assert_eq!(run.values["call.enabled"], "0");
    assert_eq!(run.errors.matches("`no-such-thing`").count(), 1);
    assert!(
        run.errors.contains("known features: gdn-flat-output,attention,gdn-recurrence,mul-mat"),
        "{}",
        run.errors
    );
}

#[test]
fn disabled_features_stay_off() {
    let run = run_ffi_program(&[
        ("ESPALIER_ENABLE", "gdn-flat-output,attention"),
        ("ESPALIER_DISABLE", "attention,no-such-thing"),
    ]);
    assert_eq!(run.values["call.enabled"], "1");
    assert_eq!(run.values["call.features"], "[gdn-flat-output]");
    assert!(
        run.errors.contains("ESPALIER_DISABLE names unknown features: `no-such-thing`"),
        "{}",
        run.errors
    );
}

struct FfiRun {
    values: BTreeMap<String, String>,
    errors: String,
}

/// Runs the C program with these `ESPALIER_*` variables and no others.
fn run_ffi_program(variables: &[(&str, &str)]) -> FfiRun {
    let mut command = Command::new(ffi_program());
    for known in ["ESPALIER_ENABLE", "ESPALIER_DISABLE", "ESPALIER_KV_GATHER_CHECK"] {
        command.env_remove(known);
    }
    command.envs(variables.iter().copied());
    let output = command.output().expect("the compiled program starts");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("the program prints ASCII");
    let values = text.lines().filter_map(|line| line.split_once(' '));
    FfiRun {
        values: values.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        errors: String::from_utf8(output.stderr).expect("the messages are UTF-8"),
    }
}

/// Compiles the C program once per test run.
fn ffi_program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(compile_ffi_program)
}

fn compile_ffi_program() -> PathBuf {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ffi-program");
    // Parsed as make does: a program and its arguments, such as `ccache gcc`.
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut words = compiler.split_whitespace();
    let output = Command::new(words.next().expect("CC is not empty"))
        .args(words)
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
        .arg(crate_dir.join("include"))
        .arg(crate_dir.join("tests/ffi.c"))
        .arg(static_library())
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .unwrap_or_else(|error| panic!("no C compiler ({compiler:?}, set CC): {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Builds the static library as `cargo xtask build` does: in a separate target directory, because this test runs while
/// the outer cargo may hold the lock on the shared one, and because the library has its plain name there.
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

/// Returns the functions that a C header declares: `espalier_...(` after a type, outside comments.
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
