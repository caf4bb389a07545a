//! The gate's second half: the packaged servers, stock against ours, answer by answer.
//!
//! Stock answers each prompt alone. Ours without flags must answer in the same bytes; paged, with any number of
//! neighbours, in the same tokens. And it must have shared something: a feature that never switches on would pass.

mod cases;
mod verdict;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use self::cases::{CASES, Case, KV_TYPES, Model};
use self::verdict::{Answer, Verdict};
use super::Context;
use crate::error::{Error, Result};
use crate::modelgen::{ModelSpec, WeightType};
use crate::sys::process::Run;
use crate::sys::server::Server;
use crate::sys::{disk, models};

/// What came of all comparisons.
#[derive(Debug, Default)]
pub struct Compared {
    /// Answers that are stock's.
    pub same: usize,
    /// Answers that left stock's at a token that was as likely.
    pub near_ties: usize,
    /// What is wrong, a line each.
    pub failures: Vec<String>,
}

/// Compares the packages `reference` and `variant`; goes on after a difference.
pub fn compare(context: &Context, reference: &Path, variant: &Path) -> Result<Compared> {
    let folder = context.layout.generated().join("gate");
    disk::create_folder(&folder)?;
    let gate = ServerGate { context, stock: program(reference), ours: program(variant), folder };
    let mut compared = Compared::default();
    for model in Model::ALL {
        for kv_type in KV_TYPES {
            gate.compare(&Setup { model, kv_type, file: gate.model(model)? }, &mut compared)?;
        }
    }
    Ok(compared)
}

fn program(package: &Path) -> PathBuf {
    package.join("bin").join(if cfg!(windows) { "llama-server.exe" } else { "llama-server" })
}

struct ServerGate<'a> {
    context: &'a Context,
    stock: PathBuf,
    ours: PathBuf,
    folder: PathBuf,
}

struct Setup {
    model: Model,
    kv_type: &'static str,
    file: PathBuf,
}

impl Setup {
    fn name(&self) -> String {
        format!("{} {}", self.model.name(), self.kv_type)
    }
}

impl ServerGate<'_> {
    fn model(&self, model: Model) -> Result<PathBuf> {
        match model {
            Model::Trained => Ok(self.context.layout.smoke_model()),
            Model::Random(architecture) => {
                let path = self.folder.join("model.gguf");
                models::write(&path, &ModelSpec::small(architecture, WeightType::F16))?;
                Ok(path)
            }
        }
    }

    fn compare(&self, setup: &Setup, compared: &mut Compared) -> Result<()> {
        self.context.ui.status("Comparing", format!("the servers' answers, {}", setup.name()));
        let stock = self.answers_alone(&self.stock, setup)?;
        let off = self.answers_alone(&self.ours, setup)?;
        for (at, _) in stock.iter().zip(&off).enumerate().filter(|(_, (stock, off))| stock != off) {
            compared.failures.push(format!("{}, off: request {at} is not answered as by stock", setup.name()));
        }
        for case in &CASES {
            self.compare_paged(setup, case, &stock, compared)?;
        }
        Ok(())
    }

    /// One after the other, nothing kept between them.
    fn answers_alone(&self, program: &Path, setup: &Setup) -> Result<Vec<Answer>> {
        let server = self.start(program, setup, &["-np", "1", "-c", "8192", "--cache-ram", "0"])?;
        cases::prompts().iter().map(|prompt| ask_alone(&server, prompt)).collect()
    }

    fn start(&self, program: &Path, setup: &Setup, arguments: &[&str]) -> Result<Server> {
        let run = Run::new(program)
            .args(["-t", "1", "-ctk", setup.kv_type, "-ctv", setup.kv_type])
            .args(arguments)
            .arg("--model")
            .arg(&setup.file);
        Server::start(run, &self.log())
    }

    fn log(&self) -> PathBuf {
        self.context.layout.log("gate-server")
    }

    fn compare_paged(
        &self,
        setup: &Setup,
        case: &Case,
        stock: &[Answer],
        compared: &mut Compared,
    ) -> Result<()> {
        let arguments = ["-np", case.parallel, "-c", case.cells, "--kv-paged"];
        let mut server = self.start(&self.ours, setup, &arguments)?;
        let name = format!("{}, {}", setup.name(), case.name);
        for _ in 0..2 {
            drop_clients(&server, case.dropped)?;
            let bodies: Vec<Value> = cases::prompts().iter().map(|prompt| cases::request(prompt)).collect();
            let answers = server.post_at_once("/completion", &bodies)?.answers;
            for (at, (stock, (status, body))) in stock.iter().zip(&answers).enumerate() {
                compared.count(&format!("{name}: request {at}"), stock, *status, body);
            }
        }
        server.still_runs()?;
        compared.failures.extend(self.what_the_pool_says(setup, &server, &name)?);
        Ok(())
    }

    /// A memory that can be paged has shared, and holds nothing when all is over; the others say that they are not.
    fn what_the_pool_says(&self, setup: &Setup, server: &Server, name: &str) -> Result<Option<String>> {
        let pool = server.get("/props")?.1["kv_pool"].clone();
        let number = |key: &str| pool[key].as_u64();
        let wrong = match setup.model.can_be_paged() {
            true if number("hit_tokens").is_none_or(|hits| hits == 0) => "nothing was shared",
            true if number("blocks_used") != Some(0) => "blocks are in use after all requests ended",
            false if !pool.is_null() => "a memory that cannot be paged has a pool",
            false if !disk::read_text(&self.log())?.contains("runs unpaged, because") => {
                "the server did not say that it runs unpaged"
            }
            _ => return Ok(None),
        };
        Ok(Some(format!("{name}: {wrong}: {pool}")))
    }
}

fn ask_alone(server: &Server, prompt: &[u32]) -> Result<Answer> {
    let (status, body) = server.post("/completion", &cases::request(prompt))?;
    verdict::read(&body)
        .ok_or_else(|| Error::no(format!("/completion answered {status}")).detail(body.to_string()))
}

fn drop_clients(server: &Server, count: usize) -> Result<()> {
    let prompts = cases::prompts();
    prompts.iter().take(count).try_for_each(|prompt| {
        server.post_and_hang_up("/completion", &cases::long_request(prompt))
    })
}

impl Compared {
    fn count(&mut self, name: &str, stock: &Answer, status: u16, body: &Value) {
        let Some(answer) = verdict::read(body) else {
            self.failures.push(format!("{name} was answered {status}: {body}"));
            return;
        };
        match verdict::judge(stock, &answer.tokens) {
            Verdict::Same => self.same += 1,
            Verdict::NearTie(_) => self.near_ties += 1,
            Verdict::Wrong(at) => self.failures.push(format!("{name}: token {at} is not stock's")),
        }
    }

    /// For a report.
    pub fn to_json(&self) -> Value {
        json!({ "same": self.same, "near_ties": self.near_ties, "failures": self.failures })
    }
}
