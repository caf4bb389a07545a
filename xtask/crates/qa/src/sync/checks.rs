//! The checks that a staged project must pass before its pin moves.

use std::time::Instant;

use espalier_core::config::flavors::DEFAULT_FLAVOR;
use espalier_core::config::name::Name;
use espalier_core::config::pins::{Pins, Variant};
use espalier_core::context::Context;
use espalier_core::error::Result;
use espalier_dist::build;
use espalier_dist::build_args::Which;
use espalier_patches::lint;
use espalier_patches::lock;

use crate::gate;
use crate::report::sync::Check;

/// Runs every check, even after a failure, because a report that stops at the first failure hides the rest. Only the
/// gate, which needs the builds, is skipped after a failure.
pub fn run_all(staged: &Context) -> Result<Vec<Check>> {
    let pins = staged.pins()?;
    Ok(run(staged, &pins.variants.values().collect::<Vec<_>>()))
}

/// As [`run_all`], with the builds and gates of the variants on `pin` alone.
pub fn run_on(staged: &Context, pin: &Name) -> Result<Vec<Check>> {
    let pins = staged.pins()?;
    Ok(run(staged, &pins.variants.values().filter(|variant| variant.pin == *pin).collect::<Vec<_>>()))
}

fn run(staged: &Context, variants: &[&Variant]) -> Vec<Check> {
    let mut checks = vec![
        check(staged, "lint", || lint::check(staged)),
        check(staged, "lock", || lock::run(staged, &lock::Options { check: true }).map(drop)),
    ];
    checks.extend(variants.iter().map(|variant| build_of(staged, &variant.name)));
    let built = checks.iter().all(|check| check.error.is_none());
    for variant in variants.iter().filter(|variant| variant.gate.is_some()) {
        let name = format!("gate {}", variant.name);
        let options = gate::Options { variant: Some(variant.name.clone()), ..Default::default() };
        checks.push(match built {
            true => check(staged, &name, || gate::run(staged, &options).map(drop)),
            false => Check::not_reached(&name, "a build failed"),
        });
    }
    checks
}

/// Returns the variants that `pins.toml` marks as gated.
pub fn gated(pins: &Pins) -> Vec<Name> {
    let gated = pins.variants.values().filter(|variant| variant.gate.is_some());
    gated.map(|variant| variant.name.clone()).collect()
}

/// Returns those of [`gated`] that are on `pin`.
pub fn gated_on(pins: &Pins, pin: &Name) -> Vec<Name> {
    let is_on_pin = |name: &Name| pins.variants.get(name).is_some_and(|variant| variant.pin == *pin);
    gated(pins).into_iter().filter(is_on_pin).collect()
}

/// Builds a variant for this machine, with its smoke test. No machine has the compilers of all flavors; those are built
/// by the CI matrix.
fn build_of(staged: &Context, variant: &Name) -> Check {
    let options = build::Options { which: Which::of_variant(variant), ..build::Options::default() };
    let name = format!("build {variant} {DEFAULT_FLAVOR}");
    check(staged, &name, || build::run(staged, &options).map(drop))
}

fn check(staged: &Context, name: &str, work: impl FnOnce() -> Result<()>) -> Check {
    staged.ui.status("Checking", name);
    let begin = Instant::now();
    let error = work().err();
    if let Some(error) = &error {
        staged.ui.warn(format!("{name} failed\n{error}"));
    }
    let error = error.map(|error| error.to_string());
    Check { name: name.to_string(), seconds: begin.elapsed().as_secs_f64(), error }
}
