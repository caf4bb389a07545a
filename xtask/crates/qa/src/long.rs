//! `cargo xtask test --long`: builds every flavor that this machine can build in an empty folder, records the results,
//! and checks that the flavors that run here produce the same answers.

use std::time::Instant;

use espalier_core::config::flavors::Flavor;
use espalier_core::config::name::Name;
use espalier_core::config::toolchains::diagnosis::{Readiness, diagnose};
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::ui;
use espalier_dist::build_args::Which;
use espalier_dist::doctor;
use espalier_dist::sys::toolchain;
use espalier_dist::{build, smoke};
use serde_json::{Value, json};

use super::test::{Done, Options};

/// A build that is recorded.
struct Job {
    variant: Name,
    flavor: Name,
    runs_here: bool,
}

/// A flavor that is skipped, with the reason.
struct LeftOut {
    flavor: Name,
    why: String,
}

/// Flavors whose build took longer than this, in seconds, are built only when named.
const LONGEST: u64 = 2 * 60 * 60;

/// Builds and records the flavors in turn; continues after a failure.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let (jobs, left_out) = plan(context, &options.only)?;
    let out = Vec::from_iter(left_out.iter().map(|one| format!("left out: {}: {}", one.flavor, one.why)));
    let json_out = Vec::from_iter(left_out.iter().map(|one| json!({ "flavor": one.flavor, "why": one.why })));
    if options.dry_run {
        let commands: Vec<String> = jobs.iter().map(Job::command).collect();
        let json = json!({ "commands": commands, "left_out": json_out });
        return Ok(Outcome::ok([commands, out].concat().join("\n"), json));
    }
    // Locked: a check must not repair what it checks.
    let locked = Context { locked: true, ..context.clone() };
    let mut done: Vec<Done> = jobs.iter().map(|job| job.carry_out(&locked)).collect();
    let built =
        |job: &&Job| job.runs_here && done.iter().any(|done| done.name == job.name() && done.error.is_none());
    let runs: Vec<&Job> = jobs.iter().filter(built).collect();
    done.push(measured("answers", context, || compare_answers(&locked, &runs)));
    let mut outcome = super::test::summary(&done);
    outcome.text = [out, vec![outcome.text]].concat().join("\n");
    outcome.json["left_out"] = json!(json_out);
    context.ui.status("Recorded", "under ci/proofs\n  next: cargo xtask docs    # then commit both");
    Ok(outcome)
}

fn plan(context: &Context, only: &[String]) -> Result<(Vec<Job>, Vec<LeftOut>)> {
    let (pins, flavors, toolchains) = (context.pins()?, context.flavors()?, context.toolchains()?);
    only.iter().try_for_each(|name| flavors.get(name).map(drop))?;
    let machine = doctor::look_around(context, &toolchains)?;
    let (mut jobs, mut left_out) = (Vec::new(), Vec::new());
    for (name, flavor) in &flavors.flavors {
        let is_named = only.iter().any(|only| only == name.as_str());
        if !only.is_empty() && !is_named {
            continue;
        }
        let found = diagnose(name, flavor, &toolchains, &machine)?;
        let longest = longest_build(context, name)?.filter(|seconds| *seconds > LONGEST && !is_named);
        let why = match (found.verdict, longest) {
            (Readiness::Ready, None) => None,
            (Readiness::Ready, Some(seconds)) => {
                Some(format!("it took {seconds} s to compile; build it with `--only {name}`"))
            }
            _ => {
                let fixes = found.fixes.iter().map(|fix| ui::hint(fix)).collect();
                Some([found.missing, fixes].concat().join("; "))
            }
        };
        if let Some(why) = why {
            left_out.push(LeftOut { flavor: name.clone(), why });
            continue;
        }
        let runs_here = runs_here(context, flavor)?;
        let job = |variant: &Name| Job { variant: variant.clone(), flavor: name.clone(), runs_here };
        let variants = pins.variants.values().filter(|variant| variant.is_for(name));
        jobs.extend(variants.map(|variant| job(&variant.name)));
    }
    Ok((jobs, left_out))
}

/// Returns the longest build time among the records of the flavor, in seconds.
fn longest_build(context: &Context, flavor: &Name) -> Result<Option<u64>> {
    let proofs = context.proofs()?;
    Ok(proofs.iter().filter(|proof| proof.flavor == *flavor).map(|proof| proof.seconds).max())
}

/// Whether this machine has the processor or the device that the flavor's programs need, as far as can be detected.
fn runs_here(context: &Context, flavor: &Flavor) -> Result<bool> {
    let toolchains = context.toolchains()?;
    let Some(name) = &flavor.toolchain else { return Ok(flavor.family.is_none()) };
    let Some(device) = &toolchains.get(name)?.runs_on else { return Ok(false) };
    Ok(toolchain::is_there(device, toolchains.get(device)?, &context.layout))
}

impl Job {
    fn name(&self) -> String {
        format!("{}-{}", self.variant, self.flavor)
    }

    fn which(&self) -> Which {
        Which { variant: Some(self.variant.clone()), flavor: self.flavor.clone() }
    }

    fn command(&self) -> String {
        let flag = if self.runs_here { "" } else { " --no-smoke" };
        let (variant, flavor) = (&self.variant, &self.flavor);
        ui::hint(&format!("cargo xtask build --record --variant {variant} --flavor {flavor}{flag}"))
    }

    fn carry_out(&self, context: &Context) -> Done {
        measured(&self.name(), context, || {
            let options = build::Options {
                which: self.which(),
                no_smoke: !self.runs_here,
                record: true,
                ..build::Options::default()
            };
            build::run(context, &options).map(drop)
        })
    }

    /// Returns the packaged server's completion of the smoke test's prompt.
    fn answer(&self, context: &Context) -> Result<Value> {
        let outcome = smoke::command(context, &self.which())?;
        Ok(outcome.json["answers"]["completion"].clone())
    }
}

fn measured(name: &str, context: &Context, work: impl FnOnce() -> Result<()>) -> Done {
    context.ui.status("Testing", name);
    let begin = Instant::now();
    let error = work().err();
    if let Some(error) = &error {
        context.ui.warn(format!("{name} failed\n{error}"));
    }
    Done { name: name.to_string(), took: begin.elapsed(), error }
}

fn compare_answers(context: &Context, jobs: &[&Job]) -> Result<()> {
    let mut answers = Vec::new();
    for job in jobs {
        answers.push((job.name(), job.answer(context)?));
    }
    compare(&answers)
}

/// Sampling is greedy and the model is f32, so every flavor and every variant must give the same answer.
fn compare(answers: &[(String, Value)]) -> Result<()> {
    if answers.windows(2).all(|two| two[0].1 == two[1].1) {
        return Ok(());
    }
    let lines: Vec<String> = answers.iter().map(|(name, answer)| format!("{name}: {answer}")).collect();
    Err(Error::no("the same greedy prompt gave different answers").detail(lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_differing_answer_is_reported_with_all_answers() {
        let answer = |name: &str, says: &str| (name.to_string(), json!(says));
        let mut answers = vec![answer("paged-cpu", "grows"), answer("stock-cpu", "grows")];
        assert!(compare(&answers).is_ok() && compare(&[]).is_ok());
        answers.push(answer("paged-vulkan", "glows"));
        let error = compare(&answers).unwrap_err().to_string();
        assert!(
            error.contains("paged-cpu: \"grows\"") && error.contains("paged-vulkan: \"glows\""),
            "{error}"
        );
    }
}
