//! The checks that a staged project must pass before its pin moves.

use std::time::Instant;

use espalier_core::config::flavors::DEFAULT_FLAVOR;
use espalier_core::config::name::Name;
use espalier_core::config::pins::Pins;
use espalier_core::context::Context;
use espalier_core::error::Result;
use espalier_dist::build;
use espalier_dist::which::Which;
use espalier_patches::lint;
use espalier_patches::lock;

use crate::gate;
use crate::report::sync::Check;

/// Runs every check, even after a failure, because a report that stops at the first failure hides the rest. Only the
/// gate, which needs the builds, is skipped after a failure.
pub fn run_all(staged: &Context) -> Result<Vec<Check>> {
    let mut checks = vec![
        check(staged, "lint", || lint::check(staged)),
        check(staged, "lock", || lock::run(staged, &lock::Options { check: true }).map(drop)),
    ];
    checks.extend(builds(staged)?);
    let built = checks.iter().all(|check| check.error.is_none());
    for variant in gated(&staged.pins()?) {
        let name = format!("gate {variant}");
        let gate = || gate::run(staged, &gate::Options { variant: Some(variant), ..Default::default() });
        checks.push(match built {
            true => check(staged, &name, || gate().map(drop)),
            false => Check::not_reached(&name, "a build failed"),
        });
    }
    Ok(checks)
}

/// Returns the variants that `pins.toml` marks as gated.
pub fn gated(pins: &Pins) -> Vec<Name> {
    let gated = pins.variants.values().filter(|variant| variant.gate.is_some());
    gated.map(|variant| variant.name.clone()).collect()
}

/// Builds every variant for this machine, each with its smoke test. No machine has the compilers of all flavors; those
/// are built by the CI matrix.
fn builds(staged: &Context) -> Result<Vec<Check>> {
    let pins = staged.pins()?;
    let check = |variant: &Name| {
        let options = build::Options { which: Which::of_variant(variant), ..build::Options::default() };
        let name = format!("build {variant} {DEFAULT_FLAVOR}");
        check(staged, &name, || build::run(staged, &options).map(drop))
    };
    Ok(pins.variants.keys().map(check).collect())
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
