//! Guarantees of the paged server that a fake can violate, and the gate's failures.

use super::support::gating::{add_generation, fakes, gated};
use super::support::{Output, Project, files, llama_server};

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
        let output = hold(&project, &[promise]).code(1);
        assert!(
            output.stdout.contains("promises: 0 of 1 kept") && output.stdout.contains(reason),
            "{fault}: {output}"
        );
    }
}

/// Without a paged cache a promise about it could be kept, and would prove nothing.
#[test]
fn a_server_that_runs_unpaged_keeps_no_promise_of_a_paged_one() {
    let project = fakes("", "runs unpaged");
    let output = hold(&project, &["last-block"]).code(1);
    assert!(output.stdout.contains("promises: 0 of 1 kept"), "{output}");
    assert!(output.stdout.contains("the server runs unpaged despite `--kv-paged`"), "{output}");
}

/// A generation is compared with its own sources, and with the rows of the table that are about it.
#[test]
fn the_routes_are_those_of_the_variant_under_test() {
    let project = fakes("", "");
    add_generation(&project);
    llama_server::package(&project, "paged-next", "");
    let routes = |variant: &str, source: &str| {
        files::write(&project.tree(variant).join("tools/server/server.cpp"), source);
        files::write(
            &project.tree(variant).join("tools/server/server-http.cpp"),
            "srv->Get(full_path, f);\n",
        );
    };
    routes("paged", "ctx_http.get(\"/health\", h);\n");
    routes("paged-next", "ctx_http.get(\"/health\", h);\nctx_http.post(\"/new\", h);\n");
    let table = "| route | no key | another tenant | verified by |\n|---|---|---|---|\n\
                 | `GET /health` | public | x | `routes-by-role` |\n";
    project.write("SECURITY.md", table);
    let hold = |variant: &str| {
        let promise = ["--only", "promises", "--promise", "routes-by-role", "--variant", variant];
        gate(&project, &promise)
    };
    assert!(hold("paged").success().stdout.contains("promises: 1 of 1 kept"));
    let output = hold("paged-next").code(1);
    assert!(output.stdout.contains("SECURITY.md does not say who may use `POST /new`"), "{output}");
    project.write(
        "SECURITY.md",
        format!("{table}| `POST /new` (on next only) | public | x | `routes-by-role` |\n"),
    );
    for variant in ["paged", "paged-next"] {
        let output = hold(variant).success();
        assert!(output.stdout.contains("promises: 1 of 1 kept"), "{variant}: {output}");
    }
    project.write(
        "SECURITY.md",
        format!("{table}| `POST /new` (on nxt only) | public | x | `routes-by-role` |\n"),
    );
    let output = hold("paged").code(1);
    assert!(output.stdout.contains("routes of the pin `nxt`, which `pins.toml` lacks"), "{output}");
    project.write("SECURITY.md", table.replace("`routes-by-role`", "nothing"));
    let http = project.tree("paged").join("tools/server/server-http.cpp");
    files::write(&http, "srv->Get(full_path, f);\nsrv->Put(\"/new\", f);\n");
    let output = hold("paged").code(1);
    for line in ["names no promise that checks", "registers a route by `Put \"/new\"`"] {
        assert!(output.stdout.contains(line), "{line}: {output}");
    }
}

fn gate(project: &Project, arguments: &[&str]) -> Output {
    project.run(&[&["gate"], arguments].concat())
}

/// A newcomer has a name, and does not know of which kind it is.
#[test]
fn a_name_of_the_other_kind_is_answered_with_the_command_that_runs_it() {
    let project = fakes("", "");
    let check = ["--check", "negative-scale"];
    let command = "gate --only promises --promise negative-scale";
    for given in
        [&check[..], &["--only", "servers", check[0], check[1]], &["--only", "promises", check[0], check[1]]]
    {
        let output =
            gate(&project, given).code(2).says(&["no check `negative-scale`: it is the name of a promise"]);
        assert!(output.stderr.contains(&format!("next: cargo xtask {command}\n")), "{output}");
    }
    let words: Vec<&str> = command.split(' ').collect();
    let kept = project.run(&words).success();
    assert!(kept.stdout.contains("promises: 1 of 1 kept"), "{kept}");
    gate(&project, &["--promise", "eviction"]).code(2).says(&[
        "no promise `eviction`: it is the name of a check",
        "next: cargo xtask gate --only servers --check eviction",
    ]);
}

/// Names are checked before anything that they need, such as a server.
#[test]
fn an_unknown_promise_is_answered_with_those_that_exist() {
    gate(&gated(), &["--only", "promises", "--promise", "negative-scales"]).code(2).says(&[
        "no promise `negative-scales`",
        "next: for the promise `negative-scale`: cargo xtask gate --only promises --promise negative-scale",
        "next: use one of: negative-scale, adapters-of-an-image",
        "next: list all checks and promises: cargo xtask gate --list",
    ]);
}

#[test]
fn all_names_are_listed() {
    let project = gated();
    let output = gate(&project, &["--list"]).success();
    for listed in [
        "cargo xtask gate --only servers --check NAME:\n  answers\n",
        "cargo xtask gate --only promises --promise NAME:\n  negative-scale\n",
    ] {
        assert!(output.stdout.contains(listed), "{output}");
    }
    let json = gate(&project, &["--list", "--json"]).success().json();
    assert_eq!((&json["checks"][0], &json["promises"][0]), (&"answers".into(), &"negative-scale".into()));
}

/// An option would be ignored by the parts that do not take it.
#[test]
fn an_option_that_the_part_does_not_take_is_refused() {
    let project = gated();
    for (given, only, command) in [
        ("--check eviction", "`--check` only works with `--only servers`", "--only servers --check eviction"),
        (
            "--program x --promise last-block --promise priority",
            "`--promise` only works with `--only promises`",
            "--only promises --promise last-block --promise priority --program x",
        ),
        (
            "--only promises --model llama",
            "`--model` only works with `--only logits` or `--only servers`",
            "--only logits --model llama",
        ),
        ("--only promises --full", "`--full` only works with `--only weights`", "--only weights --full"),
    ] {
        let words: Vec<&str> = given.split(' ').collect();
        let output = gate(&project, &words).code(2).says(&[only]);
        assert!(output.stderr.contains(&format!("next: cargo xtask gate {command}\n")), "{given}: {output}");
    }
}
