//! Gate part: flash attention on the CPU, each build against a reference in double precision.
//!
//! Sums in different orders round differently, so comparing bytes is meaningless here. A kernel's error must not exceed
//! that of stock's kernel on the same input, for any type of K and V and any head size.

mod verdict;

use std::path::Path;

use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::Run;
use serde_json::json;

use self::verdict::{CaseResult, Comparison, read_cases};
use super::Sides;
use super::logits::{self, Claim};
use crate::serving::probe::{self, Probe};
use crate::serving::switches::{ATTENTION, with_feature};

/// Compares every cache type and head size, if a patch has a claim for the feature.
pub fn compare(context: &Context, sides: &Sides<'_>) -> Result<Outcome> {
    let Sides { reference, variant, claims, .. } = *sides;
    if most(claims).is_none() {
        let text = format!("attention: no patch of {variant} computes it");
        return Ok(Outcome::ok(text, json!({ "attention": [] })));
    }
    super::find_probe(context, Probe::Attention)?;
    let folder = context.layout.generated().join("gate");
    disk::create_folder(&folder)?;
    context.ui.status("Comparing", "attention with double precision, on both builds");
    let measure = |variant: &str, feature: Option<&str>| -> Result<Vec<CaseResult>> {
        cases(&probe::build(context, Probe::Attention, variant, &folder)?, feature)
    };
    let compared = Comparison::of(&measure(reference, None)?, &measure(variant, Some(ATTENTION))?);
    let failures = compared.failures();
    if failures.is_empty() {
        return Ok(Outcome::ok(compared.summary(), json!({ "attention": compared.to_json() })));
    }
    let what = format!("attention of {variant} has a higher error against f64 than {reference}'s");
    Err(Error::no(what).detail(failures.join("\n")).hint("cargo test --package espalier-kernels attention"))
}

/// Maximum by which our attention moves a logit; `None` if no patch computes it.
pub fn most(claims: &[Claim]) -> Option<f64> {
    let with_it = logits::most(claims, Some(ATTENTION));
    (with_it > logits::most(claims, None)).then_some(with_it)
}

fn cases(probe: &Path, feature: Option<&str>) -> Result<Vec<CaseResult>> {
    let run = with_feature(Run::new(probe), feature);
    let words = run.words();
    read_cases(&espalier_series::lossy(&run.success()?))
        .map_err(|error| Error::no(format!("`{words}` printed a line that is not a case")).detail(error))
}
