//! Oracle for the idle server: it holds nothing except what it retains on purpose.

use serde_json::Value;

use super::{Finding, Rest, queue};
use crate::fuzz::plan::server::ServerPlan;
use crate::serving::kv_pool::Pool;

/// Checks that blocks, slots and sequences are consistent.
pub fn judge(server: &ServerPlan, act: usize, rest: &Rest) -> Vec<Finding> {
    let found = |expected: &str, came: &Value| Finding {
        oracle: "rest",
        asked: format!("after act {act}, when all clients were gone"),
        expected: expected.to_string(),
        came: super::shorten(&came.to_string()),
    };
    let slots: Vec<&Value> = rest.slots.as_array().into_iter().flatten().collect();
    let busy = slots.iter().filter(|slot| slot["is_processing"] == true);
    let mut findings: Vec<Finding> = busy.map(|slot| found("no busy slot", slot)).collect();
    if server.metrics && !server.sleeps {
        let gauges = rest.scrape.as_deref().and_then(queue::gauges);
        let is_idle = gauges == Some((0.0, 0.0));
        let wrong = (!is_idle).then(|| found("no running and no queued request", &serde_json::json!(gauges)));
        findings.extend(wrong);
    }
    if !server.is_paged() {
        return findings;
    }
    let pool = match Pool::parse(&rest.pool) {
        Ok(pool) => pool,
        Err(error) => return vec![found(&error.what, &rest.pool)],
    };
    let blocks = |slot: &Value| slot["kv_blocks"].as_u64().unwrap_or(0);
    let tokens = |slot: &Value| slot["n_prompt_tokens"].as_u64().unwrap_or(0);
    let held: u64 = slots.iter().map(|slot| blocks(slot)).sum();
    if !server.keeps && (held > 0 || !pool.is_at_rest()) {
        findings.push(found("no block in use", &rest.pool));
    }
    // Slots may share blocks.
    let used = pool.blocks_used;
    if server.keeps && !slots.is_empty() && (used > held || used == 0 && held > 0) {
        findings.push(found(&format!("at most the {held} blocks of slots in use"), &rest.pool));
    }
    for slot in slots {
        if server.keeps && (blocks(slot) == 0) != (tokens(slot) == 0) {
            findings.push(found("a slot with as many tokens as its blocks hold", slot));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fuzz::plan::Round;
    use crate::serving::kv_pool;

    fn without_metrics() -> ServerPlan {
        ServerPlan { metrics: false, sleeps: false, ..Round::draw(0).server }
    }

    fn pool(used: u64) -> Value {
        let mut pool = kv_pool::example();
        pool["blocks_used"] = used.into();
        pool
    }

    fn judged(keeps: bool, used: u64, blocks: u64, tokens: u64) -> usize {
        let server = ServerPlan { keeps, ..without_metrics() };
        let slot = json!({ "is_processing": false, "kv_blocks": blocks, "n_prompt_tokens": tokens });
        let rest = Rest { pool: pool(used), slots: json!([slot]), ..Rest::default() };
        judge(&server, 0, &rest).len()
    }

    #[test]
    fn nothing_is_held_without_a_reason() {
        assert_eq!((judged(false, 0, 0, 0), judged(false, 1, 0, 0)), (0, 1));
        assert_eq!((judged(true, 3, 3, 150), judged(true, 4, 3, 150)), (0, 1));
        assert_eq!(judged(true, 3, 3, 0), 1, "blocks without a text");
        assert_eq!(judged(true, 0, 0, 150), 1, "a text without blocks");
    }

    #[test]
    fn a_server_that_is_not_paged_has_no_pool_and_no_busy_slot() {
        let server = ServerPlan { is_split: true, ..without_metrics() };
        let judged = |is_busy: bool| {
            let slots = json!([{ "is_processing": is_busy }]);
            let rest = Rest { slots, ..Rest::default() };
            judge(&server, 0, &rest).len()
        };
        assert_eq!((judged(false), judged(true)), (0, 1));
    }

    #[test]
    fn a_slot_at_work_and_a_server_that_does_not_say_are_found() {
        let server = without_metrics();
        let slots = json!([{ "is_processing": true }]);
        let busy = Rest { pool: pool(0), slots, ..Rest::default() };
        assert_eq!(judge(&server, 0, &busy).len(), 1);
        assert_eq!(judge(&server, 0, &Rest::default()).len(), 1);
    }

    #[test]
    fn requests_that_are_still_counted_are_found() {
        let server = ServerPlan { metrics: true, ..without_metrics() };
        let judged = |scrape: Option<&str>| {
            let scrape = scrape.map(str::to_string);
            judge(&server, 0, &Rest { pool: pool(0), scrape, ..Rest::default() }).len()
        };
        let gauges = |running: u64, queued: u64| {
            format!("llamacpp:requests_processing {running}\nllamacpp:requests_deferred {queued}\n")
        };
        assert_eq!((judged(Some(&gauges(0, 0))), judged(None), judged(Some(""))), (0, 1, 1));
        assert_eq!((judged(Some(&gauges(1, 0))), judged(Some(&gauges(0, 1)))), (1, 1));
    }
}
