//! Completion of a change that a killed run had committed; every command calls it first.

use super::run_lock::{self, Access};
use crate::config::layout::Layout;
use crate::error::Result;
use crate::sys::machine::disk;
use crate::ui::Ui;

/// Proof that no decided change of a killed run is pending: patches, pins, lock and refs are consistent.
#[derive(Clone, Copy, Debug)]
pub struct Settled(());

/// Finishes the change that a killed run had decided; every command calls this first. Costs nothing if there is none.
pub fn settle(layout: &Layout, ui: &Ui) -> Result<Settled> {
    if disk::exists(&layout.pending()) {
        run_lock::take(layout, ui, Access::Change)?;
    }
    Ok(Settled(()))
}
