//! An action in the words of its API.

use serde_json::{Value, json};

use super::actions::{Action, Api, Generate, Mistake, SlotAction, What};
use super::prompts::Prompt;
use super::server::{KEYS, ServerPlan};
use crate::serving::cases;
use crate::serving::image;
use crate::sys::exchange::Question;

/// The question of an action; `marker` is the server's own word for an image.
pub fn question(action: &Action, server: &ServerPlan, marker: &str) -> Question {
    let key = action.key.map(|key| KEYS[key].to_string());
    let (path, body) = match &action.what {
        What::Generate(generate) => (generate.api.path().to_string(), of_generate(generate, server, marker)),
        What::Embed(prompt) => ("/v1/embeddings".to_string(), of_embedding(prompt).to_string()),
        What::Slot(slot) => of_slot(slot),
        What::Mistake(mistake, prompt) => of_mistake(*mistake, prompt, server),
    };
    Question { method: "POST", path, key, body }
}

/// A vector of tokens.
pub fn of_embedding(prompt: &Prompt) -> Value {
    json!({ "input": prompt.tokens() })
}

/// What both servers are asked: the prompt and how to sample.
pub fn prompt_of(generate: &Generate, server: &ServerPlan, marker: &str) -> Value {
    let Generate { prompt, api, .. } = generate;
    if !prompt.images.is_empty() {
        let images: Vec<String> = prompt.images.iter().map(|seed| image::encoded_image(*seed)).collect();
        return json!({ "prompt_string": prompt.text_with_images(server, marker), "multimodal_data": images });
    }
    // With a vision encoder a prompt has to be text.
    match api.takes_tokens() && !server.vision {
        true => json!(prompt.tokens()),
        false => prompt.text(server).into(),
    }
}

/// Scales in the words of a request.
pub fn lora(scales: &[f64]) -> Value {
    scales.iter().enumerate().map(|(id, scale)| json!({ "id": id, "scale": scale })).collect()
}

fn of_generate(generate: &Generate, server: &ServerPlan, marker: &str) -> String {
    let mut body = cases::request_for(&[], generate.predict);
    let prompt = prompt_of(generate, server, marker);
    let fields = body.as_object_mut();
    let Some(fields) = fields else { return String::new() };
    for name in ["prompt", "n_predict", "n_probs"] {
        fields.remove(name);
    }
    let mut set = |name: &str, value: Value| {
        fields.insert(name.to_string(), value);
    };
    match generate.api {
        Api::Completion | Api::Completions => set("prompt", prompt),
        Api::Responses => set("input", prompt),
        Api::Chat | Api::Messages => set("messages", json!([{ "role": "user", "content": prompt }])),
    }
    match generate.api {
        Api::Completion => set("n_predict", generate.predict.into()),
        Api::Responses => set("max_output_tokens", generate.predict.into()),
        _ => set("max_tokens", generate.predict.into()),
    }
    match (generate.api, generate.likeliest) {
        (Api::Completion, true) => set("n_probs", 8.into()),
        // Without them these do not say their tokens.
        (Api::Completions, _) => set("logprobs", 2.into()),
        (Api::Chat, true) => {
            set("logprobs", true.into());
            set("top_logprobs", 2.into());
        }
        _ => {}
    }
    set("stream", generate.stream.into());
    set("cache_prompt", generate.cache.into());
    if generate.stream && !matches!(generate.api, Api::Completion) {
        set("stream_options", json!({ "include_usage": true }));
    }
    if let Some(salt) = generate.salt_text() {
        set("cache_salt", salt.into());
    }
    if let Some(scales) = &generate.scales {
        set("lora", lora(scales));
    }
    if let Some(slot) = generate.slot {
        set("id_slot", slot.into());
    }
    if generate.choices > 1 {
        set("n", generate.choices.into());
    }
    escape(generate, body.to_string())
}

/// JSON allows any letter of a name to be escaped.
fn escape(generate: &Generate, body: String) -> String {
    match generate.escaped {
        true => body.replace("\"cache_salt\"", "\"cache_\\u0073alt\""),
        false => body,
    }
}

fn of_slot(slot: &SlotAction) -> (String, String) {
    let path = format!("/slots/{}?action={}", slot.slot, slot.action);
    (path, json!({ "filename": slot.file_name() }).to_string())
}

fn of_mistake(mistake: Mistake, prompt: &Prompt, server: &ServerPlan) -> (String, String) {
    let mut body = cases::request_for(&prompt.tokens(), 4);
    if server.vision {
        body["prompt"] = prompt.text(server).into();
    }
    match mistake {
        Mistake::Grammar => {
            body["grammar"] = "root ::= (".into();
            if server.adapters {
                body["lora"] = lora(&[0.25, 0.0]);
            }
        }
        Mistake::Salt => body["cache_salt"] = 5.into(),
        Mistake::TooLong => {
            let long = Prompt { kept: server.cells(), rest: 0, ..prompt.clone() };
            body["prompt"] = match server.vision {
                true => "a".repeat(server.cells()).into(),
                false => json!(long.tokens()),
            };
        }
        Mistake::Infill => {
            let body = json!({ "input_prefix": "a", "input_suffix": "b", "n_predict": 4 });
            return ("/infill".to_string(), body.to_string());
        }
    }
    ("/completion".to_string(), body.to_string())
}
