//! Toolchains and devices of a flavor for which the machine's own compilers and processor are not enough.

use std::collections::BTreeMap;
use std::path::Path;

use espalier_core::config::flavors::platform::Platform;
use espalier_core::config::flavors::{Flavor, Flavors, NamedFlavor};
use espalier_core::config::name::Name;
use espalier_core::config::toolchains::diagnosis::State;
use espalier_core::config::toolchains::{Toolchain, Toolchains};
use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::process::Run;

use crate::sys::toolchain;

/// The contribution of a flavor's toolchains to a build; empty if the machine's own compilers suffice.
#[derive(Clone, Debug, Default)]
pub struct Equipment {
    /// CMake cache entries, with the folders of this machine in them.
    pub cmake: BTreeMap<String, String>,
    /// Environment of the cargo that builds the libraries of Rust.
    pub cargo: BTreeMap<String, String>,
    /// Names of the toolchains' folders, which have the digests of all that is in them.
    pub toolchains: Vec<String>,
}

/// The device on which a flavor's programs run.
#[derive(Clone, Debug, Default)]
pub struct Device {
    environment: BTreeMap<String, String>,
    runner: Vec<String>,
}

impl Device {
    /// Returns a call of `program` on this device.
    #[must_use]
    pub fn run(&self, program: &Path) -> Run {
        let words: Vec<&Path> = self.runner.iter().map(Path::new).chain([program]).collect();
        let run = Run::new(words[0]).args(&words[1..]);
        self.environment.iter().fold(run, |run, (key, value)| run.env(key, value))
    }
}

/// Checks that `flavor` can be compiled here, natively or by a cross toolchain.
///
/// # Errors
///
/// Environment error: the flavor is built on another platform.
pub fn demand_platform(context: &Context, flavors: &Flavors, flavor: NamedFlavor<'_>) -> Result<()> {
    let NamedFlavor { name, entry: flavor } = flavor;
    let Some(here) = Platform::of_this_machine() else { return Ok(()) };
    let all = context.toolchains()?;
    let is_crossed = |(_, toolchain): &(&Name, &Toolchain)| toolchain.is_for(Some(here));
    if flavor.is_for(here) || named(&all, flavors, flavor)?.iter().any(is_crossed) {
        return Ok(());
    }
    let wanted: Vec<&str> = flavor.platforms.iter().map(|platform| platform.as_str()).collect();
    let what = format!("the flavor `{name}` is built on {}, and this is {here}", wanted.join(" or "));
    Err(Error::environment(what).hint("run it there, or build the one for this machine: --flavor cpu-native"))
}

/// Returns the equipment that `flavor` is compiled with.
///
/// # Errors
///
/// Environment error: a toolchain is not set up, and the machine has no substitute.
pub fn equipment(context: &Context, flavors: &Flavors, flavor: NamedFlavor<'_>) -> Result<Equipment> {
    let NamedFlavor { name, entry: flavor } = flavor;
    let all = context.toolchains()?;
    let mut equipment = Equipment::default();
    for (toolchain, entry) in named(&all, flavors, flavor)? {
        match toolchain::state(toolchain, entry, &context.layout) {
            State::SetUp(_) => equipment.add(context, toolchain, entry),
            State::Own(_) => {}
            State::Absent => {
                let what = format!("the flavor `{name}` needs the toolchain `{toolchain}`: {}", entry.about);
                return Err(Error::environment(what)
                    .hint(format!("cargo xtask toolchain {name}"))
                    .hint(format!("or see what is there and what is not: cargo xtask doctor {name}")));
            }
        }
    }
    Ok(equipment)
}

impl Equipment {
    fn add(&mut self, context: &Context, name: &Name, toolchain: &Toolchain) {
        let folder = toolchain::place(name, toolchain, &context.layout);
        let shown = folder.display().to_string();
        self.cmake.extend(Toolchain::in_folder(&toolchain.cmake, &shown));
        self.cargo.extend(Toolchain::in_folder(&toolchain.cargo, &shown));
        self.toolchains.extend(folder.file_name().map(|name| name.to_string_lossy().into_owned()));
    }
}

/// Returns everything that determines the content of the toolchains of `flavor`, as text by name.
///
/// # Errors
///
/// Usage error: there is no such toolchain.
pub fn recipes(context: &Context, flavors: &Flavors, flavor: &Flavor) -> Result<BTreeMap<String, String>> {
    let all = context.toolchains()?;
    let named = named(&all, flavors, flavor)?;
    Ok(named.into_iter().map(|(name, toolchain)| (name.to_string(), toolchain.recipe())).collect())
}

/// Returns the device of `flavor`: the machine itself, unless an emulator or device was set up.
///
/// # Errors
///
/// Usage error: the flavor names a toolchain that does not exist.
pub fn device(context: &Context, flavors: &Flavors, flavor: &Flavor) -> Result<Device> {
    let all = context.toolchains()?;
    let mut device = Device::default();
    for (_, toolchain) in named(&all, flavors, flavor)? {
        let Some(name) = &toolchain.runs_on else { continue };
        let entry = all.get(name)?;
        if toolchain::is_there(name, entry, &context.layout) {
            let folder = toolchain::place(name, entry, &context.layout).display().to_string();
            device.environment.extend(Toolchain::in_folder(&entry.environment, &folder));
            device.runner = entry.runner_in(&folder);
        }
    }
    Ok(device)
}

/// Returns the toolchains of a flavor's host and its own, in this order.
fn named<'a>(
    all: &'a Toolchains,
    flavors: &'a Flavors,
    flavor: &'a Flavor,
) -> Result<Vec<(&'a Name, &'a Toolchain)>> {
    let host = flavors.host(flavor).and_then(|host| host.entry.toolchain.as_ref());
    host.into_iter().chain(&flavor.toolchain).map(|name| Ok((name, all.get(name)?))).collect()
}
