//! Debian packages, downloaded by apt-get as any user and unpacked without being installed.
//!
//! apt gets its own state in the scratch folder: it needs no root, knows packages of other architectures without
//! `dpkg --add-architecture`, and takes its mirrors from the machine's sources; packages of another release are
//! fetched from the mirror that these name for this one.

use std::path::{Path, PathBuf};

use espalier_core::config::toolchains::{Archive, Package};
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::{self, Run};
use espalier_core::sys::machine::watched::Download;
use espalier_core::ui::Unit;

use super::Work;

/// Hint for machines without apt.
const NO_APT: &str =
    "set it up on Debian 12, or in a container of it: its packages come from Debian's archive";

/// Debian's keyring, at the path of Debian's own package.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

impl Work<'_> {
    pub(super) fn debs(&self, packages: &[Package], from: Option<&Archive>) -> Result<()> {
        let scratch = self.scratch_for("debs")?;
        let files = scratch.join("files");
        for folder in ["files", "lists/partial", "cache/archives/partial"] {
            disk::create_folder(&scratch.join(folder))?;
        }
        let mut settings = settings(&scratch, packages);
        // An unrelated source of the machine may fail: whether that matters shows when the download runs.
        let (_, mut update) = self.apt(&scratch, &settings, vec!["update".to_string()])?;
        if let Some(archive) = from {
            settings.extend(only_from(archive, &scratch, &settings)?);
            (_, update) = self.apt(&scratch, &settings, vec!["update".to_string()])?;
        }
        let wanted =
            packages.iter().map(|package| format!("{}:{}={}", package.name, arch(package), package.version));
        let words = ["download".to_string()].into_iter().chain(wanted).collect();
        let (ended_well, log) = self.apt(&scratch, &settings, words)?;
        if !ended_well {
            return Err(not_downloaded(packages, &files, &log, &update));
        }
        for package in packages {
            let file = downloaded(&files, package).ok_or_else(|| {
                Error::environment(format!("apt-get succeeded but downloaded no file of {package}"))
            })?;
            self.demand_pinned(package, &file)?;
            self.unpack_deb(&file)?;
        }
        Ok(())
    }

    /// Runs apt-get; returns whether it succeeded, and its output.
    fn apt(&self, scratch: &Path, settings: &[String], words: Vec<String>) -> Result<(bool, Vec<String>)> {
        let run = apt_get(settings).args(words);
        let run = run.current_folder(&scratch.join("files"));
        let mut log = Vec::new();
        let progress = &mut self.setup.ui.progress("Debian's packages", None, Unit::Bytes);
        let speech = |line: &str| Some(line.to_string()).filter(|line| is_complaint(line));
        let apt =
            Download { program: "apt-get", folder: scratch, patience: super::PATIENCE, progress, speech };
        Ok((apt.run(run, &mut log)?.success(), log))
    }
}

fn apt_get(settings: &[String]) -> Run {
    let options = settings.iter().flat_map(|setting| ["-o", setting.as_str()]);
    Run::new("apt-get").install_hint(NO_APT).arg("-q").args(options)
}

/// Returns settings with which apt knows only `archive`, on the machine's mirror of Debian.
fn only_from(archive: &Archive, scratch: &Path, settings: &[String]) -> Result<[String; 2]> {
    let debian = ["Created-By: Packages", "Origin: Debian", "Label: Debian"];
    let stdout =
        apt_get(settings).args(["indextargets", "--format", "$(REPO_URI)"]).args(debian).success()?;
    let stdout = espalier_series::lossy(&stdout);
    let mirror = stdout.lines().next().ok_or_else(|| {
        Error::environment(format!("no mirror of Debian for {archive}"))
            .detail(
                "none of the sources that apt-get knows here, in /etc/apt, is Debian's archive and answers",
            )
            .hint(NO_APT)
    })?;
    let list = scratch.join("sources.list");
    let line = format!("deb [signed-by={KEYS}] {mirror} {} {}\n", archive.suite, archive.component);
    disk::write_atomically(&list, line.as_bytes())?;
    Ok([format!("Dir::Etc::SourceList={}", list.display()), "Dir::Etc::SourceParts=/dev/null".to_string()])
}

fn is_complaint(line: &str) -> bool {
    line.starts_with("E:") || line.starts_with("Err:") || line.contains("No space left")
}

/// Returns apt's settings: its own state, and the architectures of the packages.
fn settings(scratch: &Path, packages: &[Package]) -> Vec<String> {
    let mut archs: Vec<&str> = packages.iter().map(arch).filter(|arch| *arch != "all").collect();
    archs.sort_unstable();
    archs.dedup();
    let archs = archs.into_iter().map(|arch| format!("APT::Architectures::={arch}"));
    let own = [
        format!("Dir::State::lists={}", scratch.join("lists").display()),
        format!("Dir::Cache={}", scratch.join("cache").display()),
        "Acquire::Languages=none".to_string(),
        "Acquire::Retries=2".to_string(),
        // Otherwise apt, when started by root, would download as a user who has no access to our folder.
        "APT::Sandbox::User=root".to_string(),
    ];
    own.into_iter().chain(archs).collect()
}

fn arch(package: &Package) -> &str {
    package.arch.as_ref().map_or("amd64", |arch| arch.as_str())
}

/// Returns the file that apt downloaded for `package`; its name contains the version with `:` written as `%3a`.
fn downloaded(files: &Path, package: &Package) -> Option<PathBuf> {
    let version = package.version.as_str().replace(':', "%3a");
    let names = [arch(package), "all"].map(|arch| format!("{}_{version}_{arch}.deb", package.name));
    names.iter().map(|name| files.join(name)).find(|file| disk::exists(file))
}

fn not_downloaded(packages: &[Package], files: &Path, log: &[String], update: &[String]) -> Error {
    let mut missing: Vec<&Package> =
        packages.iter().filter(|package| downloaded(files, package).is_none()).collect();
    if missing.is_empty() {
        // The file exists but is incomplete.
        missing = packages.iter().collect();
    }
    let named = missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let words = process::last_words(&[update, log].concat().join("\n"));
    let error = Error::environment(format!("apt-get could not download {named}")).detail(words);
    let is_gone = log.iter().any(|line| line.contains("was not found") || line.contains("Unable to locate"));
    match is_gone {
        true => error.hint(format!(
            "Debian replaced it: see `apt-cache policy {}`, then pin the version and its sha256 in ci/toolchains.toml",
            missing[0].name
        )),
        false => error.hint("run the same command again once the mirror answers"),
    }
}
