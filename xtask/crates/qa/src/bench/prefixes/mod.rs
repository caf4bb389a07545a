//! The prefixes bench: prompts of one length that share their first tokens. It counts the tokens that a server computes
//! for them and takes the time to the first token of each answer, for several lengths of the shared part.
//!
//! Each workload gets a fresh server twice: its prompts are sent one after the other, and by several clients at once.
//! The ideal computes every shared token once; its time is that of prompts which have the unshared tokens only.
//!
//! With sizes for snapshots of recurrent states our server does this once with each of them, and reports its hits.

mod record;

use clap::Args;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::net::server::Server;
use record::Snapshots;
#[cfg(test)]
pub(super) use record::tests::example;
pub(super) use record::{Case, CaseServer, Prefixes, RequestGroup, Requests, percent};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::record::{Head, Keep, Record};
use crate::serving::TimedServing;
use crate::serving::bench_fixture::BenchFixture;
use crate::serving::bench_model::BenchModel;
use crate::serving::load;
use crate::serving::metrics::metric;
use crate::serving::prompts::{Prompts, as_stream};
use crate::serving::test_server::{TestServer, chosen_or};

/// The requests.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
pub struct Workload {
    /// Model: its kind of memory decides how a prefix can be shared.
    #[arg(long, value_enum, value_name = "NAME", default_value = "plain")]
    pub model: BenchModel,
    /// Tokens that the prompts share; several lengths are separated by commas.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = SHARED)]
    pub shared: Vec<usize>,
    /// Tokens of each prompt, the shared ones included.
    #[arg(long, value_name = "N", default_value_t = 2200)]
    pub length: usize,
    /// Number of prompts.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub prompts: usize,
    /// Number of families: prompts of different families share nothing, and the families take turns.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub families: usize,
    /// Number of clients that send at once, and of slots of a server with a slot for each.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub clients: usize,
    /// Tokens to predict for each prompt.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub predict: usize,
    /// `--kv-snapshots` of our server, which runs once with each of several sizes, separated by commas; its default if
    /// not given.
    #[arg(long, value_name = "SIZE", value_delimiter = ',')]
    pub kv_snapshots: Option<Vec<String>>,
}

/// Options of `bench prefixes`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// The requests.
    #[command(flatten)]
    pub workload: Workload,
    /// Measure only this server; repeatable; default: `stock` and `paged`.
    #[arg(long, value_enum, value_name = "NAME")]
    pub only: Vec<TestServer>,
    /// Number of threads, and whether to measure on a busy machine.
    #[command(flatten)]
    pub serving: TimedServing,
    /// Files to write.
    #[command(flatten)]
    pub keep: Keep,
}

/// Lengths of the shared part: those of vLLM's issue 45238, and one of little more than a block.
const SHARED: [usize; 6] = [1600, 1500, 1000, 500, 200, 100];

/// Number of prompts without shared tokens whose median time is the ideal.
const UNSHARED: usize = 5;

impl Workload {
    /// Returns an error for values that no server supports.
    fn check(&self) -> Result<()> {
        let Workload { model, shared, length, prompts, families, clients, predict, kv_snapshots } = self;
        if kv_snapshots.is_some() && *model != BenchModel::Hybrid {
            let what = "`--kv-snapshots` has an effect only on a model with recurrent states";
            return Err(Error::usage(what).hint("add `--model hybrid`"));
        }
        if [prompts, families, clients, predict].contains(&&0) {
            let what = "`--prompts`, `--families`, `--clients` and `--predict` must be at least 1";
            return Err(Error::usage(what).hint("cargo xtask bench --help"));
        }
        if *prompts <= 2 * families {
            let what =
                format!("`--prompts {prompts}` leaves no third prompt of {families} families to judge");
            return Err(Error::usage(what).hint("raise `--prompts`"));
        }
        match shared.iter().find(|shared| *shared >= length) {
            None => Ok(()),
            Some(shared) => {
                let what = format!("`--shared {shared}` leaves no other token of a prompt of {length}");
                Err(Error::usage(what).hint("raise `--length`"))
            }
        }
    }

    fn family(&self, shared: usize, number: usize) -> Prompts {
        Prompts {
            requests: self.prompts.div_ceil(self.families),
            prefix: shared,
            suffix: self.length - shared,
            predict: self.predict,
            family: number as u64,
        }
    }

    /// Returns the requests in the order in which they are sent.
    fn bodies(&self, shared: usize) -> Vec<Value> {
        let body = |number: usize| {
            let family = self.family(shared, number % self.families);
            as_stream(family.body(number / self.families))
        };
        (0..self.prompts).map(body).collect()
    }

    /// Returns requests with the unshared tokens only, of a family of their own.
    fn unshared_bodies(&self, shared: usize) -> Vec<Value> {
        let family = self.family(shared, self.families);
        let alone = Prompts { requests: UNSHARED, prefix: 0, ..family };
        alone.bodies().into_iter().map(as_stream).collect()
    }

    /// Returns a context size that fits a prompt of each client, and the shared part of each family.
    fn cells(&self) -> usize {
        Prompts { requests: self.clients + self.families, ..self.family(0, 0) }.cells()
    }

    /// Returns the sizes for snapshots that a server runs with, one after the other; `None` is its default.
    fn sizes(&self, test_server: TestServer) -> Vec<Option<&str>> {
        match &self.kv_snapshots {
            Some(sizes) if test_server.is_ours() => sizes.iter().map(|size| Some(size.as_str())).collect(),
            _ => vec![None],
        }
    }
}

/// Measures and prints two tables; the exit code is 1 if our server computes more than the goal allows.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let workload = &options.workload;
    workload.check()?;
    let test_servers = chosen_or(&options.only, &[TestServer::Stock, TestServer::Paged]);
    let spec = workload.model.of_70_million();
    let mut fixture = BenchFixture::prepare(context, options.serving.into(), &test_servers, &spec)?;
    let mut cases = Vec::new();
    for shared in &workload.shared {
        fixture.before_round()?;
        context.ui.status("Measuring", format!("{shared} of {} tokens shared", workload.length));
        cases.push(measure(&fixture, workload, &test_servers, *shared)?);
    }
    let head = Head::of_servers(context, &fixture)?;
    let result = Prefixes::judged(workload.clone(), test_servers, cases);
    Record { head, result }.finish(context, &options.keep)
}

fn measure(
    fixture: &BenchFixture<'_>,
    workload: &Workload,
    test_servers: &[TestServer],
    shared: usize,
) -> Result<Case> {
    let bodies = workload.bodies(shared);
    let ask_one = |(name, size): (TestServer, Option<&str>)| -> Result<CaseServer> {
        let ask = |clients| ask(fixture, workload, (name, size), clients, &bodies);
        let (in_turn, at_once) = (ask(1)?, ask(workload.clients)?);
        Ok(CaseServer { name, kv_snapshots: size.map(str::to_string), in_turn, at_once })
    };
    let mut servers = Vec::new();
    for name in test_servers {
        for size in workload.sizes(*name) {
            servers.push(ask_one((*name, size))?);
        }
    }
    let unshared = ask(fixture, workload, (test_servers[0], None), 1, &workload.unshared_bodies(shared))?;
    Ok(Case { shared, unshared_first_token_seconds: unshared.first_token_seconds, servers })
}

fn ask(
    fixture: &BenchFixture<'_>,
    workload: &Workload,
    (test_server, size): (TestServer, Option<&str>),
    clients: usize,
    bodies: &[Value],
) -> Result<Requests> {
    let arguments = arguments(size);
    let mut server = fixture.server_with(test_server, workload.clients, workload.cells(), &arguments)?;
    let records = load::streams(&server, clients, bodies)
        .map_err(|error| error.detail(format!("server under test `{}`", test_server.name())))?;
    let snapshots = size.map(|_| snapshots_of(&server)).transpose()?;
    server.still_runs()?;
    Ok(Requests { snapshots, ..Requests::of(&records) })
}

/// Returns the arguments of a server with this size for snapshots. A server without one gets none of our options.
fn arguments(size: Option<&str>) -> Vec<&str> {
    size.into_iter().flat_map(|size| ["--metrics", "--kv-snapshots", size]).collect()
}

fn snapshots_of(server: &Server) -> Result<Snapshots> {
    let count = |name| metric(server, name).map(|count| count as u64);
    Ok(Snapshots { hits: count("kv_snapshot_hits_total")?, bytes: count("kv_snapshot_bytes")? })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Four prompts of 300 tokens.
    pub(super) fn workload() -> Workload {
        Workload {
            model: BenchModel::Hybrid,
            shared: vec![200],
            length: 300,
            prompts: 4,
            families: 1,
            clients: 2,
            predict: 8,
            kv_snapshots: None,
        }
    }

    fn prompts(workload: &Workload) -> Vec<Vec<u64>> {
        let tokens = |body: &Value| serde_json::from_value(body["prompt"].clone()).unwrap();
        workload.bodies(200).iter().map(tokens).collect()
    }

    #[test]
    fn prompts_share_what_they_should_and_have_one_length() {
        let prompts = prompts(&workload());
        assert!(prompts.iter().all(|prompt| prompt.len() == 300 && prompt[..200] == prompts[0][..200]));
        assert_ne!(prompts[0][200], prompts[1][200]);
        assert!(workload().bodies(200).iter().all(|body| body["stream"] == true));
    }

    #[test]
    fn families_take_turns_and_share_nothing() {
        let prompts = prompts(&Workload { families: 2, ..workload() });
        assert_eq!(prompts[0][..200], prompts[2][..200]);
        assert_eq!(prompts[1][..200], prompts[3][..200]);
        assert_ne!(prompts[0][0], prompts[1][0]);
        assert_ne!(prompts[0][200], prompts[2][200]);
    }

    #[test]
    fn the_ideal_has_the_unshared_tokens_only() {
        let bodies = workload().unshared_bodies(200);
        assert_eq!(bodies.len(), UNSHARED);
        assert!(bodies.iter().all(|body| body["prompt"].as_array().unwrap().len() == 100));
    }

    #[test]
    fn a_prompt_of_each_client_fits_beside_the_shared_part() {
        assert_eq!(workload().cells(), 3 * 512);
    }

    #[test]
    fn only_our_server_runs_with_each_size() {
        let kv_snapshots = Some(["16M", "64M"].map(String::from).to_vec());
        let workload = Workload { kv_snapshots, ..workload() };
        assert_eq!(workload.sizes(TestServer::Paged), [Some("16M"), Some("64M")]);
        assert_eq!(workload.sizes(TestServer::Stock), [None]);
        assert_eq!(arguments(Some("64M")), ["--metrics", "--kv-snapshots", "64M"]);
        assert!(arguments(None).is_empty());
    }

    #[test]
    fn impossible_workloads_are_refused() {
        assert!(workload().check().is_ok());
        let wrong = |workload: Workload| workload.check().unwrap_err().what;
        assert!(wrong(Workload { shared: vec![100, 300], ..workload() }).contains("`--shared 300`"));
        assert!(wrong(Workload { families: 0, ..workload() }).contains("`--families`"));
        let sizes = Some(vec!["16M".to_string()]);
        let plain = Workload { model: BenchModel::Plain, kv_snapshots: sizes, ..workload() };
        assert!(wrong(plain).contains("only on a model with recurrent states"));
        // Nothing would be judged, which would count as good.
        assert!(wrong(Workload { prompts: 2, ..workload() }).contains("`--prompts 2`"));
        assert!(wrong(Workload { families: 2, ..workload() }).contains("`--prompts 4`"));
    }
}
