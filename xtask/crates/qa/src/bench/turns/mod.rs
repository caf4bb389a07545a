//! The turns bench: conversations of several users at once. A prompt has all earlier turns, and one new message. It
//! counts the prompt tokens that a server computes in each turn, and takes the time to the first token of each answer.

mod record;

use std::time::Instant;

use clap::Args;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::threads::at_once;
use espalier_core::sys::net::server::Server;
#[cfg(test)]
pub(super) use record::tests::example;
pub(super) use record::{ServerTurns, Turns};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::record::{Head, Keep, Record};
use crate::serving::TimedServing;
use crate::serving::bench_fixture::BenchFixture;
use crate::serving::bench_model::BenchModel;
use crate::serving::load;
use crate::serving::prompts::{CELLS_STEP, as_stream, body_of, tokens};
use crate::serving::request_record::RequestRecord;
use crate::serving::test_server::{TestServer, chosen_or};

/// The conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args, Serialize, Deserialize)]
pub struct Workload {
    /// Model: its kind of memory decides how a prefix can be shared.
    #[arg(long, value_enum, value_name = "NAME", default_value = "plain")]
    pub model: BenchModel,
    /// Number of users, and of slots of a server with a slot for each.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub users: usize,
    /// Turns of each user.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub turns: usize,
    /// Tokens of the system prompt, which is the same for all users.
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub system: usize,
    /// Tokens of each message of a user.
    #[arg(long, value_name = "N", default_value_t = 250)]
    pub message: usize,
    /// Tokens of each answer.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub answer: usize,
}

/// Options of `bench turns`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// The conversations.
    #[command(flatten)]
    pub workload: Workload,
    /// Measure only this server; repeatable; default: `stock`, `stock-unified` and `paged`.
    #[arg(long, value_enum, value_name = "NAME")]
    pub only: Vec<TestServer>,
    /// Number of threads, and whether to measure on a busy machine.
    #[command(flatten)]
    pub serving: TimedServing,
    /// Files to write.
    #[command(flatten)]
    pub keep: Keep,
}

impl Workload {
    /// Returns an error for values that no server supports.
    fn check(&self) -> Result<()> {
        let Workload { users, turns, message, answer, .. } = *self;
        if [users, message, answer].contains(&0) || turns < 2 {
            let what = "`--users`, `--message` and `--answer` must be at least 1, `--turns` at least 2";
            return Err(Error::usage(what).hint("cargo xtask bench --help"));
        }
        Ok(())
    }

    /// Returns the number of prompt tokens of a turn that no earlier request has computed. In the first turn it is the
    /// system prompt once, and all messages. Later it is the messages, and the last token of each answer: a token is
    /// computed when the next one is predicted.
    fn new_tokens(&self, turn: usize) -> u64 {
        let Workload { users, system, message, .. } = *self;
        let new = if turn == 0 { system + users * message } else { users * (message + 1) };
        new as u64
    }

    /// Returns a context size that fits all conversations, even when it is divided among the users.
    fn cells(&self) -> usize {
        let Workload { users, turns, system, message, answer, .. } = *self;
        users * (system + turns * (message + answer)).next_multiple_of(CELLS_STEP)
    }

    fn system_prompt(&self) -> Vec<u64> {
        tokens(0, 0, self.system).collect()
    }

    fn message_of(&self, user: usize, turn: usize) -> impl Iterator<Item = u64> {
        tokens(1 + user as u64, turn as u64, self.message)
    }

    fn request(&self, prompt: &[u64]) -> Value {
        as_stream(body_of(prompt, self.answer))
    }
}

/// Measures and prints a table; the exit code is 1 if our server computes more than the goal allows.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let workload = options.workload;
    workload.check()?;
    let default = [TestServer::Stock, TestServer::StockUnified, TestServer::Paged];
    let test_servers = chosen_or(&options.only, &default);
    let spec = workload.model.of_70_million();
    let mut fixture = BenchFixture::prepare(context, options.serving.into(), &test_servers, &spec)?;
    let mut servers = Vec::new();
    for name in test_servers {
        fixture.before_round()?;
        context.ui.status("Measuring", format!("server under test `{}`", name.name()));
        servers.push(ServerTurns::of(name, &ask(&fixture, workload, name)?));
    }
    let head = Head::of_servers(context, &fixture)?;
    Record { head, result: Turns::judged(workload, servers) }.finish(context, &options.keep)
}

/// Returns the requests of each user.
fn ask(
    fixture: &BenchFixture<'_>,
    workload: Workload,
    test_server: TestServer,
) -> Result<Vec<Vec<RequestRecord>>> {
    let mut server = fixture.server(test_server, workload.users, workload.cells())?;
    let begin = Instant::now();
    let users: Vec<usize> = (0..workload.users).collect();
    let records = at_once(users, |user| converse(&server, begin, workload, user))
        .map_err(|error| error.detail(format!("server under test `{}`", test_server.name())))?;
    server.still_runs()?;
    Ok(records)
}

/// Sends the messages of a user, each after the answer to the one before.
fn converse(server: &Server, begin: Instant, workload: Workload, user: usize) -> Result<Vec<RequestRecord>> {
    let mut prompt = workload.system_prompt();
    let mut records = Vec::new();
    for turn in 0..workload.turns {
        prompt.extend(workload.message_of(user, turn));
        let record = load::stream(server, begin, &workload.request(&prompt))?;
        prompt.extend(record.tokens.iter().map(|token| token.unsigned_abs()));
        records.push(record);
    }
    Ok(records)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two users with three turns each.
    pub(super) fn workload() -> Workload {
        Workload { model: BenchModel::Hybrid, users: 2, turns: 3, system: 100, message: 49, answer: 20 }
    }

    #[test]
    fn new_tokens_are_those_that_no_request_has_computed() {
        let new: Vec<u64> = (0..3).map(|turn| workload().new_tokens(turn)).collect();
        assert_eq!(new, [198, 100, 100]);
    }

    #[test]
    fn users_share_the_system_prompt_only() {
        let message = |user, turn| workload().message_of(user, turn).collect::<Vec<_>>();
        assert_eq!((message(0, 0).len(), workload().system_prompt().len()), (49, 100));
        assert_ne!(message(0, 0), message(1, 0));
        assert_ne!(message(0, 0), message(0, 1));
        assert_ne!(message(0, 0)[..], workload().system_prompt()[..49]);
    }

    #[test]
    fn a_divided_context_fits_each_conversation() {
        assert_eq!(workload().cells(), 2 * 512);
    }

    #[test]
    fn impossible_conversations_are_refused() {
        assert!(workload().check().is_ok());
        for wrong in [Workload { users: 0, ..workload() }, Workload { turns: 1, ..workload() }] {
            assert!(wrong.check().unwrap_err().what.contains("`--users`"), "{wrong:?}");
        }
    }
}
