//! Base, ours and theirs of one file of a patch.

use super::file::FileReplay;
use super::follow::{MovedFile, find_moved};
use crate::judge::drift::RenameCandidate;
use crate::judge::replayed::{Followed, Version};
use crate::model::path::RepoPath;
use crate::model::tree::{NewFile, TreeError};

impl FileReplay<'_, '_> {
    /// Returns the file as the patch leaves it on its own tree.
    pub fn theirs(&self) -> Option<(&RepoPath, &NewFile)> {
        let path = &self.file.new.as_ref()?.path;
        let change = self.made.changes.iter().find(|change| change.path == *path && change.new.is_some())?;
        Some((path, change.new.as_ref()?))
    }

    pub fn content_of(&self, file: &NewFile) -> Result<Vec<u8>, TreeError> {
        match &file.content {
            Some(content) => Ok(content.to_vec()),
            None => Ok(self.new.blob(file.id).or_else(|_| self.applied.blob(file.id))?.into_owned()),
        }
    }

    pub fn version_at(&self, path: &RepoPath) -> Result<Option<Version>, TreeError> {
        let entry = self.new.entry(path.as_bytes())?;
        Ok(entry.map(|entry| Version { path: path.clone(), mode: entry.mode, id: entry.id }))
    }

    /// Finds a missing file: the pin's content at its path is searched for among the added files.
    pub fn locate(&self, base: &Version) -> Result<Result<Followed, Vec<RenameCandidate>>, TreeError> {
        let at_pin = self.applied.pin.entry(base.path.as_bytes())?;
        let id = at_pin.map_or(base.id, |entry| entry.id);
        Ok(match find_moved((base.path.as_bytes(), id), self.applied, self.new)? {
            MovedFile::At { path, percent } if self.version_at(&path)?.is_some() => {
                Ok(Followed { from: base.path.clone(), to: path, percent })
            }
            MovedFile::At { .. } => Err(Vec::new()),
            MovedFile::Unknown(candidates) => Err(candidates),
        })
    }
}
