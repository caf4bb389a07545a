//! Features of the paged server whose failure the gate must detect: for each a correct fake server, and one fault after
//! the other. Each fault fails its own check, for its own reason.

use super::support::gating::{fakes, gate_servers, gated, held};
use super::support::{files, llama_server};

/// Every fault has a check that detects it, and a line in the table of docs/design/gate.md.
#[test]
fn every_fault_is_tried_and_written_down() {
    let read = |path: &str| std::fs::read_to_string(files::of_this_repository(path)).unwrap();
    let table = read("docs/design/gate.md");
    let tests = ["servers", "features", "promises"]
        .map(|name| read(&format!("xtask/crates/qa/tests/cli/gate_{name}.rs")));
    for fault in llama_server::FAULTS {
        assert!(table.contains(&format!("`{fault}`")), "docs/design/gate.md does not name `{fault}`");
        assert!(tests.iter().any(|text| text.contains(fault)), "no test has `{fault}`");
    }
}

/// A check without a row has no fault that it is known to detect.
#[test]
fn every_check_has_a_row_in_the_table_of_faults() {
    let output = gate_servers(&gated(), "unknown").code(2);
    let known =
        output.stderr.lines().find_map(|line| line.trim().strip_prefix("next: use one of: ")).unwrap();
    let page = std::fs::read_to_string(files::of_this_repository("docs/design/gate.md")).unwrap();
    let (_, section) = page.split_once("\n## Servers\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let first_cells = section.lines().filter_map(|line| line.split('|').nth(1)).map(str::trim);
    let rows: Vec<&str> = first_cells.filter(|cell| !["", "check", "---"].contains(cell)).collect();
    assert_eq!(rows, known.split(", ").collect::<Vec<_>>());
}

#[test]
fn residual_windows_in_f16() {
    let all =
        "trained f16, 1 sequence, -ctk, turbo2, -ctv, turbo2, --kv-recent, 65536: request 0: token 3 is not";
    let parts = "copies of some cells, a prompt in parts: request 0: token 3 is not stock's";
    held("copies", &[("", "reads the quantized cache", all), ("", "recycles a row too early", parts)]);
}

#[test]
fn a_prefill_budget() {
    held(
        "prefill-budget",
        &[
            ("", "forgets the budget", "--kv-paged, budget 16: the prompt took 1 steps, the largest of 2000"),
            ("", "computes alone", "--kv-paged, budget 16: the stream got "),
            ("", "always computes in steps", "budget 0: without a budget the prompt took 125 steps"),
            (
                "",
                "a wrong token",
                "prefill-budget: --kv-paged, budget 16: the stream: token 3 is not stock's",
            ),
            ("", "refuses streams", "the stream returned 500"),
            ("", "refuses long prompts", "the long prompt returned 500"),
        ],
    );
}

#[test]
fn a_fragmented_pool() {
    held(
        "fragmented-pool",
        &[
            (
                "",
                "wants blocks in a row",
                "the long prompt evicted 58 blocks, of 36 that were to lie scattered",
            ),
            (
                "",
                "finds what was evicted",
                "fragmented-pool: dropped: expected 0 cached tokens, found Some(576)",
            ),
            ("", "finds nothing", "fragmented-pool: keeping: expected 320 cached tokens, found Some(0)"),
        ],
    );
}

#[test]
fn eviction() {
    held(
        "eviction",
        &[
            ("", "evicts nothing", "eviction: nothing was evicted"),
            ("", "finds what was evicted", "the evicted prompt: expected 0 cached tokens, found Some(320)"),
            ("", "finds nothing", "eviction: the first prompt: expected 320 cached tokens, found Some(0)"),
        ],
    );
}

/// The second and third model of a feature check have sliding windows, the third one in blocks of their own.
#[test]
fn blocks_of_windows_are_at_rest_too() {
    let only = ["gate", "--only", "servers", "--check", "eviction", "--model", "gemma3"];
    fakes("", "").run(&only).success();
    let output = fakes("", "keeps one size").run(&only).code(1);
    assert!(
        output.stderr.contains("the layers with a sliding window have no blocks of their own"),
        "{output}"
    );
}

#[test]
fn preemption_of_streams_and_prompts() {
    held(
        "preemption",
        &[
            ("", "preempts no request", "preemption: no request was preempted"),
            ("", "resumes otherwise", "preemption: a request that outgrows the pool: token "),
            ("", "refuses who outgrows", "preemption: a request that outgrows the pool returned 500"),
        ],
    );
    held(
        "preempted-prompt",
        &[
            ("", "keeps the clock", "GGML_ASSERT(t_start == 0) failed"),
            ("", "resumes otherwise", "preempted-prompt: a crowd around a long prompt: token "),
            ("", "preempts no prompt", "preempted-prompt: no prompt was preempted while it was computed"),
        ],
    );
}

#[test]
fn several_choices() {
    held(
        "several-choices",
        &[
            ("", "answers once", "several-choices: n: 2 returned 200 with 1 choices"),
            ("", "chooses in one block", "several-choices: n: 2, 200 tokens: token "),
            ("", "computes each choice", "several-choices: 4 choices of one prompt held 1"),
        ],
    );
}

#[test]
fn slots_in_files() {
    held(
        "slots-in-files",
        &[
            ("", "saves nothing", "slots-in-files: save: expected 193 tokens, returned 200: {\"n_saved\":0}"),
            (
                "",
                "erases nothing",
                "slots-in-files: after erasing: expected 192 cached tokens, found Some(193)",
            ),
            (
                "",
                "restores nothing",
                "slots-in-files: after restoring: expected 193 cached tokens, found Some(",
            ),
            ("", "restores another text", "slots-in-files: after restoring: token 0 is not stock's"),
        ],
    );
}

#[test]
fn drafts() {
    held(
        "drafts",
        &[
            ("", "drafts nothing", "drafts: 0 of 0 drafted tokens were accepted"),
            ("", "accepts all", "drafts: 396 of 396 drafted tokens were accepted"),
            ("", "accepts wrong drafts", "drafts: volley 0: token 3 is not stock's"),
        ],
    );
}

#[test]
fn the_end_of_the_context() {
    held(
        "end-of-context",
        &[
            ("", "shifts the context", "end-of-context: asked for too much: token 312 is not stock's"),
            ("", "ends otherwise", "end-of-context: it ended by \"eos\""),
            ("", "keeps silent", "end-of-context: the server did not log `--context-shift is not supported"),
        ],
    );
}

#[test]
fn adapters() {
    held(
        "adapters",
        &[
            ("ignores adapters", "", "adapters: the adapter changes nothing in stock"),
            ("", "forgets the adapter", "adapters: scale 0.5: expected 0 cached tokens, found Some(256)"),
            ("", "forgets the adapter", "adapters: scale 0.5: token 0 is not stock's"),
            ("", "forgets the own scale", "adapters: own scale 0: token 0 is not stock's"),
        ],
    );
}

#[test]
fn overload() {
    held(
        "overload",
        &[
            // Two faults per run, because each run sends hundreds of requests.
            ("", "a wrong token, evicts nothing", " wrong answers, 0 errors:\n"),
            ("", "a wrong token, evicts nothing", "overload: no overload: 0 blocks evicted, "),
            ("", "refuses who outgrows, holds what who left had", "overload: 0 wrong answers, "),
            (
                "",
                "refuses who outgrows, holds what who left had",
                "overload: blocks are in use after all requests ended: 1 of 16",
            ),
        ],
    );
}

#[test]
fn images() {
    held(
        "images",
        &[
            ("", "forgets the image", "images: request 2 found 236 tokens instead of 0"),
            ("", "forgets the image", "images: request 2: token 0 is not stock's"),
            ("", "closes no block", "images: request 1 found 192 tokens instead of 236"),
            ("", "closes no block", "images: request 3 found 64 tokens instead of 108"),
            ("", "evicts nothing", "a crowd with images: nothing was evicted: "),
        ],
    );
}

#[test]
fn an_option_that_stock_has_too() {
    for (stock, code) in [("", 0), ("has our option", 1)] {
        let project = fakes(stock, "");
        let declaration = "    add_opt(common_arg(\n        {\"--kv-paged\"},\n";
        project.take_patch(|fork| files::write(&fork.join("src/options.cpp"), declaration));
        let output = gate_servers(&project, "options").code(code);
        let is_seen = output.stderr.contains("options: stock has `--kv-paged` too, which a patch adds");
        assert_eq!(is_seen, code == 1, "{output}");
    }
}

#[test]
fn user_set_switches_are_cleared_for_images_too() {
    let project = fakes("", "");
    let mut command = project.command(&["gate", "--only", "servers", "--check", "images"]);
    command.env("ESPALIER_ENABLE", "gdn-flat-output");
    project.finish(command).success();
}

/// Results and tolerances of one check do not affect the next one.
#[test]
fn checks_in_one_run_are_as_strict_as_alone() {
    let faults =
        "finds what was evicted, resumes otherwise, answers once, saves nothing, ends otherwise, moves";
    let project = fakes("rounds in drafts", faults);
    let names = ["eviction", "preemption", "several-choices", "slots-in-files", "drafts", "end-of-context"];
    let checks = names.iter().flat_map(|name| ["--check", name]);
    let output = project.run(&["gate", "--only", "servers"].into_iter().chain(checks).collect::<Vec<_>>());
    output.code(1).says(&[
        "eviction: the evicted prompt: expected 0 cached tokens, found Some(320)",
        "preemption: a request that outgrows the pool: token ",
        "several-choices: n: 2 returned 200 with 1 choices",
        "slots-in-files: save: expected 193 tokens, returned 200",
        "end-of-context: asked for too much: the likeliest tokens are 0.200 from stock's; stock's own rounding explains \
         0.020",
        "end-of-context: it ended by \"eos\"",
    ]);
}
