//! Looks at a server that nobody asks anything.

use std::time::Duration;

use serde_json::Value;

use super::{get_json, get_json_as};
use crate::fuzz::judge::{self, Rest};
use crate::fuzz::plan::server::{KEYS, ServerPlan};
use crate::sys::net::server::Server;

/// How often, 50 ms apart: it takes a moment until a client that went away is noticed.
const LOOKS: usize = 100;

/// The server when it has come to rest, or after five seconds.
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
    // A server that sleeps must not be woken by who only looks.
    let slots = if plan.sleeps { Value::Null } else { slots_of_all(server, plan) };
    Rest { pool: get_json(server, plan, "/props")["kv_pool"].take(), slots }
}

/// What each key's holder is shown of the slots, as one list: nobody is shown what others' slots hold.
fn slots_of_all(server: &Server, plan: &ServerPlan) -> Value {
    let mut views = KEYS.iter().take(if plan.keys { KEYS.len() } else { 1 });
    let view = |key: &&str| get_json_as(server, plan.keys.then_some(*key), "/slots");
    let mut all = views.next().map(view).unwrap_or_default();
    for other in views.map(view) {
        let slots = all.as_array_mut().into_iter().flatten();
        for (slot, seen) in slots.zip(other.as_array().into_iter().flatten()) {
            if slot["kv_blocks"].is_null() {
                *slot = seen.clone();
            }
        }
    }
    all
}

/// The server while it sleeps.
pub fn asleep(server: &Server, plan: &ServerPlan) -> Rest {
    look(server, plan)
}
