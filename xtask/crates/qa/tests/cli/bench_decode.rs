//! The decode bench, end to end with a fake probe: the features that it enables, and its goals.

use serde_json::json;

use super::bench::write_manifest;
use super::support::gating::{add_generation, gated};
use super::support::{Output, Project, files};

/// A probe that is faster by DECODE and PROMPT if all features are on.
const PROBE: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char ** argv) {
    const char * enabled = getenv("ESPALIER_ENABLE");
    const bool   is_on   = enabled && !strcmp(enabled, "gdn-flat-output,gdn-recurrence,mul-mat");
    int          seqs    = 0;
    for (int i = 1; i + 1 < argc; i++) {
        if (!strcmp(argv[i], "--seqs")) { seqs = atoi(argv[i + 1]); }
    }
    printf("{\"decode_tps_median\":%f,\"prompt_tps_median\":%f}\n",
           10.0 * seqs * (is_on ? DECODE : 1.0), 1000.0 * (is_on ? PROMPT : 1.0));
    return 0;
}
"#;

fn with_probe(decode: f64, prompt: f64) -> Project {
    let project = gated();
    let probe = PROBE.replace("DECODE", &decode.to_string()).replace("PROMPT", &prompt.to_string());
    project.write("ci/probe/probe.cpp", probe);
    for variant in ["stock", "paged"] {
        write_manifest(&project, variant);
    }
    project
}

/// Runs the bench for 8 sequences, also on a busy machine.
fn bench(project: &Project, weights: &str, more: &[&str]) -> Output {
    let words = ["bench", "decode", "--rounds", "2", "--sequences", "8", "--threads", "1", "--busy-anyway"];
    project.run(&[&words[..], &["--weights", weights], more].concat())
}

#[test]
fn all_features_are_on_in_our_build_alone() {
    let found = bench(&with_probe(1.5, 1.25), "q4_0", &["--json"]).success().json();
    let case = &found["cases"][0];
    assert_eq!(case["enabled"], json!({ "decode": [120.0, 120.0], "prompt": [1250.0, 1250.0] }), "{found}");
    for off in ["stock", "disabled"] {
        assert_eq!(
            case[off],
            json!({ "decode": [80.0, 80.0], "prompt": [1000.0, 1000.0] }),
            "{off}: {found}"
        );
    }
    assert_eq!(
        (&case["sequences"], &case["weights"], &found["cases"][1]),
        (&json!(8), &json!("q4_0"), &json!(null))
    );
    assert_eq!(found["features"], json!("gdn-flat-output,gdn-recurrence,mul-mat"));
    assert_eq!((&found["threads"], &found["trees"]["paged"]), (&json!(1), &json!("2")));
}

/// Stock is the variant that ours is gated against, on the same pin.
#[test]
fn a_variant_on_a_generation_is_compared_with_stock_there() {
    let project = with_probe(1.5, 1.25);
    add_generation(&project);
    for (variant, like) in [("stock-next", "stock"), ("paged-next", "paged")] {
        let package = |variant: &str| project.path(&format!("target/espalier/dist/{variant}-cpu-native"));
        files::copy_folder(&project.tree(like), &project.tree(variant));
        files::copy_folder(&package(like), &package(variant));
        write_manifest(&project, variant);
    }
    let found = bench(&project, "q4_0", &["--variant", "paged-next", "--json"]).success().json();
    let trees = json!({ "paged-next": "2", "stock-next": "2" });
    assert_eq!((&found["variant"], &found["trees"]), (&json!("paged-next"), &trees), "{found}");
    let found = bench(&project, "q4_0", &["--json"]).success().json();
    assert!(found.get("variant").is_none(), "{found}");
}

#[test]
fn features_can_be_selected() {
    let project = with_probe(1.5, 1.25);
    let found = bench(&project, "q4_0", &["--features", "mul-mat", "--json"]).success().json();
    let enabled = &found["cases"][0]["enabled"];
    assert_eq!(enabled, &json!({ "decode": [80.0, 80.0], "prompt": [1000.0, 1000.0] }), "{found}");
    assert_eq!(found["features"], json!("mul-mat"));
    let output = bench(&project, "q4_0", &["--features", "attention"]).code(2);
    assert!(
        output.stderr.contains("[possible values: gdn-flat-output, gdn-recurrence, mul-mat]"),
        "{output}"
    );
}

#[test]
fn slow_decoding_and_slow_prompts_fail() {
    let output = bench(&with_probe(1.25, 0.5), "q8_0", &[]).code(1);
    for expected in [
        "not good: q8_0, 8 sequences: decoding at 1.25x stock; expected 1.30x",
        "not good: q8_0, 8 sequences: prompts at 0.50x stock; expected 0.97x",
    ] {
        assert!(output.stdout.contains(expected), "{expected}: {output}");
    }
}

#[test]
fn a_measurement_that_fails_leaves_no_model_behind() {
    // A rate of 0 is an error.
    let project = with_probe(0.0, 1.0);
    let model = project.path("target/espalier/bench/model.gguf");
    let output = bench(&project, "q8_0", &[]).code(3);
    assert!(output.stderr.contains("printed no `decode_tps_median`"), "{output}");
    assert!(!model.exists() && model.parent().unwrap().is_dir());
}

#[test]
fn a_build_without_a_manifest_is_not_measured() {
    let output = bench(&gated(), "q8_0", &[]).code(2);
    assert!(output.stderr.contains("stock-cpu-native is not built"), "{output}");
}
