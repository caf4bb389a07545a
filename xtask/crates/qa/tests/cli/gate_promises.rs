//! Guarantees of the paged server that a fake can violate, and the gate's failures.

use super::support::gating::fakes;
use super::support::{Output, Project, llama_server};

/// The guarantee, the fault that violates it, and the expected message.
const BREAKS: [(&str, &str, &str); 6] = [
    ("negative-scale", "forgets the adapter", "scales [-1.0] after [[0.0]]: found 256 tokens instead of 0"),
    (
        "retained-slot-has-an-owner",
        "forgets the key of a slot",
        "bob, after alice's twice: found 320 tokens instead of 0",
    ),
    ("last-block", "wants a spare block", "960 tokens: returned 400"),
    ("several-choices", "wants a spare block", "n: 2, 896 tokens: returned 400"),
    ("leaves-nothing", "forgets cache_prompt", "after cache_prompt: false: found 320 tokens instead of 0"),
    ("second-turn", "finds nothing", "the second turn from another slot: found 0 tokens instead of 384"),
];

fn hold(project: &Project, promises: &[&str]) -> Output {
    let named: Vec<&str> = promises.iter().flat_map(|promise| ["--promise", promise]).collect();
    project.run(&[&["gate", "--only", "promises"], &named[..]].concat())
}

#[test]
fn a_broken_promise_is_named_and_says_what_came() {
    let project = fakes("", "");
    let kept = hold(&project, &BREAKS.map(|(promise, _, _)| promise)).success();
    assert!(kept.stdout.contains("promises: 6 of 6 kept"), "{kept}");
    for (promise, fault, reason) in BREAKS {
        llama_server::package(&project, "paged", fault);
        let said = hold(&project, &[promise]).code(1);
        assert!(
            said.stdout.contains("promises: 0 of 1 kept") && said.stdout.contains(reason),
            "{fault}: {said}"
        );
    }
}
