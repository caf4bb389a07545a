use serde_json::json;

use super::super::plan::{Round, families};
use super::*;

const GOOD: &str = "{\"content\":\"x\"}";

fn response(status: u16, body: &str) -> Response {
    let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut response = Response::none(Ending::Closed);
    response.push(format!("{head}{body}").as_bytes(), Duration::from_millis(5));
    response
}

fn observation(status: u16, body: &str) -> Observation {
    Observation {
        size: 4,
        body: 100,
        response: response(status, body),
        left: false,
        other: Other { asked: 3, longest: Duration::from_millis(9), failed: None },
        peak: 50 << 20,
        rested: Some(Duration::ZERO),
        reference: Some(json!("as before")),
    }
}

fn refusal(message: &str) -> Observation {
    observation(400, &json!({ "error": { "message": message } }).to_string())
}

/// Names of the oracles that report a finding.
fn oracles(change: impl FnOnce(&mut Observation, &mut Evidence)) -> Vec<&'static str> {
    let mut one = observation(200, GOOD);
    let mut evidence = Evidence { rest: 40 << 20, reference: json!("as before"), ..Evidence::default() };
    change(&mut one, &mut evidence);
    evidence.observations.push(one);
    let all: Vec<_> = families().collect();
    let budget = Budget::with_patience(Duration::from_secs(10));
    judge(&Round::draw(0, &all), &evidence, &budget).iter().map(|finding| finding.oracle).collect()
}

#[test]
fn a_request_within_its_budget_is_right() {
    assert_eq!(oracles(|_, _| {}), [""; 0]);
    assert_eq!(oracles(|one, _| *one = refusal("too many prompts: 9, at most 8 are supported")), [""; 0]);
}

#[test]
fn memory_may_grow_with_the_body_but_not_by_itself() {
    assert_eq!(oracles(|one, _| one.peak = 400 << 20), ["memory"]);
    assert_eq!(oracles(|one, _| (one.peak, one.body) = (400 << 20, 4 << 20)), [""; 0]);
    assert_eq!(oracles(|one, _| (one.peak, one.body) = (600 << 20, 4 << 20)), ["memory"]);
}

#[test]
fn a_server_that_was_killed_for_its_memory_is_found_once() {
    let kill = |one: &mut Observation, evidence: &mut Evidence| {
        *one = Observation { peak: 400 << 20, reference: None, rested: None, ..observation(500, "") };
        evidence.ended = Some("it was killed".to_string());
    };
    assert_eq!(oracles(kill), ["memory"]);
}

#[test]
fn no_answer_in_time_is_found_unless_the_client_left() {
    let silent = |one: &mut Observation| one.response = Response::none(Ending::Left);
    assert_eq!(oracles(|one, _| silent(one)), ["time"]);
    assert_eq!(
        oracles(|one, _| {
            silent(one);
            one.left = true;
        }),
        [""; 0]
    );
}

#[test]
fn an_error_of_the_server_and_a_broken_connection_are_found() {
    assert_eq!(oracles(|one, _| *one = observation(500, "{}")), ["status"]);
    assert_eq!(oracles(|one, _| *one = observation(501, "{}")), [""; 0]);
    let broken = |one: &mut Observation| one.response = Response::none(Ending::Closed);
    assert_eq!(oracles(|one, _| broken(one)), ["status"]);
}

#[test]
fn a_refusal_names_its_reason() {
    assert_eq!(oracles(|one, _| *one = refusal("")), ["message"]);
    assert_eq!(oracles(|one, _| *one = refusal("x: failed to parse grammar")), ["message"]);
    assert_eq!(oracles(|one, _| *one = refusal("failed to parse grammar: ")), ["message"]);
    assert_eq!(oracles(|one, _| *one = refusal("failed to parse grammar: stoull")), ["message"]);
    let reason = "failed to parse grammar: left recursion from the rule \"root\"";
    assert_eq!(oracles(|one, _| *one = refusal(reason)), [""; 0]);
    assert_eq!(oracles(|one, _| *one = observation(413, "")), [""; 0]);
}

#[test]
fn a_refusal_because_of_a_limit_names_it() {
    assert_eq!(oracles(|one, _| *one = refusal("the parentheses are nested too deeply")), ["message"]);
    assert_eq!(oracles(|one, _| *one = refusal("repetitions exceed sane defaults")), ["message"]);
    let named = "the parentheses are nested too deeply, at most 512 levels are supported";
    assert_eq!(oracles(|one, _| *one = refusal(named)), [""; 0]);
}

#[test]
fn the_log_does_not_quote_a_request() {
    let quoting = |kind: &str, message: &str| {
        let body = json!({ "error": { "message": message, "type": kind } }).to_string();
        oracles(|one, evidence| {
            *one = observation(400, &body);
            evidence.log = format!("W srv: got exception: {message}\n");
        })
    };
    let number = "number overflow parsing '111'";
    assert_eq!(quoting("invalid_request_error", number), ["log"]);
    assert_eq!(quoting("exceed_context_size_error", number), [""; 0]);
    let longer = "request (4112 tokens) exceeds the available context size (4096 tokens), try increasing it";
    assert_eq!(quoting("invalid_request_error", longer), [""; 0]);
    assert_eq!(quoting("invalid_request_error", &format!("{longer}: a text")), ["log"]);
}

#[test]
fn another_client_is_answered_meanwhile() {
    assert_eq!(oracles(|one, _| one.other.longest = Duration::from_secs(11)), ["other"]);
    assert_eq!(oracles(|one, _| one.other.failed = Some("500".to_string())), ["other"]);
}

#[test]
fn work_ends_and_answers_stay() {
    assert_eq!(oracles(|one, _| one.rested = None), ["work"]);
    assert_eq!(oracles(|one, _| one.reference = Some(json!("another"))), ["answer"]);
    assert_eq!(oracles(|one, _| one.reference = None), ["answer"]);
}

#[test]
fn a_server_that_ends_is_found_once_with_what_it_was_asked() {
    let end = |one: &mut Observation, evidence: &mut Evidence| {
        (one.response, one.reference) = (Response::none(Ending::Closed), None);
        evidence.ended = Some("signal 11".to_string());
    };
    assert_eq!(oracles(end), ["server"]);
}

#[test]
fn a_failed_assertion_is_found() {
    assert_eq!(oracles(|_, evidence| evidence.log = "GGML_ASSERT(x) failed\n".to_string()), ["server"]);
}
