//! `cargo xtask verify`: whether a package, or an archive of one, is what it says.

use std::path::PathBuf;

use serde_json::json;

use crate::build::shipped::audit::Known;
use crate::context::{Context, Outcome};
use crate::error::{Error, Result};
use crate::stack::verify;
use crate::sys::machine::disk;
use crate::sys::project::archive;

/// Options of `verify`.
#[derive(Clone, Debug)]
pub struct Options {
    /// A package's folder, or an archive.
    pub path: PathBuf,
    /// Leave this project's lock and patches out: the package is of another commit.
    pub alone: bool,
}

/// Checks every file of a package against what the package says of itself, and that against the lock.
///
/// # Errors
///
/// The answer no, with every finding; nothing is written, whatever is in an archive.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let name = context.layout.show(&options.path);
    if !disk::exists(&options.path) {
        return Err(
            Error::usage(format!("there is no `{name}`")).hint("name a package's folder or an archive")
        );
    }
    let contents = if options.path.is_dir() {
        archive::read_folder(&options.path)?
    } else {
        archive::read_archive(&options.path)?.1
    };
    let known = if options.alone { Known::default() } else { verify::known(context)? };
    let manifest = verify::demand(&name, &contents, &known).map_err(|error| match options.alone {
        true => error,
        false => error.hint("is it of another commit? leave this project's lock out with `--alone`"),
    })?;
    let against = if known.lock.is_some() {
        "manifest, SBOM, provenance and lock"
    } else {
        "manifest, SBOM and provenance"
    };
    let files = contents.files.len();
    let text = format!(
        "{name}: {} {} for {}, pin {}, tree {}\n{files} files, all as {against} say",
        manifest.variant, manifest.flavor, manifest.platform, manifest.pin, manifest.tree
    );
    let json = json!({
        "variant": manifest.variant, "flavor": manifest.flavor, "platform": manifest.platform,
        "pin": manifest.pin, "tree": manifest.tree, "files": files, "lock": known.lock.is_some(),
    });
    Ok(Outcome::ok(text, json))
}
