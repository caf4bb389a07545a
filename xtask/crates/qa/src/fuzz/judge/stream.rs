//! Parser and oracle for streams, as strict as clients: the form of each line, the beginning and the end.

use espalier_core::http::{Line, Lines};
use serde_json::Value;

use crate::fuzz::plan::actions::Api;

/// The events of a stream, and its format violations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stream {
    /// The events, without the final `[DONE]`.
    pub events: Vec<Value>,
    /// Violations that would break a client.
    pub wrong: Vec<String>,
}

/// Parses a stream; with `is_whole` it must be complete.
pub fn read(api: Api, choices: usize, body: &[u8], is_whole: bool) -> Stream {
    let mut stream = Stream::default();
    let (mut lines, mut name, mut is_done) = (Lines::default(), None, false);
    // A line without a newline was truncated when the client disconnected.
    while let Some(line) = lines.next_line(body) {
        let line = line.trim_end();
        match (Line::parse(line), line.strip_prefix("error:").map(str::trim)) {
            (Line::Ignored, _) => {}
            (Line::Name(event), _) => name = Some(event.to_string()),
            (Line::Data(data), _) | (Line::Other(_), Some(data)) => {
                if is_done {
                    stream.wrong.push(format!("after the end: {line}"));
                }
                match data {
                    "[DONE]" => is_done = true,
                    data => stream.take(data, name.take()),
                }
            }
            (Line::Other(_), None) => stream.wrong.push(format!("a line that is not an event: {line}")),
        }
    }
    if stream.refusal().is_none() {
        stream.check_beginning(api, choices, is_whole);
        if is_whole {
            stream.check_end(api, choices, is_done);
        }
    }
    stream
}

impl Stream {
    fn take(&mut self, data: &str, name: Option<String>) {
        match serde_json::from_str::<Value>(data) {
            Ok(event) if event.is_object() => {
                if name.is_some_and(|name| event["type"] != name.as_str() && event.get("error").is_none()) {
                    self.wrong.push(format!("an event's type differs from its name: {data}"));
                }
                self.events.push(event);
            }
            Ok(_) => self.wrong.push(format!("an event that is not an object: data: {data}")),
            Err(error) => self.wrong.push(format!("an event that is not JSON ({error}): data: {data}")),
        }
    }

    /// Returns the error that ended the stream.
    pub fn refusal(&self) -> Option<&Value> {
        self.events.iter().find_map(|event| event.get("error"))
    }

    /// Number of events of a type.
    fn count(&self, kind: &str) -> usize {
        self.events.iter().filter(|event| event["type"] == kind).count()
    }

    fn count_where(&self, is_it: impl Fn(&Value) -> bool) -> usize {
        self.events.iter().filter(|event| is_it(event)).count()
    }

    /// Checks how often each event occurs.
    fn check_beginning(&mut self, api: Api, choices: usize, is_whole: bool) {
        let counts = match api {
            Api::Completion | Api::Completions => return,
            Api::Chat => {
                vec![(
                    "a role",
                    self.count_where(|event| event["choices"][0]["delta"]["role"].is_string()),
                    choices,
                )]
            }
            Api::Messages => {
                ["message_start", "content_block_start"].map(|kind| (kind, self.count(kind), 1)).to_vec()
            }
            Api::Responses => ["response.created", "response.in_progress", "response.output_item.added"]
                .map(|kind| (kind, self.count(kind), 1))
                .to_vec(),
        };
        for (what, count, expected) in counts {
            if count > expected || is_whole && count < expected {
                self.wrong.push(format!("`{what}` came {count} times instead of {expected}"));
            }
        }
    }

    fn check_end(&mut self, api: Api, choices: usize, is_done: bool) {
        let last = self.events.last().cloned().unwrap_or_default();
        let ends = match api {
            Api::Completion => self.count_where(|event| event["stop"] == true) == choices,
            Api::Completions | Api::Chat => {
                is_done
                    && self.count_where(|event| event["choices"][0]["finish_reason"].is_string()) == choices
            }
            Api::Messages => last["type"] == "message_stop" && self.count("message_stop") == 1,
            Api::Responses => {
                let kinds = ["response.completed", "response.incomplete"];
                kinds.iter().any(|kind| last["type"] == *kind)
                    && kinds.iter().map(|kind| self.count(kind)).sum::<usize>() == 1
            }
        };
        if !ends {
            let events = self.events.len();
            self.wrong.push(format!("no proper end after {events} events; the last one: {last}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(api: Api, lines: &[&str]) -> Vec<String> {
        let text: String = lines.iter().map(|line| format!("{line}\n\n")).collect();
        read(api, 1, text.as_bytes(), true).wrong
    }

    const STOP: &str = "data: {\"stop\":true}";

    #[test]
    fn a_proper_stream_is_right() {
        assert!(wrong(Api::Completion, &["data: {\"stop\":false}", STOP]).is_empty());
        let chat = [
            "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"},\"finish_reason\":null}]}",
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}",
            "data: [DONE]",
        ];
        assert!(wrong(Api::Chat, &chat).is_empty());
        let messages = [
            "event: message_start\ndata: {\"type\":\"message_start\"}",
            "event: content_block_start\ndata: {\"type\":\"content_block_start\"}",
            "event: message_stop\ndata: {\"type\":\"message_stop\"}",
        ];
        assert!(wrong(Api::Messages, &messages).is_empty());
    }

    #[test]
    fn a_null_a_word_and_what_comes_after_the_end_are_wrong() {
        assert!(wrong(Api::Completion, &["data: null", STOP])[0].contains("not an object"));
        assert!(wrong(Api::Completion, &["data: what", STOP])[0].contains("not JSON"));
        let late = ["data: {\"choices\":[{\"finish_reason\":\"length\"}]}", "data: [DONE]", "data: {}"];
        assert!(wrong(Api::Completions, &late)[0].contains("after the end"));
        assert!(wrong(Api::Completion, &["what", STOP])[0].contains("not an event"));
    }

    #[test]
    fn a_second_beginning_and_a_missing_end_are_wrong() {
        let role = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"},\"finish_reason\":null}]}";
        assert!(wrong(Api::Chat, &[role, role])[0].contains("2 times"));
        assert!(wrong(Api::Completion, &["data: {\"stop\":false}"])[0].contains("proper end"));
        let created = "event: response.created\ndata: {\"type\":\"response.created\"}";
        let wrong = wrong(Api::Responses, &[created, created]);
        assert!(wrong.iter().any(|line| line.contains("`response.created` came 2 times")), "{wrong:?}");
        assert!(wrong.iter().any(|line| line.contains("proper end")), "{wrong:?}");
    }

    #[test]
    fn after_a_disconnect_only_the_received_part_is_judged() {
        let cut = read(Api::Completion, 1, b"data: {\"stop\":false}\n\ndata: {\"st", false);
        assert!(cut.wrong.is_empty() && cut.events.len() == 1);
    }

    #[test]
    fn an_error_ends_a_stream() {
        let stream = read(Api::Chat, 1, b"data: {\"error\":{\"code\":503}}\n\n", true);
        assert_eq!((stream.wrong.len(), &stream.refusal().unwrap()["code"]), (0, &503.into()));
    }
}
