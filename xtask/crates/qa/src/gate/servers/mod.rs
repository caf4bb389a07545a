//! Gate part: the packaged servers, stock against ours, answer by answer.
//!
//! Stock answers each prompt alone. Ours without flags must return identical bytes; paged, with any number of
//! concurrent requests, the same tokens. The pool must also report cache hits: a feature that never switches on would
//! pass otherwise.

mod adapters;
mod answers;
mod choices;
mod compared;
mod draft_model;
mod drafts;
mod fixture;
mod limits;
mod media;
mod overload;
mod pool;
mod prefill;
pub mod promises;
mod sharing;
mod slots;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use espalier_core::config::layout::SMOKE_MODEL;
use espalier_core::config::name::Name;
use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::Run;
use espalier_core::sys::net::server::{Server, help_of};
use espalier_modelgen::{Architecture, ModelSpec, WeightType};

pub use self::compared::Compared;
use self::fixture::Fixture;
use crate::gate::options;
use crate::serving::asking::pool_at_rest;
use crate::serving::cases::Model;
use crate::serving::kv_pool::Pool;
use crate::serving::switches;
use crate::serving::verdict::Answer;
use crate::serving::{adapter, cases};
use crate::sys::models;

/// Required agreement with stock with all features off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Off {
    /// Byte-identical answers.
    Identical,
    /// The same tokens except for ties within tolerance: a patch declares that it moves every logit a little.
    Near,
}

/// Numerical effect that the patches declare, and the options that they add.
#[derive(Clone, Copy, Debug)]
pub struct Claimed<'a> {
    /// With all features off.
    pub off: Off,
    /// Maximum by which the attention of a paged cache moves a logit; `None` if it is stock's.
    pub attention: Option<f64>,
    /// Flags of options that stock should not have.
    pub options: &'a [String],
}

/// The servers to compare, and what ours was built from.
#[derive(Clone, Debug)]
pub struct Servers<'a> {
    /// Stock's program.
    pub stock: PathBuf,
    /// Our program.
    pub ours: PathBuf,
    /// The folder of its patched sources.
    pub tree: PathBuf,
    /// The pin of those.
    pub pin: &'a Name,
}

/// Selection of checks and models.
#[derive(Clone, Copy, Default)]
pub struct Chosen<'a> {
    /// Checks; all if empty.
    pub checks: &'a [&'static Check],
    /// Models for the check `answers`, and for feature checks that run on several, by name; all if empty.
    pub models: &'a [String],
}

/// A server check. Each can run alone: none relies on earlier ones.
pub struct Check {
    /// Name, for `--check`.
    pub name: &'static str,
    work: Work,
}

impl Check {
    /// Whether it checks the promises, which takes as long as all others together.
    pub fn is_promises(&self) -> bool {
        self.name == "promises"
    }
}

/// The work of a check.
enum Work {
    /// Starts its own servers.
    Whole(fn(&ServerGate<'_>, &mut Compared) -> Result<()>),
    /// Compares one of our features with stock, on each of these models. `--model` selects among all but the first.
    Feature(&'static [Base], fn(&mut Fixture<'_>) -> Result<()>),
}

/// Model that both servers of a feature check load.
#[derive(Clone, Copy)]
enum Base {
    /// The trained model.
    Trained,
    /// Random weights, which are slower.
    Random,
    /// Random weights and a LoRA adapter.
    Adapted,
    /// Random weights; half of the layers have a sliding window.
    Window,
    /// The same; in our servers these layers have cells for as few windows as the server allows.
    OwnWindows,
    /// Random weights; most layers have a recurrent state.
    Hybrid,
    /// The same; our servers compute the states in their cache.
    InPlace,
}

impl Base {
    fn model(self) -> Model {
        match self {
            Base::Trained => Model::Trained,
            Base::Random => Model::Random(Architecture::Qwen3),
            Base::Adapted => Model::Random(Architecture::Llama),
            Base::Window | Base::OwnWindows => Model::Random(Architecture::Gemma3),
            Base::Hybrid | Base::InPlace => Model::Random(Architecture::Qwen35),
        }
    }

    /// Name for reports.
    fn name(self) -> String {
        let switch = self.feature().or(self.has_own_windows().then_some(switches::WINDOWS));
        let with = switch.map(|switch| format!(" with {switch}")).unwrap_or_default();
        format!("{}{with}", self.model().name())
    }

    /// Whether layers with a sliding window have cells of their own in our servers.
    fn has_own_windows(self) -> bool {
        matches!(self, Base::OwnWindows)
    }

    /// The feature that is enabled in our servers.
    fn feature(self) -> Option<&'static str> {
        matches!(self, Base::InPlace).then_some(switches::GDN_RECURRENCE)
    }
}

/// One model of each kind of memory.
const EVERY: &[Base] = &[Base::Trained, Base::Window, Base::Hybrid];
/// As `EVERY`, windows also with cells of their own.
const EVERY_WINDOW: &[Base] = &[Base::Trained, Base::Window, Base::OwnWindows, Base::Hybrid];
/// As `EVERY_WINDOW`, the states also in place.
const EVERY_STATE: &[Base] = &[Base::Trained, Base::Window, Base::OwnWindows, Base::Hybrid, Base::InPlace];
/// As `EVERY_WINDOW`, all with random weights.
const OVERLOADED: &[Base] = &[Base::Random, Base::Window, Base::OwnWindows, Base::Hybrid];

/// All checks.
pub const CHECKS: &[Check] = &[
    Check { name: "answers", work: Work::Whole(answers::compare) },
    Check { name: "sharing", work: Work::Whole(look_at_sharing) },
    Check { name: "prefill-budget", work: Work::Feature(&[Base::Trained], prefill::check) },
    Check { name: "fragmented-pool", work: Work::Feature(EVERY_WINDOW, pool::check_fragments) },
    Check { name: "eviction", work: Work::Feature(EVERY_WINDOW, pool::check_eviction) },
    Check { name: "preemption", work: Work::Feature(EVERY_STATE, pool::check_preemption) },
    Check { name: "preempted-prompt", work: Work::Feature(EVERY, pool::check_preempted_prompt) },
    Check { name: "several-choices", work: Work::Feature(EVERY_STATE, choices::check) },
    Check { name: "slots-in-files", work: Work::Feature(EVERY_WINDOW, slots::check) },
    Check { name: "drafts", work: Work::Feature(&[Base::Trained], drafts::check) },
    Check { name: "end-of-context", work: Work::Feature(&[Base::Trained], limits::check) },
    Check { name: "adapters", work: Work::Feature(&[Base::Adapted], adapters::check) },
    Check { name: "overload", work: Work::Feature(OVERLOADED, overload::check) },
    Check { name: "draft-model", work: Work::Whole(draft_model::compare) },
    Check { name: "images", work: Work::Whole(media::compare) },
    Check { name: "copies", work: Work::Whole(answers::compare_copies) },
    Check { name: "options", work: Work::Whole(look_at_options) },
    Check { name: "promises", work: Work::Whole(look_at_promises) },
];

/// Compares two servers; continues after a difference, and after a server that exited.
pub fn compare(
    context: &Context,
    servers: Servers<'_>,
    claimed: Claimed<'_>,
    chosen: Chosen<'_>,
) -> Result<Compared> {
    refuse_unknown_models(chosen.models)?;
    let folder = context.layout.generated().join("gate");
    disk::create_folder(&folder)?;
    let models = chosen.models;
    let (answers, tolerances) = (RefCell::default(), RefCell::default());
    let Servers { stock, ours, tree, pin } = servers;
    let gate = ServerGate { context, stock, ours, tree, pin, folder, claimed, models, answers, tolerances };
    let mut compared = Compared::default();
    let is_chosen =
        |check: &&Check| chosen.checks.is_empty() || chosen.checks.iter().any(|one| one.name == check.name);
    for check in CHECKS.iter().filter(is_chosen) {
        match check.work {
            Work::Whole(compare) => {
                let ended = compare(&gate, &mut compared);
                compared.go_on(check.name, ended)?;
            }
            Work::Feature(bases, look) => gate.look_at_feature(check.name, bases, look, &mut compared)?,
        }
    }
    Ok(compared)
}

fn refuse_unknown_models(models: &[String]) -> Result<()> {
    let known = Model::ALL.map(Model::name);
    match models.iter().find(|name| !known.contains(&name.as_str())) {
        Some(unknown) => {
            Err(Error::usage(format!("no model `{unknown}`"))
                .hint(format!("use one of: {}", known.join(", "))))
        }
        None => Ok(()),
    }
}

/// Arguments of a server that runs one request at a time.
const ALONE: [&str; 6] = ["-np", "1", "-c", cases::AMPLE_CELLS, "--cache-ram", "0"];

struct ServerGate<'a> {
    context: &'a Context,
    stock: PathBuf,
    ours: PathBuf,
    tree: PathBuf,
    pin: &'a Name,
    folder: PathBuf,
    claimed: Claimed<'a>,
    models: &'a [String],
    /// Stock's answers to all prompts by setup name.
    answers: RefCell<BTreeMap<String, Rc<[Answer]>>>,
    /// Tolerances by setup name.
    tolerances: RefCell<BTreeMap<String, f64>>,
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

    /// Whether stock quantizes Q and the weights are random.
    fn rounds_queries(&self) -> bool {
        matches!(self.model, Model::Random(_)) && self.kv_type != "f16"
    }
}

impl ServerGate<'_> {
    fn setup(&self, model: Model, kv_type: &'static str) -> Result<Setup> {
        Ok(Setup { model, kv_type, file: self.model(model)? })
    }

    fn model(&self, model: Model) -> Result<PathBuf> {
        match model {
            Model::Trained => self.context.file_of_espalier(SMOKE_MODEL),
            Model::Random(architecture) => {
                let path = self.folder.join("model.gguf");
                models::write(&path, &ModelSpec::small(architecture, WeightType::F16))?;
                Ok(path)
            }
        }
    }

    /// Runs a feature check on its first model, and on those of the others that are chosen.
    fn look_at_feature(
        &self,
        name: &'static str,
        bases: &[Base],
        look: fn(&mut Fixture<'_>) -> Result<()>,
        compared: &mut Compared,
    ) -> Result<()> {
        let is_chosen = |(at, base): &(usize, &Base)| *at == 0 || self.wants(base.model());
        for (at, base) in bases.iter().enumerate().filter(is_chosen) {
            let name = if at == 0 { name.to_string() } else { format!("{name}, {}", base.name()) };
            let opened = self.open(&name, *base, compared);
            let ended = opened.and_then(|mut fixture| look(&mut fixture));
            compared.go_on(&name, ended)?;
        }
        Ok(())
    }

    fn open<'a>(&'a self, name: &str, base: Base, compared: &'a mut Compared) -> Result<Fixture<'a>> {
        self.context.ui.status("Checking", name);
        let setup = self.setup(base.model(), "f16")?;
        let arguments = match base {
            Base::Adapted => {
                let adapter = self.folder.join("adapter.gguf");
                models::write_adapter(&adapter, &adapter::spec())?;
                vec!["--lora".to_string(), adapter.display().to_string()]
            }
            _ => Vec::new(),
        };
        let fixture = Fixture::open(self, name.to_string(), setup, arguments, compared)?;
        Ok(fixture.with_feature(base.feature()).with_own_windows(base.has_own_windows()))
    }

    fn start(&self, program: &Path, setup: &Setup, arguments: &[&str]) -> Result<Server> {
        Server::start(run_of(program, setup).args(arguments), &self.log())
    }

    fn log(&self) -> PathBuf {
        self.context.layout.log("gate-server")
    }

    fn wants(&self, model: Model) -> bool {
        self.models.is_empty() || self.models.iter().any(|name| name == model.name())
    }
}

/// Checks which requests reuse cached blocks of others, and the response to a request that cannot fit.
fn look_at_sharing(gate: &ServerGate<'_>, compared: &mut Compared) -> Result<()> {
    gate.context.ui.status("Checking", "who shares with whom");
    let with_state = Model::Random(Architecture::Qwen35);
    look_at_sharing_of(gate, Model::Trained, compared)?;
    match gate.wants(with_state) {
        true => look_at_sharing_of(gate, with_state, compared),
        false => Ok(()),
    }
}

fn look_at_sharing_of(gate: &ServerGate<'_>, model: Model, compared: &mut Compared) -> Result<()> {
    let setup = gate.setup(model, "f16")?;
    let start = |arguments: &[&str]| gate.start(&gate.ours, &setup, arguments);
    let keys = ["-np", "2", "-c", cases::AMPLE_CELLS, "--kv-paged", "--api-key", sharing::KEYS];
    compared.failures.extend(sharing::leaks(&start(&keys)?)?);
    let saves = gate.folder.join("slots").display().to_string();
    disk::create_folder(&gate.folder.join("slots"))?;
    let keeps = [&keys[..], &["--slot-save-path", &saves]].concat();
    compared.failures.extend(sharing::leaks_of_a_kept_slot(&start(&keeps)?)?);
    let small = start(&["-np", "4", "-c", "512", "--kv-paged"])?;
    compared.failures.extend(sharing::refuses_what_cannot_fit(&small)?);
    compared.failures.extend(pool_is_held(&pool_at_rest(&small)?));
    Ok(())
}

/// Checks that stock has no option that the patches add: in our server it would not mean what it means in stock's.
fn look_at_options(gate: &ServerGate<'_>, compared: &mut Compared) -> Result<()> {
    gate.context.ui.status("Checking", "options");
    let help = help_of(&gate.stock)?;
    let known = options::known(gate.claimed.options, &help);
    let words =
        |option: &str| format!("options: stock has `{option}` too, which a patch adds: see decision 0029");
    compared.failures.extend(known.into_iter().map(words));
    Ok(())
}

fn look_at_promises(gate: &ServerGate<'_>, compared: &mut Compared) -> Result<()> {
    let checked = promises::Checked { program: &gate.ours, tree: &gate.tree, pin: gate.pin };
    let results = promises::look(gate.context, checked, promises::PROMISES)?;
    compared.failures.extend(promises::broken(&results));
    compared.not_reproduced.extend(promises::not_reproduced(&results));
    Ok(())
}

fn run_of(program: &Path, setup: &Setup) -> Run {
    switches::without_features(Run::new(program))
        .args(["-t", "1", "-ctk", setup.kv_type, "-ctv", setup.kv_type])
        .arg("--model")
        .arg(&setup.file)
}

fn nothing_shared(pool: &Pool) -> Result<Option<String>> {
    let found = pool.hits()?.hit_tokens;
    Ok((found == 0).then(|| format!("nothing was shared: {pool}")))
}

fn pool_is_held(pool: &Pool) -> Option<String> {
    (!pool.is_at_rest()).then(|| format!("blocks are in use after all requests ended: {pool}"))
}
