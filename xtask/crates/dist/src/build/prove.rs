//! `cargo xtask build --record`: records the result of a build from scratch under `ci/proofs/`.

use std::path::Path;
use std::time::Instant;

use espalier_core::config::flavors::platform::Platform;
use espalier_core::config::proof::{Level, Proof};
use espalier_core::context::Outcome;
use espalier_core::day::day;
use espalier_core::error::{Error, Result};
use espalier_core::sys::git::store::Store;
use espalier_core::sys::machine::{clock, disk, load, owned};
use espalier_core::sys::net::server::without_user_config;
use espalier_core::ui;
use espalier_patches::apply::{self, Applied};

use super::Build;
use crate::equipment;
use crate::plan::devices;
use crate::sys::package;

/// Builds from an empty folder and writes the proof. The caller holds the run lock.
///
/// # Errors
///
/// Those of the build; nothing is recorded then.
pub fn run(build: &Build<'_>, store: &Store, applied: &Applied) -> Result<Outcome> {
    if let Some((flavor, options)) = build.host() {
        Build { options: &options, flavor, ..*build }.build(store, applied)?;
    }
    for folder in [build.build_folder(), build.package_folder()] {
        owned::remove_folder(&folder)?;
    }
    // Steps that are done once for all flavors do not count towards the time of this one.
    apply::materialise(build.context, store, build.pins, build.variant, applied)?;
    build.make_page()?;
    let (begin, processor) = (Instant::now(), clock::seconds_of_programs());
    let outcome = if build.options.configure_only {
        build.prepare(store, applied)?;
        Outcome::ok(String::new(), serde_json::Value::Null)
    } else {
        build.build(store, applied)?
    };
    let mut proof = proof(build, applied)?;
    proof.seconds = begin.elapsed().as_secs();
    proof.processor_seconds = (clock::seconds_of_programs() - processor).round() as u64;
    let path = build.context.layout.proofs().join(format!("{}-{}.json", proof.flavor, proof.variant));
    disk::write_atomically(&path, proof.text().as_bytes())?;
    let says = format!("{}: {} in {}", build.name(), proof.level.as_str(), build.context.layout.show(&path));
    build.context.ui.status("Recorded", says);
    Ok(outcome)
}

/// Returns the proof without its times.
fn proof(build: &Build<'_>, applied: &Applied) -> Result<Proof> {
    let flavor = build.flavor.entry;
    let package = build.package_folder();
    let family = flavor.family.as_ref().and_then(|family| build.flavors.families.get(family.get_ref()));
    let entries = build.cache_entries()?;
    let architectures = family.and_then(|family| entries.get(&family.option)).cloned().unwrap_or_default();
    Ok(Proof {
        flavor: build.flavor.name.clone(),
        variant: build.variant.name.clone(),
        level: level(build)?,
        command: command(build),
        date: day(i64::try_from(clock::now()).unwrap_or(i64::MAX)),
        pin: applied.pin.revision.to_string(),
        tree: applied.tree.to_string(),
        platform: Platform::of_this_machine()
            .ok_or_else(|| Error::environment("no flavor is for this machine"))?,
        cores: load::cores(),
        seconds: 0,
        processor_seconds: 0,
        bytes: bytes_of(&package, |_| true)?,
        module_bytes: bytes_of(&package, |file| package::is_one_of(file, &flavor.modules))?,
        compiler: build.compilers()?.version,
        architectures: architectures.replace(';', ", "),
    })
}

fn level(build: &Build<'_>) -> Result<Level> {
    let options = build.options;
    Ok(match (options.configure_only, options.no_smoke) {
        (true, _) => Level::Configured,
        (false, true) => Level::Compiled,
        (false, false) if has_device(build)? => Level::Run,
        (false, false) => {
            let what = format!("{} answered, on this machine's processor", build.name());
            build.context.ui.warn(format!("{what}: it finds no device of its own, so it counts as compiled"));
            Level::Compiled
        }
    })
}

/// Whether the module of an accelerator finds a device: without one, its server runs on the processor.
fn has_device(build: &Build<'_>) -> Result<bool> {
    let flavor = build.flavor.entry;
    if flavor.host.is_none() {
        return Ok(true);
    }
    let device = equipment::device(build.context, build.flavors, flavor)?;
    let server = build.context.layout.server(&build.variant.name, build.flavor.name);
    let stdout = without_user_config(device.run(&server).arg("--list-devices")).success()?;
    Ok(devices::names(&espalier_series::lossy(&stdout)).next().is_some())
}

/// Returns the command that reproduces the build.
fn command(build: &Build<'_>) -> String {
    let Build { options, variant, flavor, .. } = build;
    let (variant, flavor) = (&variant.name, flavor.name);
    let mut command = format!("cargo xtask build --record --variant {variant} --flavor {flavor}");
    if !options.architectures.is_empty() {
        command += &format!(" --architectures {}", options.architectures.join(","));
    }
    for (is_set, flag) in [(options.configure_only, " --configure-only"), (options.no_smoke, " --no-smoke")] {
        command += if is_set { flag } else { "" };
    }
    ui::named_hint(&command)
}

fn bytes_of(package: &Path, wanted: impl Fn(&Path) -> bool) -> Result<u64> {
    if !disk::exists(package) {
        return Ok(0);
    }
    let files = disk::files_below(package)?.into_iter().filter(|file| wanted(file));
    files.map(|file| disk::size(&package.join(file))).sum()
}
