//! Admission control: which requests `--max-queued` refuses, and which ids and counts are refused before they reach the
//! queue.

use std::time::Duration;

use espalier_core::error::Result;
use espalier_core::http::{Disconnect, Request};
use espalier_core::sys::machine::threads::result_of;
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use super::asking::{LIMIT, ask, metric, plain, post, with};
use super::fixture::{Model, PromiseFixture};
use super::meanwhile::meanwhile;
use super::tenants::MOMENT;
use crate::serving::cases;

/// Admission control does not need a paged cache.
const PAGED_OR_NOT: [&str; 2] = ["--kv-paged", "--kv-unified"];

fn prompt(number: u64) -> Vec<u32> {
    cases::numbered_prompt(number, 20)
}

/// One request with `count` prompts.
fn several(count: u64) -> Value {
    let prompts: Vec<Vec<u32>> = (1..=count).map(prompt).collect();
    json!({ "prompt": prompts, "n_predict": 4, "temperature": 0, "ignore_eos": true })
}

/// A request that finds a free slot is admitted, however many prompts or choices it has; it counts as one.
pub fn one_request_counts_once(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    for paging in PAGED_OR_NOT {
        let arguments = ["-np", "4", "-c", "4096", paging, "--max-queued", "1", "--metrics"];
        let server = fixture.serve(Model::Trained, &arguments)?;
        for (what, path, request) in [
            ("4 prompts", "/completion", several(4)),
            ("20 prompts", "/completion", several(20)),
            ("4 choices", "/v1/completions", cases::request_for_choices(&prompt(1), 4)),
        ] {
            for _ in 0..3 {
                let (status, body) = post(&server, path, &request)?;
                fixture.must(status == 200, || format!("{paging}, {what}, alone: returned {status}: {body}"));
            }
        }
        let clients: Vec<Value> = (0..4).map(|number| plain(&prompt(number), 4)).collect();
        for _ in 0..5 {
            let statuses: Vec<u16> = server
                .post_at_once("/completion", &clients)?
                .answers
                .iter()
                .map(|(status, _)| *status)
                .collect();
            fixture.must(statuses == [200; 4], || format!("{paging}: 4 clients of 4 slots got {statuses:?}"));
        }
        let refused = metric(&server, "rate_limited_requests_total")?;
        fixture.must(refused == 0.0, || format!("{paging}: {refused} requests are counted as refused"));
    }
    Ok(())
}

/// Reranking and embedding many documents is one request each.
pub fn documents_count_once(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let documents: Vec<String> = (0..20).map(|number| format!("document {number}")).collect();
    for paging in PAGED_OR_NOT {
        let arguments = ["--reranking", "-np", "2", "-c", "2048", paging, "--max-queued", "8", "--metrics"];
        let server = fixture.serve(Model::Random, &arguments)?;
        for (path, request) in [
            ("/rerank", json!({ "query": "which one?", "documents": documents })),
            ("/embeddings", json!({ "input": documents })),
        ] {
            let (status, body) = post(&server, path, &request)?;
            fixture.must(status == 200, || {
                format!("{paging}, {path} of 20 documents: returned {status}: {body}")
            });
        }
        let refused = metric(&server, "rate_limited_requests_total")?;
        fixture.must(refused == 0.0, || format!("{paging}: {refused} requests are counted as refused"));
    }
    Ok(())
}

/// A stream holds most of the pool: requests find a slot but no free blocks. One of them may wait and the others are
/// refused, also if all arrive in one step.
pub fn newcomers_without_blocks(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let arguments = ["-np", "8", "-c", "1024", "--kv-paged", "--max-queued", "1", "--metrics"];
    let server = fixture.serve(Model::Random, &arguments)?;
    let holder = plain(&cases::numbered_prompt(1, 600), 300);
    let large: Vec<Value> =
        (0..5).map(|number| plain(&cases::numbered_prompt(10 + number, 500), 2)).collect();
    let (_, (mut statuses, in_time)) = meanwhile(&server, &holder, |running| {
        let asked: Vec<Result<u16>> = std::thread::scope(|threads| {
            let ask_one = |one| ask(&server, one).map(|(status, _)| status);
            let asks: Vec<_> = large.iter().map(|one| threads.spawn(move || ask_one(one))).collect();
            asks.into_iter().map(result_of).collect()
        });
        Ok((asked.into_iter().collect::<Result<Vec<u16>>>()?, !running.is_over()))
    })?;
    statuses.sort_unstable();
    let refused = metric(&server, "rate_limited_requests_total")?;
    let counted = statuses.iter().filter(|status| **status == 429).count() as f64;
    let in_time =
        fixture.arose(in_time || statuses.contains(&429), || "the stream was over before".to_string());
    fixture.must(!in_time || statuses == [200, 429, 429, 429, 429], || {
        format!("5 requests without blocks got {statuses:?}")
    });
    fixture.must(refused == counted, || format!("{counted} were refused, {refused} are counted"));
    Ok(())
}

/// Number of clients with a common prefix, of which one computes it and the others reuse its blocks.
const ALIKE: u64 = 8;

/// A request that waits for in-flight blocks of another is not queued: it has a slot and a part of the pool.
pub fn prefix_waits_are_not_queued(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let arguments =
        ["-np", "8", "-c", "8192", "-b", "64", "-ub", "64", "--kv-paged", "--max-queued", "1", "--metrics"];
    let server = fixture.serve(Model::Random, &arguments)?;
    let beginning = cases::numbered_prompt(1, 1000);
    let clients: Vec<Value> =
        (0..ALIKE).map(|number| plain(&[&beginning[..], &prompt(number)[..]].concat(), 2)).collect();
    let answers = server.post_at_once("/completion", &clients)?.answers;
    let statuses: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
    let waits = metric(&server, "prefix_cache_inflight_waits_total")?;
    fixture.must(statuses.iter().all(|status| *status == 200), || {
        format!("{ALIKE} clients with one beginning, of {ALIKE} slots, got {statuses:?}")
    });
    fixture.arose(waits > 0.0, || "no request waited for the blocks of another".to_string());
    Ok(())
}

/// Slot actions that wait for a stream to end do not count against the limit of queued requests.
pub fn slot_actions_are_not_queued(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    for paging in PAGED_OR_NOT {
        let folder = fixture.empty_folder("actions")?;
        let arguments = ["-np", "1", "-c", "4096", paging, "--max-queued", "1", "--slot-save-path", &folder];
        let server = fixture.serve(Model::Random, &arguments)?;
        let holder = plain(&cases::numbered_prompt(1, 10), 3000);
        std::thread::scope(|threads| {
            let (_, asked) = meanwhile(&server, &holder, |_| {
                let ask_for = |path, body: Value| {
                    let server = &server;
                    let asked = threads.spawn(move || post(server, path, &body));
                    std::thread::sleep(MOMENT);
                    asked
                };
                let saves = [1, 2, 3]
                    .map(|number| ask_for("/slots/0?action=save", json!({ "filename": number.to_string() })));
                Ok((saves, ask_for("/completion", plain(&prompt(2), 2))))
            })?;
            let (status, body) = result_of(asked.1)?;
            fixture.must(status == 200, || {
                format!("{paging}: beside 3 saves the first request got {status}: {body}")
            });
            for save in asked.0 {
                let (status, body) = result_of(save)?;
                fixture.must(status == 200, || format!("{paging}: a save that waited got {status}: {body}"));
            }
            Ok::<(), espalier_core::error::Error>(())
        })?;
    }
    Ok(())
}

/// A request of which one prompt was computed is not queued again, even if another request gets its slot before its
/// next prompt does.
pub fn admitted_once(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    PAGED_OR_NOT.into_iter().try_for_each(|paging| admitted_once_with(fixture, paging))
}

fn admitted_once_with(fixture: &mut PromiseFixture<'_>, paging: &str) -> Result<()> {
    let arguments = ["-np", "1", "-c", "4096", paging, "--max-queued", "1", "--allow-priority"];
    let server = fixture.serve(Model::Random, &arguments)?;
    let later = with(with(several(3), "n_predict", 200), "priority", 5);
    std::thread::scope(|threads| {
        let server = &server;
        let first = threads.spawn(move || ask(server, &later));
        std::thread::sleep(MOMENT);
        let (_, second) = meanwhile(server, &plain(&prompt(7), 3000), |_| {
            let second = threads.spawn(move || ask(server, &plain(&prompt(8), 2)));
            std::thread::sleep(2 * MOMENT);
            Ok(second)
        })?;
        let (status, body) = result_of(second)?;
        fixture.must(status == 200, || {
            format!("{paging}: beside one that was admitted, one got {status}: {body}")
        });
        let (status, body) = result_of(first)?;
        fixture.must(status == 200, || format!("{paging}: 3 prompts got {status}: {body}"));
        Ok(())
    })
}

/// Each refusal for a full queue tells the client when to ask again, and is counted; queued requests do not count as
/// running.
pub fn refusals_and_counts(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    PAGED_OR_NOT.into_iter().try_for_each(|paging| refusals_and_counts_with(fixture, paging))
}

fn refusals_and_counts_with(fixture: &mut PromiseFixture<'_>, paging: &str) -> Result<()> {
    let arguments = ["-np", "1", "-c", "4096", paging, "--max-queued", "2", "--metrics"];
    let server = fixture.serve(Model::Random, &arguments)?;
    let holder = plain(&cases::numbered_prompt(1, 10), 3000);
    std::thread::scope(|threads| {
        let (_, waiting) = meanwhile(&server, &holder, |_| {
            let waiting = [plain(&prompt(1), 2), several(3)].map(|request| {
                let server = &server;
                let waiting = threads.spawn(move || ask(server, &request));
                std::thread::sleep(2 * MOMENT);
                waiting
            });
            let numbers = (metric(&server, "requests_processing")?, metric(&server, "requests_deferred")?);
            fixture.must(numbers == (1.0, 2.0), || {
                format!("{paging}: 1 runs and 2 wait, and it says {numbers:?}")
            });
            for request in [several(3), with(plain(&prompt(3), 2), "stream", true)] {
                let head = head_of(&server, &request);
                let is_refused =
                    head.contains(" 429 ") && head.to_ascii_lowercase().contains("\r\nretry-after: ");
                fixture.must(is_refused, || format!("{paging}: refused without Retry-After: {head}"));
            }
            Ok(waiting)
        })?;
        for one in waiting {
            let (status, body) = result_of(one)?;
            fixture.must(status == 200, || format!("{paging}: one that may wait returned {status}: {body}"));
        }
        let refused = metric(&server, "rate_limited_requests_total")?;
        fixture.must(refused == 2.0, || format!("{paging}: 2 requests were refused, {refused} are counted"));
        Ok(())
    })
}

fn head_of(server: &Server, request: &Value) -> String {
    let request = Request::post("/completion", request);
    let bytes = server.send(&request, Disconnect::AfterTime(Duration::from_secs(5)), LIMIT).bytes;
    let text = espalier_series::lossy(&bytes).into_owned();
    text.split("\r\n\r\n").next().unwrap_or_default().to_string()
}

/// An id or a count that no slot has is refused, and other requests are not affected.
pub fn odd_ids_are_refused(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let folder = fixture.empty_folder("odd")?;
    let arguments = ["-np", "2", "-c", "4096", "--kv-paged", "--allow-priority", "--slot-save-path", &folder];
    let server = fixture.serve(Model::Random, &arguments)?;
    // In slot 0, so that slot 1 is free for requests that name it.
    let stream = with(plain(&cases::numbered_prompt(1, 10), 3000), "id_slot", 0);
    let (_, in_time) = meanwhile(&server, &stream, |running| {
        odd_fields_are_refused(fixture, &server)?;
        for id in ["-1", "-3", "2", "1abc", "4294967296", "0x1", "%2B1"] {
            let (status, body) = post(&server, &format!("/slots/{id}?action=erase"), &json!({}))?;
            fixture.must(status == 400, || format!("erasing slot {id} returned {status}: {body}"));
        }
        for id in [json!(-1), json!(1), Value::Null] {
            let (status, body) = ask(&server, &with(plain(&prompt(2), 2), "id_slot", id.clone()))?;
            fixture.must(status == 200, || format!("id_slot {id} beside a stream returned {status}: {body}"));
        }
        Ok(!running.is_over())
    })?;
    fixture.arose(in_time, || "the stream was over before".to_string());
    Ok(())
}

fn odd_fields_are_refused(fixture: &mut PromiseFixture<'_>, server: &Server) -> Result<()> {
    let too_large = u64::MAX;
    let odd = [
        (
            "id_slot",
            vec![
                json!(-2),
                json!(-3),
                json!(2),
                json!(0.5),
                json!("1"),
                json!(4_294_967_297_u64),
                json!(too_large),
            ],
        ),
        ("n", vec![json!(0), json!(3), json!(1.5), json!(4_294_967_298_u64), json!(-1)]),
        ("priority", vec![json!(0.5), json!("1"), json!(4_294_967_296_u64), json!(too_large)]),
    ];
    for (field, values) in odd {
        for value in values {
            let (status, body) = ask(server, &with(plain(&prompt(1), 2), field, value.clone()))?;
            fixture.must(status == 400, || format!("{field}: {value} returned {status}: {body}"));
        }
    }
    Ok(())
}

/// Fields that an API's conversion drops are validated like those of the APIs that read them.
pub fn odd_fields_of_messages(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let arguments = ["-np", "2", "-c", "4096", "--kv-paged", "--allow-priority", "--chat-template", "chatml"];
    let text = cases::only_text_arguments();
    let arguments: Vec<&str> = arguments.into_iter().chain(text.iter().map(String::as_str)).collect();
    let server = fixture.serve(Model::Random, &arguments)?;
    let message = json!({ "messages": [{ "role": "user", "content": "a" }], "max_tokens": 2 });
    let fields = [
        ("cache_prompt", vec![json!("false"), json!(0), json!([])]),
        ("id_slot", vec![json!(-3), json!("abc"), json!(4_294_967_297_u64), json!(true)]),
        ("n", vec![json!(true), json!("1"), json!(0), json!(3)]),
        ("priority", vec![json!("1"), json!(0.5)]),
        ("cache_salt", vec![json!(1)]),
    ];
    for path in ["/v1/messages", "/v1/chat/completions", "/v1/responses"] {
        let message = match path {
            "/v1/responses" => json!({ "input": "a", "max_output_tokens": 2 }),
            _ => message.clone(),
        };
        let (status, body) = post(&server, path, &message)?;
        fixture.must(status == 200, || format!("{path}: returned {status}: {body}"));
        for (field, value) in fields.iter().flat_map(|(field, values)| values.iter().map(move |v| (field, v)))
        {
            let (status, body) = post(&server, path, &with(message.clone(), field, value.clone()))?;
            fixture.must(status == 400, || format!("{path}, {field}: {value} returned {status}: {body}"));
        }
    }
    Ok(())
}
