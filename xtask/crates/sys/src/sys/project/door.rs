//! The door before every command.

use super::run_lock::{self, Access};
use crate::error::Result;
use crate::plan::layout::Layout;
use crate::sys::machine::disk;
use crate::ui::Ui;

/// Nothing that a killed run had decided waits: patches, pins, lock and refs belong together.
#[derive(Clone, Copy, Debug)]
pub struct Settled(());

/// The door that every command passes: finishes what a killed run had decided. Costs nothing when there is nothing.
pub fn settle(layout: &Layout, ui: &Ui) -> Result<Settled> {
    if disk::exists(&layout.pending()) {
        run_lock::take(layout, ui, Access::Change)?;
    }
    Ok(Settled(()))
}
