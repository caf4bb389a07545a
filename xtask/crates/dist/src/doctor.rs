//! `cargo xtask doctor`: the flavors that this machine can build, what is missing, and how to install it.

use std::collections::BTreeMap;

use clap::Args;
use espalier_core::config::flavors::platform::Platform;
use espalier_core::config::name::Name;
use espalier_core::config::toolchains::Toolchains;
use espalier_core::config::toolchains::diagnosis::{Diagnosis, Machine, Readiness, diagnose, install_line};
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::sys::machine::{disk, tools};
use espalier_core::ui;
use serde_json::{Value, json};

use crate::sys::{compilers, toolchain};

/// Options of `doctor`.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// Flavor of `ci/flavors.toml`; exit code 1 if it cannot be built.
    #[arg(value_name = "FLAVOR")]
    pub flavor: Option<Name>,
}

/// Inspects the machine and changes nothing. Exits with 1 when the requested flavor cannot be built.
///
/// # Errors
///
/// There is no such flavor, or a file of the project is malformed.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let toolchains = context.toolchains()?;
    let flavors = match &options.flavor {
        None => context.flavors_if_there()?.unwrap_or_default(),
        Some(asked) => {
            let flavors = context.flavors()?;
            flavors.get(asked)?;
            flavors
        }
    };
    let machine = look_around(context, &toolchains)?;
    let is_asked = |name: &Name| options.flavor.as_ref().is_none_or(|asked| asked == name);
    let mut found = BTreeMap::new();
    for (name, flavor) in flavors.flavors.iter().filter(|(name, _)| is_asked(name)) {
        found.insert(name, diagnose(name, flavor, &toolchains, &machine)?);
    }
    let is_no = options.flavor.is_some() && found.values().any(|found| found.verdict != Readiness::Ready);
    let texts = found.iter().map(|(name, found)| as_text(name, found));
    let none = flavors.flavors.is_empty().then(|| NO_FLAVORS.to_string());
    let npm = disk::find_program("npm");
    let lacks = npm.is_none().then(|| format!("  lacks    npm: {WITHOUT_NPM}"));
    let lines = std::iter::once(about(&machine)).chain(lacks).chain(texts).chain(none);
    let text = lines.collect::<Vec<_>>().join("\n");
    let flavors: BTreeMap<_, _> = found.iter().map(|(name, found)| (name.as_str(), as_json(found))).collect();
    Ok(Outcome {
        text,
        json: json!({
            "host": host(&machine), "basics": basics(&machine), "npm": npm.is_some(), "flavors": flavors,
        }),
        code: u8::from(is_no),
    })
}

const NO_FLAVORS: &str = "no flavors: this project has no `ci/flavors.toml`, and builds nothing";

/// No flavor needs npm; this is the consequence of its absence.
const WITHOUT_NPM: &str =
    "builds have no chat page at `/`, and upstream can be fetched from its git host only";

/// Package managers for which a toolchain may list the packages that need root to install.
const MANAGERS: [&str; 5] = ["apt-get", "dnf", "pacman", "brew", "winget"];

/// Collects the facts about this machine.
pub fn look_around(context: &Context, toolchains: &Toolchains) -> Result<Machine> {
    let managers: Vec<String> =
        MANAGERS.into_iter().filter(|name| disk::find_program(name).is_some()).map(String::from).collect();
    let compiler = match compilers::compilers() {
        Ok(found) => Ok(found.version),
        Err(error) => Err(match std::env::var("CXX").or_else(|_| std::env::var("CC")) {
            Ok(_) => format!("unset CC CXX    # {}", error.what),
            Err(_) => install_line("C++ compiler", &managers),
        }),
    };
    let mut basics = vec![("C++ compiler".to_string(), compiler)];
    for tool in context.pins()?.tools.values().filter(|tool| matches!(tool.name.as_str(), "cmake" | "ninja"))
    {
        let state = tools::look(tool, &context.layout).map_err(|_| install_line("pip", &managers));
        basics.push((tool.name.to_string(), state));
    }
    let state = |(name, entry): (&Name, _)| (name.clone(), toolchain::state(name, entry, &context.layout));
    Ok(Machine {
        host: Platform::of_this_machine(),
        basics,
        toolchains: toolchains.toolchains.iter().map(state).collect(),
        managers,
    })
}

/// Returns the tools that every build needs and that this machine has.
fn basics(machine: &Machine) -> BTreeMap<&str, &str> {
    let there = machine.basics.iter().filter_map(|(name, state)| Some((name, state.as_ref().ok()?)));
    there.map(|(name, from)| (name.as_str(), from.as_str())).collect()
}

fn host(machine: &Machine) -> &str {
    machine.host.map_or("unknown", Platform::as_str)
}

fn about(machine: &Machine) -> String {
    let there = basics(machine).into_iter().map(|(name, from)| format!("  there    {name}: {from}"));
    std::iter::once(format!("this machine: {}", host(machine))).chain(there).collect::<Vec<_>>().join("\n")
}

fn as_text(name: &Name, found: &Diagnosis) -> String {
    let there = found.there.iter().map(|line| format!("  there    {line}"));
    let missing = found.missing.iter().map(|line| format!("  missing  {line}"));
    let fixes = found.fixes.iter().map(|line| format!("  next: {line}"));
    let head = format!("{name}: {}", found.verdict);
    std::iter::once(head).chain(there).chain(missing).chain(fixes).collect::<Vec<_>>().join("\n")
}

fn as_json(found: &Diagnosis) -> Value {
    json!({
        "verdict": found.verdict.to_string(),
        "there": found.there,
        "missing": found.missing,
        "fix": found.fixes.iter().map(|fix| ui::hint(fix)).collect::<Vec<_>>(),
    })
}
