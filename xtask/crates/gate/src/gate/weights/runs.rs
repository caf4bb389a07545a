//! Servers compared on real weights: stock in three configurations, which gives its own spread, and ours in four.

use serde_json::Value;

/// A server and how requests are sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerRun {
    /// Name for reports.
    pub(super) name: &'static str,
    /// Arguments, besides model and threads.
    pub(super) arguments: &'static [&'static str],
    /// Number of concurrent requests.
    pub(super) clients: usize,
    /// `cache_prompt`: whether prompts are looked up in the cache.
    pub(super) uses_cache: bool,
    /// Number of tenants that requests are distributed over in turn; they share no blocks with each other. With one
    /// tenant there is no salt.
    pub(super) tenants: usize,
    /// Whether blocks must be evicted and requests preempted for the run to count.
    pub(super) is_crowded: bool,
}

/// In a crowded pool, twice as many requests as there are slots generate this many more tokens, a whole block: they fit
/// when they start and not when they grow. A greedy answer has the shorter one as its prefix, so only that prefix is
/// compared.
const GROWTH: u64 = 64;
const GROWING: usize = 16;

/// One request at a time, with the prompt cache: the reference of all comparisons.
const ALONE: ServerRun = ServerRun {
    name: "stock, 1 slot",
    arguments: &["-np", "1", "-c", "2048"],
    clients: 1,
    uses_cache: true,
    tenants: 1,
    is_crowded: false,
};

/// Stock's configurations; the first is the reference.
pub(super) const STOCK: [ServerRun; 3] = [
    ALONE,
    ServerRun { name: "stock, 1 slot, no prompt cache", uses_cache: false, ..ALONE },
    ServerRun {
        name: "stock, 4 slots, 8 clients",
        arguments: &["-np", "4", "-c", "8192", "--kv-unified"],
        clients: 8,
        ..ALONE
    },
];

/// Our configurations. The small pool has 20 blocks: a long prompt takes most of them.
pub(super) const PAGED: [ServerRun; 4] = [
    ServerRun { name: "paged, 1 slot", arguments: &["-np", "1", "-c", "2048", "--kv-paged"], ..ALONE },
    ServerRun {
        name: "paged, 4 slots, 8 clients",
        arguments: &["-np", "4", "-c", "8192", "--kv-paged"],
        clients: 8,
        ..ALONE
    },
    ServerRun {
        name: "paged, small pool, 8 clients",
        arguments: &["-np", "8", "-c", "1280", "--kv-paged"],
        clients: 8,
        // With more tenants fewer requests share a prefix, so each holds more of the pool.
        tenants: 4,
        is_crowded: true,
        ..ALONE
    },
    ServerRun {
        name: "paged, 2 tenants, 8 clients",
        arguments: &["-np", "4", "-c", "4096", "--kv-paged"],
        clients: 8,
        tenants: 2,
        ..ALONE
    },
];

impl ServerRun {
    /// Returns the requests as sent to this server.
    pub(super) fn requests(&self, requests: &[Value]) -> Vec<Value> {
        let request = |(at, request): (usize, &Value)| {
            let mut request = request.clone();
            request["cache_prompt"] = self.uses_cache.into();
            if self.is_crowded && at < GROWING {
                request["n_predict"] = (request["n_predict"].as_u64().unwrap_or_default() + GROWTH).into();
            }
            if self.tenants > 1 {
                request["cache_salt"] = format!("tenant {}", at % self.tenants).into();
            }
            request
        };
        requests.iter().enumerate().map(request).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tenants_take_turns_and_one_alone_has_no_salt() {
        let asked = [json!({ "prompt": "a" }), json!({ "prompt": "b" })];
        let salts = |run: ServerRun| {
            run.requests(&asked).iter().map(|one| one["cache_salt"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(salts(PAGED[0]), [Value::Null, Value::Null]);
        assert_eq!(salts(PAGED[3]), [json!("tenant 0"), json!("tenant 1")]);
        assert_eq!(STOCK[1].requests(&asked)[0]["cache_prompt"], false);
    }

    #[test]
    fn the_first_requests_outgrow_a_crowded_pool() {
        let asked = vec![json!({ "prompt": "a", "n_predict": 6 }); GROWING + 1];
        let wanted = |run: &ServerRun| {
            run.requests(&asked).iter().map(|one| one["n_predict"].clone()).collect::<Vec<_>>()
        };
        let grown = wanted(&PAGED[2]);
        assert_eq!((&grown[0], &grown[GROWING - 1], &grown[GROWING]), (&json!(70), &json!(70), &json!(6)));
        assert!(wanted(&PAGED[1]).iter().all(|one| *one == 6));
    }

    #[test]
    fn all_our_servers_are_paged_and_no_stock_server_is() {
        let is_paged = |run: &ServerRun| run.arguments.contains(&"--kv-paged");
        assert!(PAGED.iter().all(is_paged) && !STOCK.iter().any(is_paged));
        assert_eq!(PAGED.iter().filter(|run| run.is_crowded).count(), 1);
    }
}
