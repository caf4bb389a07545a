//! The reference: the same server unpaged, one request at a time. All answers are compared with it.

use espalier_core::error::{Error, Result};
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use crate::fuzz::judge::Reference;
use crate::fuzz::plan::actions::{Action, ActionKind};
use crate::fuzz::plan::body;
use crate::fuzz::plan::prompts::{MAX_PREDICTED, Prompt};
use crate::fuzz::plan::server::{ADAPTERS, ServerPlan};
use crate::serving::image;
use crate::serving::{cases, verdict};

/// A running reference server.
pub struct References {
    server: Server,
    marker: String,
}

/// A request to the reference, without parameters that must not change an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    kind: Kind,
    prompt: Prompt,
    text: String,
    scales: Option<[f64; ADAPTERS]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Tokens,
    Text,
    Chat,
    Images,
    Vector,
}

impl Question {
    /// Returns the reference request of an action; `None` if it has no answer to compare.
    pub fn of(server: &ServerPlan, action: &Action, scales: [f64; ADAPTERS]) -> Option<Question> {
        let scales = server.adapters.then_some(scales);
        match &action.what {
            ActionKind::Generate(generate) => {
                let kind = match (generate.prompt.images.is_empty(), generate.api.takes_tokens()) {
                    (false, _) => Kind::Images,
                    (true, true) if server.vision => Kind::Text,
                    (true, true) => Kind::Tokens,
                    (true, false) => Kind::Chat,
                };
                let prompt = generate.prompt.clone();
                let text = match kind {
                    Kind::Chat | Kind::Text => prompt.text(server),
                    Kind::Images => prompt.text_with_images(server, MARKER),
                    _ => String::new(),
                };
                Some(Question { kind, prompt, text, scales })
            }
            ActionKind::Embed(prompt) => {
                Some(Question { kind: Kind::Vector, prompt: prompt.clone(), text: String::new(), scales })
            }
            ActionKind::Slot(_) | ActionKind::Conversation(_) | ActionKind::Mistake(..) => None,
        }
    }

    /// Key of the request: equal for equal requests.
    pub fn name(&self) -> String {
        let Question { kind, prompt, scales, .. } = self;
        format!("{kind:?} {prompt:?} {scales:?}")
    }
}

/// Placeholder for an image until the server's own is known.
const MARKER: &str = "@";

impl References {
    /// Wraps a running `server`.
    pub fn new(server: Server, plan: &ServerPlan) -> References {
        let marker = super::marker_of(&server, plan);
        References { server, marker }
    }

    /// Returns the reference for a request.
    pub fn answer(&self, question: &Question) -> Result<Reference> {
        match question.kind {
            Kind::Vector => self.vector(&question.prompt),
            Kind::Tokens => {
                let tokens = question.prompt.tokens();
                self.complete(question, json!(tokens), &as_units(&tokens))
            }
            Kind::Chat => {
                let tokens = self.tokens_of_chat(&question.text)?;
                self.complete(question, json!(tokens), &as_units(&tokens))
            }
            Kind::Text => {
                let units: Vec<i64> = units_of_text(&question.text);
                self.complete(question, question.text.clone().into(), &units)
            }
            Kind::Images => {
                self.warm_up(question)?;
                let images: Vec<String> =
                    question.prompt.images.iter().map(|seed| image::encoded_image(*seed)).collect();
                let text = question.text.replace(MARKER, &self.marker);
                let prompt = json!({ "prompt_string": text, "multimodal_data": images });
                let mut reference = self.complete(question, prompt, &[])?;
                reference.units = units_of_images(question, reference.prompt_tokens);
                Ok(reference)
            }
        }
    }

    fn complete(&self, question: &Question, prompt: Value, units: &[i64]) -> Result<Reference> {
        let mut request = cases::cold(cases::request_for(&[], MAX_PREDICTED));
        request["prompt"] = prompt;
        if let Some(scales) = &question.scales {
            request["lora"] = body::lora(scales);
        }
        let body = self.post("/completion", &request)?;
        let answer = verdict::read(&body).ok_or_else(|| {
            Error::no("the reference answered only in part").detail(question.name()).detail(body.to_string())
        })?;
        let places = body["completion_probabilities"].as_array().into_iter().flatten();
        let pieces = places.map(|place| serde_json::from_value(place["bytes"].clone()).unwrap_or_default());
        Ok(Reference {
            units: units.to_vec(),
            prompt_tokens: body["tokens_evaluated"].as_u64().unwrap_or(0),
            answer: Some(answer),
            pieces: pieces.collect(),
            vector: None,
        })
    }

    /// Sends a request with the same adapters first: an image is computed with the adapters of the previous batch, as
    /// in stock.
    fn warm_up(&self, question: &Question) -> Result<()> {
        let Some(scales) = &question.scales else { return Ok(()) };
        let mut request = cases::cold(cases::request_for(&[5, 6, 7], 1));
        request["lora"] = body::lora(scales);
        self.post("/completion", &request).map(drop)
    }

    /// Tokenizes a chat prompt. Chat, messages and responses are equivalent here: a single user turn.
    fn tokens_of_chat(&self, text: &str) -> Result<Vec<u32>> {
        let request = json!({ "messages": [{ "role": "user", "content": text }] });
        let prompt = self.post("/apply-template", &request)?["prompt"].take();
        let request = json!({ "content": prompt, "add_special": true, "parse_special": true });
        let tokens = self.post("/tokenize", &request)?["tokens"].take();
        serde_json::from_value(tokens).map_err(|error| Error::no("no tokens").detail(error.to_string()))
    }

    fn vector(&self, prompt: &Prompt) -> Result<Reference> {
        let body = self.post("/v1/embeddings", &body::of_embedding(prompt))?;
        let vector = serde_json::from_value(body["data"][0]["embedding"].clone()).ok();
        Ok(Reference { vector, ..Reference::default() })
    }

    fn post(&self, path: &str, request: &Value) -> Result<Value> {
        let (status, body) = self.server.post(path, request)?;
        match status {
            200 => Ok(body),
            _ => {
                Err(Error::no(format!("the reference answered {path} with {status}"))
                    .detail(body.to_string()))
            }
        }
    }
}

fn as_units(tokens: &[u32]) -> Vec<i64> {
    tokens.iter().map(|token| i64::from(*token)).collect()
}

/// Units of a byte: one, except for the space, which is three bytes in a tokenizer without a token for it.
fn units_of_byte(byte: u8) -> impl Iterator<Item = i64> {
    std::iter::repeat_n(i64::from(byte), if byte == b' ' { 3 } else { 1 })
}

/// Units that precede any text: a space and a special token.
fn units_of_beginning() -> impl Iterator<Item = i64> {
    [b' ', 0].into_iter().flat_map(units_of_byte)
}

fn units_of_text(text: &str) -> Vec<i64> {
    units_of_beginning().chain(text.bytes().flat_map(units_of_byte)).collect()
}

/// Units of a prompt with images: one per byte, and for each image at least as many as it has tokens, so that the
/// common prefix of two prompts is never underestimated.
fn units_of_images(question: &Question, prompt_tokens: u64) -> Vec<i64> {
    let images = &question.prompt.images;
    let mut units: Vec<i64> = units_of_beginning().collect();
    let mut ordinal = 0;
    for byte in question.text.bytes() {
        if byte == MARKER.as_bytes()[0] {
            let seed = images.get(ordinal).copied().unwrap_or(0);
            ordinal += 1;
            let unit = -i64::try_from(seed * 16 + ordinal as u64).unwrap_or(1);
            units.extend(std::iter::repeat_n(unit, usize::try_from(prompt_tokens).unwrap_or(0)));
        } else {
            units.extend(units_of_byte(byte));
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_and_the_same_text_before_an_image_begin_alike() {
        let prompt = Prompt { family: 1, kept: 9, rest: 0, own: 0, images: vec![3] };
        let question =
            Question { kind: Kind::Images, prompt, text: format!("of the {MARKER}"), scales: None };
        let units = units_of_images(&question, 5);
        let text = units_of_text("of the ");
        assert_eq!(units[..text.len()], text);
        assert_eq!(units.len(), text.len() + 5);
    }
}
