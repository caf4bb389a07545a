//! Failures of the gate's first part: a fake probe for two fake builds, and one fault after the other.

use super::support::gating::{break_header, break_header_of, gated, say_numerics};
use super::support::{Output, Project};

/// Runs the gate for one architecture, with a delta net: each of the 9 cases runs three or four probes.
fn gate(project: &Project) -> Output {
    project.run(&["gate", "--only", "logits", "--model", "qwen35"])
}

/// Runs the gate on a project whose last patch declares `numerics`, with one function of our build broken.
fn broken(numerics: &str, function: &str, body: &str) -> (Output, String) {
    let project = gated();
    let patch = say_numerics(&project, numerics);
    break_header(&project, function, body);
    (gate(&project), patch)
}

#[test]
fn equal_logits_pass() {
    let output = gate(&gated()).success();
    assert!(output.stdout.contains("logits: 9 of 72 cases, off and on, all bytes equal"), "{output}");
}

#[test]
fn each_break_of_an_identical_patch_is_red_for_its_own_reason() {
    let breaks = [
        ("moved_by", "run.is_all_off() && i == 3 ? 1e-6f : 0.0f", "everything off: byte "),
        (
            "moved_by",
            "run.is_on(\"gdn-flat-output\") && i == 3 ? 1e-6f : 0.0f",
            "`gdn-flat-output` on: byte ",
        ),
        ("moved_by", "i == 3 ? NAN : 0.0f", "a logit moved by inf; expected all bytes equal"),
        ("n_logits", "7", "28 bytes of logits instead of 32; expected all bytes equal"),
        ("keeps_shape", "false", "expected to say that it kept the stock shape; log:"),
        ("keeps_shape", "run.is_on(\"gdn-flat-output\")", "expected to flatten it; log: espalier: "),
    ];
    for (function, body, reason) in breaks {
        let (output, patch) = broken("identical", function, body);
        let output = output.code(1);
        assert!(output.stderr.contains(reason), "{function} {body}: {output}");
        if function == "moved_by" {
            assert!(output.stderr.contains(&format!("{patch} (identical)")), "{output}");
            assert_eq!(output.stderr.contains("everything off"), !body.contains("gdn"), "{output}");
        }
    }
}

#[test]
fn a_probe_that_says_nothing_or_dies_does_not_pass() {
    let (output, _) = broken("identical", "n_logits", "0");
    assert!(output.code(1).stderr.contains("wrote no logits"));
    let (output, _) = broken("identical", "exit_code", "3");
    assert!(output.stderr.contains("exit status: 3") || output.stderr.contains("exit code 3"), "{output}");
    assert_ne!(output.code, Some(0), "{output}");
}

#[test]
fn a_patch_that_is_bounded_with_a_feature_can_land() {
    let moves = "run.is_on(\"fast\") && i == 3 ? 1e-4f : 0.0f";
    let (output, _) = broken("bounded 1e-3 with fast", "moved_by", moves);
    let output = output.success();
    assert!(
        output.stdout.contains("`fast` on: a logit moved by 1.0e-4 at most, 1e-3 is allowed"),
        "{output}"
    );
    let (output, patch) = broken("bounded 1e-5 with fast", "moved_by", moves);
    let output = output.code(1);
    let blamed = format!("`fast` on: it is {patch} (bounded 1e-5), unless");
    assert!(output.stderr.contains(&blamed), "{output}");
    assert!(!output.stderr.contains("(identical)") && !output.stderr.contains("off: byte"), "{output}");
}

#[test]
fn a_bounded_feature_is_held_to_the_bit_while_it_is_off_and_must_switch_on() {
    let (output, _) = broken("bounded 1e-3 with fast", "moved_by", "i == 3 ? 1e-4f : 0.0f");
    let output = output.code(1);
    assert!(
        output.stderr.contains("everything off: byte ") && output.stderr.contains("expected all bytes"),
        "{output}"
    );
    let (output, patch) = broken("bounded 1e-3 with fast", "moved_by", "0.0f");
    let never = format!("`fast` was never switched on, or {patch} is `identical`");
    assert!(output.code(1).stderr.contains(&never));
}

#[test]
fn a_patch_that_is_always_bounded_may_move_what_it_says() {
    let (output, _) = broken("bounded 1e-3", "moved_by", "i == 3 ? 1e-4f : 0.0f");
    assert!(
        output.success().stdout.contains("everything off: a logit moved by 1.0e-4 at most, 1e-3 is allowed")
    );
    let (output, patch) = broken("bounded 1e-5", "moved_by", "i == 3 ? 1e-4f : 0.0f");
    let output = output.code(1);
    assert!(output.stderr.contains(&format!("{patch} (bounded 1e-5)")), "{output}");
}

/// Output of the probe for a build with AMX, as a C++ literal.
const AMX: &str = r#""{\"buffer_types\":[\"AMX\",\"CPU_REPACK\"]}""#;

/// Movement of a logit that only models with a choice of experts have: our build chooses another one.
const ANOTHER_CHOICE: &str = "run.experts_used == 2 && i == 3 ? 1.0f : 0.0f";

/// Runs the gate for a model with experts on builds of which these variants have AMX.
fn gate_with_amx(variants: &[&str], moved_by: &str) -> Output {
    let project = gated();
    say_numerics(&project, "bounded 5e-1");
    break_header(&project, "moved_by", moved_by);
    variants.iter().for_each(|variant| break_header_of(&project, variant, "buffer_types", AMX));
    project.run(&["gate", "--only", "logits", "--model", "qwen35moe"])
}

#[test]
fn a_choice_of_experts_is_compared_where_both_builds_have_the_same_kernels() {
    for variants in [vec![], vec!["stock", "paged"]] {
        let output = gate_with_amx(&variants, ANOTHER_CHOICE).code(1);
        assert!(output.stderr.contains("qwen35moe q8_0 5 sequences, everything off: byte "), "{output}");
        assert!(!output.stderr.contains("AMX") && !output.stderr.contains("all-experts"), "{output}");
    }
}

#[test]
fn all_experts_are_used_where_one_build_has_amx_and_the_bound_stays() {
    for (variant, text) in [("paged", "paged uses AMX and stock does not"), ("stock", "stock uses AMX")] {
        let output = gate_with_amx(&[variant], ANOTHER_CHOICE).success();
        assert!(output.stdout.contains("logits: 18 of 72 cases") && output.stdout.contains(text), "{output}");
    }
    let moves = "run.experts_used == 4 && i == 3 ? 1.0f : 0.0f";
    let output = gate_with_amx(&["paged"], moves).code(1);
    for text in ["qwen35moe f16 all-experts 8 sequences, everything off: byte ", "paged uses AMX"] {
        assert!(output.stderr.contains(text), "{output}");
    }
}

#[test]
fn a_probe_that_does_not_list_its_buffer_types_does_not_pass() {
    let (output, _) = broken("identical", "buffer_types", r#""AMX is not ready to be used!""#);
    output.code(1).says(&["printed no list of buffer types"]);
}

#[test]
fn without_kernels_there_is_no_pool_to_compare() {
    let project = gated();
    project.edit("pins.toml", "kernels = true\n", "");
    project
        .run(&["gate", "--only", "servers"])
        .code(2)
        .says(&["`paged` has no kernels", "next: cargo xtask gate --only logits --variant paged"]);
}

#[test]
fn without_a_probe_or_a_reference_nothing_passes() {
    let project = gated();
    std::fs::remove_file(project.path("ci/probe/probe.cpp")).unwrap();
    let copy = "next: copy it from a clone of Espalier: mkdir -p ci && cp -R ESPALIER/ci/probe ci/";
    gate(&project).code(2).says(&["no `ci/probe/probe.cpp`", copy]).says_nothing_of("git checkout");
    let committed = gated();
    committed.fresh_clone("colleague");
    std::fs::remove_file(committed.path("ci/probe/probe.cpp")).unwrap();
    gate(&committed).code(2).says(&["next: git checkout HEAD -- ci/probe/probe.cpp"]);
    let project = Project::new();
    gate(&project)
        .code(2)
        .says(&["names no variant to gate `paged` against", "next: add `gate = \"VARIANT\"`"]);
}
