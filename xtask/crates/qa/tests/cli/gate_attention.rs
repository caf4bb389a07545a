//! Failures of the gate's attention check: a fake probe for two fake builds, and one fault after the other.

use super::support::gating::{break_header, gated, say_numerics};
use super::support::{Output, Project};

fn gate(project: &Project) -> Output {
    project.run(&["gate", "--only", "attention"])
}

/// Runs the gate on a project whose last patch changes attention, with one function of our build broken.
fn broken(function: &str, body: &str) -> Output {
    let project = gated();
    say_numerics(&project, "bounded 1e-3 with attention");
    break_header(&project, function, body);
    gate(&project)
}

#[test]
fn a_lower_error_than_stocks_passes() {
    let output = broken("error_of", "run.is_on(\"attention\") ? 5e-4 : 1e-3").success();
    let expected = "attention: 2 cases, error at most 0.50 of stock's; 1 of types that stock has not, error at most 1.0e-6";
    assert!(output.stdout.contains(expected), "{output}");
}

#[test]
fn without_a_patch_of_attention_nothing_is_compared() {
    let output = gate(&gated()).success();
    assert!(output.stdout.contains("attention: no patch of paged computes it"), "{output}");
}

#[test]
fn each_break_is_red_for_its_own_reason() {
    let breaks = [
        ("error_of", "1.01e-3", "K q8_0 of 64, V f16 of 64, tokens: 1: error 1.01e-3, stock's is 1.00e-3"),
        ("error_of", "NAN", "printed a line that is not a case"),
        ("bits_of", "\"1e\"", "tokens: 2: stock's bits: the kernel was not used"),
        ("n_cases", "1", "tokens: 2: computed by stock only"),
        ("n_cases", "3", "tokens: 3: computed by ours only"),
        ("n_cases", "0", "no case was computed on both builds"),
        ("own_error_of", "2e-4", "V tcq9 of 64, tokens: 1: error 2.00e-4, expected at most 1e-4"),
        ("exit_code", "3", "3"),
    ];
    for (function, body, reason) in breaks {
        let output = broken(function, body);
        assert_ne!(output.code, Some(0), "{output}");
        assert!(output.stderr.contains(reason), "{function} {body}: {output}");
    }
}

#[test]
fn without_the_probe_nothing_passes() {
    let project = gated();
    say_numerics(&project, "bounded 1e-3 with attention");
    std::fs::remove_file(project.path("ci/probe/attention.cpp")).unwrap();
    gate(&project).code(2).says(&["no `ci/probe/attention.cpp`", "next: or gate nothing: "]);
}
