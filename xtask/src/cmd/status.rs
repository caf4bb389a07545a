//! `cargo xtask status`: every patch of a series against the pin or any other upstream commit.

use std::collections::HashSet;
use std::path::PathBuf;

use serde_json::json;

use super::{Context, Outcome};
use crate::error::{Error, Result};
use crate::plan::pins::Pin;
use crate::report::status::{self, PatchStatus, Place, StatusReport, UpstreamCommit};
use crate::series::{self, Applied, FileDrift, Patch, PatchOutcome};
use crate::sys::fetch::{Fetcher, fetch_pin};
use crate::sys::history::{self, Commit};
use crate::sys::inputs::{PatchFile, read_stack};
use crate::sys::store::Store;
use crate::sys::store_tree::StoreTree;
use crate::sys::tip::{self, Ask, Tip};
use crate::sys::{disk, run_lock};

/// Options of `status`.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Variant name; the default one when none is given.
    pub variant: Option<String>,
    /// Tag, branch or commit to hold the series against; the pin when none is given.
    pub tip: Option<String>,
    /// A repository, bundle or URL that has it.
    pub from: Option<String>,
    /// Print Markdown instead of a table for a terminal.
    pub markdown: bool,
    /// Write one HTML page here as well.
    pub html: Option<PathBuf>,
}

/// Reports every patch, never stopping early; anything less than exact makes the answer no.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let _lock = run_lock::take(context)?;
    let report = report(context, options)?;
    if let Some(path) = &options.html {
        disk::write_atomically(path, status::html(&report).as_bytes())?;
        context.ui.status("Wrote", path.display());
    }
    let text = if options.markdown { status::markdown(&report) } else { status::text(&report) };
    let code = u8::from(report.exact() < report.patches.len());
    Ok(Outcome { text, json: json!(report), code })
}

/// The report as data. The caller holds the run lock.
pub fn report(context: &Context, options: &Options) -> Result<StatusReport> {
    let pins = context.pins()?;
    let variant = pins.variant(options.variant.as_deref())?;
    let pin = pins.pin_of(variant);
    let store = Store::open(&context.layout.store())?;
    let files = read_stack(&context.layout, &pins.stack(variant))?.patches;
    let patches = files.iter().map(PatchFile::parse).collect::<Result<Vec<Patch>>>()?;
    // The pin too: its blobs tell in which function a hunk was made.
    fetch_pin(&store, &context.layout, pin, context.offline, &context.ui)?;
    let tip = find_tip(context, &store, pin, options)?;
    let history = history_of(&store, pin, &tip)?;
    let outcomes = series::run_series(&patches, &StoreTree::new(&store, tip.tree)?)
        .map_err(|error| Error::surroundings(error.message))?;
    let touched = touched_by(&store, &patches, history.as_deref().unwrap_or_default())?;
    let names: Vec<&str> = files.iter().map(|file| file.file.as_str()).collect();
    let rows = patches.iter().zip(&outcomes).zip(names).zip(touched);
    Ok(StatusReport {
        variant: variant.name.clone(),
        upstream: pin.upstream.clone(),
        pin: Place { name: pin.tag.clone(), tree: pin.tree.to_string() },
        tip: Place { name: tip.name.clone(), tree: tip.tree.to_string() },
        patches: rows
            .map(|(((patch, outcome), file), touched)| patch_status(patch, outcome, file, touched))
            .collect(),
        history: history.map(|commits| commits.iter().map(upstream_commit).collect()),
    })
}

fn find_tip(context: &Context, store: &Store, pin: &Pin, options: &Options) -> Result<Tip> {
    let Some(reference) = &options.tip else {
        return Ok(Tip { name: pin.tag.clone(), commit: store.pin_commit(pin.tree)?, tree: pin.tree });
    };
    let fetcher = fetcher(context, store);
    tip::resolve(fetcher, &Ask { pin, reference, from: options.from.as_deref(), history: true })
}

/// Everything a fetch needs, from the context.
pub fn fetcher<'a>(context: &'a Context, store: &'a Store) -> Fetcher<'a> {
    Fetcher { store, layout: &context.layout, offline: context.offline, ui: &context.ui }
}

fn history_of(store: &Store, pin: &Pin, tip: &Tip) -> Result<Option<Vec<Commit>>> {
    if tip.tree == pin.tree { Ok(Some(Vec::new())) } else { history::since(store, tip.commit, pin.tree) }
}

/// For each patch the commits that changed one of its files: places in `history`.
fn touched_by(store: &Store, patches: &[Patch], history: &[Commit]) -> Result<Vec<Vec<usize>>> {
    let paths_of = |patch: &Patch| -> HashSet<Vec<u8>> {
        let paths = patch.files.iter().flat_map(|file| file.paths());
        paths.map(|path| path.as_bytes().to_vec()).collect()
    };
    let wanted: Vec<HashSet<Vec<u8>>> = patches.iter().map(paths_of).collect();
    let mut touched = vec![Vec::new(); patches.len()];
    for (at, commit) in history.iter().enumerate() {
        let changed = history::changed_paths(store, commit)?;
        for (paths, touched) in wanted.iter().zip(&mut touched) {
            if changed.iter().any(|change| paths.contains(&change.path)) {
                touched.push(at);
            }
        }
    }
    Ok(touched)
}

fn patch_status(patch: &Patch, outcome: &PatchOutcome, file: &str, touched_by: Vec<usize>) -> PatchStatus {
    let files: Vec<FileDrift> = match &outcome.applied {
        Applied::Exact(_) => Vec::new(),
        Applied::Drifted(drift) => drift.files.clone(),
    };
    PatchStatus {
        file: file.to_string(),
        subject: patch.subject.clone(),
        class: outcome.class,
        provisional: outcome.provisional,
        blocked_by: outcome.blocked_by.clone(),
        files,
        touched_by,
        next: status::next_step(outcome.class),
        hunks: status::hunk_texts(patch),
    }
}

fn upstream_commit(commit: &Commit) -> UpstreamCommit {
    UpstreamCommit {
        id: commit.id.to_string(),
        subject: commit.subject.clone(),
        author: commit.author.clone(),
        seconds: commit.seconds,
    }
}
