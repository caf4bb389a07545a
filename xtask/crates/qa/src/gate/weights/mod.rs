//! Gate part: real weights, with chats and long prompts, answered by stock and by the paged server.
//!
//! Random and home-trained models are compared token by token (`servers`). Real, quantized weights cannot be: every
//! activation row is rounded to 8 bits, so another batch shape moves all logits, and stock differs from itself. Here
//! stock answers in three configurations, which gives its own spread in this very run, and the paged server has to lie
//! within it (`serving/spread.rs`).

mod report;
mod runs;

use std::path::PathBuf;

use espalier_core::config::flavors::DEFAULT_FLAVOR;
use espalier_core::config::models::MODEL_OF_CHECKS;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::process::Run;
use espalier_core::sys::machine::threads::few_at_once;
use espalier_core::sys::machine::{disk, load};
use espalier_core::sys::net::server::Server;
use espalier_core::sys::project::pinned_models::{self, Provided};
use serde_json::{Value, json};

use self::report::{Compared, Paged};
use self::runs::{PAGED, STOCK, ServerRun};
use super::Sides;
use crate::serving::asking::{ask_in_turn, pool_at_rest};
use crate::serving::kv_pool::Pool;
use crate::serving::spread::{Limits, Spread};
use crate::serving::verdict::Answer;
use crate::serving::{chats, switches};

/// Size of the workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Size {
    /// A subset of the chats with short answers, for CI.
    #[default]
    Short,
    /// Every chat and long prompt.
    Full,
}

impl Size {
    /// Number of chats, of long prompts, and of tokens per answer.
    fn counts(self) -> (usize, usize, usize) {
        match self {
            // As many chats as the crowded pool has growing requests.
            Size::Short => (runs::GROWING, 1, 6),
            Size::Full => (chats::CHATS, chats::LONG_PROMPTS, 48),
        }
    }
}

/// Compares the paged server's answers with stock's; if pip cannot get the model, reports that and compares nothing.
pub fn compare(context: &Context, sides: &Sides<'_>, size: Size) -> Result<Outcome> {
    let models = context.models()?;
    let Some((name, model)) = models.models.get_key_value(MODEL_OF_CHECKS) else {
        let what = format!("`ci/models.toml` pins no `{MODEL_OF_CHECKS}`");
        return Ok(not_compared(context, &Error::usage(what)));
    };
    let provided = pinned_models::provide(name, model, &context.layout, context.offline, &context.ui)?;
    let model = match provided {
        Provided::File(file) => file,
        Provided::Unreachable(error) => return Ok(not_compared(context, &error)),
    };
    let weights = Weights::new(context, sides, model, size)?;
    let compared = weights.compare()?;
    let failures = compared.failures();
    if failures.is_empty() {
        return Ok(Outcome::ok(compared.text(), json!({ "weights": compared.to_json() })));
    }
    let what = format!(
        "on real weights, {} is further from {} than that from itself",
        sides.variant, sides.reference
    );
    Err(Error::no(what).detail(failures.join("\n")).detail(compared.text()))
}

fn not_compared(context: &Context, why: &Error) -> Outcome {
    context.ui.warn(format!("answers on real weights were not compared\n{why}"));
    let text = format!("weights: not compared: {}", why.what);
    Outcome::ok(text, json!({ "weights": { "not_compared": why.what } }))
}

/// The servers, the model, and the requests.
struct Weights<'a> {
    context: &'a Context,
    stock: PathBuf,
    ours: PathBuf,
    model: PathBuf,
    requests: Vec<Value>,
    /// Number of tokens of an answer that are compared.
    predict: usize,
}

impl<'a> Weights<'a> {
    fn new(context: &'a Context, sides: &Sides<'_>, model: PathBuf, size: Size) -> Result<Weights<'a>> {
        let server = |variant: &str| context.layout.server(variant, DEFAULT_FLAVOR);
        let (chats, long, predict) = size.counts();
        let text = disk::read_text(&context.file_of_espalier(TEXT)?)?;
        let prompts = chats::chats(chats).into_iter().chain(chats::long_prompts(&text, long));
        let requests = prompts.map(|prompt| chats::request(&prompt, predict)).collect();
        Ok(Weights {
            context,
            stock: server(sides.reference),
            ours: server(sides.variant),
            model,
            requests,
            predict,
        })
    }

    fn compare(&self) -> Result<Compared> {
        let shared = Shared::of(load::cores());
        let runs: Vec<&ServerRun> = STOCK.iter().chain(&PAGED).collect();
        let mut answered = few_at_once(shared.servers, runs, |run| self.answered(run, shared.threads))?;
        let paged = answered.split_off(STOCK.len());
        let stock = answered;
        let own: Vec<(String, Spread)> = pairs()
            .map(|(one, other)| {
                let name = format!("{} / {}", STOCK[one].name, STOCK[other].name);
                (name, Spread::between(&stock[one].answers, &stock[other].answers))
            })
            .collect();
        let spreads: Vec<Spread> = own.iter().map(|(_, spread)| spread.clone()).collect();
        let paged = PAGED.iter().zip(paged).map(|(run, Answered { answers, missing })| Paged {
            name: run.name,
            spread: Spread::between(&stock[0].answers, &answers),
            missing,
        });
        let (requests, limits) = (self.requests.len(), Limits::of(&spreads));
        Ok(Compared { requests, own, limits, paged: paged.collect() })
    }

    /// Starts a server, sends it all requests, and reads its pool before it ends.
    fn answered(&self, run: &ServerRun, threads: usize) -> Result<Answered> {
        self.context.ui.status("Answering", format!("{} requests: {}", self.requests.len(), run.name));
        let program = if run.is_paged() { &self.ours } else { &self.stock };
        let command = switches::without_features(Run::new(program))
            .args(["-t", &threads.to_string()])
            .args(run.arguments)
            .arg("--model")
            .arg(&self.model);
        let server = Server::start(command, &self.context.layout.log(&run.log()))?;
        let answers = ask_in_turn(&server, &run.requests(&self.requests), run.clients)?;
        let answers = answers.iter().map(|answer| answer.first(self.predict)).collect();
        let missing = if run.is_paged() { missing(run, &server)? } else { Vec::new() };
        Ok(Answered { answers, missing })
    }
}

/// Result of one server.
struct Answered {
    answers: Vec<Answer>,
    /// Required events that did not occur.
    missing: Vec<String>,
}

/// Distribution of the cores over servers that run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shared {
    servers: usize,
    /// Threads of each server: the same for all, because they may decide how sums are rounded.
    threads: usize,
}

impl Shared {
    /// Two servers, each with half of the cores: one alone leaves a core idle while it loads the model, between two
    /// requests and wherever its threads wait for each other.
    fn of(cores: usize) -> Shared {
        const SERVERS: usize = 2;
        Shared { servers: cores.clamp(1, SERVERS), threads: (cores / SERVERS).max(1) }
    }
}

/// Source text of the long prompts, relative to the root.
const TEXT: &str = "ci/models/text.txt";

/// Iterates over all pairs of stock's runs.
fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..STOCK.len()).flat_map(|one| (one + 1..STOCK.len()).map(move |other| (one, other)))
}

/// Returns the required events that did not occur on a paged server; without them its answers do not count.
fn missing(run: &ServerRun, server: &Server) -> Result<Vec<String>> {
    let pool: Pool = pool_at_rest(server)?;
    let preempted = server.log_text()?.contains("preempted with");
    let needs = [
        (pool.hits()?.hit_tokens > 0, "no prompt token was found in the cache"),
        (pool.blocks_used == 0, "blocks are in use after all requests ended"),
        (!run.is_crowded || pool.evicted_blocks > 0, "nothing was evicted"),
        (!run.is_crowded || preempted, "no request was preempted"),
    ];
    Ok(needs.iter().filter(|(holds, _)| !holds).map(|(_, what)| format!("{what}: {pool}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stock_is_compared_with_itself_in_every_pair() {
        assert_eq!(pairs().collect::<Vec<_>>(), [(0, 1), (0, 2), (1, 2)]);
    }

    #[test]
    fn no_core_has_two_threads() {
        assert_eq!(Shared::of(1), Shared { servers: 1, threads: 1 });
        assert_eq!([2, 3].map(Shared::of), [Shared { servers: 2, threads: 1 }; 2]);
        assert_eq!(Shared::of(16), Shared { servers: 2, threads: 8 });
    }

    /// Characters at the beginning of a chat that cover its first block.
    const LETTERS_OF_A_BLOCK: usize = 64 * 6;

    /// Returns the beginning and the tenant of each chat of a short run.
    fn chats_of(run: &ServerRun) -> Vec<(String, String)> {
        let (count, _, predict) = Size::Short.counts();
        let requests: Vec<Value> =
            chats::chats(count).iter().map(|prompt| chats::request(prompt, predict)).collect();
        let chat = |request: &Value| {
            let prompt = request["prompt"].as_str().unwrap();
            let beginning: String = prompt.chars().take(LETTERS_OF_A_BLOCK).collect();
            (beginning, request["cache_salt"].to_string())
        };
        run.requests(&requests).iter().map(chat).collect()
    }

    /// Returns the number of chats whose first block an earlier one of the same tenant has.
    fn shared_blocks(chats: &[(String, String)]) -> usize {
        (0..chats.len()).filter(|at| chats[..*at].contains(&chats[*at])).count()
    }

    /// A chat has two blocks when it starts and three before it ends.
    #[test]
    fn a_crowded_pool_holds_the_requests_that_start_and_not_what_they_grow_to() {
        let crowded = PAGED.iter().find(|run| run.is_crowded).unwrap();
        let cells = crowded.arguments.iter().skip_while(|argument| **argument != "-c").nth(1).unwrap();
        let blocks = cells.parse::<usize>().unwrap() / 64;
        let chats = chats_of(crowded);
        assert_eq!(chats.len(), runs::GROWING);
        for volley in chats.chunks(crowded.clients) {
            assert!(2 * volley.len() <= blocks && 3 * volley.len() - shared_blocks(volley) > blocks);
        }
    }

    #[test]
    fn some_chats_of_one_tenant_share_a_block_on_every_server() {
        for run in &PAGED {
            assert!(shared_blocks(&chats_of(run)) >= 5, "{}", run.name);
        }
    }
}
