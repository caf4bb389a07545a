//! Node.js and its npm: what is here, and how packages are installed that strangers wrote.
//!
//! No package's script runs, the hashes of `package-lock.json` decide what comes, and what runs sees a home of its own
//! and none of the person's variables: no token, no configuration.

use std::path::{Path, PathBuf};

use super::disk;
use super::process::Run;
use super::tools;
use crate::error::{Error, Result};
use crate::plan::layout::Layout;
use crate::plan::pins::Version;
use crate::ui::Ui;

/// How to get one.
pub const INSTALL: &str =
    "install Node.js with npm (Debian: `apt-get install npm`, or a newer one from nodejs.org)";

/// The Node.js of this machine, which has an npm.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// Its version.
    pub version: Version,
}

/// The Node.js on PATH, or in a few words why it is of no use.
pub fn find() -> std::result::Result<Node, String> {
    for program in ["node", "npm"] {
        if disk::find_program(program).is_none() {
            return Err(format!("`{program}` not found"));
        }
    }
    let said = Run::new("node").with_environment_of(&PLAIN).arg("--version").success();
    let said = said.map_err(|error| error.what)?;
    let version = Version::find_in(&crate::series::lossy(&said));
    version.map(|version| Node { version }).ok_or_else(|| "`node --version` names no version".to_string())
}

/// What any program needs.
const PLAIN: [&str; 3] = ["PATH", "SystemRoot", "COMSPEC"];

/// How the network is reached. Only npm gets these: a proxy's address can have a password in it.
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

/// `npm ci` in `folder`, which has a `package.json` and its lock; `home` takes npm's cache and whatever else it writes.
///
/// # Errors
///
/// npm cannot be asked for its registry.
pub fn install(folder: &Path, home: &Path) -> Result<Run> {
    // The person's own setting, and nothing else of theirs: a mirror may be all that can be reached.
    let asked = Run::new("npm").args(["config", "get", "registry"]).current_folder(home).success()?;
    let registry =
        String::from_utf8(asked).map_err(|_| Error::surroundings("npm's registry is not UTF-8"))?;
    let run = at_home(install_words(), folder, home, &[&PLAIN[..], &NETWORK].concat());
    Ok(run.env("npm_config_registry", registry.trim()))
}

/// A folder with `files` of `folder`, a `package.json` and its lock among them, and with their packages: installed when
/// it is not there yet, one for each content of the files.
///
/// # Errors
///
/// They are not there and `offline` is set, or npm failed.
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
        return Err(Error::surroundings(what).hint("run once without `--offline`"));
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

/// What [`install`] runs, without its environment: for plans.
pub fn install_words() -> Run {
    let words = ["ci", "--ignore-scripts", "--engine-strict", "--no-audit", "--no-fund", "--fetch-retries=1"];
    Run::new("npm").install_hint(INSTALL).args(words)
}

/// `npm run SCRIPT` in `folder`; the network's settings are not handed on.
pub fn script(name: &str, folder: &Path, home: &Path) -> Run {
    at_home(script_words(name), folder, home, &PLAIN)
}

/// What [`script`] runs, without its environment: for plans.
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
