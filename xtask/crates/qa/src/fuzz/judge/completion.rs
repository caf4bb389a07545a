//! Generated text as a client received it, independent of the API.

use espalier_core::http::{Ending, Response};
use serde_json::Value;

use super::stream;
use crate::fuzz::plan::actions::{Api, Generate};
use crate::serving::verdict;

/// A completion as far as it arrived.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completion {
    /// The HTTP status, or the code of the error that ended a stream; `None` without either.
    pub status: Option<u16>,
    /// Text of the error.
    pub error: Option<String>,
    /// Whether the answer is complete.
    pub is_whole: bool,
    /// The choices.
    pub choices: Vec<Choice>,
    /// Token counts, as far as they were reported.
    pub numbers: Numbers,
    /// The slot that answered, if reported.
    pub slot: Option<usize>,
    /// Format violations.
    pub wrong: Vec<String>,
}

/// One choice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choice {
    /// Its text.
    pub text: String,
    /// Its tokens, if the API reports them.
    pub tokens: Option<Vec<i64>>,
    /// The answer with token probabilities, if reported.
    pub answer: Option<verdict::Answer>,
}

/// Token counts that an answer reports about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Prompt tokens, from `usage` or `tokens_evaluated`.
    pub prompt: Option<u64>,
    /// Completion tokens.
    pub completion: Option<u64>,
    /// Prompt tokens found in the cache, from `usage`.
    pub cached: Option<u64>,
    /// `timings.cache_n` and `timings.prompt_n`.
    pub timed: Option<(u64, u64)>,
    /// `timings.draft_n` and `timings.draft_n_accepted`; omitted by the server if nothing was drafted.
    pub drafted: (u64, u64),
}

impl Completion {
    /// Parses the answer to a text-generation request.
    pub fn read(generate: &Generate, response: &Response) -> Completion {
        let Some(status) = response.status else { return Completion::default() };
        let is_whole = response.ending == Ending::Closed && response.is_whole;
        if status != 200 || !generate.stream {
            return Completion::of_body(generate, status, &response.json(), is_whole)
                .without_some_tokens(generate);
        }
        let stream = stream::read(generate.api, generate.choices, &response.body, is_whole);
        if let Some(error) = stream.refusal() {
            let code = error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
            let error = Some(error.to_string());
            return Completion {
                status: code,
                error,
                is_whole,
                wrong: stream.wrong,
                ..Completion::default()
            };
        }
        let wrong = stream.wrong;
        Completion { is_whole, wrong, ..Completion::of_events(generate, &stream.events) }
            .without_some_tokens(generate)
    }

    /// Drops incomplete token lists: OpenAI's APIs report no tokens for accepted drafts, so only the text can be
    /// compared.
    fn without_some_tokens(mut self, generate: &Generate) -> Completion {
        if generate.api != Api::Completion {
            for choice in &mut self.choices {
                choice.tokens = choice.tokens.take().filter(|tokens| tokens.len() == generate.predict);
            }
        }
        self
    }

    fn of_body(generate: &Generate, status: u16, body: &Value, is_whole: bool) -> Completion {
        let mut completion = Completion { status: Some(status), is_whole, ..Completion::default() };
        if status != 200 {
            completion.error = Some(body.to_string());
            return completion;
        }
        completion.choices = match generate.api {
            Api::Completion => vec![Choice::of_completion(body)],
            Api::Completions => each(&body["choices"], |one| Choice {
                text: text_of(&one["text"]),
                tokens: verdict::tokens_of_choice(one),
                answer: None,
            }),
            Api::Chat => each(&body["choices"], |one| Choice {
                text: text_of(&one["message"]["content"]),
                tokens: verdict::tokens_of_choice(one),
                answer: None,
            }),
            Api::Messages => {
                vec![Choice::of_text(each(&body["content"], |one| text_of(&one["text"])).concat())]
            }
            Api::Responses => {
                vec![Choice::of_text(
                    each(&body["output"][0]["content"], |one| text_of(&one["text"])).concat(),
                )]
            }
        };
        completion.numbers.take(body);
        completion.slot = body["id_slot"].as_u64().and_then(|slot| usize::try_from(slot).ok());
        completion
    }

    fn of_events(generate: &Generate, events: &[Value]) -> Completion {
        let mut completion = Completion { status: Some(200), ..Completion::default() };
        completion.choices = vec![Choice::default(); generate.choices];
        for event in events {
            let place = match generate.api {
                Api::Completion => event["index"].as_u64(),
                _ => event["choices"][0]["index"].as_u64(),
            };
            let at = usize::try_from(place.unwrap_or(0)).unwrap_or(usize::MAX);
            if let Some(choice) = completion.choices.get_mut(at) {
                choice.add(generate.api, event);
            }
            completion.numbers.take(event);
            completion.numbers.take(&event["message"]);
            completion.numbers.take(&event["response"]);
            if event["stop"] == true {
                completion.slot = event["id_slot"].as_u64().and_then(|slot| usize::try_from(slot).ok());
            }
        }
        completion
    }
}

impl Choice {
    fn of_text(text: String) -> Choice {
        Choice { text, ..Choice::default() }
    }

    fn of_completion(body: &Value) -> Choice {
        Choice {
            text: text_of(&body["content"]),
            tokens: serde_json::from_value(body["tokens"].clone()).ok(),
            answer: verdict::read(body),
        }
    }

    fn add(&mut self, api: Api, event: &Value) {
        let choice = &event["choices"][0];
        self.text += &match api {
            Api::Completion => text_of(&event["content"]),
            Api::Completions => text_of(&choice["text"]),
            Api::Chat => text_of(&choice["delta"]["content"]),
            Api::Messages => text_of(&event["delta"]["text"]),
            Api::Responses if event["type"] == "response.output_text.delta" => text_of(&event["delta"]),
            Api::Responses => String::new(),
        };
        let more = match api {
            Api::Completion => serde_json::from_value(event["tokens"].clone()).ok(),
            _ => verdict::tokens_of_choice(choice),
        };
        if let Some(more) = more {
            self.tokens.get_or_insert_default().extend::<Vec<i64>>(more);
        }
    }
}

impl Numbers {
    /// Updates the counts; later values override earlier ones.
    fn take(&mut self, from: &Value) {
        let usage = &from["usage"];
        let first = |values: [&Value; 3]| values.iter().find_map(|value| value.as_u64());
        let none = &Value::Null;
        let found = [
            (&mut self.prompt, first([&usage["prompt_tokens"], none, &from["tokens_evaluated"]])),
            (
                &mut self.completion,
                first([&usage["completion_tokens"], &usage["output_tokens"], &from["tokens_predicted"]]),
            ),
            (
                &mut self.cached,
                first([
                    &usage["prompt_tokens_details"]["cached_tokens"],
                    &usage["input_tokens_details"]["cached_tokens"],
                    &usage["cache_read_input_tokens"],
                ]),
            ),
        ];
        for (to, value) in found {
            *to = value.or(*to);
        }
        // Anthropic's count of input tokens excludes cached tokens, OpenAI's includes them.
        if let Some(input) = usage["input_tokens"].as_u64() {
            let found = usage["cache_read_input_tokens"].as_u64().unwrap_or(0);
            self.prompt = Some(input + found);
        }
        let timings = &from["timings"];
        if let (Some(cached), Some(computed)) = (timings["cache_n"].as_u64(), timings["prompt_n"].as_u64()) {
            self.timed = Some((cached, computed));
        }
        if let (Some(drafted), Some(accepted)) =
            (timings["draft_n"].as_u64(), timings["draft_n_accepted"].as_u64())
        {
            self.drafted = (drafted, accepted);
        }
    }

    /// Number of cached prompt tokens, whichever field reports it.
    pub fn found(&self) -> Option<u64> {
        self.timed.map(|(cached, _)| cached).max(self.cached)
    }
}

fn each<T>(list: &Value, read: impl Fn(&Value) -> T) -> Vec<T> {
    list.as_array().into_iter().flatten().map(read).collect()
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fuzz::judge::samples;

    #[test]
    fn a_stream_of_choices_is_put_together_by_index() {
        let event = |index: usize, text: &str, id: i64| {
            let logprobs = json!({ "content": [{ "id": id }] });
            json!({ "choices": [{ "index": index, "text": text, "logprobs": logprobs }] }).to_string()
        };
        let body = format!(
            "data: {}\n\ndata: {}\n\ndata: {}\n\n",
            event(0, "a", 1),
            event(1, "b", 2),
            event(0, "c", 3)
        );
        let generate =
            Generate { api: Api::Completions, stream: true, choices: 2, predict: 2, ..samples::generate() };
        let completion = Completion::read(&generate, &samples::response(200, &body));
        assert_eq!(completion.choices[0].text, "ac");
        assert_eq!(
            (&completion.choices[0].tokens, &completion.choices[1].tokens),
            (&Some(vec![1, 3]), &None),
            "one token is missing"
        );
    }

    #[test]
    fn numbers_are_found_in_every_api() {
        let mut numbers = Numbers::default();
        numbers.take(&json!({ "usage": { "input_tokens": 3, "cache_read_input_tokens": 64 } }));
        numbers.take(&json!({ "usage": { "output_tokens": 5 } }));
        assert_eq!((numbers.prompt, numbers.completion, numbers.found()), (Some(67), Some(5), Some(64)));
        numbers.take(&json!({ "timings": { "cache_n": 7, "prompt_n": 8 }, "tokens_evaluated": 15 }));
        assert_eq!((numbers.timed, numbers.prompt), (Some((7, 8)), Some(15)));
    }

    #[test]
    fn an_error_in_a_stream_is_its_status() {
        let generate = Generate { stream: true, ..samples::generate() };
        let completion = Completion::read(
            &generate,
            &samples::response(200, "data: {\"error\":{\"code\":500,\"message\":\"no\"}}\n\n"),
        );
        assert_eq!(completion.status, Some(500));
        assert!(completion.error.unwrap().contains("no"));
    }
}
