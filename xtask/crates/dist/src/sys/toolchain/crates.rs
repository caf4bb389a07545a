//! Crates, downloaded by cargo into its own cache; we check their digests and unpack them ourselves.

use std::path::{Path, PathBuf};

use espalier_core::config::toolchains::Package;
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::Run;
use espalier_core::sys::machine::watched::{Download, succeeded};
use espalier_core::ui::Unit;

use super::Work;

impl Work<'_> {
    pub(super) fn crates(&self, packages: &[Package]) -> Result<()> {
        let scratch = self.scratch_for("crates")?;
        disk::write_atomically(&scratch.join("Cargo.toml"), manifest(packages).as_bytes())?;
        disk::write_atomically(&scratch.join("lib.rs"), b"")?;
        self.cargo_fetch(&scratch)?;
        let home = cargo_home()?;
        for package in packages {
            let file = in_cache(&home, package)?;
            self.demand_pinned(package, &file)?;
            self.unpack_crate(&file)?;
        }
        Ok(())
    }

    fn cargo_fetch(&self, scratch: &Path) -> Result<()> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let run = Run::new(cargo).args(["fetch", "--manifest-path"]).arg(scratch.join("Cargo.toml"));
        let run = run.install_hint("install Rust with rustup, which brings cargo").current_folder(scratch);
        let (words, mut log) = (run.words(), Vec::new());
        let progress = &mut self.setup.ui.progress("crates", None, Unit::Bytes);
        let speech = |line: &str| line.strip_prefix("error: ").map(str::to_string);
        let cargo =
            Download { program: "cargo", folder: scratch, patience: super::PATIENCE, progress, speech };
        let status = cargo.run(run, &mut log)?;
        succeeded("cargo", &words, status, &log)
    }
}

/// Returns a manifest that depends on exactly these packages; cargo also downloads their dependencies, which are not
/// unpacked.
fn manifest(packages: &[Package]) -> String {
    let mut text = "[package]\nname = \"toolchain\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n[lib]\npath = \"lib.rs\"\n\n\
                    [workspace]\n\n[dependencies]\n"
        .to_string();
    for package in packages {
        let line = "{ version = \"=VERSION\", default-features = false }\n"
            .replace("VERSION", package.version.as_str());
        text.push_str(&format!("{} = {line}", package.name));
    }
    text
}

fn cargo_home() -> Result<PathBuf> {
    let named = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    named.or_else(|| std::env::home_dir().map(|home| home.join(".cargo"))).ok_or_else(|| {
        Error::environment("there is no `CARGO_HOME`, and no home folder")
            .hint("set CARGO_HOME to cargo's folder")
    })
}

/// Returns the downloaded file of a crate; cargo's cache has a folder for each registry.
fn in_cache(home: &Path, package: &Package) -> Result<PathBuf> {
    let cache = home.join("registry/cache");
    let name = format!("{}-{}.crate", package.name, package.version);
    let file =
        disk::folders_in(&cache).into_iter().map(|folder| folder.join(&name)).find(|file| disk::exists(file));
    file.ok_or_else(|| {
        Error::environment(format!("cargo succeeded but downloaded no `{name}`"))
            .detail(format!("expected it in a folder of `{}`", cache.display()))
    })
}
