//! A state of this repository: one of its commits, or the files on disk.

use std::collections::BTreeMap;

use espalier_core::config::lock::{Lock, LockedVariant};
use espalier_core::config::name::Name;
use espalier_core::config::overlay::OverlayFile;
use espalier_core::config::pins::Pins;
use espalier_core::config::snippet::SourceText;
use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::sys::git::at_commit::{commit_of, files_at};
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::inputs::{PatchFile, SeriesFiles, read_overlays, read_series};
use espalier_core::sys::project::stage::Stage;
use espalier_series::{looks_like_a_patch, series_order};

use crate::lock_file;
use crate::stack::Stack;

/// The name of the state that is on disk.
pub const ON_DISK: &str = ".";

/// Pins, lock and patches of one state.
pub struct State<'a> {
    context: &'a Context,
    name: String,
    /// The commit; `None` for the files on disk.
    commit: Option<String>,
    pins: Pins,
    lock: Lock,
}

impl<'a> State<'a> {
    /// Reads the state that the user calls `name`.
    ///
    /// # Errors
    ///
    /// There is no such commit, or it has no valid `pins.toml`.
    pub fn read(context: &'a Context, name: &str) -> Result<State<'a>> {
        if name == ON_DISK {
            let lock = lock_file::read(context)?.unwrap_or_default();
            let (name, pins) = ("the files on disk".to_string(), context.pins()?);
            return Ok(State { context, name, commit: None, pins, lock });
        }
        let commit = commit_of(context.layout.root(), name)?;
        let files = files_at(context.layout.root(), &commit, &["pins.toml", "espalier.lock"])?;
        let text = |path: &str| -> Result<Option<String>> {
            let Some(bytes) = files.get(path).cloned() else { return Ok(None) };
            let text = String::from_utf8(bytes);
            text.map(Some).map_err(|_| Error::usage(format!("`{path}` at {name} is not UTF-8 text")))
        };
        let pins = text("pins.toml")?
            .ok_or_else(|| Error::usage(format!("`{name}` has no `pins.toml` at the root")))?;
        let at = |error: Error| Error { what: format!("at {name}: {}", error.what), ..error };
        let pins = Pins::parse(SourceText { name: "pins.toml", text: &pins }).map_err(at)?;
        let lock = text("espalier.lock")?
            .map(|text| Lock::parse(SourceText { name: "espalier.lock", text: &text }).map_err(at));
        let lock = lock.transpose()?.unwrap_or_default();
        Ok(State { context, name: name.to_string(), commit: Some(commit), pins, lock })
    }

    /// Returns the name for display.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its `pins.toml`.
    pub fn pins(&self) -> &Pins {
        &self.pins
    }

    /// Returns one variant for each of its series.
    pub fn series(&self) -> impl Iterator<Item = Name> {
        // A generation has no patches of its own.
        let pins = self.pins.pins.values().filter(|pin| pin.generation_of.is_none());
        let series = pins.flat_map(move |pin| self.pins.series_on(&pin.name));
        series.map(|variant| variant.name.clone())
    }

    /// Returns the content of a file, by its path from the root; `None` if there is none.
    pub fn file(&self, path: &str) -> Result<Option<Vec<u8>>> {
        match &self.commit {
            None => disk::read_if_there(&self.context.layout.root().join(path)),
            Some(commit) => Ok(files_at(self.context.layout.root(), commit, &[path])?.remove(path)),
        }
    }

    /// Returns the state as a stage, to be read as if it were the project; the overlays are those on disk.
    pub fn staged(&self) -> Result<Stage> {
        let mut stage = Stage::begin_trial(&self.context.layout)?;
        for path in ["pins.toml", "espalier.lock"] {
            stage.write(path, &self.file(path)?.unwrap_or_default())?;
        }
        for folder in self.pins.series_folders() {
            let SeriesFiles { patches, siblings } = self.series_in(folder)?;
            stage.replace_folder(folder, &[], &[patches, siblings].concat())?;
        }
        Ok(stage)
    }

    /// Returns the patches of a variant on its pin, without overlays.
    pub fn stack(&self, name: &Name) -> Result<Stack> {
        let variant = self.pins.variant(Some(name.as_str()))?;
        Stack::of_series(&self.pins, variant, |folder| self.series_in(folder))
    }

    /// Returns the overlay files of a variant, without those of its parents.
    pub fn overlays(&self, name: &Name) -> Result<Vec<OverlayFile>> {
        let variant = self.pins.variant(Some(name.as_str()))?;
        let Some(commit) = &self.commit else { return read_overlays(&self.context.layout, &[variant]) };
        let mut overlays = Vec::new();
        for folder in &variant.overlays {
            let prefix = format!("{folder}/");
            let files = files_at(self.context.layout.root(), commit, &[folder.as_str()])?;
            overlays.extend(files.into_iter().filter_map(|(from, bytes)| {
                let path = from.strip_prefix(&prefix)?.to_string();
                Some(OverlayFile { path, from, bytes, executable: false })
            }));
        }
        Ok(overlays)
    }

    fn series_in(&self, folder: &str) -> Result<SeriesFiles> {
        let Some(commit) = &self.commit else { return read_series(&self.context.layout, folder) };
        let files = files_at(self.context.layout.root(), commit, &[folder])?;
        let prefix = format!("{folder}/");
        let patches: BTreeMap<String, Vec<u8>> = files
            .into_iter()
            .filter(|(path, _)| path.strip_prefix(&prefix).is_some_and(looks_like_a_patch))
            .collect();
        let names: Vec<&str> = patches.keys().filter_map(|path| path.strip_prefix(&prefix)).collect();
        series_order(&names).map_err(|findings| {
            let what = format!("`{folder}` at {} is not a series", self.name);
            findings.iter().fold(Error::usage(what), |error, finding| {
                error.detail(format!("{}: {}", finding.patch, finding.message))
            })
        })?;
        let files = patches.into_iter().map(|(path, bytes)| PatchFile::new(path, bytes));
        Ok(SeriesFiles::of(files.collect()))
    }

    /// Returns the lock's entry of a variant, which has to be that of its patches: `applied`, without overlays.
    ///
    /// # Errors
    ///
    /// The lock is stale, or has no such variant.
    pub fn locked(&self, name: &Name, applied: &LockedVariant) -> Result<LockedVariant> {
        let locked = self.lock.variants.get(name.as_str()).cloned();
        let series_alone = |locked: &LockedVariant| {
            let locked = LockedVariant { overlays: Vec::new(), tree: String::new(), ..locked.clone() };
            Lock { variants: BTreeMap::from([(name.to_string(), locked)]), ..Lock::default() }
        };
        let differences = match &locked {
            Some(locked) => series_alone(locked).differences(&series_alone(applied)),
            None => vec![format!("variant {name} is not in the lock")],
        };
        match locked.filter(|_| differences.is_empty()) {
            Some(locked) => Ok(locked),
            None => Err(Error::no(format!("`espalier.lock` of {} does not match its patches", self.name))
                .detail(differences.join("\n"))),
        }
    }
}
