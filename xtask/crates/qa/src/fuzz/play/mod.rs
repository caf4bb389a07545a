//! Runs a round: starts a server and its clients, and records the observations.

mod crowd;
pub mod references;
mod watch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use espalier_core::config::layout::SMOKE_MODEL;
use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::http::{Disconnect, Request};
use espalier_core::sys::machine::process::Run;
use espalier_core::sys::machine::{disk, owned};
use espalier_core::sys::net::server::Server;
use espalier_modelgen::{DraftSpec, ModelSpec, VisionSpec, WeightType};
use serde_json::json;

use self::crowd::Crowd;
use self::references::References;
use super::judge::{self, Evidence};
use super::plan::Round;
use super::plan::body;
use super::plan::model::ModelKind;
use super::plan::server::{COPIES, Drafts, Files, KEYS, ServerPlan};
use crate::serving::adapter;
use crate::serving::cases;
use crate::serving::kv_pool;
use crate::serving::switches;
use crate::sys::models;

/// Fixture in which rounds run.
pub struct FuzzFixture {
    program: PathBuf,
    folder: tempfile::TempDir,
    files: Files,
    references: BTreeMap<String, References>,
    patience: Duration,
}

/// State shared by all acts of a round.
struct RoundState {
    /// Start of the round.
    begin: Instant,
    /// The server's placeholder for an image.
    marker: String,
    /// Time per token with a single client, in seconds.
    pace: f64,
    /// Successive scrapes of `/metrics`.
    scrapes: Mutex<Vec<String>>,
}

impl RoundState {
    fn open(server: &Server, plan: &ServerPlan) -> RoundState {
        let (marker, pace) = (marker_of(server, plan), pace_of(server, plan));
        RoundState { begin: Instant::now(), marker, pace, scrapes: Mutex::default() }
    }
}

/// Tolerance of log probabilities by cache type: three times the observed change from rounding alone. Flash attention
/// sums an f16 cache in f16, in an order that depends on the placement of its cells. A key that was rounded differently
/// may be quantized differently, and random adapters make the activations of the small model so large that such a
/// key changes more: the second number is for servers with adapters.
const TOLERANCES: [(&str, [f64; 2]); 5] = [
    ("f16", [0.6, 0.6]),
    ("q8_0", [0.15, 0.15]),
    ("turbo4", [0.45, 0.45]),
    ("tcq3", [0.45, 1.1]),
    (COPIES, [0.6, 0.6]),
];

/// Time until a server with `--sleep-idle-seconds 1` is asleep, including the delay until it notices that it is idle.
const NAP: Duration = Duration::from_millis(2200);

impl FuzzFixture {
    /// Creates the folders, and writes what servers load beside a model.
    pub fn prepare(context: &Context, program: PathBuf, patience: Duration) -> Result<FuzzFixture> {
        owned::claim(&context.layout)?;
        let parent = context.layout.generated().join("fuzz");
        let folder = disk::scratch_folder(&parent, "round")?;
        let at = |name: &str| folder.path().join(name);
        let files = Files {
            trained: context.file_of_espalier(SMOKE_MODEL)?,
            random: folder.path().to_path_buf(),
            adapters: [at("adapter-0.gguf"), at("adapter-1.gguf")],
            vision: at("vision.gguf"),
            vision_in_place: at("vision-in-place.gguf"),
            slots: at("slots"),
        };
        let n_embd = ModelKind::Llama.spec().map_or(0, |spec| spec.n_embd);
        models::write_vision(&files.vision, &VisionSpec::small(n_embd))?;
        let n_embd = ModelKind::Qwen2Vl.spec().map_or(0, |spec| spec.n_embd);
        models::write_vision(&files.vision_in_place, &VisionSpec::small_qwen2vl(n_embd))?;
        for (seed, path) in (1..).zip(&files.adapters) {
            models::write_adapter(path, &espalier_modelgen::AdapterSpec { seed, ..adapter::spec() })?;
        }
        Ok(FuzzFixture { program, folder, files, references: BTreeMap::new(), patience })
    }

    /// Returns the command line of the server of a round.
    pub fn words(&self, server: &ServerPlan) -> String {
        self.run_under_test(server).words()
    }

    fn run_under_test(&self, server: &ServerPlan) -> Run {
        let run = self.run_of(server, &server.arguments(&self.files));
        server.variables().into_iter().fold(run, |run, (name, value)| run.env(name, value))
    }

    fn run_of(&self, server: &ServerPlan, arguments: &[String]) -> Run {
        switches::with_feature(Run::new(&self.program), Some(&server.features())).args(arguments)
    }

    /// Runs a round to its end.
    pub fn play(&mut self, round: &Round) -> Result<Evidence> {
        owned::remove_folder(&self.files.slots)?;
        disk::create_folder(&self.files.slots)?;
        self.write_models(&round.server)?;
        let log = self.folder.path().join("server.log");
        let mut server = Server::start(self.run_under_test(&round.server), &log)?;
        if round.server.few_windows {
            kv_pool::must_have_own_windows(&server)?;
        }
        let mut evidence = Evidence { tolerance: tolerance_of(&round.server), ..Evidence::default() };
        let round_state = RoundState::open(&server, &round.server);
        for number in 0..round.acts.len() {
            let is_over = self.play_act(&server, round, number, &round_state, &mut evidence);
            evidence.ended = server.ended();
            if is_over || evidence.ended.is_some() {
                break;
            }
        }
        evidence.scrapes = round_state.scrapes.into_inner().unwrap_or_default();
        evidence.log = server.log_text()?;
        drop(server);
        self.ask_witnesses(round, &mut evidence)?;
        self.ask_the_reference(round, &mut evidence)?;
        Ok(evidence)
    }

    /// Writes the random models of a server, unless an earlier round has: the model itself, and one that drafts for it.
    fn write_models(&self, server: &ServerPlan) -> Result<()> {
        let Some(spec) = server.model.spec() else { return Ok(()) };
        write_once(&self.files.model(server.model), |path| models::write(path, &spec))?;
        if server.drafts == Drafts::Mtp {
            let spec = ModelSpec::small_with_nextn(WeightType::F16);
            write_once(&self.files.predicting(), |path| models::write(path, &spec))?;
        }
        match server.drafts.draft_kind() {
            Some(kind) => write_once(&self.files.draft_model(kind, server.model), |path| {
                models::write_draft(path, &DraftSpec { kind, target: spec, seed: 1 })
            }),
            None => Ok(()),
        }
    }

    /// Runs one act; returns whether the round must end early because a client timed out.
    fn play_act(
        &self,
        server: &Server,
        round: &Round,
        number: usize,
        round_state: &RoundState,
        evidence: &mut Evidence,
    ) -> bool {
        let act = &round.acts[number];
        if round.server.adapters {
            server.send(&swap(&round.server, &act.own_scales), Disconnect::Never, self.patience);
        }
        if act.after_sleep {
            std::thread::sleep(NAP);
            evidence.rests.push(watch::asleep(server, &round.server));
        }
        let (played, is_over) = Crowd { server, round, number, round_state, patience: self.patience }.play();
        evidence.played.extend(played);
        if !is_over {
            evidence.rests.push(watch::at_rest(server, &round.server));
        }
        is_over
    }

    /// Repeats each owner's first request, each on a fresh server without earlier requests.
    fn ask_witnesses(&self, round: &Round, evidence: &mut Evidence) -> Result<()> {
        let first: Vec<Request> = judge::first_of_owners(round, evidence)
            .map(|played| body::request(&played.action, &round.server, ""))
            .collect();
        for request in first {
            let log = self.folder.path().join("witness.log");
            let server = Server::start(self.run_under_test(&round.server), &log)?;
            evidence.witnesses.push(server.send(&request, Disconnect::Never, self.patience));
        }
        Ok(())
    }

    fn ask_the_reference(&mut self, round: &Round, evidence: &mut Evidence) -> Result<()> {
        let arguments = round.server.reference_arguments(&self.files);
        let name = format!("{} {}", round.server.features(), arguments.join(" "));
        if !self.references.contains_key(&name) {
            let log = self.folder.path().join(format!("reference-{}.log", self.references.len()));
            let server = Server::start(self.run_of(&round.server, &arguments), &log)
                .map_err(|error| error.hint("the same program has to run without `--kv-paged` too"))?;
            self.references.insert(name.clone(), References::new(server, &round.server));
        }
        let Some(references) = self.references.get(&name) else {
            return Err(Error::environment("the reference server has died"));
        };
        for played in &mut evidence.played {
            let scales = played.scales(&round.server);
            let Some(question) = references::Question::of(&round.server, &played.action, scales) else {
                continue;
            };
            let name = question.name();
            if !evidence.references.contains_key(&name) {
                evidence.references.insert(name.clone(), references.answer(&question)?);
            }
            played.reference = Some(name);
        }
        Ok(())
    }
}

/// Writes a file, unless an earlier round has.
fn write_once(path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if disk::exists(path) { Ok(()) } else { write(path) }
}

fn tolerance_of(server: &ServerPlan) -> f64 {
    let found = TOLERANCES.iter().find(|(kv_type, _)| *kv_type == server.kv_type);
    found.map_or(0.0, |(_, [plain, with_adapters])| if server.adapters { *with_adapters } else { *plain })
}

/// Returns the placeholder for an image, which differs in each process.
fn marker_of(server: &Server, plan: &ServerPlan) -> String {
    let properties = get_json(server, plan, "/props");
    properties["media_marker"].as_str().unwrap_or("<__media__>").to_string()
}

/// Measures the time per token, with a prompt that no client sends.
fn pace_of(server: &Server, plan: &ServerPlan) -> f64 {
    const TOKENS: usize = 200;
    const ANSWER: usize = 20;
    let mut body = cases::cold(cases::request_for(&[], ANSWER));
    body["prompt"] = if plan.vision { "x".repeat(TOKENS).into() } else { json!(vec![7; TOKENS]) };
    body["cache_salt"] = "pace".into();
    let request = Request::post("/completion", body).with_key(key_of(plan));
    let response = server.send(&request, Disconnect::Never, Duration::from_secs(60));
    response.took.as_secs_f64() / (TOKENS + ANSWER) as f64
}

fn swap(server: &ServerPlan, scales: &[f64]) -> Request {
    Request::post("/lora-adapters", body::lora(scales)).with_key(key_of(server))
}

/// Returns an API key, if the server uses keys.
fn key_of(plan: &ServerPlan) -> Option<&'static str> {
    plan.keys.then_some(KEYS[0])
}

/// Sends a GET request with an API key, if the server uses keys.
fn get(server: &Server, plan: &ServerPlan, path: &str) -> Option<String> {
    get_as(server, key_of(plan), path)
}

fn get_as(server: &Server, key: Option<&str>, path: &str) -> Option<String> {
    let request = Request::get(path).with_key(key);
    let response = server.send(&request, Disconnect::Never, Duration::from_secs(10));
    (response.status == Some(200)).then(|| response.text())
}

fn get_json(server: &Server, plan: &ServerPlan, path: &str) -> serde_json::Value {
    get_json_as(server, key_of(plan), path)
}

fn get_json_as(server: &Server, key: Option<&str>, path: &str) -> serde_json::Value {
    get_as(server, key, path).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or(json!(null))
}
