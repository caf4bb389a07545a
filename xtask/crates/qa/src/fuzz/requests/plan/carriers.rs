//! The APIs and fields that can carry a grammar, a schema or other fields.

use serde_json::{Value, json};

use super::family::{Make, Sent};

/// API and field that carry a grammar, a schema or fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// `/completion`: `grammar`, `json_schema` or the fields themselves.
    Completion,
    /// `/v1/completions`.
    Completions,
    /// `/v1/chat/completions`: `grammar`, `response_format` or the fields themselves.
    Chat,
    /// A lazy grammar: it applies once the answer contains a trigger word.
    Lazy,
    /// The parameters of a tool of `/v1/chat/completions`.
    ChatTool,
    /// `text.format` of `/v1/responses`.
    Responses,
    /// The parameters of a tool of `/v1/responses`.
    ResponsesTool,
    /// The input schema of a tool of `/v1/messages`.
    MessagesTool,
    /// The family is a request by itself.
    Itself,
}

/// Number of tokens to generate: enough to see the cost per token.
const PREDICT: usize = 16;

const OF_GRAMMARS: &[Carrier] = &[Carrier::Completion, Carrier::Completions, Carrier::Chat, Carrier::Lazy];
const OF_SCHEMAS: &[Carrier] = &[
    Carrier::Completion,
    Carrier::Chat,
    Carrier::ChatTool,
    Carrier::Responses,
    Carrier::ResponsesTool,
    Carrier::MessagesTool,
];
const OF_FIELDS: &[Carrier] = &[Carrier::Completion, Carrier::Completions, Carrier::Chat];

impl Carrier {
    /// Carriers that can carry the output of `make`; the first one is the default.
    pub fn of(make: &Make) -> &'static [Carrier] {
        match make {
            Make::Grammar(_) => OF_GRAMMARS,
            Make::Schema(_) => OF_SCHEMAS,
            Make::Fields(_) => OF_FIELDS,
            Make::Whole(_) => &[Carrier::Itself],
        }
    }

    /// Name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Carrier::Completion => "/completion",
            Carrier::Completions => "/v1/completions",
            Carrier::Chat => "/v1/chat/completions",
            Carrier::Lazy => "/completion with a trigger",
            Carrier::ChatTool => "/v1/chat/completions tools",
            Carrier::Responses => "/v1/responses text.format",
            Carrier::ResponsesTool => "/v1/responses tools",
            Carrier::MessagesTool => "/v1/messages tools",
            Carrier::Itself => "a request of its own",
        }
    }

    /// Builds a request with a grammar. A logit bias drives its answer to the letter `a`, so that the grammar advances.
    pub fn with_grammar(self, grammar: &str, stream: bool) -> Sent {
        let mut sent = self.plain(stream);
        let lazy = (self == Carrier::Lazy)
            .then(|| json!({ "grammar_lazy": true, "grammar_triggers": [{ "type": 1, "value": "a" }], "preserved_tokens": ["a"] }));
        sent.extend_missing(&json!({ "grammar": grammar, "logit_bias": [["a", 100]] }));
        sent.extend_missing(&lazy.unwrap_or_default());
        sent
    }

    /// Builds a request with a schema.
    pub fn with_schema(self, schema: &Value, stream: bool) -> Sent {
        let mut sent = self.plain(stream);
        let function = json!({ "name": "f", "description": "d", "parameters": schema });
        sent.extend_missing(&match self {
            Carrier::Chat => json!({ "response_format":
                { "type": "json_schema", "json_schema": { "name": "s", "schema": schema } } }),
            Carrier::ChatTool => json!({ "tools": [{ "type": "function", "function": function }],
                "tool_choice": "required" }),
            Carrier::Responses => json!({ "text": { "format":
                { "type": "json_schema", "name": "s", "schema": schema } } }),
            Carrier::ResponsesTool => json!({ "tools":
                [{ "type": "function", "name": "f", "description": "d", "parameters": schema }],
                "tool_choice": "required" }),
            Carrier::MessagesTool => json!({ "tools": [{ "name": "f", "description": "d",
                "input_schema": schema }], "tool_choice": { "type": "any" } }),
            _ => json!({ "json_schema": schema }),
        });
        sent
    }

    /// Builds a request with other fields.
    pub fn with_fields(self, fields: &Value, stream: bool) -> Sent {
        let mut sent = self.plain(stream);
        if let (Some(Value::Object(own)), Value::Object(fields)) = (&mut sent.json, fields) {
            own.extend(fields.clone());
        }
        sent
    }

    fn plain(self, stream: bool) -> Sent {
        let message = json!([{ "role": "user", "content": "x" }]);
        match self {
            Carrier::Completion | Carrier::Lazy | Carrier::Itself => Sent::post(
                "/completion",
                json!({ "prompt": "x", "n_predict": PREDICT, "temperature": 0, "stream": stream }),
            ),
            Carrier::Completions => Sent::post(
                "/v1/completions",
                json!({ "prompt": "x", "max_tokens": PREDICT, "temperature": 0, "stream": stream }),
            ),
            Carrier::Chat | Carrier::ChatTool => Sent::post(
                "/v1/chat/completions",
                json!({ "messages": message, "max_tokens": PREDICT, "temperature": 0, "stream": stream }),
            ),
            Carrier::Responses | Carrier::ResponsesTool => Sent::post(
                "/v1/responses",
                json!({ "input": "x", "max_output_tokens": PREDICT, "temperature": 0, "stream": stream }),
            ),
            Carrier::MessagesTool => Sent::post(
                "/v1/messages",
                json!({ "messages": message, "max_tokens": PREDICT, "temperature": 0, "stream": stream }),
            ),
        }
    }
}
