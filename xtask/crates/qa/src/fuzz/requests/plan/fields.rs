//! Families of fields of a text-generation request.

use serde_json::{Value, json};

use super::copies;
use super::family::{Family, fields};

/// All field families.
pub const ALL: &[Family] = &[
    fields("bias-entries", 18, |n| json!({ "logit_bias": copies(json!([5, 1.0]), n) })),
    fields(
        "bias-map",
        16,
        |n| json!({ "logit_bias": (0..n).map(|at| (at.to_string(), json!(1.0))).collect::<serde_json::Map<_, _>>() }),
    ),
    fields("bias-of-a-long-string", 20, |n| json!({ "logit_bias": [["a b ".repeat(n), 1.0]] })),
    fields("bias-of-strings", 16, |n| json!({ "logit_bias": copies(json!(["a b c d e f g h", 1.0]), n) })),
    fields("probabilities", 30, |n| json!({ "n_probs": n })),
    fields("logprobs", 30, |n| json!({ "logprobs": n })),
    fields("stop-strings", 16, |n| json!({ "stop": strings("never", n) })),
    fields("long-stop-string", 20, |n| json!({ "stop": ["x".repeat(n)] })),
    fields("samplers", 16, |n| json!({ "samplers": copies("top_k", n) })),
    fields("samplers-as-letters", 20, |n| json!({ "samplers": "k".repeat(n) })),
    fields(
        "dry-breakers",
        16,
        |n| json!({ "dry_multiplier": 0.5, "dry_sequence_breakers": strings("b", n) }),
    ),
    fields(
        "long-dry-breaker",
        20,
        |n| json!({ "dry_multiplier": 0.5, "dry_sequence_breakers": ["b".repeat(n)] }),
    ),
    fields("dry-last-tokens", 31, |n| json!({ "dry_multiplier": 0.5, "dry_penalty_last_n": n })),
    fields("repeat-last-tokens", 31, |n| json!({ "repeat_penalty": 1.1, "repeat_last_n": n })),
    fields("min-keep", 31, |n| json!({ "min_keep": n })),
    fields("top-k", 31, |n| json!({ "top_k": n, "temperature": 1.0 })),
    fields("choices", 20, |n| json!({ "n": n, "n_predict": 2, "max_tokens": 2 })),
    fields("tokens-to-predict", 31, |n| json!({ "n_predict": n, "max_tokens": n, "ignore_eos": true })),
    fields("tokens-to-keep", 31, |n| json!({ "n_keep": n, "n_discard": n })),
    fields("indentation", 31, |n| json!({ "n_indent": n })),
    fields("slot", 31, |n| json!({ "id_slot": n })),
    fields("seed", 62, |n| json!({ "seed": n })),
    fields("adapters", 16, |n| json!({ "lora": copies(json!({ "id": 0, "scale": 1.0 }), n) })),
    fields("response-fields", 16, |n| json!({ "response_fields": strings("content", n) })),
    fields("deep-response-field", 18, |n| json!({ "response_fields": ["a/".repeat(n)] })),
    fields("preserved-tokens", 16, |n| json!({ "preserved_tokens": copies("a", n) })),
    fields("trigger-words", 16, |n| lazy(copies(json!({ "type": 1, "value": "a b" }), n))),
    fields("trigger-tokens", 16, |n| lazy(copies(json!({ "type": 0, "value": "a", "token": 5 }), n))),
    fields("long-trigger-word", 18, |n| lazy(json!([{ "type": 1, "value": "a b".repeat(n) }]))),
    fields("reasoning-end-tags", 16, |n| {
        json!({ "reasoning_budget_tokens": 4, "reasoning_budget_start_tag": "a",
                "reasoning_budget_end_tags": copies("b c", n) })
    }),
    fields("reasoning-message", 18, |n| {
        json!({ "reasoning_budget_tokens": 4, "reasoning_budget_start_tag": "a", "reasoning_budget_end_tag": "b",
                "reasoning_budget_message": "m ".repeat(n) })
    }),
    fields("special-tokens", 16, |n| json!({ "prompt": "<|im_end|>".repeat(n) })),
    fields("generation-prompt", 20, |n| json!({ "generation_prompt": "<".repeat(n) })),
    fields("chat-parser", 20, |n| json!({ "chat_parser": "(".repeat(n) })),
    fields("draft-tokens", 31, |n| json!({ "speculative.n_max": n, "speculative.ngram_size_n": n })),
    fields("unknown-field", 22, |n| json!({ "unknown": "u".repeat(n) })),
    fields("unknown-fields", 16, |n| {
        (0..n).map(|at| (format!("unknown-{at}"), json!(at))).collect::<serde_json::Map<_, _>>().into()
    }),
];

fn strings(start: &str, count: usize) -> Value {
    (0..count).map(|at| Value::from(format!("{start} {at}"))).collect()
}

fn lazy(triggers: Value) -> Value {
    json!({ "grammar": "root ::= [a-z]*", "grammar_lazy": true, "grammar_triggers": triggers })
}
