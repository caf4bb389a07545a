//! The context that every command receives, and the outcome that it returns.

use std::path::PathBuf;

use espalier_series::LintRules;
use serde_json::Value;

use crate::config::flavors::Flavors;
use crate::config::layout::Layout;
use crate::config::lint_file::read_lint_rules;
use crate::config::models::Models;
use crate::config::pins::Pins;
use crate::config::proof::Proof;
use crate::config::snippet::SourceText;
use crate::config::toolchains::Toolchains;
use crate::error::{Error, Result};
use crate::next_command::quoted;
use crate::sys::git::at_commit;
use crate::sys::github::Client;
use crate::sys::machine::disk;
use crate::sys::project::recovery::Settled;
use crate::sys::project::run_lock::{self, Access, RunLock};
use crate::sys::project::stage::Stage;
use crate::ui::Ui;

/// The context that every command receives.
#[derive(Clone, Debug)]
pub struct Context {
    /// Paths of the project.
    pub layout: Layout,
    /// Output for status lines and progress.
    pub ui: Ui,
    /// The network is forbidden.
    pub offline: bool,
    /// A stale lock is an error instead of being rewritten.
    pub locked: bool,
    /// Proof that the change a killed run had committed to is finished: without it pins and patches cannot be read.
    pub settled: Settled,
}

impl Context {
    /// Returns a GitHub client configured from the environment; an error with `--offline`.
    pub fn github(&self) -> Result<Client> {
        if self.offline {
            return Err(Error::usage("`--github` cannot be used with `--offline`")
                .hint("use only one of the two options"));
        }
        Client::from_environment(&self.layout.scratch())
    }

    /// Returns the context of the project as it will be once the change of `stage` has happened.
    #[must_use]
    pub fn staged(&self, stage: &Stage) -> Context {
        Context { layout: stage.layout(), ..self.clone() }
    }

    /// Returns `pins.toml`, together with the locks for `access` unless this is a `--dry-run`: another run may change
    /// the pins while this one waits for the locks.
    pub fn begin(&self, dry_run: bool, access: Access) -> Result<(Option<RunLock>, Pins)> {
        // Without pins there is nothing to wait for, and no folder is created.
        let pins = self.pins()?;
        if dry_run {
            return Ok((None, pins));
        }
        let lock = run_lock::take(&self.layout, &self.ui, access)?;
        Ok((Some(lock), self.pins()?))
    }

    /// Reads `pins.toml`.
    pub fn pins(&self) -> Result<Pins> {
        let path = self.layout.pins();
        if !disk::exists(&path) {
            return Err(Error::usage(format!("there is no `{}`", path.display()))
                .hint("run this inside the repository, or name it: --root DIR"));
        }
        let text = disk::read_text(&path)?;
        Pins::parse(SourceText { name: "pins.toml", text: &text })
    }

    /// Reads the lint rules that the project relaxes; none without a `ci/lint.toml`.
    pub fn lint_rules(&self) -> Result<LintRules> {
        match disk::read_if_there(&self.layout.lint_rules())? {
            None => Ok(LintRules::default()),
            Some(bytes) => {
                let text =
                    String::from_utf8(bytes).map_err(|_| Error::usage("`ci/lint.toml` is not UTF-8 text"))?;
                read_lint_rules(SourceText { name: "ci/lint.toml", text: &text })
            }
        }
    }

    /// Reads `ci/toolchains.toml`: none without the file.
    pub fn toolchains(&self) -> Result<Toolchains> {
        let path = self.layout.toolchain_pins();
        if !disk::exists(&path) {
            return Ok(Toolchains::default());
        }
        let text = disk::read_text(&path)?;
        Toolchains::parse(SourceText { name: "ci/toolchains.toml", text: &text })
    }

    /// Reads `ci/models.toml`: none without the file.
    pub fn models(&self) -> Result<Models> {
        let path = self.layout.model_pins();
        if !disk::exists(&path) {
            return Ok(Models::default());
        }
        let text = disk::read_text(&path)?;
        Models::parse(SourceText { name: "ci/models.toml", text: &text })
    }

    /// Reads `ci/flavors.toml`, which only a project that builds has.
    pub fn flavors_if_there(&self) -> Result<Option<Flavors>> {
        let path = self.layout.flavors();
        if !disk::exists(&path) {
            return Ok(None);
        }
        let text = disk::read_text(&path)?;
        Flavors::parse(SourceText { name: "ci/flavors.toml", text: &text }).map(Some)
    }

    /// Reads `ci/flavors.toml` for a command that cannot work without it.
    pub fn flavors(&self) -> Result<Flavors> {
        let shown = self.layout.show(&self.layout.flavors());
        self.flavors_if_there()?.ok_or_else(|| {
            let error = Error::usage("`ci/flavors.toml` is missing; it defines the flavors");
            match at_commit::is_in_head(self.layout.root(), "ci/flavors.toml") {
                true => error.hint(format!("git checkout {shown}")),
                false => error
                    .hint(format!(
                        "copy the one of a clone of Espalier: mkdir -p {folder} && cp ESPALIER/ci/flavors.toml {folder}/",
                        folder = shown.strip_suffix("/flavors.toml").unwrap_or("ci")
                    ))
                    .hint("only builds need it"),
            }
        })
    }

    /// Returns the path of a file that every clone of Espalier has; `path` is relative to the root. A standalone
    /// project lacks it unless it was copied there, which the error explains.
    ///
    /// # Errors
    ///
    /// The project does not have the file.
    pub fn file_of_espalier(&self, path: &str) -> Result<PathBuf> {
        let file = self.layout.root().join(path);
        if disk::exists(&file) {
            return Ok(file);
        }
        let shown = self.layout.show(&file);
        let error = Error::usage(format!(
            "there is no `{shown}`, a file of Espalier's repository that this command reads"
        ));
        if at_commit::is_in_head(self.layout.root(), path) {
            return Err(error.hint(self.checkout(path)));
        }
        let elsewhere = "run this in a clone of Espalier that has your variant";
        let Some((folder, copied)) = copied_with(path) else { return Err(error.hint(elsewhere)) };
        let folder = quoted(&self.layout.show(&self.layout.root().join(folder)));
        let copy = format!("mkdir -p {folder} && cp -R ESPALIER/{copied} {folder}/");
        Err(error.hint(format!("copy it from a clone of Espalier: {copy}")).hint(format!("or {elsewhere}")))
    }

    /// Returns the command that restores a file of the last commit; `path` is relative to the root.
    fn checkout(&self, path: &str) -> String {
        let root = self.layout.show(self.layout.root());
        let is_below_root = root.split('/').all(|part| part.is_empty() || part == "..");
        match is_below_root && !root.starts_with('/') {
            true => format!("git checkout HEAD -- {}", quoted(&format!("{root}{path}"))),
            false => format!("git -C {} checkout HEAD -- {}", quoted(&root), quoted(path)),
        }
    }

    /// Reads every file of `ci/proofs/`, sorted by name.
    pub fn proofs(&self) -> Result<Vec<Proof>> {
        let folder = self.layout.proofs();
        if !disk::exists(&folder) {
            return Ok(Vec::new());
        }
        let read = |file: PathBuf| {
            let path = folder.join(file);
            Proof::parse(&self.layout.show(&path), &disk::read_text(&path)?)
        };
        disk::files_below(&folder)?.into_iter().map(read).collect()
    }
}

/// Returns the folder that a file of Espalier is copied to, and what is copied: a model alone, any other file of `ci/`
/// with its folder, which it needs. The rest of the repository is of use only as a whole.
fn copied_with(path: &str) -> Option<(&'static str, &str)> {
    let (folder, _) = path.rsplit_once('/')?;
    match folder {
        "ci/models" => Some(("ci/models", path)),
        _ if folder.starts_with("ci/") => Some(("ci", folder)),
        _ => None,
    }
}

/// The answer of a command on stdout: the same for people and for machines.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// For people; may be empty.
    pub text: String,
    /// For `--json`.
    pub json: Value,
    /// Exit code, 0 on success.
    pub code: u8,
}

impl Outcome {
    /// Returns the outcome of a successful command.
    pub fn ok(text: impl Into<String>, json: Value) -> Outcome {
        Outcome { text: text.into(), json, code: 0 }
    }
}
