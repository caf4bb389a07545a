//! `cargo xtask doctor`: the flavors that this machine can build, what is missing, and how to install it.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use espalier_core::config::flavors::platform::Platform;
use espalier_core::config::name::Name;
use espalier_core::config::pins::{Pins, Source};
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
    let pins = context.pins()?;
    let npm = disk::find_program("npm").is_some();
    // Starts Python, so only if a source needs it.
    let pip = without(&pins, "pip").is_none() || tools::has_pip();
    let lacks = lacks(&pins, npm, pip);
    let lines = std::iter::once(about(&machine)).chain(lacks).chain(texts).chain(none);
    let text = lines.collect::<Vec<_>>().join("\n");
    let flavors: BTreeMap<_, _> = found.iter().map(|(name, found)| (name.as_str(), as_json(found))).collect();
    Ok(Outcome {
        text,
        json: json!({
            "host": host(&machine), "basics": basics(&machine), "npm": npm, "flavors": flavors,
        }),
        code: u8::from(is_no),
    })
}

const NO_FLAVORS: &str = "no flavors: this project has no `ci/flavors.toml`, and builds nothing";

/// Returns a line for each client of a registry that this machine lacks, with the consequences. No flavor needs one.
fn lacks(pins: &Pins, has_npm: bool, has_pip: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if !has_npm {
        let page = "builds have no chat page at `/`".to_string();
        let consequences: Vec<String> = std::iter::once(page).chain(without(pins, "npm")).collect();
        lines.push(format!("  lacks    npm: {}", consequences.join(", and ")));
    }
    if let Some(consequence) = without(pins, "pip").filter(|_| !has_pip) {
        lines.push(format!("  lacks    pip: {consequence}"));
    }
    lines
}

/// Returns the consequence for fetching upstream if `client` is missing; `None` if no source needs it.
fn without(pins: &Pins, client: &str) -> Option<String> {
    let sources = pins.pins.values().flat_map(|pin| &pin.sources);
    let names = sources.filter_map(|source| match source {
        Source::Package(package) if package.client() == client => Some(package.name.as_str()),
        _ => None,
    });
    let names: BTreeSet<&str> = names.collect();
    let names: Vec<&str> = names.into_iter().collect();
    (!names.is_empty()).then(|| format!("upstream cannot be fetched from {client} {}", names.join(", ")))
}

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

#[cfg(test)]
mod tests {
    use espalier_core::config::snippet::SourceText;

    use super::*;

    #[test]
    fn a_missing_client_is_reported_with_its_consequences() {
        let lines = |sources: &str, npm: bool, pip: bool| {
            let text = format!(
                "default-variant = \"a\"\n[pins.a]\nupstream = \"u\"\ntag = \"v1\"\ntree = \"{}\"\n\
                 sources = [{sources}]\n[variants.a]\npin = \"a\"\n",
                "1".repeat(40)
            );
            let pins = Pins::parse(SourceText { name: "pins.toml", text: &text }).unwrap();
            lacks(&pins, npm, pip)
        };
        let digest = "ab".repeat(32);
        let package = "member = \"m\", versions = { \"v1\" = \"1.0\" }";
        let both = format!(
            "{{ npm = \"n\", {package} }}, {{ pip = \"p\", {package}, sha256 = {{ \"1.0\" = \"{digest}\" }} }}"
        );
        let page = "  lacks    npm: builds have no chat page at `/`";
        assert_eq!(lines("", false, false), [page]);
        assert_eq!(lines(&both, true, true), [""; 0]);
        assert_eq!(
            lines(&both, false, false),
            [
                &*format!("{page}, and upstream cannot be fetched from npm n"),
                "  lacks    pip: upstream cannot be fetched from pip p",
            ]
        );
    }
}
