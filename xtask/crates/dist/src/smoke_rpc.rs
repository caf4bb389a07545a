//! `cargo xtask smoke --rpc`: holds the model in `ggml-rpc-server`, a second process, and checks that the server's
//! answers are the same. This is how a model larger than one machine is served; here both are on the loopback.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use espalier_core::config::flavors::NamedFlavor;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::{Started, ending};
use espalier_core::sys::net::port::{self, ReservedPort};
use espalier_core::sys::net::server::{Server, last_words};
use serde_json::{Value, json};

use super::build_args::Which;
use super::equipment::{self, Device};
use super::smoke::{self, PROMPT};

/// Compares the server alone with one whose model is remote; a variant with kernels also with a paged cache.
pub fn command(context: &Context, which: &Which) -> Result<Outcome> {
    let pins = context.pins()?;
    let variant = pins.variant(which.variant.as_deref())?;
    let flavors = context.flavors()?;
    let NamedFlavor { name: flavor, entry } = flavors.get(&which.flavor)?;
    let name = format!("{}-{flavor}", variant.name);
    let server = smoke::server_of(context, &variant.name, flavor)?;
    let worker = server.with_file_name(format!("ggml-rpc-server{}", std::env::consts::EXE_SUFFIX));
    if !disk::is_program(&worker) {
        return Err(Error::usage(format!("{name} was built without `ggml-rpc-server`"))
            .hint("name it under `programs` in ci/flavors.toml, then build again"));
    }
    let log = |who: &str| context.layout.log(&format!("smoke-rpc-{who}-{name}"));
    let pair = Pair {
        server,
        worker,
        model: smoke::model(context)?,
        device: equipment::device(context, &flavors, entry)?,
        server_log: log("server"),
        worker_log: log("worker"),
    };
    let started = Instant::now();
    let modes: &[&[&str]] = if variant.kernels { &[&[], &["--kv-paged"]] } else { &[&[]] };
    let logs = [&pair.server_log, &pair.worker_log].map(|log| context.layout.show(log));
    let tokens =
        pair.compare(modes).map_err(|error| error.hint(format!("the whole logs: {}", logs.join(" "))))?;
    let seconds = started.elapsed().as_secs_f64();
    let count = tokens.as_array().map_or(0, Vec::len);
    let says =
        format!("{name}: the same {count} tokens with its model in another process, in {seconds:.1} s");
    context.ui.status("Tested", says);
    Ok(Outcome::ok("", json!({ "tokens": tokens, "modes": modes, "seconds": seconds })))
}

/// The two programs.
struct Pair {
    server: PathBuf,
    worker: PathBuf,
    model: PathBuf,
    device: Device,
    server_log: PathBuf,
    worker_log: PathBuf,
}

impl Pair {
    /// Returns the answer of the server alone, which must be the same in each mode with a remote model.
    fn compare(&self, modes: &[&[&str]]) -> Result<Value> {
        let alone = tokens(&self.start(&[])?)?;
        for mode in modes {
            let (worker, port) = self.start_worker()?;
            let address = format!("127.0.0.1:{}", port.number());
            let server = self.start(&[mode, &["--n-gpu-layers", "99", "--rpc", &address][..]].concat())?;
            let found = tokens(&server).map_err(|error| error.detail(last_words(&self.server_log)))?;
            let with = mode.iter().fold("--rpc".to_string(), |with, word| with + " " + word);
            if found != alone {
                return Err(Error::no(format!("with {with} the server answers differently"))
                    .detail(format!("alone: {alone}\nfound: {found}")));
            }
            // A server that never offloads its model would give the same answers, so the check kills the worker. The
            // port stays reserved: no other worker may listen on it.
            drop(worker);
            if tokens(&server).is_ok() {
                return Err(Error::no(format!("with {with} the server computed the answer itself")));
            }
        }
        Ok(alone)
    }

    fn start(&self, more: &[&str]) -> Result<Server> {
        let run = self.device.run(&self.server).args(["--ctx-size", "512", "--threads", "2", "--seed", "1"]);
        // ggml aborts when its worker is gone: it must not attach a debugger then.
        let run = run.env("GGML_NO_BACKTRACE", "1").args(more).arg("--model").arg(&self.model);
        Server::start(run, &self.server_log)
    }

    /// Starts the worker, and returns the port that it listens on.
    fn start_worker(&self) -> Result<(Started, ReservedPort)> {
        let port = ReservedPort::new()?;
        let run = self.device.run(&self.worker).args(["--threads", "2", "--host", "127.0.0.1", "--port"]);
        let worker = run.arg(port.number().to_string()).start_logged(&self.worker_log)?;
        let begin = Instant::now();
        while !port::is_listening(port.number()) {
            let failed = |what: String| Err(Error::no(what).detail(last_words(&self.worker_log)));
            if let Some(status) = worker.ended() {
                return failed(format!("`ggml-rpc-server` ended before it listened: {}", ending(status)));
            }
            if begin.elapsed() > READY_LIMIT {
                return failed(format!("`ggml-rpc-server` did not listen after {} s", READY_LIMIT.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok((worker, port))
    }
}

/// It is ready at once on an idle machine.
const READY_LIMIT: Duration = Duration::from_secs(60);

fn tokens(server: &Server) -> Result<Value> {
    let body = json!({ "prompt": PROMPT, "n_predict": 12, "temperature": 0, "return_tokens": true });
    let (status, mut answer) = server.post("/completion", &body)?;
    match answer["tokens"].as_array() {
        Some(tokens) if status == 200 && !tokens.is_empty() => Ok(answer["tokens"].take()),
        _ => Err(Error::no(format!("/completion answered {status} without tokens"))),
    }
}
