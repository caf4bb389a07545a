//! The queue for slots: its limit, and the order of service.

use espalier_core::error::Result;
use espalier_core::sys::machine::threads::result_of;
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use super::asking::{ask, plain, post, with};
use super::fixture::{Model, PromiseFixture};
use super::meanwhile::{Running, meanwhile};
use super::tenants::MOMENT;
use crate::fuzz::judge::queue::stated_queue;
use crate::serving::cases;

/// Runs `act` while a stream holds the only slot; the stream outlives all requests of `act`.
fn busy<T>(server: &Server, act: impl FnOnce(&Running) -> Result<T>) -> Result<T> {
    let holder = plain(&cases::numbered_prompt(1, 10), 3500);
    Ok(meanwhile(server, &holder, act)?.1)
}

/// Returns a request long enough that answers arrive in the order in which they were computed.
fn request(number: u64) -> Value {
    plain(&cases::numbered_prompt(10 + number, 20), 30)
}

/// The guarantees of the queue do not depend on a paged cache.
const PAGED_OR_NOT: [&str; 2] = ["--kv-paged", "--kv-unified"];

/// With `--max-queued 2` two requests may wait; the third is refused at once, with the limit in the message.
pub fn most_queued(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    PAGED_OR_NOT.into_iter().try_for_each(|paging| most_queued_with(fixture, paging))
}

fn most_queued_with(fixture: &mut PromiseFixture<'_>, paging: &str) -> Result<()> {
    let arguments = ["-np", "1", "-c", "4096", paging, "--max-queued", "2"];
    let server = fixture.serve(Model::Random, &arguments)?;
    std::thread::scope(|threads| {
        let (refused, in_time, waiting) = busy(&server, |running| {
            let waiting = [1, 2].map(|number| {
                let server = &server;
                let waiting = threads.spawn(move || ask(server, &request(number)));
                std::thread::sleep(2 * MOMENT);
                waiting
            });
            let refused = ask(&server, &request(3))?;
            Ok((refused, !running.is_over(), waiting))
        })?;
        let (status, body) = refused;
        let (kind, words) = (&body["error"]["type"], body["error"]["message"].as_str().unwrap_or_default());
        let in_time = fixture.arose(in_time, || format!("{paging}: the slot was free before"));
        fixture.must(
            !in_time || (status == 429 && kind == "rate_limit_error" && stated_queue(words) == Some(2) && words.contains("--max-queued is 2")),
            || {
                format!(
                    "{paging}: the third returned {status}, expected 429 (rate_limit_error) with the queued requests \
                     and the limit: {body}"
                )
            },
        );
        for one in waiting {
            let (status, body) = result_of(one)?;
            fixture.must(status == 200, || {
                format!("{paging}: one of two that may wait returned {status}: {body}")
            });
        }
        Ok(())
    })
}

/// Of the queued requests the most urgent is answered first, even if it arrived last.
pub fn priority(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = fixture.serve(Model::Trained, &["-np", "1", "-c", "4096", "--kv-paged"])?;
    for (priority, expected) in [(json!(-1), 400), (json!(0), 200)] {
        let (status, body) = ask(&server, &with(request(1), "priority", priority.clone()))?;
        fixture.must(status == expected, || {
            format!("without the flag priority {priority} returned {status}: {body}")
        });
    }
    drop(server);
    PAGED_OR_NOT.into_iter().try_for_each(|paging| priority_with(fixture, paging))
}

fn priority_with(fixture: &mut PromiseFixture<'_>, paging: &str) -> Result<()> {
    let server = fixture.serve(Model::Random, &["-np", "1", "-c", "4096", paging, "--allow-priority"])?;
    let (answered, in_time) = answered_in_order(&server, &[0, 5, 0, -1])?;
    let in_time = fixture.arose(in_time, || format!("{paging}: the slot was free before"));
    fixture.must(!in_time || answered == [3, 0, 2, 1], || {
        format!("{paging}: priorities 0, 5, 0, -1 were answered in the order {answered:?}")
    });
    let (status, body) = ask(&server, &with(request(1), "priority", "high"))?;
    fixture.must(status == 400, || format!("a priority that is not a number returned {status}: {body}"));
    Ok(())
}

/// Sends requests with these priorities one after the other while the slot is busy. Returns the order of their answers,
/// and whether all were sent in time.
fn answered_in_order(server: &Server, priorities: &[i32]) -> Result<(Vec<usize>, bool)> {
    let (done, order) = std::sync::mpsc::channel();
    std::thread::scope(|threads| {
        let in_time = busy(server, |running| {
            for (at, priority) in priorities.iter().enumerate() {
                let done = done.clone();
                let request = with(request(at as u64), "priority", *priority);
                threads.spawn(move || {
                    let answer = ask(server, &request);
                    // Sends the index in any case; a failed request shows by its absence from the order.
                    let _ = done.send((at, answer.is_ok_and(|(status, _)| status == 200)));
                });
                std::thread::sleep(2 * MOMENT);
            }
            Ok(!running.is_over())
        })?;
        drop(done);
        Ok((order.iter().filter(|(_, is_right)| *is_right).map(|(at, _)| at).collect(), in_time))
    })
}

/// No request waits while a slot is free, whatever was queued for that slot before.
pub fn free_slot_is_given(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let folder = fixture.empty_folder("vain")?;
    let arguments = ["-np", "1", "-c", "4096", "--kv-paged", "--slot-save-path", &folder];
    let server = fixture.serve(Model::Random, &arguments)?;
    let refused = || ask(&server, &with(request(1), "grammar", "root ::= missing"));
    let action = || post(&server, "/slots/0?action=erase", &json!({}));
    let vain: [(&str, &Asks<'_>); 2] = [("a refused request", &refused), ("an action on the slot", &action)];
    for (name, first) in vain {
        let (in_time, answered) = answered_behind(&server, first)?;
        fixture.arose(in_time, || format!("{name}: the slot was free before"));
        fixture.must(matches!(answered, Ok((200, _))), || {
            format!("a request that waited behind {name}: {answered:?}")
        });
    }
    Ok(())
}

/// Sends a request and returns the status and the body.
type Asks<'a> = dyn Fn() -> Result<(u16, Value)> + Sync + 'a;

/// Sends `first` while the slot is busy, and then a request. Returns whether both were sent in time, and the request's
/// answer.
fn answered_behind(server: &Server, first: &Asks<'_>) -> Result<(bool, Result<(u16, Value)>)> {
    std::thread::scope(|threads| {
        let (in_time, second) = busy(server, |running| {
            threads.spawn(first);
            std::thread::sleep(2 * MOMENT);
            let second = threads.spawn(|| ask(server, &request(2)));
            std::thread::sleep(2 * MOMENT);
            Ok((!running.is_over(), second))
        })?;
        Ok((in_time, result_of(second)))
    })
}

/// The choices of one prompt get their slots together; no later request takes one of those slots meanwhile.
pub fn group_in_turn(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = fixture.serve(Model::Random, &["-np", "2", "-c", "8192", "--kv-paged"])?;
    let group = cases::request_for_choices(&cases::numbered_prompt(2, 20), 2);
    let asks: [&Asks<'_>; 2] = [&|| post(&server, "/v1/completions", &group), &|| ask(&server, &request(3))];
    let (done, order) = std::sync::mpsc::channel();
    let in_time = std::thread::scope(|threads| {
        busy(&server, |running| {
            for (at, asks) in asks.into_iter().enumerate() {
                let done = done.clone();
                threads.spawn(move || done.send((at, asks().map(|(status, _)| status))));
                std::thread::sleep(2 * MOMENT);
            }
            Ok(!running.is_over())
        })
    })?;
    drop(done);
    let answered: Vec<(usize, Result<u16>)> = order.iter().collect();
    let in_time = fixture.arose(in_time, || "both slots were free before".to_string());
    fixture.must(!in_time || matches!(answered[..], [(0, Ok(200)), (1, Ok(200))]), || {
        format!("a group of two (0) and one that came later (1) were answered so: {answered:?}")
    });
    Ok(())
}
