//! Gate part: logits of random models, on a stock build and on our build.
//!
//! Patches declare allowed differences in their trailer `Numerics:`. First everything is off, then each feature that a
//! patch has a claim for is on, alone. With `gdn-flat-output` on, the variant must log for which weights it kept the
//! stock shape: otherwise a feature that never switches on would pass.
//!
//! A rounding error can change the choice of an expert, and then no bound holds. So models with experts are compared
//! with all experts in use wherever rounding differs: with a feature on, and where one build uses AMX and the other does
//! not.

mod cases;
mod kernels;
mod probe;
mod verdict;

use std::path::{Path, PathBuf};

use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::threads::at_once;
use serde_json::{Value, json};

use self::cases::{Case, Model, switches};
use self::kernels::Kernels;
use self::probe::Logits;
pub use self::probe::logits;
pub use self::verdict::{Claim, most};
use self::verdict::{Distance, Measured, distance};
use super::Sides;
use crate::serving::probe::{self as built, Probe};
use crate::serving::switches::FEATURE;
use crate::sys::models;

/// Compares every case of the architectures `named` (all if empty), with features off and on; continues after a
/// difference.
pub fn compare(context: &Context, sides: &Sides<'_>, named: &[String]) -> Result<Outcome> {
    let Sides { reference, variant, claims, has_kernels, .. } = *sides;
    let models = cases::models(named)?;
    let gate = Gate::prepare(context, reference, variant)?;
    let models: Vec<Model> = models.into_iter().map(|model| model.comparable_with(gate.kernels)).collect();
    let mut found = LogitResults::new(claims, has_kernels);
    let mut progress =
        context.ui.progress("comparing", u64::try_from(models.len()).ok(), espalier_core::ui::Unit::Steps);
    for (done, model) in (1u64..).zip(&models) {
        gate.compare_model(*model, claims, &mut found)?;
        progress.set(done);
    }
    drop(progress);
    outcome(sides, &models, gate.kernels, &found)
}

/// Reports the results; an error if a case is too far from the reference.
fn outcome(sides: &Sides<'_>, models: &[Model], kernels: Kernels, found: &LogitResults) -> Result<Outcome> {
    let Sides { reference, variant, claims, .. } = *sides;
    let about_kernels = kernels.summary(reference, variant);
    let failures = found.failures(claims, kernels);
    if !failures.is_empty() {
        let what = format!(
            "logits of {variant} differ from {reference}'s by more than its patches allow (`Numerics:`)"
        );
        return Err(Error::no(what)
            .detail(failures.into_iter().chain(about_kernels).collect::<Vec<_>>().join("\n"))
            .hint("to find the patch, build and gate without the last ones: cargo xtask edit"));
    }
    let count = |models: &[Model]| models.iter().flat_map(|model| model.rounds()).flatten().count();
    let (compared, all) = (count(models), count(&cases::all()));
    let cases = if compared == all { all.to_string() } else { format!("{compared} of {all}") };
    let text = std::iter::once(found.summary(&cases, claims)).chain(about_kernels);
    let json = json!({ "cases": compared, "amx": kernels.to_json(), "logits": found.to_json(claims) });
    Ok(Outcome::ok(text.collect::<Vec<_>>().join("\n"), json))
}

/// Results of all cases.
struct LogitResults {
    measured: Vec<Measured>,
    /// Cases in which a feature was not used as expected.
    shapes: Vec<String>,
}

impl LogitResults {
    fn new(claims: &[Claim], has_kernels: bool) -> LogitResults {
        let switches = switches(claims, has_kernels);
        LogitResults { measured: switches.into_iter().map(Measured::new).collect(), shapes: Vec::new() }
    }

    fn take(&mut self, probed: &Probed, claims: &[Claim]) {
        let Probed { case, ours } = probed;
        for (measured, ours) in self.measured.iter_mut().zip(ours) {
            let Some((distance, log)) = ours else { continue };
            measured.take(&case.name(), distance, claims);
            if measured.enabled.as_deref() == Some(FEATURE) {
                self.shapes.extend(wrong_shape(case, log));
            }
        }
    }

    fn failures(&self, claims: &[Claim], kernels: Kernels) -> Vec<String> {
        let of_logits = self.measured.iter().flat_map(|one| {
            let is_overridden = kernels.override_feature(one.enabled.as_deref());
            one.failures(claims, is_overridden)
        });
        of_logits.chain(self.shapes.iter().cloned()).collect()
    }

    fn summary(&self, cases: &str, claims: &[Claim]) -> String {
        let bounded: Vec<String> = self.measured.iter().filter_map(|one| one.summary(claims)).collect();
        match bounded.len() {
            0 => format!("logits: {cases} cases, off and on, all bytes equal"),
            _ => {
                format!("logits: {cases} cases, as far from stock as the patches say\n{}", bounded.join("\n"))
            }
        }
    }

    fn to_json(&self, claims: &[Claim]) -> Value {
        let one = |one: &Measured| {
            let most = most(claims, one.enabled.as_deref());
            json!({ "enabled": one.enabled, "moved": one.moved, "allowed": most })
        };
        self.measured.iter().map(one).collect()
    }
}

/// A case after the probes of both builds have run.
struct Probed {
    case: Case,
    /// For each feature that is compared, the distance of our logits from stock's and our lines on stderr.
    ours: Vec<Option<(Distance, String)>>,
}

struct Gate {
    reference: PathBuf,
    variant: PathBuf,
    /// Of both builds on this machine.
    kernels: Kernels,
    folder: PathBuf,
}

impl Gate {
    fn prepare(context: &Context, reference: &str, variant: &str) -> Result<Gate> {
        super::find_probe(context, Probe::Logits)?;
        let folder = context.layout.generated().join("gate");
        disk::create_folder(&folder)?;
        context.ui.status("Building", "the probe against both builds");
        let reference = built::build(context, Probe::Logits, reference, &folder)?;
        let variant = built::build(context, Probe::Logits, variant, &folder)?;
        let kernels = Kernels::of(&probe::buffer_types(&reference)?, &probe::buffer_types(&variant)?);
        Ok(Gate { reference, variant, kernels, folder })
    }

    fn compare_model(&self, model: Model, claims: &[Claim], found: &mut LogitResults) -> Result<()> {
        let file = self.folder.join("model.gguf");
        models::write(&file, &model.spec())?;
        for round in model.rounds() {
            let probed = at_once(round, |case| self.probe(&file, case, &found.measured))?;
            probed.iter().for_each(|one| found.take(one, claims));
        }
        disk::remove_file(&file)
    }

    /// Decodes a case with stock, and with ours once for each feature.
    fn probe(&self, model: &Path, case: Case, measured: &[Measured]) -> Result<Probed> {
        let stock = self.logits(&self.reference, model, &case, None)?;
        let ours = |measured: &Measured| -> Result<Option<(Distance, String)>> {
            let enabled = measured.enabled.as_deref();
            if !case.model.features.contain(enabled) {
                return Ok(None);
            }
            let ours = self.logits(&self.variant, model, &case, enabled)?;
            Ok(Some((distance(&stock.bytes, &ours.bytes), ours.log)))
        };
        Ok(Probed { case, ours: measured.iter().map(ours).collect::<Result<_>>()? })
    }

    fn logits(&self, probe: &Path, model: &Path, case: &Case, enabled: Option<&str>) -> Result<Logits> {
        let out = self.folder.join(format!("logits-{}.bin", case.sequences));
        probe::logits(probe, model, &out, case, enabled)
    }
}

/// Checks that the flat shape is used silently where it is allowed, and that elsewhere the log says that it is not.
fn wrong_shape(case: &Case, log: &str) -> Option<String> {
    let kept_shape = log.contains("espalier:");
    (case.asks_for_a_shape() && kept_shape == case.may_be_flat()).then(|| {
        let expected = if case.may_be_flat() { "flatten it" } else { "say that it kept the stock shape" };
        format!("{}, `{FEATURE}` on: expected to {expected}; log: {}", case.name(), log.trim())
    })
}
