//! Streams of preempted requests: they pause, and differ in nothing else.

use espalier_core::error::Result;
use espalier_core::http::{Disconnect, Line, Request};
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use super::asking::{LIMIT, plain, with};
use super::fixture::{Model, PromiseFixture};
use crate::serving::asking::busy_slots;
use crate::serving::cases;

/// Format of one API's stream.
struct Api {
    path: &'static str,
    /// Builds the request field with the prompt.
    prompt: fn(&str) -> Value,
    /// Text of a line that occurs once, at the beginning, if the API has one.
    begins: Option<&'static str>,
    /// Text of a line that occurs once, at the end.
    ends: &'static str,
}

fn message(text: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": text }], "max_tokens": 8 })
}

/// Every API that streams.
const APIS: [Api; 5] = [
    Api {
        path: "/completion",
        prompt: |text| json!({ "prompt": text, "n_predict": 8 }),
        begins: None,
        ends: "\"stop\":true",
    },
    Api {
        path: "/v1/completions",
        prompt: |text| json!({ "prompt": text, "max_tokens": 8 }),
        begins: None,
        ends: "data: [DONE]",
    },
    Api {
        path: "/v1/chat/completions",
        prompt: message,
        begins: Some("\"role\":\"assistant\""),
        ends: "data: [DONE]",
    },
    Api {
        path: "/v1/messages",
        prompt: message,
        begins: Some("event: message_start"),
        ends: "event: message_stop",
    },
    Api {
        path: "/v1/responses",
        prompt: |text| json!({ "input": text, "max_output_tokens": 8 }),
        begins: Some("event: response.created"),
        // Cut after that many tokens, so the response does not count as complete.
        ends: "event: response.incomplete",
    },
];

/// Length of the prompt that is preempted, in letters; with random weights each is a token.
const LETTERS: usize = 560;

/// Number of requests that run beside it: one block each when the prompt begins, two before all of it is computed.
const NEIGHBOURS: u64 = 6;

const CROWDED: [&str; 11] =
    ["-np", "8", "-c", "1024", "-b", "16", "-ub", "16", "--kv-paged", "--chat-template", "chatml"];

/// With every API, a prompt that is preempted while it is computed has a stream like any other.
pub fn of_preempted_prompts(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let text = cases::only_text_arguments();
    let arguments: Vec<&str> = CROWDED.into_iter().chain(text.iter().map(String::as_str)).collect();
    let server = fixture.serve(Model::Random, &arguments)?;
    for api in &APIS {
        let lines = preempted(&server, api)?;
        fixture.arose(lines.is_some(), || format!("{}: its prompt was not preempted", api.path));
        let wrong = lines.and_then(|lines| violation(api, &lines));
        fixture.must(wrong.is_none(), || format!("{}: {}", api.path, wrong.unwrap_or_default()));
    }
    Ok(())
}

/// Returns the number of cached tokens that the events of a preempted prompt report; no other request had the same
/// prompt.
pub fn preempted_completion(fixture: &mut PromiseFixture<'_>) -> Result<Vec<u64>> {
    let server = fixture.serve(Model::Random, &CROWDED)?;
    let lines = preempted(&server, &APIS[0])?;
    fixture.arose(lines.is_some(), || "no prompt was preempted".to_string());
    let found = |line: String| Line::parse(&line).json()?.pointer("/timings/cache_n").and_then(Value::as_u64);
    Ok(lines.into_iter().flatten().filter_map(found).collect())
}

/// Returns the lines of a stream whose prompt was preempted; repeats the request until it was. No two prompts have a
/// common prefix.
fn preempted(server: &Server, api: &Api) -> Result<Option<Vec<String>>> {
    for letter in "abcdefghijkl".chars() {
        let before = times_preempted(server)?;
        let lines = stream_in_a_crowd(server, api, &letter.to_string().repeat(LETTERS))?;
        if times_preempted(server)? > before {
            return Ok(Some(lines));
        }
    }
    Ok(None)
}

/// Returns the number of prompts that were preempted while they were computed, from the server's log.
fn times_preempted(server: &Server) -> Result<usize> {
    Ok(server.log_text()?.matches(" prompt tokens: ").count())
}

fn stream_in_a_crowd(server: &Server, api: &Api, prompt: &str) -> Result<Vec<String>> {
    let neighbours: Vec<Value> = (1..=NEIGHBOURS)
        .map(|number| {
            with(plain(&cases::numbered_prompt(number, 8 + 2 * number as usize), 90), "cache_prompt", false)
        })
        .collect();
    let request = with(with((api.prompt)(prompt), "stream", true), "cache_salt", api.path);
    std::thread::scope(|threads| {
        let crowd = threads.spawn(|| server.post_at_once_within("/completion", &neighbours, LIMIT));
        until_all_work(server)?;
        let request = Request::post(api.path, &request);
        let response = server.send(&request, Disconnect::AfterTime(LIMIT), LIMIT);
        // Another promise checks their answers.
        drop(crowd.join());
        Ok(response.text().lines().map(str::to_string).collect())
    })
}

/// Polls until all neighbours are running, for a limited time.
fn until_all_work(server: &Server) -> Result<()> {
    for _ in 0..100 {
        if busy_slots(server)? as u64 >= NEIGHBOURS {
            break;
        }
    }
    Ok(())
}

/// Returns the first violation of the API's format.
fn violation(api: &Api, lines: &[String]) -> Option<String> {
    let strange = lines.iter().find(|line| !is_expected(line));
    if let Some(line) = strange {
        return Some(format!("a line `{line}`"));
    }
    let times = |words: &str| lines.iter().filter(|line| line.contains(words)).count();
    if let Some(begins) = api.begins.filter(|begins| times(begins) != 1) {
        return Some(format!("`{begins}` came {} times", times(begins)));
    }
    let ends = times(api.ends);
    (ends != 1).then(|| format!("`{}` came {ends} times, the last line was {:?}", api.ends, lines.last()))
}

/// Whether a line is valid in an event stream: empty, a comment, an event's name, or data that is an object without an
/// error.
fn is_expected(line: &str) -> bool {
    match Line::parse(line) {
        Line::Ignored | Line::Data("[DONE]") => true,
        Line::Name(name) => name != "error",
        Line::Data(data) => serde_json::from_str::<Value>(data).is_ok_and(|data| {
            data.is_object() && data.get("error").is_none_or(Value::is_null) && data["type"] != "error"
        }),
        Line::Other(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(api: usize, lines: &[&str]) -> Option<String> {
        violation(&APIS[api], &lines.iter().map(|line| (*line).to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn a_whole_stream_is_right() {
        let lines =
            ["event: message_start", "data: {\"a\":1}", "", ": ping", "event: message_stop", "data: {}", ""];
        assert_eq!(wrong(3, &lines), None);
        assert_eq!(wrong(1, &["data: {\"a\":null}", "", "data: [DONE]"]), None);
        assert_eq!(wrong(0, &["data: {\"stop\":true}"]), None);
    }

    #[test]
    fn null_errors_second_beginnings_and_missing_ends_are_wrong() {
        assert_eq!(wrong(1, &["data: null", "data: [DONE]"]).unwrap(), "a line `data: null`");
        assert!(wrong(1, &["data: {\"error\":{}}", "data: [DONE]"]).is_some());
        assert!(wrong(3, &["event: message_start", "event: message_start", "event: message_stop"]).is_some());
        assert!(wrong(1, &["data: {}"]).unwrap().contains("0 times"));
        assert!(wrong(4, &["error: x"]).is_some());
    }
}
