//! Whether a flavor can be built on a machine: what is present, what is missing, and how to fix it.

use std::collections::BTreeMap;
use std::fmt;

use super::{Toolchain, Toolchains};
use crate::config::flavors::Flavor;
use crate::config::flavors::platform::Platform;
use crate::config::name::Name;
use crate::error::{Error, Result};

/// State of a toolchain on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It is set up in this folder, as displayed.
    SetUp(String),
    /// A program of the machine replaces it: its name, and the version that it reports.
    Own(String),
    /// It is missing.
    Absent,
}

/// Facts about a machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Its platform, if it is a known one.
    pub host: Option<Platform>,
    /// Requirements of every build: the name, and either where it was found or the command that installs it.
    pub basics: Vec<(String, std::result::Result<String, String>)>,
    /// State of each toolchain.
    pub toolchains: BTreeMap<Name, State>,
    /// Available package managers.
    pub managers: Vec<String>,
}

/// Returns the command that installs a requirement of every build, `C++ compiler` or `pip`, with the first known of
/// these package managers.
pub fn install_line(what: &str, managers: &[String]) -> String {
    let is_there = |(manager, ..): &&(&str, &str, &str)| managers.iter().any(|there| there == manager);
    let (_, compiler, pip) = INSTALL_LINES.iter().find(is_there).unwrap_or(&INSTALL_LINES[0]);
    (if what == "pip" { pip } else { compiler }).to_string()
}

const INSTALL_LINES: [(&str, &str, &str); 5] = [
    ("apt-get", "apt-get install g++", "apt-get install python3-pip"),
    ("dnf", "dnf install gcc-c++", "dnf install python3-pip"),
    ("pacman", "pacman -S gcc", "pacman -S python-pip"),
    ("brew", "xcode-select --install", "brew install python"),
    ("winget", "winget install Microsoft.VisualStudio.2022.BuildTools", "winget install Python.Python.3.13"),
];

/// Verdict on a flavor on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It can be built.
    Ready,
    /// Something is missing that can be installed.
    Missing,
    /// It is built on another machine.
    Elsewhere,
}

impl fmt::Display for Readiness {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Readiness::Ready => "ready",
            Readiness::Missing => "missing",
            Readiness::Elsewhere => "elsewhere",
        })
    }
}

/// One flavor on one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// Whether it can be built.
    pub verdict: Readiness,
    /// Requirements that are present.
    pub there: Vec<String>,
    /// Requirements that are missing, or the reason why it is built elsewhere.
    pub missing: Vec<String>,
    /// Commands that fix it, the most effective one first.
    pub fixes: Vec<String>,
}

/// Diagnoses one flavor.
///
/// # Errors
///
/// The flavor names an unknown toolchain.
pub fn diagnose(
    name: &Name,
    flavor: &Flavor,
    toolchains: &Toolchains,
    machine: &Machine,
) -> Result<Diagnosis> {
    let mut found = Diagnosis { verdict: Readiness::Ready, there: vec![], missing: vec![], fixes: vec![] };
    let named = |name| Ok::<_, Error>((name, toolchains.get(name)?));
    let toolchain = flavor.toolchain.as_ref().map(named).transpose()?;
    let is_native =
        flavor.platforms.is_empty() || machine.host.is_some_and(|host| flavor.platforms.contains(&host));
    let is_crossed = toolchain.is_some_and(|(_, toolchain)| toolchain.is_for(machine.host));
    if !is_native && !is_crossed {
        found.verdict = Readiness::Elsewhere;
        let platforms: Vec<&str> = flavor.platforms.iter().map(|platform| platform.as_str()).collect();
        found.missing.push(format!("it is built on {}", platforms.join(", ")));
        return Ok(found);
    }
    found.look_at_basics(machine);
    if let Some((toolchain_name, toolchain)) = toolchain {
        found.look_at_toolchain(name, toolchain_name, toolchain, machine);
        if let Some(device) = &toolchain.runs_on {
            found.look_at_device(name, device, toolchains.get(device)?, machine);
        }
    }
    Ok(found)
}

impl Diagnosis {
    fn look_at_basics(&mut self, machine: &Machine) {
        for (name, state) in &machine.basics {
            match state {
                // Requirements of every flavor are reported once, for the machine.
                Ok(_) => {}
                Err(fixes) => self.lacks(name.clone(), [fixes.clone()]),
            }
        }
    }

    fn look_at_toolchain(&mut self, flavor: &Name, name: &Name, toolchain: &Toolchain, machine: &Machine) {
        match machine.toolchains.get(name).unwrap_or(&State::Absent) {
            State::SetUp(folder) => self.there.push(format!("toolchain {name}: {folder}")),
            State::Own(program) => self.there.push(format!("toolchain {name}: this machine's {program}")),
            State::Absent if toolchain.is_for(machine.host) => {
                let size = toolchain.download_bytes() as f64 / 1e6;
                let what = format!("toolchain {name}: {size:.0} MB to download");
                self.lacks(what, [format!("cargo xtask toolchain {flavor}")]);
            }
            State::Absent => {
                let hints = toolchain.install_hints(|manager| machine.managers.iter().any(|m| m == manager));
                self.lacks(format!("toolchain {name}: {}", toolchain.about), hints);
            }
        }
    }

    /// Without the device the flavor can still be built, but not run here.
    fn look_at_device(&mut self, flavor: &Name, name: &Name, device: &Toolchain, machine: &Machine) {
        let what = format!("to run it, {name}: {}", device.about);
        match machine.toolchains.get(name).unwrap_or(&State::Absent) {
            State::Absent if device.is_for(machine.host) => {
                self.missing.push(what);
                let fixes = format!("cargo xtask toolchain {flavor}");
                if !self.fixes.contains(&fixes) {
                    self.fixes.push(fixes);
                }
            }
            State::Absent => self.missing.push(what),
            State::SetUp(_) | State::Own(_) => self.there.push(what),
        }
    }

    fn lacks(&mut self, what: String, fixes: impl IntoIterator<Item = String>) {
        self.verdict = Readiness::Missing;
        self.missing.push(what);
        self.fixes.extend(fixes);
    }
}

#[cfg(test)]
mod tests {
    use super::{Diagnosis, Machine, Readiness, State, diagnose};
    use crate::config::flavors::platform::Platform;
    use crate::config::flavors::{Flavors, NamedFlavor};
    use crate::config::name::Name;
    use crate::config::snippet::SourceText;
    use crate::config::toolchains::Toolchains;

    const FLAVORS: &str = "programs = []\ncmake = {}\n\
        [flavors.cpu]\nabout = \"x\"\n\
        [flavors.gpu]\nabout = \"x\"\nplatforms = [\"linux-x86_64\"]\ntoolchain = \"gpu\"\n\
        [flavors.arm]\nabout = \"x\"\nplatforms = [\"linux-aarch64\"]\ntoolchain = \"cross\"\n\
        [flavors.icpx]\nabout = \"x\"\ntoolchain = \"icpx\"\n\
        [flavors.metal]\nabout = \"x\"\nplatforms = [\"macos-aarch64\"]\n";

    fn toolchains() -> Toolchains {
        let package =
            format!("{{ name = \"p\", version = \"1\", bytes = 2000000, sha256 = \"{}\" }}", "ab".repeat(32));
        let text = format!(
            "[toolchains.gpu]\nabout = \"x\"\nhosts = [\"linux-x86_64\"]\nwheels = [{package}]\nruns-on = \"soft\"\n\
             [toolchains.soft]\nabout = \"a device in software\"\nhosts = [\"linux-x86_64\"]\ndebs = [{package}]\n\
             [toolchains.cross]\nabout = \"x\"\nhosts = [\"linux-x86_64\"]\ndebs = [{package}]\n\
             [toolchains.icpx]\nabout = \"a compiler for SYCL\"\nown = {{ program = \"icpx\" }}\n\
             install = {{ apt-get = \"apt-get install icpx\" }}\n"
        );
        Toolchains::parse(SourceText { name: "ci/toolchains.toml", text: &text }).unwrap()
    }

    fn machine(toolchains: &[(&str, State)]) -> Machine {
        let name = |name: &str| Name::new(name).unwrap();
        Machine {
            host: Some(Platform::LinuxX86),
            basics: vec![("C++ compiler".to_string(), Ok("g++ 12".to_string()))],
            toolchains: toolchains.iter().map(|(key, state)| (name(key), state.clone())).collect(),
            managers: vec!["apt-get".to_string()],
        }
    }

    fn look(flavor: &str, machine: &Machine) -> Diagnosis {
        let flavors = Flavors::parse(SourceText { name: "ci/flavors.toml", text: FLAVORS }).unwrap();
        let NamedFlavor { name, entry } = flavors.get(flavor).unwrap();
        diagnose(name, entry, &toolchains(), machine).unwrap()
    }

    #[test]
    fn a_flavor_of_the_machines_own_compiler() {
        let mut machine = machine(&[]);
        assert_eq!((look("cpu", &machine).verdict, look("cpu", &machine).there.len()), (Readiness::Ready, 0));
        machine.basics[0].1 = Err("apt-get install g++".to_string());
        let found = look("cpu", &machine);
        assert_eq!(
            (found.verdict, &found.fixes[..]),
            (Readiness::Missing, &["apt-get install g++".to_string()][..])
        );
    }

    #[test]
    fn a_toolchain_that_can_be_set_up() {
        let found = look("gpu", &machine(&[]));
        assert_eq!(found.verdict, Readiness::Missing);
        assert_eq!(
            found.missing,
            ["toolchain gpu: 2 MB to download", "to run it, soft: a device in software"]
        );
        assert_eq!(found.fixes, ["cargo xtask toolchain gpu"]);
        let set_up = || State::SetUp("target/toolchains/x".to_string());
        let found = look("gpu", &machine(&[("gpu", set_up())]));
        assert_eq!(found.verdict, Readiness::Ready, "a device is not needed to build");
        assert_eq!(found.fixes, ["cargo xtask toolchain gpu"]);
        let found =
            look("gpu", &machine(&[("gpu", State::Own("nvcc 13.1".to_string())), ("soft", set_up())]));
        assert_eq!((found.verdict, found.missing.len(), found.fixes.len()), (Readiness::Ready, 0, 0));
        assert!(found.there.contains(&"toolchain gpu: this machine's nvcc 13.1".to_string()));
    }

    #[test]
    fn a_toolchain_that_a_person_has_to_install() {
        let found = look("icpx", &machine(&[]));
        assert_eq!(found.missing, ["toolchain icpx: a compiler for SYCL"]);
        assert_eq!(found.fixes, ["apt-get install icpx"]);
    }

    #[test]
    fn flavors_of_other_machines() {
        let found = look("metal", &machine(&[]));
        assert_eq!(
            (found.verdict, &found.missing[..]),
            (Readiness::Elsewhere, &["it is built on macos-aarch64".to_string()][..])
        );
        assert_eq!(look("arm", &machine(&[])).verdict, Readiness::Missing, "it is crossed here");
    }
}
