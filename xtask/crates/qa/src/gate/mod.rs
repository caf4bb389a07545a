//! `cargo xtask gate`: compares a variant with the stock variant whose answers it must match. Its parts are logits of
//! random models (`logits`), attention against double precision (`attention`), the servers' answers (`servers`), their
//! answers on real weights (`weights`) and upstream's own tests (`suites`).

mod attention;
pub mod logits;
mod names;
mod options;
pub mod servers;
mod suites;
pub mod weights;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, ValueEnum};
use espalier_core::config::flavors::DEFAULT_FLAVOR;
use espalier_core::config::layout::SMOKE_MODEL;
use espalier_core::config::name::Name;
use espalier_core::config::pins::{Pins, Variant};
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::next_command::{flag_with, next_command};
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::threads::result_of;
use espalier_core::sys::project::inputs::PatchFile;
use espalier_dist::checked_packages::CheckedPackages;
use espalier_dist::plan::manifest::build_command;
use espalier_patches::stack::Stack;
use espalier_series::{Numerics, Patch};
use serde_json::{Value, json};

use self::logits::Claim;
use self::names::NamedChecks;
use self::servers::promises::{self, Checked, Promise};
use self::servers::{Chosen, Claimed, Off, Servers};
use self::suites::UseOfRecord;
use crate::fuzz;
use crate::serving::inputs;
use crate::serving::probe::{self, Probe};

/// Options of `gate`.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// Variant of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<Name>,
    /// Compare only this part; repeatable.
    #[arg(long, value_enum, value_name = "PART")]
    pub only: Vec<GatePart>,
    /// Compare only this model, such as `qwen35`; with `--only logits` or `--only servers`; repeatable.
    #[arg(long = "model", value_name = "NAME")]
    pub models: Vec<String>,
    /// Run only this check of the servers, such as `answers`; with `--only servers`; repeatable.
    #[arg(long = "check", value_name = "NAME")]
    pub checks: Vec<String>,
    /// Check only this promise, such as `last-block`; with `--only promises`; repeatable.
    #[arg(long = "promise", value_name = "NAME")]
    pub promises: Vec<String>,
    /// Check this server instead of the packaged one; with `--only promises`.
    #[arg(long, value_name = "PATH")]
    pub program: Option<PathBuf>,
    /// Send every chat and long prompt, and generate long answers; with `--only weights`.
    #[arg(long)]
    pub full: bool,
    /// Write the outcomes of stock's test cases to `ci/suites/cases.json`; with `--only suites`.
    #[arg(long)]
    pub record_cases: bool,
    /// List the names that `--check` and `--promise` take.
    #[arg(long)]
    pub list: bool,
}

/// A part of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GatePart {
    /// Logits, byte by byte.
    Logits,
    /// Attention error against double precision.
    Attention,
    /// The servers' answers, token by token, and the guarantees.
    Servers,
    /// Guarantees of the paged server; no stock server is needed.
    Promises,
    /// The servers' answers on real weights, within stock's own spread.
    Weights,
    /// Outcomes of upstream's own tests.
    Suites,
}

impl GatePart {
    /// All parts; the promises are included in [`GatePart::Servers`].
    pub const ALL: [GatePart; 5] =
        [GatePart::Logits, GatePart::Attention, GatePart::Servers, GatePart::Weights, GatePart::Suites];
    /// Parts that need only the packaged programs.
    pub const OF_PACKAGES: [GatePart; 3] = [GatePart::Logits, GatePart::Attention, GatePart::Servers];

    /// Whether the part applies to `variant`: without the kernels there is no block pool whose answers could be
    /// compared.
    fn is_for(self, variant: &Variant) -> bool {
        variant.kernels || !matches!(self, GatePart::Servers | GatePart::Weights)
    }

    /// Name for `--only`.
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default()
    }
}

/// Probes that the gate compiles.
pub const PROBES: [Probe; 2] = [Probe::Logits, Probe::Attention];

/// Checks that the project has the source of a probe: without it, a gate would pass whatever was built.
///
/// # Errors
///
/// The source does not exist.
pub fn find_probe(context: &Context, probe: Probe) -> Result<()> {
    let found = probe::find(context, probe).map(drop);
    found.map_err(|error| error.hint("or gate nothing: take `gate = ...` from the variant in `pins.toml`"))
}

/// Runs the requested parts.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    if options.list {
        return Ok(names::list());
    }
    let named = NamedChecks::read(options)?;
    refuse_misplaced(options)?;
    let pins = context.pins()?;
    let variant = pins.variant(options.variant.as_deref())?;
    if options.only == [GatePart::Promises] {
        return match options.program.clone() {
            Some(program) => hold_to_promises(context, variant, program, named.promises),
            None => {
                let packages = CheckedPackages::begin(context, &pins, &[variant])?;
                let program = context.layout.server(&variant.name, DEFAULT_FLAVOR);
                packages.end(hold_to_promises(context, variant, program, named.promises))
            }
        };
    }
    let reference = reference_of(&pins, variant)?;
    let parts = parts_of(variant, &options.only)?;
    let packages = CheckedPackages::begin(context, &pins, &[reference, variant])?;
    let claims = claims(context, &pins, variant)?;
    let has_kernels = variant.kernels;
    let (pin, claims) = (&variant.pin, &claims[..]);
    let sides = Sides { reference: &reference.name, variant: &variant.name, pin, claims, has_kernels };
    let chosen = Chosen { checks: &named.checks, models: &options.models };
    packages.end(compare_chosen(context, &sides, &parts, chosen, Extent::of(options)))
}

/// Returns the requested parts, or all that apply to `variant`; an error if a requested part does not apply.
fn parts_of(variant: &Variant, only: &[GatePart]) -> Result<Vec<GatePart>> {
    if only.iter().any(|part| !part.is_for(variant)) {
        return Err(Error::usage(format!(
            "`{}` has no kernels, so no pool to compare servers with",
            variant.name
        ))
        .hint(next_command("gate --only logits", &[("--variant", Some(variant.name.as_str()))])));
    }
    Ok(possible(variant, if only.is_empty() { &GatePart::ALL[..] } else { only }))
}

/// Returns those of `parts` that apply to `variant`.
pub fn possible(variant: &Variant, parts: &[GatePart]) -> Vec<GatePart> {
    parts.iter().copied().filter(|part| part.is_for(variant)).collect()
}

/// Refuses an option that the requested part does not take: it would be ignored.
fn refuse_misplaced(options: &Options) -> Result<()> {
    let limited = limited(options);
    let is_placed = |parts: &[GatePart]| matches!(options.only[..], [part] if parts.contains(&part));
    let is_misplaced = |(_, words, parts): &&Limited| !words.is_empty() && !is_placed(parts);
    let Some((flag, _, parts)) = limited.iter().find(is_misplaced) else { return Ok(()) };
    let only: Vec<String> = parts.iter().map(|part| format!("`--only {}`", part.name())).collect();
    let first = parts[0];
    let words = limited.iter().filter(|(_, _, parts)| parts.contains(&first)).flat_map(|(_, words, _)| words);
    let words = words.fold(first.name(), |line, word| format!("{line} {word}"));
    Err(Error::usage(format!("`{flag}` only works with {}", only.join(" or ")))
        .hint(format!("cargo xtask gate --only {words}")))
}

/// An option that only some parts take: its flag, its words on the command line (empty if it is not given), and the
/// parts.
type Limited = (&'static str, Vec<String>, &'static [GatePart]);

fn limited(options: &Options) -> [Limited; 6] {
    let Options { models, checks, promises, program, full, record_cases, .. } = options;
    let words = |flag: &str, values: &[String]| -> Vec<String> {
        values.iter().map(|value| flag_with(flag, value)).collect()
    };
    let switch = |flag: &str, is_on: bool| is_on.then(|| flag.to_string()).into_iter().collect();
    let program: Vec<String> = program.iter().map(|path| path.display().to_string()).collect();
    [
        ("--full", switch("--full", *full), &[GatePart::Weights]),
        ("--record-cases", switch("--record-cases", *record_cases), &[GatePart::Suites]),
        ("--check", words("--check", checks), &[GatePart::Servers]),
        ("--model", words("--model", models), &[GatePart::Logits, GatePart::Servers]),
        ("--promise", words("--promise", promises), &[GatePart::Promises]),
        ("--program", words("--program", &program), &[GatePart::Promises]),
    ]
}

fn reference_of<'a>(pins: &'a Pins, variant: &Variant) -> Result<&'a Variant> {
    let reference = variant.gate.as_ref().and_then(|name| pins.variants.get(name));
    reference.ok_or_else(|| {
        let name = &variant.name;
        Error::usage(format!("`pins.toml` names no variant to gate `{name}` against"))
            .hint(format!("add `gate = \"VARIANT\"` to `[variants.{name}]`"))
            .hint(next_command("gate", &[("--variant", Some("NAME"))]))
    })
}

/// Two builds of one tree, and the claims of the patches between them.
#[derive(Clone, Copy, Debug)]
pub struct Sides<'a> {
    /// Name of the reference build's folders.
    pub reference: &'a str,
    /// Name of the gated build's folders.
    pub variant: &'a str,
    /// The pin that both are on; of builds of a tip, the one that their patches are from.
    pub pin: &'a Name,
    /// Claims of the patches that the reference does not have.
    pub claims: &'a [Claim],
    /// Whether the gated build has the kernels, whose features can be switched on.
    pub has_kernels: bool,
}

/// Returns the claims of the patches of `variant`, except those its reference has too.
pub fn claims(context: &Context, pins: &Pins, variant: &Variant) -> Result<Vec<Claim>> {
    let reference = variant.gate.as_ref().and_then(|name| pins.variants.get(name));
    let read = |variant| Stack::read(&context.layout, pins, variant);
    let shared = reference.map(read).transpose()?.map(|stack| stack.files).unwrap_or_default();
    let stack = read(variant)?;
    let own = stack.files.iter().zip(&stack.patches).filter(|(file, _)| !shared.contains(file));
    let claim = |(file, patch): (&PatchFile, &Patch)| Claim {
        patch: file.name().to_string(),
        numerics: Numerics::of(patch),
        options: options::added(patch),
    };
    Ok(own.map(claim).collect())
}

/// Compares two builds by the names of their folders. The canary's folders have names that `pins.toml` does not know,
/// so no suite can be built for them.
pub fn compare(context: &Context, sides: &Sides<'_>, parts: &[GatePart]) -> Result<Outcome> {
    compare_chosen(context, sides, parts, Chosen::default(), Extent::of(&Options::default()))
}

/// Amount of work of the parts that can do more.
#[derive(Clone, Copy)]
struct Extent {
    weights: weights::Size,
    cases: UseOfRecord,
}

impl Extent {
    fn of(options: &Options) -> Extent {
        let weights = if options.full { weights::Size::Full } else { weights::Size::Short };
        let cases = if options.record_cases { UseOfRecord::Record } else { UseOfRecord::Compare };
        Extent { weights, cases }
    }
}

fn compare_chosen(
    context: &Context,
    sides: &Sides<'_>,
    parts: &[GatePart],
    chosen: Chosen<'_>,
    extent: Extent,
) -> Result<Outcome> {
    let Sides { reference, variant, .. } = *sides;
    let mut text = vec![format!("{variant} against {reference}:")];
    let mut json = json!({ "variant": variant });
    let has_servers = parts.contains(&GatePart::Servers);
    for part in parts {
        let outcomes = match part {
            GatePart::Logits => vec![logits::compare(context, sides, chosen.models)?],
            // Beside the servers.
            GatePart::Attention if has_servers => continue,
            GatePart::Attention => vec![attention::compare(context, sides)?],
            GatePart::Servers => {
                compare_servers_and_more(context, sides, chosen, parts.contains(&GatePart::Attention))?
            }
            GatePart::Promises => {
                return Err(Error::usage("`promises` runs with `servers`, or alone")
                    .hint("cargo xtask gate --only promises"));
            }
            GatePart::Weights => vec![weights::compare(context, sides, extent.weights)?],
            GatePart::Suites => vec![compare_suites(context, sides, extent.cases)?],
        };
        for outcome in outcomes {
            text.push(outcome.text);
            merge(&mut json, outcome.json);
        }
    }
    Ok(Outcome::ok(text.join("\n"), json))
}

fn merge(json: &mut Value, more: Value) {
    if let (Value::Object(all), Value::Object(more)) = (json, more) {
        all.extend(more);
    }
}

fn hold_to_promises(
    context: &Context,
    variant: &Variant,
    program: PathBuf,
    promises: Vec<&'static Promise>,
) -> Result<Outcome> {
    let Variant { name, pin, .. } = variant;
    if !disk::exists(&program) {
        return Err(Error::usage(format!("there is no server `{}`", context.layout.show(&program)))
            .hint(build_command(name, DEFAULT_FLAVOR)));
    }
    context.file_of_espalier(SMOKE_MODEL)?;
    let checked = Checked { program: &program, tree: &context.layout.tree(name), pin };
    Ok(promises::outcome(&promises::look(context, checked, promises)?))
}

fn compare_suites(context: &Context, sides: &Sides<'_>, use_of: UseOfRecord) -> Result<Outcome> {
    let compared = suites::compare(context, sides, use_of)?;
    Ok(Outcome::ok(compared.summary(), json!({ "suites": compared.to_json() })))
}

/// Seeds of short fuzz rounds: tenants with a sliding window; retained slots, drafts from hidden states, choices and
/// boundaries with recurrent states; streams, slot files, resumable streams and drafts for an owner after others with
/// full attention, of the trained model; and a cache that cannot be paged. Of the states, two rounds have memory for
/// one snapshot, one for three, and one for as many as are useful.
const SEEDS: [u64; 10] = [17, 50, 213, 151, 120, 9, 12, 13, 14, 15];

/// Compares the servers' answers on one core, while attention (if wanted), the fuzzer of servers and the promises keep
/// another busy: each of them mostly computes with one thread. Whichever core is free first gets the fuzzer of requests:
/// its time limits are many times what its families take.
fn compare_servers_and_more(
    context: &Context,
    sides: &Sides<'_>,
    chosen: Chosen<'_>,
    with_attention: bool,
) -> Result<Vec<Outcome>> {
    let server = || context.layout.server(sides.variant, DEFAULT_FLAVOR);
    let is_whole = chosen.checks.is_empty();
    let (promises, others): (Vec<_>, Vec<_>) = servers::CHECKS.iter().partition(|check| check.is_promises());
    let (first, second): (&[_], &[_]) = if is_whole { (&others, &promises) } else { (chosen.checks, &[]) };
    let requests_are_due = AtomicBool::new(is_whole);
    let fuzz_requests = || match requests_are_due.swap(false, Ordering::Relaxed) {
        true => fuzz::requests::find_for_gate(context, server()),
        false => Ok(Vec::new()),
    };
    let answers = |checks| compare_answers(context, sides, Chosen { checks, ..chosen });
    let (compared, beside) = std::thread::scope(|threads| {
        let beside = threads.spawn(|| {
            let attention = with_attention.then(|| attention::compare(context, sides)).transpose()?;
            let seeds = if is_whole { &SEEDS[..] } else { &[] };
            let found = fuzz::find_with_seeds(context, server(), seeds)?;
            let kept = if is_whole { answers(second)? } else { servers::Compared::default() };
            Ok((attention, kept, [found, fuzz_requests()?].concat()))
        });
        let compared = answers(first);
        let compared = compared.and_then(|compared| Ok((compared, fuzz_requests()?)));
        (compared, result_of(beside))
    });
    let (attention, kept, found) = beside?;
    let (mut compared, found_by_requests) = compared?;
    compared.add(kept);
    compared.failures.extend(found.into_iter().chain(found_by_requests));
    if is_whole {
        compared.failures.extend(inputs::unlisted(&context.layout, sides.variant)?);
        compared.failures.extend(compared.too_many_ties());
    }
    let servers = outcome_of_servers(&compared, sides, is_whole)?;
    Ok(attention.into_iter().chain([servers]).collect())
}

fn compare_answers(context: &Context, sides: &Sides<'_>, chosen: Chosen<'_>) -> Result<servers::Compared> {
    let Sides { reference, variant, pin, claims, .. } = *sides;
    let server = |variant: &str| context.layout.server(variant, DEFAULT_FLAVOR);
    let off = if logits::most(claims, None) > 0.0 { Off::Near } else { Off::Identical };
    let options: Vec<String> = claims.iter().flat_map(|claim| claim.options.iter().cloned()).collect();
    let claimed = Claimed { off, attention: attention::most(claims), options: &options };
    let (stock, ours, tree) = (server(reference), server(variant), context.layout.tree(variant));
    servers::compare(context, Servers { stock, ours, tree, pin }, claimed, chosen)
}

fn outcome_of_servers(compared: &servers::Compared, sides: &Sides<'_>, is_whole: bool) -> Result<Outcome> {
    let Sides { reference, variant, .. } = *sides;
    if compared.failures.is_empty() && (compared.same > 0 || !is_whole) {
        let text = format!(
            "paged servers: {} answers token-identical to stock, {} diverged at a tie within tolerance (stock from itself: {})",
            compared.same, compared.ties, compared.stock
        );
        let missed = compared.not_reproduced.iter().map(|line| format!("promise not reproduced: {line}"));
        let text = std::iter::once(text).chain(missed).collect::<Vec<_>>().join("\n");
        return Ok(Outcome::ok(text, json!({ "servers": compared.to_json() })));
    }
    let what = format!(
        "the servers of {variant} and {reference} answer differently: {} answers the same, {} ties within tolerance, {} wrong",
        compared.same,
        compared.ties,
        compared.failures.len()
    );
    Err(Error::no(what).detail(compared.failures.join("\n")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::fuzz::plan::Round;
    use crate::fuzz::plan::server::ServerPlan;

    /// Otherwise the fuzzer finds nothing about them, whatever it plays.
    #[test]
    fn the_rounds_of_the_gate_use_windows_states_and_drafts_from_hidden_states() {
        let servers = SEEDS.map(|seed| Round::draw(seed).server);
        let expected: BTreeSet<_> = servers.iter().flat_map(ServerPlan::expected_events).collect();
        for event in [
            ("full attention", "tokens found in a cache"),
            ("sliding windows", "tokens found in a cache"),
            ("recurrent states", "snapshots restored"),
            ("recurrent states", "tokens drafted"),
        ] {
            assert!(expected.contains(&event), "{event:?}");
        }
        let budgets =
            |budget| servers.iter().filter(move |plan| plan.takes_snapshots() && plan.snapshots == budget);
        assert_eq!([None, Some(1), Some(3)].map(|budget| budgets(budget).count()), [1, 2, 1]);
    }
}
