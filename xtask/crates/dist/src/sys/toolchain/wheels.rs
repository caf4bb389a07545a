//! Wheels, downloaded and unpacked by pip, which checks their digests before it opens them.

use espalier_core::config::toolchains::Package;
use espalier_core::error::Result;
use espalier_core::sys::machine::{disk, owned, tools};

use super::{Work, files};

impl Work<'_> {
    pub(super) fn wheels(&self, packages: &[Package]) -> Result<()> {
        let scratch = self.scratch_for("wheels")?;
        let requirements = scratch.join("requirements.txt");
        let line = |package: &Package| {
            format!("{}=={} --hash=sha256:{}\n", package.name, package.version, package.sha256.as_str())
        };
        let lines: String = packages.iter().map(line).collect();
        disk::write_atomically(&requirements, lines.as_bytes())?;
        let label = format!("the wheels of {}", self.name);
        // pip insists on creating the folder itself.
        let unpacked = scratch.join("unpacked");
        let install = tools::Install {
            requirements: &requirements,
            to: &unpacked,
            scratch: &scratch,
            name: &label,
            for_python: false,
        };
        let hint = "run the same command again; a wheel whose digest is not the pinned one stays refused";
        install.run(hint.to_string(), self.setup.ui)?;
        self.audit(&unpacked)?;
        for entry in files::entries_in(&unpacked)? {
            owned::rename(&unpacked.join(&entry), &self.folder.join(&entry))?;
        }
        Ok(())
    }
}
