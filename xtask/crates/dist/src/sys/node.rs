//! Node.js and npm: detection, and isolated installation of third-party packages.
//!
//! No package's script runs, the hashes of `package-lock.json` decide which bytes are accepted, and whatever runs
//! gets its own home folder and none of the user's variables: no token, no configuration.

use std::path::{Path, PathBuf};

use espalier_core::config::layout::Layout;
use espalier_core::config::pins::Version;
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::Run;
use espalier_core::sys::machine::tools;
use espalier_core::ui::Ui;

/// Hint for installing Node.js.
pub const INSTALL: &str =
    "install Node.js with npm (Debian: `apt-get install npm`, or a newer one from nodejs.org)";

/// The Node.js of this machine, together with its npm.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// Its version.
    pub version: Version,
}

/// Finds the Node.js on PATH; the error says briefly why it cannot be used.
pub fn find() -> std::result::Result<Node, String> {
    for program in ["node", "npm"] {
        if disk::find_program(program).is_none() {
            return Err(format!("`{program}` not found"));
        }
    }
    let stdout = Run::new("node").with_environment_of(&PLAIN).arg("--version").success();
    let stdout = stdout.map_err(|error| error.what)?;
    let version = Version::find_in(&espalier_series::lossy(&stdout));
    version.map(|version| Node { version }).ok_or_else(|| "`node --version` names no version".to_string())
}

/// Variables that any program needs.
const PLAIN: [&str; 3] = ["PATH", "SystemRoot", "COMSPEC"];

/// Network settings. Only npm gets these: the address of a proxy can contain a password.
const NETWORK: [&str; 9] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Returns `npm ci` in `folder`, which has a `package.json` and its lock; npm's cache and all its other files go to
/// `home`.
///
/// # Errors
///
/// npm cannot report its registry.
pub fn install(folder: &Path, home: &Path) -> Result<Run> {
    // The registry is the only user setting that is kept: a mirror may be all that can be reached.
    let asked = Run::new("npm").args(["config", "get", "registry"]).current_folder(home).success()?;
    let registry = String::from_utf8(asked).map_err(|_| Error::environment("npm's registry is not UTF-8"))?;
    let run = at_home(install_words(), folder, home, &[&PLAIN[..], &NETWORK].concat());
    Ok(run.env("npm_config_registry", registry.trim()).without_locks())
}

/// Returns a folder with `files` of `folder` (`package.json` and its lock among them) and their packages: one folder
/// for each content of the files, installed on first use.
///
/// # Errors
///
/// They are not installed and `offline` is set, or npm failed.
pub fn packages(folder: &Path, files: &[&str], layout: &Layout, offline: bool, ui: &Ui) -> Result<PathBuf> {
    let contents: Result<Vec<Vec<u8>>> = files.iter().map(|file| disk::read(&folder.join(file))).collect();
    let digest = disk::sha256(&contents?.concat());
    let place = layout.tools().join(format!("node-{}", &digest[..16]));
    if disk::exists(&place) {
        return Ok(place);
    }
    let list = layout.show(&folder.join("package-lock.json"));
    if offline {
        let what = format!("the packages of `{list}` are missing, and `--offline` prevents downloading them");
        return Err(Error::environment(what).hint("run once without `--offline`"));
    }
    ui.status("Installing", format!("the packages of {list} from npm, under target/"));
    let scratch = disk::scratch_folder(&layout.scratch(), "packages")?;
    let (installed, home) = (scratch.path().join("installed"), scratch.path().join("home"));
    disk::create_folder(&home)?;
    files.iter().try_for_each(|file| disk::copy(&folder.join(file), &installed.join(file)))?;
    install(&installed, &home)?.success().map_err(|error| disk::blame_full_disk(&home, error))?;
    tools::put_in_place(layout, &installed, &place)?;
    Ok(place)
}

/// Returns the command of [`install`] without its environment: for plans.
pub fn install_words() -> Run {
    let words = ["ci", "--ignore-scripts", "--engine-strict", "--no-audit", "--no-fund", "--fetch-retries=1"];
    Run::new("npm").install_hint(INSTALL).args(words)
}

/// Returns `npm run SCRIPT` in `folder`, without the network settings.
pub fn script(name: &str, folder: &Path, home: &Path) -> Run {
    at_home(script_words(name), folder, home, &PLAIN)
}

/// Returns the command of [`script`] without its environment: for plans.
pub fn script_words(name: &str) -> Run {
    Run::new("npm").install_hint(INSTALL).args(["run", name])
}

fn at_home(run: Run, folder: &Path, home: &Path, keep: &[&str]) -> Run {
    run.with_environment_of(keep)
        .env("HOME", home)
        .env("USERPROFILE", home)
        .env("TMPDIR", home)
        .env("npm_config_cache", home.join("npm"))
        .env("npm_config_update_notifier", "false")
        .current_folder(folder)
}
