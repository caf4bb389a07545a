//! `cargo xtask toolchain`: installs what a flavor is compiled with, and what it runs on here.

use clap::Args;
use espalier_core::config::flavors::platform::Platform;
use espalier_core::config::name::Name;
use espalier_core::config::toolchains::diagnosis::State;
use espalier_core::config::toolchains::{Toolchain, Toolchains};
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::run_lock::{self, Access};
use serde_json::{Value, json};

use crate::sys::toolchain;

/// Options of `toolchain`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Flavor of `ci/flavors.toml`.
    #[arg(value_name = "FLAVOR")]
    pub flavor: Name,
    /// Leave out the software device or emulator that runs it here.
    #[arg(long)]
    pub build_only: bool,
    /// Print what would be done.
    #[arg(long)]
    pub dry_run: bool,
}

/// Installs the toolchain of a flavor; parts that are already installed cost nothing.
///
/// # Errors
///
/// There is no such flavor, or its toolchain cannot be installed on this machine: then no part of it is left there.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let toolchains = context.toolchains()?;
    let flavors = context.flavors()?;
    let Some(name) = &flavors.get(&options.flavor)?.entry.toolchain else {
        let text = format!("{} needs no toolchain: the machine's own compilers build it", options.flavor);
        return Ok(Outcome::ok(text, json!({ "toolchains": [] })));
    };
    let wanted = wanted(context, &toolchains, name, options.build_only)?;
    if options.dry_run {
        return plan(context, &wanted);
    }
    let _lock = run_lock::take(&context.layout, &context.ui, Access::Build)?;
    let pins = context.pins()?;
    let setup = toolchain::SetupContext::of(context, &pins);
    let (mut lines, mut entries) = (Vec::new(), Vec::new());
    for (name, entry) in wanted {
        let state = toolchain::state(name, entry, &context.layout);
        if let (State::Own(program), true) = (&state, entry.hosts.is_empty()) {
            lines.push(format!("{name} already there: this machine's {program}"));
            entries.push(json!({ "name": name, "how": "this machine's own", "program": program }));
            continue;
        }
        let folder = toolchain::provide(name, entry, setup)?;
        let how = if matches!(state, State::SetUp(_)) { "already there" } else { "set up" };
        let (shown, bytes) = (context.layout.show(&folder), disk::size_below(&folder));
        lines.push(format!("{name} {how}: {shown}, {:.0} MB", bytes as f64 / 1e6));
        entries.push(json!({ "name": name, "folder": shown, "bytes": bytes, "how": how }));
    }
    Ok(Outcome::ok(lines.join("\n"), json!({ "toolchains": entries })))
}

type Wanted<'a> = Vec<(&'a Name, &'a Toolchain)>;

/// Returns the toolchain called `name`, and the one that contains its device where that can be installed here.
fn wanted<'a>(
    context: &Context,
    all: &'a Toolchains,
    name: &'a Name,
    build_only: bool,
) -> Result<Wanted<'a>> {
    let first = all.get(name)?;
    let mut wanted = vec![(name, first)];
    if let Some(device) = first.runs_on.as_ref().filter(|_| !build_only) {
        let entry = all.get(device)?;
        match entry.is_for(Platform::of_this_machine()) {
            true => wanted.push((device, entry)),
            false => context
                .ui
                .warn(format!("{device} cannot be set up on this machine, so {name} will not run here")),
        }
    }
    Ok(wanted)
}

/// Returns what a run would do; fails wherever a run would fail.
fn plan(context: &Context, wanted: &Wanted<'_>) -> Result<Outcome> {
    let (mut lines, mut entries) = (Vec::new(), Vec::new());
    for (name, entry) in wanted {
        let state = toolchain::state(name, entry, &context.layout);
        if let (State::Own(program), true) = (&state, entry.hosts.is_empty()) {
            lines.push(format!("{name}: already there: this machine's {program}"));
            continue;
        }
        let folder = context.layout.show(&toolchain::place(name, entry, &context.layout));
        let is_there = toolchain::is_there(name, entry, &context.layout);
        if !is_there {
            toolchain::refuse_where_impossible(name, entry, context.offline)?;
        }
        let steps: Vec<String> =
            if is_there { vec![] } else { entry.steps().iter().map(ToString::to_string).collect() };
        lines.push(format!("{name}, {folder}{}", if is_there { ": already there" } else { "" }));
        lines.extend(steps.iter().map(|step| format!("  {step}")));
        let download = if is_there { 0 } else { entry.download_bytes() };
        entries.push(json!({ "name": name, "folder": folder, "download_bytes": download, "steps": steps }));
    }
    Ok(Outcome::ok(lines.join("\n"), Value::from_iter([("toolchains", Value::from(entries))])))
}
