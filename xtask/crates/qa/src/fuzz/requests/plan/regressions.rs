//! The families that the gate plays.

/// Request families of the gate: for each kind of limit (entries of lists, numbers, nesting of a body, HTTP headers,
/// recursion over a schema or a pattern) one that is refused at its largest sizes, and each family that has had a
/// finding. A finding of another family is reported with a reminder to add it here, with its fix.
pub const FAMILIES: &[&str] = &[
    "bias-entries",
    "samplers",
    "probabilities",
    "repeat-last-tokens",
    "stop-strings",
    "dry-breakers",
    "nested-arrays",
    "headers",
    "schema-all-of-a-cycle",
    "schema-punctuated-property",
    "schema-recursive-objects",
    "trigger-parentheses",
    // No answer to a request line that is too long.
    "query",
    "slot-number",
    "long-header",
    // Messages without the limit, or with a wrong reason.
    "grammar-repetition",
    "grammar-inverted-range",
    "grammar-nested-repetitions",
    "grammar-nested-stars",
    "grammar-parentheses",
    "grammar-nested-alternatives",
    "grammar-left-recursion",
    "grammar-chain-of-rules",
    "grammar-undefined-rules",
    "grammar-repeated-undefined-rules",
    "schema-cycle-of-references",
    "schema-min-length",
    "pattern-repetition",
    "pattern-nested-repetitions",
    "pattern-digits",
    // Text of requests in the log.
    "open-arrays",
    "long-number",
    "logprobs",
    // Patterns whose work grows with the cube of the answer, and an internal error.
    "trigger-any-character",
    "trigger-of-other-text",
    // Stacks that are many and deep kept other clients waiting.
    "grammar-nested-optionals",
    // Quadratic time, and lists without a limit.
    "special-tokens",
    "response-fields",
    "preserved-tokens",
    "reasoning-end-tags",
];

/// Whether the gate plays the family of this name.
pub fn is_in_gate(name: &str) -> bool {
    FAMILIES.contains(&name)
}
