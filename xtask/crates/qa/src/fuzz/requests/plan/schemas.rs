//! JSON schema families.

use serde_json::{Map, Value, json};

use super::copies;
use super::family::{Family, schema};

/// All schema families. Nesting ends early: a JSON body may have at most 256 levels.
pub const ALL: &[Family] = &[
    schema("schema-nested-objects", 9, |n, leaf| {
        nest(n, leaf, |inner| json!({ "properties": { "a": inner } }))
    }),
    schema("schema-nested-arrays", 9, |n, leaf| {
        nest(n, leaf, |inner| json!({ "type": "array", "items": inner }))
    }),
    schema("schema-nested-any-of", 9, |n, leaf| {
        nest(n, leaf, |inner| json!({ "anyOf": [inner, { "type": "null" }] }))
    }),
    schema("schema-nested-all-of", 9, |n, leaf| nest(n, leaf, |inner| json!({ "allOf": [inner] }))),
    schema("schema-min-items", 24, |n, leaf| json!({ "type": "array", "items": leaf, "minItems": n })),
    schema("schema-max-items", 24, |n, leaf| json!({ "type": "array", "items": leaf, "maxItems": n })),
    schema("schema-nested-items", 5, |n, leaf| {
        nest(n, leaf, |inner| json!({ "type": "array", "items": inner, "minItems": 0, "maxItems": 8 }))
    }),
    schema("schema-prefix-items", 16, |n, leaf| json!({ "prefixItems": copies(leaf, n) })),
    schema("schema-any-of", 16, |n, leaf| json!({ "anyOf": copies(leaf, n) })),
    schema("schema-one-of", 16, |n, leaf| json!({ "oneOf": copies(leaf, n) })),
    schema(
        "schema-all-of",
        16,
        |n, leaf| json!({ "allOf": numbered(n, |at| properties([(format!("p{at}"), leaf.clone())])) }),
    ),
    schema("schema-types", 16, |n, _| json!({ "type": copies("string", n) })),
    schema("schema-enum", 18, |n, _| json!({ "enum": numbered(n, Value::from) })),
    schema("schema-long-constant", 20, |n, _| json!({ "const": "a".repeat(n) })),
    schema("schema-min-length", 24, |n, _| json!({ "type": "string", "minLength": n })),
    schema("schema-max-length", 24, |n, _| json!({ "type": "string", "maxLength": n })),
    schema("schema-integers", 62, |n, _| json!({ "type": "integer", "minimum": n / 3, "maximum": n })),
    schema(
        "schema-negative-integers",
        62,
        |n, _| json!({ "type": "integer", "minimum": -i64::try_from(n).unwrap_or(i64::MAX), "maximum": n }),
    ),
    schema("schema-optional-properties", 14, |n, leaf| {
        properties((0..n).map(|at| (format!("p{at}"), leaf.clone())))
    }),
    schema("schema-required-properties", 14, |n, leaf| {
        let mut schema = properties((0..n).map(|at| (format!("p{at}"), leaf.clone())));
        schema["required"] = numbered(n, |at| format!("p{at}").into());
        schema
    }),
    schema("schema-free-properties", 14, |n, leaf| {
        let mut schema = properties((0..n).map(|at| (format!("{at}"), leaf.clone())));
        schema["additionalProperties"] = true.into();
        schema
    }),
    schema("schema-long-property", 20, |n, leaf| properties([("p".repeat(n), leaf)])),
    schema("schema-punctuated-property", 20, |n, leaf| properties([("!".repeat(n), leaf)])),
    schema("schema-long-free-property", 20, |n, leaf| {
        let mut schema = properties([("p".repeat(n), leaf)]);
        schema["additionalProperties"] = true.into();
        schema
    }),
    schema("schema-chain-of-references", 16, |n, leaf| chain(n, leaf, Value::clone)),
    schema("schema-cycle-of-references", 16, |n, _| chain(n, reference(0), Value::clone)),
    schema("schema-recursive-objects", 14, |n, _| {
        chain(n, reference(0), |next| json!({ "properties": { "a": next, "b": next } }))
    }),
    schema(
        "schema-all-of-a-cycle",
        10,
        |n, _| json!({ "allOf": [reference(0)], "$defs": definitions(n, reference(0), Value::clone) }),
    ),
    schema("schema-doubling-any-of", 12, |n, leaf| chain(n, leaf, |next| json!({ "anyOf": [next, next] }))),
    schema("schema-doubling-all-of", 12, |n, leaf| chain(n, leaf, |next| json!({ "allOf": [next, next] }))),
    schema("schema-doubling-properties", 12, |n, leaf| {
        chain(n, leaf, |next| json!({ "properties": { "a": next, "b": next }, "required": ["a", "b"] }))
    }),
    schema("schema-long-reference", 20, |n, leaf| {
        let name = "!".repeat(n);
        json!({ "properties": { "a": { "$ref": format!("#/$defs/{name}") } }, "$defs": { name: leaf } })
    }),
    schema("schema-deep-reference", 18, |n, _| json!({ "$ref": format!("#{}", "/a".repeat(n)) })),
    schema("schema-long-description", 22, |n, _| json!({ "type": "string", "description": "d".repeat(n) })),
    schema("pattern-repetition", 24, |n, _| pattern(&format!("a{{{n}}}"))),
    schema("pattern-range", 24, |n, _| pattern(&format!("a{{0,{n}}}"))),
    schema("pattern-nested-repetitions", 16, |n, _| pattern(&format!("((a{{{n}}}){{{n}}}){{{n}}}"))),
    schema("pattern-nested-stars", 18, |n, _| pattern(&format!("{}a{}", "(".repeat(n), ")*".repeat(n)))),
    schema("pattern-parentheses", 20, |n, _| pattern(&format!("{}a{}", "(".repeat(n), ")".repeat(n)))),
    schema("pattern-open-parentheses", 20, |n, _| pattern(&"(".repeat(n))),
    schema("pattern-alternatives", 18, |n, _| pattern(&format!("({})*", vec!["a"; n].join("|")))),
    schema("pattern-optionals", 18, |n, _| pattern(&"a?".repeat(n))),
    schema("pattern-literal", 20, |n, _| pattern(&"a".repeat(n))),
    schema("pattern-class", 20, |n, _| pattern(&format!("[{}]", "a-c".repeat(n)))),
    schema("pattern-open-class", 20, |n, _| pattern(&"[".repeat(n))),
    schema("pattern-dots", 18, |n, _| pattern(&".*".repeat(n))),
    schema("pattern-digits", 18, |n, _| pattern(&format!("a{{{}}}", "9".repeat(n)))),
];

/// The default leaf schema.
pub fn leaf() -> Value {
    json!({ "type": "string" })
}

/// Wraps a schema in an object schema, the only kind that a tool may have.
pub fn as_object(schema: Value) -> Value {
    if schema.get("properties").is_some() {
        let mut schema = schema;
        schema["type"] = "object".into();
        return schema;
    }
    // `$ref` is resolved from the root, so definitions have to stay there.
    let definitions = schema.get("$defs").cloned().unwrap_or(json!({}));
    json!({ "type": "object", "properties": { "v": schema }, "required": ["v"], "$defs": definitions })
}

fn pattern(inner: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^{inner}$") })
}

fn nest(depth: usize, leaf: Value, wrap: impl Fn(Value) -> Value) -> Value {
    (0..depth).fold(leaf, |inner, _| wrap(inner))
}

fn numbered(count: usize, make: impl Fn(usize) -> Value) -> Value {
    (0..count).map(make).collect()
}

fn properties(named: impl IntoIterator<Item = (String, Value)>) -> Value {
    json!({ "type": "object", "properties": named.into_iter().collect::<Map<_, _>>() })
}

fn reference(number: usize) -> Value {
    json!({ "$ref": format!("#/$defs/d{number}") })
}

/// Builds a property that refers to the first of a chain of definitions.
fn chain(length: usize, leaf: Value, refer: impl Fn(&Value) -> Value) -> Value {
    json!({ "properties": { "a": reference(0) }, "$defs": definitions(length, leaf, refer) })
}

/// Builds a chain of definitions in which each refers to the next one; the last one is the leaf.
fn definitions(length: usize, leaf: Value, refer: impl Fn(&Value) -> Value) -> Map<String, Value> {
    let named = |at: usize| (format!("d{at}"), refer(&reference(at + 1)));
    (0..length).map(named).chain([(format!("d{length}"), leaf)]).collect()
}
