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
    /// Number of tenants that requests are distributed over in turn, two in a row for each; they share no blocks with
    /// each other. With one tenant there is no salt.
    pub(super) tenants: usize,
    /// Whether blocks must be evicted and requests preempted for the run to count.
    pub(super) is_crowded: bool,
}

/// In a crowded pool, twice as many requests as there are slots generate this many more tokens, a whole block: they fit
/// when they start and not when they grow. A greedy answer has the shorter one as its prefix, so only that prefix is
/// compared.
const GROWTH: u64 = 64;
pub(super) const GROWING: usize = 16;

/// Number of consecutive requests of a tenant: most of these chats have the same system prompt, whose blocks they
/// share.
const IN_A_ROW: usize = 2;

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

/// Our configurations. The small pool has 20 blocks, as many as the longest prompt and its answer take.
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
    /// Whether it is our server, with the paged cache.
    pub(super) fn is_paged(&self) -> bool {
        self.arguments.contains(&"--kv-paged")
    }

    /// Returns the name of its log: servers that run at the same time have different ones.
    pub(super) fn log(&self) -> String {
        let words = self.name.split(|one: char| !one.is_ascii_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        format!("gate-weights-{}", words.join("-"))
    }

    /// Returns the requests as sent to this server.
    pub(super) fn requests(&self, requests: &[Value]) -> Vec<Value> {
        let request = |(at, request): (usize, &Value)| {
            let mut request = request.clone();
            request["cache_prompt"] = self.uses_cache.into();
            if self.is_crowded && at < GROWING {
                request["n_predict"] = (request["n_predict"].as_u64().unwrap_or_default() + GROWTH).into();
            }
            if self.tenants > 1 {
                request["cache_salt"] = format!("tenant {}", at / IN_A_ROW % self.tenants).into();
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
        let asked = ["a", "b", "c", "d", "e"].map(|prompt| json!({ "prompt": prompt }));
        let salts = |run: ServerRun| {
            run.requests(&asked).iter().map(|one| one["cache_salt"].clone()).collect::<Vec<_>>()
        };
        assert!(salts(PAGED[0]).iter().all(Value::is_null));
        assert_eq!(salts(PAGED[3]), [0, 0, 1, 1, 0].map(|tenant| json!(format!("tenant {tenant}"))));
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
        assert!(PAGED.iter().all(ServerRun::is_paged) && !STOCK.iter().any(ServerRun::is_paged));
        assert_eq!(PAGED.iter().filter(|run| run.is_crowded).count(), 1);
    }

    #[test]
    fn each_server_has_its_own_log() {
        let logs: std::collections::BTreeSet<String> =
            STOCK.iter().chain(&PAGED).map(ServerRun::log).collect();
        assert_eq!(logs.len(), STOCK.len() + PAGED.len());
        assert!(logs.contains("gate-weights-paged-small-pool-8-clients"), "{logs:?}");
    }
}
