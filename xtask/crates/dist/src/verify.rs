//! `cargo xtask verify`: checks that a package, or an archive or an image of one, matches its manifest.

pub mod package;

use std::path::{Path, PathBuf};

use clap::Args;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::next_command::quoted;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::root::absolute_path;
use serde_json::{Value, json};

use crate::packaged::not_built;
use crate::plan::image::documents::wrong_labels;
use crate::plan::manifest::{Manifest, build_command};
use crate::plan::shipped::Contents;
use crate::plan::shipped::audit::RepositoryFacts;
use crate::sys::{archive, image_read};
use crate::verify::package as verify;

/// Options of `verify`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Folder of a package, an archive, or an image layout.
    #[arg(value_name = "PATH", value_parser = absolute_path)]
    pub path: PathBuf,
    /// Do not compare with this project's lock and patches: for a package of another commit.
    #[arg(long)]
    pub alone: bool,
}

/// Checks every file of a package against the package's own manifest, and the manifest against the lock.
///
/// # Errors
///
/// A failed check, with every finding; nothing is written, whatever an archive contains.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let name = context.layout.show(&options.path);
    if !disk::exists(&options.path) {
        return Err(missing(context, &options.path));
    }
    let (contents, labels) = read(&options.path)?;
    let known = if options.alone { RepositoryFacts::default() } else { verify::known(context)? };
    let manifest = verify::demand(&name, &contents, &known).map_err(|error| {
        match verify::demand(&name, &contents, &RepositoryFacts::default()) {
            Ok(manifest) => error
                .hint("if it is of another commit, leave this project's lock out: `--alone`")
                .hint(format!(
                    "or build it again, with the current patches and overlays: {}",
                    rebuild(&manifest)
                )),
            Err(_) => error.hint("it is damaged or was changed: build or download it again"),
        }
    })?;
    let wrong = labels.map(|labels| wrong_labels(&labels, &manifest)).unwrap_or_default();
    if !wrong.is_empty() {
        return Err(Error::no(format!("`{name}` does not match its labels")).detail(wrong.join("\n")));
    }
    let against = if known.lock.is_some() {
        "manifest, SBOM, provenance and lock"
    } else {
        "manifest, SBOM and provenance"
    };
    let files = contents.files.len();
    let text = format!(
        "{name}: {} {} for {}, pin {}, tree {}\n{files} files match the {against}",
        manifest.variant, manifest.flavor, manifest.platform, manifest.pin, manifest.tree
    );
    let json = json!({
        "variant": manifest.variant, "flavor": manifest.flavor, "platform": manifest.platform,
        "pin": manifest.pin, "tree": manifest.tree, "files": files, "lock": known.lock.is_some(),
    });
    Ok(Outcome::ok(text, json))
}

/// Returns the error about a path that does not exist; for the folder of a package, the command that builds it.
fn missing(context: &Context, path: &Path) -> Error {
    built_there(context, path).unwrap_or_else(|| {
        Error::usage(format!("there is no `{}`", context.layout.show(path)))
            .hint("name a package's folder, an archive or an image layout")
    })
}

/// Returns the error about a package that is not built, if `path` is the folder of one.
fn built_there(context: &Context, path: &Path) -> Option<Error> {
    let (pins, flavors) = (context.pins().ok()?, context.flavors().ok()?);
    let is_here = |variant: &str, flavor: &str| context.layout.package(variant, flavor) == *path;
    pins.variants.keys().find_map(|variant| {
        let flavor = flavors.flavors.keys().find(|flavor| is_here(variant, flavor))?;
        Some(not_built(variant, flavor))
    })
}

/// Returns the command that builds the package again. Its names may be anything.
fn rebuild(manifest: &Manifest) -> String {
    build_command(&quoted(&manifest.variant), &quoted(&manifest.flavor))
}

/// Reads the contents of a package, an archive or an image of one; an image has labels too.
fn read(path: &Path) -> Result<(Contents, Option<Value>)> {
    match path.is_dir() {
        true if image_read::is_image(path) => {
            image_read::read(path).map(|(contents, labels)| (contents, Some(labels)))
        }
        true => Ok((archive::read_folder(path)?, None)),
        false => Ok((archive::read_archive(path)?.1, None)),
    }
}
