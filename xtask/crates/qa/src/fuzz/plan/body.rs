//! Conversion of actions to HTTP requests of their APIs.

use espalier_core::http::Request;
use serde_json::{Value, json};

use super::actions::{Action, ActionKind, Api, ConversationAction, Generate, Mistake, Order, SlotAction};
use super::prompts::Prompt;
use super::server::{KEYS, ServerPlan};
use crate::serving::cases;
use crate::serving::image;

/// Builds the HTTP request of an action; `marker` is the server's placeholder for an image.
pub fn request(action: &Action, server: &ServerPlan, marker: &str) -> Request {
    let request = match &action.what {
        ActionKind::Generate(generate) => {
            let request = Request::post(generate.api.path(), of_generate(generate, server, marker));
            match generate.conversation.map(ConversationAction::id) {
                Some(id) => request.with_header(CONVERSATION_ID, id),
                None => request,
            }
        }
        ActionKind::Conversation(one) => {
            of_conversation(one.order, &ConversationAction::id(one.conversation))
        }
        ActionKind::Embed(prompt) => Request::post("/v1/embeddings", of_embedding(prompt)),
        ActionKind::Slot(slot) => of_slot(slot),
        ActionKind::Mistake(mistake, prompt) => of_mistake(*mistake, prompt, server),
    };
    request.with_key(action.key.map(|key| KEYS[key]))
}

/// The header that makes a stream resumable.
pub const CONVERSATION_ID: &str = "X-Conversation-Id";

/// A grammar that does not parse.
const BAD_GRAMMAR: &str = "root ::= (";

/// Body of an embedding request for token ids.
pub fn of_embedding(prompt: &Prompt) -> Value {
    json!({ "input": prompt.tokens() })
}

/// The prompt field, as sent to both servers.
pub fn prompt_of(generate: &Generate, server: &ServerPlan, marker: &str) -> Value {
    let Generate { prompt, api, .. } = generate;
    if !prompt.images.is_empty() {
        let images: Vec<String> = prompt.images.iter().map(|seed| image::encoded_image(*seed)).collect();
        return json!({ "prompt_string": prompt.text_with_images(server, marker), "multimodal_data": images });
    }
    // With a vision encoder a prompt must be text.
    match api.takes_tokens() && !server.vision {
        true => json!(prompt.tokens()),
        false => prompt.text(server).into(),
    }
}

/// The `lora` field for these scales.
pub fn lora(scales: &[f64]) -> Value {
    scales.iter().enumerate().map(|(id, scale)| json!({ "id": id, "scale": scale })).collect()
}

fn of_generate(generate: &Generate, server: &ServerPlan, marker: &str) -> String {
    let mut body = cases::request_for(&[], generate.predict);
    let Some(fields) = body.as_object_mut() else { return String::new() };
    for name in ["prompt", "n_predict", "n_probs"] {
        fields.remove(name);
    }
    let prompt = prompt_of(generate, server, marker);
    let own = named_by_each(generate, prompt).into_iter().chain(named_alike(generate));
    fields.extend(own.map(|(name, value)| (name.to_string(), value)));
    escape(generate, body.to_string())
}

/// Fields whose names differ between APIs.
fn named_by_each(generate: &Generate, prompt: Value) -> Vec<(&'static str, Value)> {
    let prompt = match generate.api {
        Api::Completion | Api::Completions => ("prompt", prompt),
        Api::Responses => ("input", prompt),
        Api::Chat | Api::Messages => ("messages", json!([{ "role": "user", "content": prompt }])),
    };
    let predict = match generate.api {
        Api::Completion => "n_predict",
        Api::Responses => "max_output_tokens",
        Api::Completions | Api::Chat | Api::Messages => "max_tokens",
    };
    let likeliest = match (generate.api, generate.likeliest) {
        (Api::Completion, true) => vec![("n_probs", 8.into())],
        // Without log probabilities `/v1/completions` does not report its tokens.
        (Api::Completions, _) => vec![("logprobs", 2.into())],
        (Api::Chat, true) => vec![("logprobs", true.into()), ("top_logprobs", 2.into())],
        _ => Vec::new(),
    };
    [prompt, (predict, generate.predict.into())].into_iter().chain(likeliest).collect()
}

/// Fields that have the same name in all APIs; only those that are set.
fn named_alike(generate: &Generate) -> impl Iterator<Item = (&'static str, Value)> {
    let says_usage = generate.stream && !matches!(generate.api, Api::Completion);
    let fields = [
        ("stream", Some(generate.stream.into())),
        ("cache_prompt", Some(generate.cache.into())),
        ("stream_options", says_usage.then(|| json!({ "include_usage": true }))),
        ("cache_salt", generate.salt_text().map(Value::from)),
        ("lora", generate.scales.map(|scales| lora(&scales))),
        ("id_slot", generate.slot.map(Value::from)),
        ("n", (generate.choices > 1).then(|| generate.choices.into())),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name, value?)))
}

/// Escapes a letter of `cache_salt`, which JSON allows in any name.
fn escape(generate: &Generate, body: String) -> String {
    match generate.escaped {
        true => body.replace("\"cache_salt\"", "\"cache_\\u0073alt\""),
        false => body,
    }
}

fn of_slot(slot: &SlotAction) -> Request {
    let path = format!("/slots/{}?action={}", slot.slot, slot.action);
    Request::post(path, json!({ "filename": slot.file_name() }))
}

/// Builds a request for the resumable stream `id`.
pub fn of_conversation(order: Order, id: &str) -> Request {
    let stream = Request::get(format!("/v1/stream?conv_id={id}"));
    match order {
        Order::Resume => stream,
        Order::End => Request { method: "DELETE", ..stream },
        Order::LookUp => Request::post("/v1/streams/lookup", json!({ "conversation_ids": [id] })),
        Order::Refused => {
            let body = json!({ "prompt": [7, 7], "n_predict": 4, "stream": true, "grammar": BAD_GRAMMAR });
            Request::post("/completion", body).with_header(CONVERSATION_ID, id)
        }
    }
}

fn of_mistake(mistake: Mistake, prompt: &Prompt, server: &ServerPlan) -> Request {
    let mut body = cases::request_for(&prompt.tokens(), 4);
    if server.vision {
        body["prompt"] = prompt.text(server).into();
    }
    match mistake {
        Mistake::Grammar => {
            body["grammar"] = BAD_GRAMMAR.into();
            if server.adapters {
                body["lora"] = lora(&[0.25, 0.0]);
            }
        }
        Mistake::Salt => body["cache_salt"] = 5.into(),
        Mistake::TooLong => {
            let long = Prompt { kept: server.context(), rest: 0, ..prompt.clone() };
            body["prompt"] = match server.vision {
                true => "a".repeat(server.context()).into(),
                false => json!(long.tokens()),
            };
        }
        Mistake::Infill => {
            let body = json!({ "input_prefix": "a", "input_suffix": "b", "n_predict": 4 });
            return Request::post("/infill", body);
        }
    }
    Request::post("/completion", body)
}
