//! Meaning of the metrics: each token and each wait counts once, and times include pauses.

use espalier_core::error::Result;
use espalier_core::sys::machine::threads::result_of;
use espalier_core::sys::net::client::stop_if;
use espalier_core::sys::net::server::Server;
use serde_json::Value;

use super::asking::{LIMIT, ask, metric, metric_text, metrics, plain, post, with};
use super::fixture::{Model, PromiseFixture};
use super::streams;
use super::tenants::MOMENT;
use crate::gate::servers::fixture::times_logged;
use crate::serving::cases;
use crate::serving::kv_pool::Pool;
use crate::serving::request_record::RequestRecord;

/// Number of requests that fit into 16 blocks when they begin and not when they end, and their lengths in tokens.
const RUNNING: u64 = 4;
const PROMPT: usize = 100;
const GROWN: usize = 400;

/// Number of attempts to reproduce a situation on a busy machine.
const TRIES: u64 = 5;

fn follow(server: &Server, number: u64) -> Result<RequestRecord> {
    let request = with(plain(&cases::numbered_prompt(number, PROMPT), GROWN), "stream", true);
    RequestRecord::follow(server, &request, LIMIT, |_| stop_if(false))
}

/// Sends requests that together outgrow the pool, each with a new prompt, and repeats until one was preempted.
fn outgrow(fixture: &mut PromiseFixture<'_>, server: &Server) -> Result<Vec<RequestRecord>> {
    let mut all = Vec::new();
    for volley in 0..TRIES {
        let numbers = (1..=RUNNING).map(|number| volley * RUNNING + number);
        let seen: Vec<Result<RequestRecord>> = std::thread::scope(|threads| {
            let running: Vec<_> =
                numbers.map(|number| threads.spawn(move || follow(server, number))).collect();
            running.into_iter().map(result_of).collect()
        });
        all.extend(seen.into_iter().collect::<Result<Vec<_>>>()?);
        if times_logged(server, "preempted with")? > 0 {
            return Ok(all);
        }
    }
    fixture.arose(false, || "no request was preempted".to_string());
    Ok(all)
}

const SMALL: [&str; 6] = ["-np", "4", "-c", "1024", "--kv-paged", "--metrics"];

/// The number of prompt tokens is exact, and the time of an answer includes everything since its first token, the pause
/// after a preemption too.
pub fn timings_after_preemption(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = fixture.serve(Model::Trained, &SMALL)?;
    for response in outgrow(fixture, &server)? {
        let timings = &response.last["timings"];
        let number = |name: &str| timings[name].as_f64().unwrap_or(f64::NAN);
        let prompt = number("prompt_n") + number("cache_n");
        fixture
            .must(prompt == PROMPT as f64, || format!("a prompt of {PROMPT} tokens is reported as {prompt}"));
        fixture.must(number("predicted_n") == GROWN as f64, || {
            format!("{GROWN} tokens are reported as {timings}")
        });
        // Half of it, because the client may be delayed where the server was not.
        let milliseconds = response.decoding_time().as_secs_f64() * 1000.0;
        fixture.must(number("predicted_ms") >= milliseconds / 2.0, || {
            format!(
                "{milliseconds:.0} ms passed from the first token to the last, `predicted_ms` is {}",
                timings["predicted_ms"]
            )
        });
    }
    Ok(())
}

/// Recomputing a preempted request's own tokens counts as no prefix-cache hit: no other request had the same prompt.
pub fn hits_after_preemption(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = fixture.serve(Model::Trained, &SMALL)?;
    let all = outgrow(fixture, &server)?;
    for response in &all {
        let found = &response.last["timings"]["cache_n"];
        fixture.must(found == 0, || format!("a new prompt found {found} tokens"));
    }
    let mut found = streams::preempted_completion(fixture)?;
    found.retain(|found| *found != 0);
    fixture.must(found.is_empty(), || format!("a new prompt found {found:?} of its own tokens"));
    for (name, expected) in
        [("prefix_cache_hit_tokens_total", 0), ("prefix_cache_query_tokens_total", all.len() * PROMPT)]
    {
        let counted = metric(&server, name)?;
        fixture.must(counted == expected as f64, || format!("{name} is {counted} instead of {expected}"));
    }
    Ok(())
}

/// A request that waits for in-flight blocks of another counts as one wait, however many steps it takes.
pub fn waits_are_counted_once(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let arguments = ["-np", "2", "-c", "4096", "-b", "16", "-ub", "16", "--kv-paged", "--metrics"];
    let server = fixture.serve(Model::Trained, &arguments)?;
    let mut counted = 0.0;
    for volley in 1..=TRIES {
        let prompt = cases::numbered_prompt(volley, 1000);
        // The later slot begins; the earlier one is scheduled first and waits.
        let in_slot = |slot: usize| with(plain(&prompt, 1), "id_slot", slot);
        std::thread::scope(|threads| {
            let first = threads.spawn(|| ask(&server, &in_slot(1)));
            std::thread::sleep(MOMENT / 5);
            ask(&server, &in_slot(0))?;
            result_of(first)
        })?;
        counted = metric(&server, "prefix_cache_inflight_waits_total")?;
        if counted > 0.0 {
            break;
        }
    }
    // A violation also if it is 0: a metric that counts nothing must not look like a wait that did not arise.
    fixture.must(counted == 1.0, || format!("one wait is counted as {counted}"));
    Ok(())
}

/// A sleeping server still reports the metrics of its pool.
pub fn pool_of_a_sleeping_server(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let arguments = ["-np", "1", "-c", "1024", "--kv-paged", "--sleep-idle-seconds", "1"];
    let server = fixture.serve(Model::Trained, &arguments)?;
    ask(&server, &plain(&cases::numbered_prompt(1, 100), 1))?;
    let mut properties = Value::Null;
    for _ in 0..200 {
        properties = server.get("/props")?.1;
        if properties["is_sleeping"] == true {
            break;
        }
        std::thread::sleep(MOMENT);
    }
    fixture.must(properties["is_sleeping"] == true, || "the server does not sleep".to_string());
    let blocks = Pool::of_props(&properties)?.block_count;
    fixture.must(blocks == 16, || format!("asleep, its kv_pool has {blocks} blocks instead of 16"));
    Ok(())
}

/// Sums of seconds keep microsecond precision, however large they grow.
pub fn exact_sums(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = fixture.serve(Model::Trained, &["-np", "1", "-c", "4096", "--kv-paged", "--metrics"])?;
    let name = "time_between_tokens_seconds_sum";
    let mut sums: Vec<String> = Vec::new();
    for _ in 0..8 {
        ask(&server, &plain(&cases::numbered_prompt(1, 10), 1500))?;
        let (_, text) = metrics(&server)?;
        let sum = metric_text(&text, name).unwrap_or_default();
        if sum.parse().is_ok_and(|seconds: f64| seconds >= 1.0) {
            sums.push(sum.to_string());
        }
        // The last digit of a microsecond is 0 once in ten times.
        if sums.len() == 3 || digits(sum) > 6 {
            break;
        }
    }
    fixture.must(sums.last().is_some_and(|sum| digits(sum) > 6), || {
        format!("sums of a second and more are reported as {sums:?}")
    });
    Ok(())
}

/// A request that can never fit is refused and counts as one failed allocation; a later one that fits does not.
pub fn failures_are_counted(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = fixture.serve(Model::Trained, &SMALL)?;
    let failures = || metric(&server, "kv_cache_allocation_failures_total");
    // 900 tokens are 14 full blocks and one for each choice, of 16.
    let request = cases::request_for_choices(&cases::numbered_prompt(1, 900), 4);
    for count in [1.0, 2.0] {
        let answer = post(&server, "/v1/completions", &request)?;
        fixture.must_return("4 choices that do not fit", &answer, 400);
        let counted = failures()?;
        fixture.must(counted == count, || format!("{count} failed, counted are {counted}"));
    }
    let answer = ask(&server, &plain(&cases::numbered_prompt(1, 900), 4))?;
    fixture.must_return("the same prompt with one choice", &answer, 200);
    let counted = failures()?;
    fixture.must(counted == 2.0, || format!("after one that fits {counted} failures are counted"));
    Ok(())
}

/// The latency histograms distinguish waits of more than a minute, up to half an hour. No request here takes that long,
/// so each of these buckets has all values.
pub fn buckets_of_long_waits(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let server = fixture.serve(Model::Trained, &["-np", "1", "-c", "4096", "--kv-paged", "--metrics"])?;
    ask(&server, &plain(&cases::numbered_prompt(1, 20), 4))?;
    let (_, text) = metrics(&server)?;
    for name in ["time_to_first_token_seconds", "time_between_tokens_seconds"] {
        let count = metric_text(&text, &format!("{name}_count"));
        fixture.must(count.is_some_and(|count| count != "0"), || format!("{name} has {count:?} values"));
        for end in ["60", "120", "300", "600", "1800", "+Inf"] {
            let bucket = metric_text(&text, &format!("{name}_bucket{{le=\"{end}\"}}"));
            fixture.must(bucket == count, || format!("{name} up to {end} s: {bucket:?} of {count:?} values"));
        }
    }
    Ok(())
}

/// Metrics that were renamed keep their old name for one release, with the same value.
pub fn deprecated_metrics(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    const RENAMED: usize = 13;
    let server = fixture.serve(Model::Trained, &["-np", "1", "-c", "4096", "--kv-paged", "--metrics"])?;
    ask(&server, &plain(&cases::numbered_prompt(1, 200), 1))?;
    ask(&server, &plain(&cases::numbered_prompt(1, 200), 1))?;
    let (_, text) = metrics(&server)?;
    let pairs = deprecated_names(&text);
    fixture.must(pairs.len() == RENAMED, || format!("{} old names instead of {RENAMED}", pairs.len()));
    for (old, new) in &pairs {
        let (was, is) = (metric_text(&text, old), metric_text(&text, new));
        fixture.must(was.is_some() && was == is, || format!("{old} is {was:?}, {new} is {is:?}"));
    }
    let hits = metric(&server, "kv_pool_hits_total")?;
    fixture.must(hits > 0.0, || "the second of two equal prompts found nothing".to_string());
    Ok(())
}

/// Returns the old and the new name of each renamed metric, from the help texts of `/metrics`.
fn deprecated_names(text: &str) -> Vec<(&str, &str)> {
    let heads = text.lines().filter_map(|line| line.strip_prefix("# HELP llamacpp:"));
    heads.filter_map(|head| head.split_once(" Deprecated: llamacpp:")).collect()
}

/// Number of digits with which a metric is printed, without its exponent and a leading zero.
fn digits(text: &str) -> usize {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    mantissa.chars().filter(char::is_ascii_digit).count() - usize::from(mantissa.starts_with("0."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_names_are_read_from_help_texts() {
        let text =
            "# HELP llamacpp:old Deprecated: llamacpp:new\n# HELP llamacpp:new Tokens\nllamacpp:new 1\n";
        assert_eq!(deprecated_names(text), [("old", "new")]);
    }

    #[test]
    fn digits_are_counted_without_point_and_exponent() {
        assert_eq!(digits("1.23457"), 6);
        assert_eq!(digits("1.2345678"), 8);
        assert_eq!(digits("1.23457e+06"), 6);
        assert_eq!(digits("0.5"), 1);
    }
}
