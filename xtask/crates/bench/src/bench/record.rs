//! What becomes of a result besides the table: its plot, and its place in the history of its pin.

use std::path::PathBuf;

use serde_json::Value;

use super::history::History;
use crate::context::Context;
use crate::error::Result;
use crate::sys::machine::{disk, load};

/// What to write.
#[derive(Clone, Debug, Default)]
pub struct Keep {
    /// Write the result and its plot to `docs/measurements/`.
    pub record: bool,
    /// Write the plot here.
    pub plot: Option<PathBuf>,
}

/// A result, as it is written.
pub(super) struct Recorded<'a> {
    pub(super) history: History,
    pub(super) pin: &'a str,
    pub(super) run: Value,
    /// What tells the plot from others of the same bench.
    pub(super) shape: String,
    /// SVG.
    pub(super) plot: String,
}

impl Recorded<'_> {
    /// Writes what `keep` asks for.
    pub(super) fn write(self, context: &Context, keep: &Keep) -> Result<()> {
        if let Some(path) = &keep.plot {
            disk::write_atomically(path, self.plot.as_bytes())?;
        }
        if !keep.record {
            return Ok(());
        }
        record(context, self.history, self.pin, self.run)?;
        let picture = context.layout.measurements(&self.shape, self.pin, "svg");
        disk::write_atomically(&picture, self.plot.as_bytes())
    }
}

/// Writes a run into the history of its pin.
pub(super) fn record(context: &Context, history: History, pin: &str, mut run: Value) -> Result<()> {
    // Two machines of one name may differ in what decides the speed.
    run["processor_flags"] = load::processor_flags().into();
    let file = context.layout.measurements(history.bench, pin, "json");
    let before = disk::read_if_there(&file)?;
    let after = history.with(before.as_deref(), pin, run)?;
    disk::write_atomically(&file, after.as_bytes())?;
    context.ui.status("Recorded", context.layout.show(&file));
    Ok(())
}
