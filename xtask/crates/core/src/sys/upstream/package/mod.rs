//! Packages of registries: the registry's client downloads an archive, and the objects in it become a remote for
//! `git fetch`.

mod archive;
mod copy;
mod npm;
mod offer;
mod parts;
mod pip;

use std::path::{Path, PathBuf};

use super::fetch_git::{Asked, Depth, Remote, create_empty};
use crate::config::pins::{Package, Registry};
use crate::error::{Error, Result};
use crate::sys::git::store::INCOMING;
use crate::sys::machine::disk;
use crate::ui::Ui;

/// Downloads the version of `package` that has `revision`; returns a remote below `scratch`, and what to request from
/// it.
pub(super) fn unpack(scratch: &Path, package: &Package, revision: &str, ui: &Ui) -> Result<(Remote, Asked)> {
    let version = package.version_of(revision).ok_or_else(|| has_no(package, revision))?;
    let (wanted, member) = (package.at(version), &package.member);
    let folder = scratch.join(package.client());
    disk::create_folder(&folder)?;
    match &package.registry {
        Registry::Npm => {
            let archive = npm::download(&folder, &wanted, package.bytes, ui)?;
            let bundle = archive::take_file(&archive, member, &scratch.join("source.bundle"))?;
            Ok((Remote::bundle(&bundle), Asked::Ref("HEAD".to_string())))
        }
        Registry::Pip { sha256 } => {
            let sha256 = sha256.get(version).ok_or_else(|| has_no(package, revision))?;
            let archive = pip::download(&folder, &wanted, sha256, package.bytes, ui)?;
            ui.status("Unpacking", format!("the git objects of {wanted}"));
            let copy = copied(&archive, member, revision, &scratch.join("copy.git"))?;
            Ok((Remote::folder(&copy, &Depth::Commits(1)), Asked::Ref(INCOMING.to_string())))
        }
    }
}

/// Copies the objects of the repository at `member` to the new repository `to`, which serves `revision` only.
fn copied(archive: &Path, member: &str, revision: &str, to: &Path) -> Result<PathBuf> {
    create_empty(to)?;
    let names = copy::copy_objects(archive, member, revision, to)?;
    offer::offer(to, &names, revision)?;
    Ok(to.to_path_buf())
}

fn has_no(package: &Package, revision: &str) -> Error {
    let error = Error::environment(format!("this mirror has no `{revision}`"));
    match package.commit_beginning_with(revision) {
        Some(commit) => error.detail(format!("its full id is listed: {commit}")),
        None => error,
    }
}
