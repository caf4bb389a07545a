//! The files that a result is written to: its plot, and the history of its pin.

use std::path::PathBuf;

use clap::Args;
use espalier_core::context::Context;
use espalier_core::day::day;
use espalier_core::error::Result;
use espalier_core::sys::machine::{clock, disk, load};
use serde_json::Value;

use super::history::History;

/// The files to write.
#[derive(Clone, Debug, Default, Args)]
pub struct Keep {
    /// Write the result and its plot to `docs/measurements/`.
    #[arg(long)]
    pub record: bool,
    /// Write the plot to this file (SVG).
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

/// A result in the form in which it is written.
pub(super) struct Recorded<'a> {
    pub(super) history: History,
    pub(super) pin: &'a str,
    pub(super) run: Value,
    /// Suffix that distinguishes the plot from others of the same bench.
    pub(super) shape: String,
    /// The plot as SVG.
    pub(super) plot: String,
}

impl Recorded<'_> {
    /// Writes the files that `keep` requests.
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

/// Adds a run to the history of its pin.
pub(super) fn record(context: &Context, history: History, pin: &str, mut run: Value) -> Result<()> {
    // Machines with the same processor name may differ in features that decide the speed.
    run["processor_flags"] = load::processor_flags().into();
    run["date"] = day(clock::now().cast_signed()).into();
    let file = context.layout.measurements(history.bench, pin, "json");
    let before = disk::read_if_there(&file)?;
    let after = history.with(before.as_deref(), pin, run)?;
    disk::write_atomically(&file, after.as_bytes())?;
    context.ui.status("Recorded", context.layout.show(&file));
    Ok(())
}
