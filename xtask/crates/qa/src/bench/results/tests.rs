use std::path::Path;
use std::time::Duration;

use clap::Parser;
use espalier_core::config::pins::Pins;
use espalier_core::config::snippet::SourceText;
use espalier_core::sys::machine::disk;
use serde_json::json;

use super::*;
use crate::bench::record::tests::head;
use crate::bench::{Benchmark, history};
use crate::serving::load::Answered;

fn burst_run(requests: usize, paged: u64, date: &str) -> Value {
    let prompts = Prompts { requests, prefix: 1600, suffix: 16, predict: 8, family: 0 };
    let test_servers = [TestServer::Stock, TestServer::Paged];
    let mut result = Burst::new(BenchModel::Plain, prompts, &test_servers);
    let ask = |server| {
        let seconds = if server == TestServer::Stock { 4 } else { paged };
        Ok(Answered { elapsed: Duration::from_secs(seconds), records: Vec::new() })
    };
    result.add_round(ask).unwrap();
    let head = Head { date: date.to_string(), threads: Some(1), ..head() };
    json!(Record { head, result })
}

fn page_of(runs: Vec<Value>) -> Result<String> {
    let files = BTreeSet::from(["burst-16x1600-v1.svg".to_string(), "capacity-v0.svg".to_string()]);
    page(&BTreeMap::from([("burst".to_string(), runs)]), &files, "v1")
}

#[test]
fn a_workload_is_shown_once_with_its_newest_figures() {
    let runs =
        [burst_run(16, 2, "2026-01-01"), burst_run(32, 1, "2026-01-02"), burst_run(16, 1, "2026-01-03")];
    let page = page_of(runs.to_vec()).unwrap();
    let row = |number: usize, workload: &str, date: &str| {
        let command = "--prefix 1600 --suffix 16 --predict 8 --rounds 1 --threads 1";
        [
            format!("| {workload} x 1,600 | 4,000 | 1,000 | 4.00x | {number} |\n"),
            format!(
                "\n{number}. Some CPU, 1 thread, v1, {date}: \
                 `cargo xtask bench burst --requests {workload} {command}`\n"
            ),
        ]
    };
    for text in [row(1, "16", "2026-01-03"), row(2, "32", "2026-01-02")].concat() {
        assert!(page.contains(&text), "{text}{page}");
    }
    assert!(!page.contains("2026-01-01"), "{page}");
    assert!(page.contains("](measurements/burst-16x1600-v1.svg)") && !page.contains("capacity-v"), "{page}");
}

#[test]
fn rows_of_another_tree_than_the_pin_name_theirs() {
    let mut earlier = burst_run(32, 1, "2026-01-01");
    earlier["pin"] = json!("v0");
    let page = page_of(vec![earlier, burst_run(16, 1, "2026-01-02")]).unwrap();
    for text in [
        "| 4.00x | 1 |\n",
        "| 4.00x | 2, v0 |\n",
        "\n1. Some CPU, 1 thread, v1, 2026-01-02: ",
        "\n2. Some CPU, 1 thread, v0, 2026-01-01: ",
    ] {
        assert!(page.contains(text), "{text}{page}");
    }
}

#[test]
fn rows_of_one_run_have_its_number() {
    let [mut first, second] = [burst_run(16, 1, "2026-01-01"), burst_run(32, 1, "2026-01-02")];
    first["command"] = json!("cargo xtask bench burst");
    let mut third = burst_run(48, 1, "2026-01-01");
    third["command"] = first["command"].clone();
    let page = page_of(vec![first, second, third]).unwrap();
    let numbers: Vec<&str> = page.split("| 4.00x | ").skip(1).map(|rest| &rest[..1]).collect();
    assert_eq!(numbers, ["1", "2", "1"], "{page}");
    assert!(!page.contains("\n3. "), "{page}");
}

#[test]
fn another_variant_has_rows_of_its_own() {
    let mut other = burst_run(16, 2, "2026-01-04");
    other["variant"] = json!("paged-b2");
    let page = page_of(vec![burst_run(16, 1, "2026-01-03"), other]).unwrap();
    assert!(page.contains("2026-01-03") && page.contains("2026-01-04"), "{page}");
}

#[test]
fn the_command_that_was_typed_is_shown_if_it_is_recorded() {
    let head = |command: &str| Head { command: command.to_string(), ..head() };
    assert_eq!(command("burst", &head(""), "--a 1"), "cargo xtask bench burst --a 1 --threads 2");
    assert_eq!(command("burst", &head("cargo xtask bench burst"), "--a 1"), "cargo xtask bench burst");
    assert_eq!(command("capacity", &Head::default(), "--a 1"), "cargo xtask bench capacity --a 1");
}

#[test]
fn a_benchmark_without_runs_says_so() {
    let page = page_of(Vec::new()).unwrap();
    assert!(page.contains("Not recorded: `cargo xtask bench burst`"), "{page}");
}

#[test]
fn a_model_is_a_workload_of_its_own() {
    let hybrid = {
        let mut run = burst_run(16, 1, "2026-01-02");
        run["model"] = json!("hybrid");
        run
    };
    let page = page_of(vec![burst_run(16, 2, "2026-01-01"), hybrid]).unwrap();
    assert!(
        page.contains("| 16 x 1,600 | 4,000 |") && page.contains("| 16 x 1,600, hybrid | 4,000 |"),
        "{page}"
    );
}

#[test]
fn shared_prefixes_and_turns_have_their_rows() {
    let head = || Head { date: "2026-01-01".to_string(), ..head() };
    let prefixes = json!(Record { head: head(), result: prefixes::example(108) });
    let turns = json!(Record { head: head(), result: turns::example(55) });
    let runs = [("prefixes", prefixes), ("turns", turns)].map(|(bench, run)| (bench.to_string(), vec![run]));
    let page = page(&runs.into(), &BTreeSet::new(), "v1").unwrap();
    let end = "| 1 |\n\n1. Some CPU, 2 threads, v1, 2026-01-01: `cargo xtask bench";
    for row in [
        "| hybrid | 200 / 100 | 4 | 100 | 108 | 93 % | 100 | 108 | 0.93x ",
        "| hybrid | 2 x 3 | 49 / 20 | 2.68 | 1.10 | 134 | 55 | 2.44x ",
    ] {
        assert!(page.contains(&format!("{row}{end}")), "{row}: {page}");
    }
    for command in [
        "prefixes --model hybrid --shared 200 --length 300 --prompts 4 --families 1 --clients 2 --predict 8",
        "turns --model hybrid --users 2 --turns 3 --system 100 --message 49 --answer 20",
    ] {
        assert!(page.contains(&format!("bench {command} --threads 2`")), "{command}: {page}");
        CommandLine::try_parse_from(["bench"].into_iter().chain(command.split(' '))).unwrap();
    }
}

#[test]
fn a_run_that_cannot_be_read_is_an_error() {
    let error = page_of(vec![burst_run(16, 1, ""), json!({ "requests": 16 })]).unwrap_err().to_string();
    assert!(error.contains("run 2 in docs/measurements/burst-") && error.contains("missing field"));
}

/// Every committed record is read, also those of earlier versions of a benchmark.
#[test]
fn the_committed_page_is_what_the_committed_records_say() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs");
    let committed = disk::read_text(&docs.join("results.md")).unwrap();
    let folder = docs.join("measurements");
    let files = disk::files_below(&folder).unwrap();
    let is_record = |file: &&std::path::PathBuf| file.extension().is_some_and(|ending| ending == "json");
    let records = files.iter().filter(is_record).map(|file| disk::read(&folder.join(file)).unwrap());
    let runs = history::by_bench(records);
    let files = files.iter().map(|file| file.display().to_string()).collect();
    let text = disk::read_text(&docs.join("../pins.toml")).unwrap();
    let pins = Pins::parse(SourceText { name: "pins.toml", text: &text }).unwrap();
    let pin = pins.pin_of(pins.variant(None).unwrap()).revision.to_string();
    let page = page(&runs, &files, short_name(&pin)).unwrap();
    assert!(committed.ends_with(&page), "docs/results.md is stale: cargo xtask docs");
}

/// A command line whose first word is `bench`.
#[derive(Parser)]
struct CommandLine {
    #[command(subcommand)]
    _what: Benchmark,
}

#[test]
fn the_commands_of_the_committed_page_can_be_typed() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/results.md");
    let page = disk::read_text(&page).unwrap();
    let commands = page.lines().filter_map(|line| line.strip_suffix('`')?.split(": `cargo xtask ").nth(1));
    let mut found = 0;
    for command in commands {
        if let Err(error) = CommandLine::try_parse_from(command.split(' ')) {
            panic!("{command}: {error}");
        }
        found += 1;
    }
    assert!(found >= BENCHES.len(), "{found}");
}

#[test]
fn machines_are_told_apart_by_processor_vectors_and_threads() {
    let flags = ["avx", "avx2", "avx512f"].map(String::from).to_vec();
    assert_eq!(machine(&Head { processor_flags: flags, ..head() }), "Some CPU, avx512, 2 threads");
    assert_eq!(machine(&Head::default()), "any");
}

#[test]
fn values_are_listed_once() {
    assert_eq!(each_once(["b", "a", "b"].map(String::from).into_iter()), "b,a");
}

#[test]
fn numbers_are_grouped() {
    assert_eq!([0_u64, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
}
