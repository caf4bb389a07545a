//! Failures of the gate's second part: fake servers on the loopback, and one fault after the other. Each fails the gate
//! for its own reason.

use super::support::gating::{fakes, gate_servers, gated, held, red, say_numerics};

#[test]
fn servers_that_answer_alike_pass() {
    let output = gate_servers(&fakes("", ""), "answers").success();
    assert!(
        output.stdout.contains("answers token-identical to stock, 0 diverged at a tie within tolerance"),
        "{output}"
    );
}

#[test]
fn an_answer_that_is_not_stocks_is_seen() {
    // The first is not in paged answers, the second only in those.
    let output = gate_servers(&fakes("", "another token, a wrong token"), "answers").code(1);
    for reason in [
        "trained f16, off: request 0 differs from stock's answer",
        "trained f16, 1 sequence: request 0: token 3 is not stock's",
    ] {
        assert!(output.stderr.contains(reason), "{reason}: {output}");
    }
}

#[test]
fn a_token_that_equals_stocks_by_chance_is_found() {
    red(
        "answers",
        "",
        "moves",
        "the likeliest tokens are 0.200 from stock's; stock's own rounding explains 0.020",
    );
}

#[test]
fn too_many_ties_fail() {
    let output = gate_servers(&fakes("", "ties"), "answers").code(1);
    assert!(
        output.stderr.contains(
            "of the answers differ from stock's at a tie within tolerance; expected at most 11.1 %"
        ),
        "{output}"
    );
    assert!(!output.stderr.contains("is not stock's"), "{output}");
}

#[test]
fn a_server_that_refuses_or_dies_is_seen() {
    red("answers", "", "refuses", "request 0 returned 500: {\"error\":{\"message\":\"the KV cache");
    red("answers", "", "dies", "GGML_ASSERT(t_start == 0) failed");
}

#[test]
fn one_check_that_fails_does_not_hide_the_next() {
    let project = fakes("", "forgets the key of a slot, dies");
    let checks = ["--check", "answers", "--check", "sharing", "--model", "trained"];
    let output = project.run(&[&["gate", "--only", "servers"], &checks[..]].concat()).code(1);
    for reason in ["answers: error: ", "GGML_ASSERT(t_start == 0) failed", "a kept slot: found Some(0)"] {
        assert!(output.stderr.contains(reason), "{reason}: {output}");
    }
}

#[test]
fn checks_that_need_the_same_answers_of_stock_ask_it_once() {
    let project = fakes("", "");
    let stock = "target/espalier/dist/stock-cpu-native/bin/llama-server";
    project.edit(stock, "FAKE_ARGUMENTS=", "echo \"$* \" >>\"$0.log\"\nFAKE_ARGUMENTS=");
    let checks = ["--check", "answers", "--check", "copies", "--model", "trained"];
    let output = project.run(&[&["gate", "--only", "servers"], &checks[..]].concat());
    let output = output.says(&["Comparing the servers' answers with copies of cells"]);
    let log = project.read(&format!("{stock}.log"));
    let is_alone =
        |line: &&str| [" -ctk f16 ", " -np 1 ", " --kv-unified "].iter().all(|word| line.contains(word));
    assert_eq!(log.lines().filter(is_alone).count(), 1, "{log}{output}");
}

#[test]
fn servers_are_held_to_the_numerics_of_their_patches() {
    let reason = "trained f16, off: request 0 differs from stock's answer";
    red("answers", "", "rounds otherwise", reason);
    let project = fakes("", "rounds otherwise");
    say_numerics(&project, "bounded 1e-2");
    gate_servers(&project, "answers").success();
    let project = fakes("", "another token");
    say_numerics(&project, "bounded 1e-2");
    let output = gate_servers(&project, "answers").code(1);
    assert!(output.stderr.contains("trained f16, off: request 0: token 3 is not stock's"), "{output}");
}

#[test]
fn our_attention_alone_is_held_to_stocks_answers_and_paged_to_its_own() {
    let project = fakes("", "attends otherwise");
    gate_servers(&project, "answers").success();
    say_numerics(&project, "bounded 1e-2 with attention");
    let output = gate_servers(&project, "answers").code(1);
    for reason in [
        "trained f16, our attention: request 0: token 3 is not stock's",
        "trained f16, 1 sequence: request 0: token 3 is not stock's",
    ] {
        assert!(output.stderr.contains(reason), "{output}");
    }
}

#[test]
fn a_server_that_runs_unpaged_says_so() {
    let only = ["gate", "--only", "servers", "--check", "answers", "--model", "gemma3"];
    fakes("", "").run(&only).success();
    let output = fakes("", "keeps silent").run(&only).code(1);
    assert!(output.stderr.contains("gemma3 f16: the server did not report that it runs unpaged"), "{output}");
}

#[test]
fn windows_without_cells_of_their_own_are_seen() {
    let only = ["gate", "--only", "servers", "--check", "answers", "--model", "gemma3"];
    let output = fakes("", "keeps one size").run(&only).code(1);
    assert!(
        output.stderr.contains("the layers with a sliding window have no blocks of their own"),
        "{output}"
    );
}

#[test]
fn a_model_with_a_state_may_compute_a_little_twice() {
    let only = ["gate", "--only", "servers", "--check", "answers", "--model", "qwen35"];
    fakes("", "").run(&only).success();
    let output = fakes("", "publishes late").run(&only).code(1);
    assert!(output.stderr.contains(" prompt tokens were computed, expected at most 1324"), "{output}");
}

#[test]
fn answers_that_stock_leaves_out_are_not_compared() {
    red("answers", "stock refuses", "", "answers: error: /completion answered 500");
}

#[test]
fn a_prompt_that_is_computed_twice_is_seen() {
    red("answers", "", "publishes late", " prompt tokens were computed, expected at most 940");
    red("answers", "", "says no prompt_n", "does not report in `timings.prompt_n` what was computed");
}

#[test]
fn a_pool_that_does_not_share_or_let_go_is_seen() {
    red("answers", "", "shares nothing", "trained f16, 1 sequence: nothing was shared: ");
    red(
        "answers",
        "",
        "holds a block",
        "1 sequence: blocks are in use after all requests ended: 1 of 128 blocks",
    );
}

#[test]
fn a_count_that_was_renamed_is_named() {
    red("answers", "", "renames a count", "missing field `hit_tokens`");
}

#[test]
fn hits_across_keys_are_found() {
    held(
        "sharing",
        &[
            ("", "finds nothing", "the same key: expected 320 cached tokens, status 200, found Some(0)"),
            ("", "forgets the key", "another key: expected 0 cached tokens, status 200, found Some(320)"),
            ("", "forgets the salt", "a salt: expected 0 cached tokens, status 200, found Some(320)"),
            (
                "",
                "forgets cache_prompt",
                "cache_prompt off: expected 0 cached tokens, status 200, found Some(320)",
            ),
            (
                "",
                "forgets the key of a slot",
                "a kept slot: found Some(0), Some(320) with the same key, Some(320)",
            ),
            ("", "takes all", "a request too large for the pool returned 200"),
            ("", "ends after refusing", "after refusing a request the server answered 500"),
        ],
    );
}

#[test]
fn drafts_that_are_accepted_otherwise_are_seen() {
    held(
        "draft-model",
        &[
            ("", "accepts less", "request 0: (drafted, accepted) is (8, 1), stock has (8, 3)"),
            ("drafts nothing", "drafts nothing", "stock reports no token as drafted"),
            ("", "keeps drafts", "returned 500: {\"error\":{\"message\":\"failed to process spec"),
        ],
    );
}

#[test]
fn an_unknown_check_is_reported() {
    let output = gate_servers(&gated(), "answer").code(2);
    output.says(&["no check `answer`", "next: use one of: answers, sharing, prefill-budget"]);
}

#[test]
fn no_server_reads_the_users_config() {
    let project = fakes("", "");
    let server = |variant: &str| format!("target/espalier/dist/{variant}-cpu-native/bin/llama-server");
    for variant in ["stock", "paged"] {
        let log = "echo \"$XDG_CONFIG_HOME\" >>\"$0.log\"\nFAKE_ARGUMENTS=";
        project.edit(&server(variant), "FAKE_ARGUMENTS=", log);
    }
    let arguments = ["gate", "--only", "servers", "--check", "answers", "--model", "trained"];
    let mut gate = project.command(&arguments);
    gate.env("XDG_CONFIG_HOME", project.beside("config"));
    project.finish(gate).success();
    for variant in ["stock", "paged"] {
        let log = project.read(&format!("{}.log", server(variant)));
        assert!(!log.is_empty() && log.lines().all(|line| line == "/dev/null"), "{variant}: {log}");
    }
}
