//! `cargo xtask build --twice`: checks that a package depends only on its inputs, not on where or when it was built.

use std::path::{Path, PathBuf};

use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::git::store::Store;
use espalier_core::sys::machine::{disk, owned};
use espalier_patches::apply::Applied;
use serde_json::json;

use super::{Build, Options};
use crate::plan::difference;
use crate::sys::package;

/// Builds, builds again from scratch in another folder, and compares both packages. The web page, which is built once
/// for all packages, is the same in both. The caller holds the run lock.
///
/// # Errors
///
/// Those of the builds; a failed check that names each file that differs, and the first of its sections that does.
pub fn run(build: &Build<'_>, store: &Store, applied: &Applied) -> Result<Outcome> {
    build.context.ui.status("Building", format!("{}, the first of two builds", build.name()));
    build.build(store, applied)?;
    let layout = &build.context.layout;
    let second = layout.second();
    owned::remove_folder(&second)?;
    let context = Context { layout: layout.making_in(second.clone()), ..build.context.clone() };
    let options = Options { twice: false, recompile: true, no_smoke: true, ..build.options.clone() };
    let again = Build { context: &context, options: &options, ..*build };
    context.ui.status(
        "Building",
        format!("{}, the second of two builds, in {}", build.name(), layout.show(&second)),
    );
    again.build(store, applied)?;
    let packages = [build.package_folder(), again.package_folder()];
    let (files, differences) = compare(&packages)?;
    if !differences.is_empty() {
        let shown = packages.map(|package| layout.show(&package)).join(" and ");
        return Err(Error::no(format!("{} of {files} files differ between {shown}", differences.len()))
            .detail(differences.join("\n")));
    }
    owned::remove_folder(&second)?;
    build.context.ui.status("Compared", format!("{files} files of {}: the same twice", build.name()));
    Ok(Outcome::ok(
        String::new(),
        json!({ "package": layout.show(&packages[0]), "files": files, "same": true }),
    ))
}

/// Returns the number of files, and a line for each that differs.
fn compare(packages: &[PathBuf; 2]) -> Result<(usize, Vec<String>)> {
    let [first, second] = [package::digests(&packages[0])?, package::digests(&packages[1])?];
    let only = |name: &String| (!second.contains_key(name)).then(|| format!("{name}: in the first only"));
    let mut lines: Vec<String> = first.keys().filter_map(only).collect();
    for (name, digest) in &second {
        match first.get(name) {
            None => lines.push(format!("{name}: in the second only")),
            Some(before) if before != digest => lines.push(format!("{name}: {}", differs(packages, name)?)),
            Some(_) => {}
        }
    }
    // The manifest has the digests of all others.
    if lines.len() > 1 {
        lines.retain(|line| !line.starts_with("manifest.json: "));
    }
    Ok((first.len().max(second.len()), lines))
}

fn differs(packages: &[PathBuf; 2], name: &str) -> Result<String> {
    let read = |package: &Path| disk::read(&package.join(name));
    Ok(difference::first(&read(&packages[0])?, &read(&packages[1])?))
}
