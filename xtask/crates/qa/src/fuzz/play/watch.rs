//! Observation of the idle server.

use std::time::Duration;

use espalier_core::sys::net::server::Server;
use serde_json::Value;

use super::{get, get_json, get_json_as};
use crate::fuzz::judge::{self, Rest};
use crate::fuzz::plan::server::{KEYS, ServerPlan};

/// Maximum number of polls, 50 ms apart: the server needs a moment to notice that a client disconnected.
const LOOKS: usize = 100;

/// Polls until the server is idle, or for at most five seconds, and returns its state.
pub fn at_rest(server: &Server, plan: &ServerPlan) -> Rest {
    let mut rest = Rest::default();
    for _ in 0..LOOKS {
        rest = look(server, plan);
        if judge::is_at_rest(plan, &rest) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    rest
}

fn look(server: &Server, plan: &ServerPlan) -> Rest {
    // Polling must not wake a sleeping server.
    let views = if plan.sleeps { Vec::new() } else { views_of_slots(server, plan) };
    let scrape = if plan.sleeps || !plan.metrics { None } else { get(server, plan, "/metrics") };
    Rest { pool: get_json(server, plan, "/props")["kv_pool"].take(), slots: merge(&views), views, scrape }
}

/// Returns `/slots` as each key sees it; only the first key's view if a slot changed between the requests.
fn views_of_slots(server: &Server, plan: &ServerPlan) -> Vec<Value> {
    let view = |key: Option<&str>| get_json_as(server, key, "/slots");
    if !plan.keys {
        return vec![view(None)];
    }
    let mut views: Vec<Value> = KEYS.iter().map(|key| view(Some(key))).collect();
    if view(Some(KEYS[0])) != views[0] {
        views.truncate(1);
    }
    views
}

/// Merges the views into one list: no key sees what slots of other keys hold.
fn merge(views: &[Value]) -> Value {
    let mut views = views.iter();
    let mut all = views.next().cloned().unwrap_or_default();
    for other in views {
        let slots = all.as_array_mut().into_iter().flatten();
        for (slot, seen) in slots.zip(other.as_array().into_iter().flatten()) {
            if slot["kv_blocks"].is_null() {
                *slot = seen.clone();
            }
        }
    }
    all
}

/// Returns the state of the sleeping server.
pub fn asleep(server: &Server, plan: &ServerPlan) -> Rest {
    look(server, plan)
}
