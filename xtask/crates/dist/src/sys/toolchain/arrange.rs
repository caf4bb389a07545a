//! Steps that turn unpacked packages into a toolchain.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use espalier_core::config::toolchains::Toolchain;
use espalier_core::config::words::Inside;
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::{disk, owned};

use super::{Work, files, missing_program};

impl Work<'_> {
    pub(super) fn files(&self, texts: &BTreeMap<Inside, String>) -> Result<()> {
        for (path, text) in texts {
            let path = self.path(path);
            disk::write_atomically(&path, text.as_bytes())?;
            if text.starts_with("#!") {
                disk::make_executable(&path)?;
            }
        }
        Ok(())
    }

    pub(super) fn arrange(&self, toolchain: &Toolchain) -> Result<()> {
        for (to, from) in &toolchain.moves {
            let (to, from) = (self.path(to), self.path(from));
            files::make_folder_of(&to)?;
            owned::rename(&from, &to)?;
        }
        for path in &toolchain.remove {
            let path = self.path(path);
            if path.is_dir() { owned::remove_folder(&path)? } else { disk::remove_file(&path)? }
        }
        for (link, target) in &toolchain.links {
            files::make_link(Path::new(target.as_str()), &self.path(link))?;
        }
        Ok(())
    }

    pub(super) fn check(&self, programs: &[Inside]) -> Result<()> {
        self.audit(self.folder)?;
        match missing_program(programs, self.folder) {
            None => Ok(()),
            Some(program) => Err(Error::environment(format!(
                "the packages of `{}` have no program `{program}`",
                self.name
            ))
            .hint("fix `programs` in ci/toolchains.toml")),
        }
    }

    pub(super) fn path(&self, inside: &Inside) -> PathBuf {
        self.folder.join(inside.as_str())
    }
}
