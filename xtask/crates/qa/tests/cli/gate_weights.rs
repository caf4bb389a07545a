//! Failures of the gate's part on real weights: fake servers, and one fault after the other.

use super::support::gating::fakes;
use super::support::wheels::Wheels;
use super::support::{Output, llama_server};

fn wheels() -> Wheels {
    let project = fakes("", "");
    project.write("ci/models/text.txt", "A text about nothing in particular. ".repeat(600));
    Wheels::new(project, "smollm2-135m-instruct")
}

fn gate(wheels: &Wheels) -> Output {
    wheels.run(&["gate", "--only", "weights"])
}

/// A fault of our server, and the expected message. The fake stock server does not differ from itself, so its spread is
/// zero and only the minimum margins are left.
const BREAKS: [(&str, &str); 7] = [
    ("a wrong token", "paged, 1 slot: part of the answers that diverge: 1.0000"),
    ("ties", "part of the answers that diverge: 1.0000; stock's own spread allows 0.1000"),
    ("moves", "99 % of |d|: 0.2000; stock's own spread allows 0.1500"),
    ("shares nothing", "paged, 1 slot: no prompt token was found in the cache"),
    ("holds a block", "blocks are in use after all requests ended"),
    ("evicts nothing", "paged, small pool, 8 clients: nothing was evicted"),
    ("preempts no request", "paged, small pool, 8 clients: no request was preempted"),
];

#[test]
fn each_break_is_red_for_its_own_reason() {
    let wheels = wheels();
    let output = gate(&wheels).success();
    assert!(output.stdout.contains("| stock, 1 slot / paged, 2 tenants, 8 clients | 0 of 17 |"), "{output}");
    for (fault, reason) in BREAKS {
        llama_server::package(&wheels.project, "paged", fault);
        let output = gate(&wheels).code(1);
        assert!(output.stderr.contains(reason), "{fault}: {output}");
    }
}

/// A missing network is not a failure; a file other than the pinned one is.
#[test]
fn without_the_weights_nothing_is_compared_and_other_weights_are_refused() {
    let wheels = wheels();
    let output = wheels.run(&["--offline", "gate", "--only", "weights"]).success();
    assert!(output.stdout.contains("weights: not compared"), "{output}");
    output.says(&["answers on real weights were not compared", "`--offline` prevents downloading it"]);
    wheels.fail("ERROR: No matching distribution found for tiny==1.0");
    assert!(gate(&wheels).success().stdout.contains("weights: not compared"));
    wheels.fail("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.");
    gate(&wheels).code(1).says(&["DO NOT MATCH THE HASHES"]);
}
