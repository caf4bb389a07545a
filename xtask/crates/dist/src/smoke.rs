//! `cargo xtask smoke`: starts the built server on the loopback, sends requests, checks its identity, and stops it.

use std::path::{Path, PathBuf};
use std::time::Instant;

use espalier_core::config::flavors::NamedFlavor;
use espalier_core::config::layout::SMOKE_MODEL;
use espalier_core::config::name::Name;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::net::server::{Server, last_words};
use serde_json::{Value, json};

use super::build_args::Which;
use super::equipment::{self, Device};
use crate::packaged::not_built;

/// The build to test.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// Variant name.
    pub variant: &'a Name,
    /// Flavor name.
    pub flavor: &'a Name,
    /// Identity that `/props` must contain in its build info; `None` for a stock build.
    pub identity: Option<String>,
    /// The device to run on.
    pub device: Device,
}

/// `cargo xtask smoke`: tests the build, and checks that its identity matches the lock.
pub fn command(context: &Context, which: &Which) -> Result<Outcome> {
    let pins = context.pins()?;
    let variant = pins.variant(which.variant.as_deref())?;
    let locked = espalier_patches::lock_file::read(context)?
        .and_then(|lock| lock.variants.get(variant.name.as_str()).cloned());
    let identity =
        locked.filter(|_| variant.kernels).map(|locked| identity(&variant.name, &locked.pin, &locked.tree));
    let flavors = context.flavors()?;
    let NamedFlavor { name: flavor, entry } = flavors.get(&which.flavor)?;
    let device = equipment::device(context, &flavors, entry)?;
    run(context, &Subject { variant: &variant.name, flavor, identity, device })
}

/// Returns the identity that a server reports in `--version` and in `/props`.
pub fn identity(variant: &str, pin: &str, tree: &str) -> String {
    format!("variant {variant}, pin {pin}, tree {tree}")
}

/// Starts the packaged server and requests a completion and a chat answer.
pub fn run(context: &Context, subject: &Subject<'_>) -> Result<Outcome> {
    let Subject { variant, flavor, .. } = subject;
    let server = server_of(context, variant, flavor)?;
    let model = model(context)?;
    let log = context.layout.log(&format!("smoke-{variant}-{flavor}"));
    let started = Instant::now();
    let answers = ask_server(&server, &model, &log, subject)
        .map_err(|error| error.hint(format!("the server's whole log: {}", context.layout.show(&log))))?;
    let seconds = started.elapsed().as_secs_f64();
    context.ui.status("Tested", format!("{variant}-{flavor}: {answers} in {seconds:.1} s"));
    Ok(Outcome::ok("", json!({ "answers": answers.to_json(), "seconds": seconds })))
}

/// Returns the packaged server.
pub(super) fn server_of(context: &Context, variant: &str, flavor: &str) -> Result<PathBuf> {
    let server = context.layout.server(variant, flavor);
    if disk::is_program(&server) {
        return Ok(server);
    }
    Err(not_built(variant, flavor))
}

/// Returns the model of the smoke test.
pub(super) fn model(context: &Context) -> Result<PathBuf> {
    context.file_of_espalier(SMOKE_MODEL)
}

/// The server's answers.
struct Answers {
    completion: String,
    chat: String,
    build_info: String,
}

impl Answers {
    fn to_json(&self) -> Value {
        json!({ "completion": self.completion, "chat": self.chat, "build_info": self.build_info })
    }
}

impl std::fmt::Display for Answers {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "completion {:?}, chat {:?}", self.completion, self.chat)
    }
}

fn ask_server(program: &Path, model: &Path, log: &Path, subject: &Subject<'_>) -> Result<Answers> {
    let arguments = ["--ctx-size", "512", "--threads", "2", "--seed", "1", "--model"];
    let run = subject.device.run(program).args(arguments).arg(model);
    let mut server = Server::start(run, log)?;
    let answers = ask(&server, subject).map_err(|error| error.detail(last_words(log)))?;
    server.still_runs()?;
    Ok(answers)
}

fn ask(server: &Server, subject: &Subject<'_>) -> Result<Answers> {
    Ok(Answers {
        completion: completion(server)?,
        chat: chat(server)?,
        build_info: build_info(server, subject.identity.as_deref())?,
    })
}

/// The prompt.
pub(super) const PROMPT: &str = "The tree";

/// Greedy and requested twice: the second answer uses the cached prompt and must be the same.
fn completion(server: &Server) -> Result<String> {
    let body = json!({ "prompt": PROMPT, "n_predict": 12, "temperature": 0 });
    let ask = || text_at(server.post("/completion", &body)?, "/content", "/completion");
    let (first, second) = (ask()?, ask()?);
    if first != second {
        return Err(Error::no(format!("the same greedy prompt gave {first:?} and then {second:?}")));
    }
    Ok(first)
}

fn chat(server: &Server) -> Result<String> {
    let messages = json!([{ "role": "user", "content": PROMPT }]);
    let body = json!({ "messages": messages, "max_tokens": 12, "temperature": 0 });
    let answer = server.post("/v1/chat/completions", &body)?;
    text_at(answer, "/choices/0/message/content", "/v1/chat/completions")
}

fn build_info(server: &Server, identity: Option<&str>) -> Result<String> {
    let build_info = text_at(server.get("/props")?, "/build_info", "/props")?;
    match identity {
        Some(identity) if !build_info.contains(identity) => {
            Err(Error::no("the server does not identify itself")
                .detail(format!("expected in /props build_info: {identity}\nfound: {build_info}")))
        }
        _ => Ok(build_info),
    }
}

fn text_at((status, body): (u16, Value), pointer: &str, from: &str) -> Result<String> {
    let text = body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if status != 200 || text.trim().is_empty() {
        return Err(Error::no(format!("{from} answered {status} without text at {pointer}"))
            .detail(body.to_string().chars().take(400).collect::<String>()));
    }
    Ok(text.to_string())
}
