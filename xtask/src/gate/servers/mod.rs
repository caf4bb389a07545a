//! The gate's second half: the packaged servers, stock against ours, answer by answer.
//!
//! Stock answers each prompt alone. Ours without flags must answer in the same bytes; paged, with any number of
//! neighbours, in the same tokens. And it must have shared something: a feature that never switches on would pass.

mod adapters;
mod answers;
mod choices;
mod compared;
mod draft_model;
mod drafts;
mod limits;
mod media;
mod overload;
mod pool;
mod prefill;
pub mod promises;
mod scene;
mod sharing;
mod slots;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::serving::switches;

pub use self::compared::Compared;
use self::scene::Scene;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::modelgen::{Architecture, ModelSpec, WeightType};
use crate::serving::asking::pool_at_rest;
use crate::serving::cases::Model;
use crate::serving::kv_pool::Pool;
use crate::serving::{adapter, cases};
use crate::sys::machine::process::Run;
use crate::sys::machine::{disk, models};
use crate::sys::net::server::Server;

/// What ours has to answer with everything off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Off {
    /// Stock's bytes.
    Identical,
    /// Stock's tokens, as far as rounding lets them be: a patch says that it moves every logit a little.
    Near,
}

/// What is compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chosen<'a> {
    /// Checks by name; all when empty.
    pub checks: &'a [String],
    /// Models that answer the check `answers`, by name; all when empty.
    pub models: &'a [String],
}

/// A part of the comparison that can be run alone. None relies on what ran before it.
struct Part {
    name: &'static str,
    run: fn(&ServerGate<'_>, &mut Compared) -> Result<()>,
}

const PARTS: [Part; 8] = [
    Part { name: "answers", run: answers::compare },
    Part { name: "sharing", run: |gate, compared| gate.look_at_sharing(compared) },
    Part { name: "features", run: |gate, compared| gate.look_at_features(compared) },
    Part { name: "adapters", run: |gate, compared| gate.look_at_adapters(compared) },
    Part { name: "overload", run: |gate, compared| gate.look_at_overload(compared) },
    Part { name: "draft-model", run: draft_model::compare },
    Part { name: "images", run: media::compare },
    Part { name: "promises", run: |gate, compared| gate.look_at_promises(compared) },
];

/// Compares the servers `stock` and `ours`; goes on after a difference, and after a server that was gone.
pub fn compare(
    context: &Context,
    [stock, ours]: [PathBuf; 2],
    off: Off,
    chosen: Chosen<'_>,
) -> Result<Compared> {
    let known = PARTS.map(|part| part.name);
    refuse_unknown("check", chosen.checks, &known)?;
    refuse_unknown("model", chosen.models, &Model::ALL.map(Model::name))?;
    let folder = context.layout.generated().join("gate");
    disk::create_folder(&folder)?;
    let models = chosen.models;
    let gate = ServerGate { context, stock, ours, folder, off, models, tolerances: RefCell::default() };
    let mut compared = Compared::default();
    let is_chosen =
        |part: &&Part| chosen.checks.is_empty() || chosen.checks.iter().any(|name| name == part.name);
    for part in PARTS.iter().filter(is_chosen) {
        let ended = (part.run)(&gate, &mut compared);
        compared.go_on(part.name, ended)?;
    }
    Ok(compared)
}

fn refuse_unknown(what: &str, names: &[String], known: &[&str]) -> Result<()> {
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        Some(unknown) => {
            Err(Error::usage(format!("no {what} `{unknown}`"))
                .hint(format!("use one of: {}", known.join(", "))))
        }
        None => Ok(()),
    }
}

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
    models: &'a [String],
    /// By the names of setups.
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
    fn look_at_features(&self, compared: &mut Compared) -> Result<()> {
        let setup = self.setup(Model::Trained, "f16")?;
        let mut scene = Scene::open(self, &setup, &[], compared)?;
        for check in CHECKS {
            scene.begin(check.name);
            let ended = (check.run)(&mut scene);
            scene.go_on(ended)?;
        }
        Ok(())
    }

    fn look_at_promises(&self, compared: &mut Compared) -> Result<()> {
        let kept = promises::look(self.context, &self.ours, &[])?;
        compared.failures.extend(promises::broken(&kept));
        Ok(())
    }

    fn look_at_adapters(&self, compared: &mut Compared) -> Result<()> {
        let setup = self.setup(Model::Random(Architecture::Llama), "f16")?;
        let adapter = self.folder.join("adapter.gguf");
        models::write_adapter(&adapter, &adapter::spec())?;
        let arguments = ["--lora".to_string(), adapter.display().to_string()];
        let mut scene = Scene::open(self, &setup, &arguments, compared)?;
        scene.begin("adapters");
        adapters::check(&mut scene)
    }

    fn look_at_overload(&self, compared: &mut Compared) -> Result<()> {
        let setup = self.setup(Model::Random(Architecture::Qwen3), "f16")?;
        let mut scene = Scene::open(self, &setup, &[], compared)?;
        scene.begin("overload");
        overload::check(&mut scene)
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
    (pool.blocks_used > 0).then(|| format!("blocks are in use after all requests ended: {pool}"))
}
