//! The gate's second half: the packaged servers, stock against ours, answer by answer.
//!
//! Stock answers each prompt alone. Ours without flags must answer in the same bytes; paged, with any number of
//! neighbours, in the same tokens. And it must have shared something: a feature that never switches on would pass.

mod adapters;
pub mod cases;
mod choices;
mod draft_model;
mod drafts;
pub mod inputs;
mod limits;
mod media;
mod overload;
mod pool;
mod prefill;
pub mod promises;
pub mod reference;
mod rounding;
mod scene;
mod sharing;
mod slots;
pub mod verdict;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

pub use self::adapters::spec as adapter_spec;
use self::cases::{CASES, Case, KV_TYPES, Model};
pub use self::media::encoded_image;
pub use self::rounding::Rounding;
use self::scene::Scene;
use self::verdict::{Answer, Verdict};
use super::kv_pool::Pool;
use super::{Context, gate};
use crate::error::{Error, Result};
use crate::modelgen::{Architecture, ModelSpec, WeightType};
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
    /// How often stock answers otherwise than stock alone does.
    pub stock: Rounding,
    /// What is wrong, a line each.
    pub failures: Vec<String>,
}

/// What ours has to answer with everything off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Off {
    /// Stock's bytes.
    Identical,
    /// Stock's tokens, as far as rounding lets them be: a patch says that it moves every logit a little.
    Near,
}

/// Compares the servers `stock` and `ours`; goes on after a difference.
pub fn compare(context: &Context, stock: PathBuf, ours: PathBuf, off: Off) -> Result<Compared> {
    let folder = context.layout.generated().join("gate");
    disk::create_folder(&folder)?;
    let gate = ServerGate { context, stock, ours, folder, off };
    let mut compared = Compared::default();
    let mut tolerances = Tolerances::new();
    for model in Model::ALL {
        for kv_type in KV_TYPES {
            let setup = gate.setup(model, kv_type)?;
            tolerances.insert(setup.name(), gate.compare(&setup, &mut compared)?);
        }
    }
    gate.look_at_sharing(&mut compared)?;
    gate.look_at_features(&tolerances, &mut compared)?;
    draft_model::compare(&gate, &mut compared)?;
    media::compare(&gate, &mut compared)?;
    let kept = promises::look(context, &gate.ours, &[])?;
    compared.failures.extend(promises::broken(&kept));
    Ok(compared)
}

/// Tolerances by the names of setups.
type Tolerances = BTreeMap<String, f64>;

/// A feature of the paged server, and what shows that it works.
struct Check {
    name: &'static str,
    run: fn(&mut Scene<'_>) -> Result<()>,
}

/// Every check that the trained model is asked for.
const CHECKS: [Check; 9] = [
    Check { name: "prefill budget", run: prefill::check },
    Check { name: "a fragmented pool", run: pool::check_fragments },
    Check { name: "eviction", run: pool::check_eviction },
    Check { name: "preemption", run: pool::check_preemption },
    Check { name: "preemption of a prompt", run: pool::check_preempted_prompt },
    Check { name: "several choices", run: choices::check },
    Check { name: "slots in files", run: slots::check },
    Check { name: "drafts", run: drafts::check },
    Check { name: "the end of the context", run: limits::check },
];

/// One request at a time.
const ALONE: [&str; 6] = ["-np", "1", "-c", cases::ROOMY, "--cache-ram", "0"];

struct ServerGate<'a> {
    context: &'a Context,
    stock: PathBuf,
    ours: PathBuf,
    folder: PathBuf,
    off: Off,
}

/// Stock's answers, and how far stock's own rounding goes.
struct Expected<'a> {
    answers: &'a [Answer],
    tolerance: f64,
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
    fn setup(&self, model: Model, kv_type: &'static str) -> Result<Setup> {
        Ok(Setup { model, kv_type, file: self.model(model)? })
    }

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

    /// Gives the tolerance of what is paged.
    fn compare(&self, setup: &Setup, compared: &mut Compared) -> Result<f64> {
        self.context.ui.status("Comparing", format!("the servers' answers, {}", setup.name()));
        let stock = self.answers_alone(&self.stock, setup, &["--kv-unified"])?;
        let (tolerance, rounding) = match setup.model.can_be_paged() || self.off == Off::Near {
            true => self.rounding(setup, &stock)?,
            false => (verdict::tolerance(&[]), Rounding::default()),
        };
        let expected = Expected { tolerance, answers: &stock };
        self.compare_unpaged(setup, "off", &expected, compared)?;
        if setup.model.can_be_paged() {
            compared.stock.add(rounding);
            CASES.iter().try_for_each(|case| self.compare_paged(setup, case, &expected, compared))?;
        } else {
            self.compare_unpaged(setup, "unpaged", &expected, compared)?;
            if !disk::read_text(&self.log())?.contains("runs unpaged, because") {
                let wrong = format!("{}: the server did not say that it runs unpaged", setup.name());
                compared.failures.push(wrong);
            }
        }
        Ok(tolerance)
    }

    /// How far stock's own rounding moves its answers, and how often to other tokens.
    fn rounding(&self, setup: &Setup, stock: &[Answer]) -> Result<(f64, Rounding)> {
        let again = self.answers_otherwise(setup)?;
        let pairs: Vec<(&Answer, &Answer)> = stock.iter().cycle().zip(&again).collect();
        Ok((verdict::tolerance(&pairs), Rounding::of(&pairs)))
    }

    /// Without the flag, and with it where a memory cannot be paged, ours runs as stock does.
    fn compare_unpaged(
        &self,
        setup: &Setup,
        how: &str,
        expected: &Expected<'_>,
        compared: &mut Compared,
    ) -> Result<()> {
        let flag = if how == "off" { "--kv-unified" } else { "--kv-paged" };
        let answers = self.answers_alone(&self.ours, setup, &[flag])?;
        let name = format!("{}, {how}", setup.name());
        match self.off {
            Off::Identical => compared.hold_equal(&name, expected.answers, &answers),
            Off::Near => compared.hold_near(&name, expected, &answers),
        }
        Ok(())
    }

    /// Who finds what others computed, and what becomes of a request that cannot fit.
    fn look_at_sharing(&self, compared: &mut Compared) -> Result<()> {
        self.context.ui.status("Looking", "at who shares with whom");
        let setup = self.setup(Model::Trained, "f16")?;
        let keys = ["-np", "2", "-c", cases::ROOMY, "--kv-paged", "--api-key", sharing::KEYS];
        compared.failures.extend(sharing::leaks(&self.start(&self.ours, &setup, &keys)?)?);
        let saves = self.folder.join("slots").display().to_string();
        disk::create_folder(&self.folder.join("slots"))?;
        let keeps = [&keys[..], &["--slot-save-path", &saves]].concat();
        compared.failures.extend(sharing::leaks_of_a_kept_slot(&self.start(&self.ours, &setup, &keeps)?)?);
        let small = self.start(&self.ours, &setup, &["-np", "4", "-c", "512", "--kv-paged"])?;
        compared.failures.extend(sharing::refuses_what_cannot_fit(&small)?);
        compared.failures.extend(pool_is_held(&pool_at_rest(&small)?));
        Ok(())
    }

    /// Features of the paged server that the cases do not use, one by one.
    fn look_at_features(&self, tolerances: &Tolerances, compared: &mut Compared) -> Result<()> {
        let setup = self.setup(Model::Trained, "f16")?;
        let mut scene = Scene::open(self, &setup, &[], tolerances, compared)?;
        for check in CHECKS {
            scene.begin(check.name);
            (check.run)(&mut scene)?;
        }
        self.look_at_adapters(tolerances, compared)?;
        self.look_at_overload(tolerances, compared)
    }

    fn look_at_adapters(&self, tolerances: &Tolerances, compared: &mut Compared) -> Result<()> {
        let setup = self.setup(Model::Random(Architecture::Llama), "f16")?;
        let adapter = self.folder.join("adapter.gguf");
        models::write_adapter(&adapter, &adapters::spec())?;
        let arguments = ["--lora".to_string(), adapter.display().to_string()];
        let mut scene = Scene::open(self, &setup, &arguments, tolerances, compared)?;
        scene.begin("adapters");
        adapters::check(&mut scene)
    }

    fn look_at_overload(&self, tolerances: &Tolerances, compared: &mut Compared) -> Result<()> {
        let setup = self.setup(Model::Random(Architecture::Qwen3), "f16")?;
        let mut scene = Scene::open(self, &setup, &[], tolerances, compared)?;
        scene.begin("overload");
        overload::check(&mut scene)
    }

    /// One after the other, nothing kept between them.
    fn answers_alone(&self, program: &Path, setup: &Setup, arguments: &[&str]) -> Result<Vec<Answer>> {
        let server = self.start(program, setup, &[&ALONE, arguments].concat())?;
        cases::prompts().iter().map(|prompt| ask(&server, &cases::cold_request(prompt))).collect()
    }

    /// Stock's answers to each prompt in two parts, and with neighbours; all prompts in order, several times.
    fn answers_otherwise(&self, setup: &Setup) -> Result<Vec<Answer>> {
        let mut others = self.answers_in_two_parts(setup)?;
        for parallel in ["4", "16"] {
            let server =
                self.start(&self.stock, setup, &["-np", parallel, "-c", cases::ROOMY, "--kv-unified"])?;
            let answers = server.post_at_once("/completion", &requests())?.answers;
            // All of them: what is left out would pair the others with answers to other prompts.
            for answer in &answers {
                others.push(read_answer(answer)?);
            }
        }
        Ok(others)
    }

    fn answers_in_two_parts(&self, setup: &Setup) -> Result<Vec<Answer>> {
        let server = self.start(&self.stock, setup, &ALONE)?;
        let ask_in_two_parts = |prompt: &Vec<u32>| {
            ask(&server, &cases::cold_request(&prompt[..prompt.len().div_ceil(2)]))?;
            ask(&server, &cases::request(prompt))
        };
        cases::prompts().iter().map(ask_in_two_parts).collect()
    }

    fn start(&self, program: &Path, setup: &Setup, arguments: &[&str]) -> Result<Server> {
        Server::start(run_of(program, setup).args(arguments), &self.log())
    }

    fn log(&self) -> PathBuf {
        self.context.layout.log("gate-server")
    }

    fn compare_paged(
        &self,
        setup: &Setup,
        case: &Case,
        expected: &Expected<'_>,
        compared: &mut Compared,
    ) -> Result<()> {
        let arguments = ["-np", case.parallel, "-c", case.cells, "--kv-paged"];
        let mut server = self.start(&self.ours, setup, &arguments)?;
        let name = format!("{}, {}", setup.name(), case.name);
        for volley in 0..2 {
            drop_clients(&server, case.dropped)?;
            let answers = server.post_at_once("/completion", &requests())?.answers;
            if volley == 0 && case.cells == cases::ROOMY {
                let wrong = sharing::computed_twice(&answers);
                compared.failures.extend(wrong.map(|wrong| format!("{name}: {wrong}")));
            }
            for (at, (status, body)) in answers.iter().enumerate() {
                let stock = &expected.answers[at];
                compared.hold(&format!("{name}: request {at}"), stock, expected.tolerance, (*status, body));
            }
        }
        server.still_runs()?;
        let wrong = what_is_wrong_with_the_pool(&server)?;
        compared.failures.extend(wrong.map(|wrong| format!("{name}: {wrong}")));
        Ok(())
    }
}

fn run_of(program: &Path, setup: &Setup) -> Run {
    gate::without_features(Run::new(program))
        .args(["-t", "1", "-ctk", setup.kv_type, "-ctv", setup.kv_type])
        .arg("--model")
        .arg(&setup.file)
}

/// It has shared, and holds nothing when all is over.
fn what_is_wrong_with_the_pool(server: &Server) -> Result<Option<String>> {
    let pool = pool_at_rest(server)?;
    Ok(nothing_shared(&pool)?.or_else(|| pool_is_held(&pool)))
}

fn nothing_shared(pool: &Pool) -> Result<Option<String>> {
    let found = pool.hits()?.hit_tokens;
    Ok((found == 0).then(|| format!("nothing was shared: {pool}")))
}

fn pool_is_held(pool: &Pool) -> Option<String> {
    (pool.blocks_used > 0).then(|| format!("blocks are in use after all requests ended: {pool}"))
}

/// A slot is released just after its answer was sent, and when a client that went away is noticed.
pub fn pool_at_rest(server: &Server) -> Result<Pool> {
    for _ in 0..100 {
        let pool = Pool::of_server(server)?;
        if pool.blocks_used == 0 {
            return Ok(pool);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Pool::of_server(server)
}

fn requests() -> Vec<Value> {
    cases::prompts().iter().map(|prompt| cases::request(prompt)).collect()
}

fn ask(server: &Server, request: &Value) -> Result<Answer> {
    read_answer(&server.post("/completion", request)?)
}

/// An answer to `/completion`.
///
/// # Errors
///
/// It was answered something else.
pub fn read_answer((status, body): &(u16, Value)) -> Result<Answer> {
    verdict::read(body)
        .ok_or_else(|| Error::no(format!("/completion answered {status}")).detail(body.to_string()))
}

fn drop_clients(server: &Server, count: usize) -> Result<()> {
    let prompts = cases::prompts();
    prompts
        .iter()
        .take(count)
        .try_for_each(|prompt| server.post_and_hang_up("/completion", &cases::long_request(prompt)))
}

impl Compared {
    /// Too many near ties are no rounding: ours may not have many more than stock has with neighbours.
    pub fn too_many_near_ties(&self) -> Option<String> {
        Rounding { same: self.same, others: self.near_ties }.is_too_much(self.stock)
    }

    /// The same bytes.
    fn hold_equal(&mut self, name: &str, stock: &[Answer], ours: &[Answer]) {
        for (at, (stock, ours)) in stock.iter().zip(ours).enumerate() {
            match stock == ours {
                true => self.same += 1,
                false => self.failures.push(format!("{name}: request {at} is not answered as by stock")),
            }
        }
    }

    /// The same tokens, as far as stock's own rounding lets them be.
    fn hold_near(&mut self, name: &str, expected: &Expected<'_>, ours: &[Answer]) {
        for (at, (stock, ours)) in expected.answers.iter().zip(ours).enumerate() {
            self.hold_answer(&format!("{name}: request {at}"), stock, expected.tolerance, ours);
        }
    }

    /// An answer to `/completion`.
    fn hold(&mut self, name: &str, stock: &Answer, tolerance: f64, (status, body): (u16, &Value)) {
        match verdict::read(body) {
            Some(answer) => self.hold_answer(name, stock, tolerance, &answer),
            None => self.failures.push(format!("{name} was answered {status}: {body}")),
        }
    }

    fn hold_answer(&mut self, name: &str, stock: &Answer, tolerance: f64, answer: &Answer) {
        self.hold_tokens(name, stock, tolerance, &answer.tokens);
        self.hold_probabilities(name, stock, tolerance, answer);
    }

    fn hold_tokens(&mut self, name: &str, stock: &Answer, tolerance: f64, tokens: &[i64]) {
        match verdict::judge(stock, tokens, tolerance) {
            Verdict::Same => self.same += 1,
            Verdict::NearTie(_) => self.near_ties += 1,
            Verdict::Wrong(place) => self.failures.push(format!(
                "{name}: token {place} is not stock's, and less likely by {:.3}; stock's own rounding explains {tolerance:.3}",
                verdict::gap(stock, place, tokens)
            )),
        }
    }

    /// Of the same text: what is wrong need not be wrong enough for another token.
    fn hold_probabilities(&mut self, name: &str, stock: &Answer, tolerance: f64, answer: &Answer) {
        let moved = verdict::moved(stock, answer);
        if moved > tolerance * verdict::MOST_MOVED {
            self.failures.push(format!(
                "{name}: the likeliest tokens are {moved:.3} from stock's; stock's own rounding explains {tolerance:.3}"
            ));
        }
    }

    /// For a report.
    pub fn to_json(&self) -> Value {
        json!({ "same": self.same, "near_ties": self.near_ties, "failures": self.failures,
                "stock": { "same": self.stock.same, "others": self.stock.others } })
    }
}
