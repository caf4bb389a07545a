//! Families of regular expressions in `grammar_triggers`, matched against an answer of `a`s that grows with the size.

use serde_json::{Value, json};

use super::family::{Family, fields};

/// All pattern families. The context limits the length of an answer.
pub const ALL: &[Family] = &[
    fields("trigger-nested-quantifiers", 11, |n| trigger(n, "(a+)+b")),
    fields("trigger-alternatives", 11, |n| trigger(n, "(a|a)*b")),
    fields("trigger-polynomial", 11, |n| trigger(n, "a*a*a*a*b")),
    fields("trigger-back-reference", 11, |n| trigger(n, "(a*)\\1b")),
    fields("trigger-any-character", 11, |n| trigger(n, "[\\s\\S]*b")),
    fields("trigger-long-pattern", 20, |n| trigger(16, &"a?".repeat(n))),
    fields("trigger-large-count", 20, |n| trigger(16, &format!("(a{{0,{n}}})b"))),
    fields("trigger-nested-counts", 8, |n| trigger(16, &format!("((a{{0,{n}}}){{0,{n}}}){{0,{n}}}b"))),
    fields("trigger-parentheses", 20, |n| trigger(16, &format!("{}a{}", "(".repeat(n), ")".repeat(n)))),
    fields("trigger-class", 18, |n| trigger(16, &format!("[{}]b", "a-c".repeat(n)))),
    fields("trigger-of-other-text", 18, |n| trigger_of(16, &"a?".repeat(n), "root ::= [0-9]*")),
];

/// Builds a lazy grammar that waits for a pattern while a logit bias makes the answer a sequence of `a`s.
fn trigger(tokens: usize, pattern: &str) -> Value {
    trigger_of(tokens, pattern, "root ::= [a-z]*")
}

fn trigger_of(tokens: usize, pattern: &str, grammar: &str) -> Value {
    json!({ "n_predict": tokens, "max_tokens": tokens, "logit_bias": [["a", 100]], "grammar": grammar,
            "grammar_lazy": true, "grammar_triggers": [{ "type": 2, "value": pattern }] })
}
