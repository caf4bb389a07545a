//! Looks at a server that nobody asks anything.

use std::time::Duration;

use serde_json::Value;

use super::get_json;
use crate::fuzz::judge::{self, Rest};
use crate::fuzz::plan::server::ServerPlan;
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
    let slots = if plan.sleeps { Value::Null } else { get_json(server, plan, "/slots") };
    Rest { pool: get_json(server, plan, "/props")["kv_pool"].take(), slots }
}

/// The server while it sleeps.
pub fn asleep(server: &Server, plan: &ServerPlan) -> Rest {
    look(server, plan)
}
