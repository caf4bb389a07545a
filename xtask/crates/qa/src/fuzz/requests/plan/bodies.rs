//! Families of whole requests: prompts, messages, tools, inputs of other APIs, JSON itself, and HTTP.

use std::time::Duration;

use espalier_core::http::{Pacing, Request};
use serde_json::{Map, Value, json};

use super::copies;
use super::family::{Family, Sent, Task, for_task, whole, with_body};

/// Body limit of `body-length`: above the server's maximum of 100 MiB, so that its refusal is tested.
const LARGE_BODY: usize = 160 << 20;

/// All families of whole requests.
pub const ALL: &[Family] = &[
    whole("prompts", 16, |n| complete(json!({ "prompt": copies("x", n), "n_predict": 1 }))),
    whole("prompts-of-tokens", 16, |n| {
        complete(json!({ "prompt": copies(json!([5, 6]), n), "n_predict": 1 }))
    }),
    whole("prompt-of-tokens", 20, |n| complete(json!({ "prompt": copies(5, n), "n_predict": 1 }))),
    whole("long-prompt", 21, |n| complete(json!({ "prompt": "x ".repeat(n), "n_predict": 1 }))),
    whole("spaces", 21, |n| complete(json!({ "prompt": " ".repeat(n), "n_predict": 1 }))),
    whole("one-word", 21, |n| complete(json!({ "prompt": "x".repeat(n), "n_predict": 1 }))),
    whole("escapes", 19, |n| complete(json!({ "prompt": "\u{1}\u{10ffff}".repeat(n), "n_predict": 1 }))),
    whole("messages", 16, |n| chat(json!({ "messages": copies(message(&json!("x")), n) }))),
    whole("messages-in-turn", 15, |n| {
        let pair = [message(&json!("x")), json!({ "role": "assistant", "content": "y" })];
        chat(json!({ "messages": pair.iter().cycle().take(2 * n).collect::<Vec<_>>() }))
    }),
    whole("long-message", 21, |n| chat(json!({ "messages": [message(&json!("x ".repeat(n)))] }))),
    whole("content-parts", 16, |n| {
        chat(json!({ "messages": [message(&copies(json!({ "type": "text", "text": "x" }), n))] }))
    }),
    whole("image-parts", 14, |n| {
        let image = json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } });
        chat(json!({ "messages": [message(&copies(image, n))] }))
    }),
    whole("tools", 13, |n| {
        let tools: Value = (0..n).map(|at| tool(&format!("f{at}"))).collect();
        chat(json!({ "messages": [message(&json!("x"))], "tools": tools }))
    }),
    whole("required-tools", 13, |n| {
        let tools: Value = (0..n).map(|at| tool(&format!("f{at}"))).collect();
        chat(json!({ "messages": [message(&json!("x"))], "tools": tools, "tool_choice": "required" }))
    }),
    whole("long-tool-name", 20, |n| {
        chat(json!({ "messages": [message(&json!("x"))], "tools": [tool(&"f".repeat(n))] }))
    }),
    whole("punctuated-tool-name", 20, |n| {
        chat(json!({ "messages": [message(&json!("x"))], "tools": [tool(&"!".repeat(n))] }))
    }),
    whole("tool-calls", 14, |n| {
        let call = json!({ "id": "c", "type": "function", "function": { "name": "f", "arguments": "{}" } });
        let called = json!({ "role": "assistant", "content": null, "tool_calls": copies(call, n) });
        chat(json!({ "messages": [message(&json!("x")), called, answer_of_tool()] }))
    }),
    whole("deep-tool-arguments", 20, |n| {
        let arguments = format!("{}1{}", "[".repeat(n), "]".repeat(n));
        let call =
            json!({ "id": "c", "type": "function", "function": { "name": "f", "arguments": arguments } });
        let called = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
        chat(json!({ "messages": [message(&json!("x")), called, answer_of_tool()] }))
    }),
    whole("template-arguments", 16, |n| {
        let named: Map<String, Value> = (0..n).map(|at| (format!("k{at}"), json!("v"))).collect();
        chat(json!({ "messages": [message(&json!("x"))], "chat_template_kwargs": named }))
    }),
    whole("responses-items", 15, |n| {
        Sent::post(
            "/v1/responses",
            json!({ "input": copies(message(&json!("x")), n), "max_output_tokens": 1 }),
        )
    }),
    whole("messages-blocks", 15, |n| {
        let block = json!({ "type": "text", "text": "x" });
        Sent::post(
            "/v1/messages",
            json!({ "messages": [message(&json!("x"))], "max_tokens": 1,
            "system": copies(block, n) }),
        )
    }),
    whole("infill-extra", 15, |n| {
        let chunk = json!({ "filename": "f", "text": "x" });
        Sent::post(
            "/infill",
            json!({ "input_prefix": "a", "input_suffix": "b", "input_extra": copies(chunk, n),
            "n_predict": 1 }),
        )
    }),
    whole("tokenize", 21, |n| {
        Sent::post("/tokenize", json!({ "content": "x ".repeat(n), "with_pieces": true }))
    }),
    whole("detokenize", 19, |n| Sent::post("/detokenize", json!({ "tokens": copies(5, n) }))),
    whole("apply-template", 15, |n| {
        Sent::post("/apply-template", json!({ "messages": copies(message(&json!("x")), n) }))
    }),
    whole("conversations", 16, |n| {
        Sent::post("/v1/streams/lookup", json!({ "conversation_ids": copies("c", n) }))
    }),
    for_task(
        whole("embeddings", 16, |n| Sent::post("/v1/embeddings", json!({ "input": copies("x", n) }))),
        Task::Embed,
    ),
    for_task(
        whole("long-embedding", 20, |n| Sent::post("/v1/embeddings", json!({ "input": "x ".repeat(n) }))),
        Task::Embed,
    ),
    for_task(
        whole("documents", 16, |n| {
            Sent::post("/rerank", json!({ "query": "q", "documents": copies("x", n) }))
        }),
        Task::Rerank,
    ),
    for_task(
        whole("long-query", 18, |n| {
            Sent::post("/rerank", json!({ "query": "q ".repeat(n), "documents": ["x", "y"] }))
        }),
        Task::Rerank,
    ),
    whole("nested-arrays", 20, |n| completion_text(&format!("{}1{}", "[".repeat(n), "]".repeat(n)))),
    whole("nested-objects", 18, |n| completion_text(&format!("{}1{}", "{\"a\":".repeat(n), "}".repeat(n)))),
    whole("open-arrays", 20, |n| completion_text(&"[".repeat(n))),
    whole("long-number", 20, |n| completion_text(&"1".repeat(n))),
    whole("long-fraction", 20, |n| completion_text(&format!("0.{}e-9", "1".repeat(n)))),
    whole("white-space", 22, |n| completion_text(&format!("1{}", " ".repeat(n)))),
    whole("repeated-names", 17, |n| completion_text(&format!("1{}", ",\"a\":1".repeat(n)))),
    with_body(whole("body-length", 27, |n| completion_text(&format!("\"{}\"", "x".repeat(n)))), LARGE_BODY),
    whole("slow-body", 5, slow),
    whole("headers", 14, |n| with_headers((0..n).map(|at| (format!("X-{at}"), "v".to_string())))),
    whole("long-header", 20, |n| with_headers([("X-Long".to_string(), "v".repeat(n))])),
    whole("accepted-types", 16, |n| with_headers([("Accept".to_string(), vec!["a/b;q=0.5"; n].join(","))])),
    whole("ranges", 16, |n| {
        with_headers([("Range".to_string(), format!("bytes={}", vec!["0-1"; n].join(",")))])
    }),
    whole("conversation-id", 14, |n| with_headers([("X-Conversation-Id".to_string(), "c".repeat(n))])),
    whole("long-path", 20, |n| Sent::raw("GET", format!("/{}", "p".repeat(n)), String::new())),
    whole("path-of-parts", 18, |n| Sent::raw("GET", "/slots".to_string() + &"/1".repeat(n), String::new())),
    whole("query", 16, |n| Sent::raw("GET", format!("/slots?{}", "a=1&".repeat(n)), String::new())),
    whole("slot-number", 18, |n| {
        Sent::raw("POST", format!("/slots/{}?action=erase", "9".repeat(n)), "{}".to_string())
    }),
];

fn complete(json: Value) -> Sent {
    Sent::post("/completion", json)
}

fn chat(mut json: Value) -> Sent {
    json["max_tokens"] = 1.into();
    Sent::post("/v1/chat/completions", json)
}

fn message(content: &Value) -> Value {
    json!({ "role": "user", "content": content })
}

fn answer_of_tool() -> Value {
    json!({ "role": "tool", "tool_call_id": "c", "content": "r" })
}

fn tool(name: &str) -> Value {
    let parameters = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    json!({ "type": "function", "function": { "name": name, "description": "d", "parameters": parameters } })
}

/// Builds a request in which `value` is the last field, inserted verbatim.
fn completion_text(value: &str) -> Sent {
    let body = format!("{{\"prompt\":\"x\",\"n_predict\":1,\"last\":{value}}}");
    Sent::raw("POST", "/completion".to_string(), body)
}

fn with_headers(headers: impl IntoIterator<Item = (String, String)>) -> Sent {
    let mut sent = completion_text("1");
    sent.request.headers = headers.into_iter().collect();
    sent
}

/// Builds a request that is sent in `parts` parts, a tenth of a second apart.
fn slow(parts: usize) -> Sent {
    let plain = completion_text("1").request;
    let bytes = plain.body.len().div_ceil(parts).max(1);
    let pacing = Some(Pacing { bytes, pause: Duration::from_millis(100) });
    Sent { request: Request { pacing, ..plain }, json: None }
}
