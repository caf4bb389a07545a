//! The benches of shared prefixes, end to end on fake servers: every request is sent, and what is not shared is found.

use serde_json::{Value, json};

use super::bench::write_manifest;
use super::support::{Output, Project, llama_server};

/// Creates a project with fake servers, ours with these faults.
fn with_fakes(ours: &str) -> Project {
    let project = Project::new();
    for (variant, faults) in [("stock", ""), ("paged", ours)] {
        llama_server::package(&project, variant, faults);
        write_manifest(&project, variant);
    }
    project
}

/// Runs a bench on one thread, also on a busy machine.
fn bench(project: &Project, words: &str, more: &[&str]) -> Output {
    let words: Vec<&str> = words.split(' ').collect();
    project.run(&[&["bench"][..], &words[..], &["--threads", "1", "--busy-anyway"], more].concat())
}

const PREFIXES: &str = "prefixes --shared 200 --length 300 --prompts 4 --clients 2";

#[test]
fn a_shared_prefix_is_computed_once() {
    let found = bench(&with_fakes("has our option"), PREFIXES, &["--json"]).success().json();
    let computed = |server: usize, arrival: &str| &found["cases"][0]["servers"][server][arrival]["computed"];
    assert_eq!(computed(0, "in_turn"), &json!([300, 300, 300, 300]), "{found}");
    assert_eq!(computed(1, "in_turn"), &json!([300, 108, 108, 108]), "{found}");
    let at_once: Vec<u64> = serde_json::from_value(computed(1, "at_once").clone()).unwrap();
    assert_eq!((at_once.len(), at_once.iter().filter(|count| **count == 300).count()), (4, 1), "{at_once:?}");
    let times = &found["cases"][0]["servers"][1]["in_turn"]["first_token_seconds"];
    assert!(times.as_array().unwrap().iter().all(|time| time.as_f64() > Some(0.0)), "{times}");
    assert_eq!(found["failures"], json!([]));
}

/// Families take turns, so that each has its own snapshots.
#[test]
fn our_server_runs_with_each_size_for_snapshots() {
    let project = with_fakes("has our option");
    let words = "prefixes --model hybrid --shared 200 --length 300 --prompts 6 --families 2 --clients 2";
    let plot = project.path("hits.svg");
    let more = ["--kv-snapshots", "0,8M", "--plot", plot.to_str().unwrap()];
    let found = bench(&project, words, &[&more[..], &["--json"]].concat()).success().json();
    let servers = &found["cases"][0]["servers"];
    let in_turn = |server: usize| {
        let Value::Object(requests) = &servers[server]["in_turn"] else { panic!("{found}") };
        (
            servers[server]["kv_snapshots"].clone(),
            requests["computed"].clone(),
            requests.get("snapshots").cloned(),
        )
    };
    assert_eq!(in_turn(0), (json!(null), json!(vec![300; 6]), None));
    assert_eq!(in_turn(1), (json!("0"), json!(vec![300; 6]), Some(json!({ "hits": 0, "bytes": 0 }))));
    let (hits, computed) = (json!({ "hits": 4, "bytes": 4 << 20 }), json!([300, 300, 108, 108, 108, 108]));
    assert_eq!(in_turn(2), (json!("8M"), computed, Some(hits)));
    assert_eq!(servers[3], json!(null), "{found}");
    // No goal is set for a size.
    assert_eq!(found["failures"], json!([]));
    let plot = std::fs::read_to_string(plot).unwrap();
    // Of 1,800 tokens, the ideal computes 2 x 300 + 4 x 100.
    for bar in ["0 hits, ideal / computed 56 %, 0.0 MiB held", "4 hits, ideal / computed 97 %, 4.0 MiB held"]
    {
        assert!(plot.contains(bar), "{bar}: {plot}");
    }
}

#[test]
fn a_cache_that_finds_nothing_fails() {
    let output = bench(&with_fakes("has our option, finds nothing"), PREFIXES, &[]).code(1);
    let expected =
        "not good: 200 tokens of 300 shared, paged: 300 tokens computed for a prompt from the third one on";
    assert!(output.stdout.contains(expected), "{output}");
}

#[test]
fn a_server_that_reports_no_counts_is_not_measured() {
    let output =
        bench(&with_fakes("has our option, says no prompt_n"), PREFIXES, &["--only", "paged"]).code(1);
    assert!(output.stderr.contains("a stream ended without timings"), "{output}");
    assert!(output.stderr.contains("server under test `paged`"), "{output}");
}

/// It continues in its slots, so that it could reach the goals of both benches.
#[test]
fn a_server_that_runs_unpaged_is_not_measured() {
    let project = with_fakes("has our option, runs unpaged");
    for words in [PREFIXES, "turns --users 2 --turns 3"] {
        let output = bench(&project, words, &["--only", "paged"]).code(1);
        assert!(output.stderr.contains("the server runs unpaged despite `--kv-paged`"), "{output}");
    }
}

#[test]
fn a_turn_continues_the_one_before() {
    let words = "turns --users 2 --turns 3 --system 100 --message 500 --answer 20 --only paged";
    let found = bench(&with_fakes("has our option"), words, &["--json"]).success().json();
    assert_eq!(found["new_tokens"], json!([1100, 1002, 1002]), "{found}");
    // Of 1,120 and 1,640 tokens of each user, those of 9 and 17 whole blocks are found.
    let computed: &Value = &found["servers"][0]["computed"];
    assert_eq!((&computed[1], &computed[2]), (&json!(1088), &json!(1104)), "{found}");
}

#[test]
fn impossible_workloads_are_refused_before_anything_is_measured() {
    let project = with_fakes("has our option");
    let output = project.run(&["bench", "prefixes", "--shared", "100,2200"]).code(2);
    assert!(output.stderr.contains("`--shared 2200` leaves no other token of a prompt of 2200"), "{output}");
    let output = project.run(&["bench", "prefixes", "--kv-snapshots", "8M,16M"]).code(2);
    assert!(output.stderr.contains("`--kv-snapshots` has an effect only on a model with"), "{output}");
    let output = project.run(&["bench", "turns", "--turns", "1"]).code(2);
    assert!(output.stderr.contains("`--turns` at least 2"), "{output}");
}
