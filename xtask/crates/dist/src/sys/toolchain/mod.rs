//! Compilers and device libraries from pinned packages, under `target/toolchains/`, without root.
//!
//! A toolchain is assembled in a scratch folder there and renamed into place, so that one that exists is complete.

mod arrange;
mod compile;
mod crates;
mod debs;
mod files;
mod unpack;
mod wheels;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use espalier_core::config::flavors::platform::Platform;
use espalier_core::config::layout::Layout;
use espalier_core::config::name::Name;
use espalier_core::config::pins::{Pins, Tool, Version};
use espalier_core::config::toolchains::diagnosis::State;
use espalier_core::config::toolchains::{Own, Package, Step, Toolchain};
use espalier_core::config::words::Inside;
use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::process::Run;
use espalier_core::sys::machine::{disk, owned};
use espalier_core::ui::Ui;

/// The context for setting up a toolchain.
#[derive(Clone, Copy)]
pub struct SetupContext<'a> {
    /// Paths of the project.
    pub layout: &'a Layout,
    /// CMake and Ninja, for toolchains of which a part is compiled.
    pub tools: &'a BTreeMap<Name, Tool>,
    /// The network is forbidden.
    pub offline: bool,
    /// Output for status lines and progress.
    pub ui: &'a Ui,
}

impl<'a> SetupContext<'a> {
    /// The context of a command.
    pub fn of(context: &'a Context, pins: &'a Pins) -> SetupContext<'a> {
        let Context { layout, offline, ui, .. } = context;
        SetupContext { layout, tools: &pins.tools, offline: *offline, ui }
    }
}

/// A client that prints nothing and whose folder does not grow for this long is killed.
const PATIENCE: Duration = Duration::from_secs(180);

/// Returns the folder of `toolchain`, whether or not it is set up.
pub fn place(name: &Name, toolchain: &Toolchain, layout: &Layout) -> PathBuf {
    let digest = disk::sha256(toolchain.contents().as_bytes());
    layout.toolchains().join(format!("{name}-{}", &digest[..16]))
}

/// Whether `toolchain` is set up.
pub fn is_there(name: &Name, toolchain: &Toolchain, layout: &Layout) -> bool {
    let folder = place(name, toolchain, layout);
    disk::exists(&folder) && missing_program(&toolchain.programs, &folder).is_none()
}

/// Returns the state of `toolchain` on this machine.
pub fn state(name: &Name, toolchain: &Toolchain, layout: &Layout) -> State {
    if is_there(name, toolchain, layout) {
        return State::SetUp(layout.show(&place(name, toolchain, layout)));
    }
    toolchain.own.as_ref().and_then(own).map_or(State::Absent, State::Own)
}

/// Returns the machine's own program that can be used instead, with the version that it reports.
fn own(own: &Own) -> Option<String> {
    let program = disk::find_program(own.program.as_str())?;
    let finished = Run::new(program).arg("--version").finish().ok()?;
    let stdout = espalier_series::lossy(&finished.stdout).into_owned();
    let version = Version::find_in(&stdout).map_or_else(String::new, |version| format!(" {version}"));
    (finished.status.success() && own.does(&stdout)).then(|| format!("{}{version}", own.program))
}

fn missing_program<'a>(programs: &'a [Inside], folder: &Path) -> Option<&'a Inside> {
    programs.iter().find(|program| !disk::is_program(&folder.join(program.as_str())))
}

/// Returns the folder of `toolchain`, set up first if necessary; requires the run lock.
///
/// # Errors
///
/// Its packages are for another machine, cannot be downloaded, or are not the pinned ones: then nothing of it is left
/// behind.
pub fn provide(name: &Name, toolchain: &Toolchain, setup: SetupContext<'_>) -> Result<PathBuf> {
    let SetupContext { layout, offline, ui, .. } = setup;
    let folder = place(name, toolchain, layout);
    if is_there(name, toolchain, layout) {
        return Ok(folder);
    }
    refuse_where_impossible(name, toolchain, offline)?;
    ui.status("Setting up", format!("the toolchain {name}, under {}", layout.show(&folder)));
    owned::claim_toolchains(layout)?;
    let scratches = layout.toolchains().join("tmp");
    // The run lock is exclusive, so these are leftovers of a killed run.
    owned::remove_folder(&scratches)?;
    let scratch = disk::scratch_folder(&scratches, "toolchain")?;
    let whole = scratch.path().join("whole");
    disk::create_folder(&whole)?;
    let work = Work { name, scratch: scratch.path(), folder: &whole, setup };
    for step in toolchain.steps() {
        work.carry_out(&step).map_err(|error| advise(disk::blame_full_disk(&scratches, error), toolchain))?;
    }
    owned::remove_folder(&folder)?;
    owned::rename(&whole, &folder)?;
    Ok(folder)
}

/// Returns an error unless `toolchain` can be set up on this machine.
pub fn refuse_where_impossible(name: &Name, toolchain: &Toolchain, offline: bool) -> Result<()> {
    if !toolchain.is_for(Platform::of_this_machine()) {
        let hosts: Vec<&str> = toolchain.hosts.iter().map(|host| host.as_str()).collect();
        let here = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
        let packages = match hosts.is_empty() {
            true => "has no packages that could be set up without root".to_string(),
            false => format!("is for {}, and this machine is {here}", hosts.join(", ")),
        };
        return Err(advise(Error::environment(format!("the toolchain `{name}` {packages}")), toolchain));
    }
    if offline {
        let what = format!("the toolchain `{name}` is not set up, and `--offline` prevents downloading it");
        return Err(Error::environment(what).hint("run once without `--offline`"));
    }
    Ok(())
}

/// Returns `error` with a hint on what to install instead.
fn advise(error: Error, toolchain: &Toolchain) -> Error {
    let hints = toolchain.install_hints(|manager| disk::find_program(manager).is_some());
    hints.into_iter().fold(error, Error::hint)
}

/// One toolchain that is being assembled.
struct Work<'a> {
    name: &'a Name,
    /// Folder for downloads and compilation.
    scratch: &'a Path,
    /// Folder that becomes the toolchain.
    folder: &'a Path,
    setup: SetupContext<'a>,
}

impl Work<'_> {
    fn carry_out(&self, step: &Step<'_>) -> Result<()> {
        match step {
            Step::Wheels(packages) => self.wheels(packages),
            Step::Debs(packages, from) => self.debs(packages, *from),
            Step::Crates(packages) => self.crates(packages),
            Step::Files(files) => self.files(files),
            Step::Compile(build) => self.compile(build),
            Step::Arrange(toolchain) => self.arrange(toolchain),
            Step::Check(programs) => self.check(programs),
        }
    }

    /// Creates an empty folder below the scratch folder.
    fn scratch_for(&self, purpose: &str) -> Result<PathBuf> {
        let folder = self.scratch.join(purpose);
        disk::create_folder(&folder)?;
        Ok(folder)
    }

    /// Returns an error unless `file` is the pinned `package`, byte for byte.
    fn demand_pinned(&self, package: &Package, file: &Path) -> Result<()> {
        let found = disk::sha256_of_file(file)?;
        if found == package.sha256.as_str() {
            return Ok(());
        }
        let size = std::fs::metadata(file).map_or(0, |meta| meta.len());
        Err(Error::no(format!("{package} is not the pinned file"))
            .detail(format!("expected sha256 {}, {} bytes", package.sha256.as_str(), package.bytes))
            .detail(format!("found    sha256 {found}, {size} bytes"))
            .hint("run the same command again: a download may have been cut short")
            .hint("if it stays so, the registry serves another file: check it, then pin it in ci/toolchains.toml"))
    }
}
