//! placeholder
use super::{Context, Outcome};
use crate::error::Result;
/// w
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum What { /// a
    Apply }
/// o
pub struct Options { /// w
    pub what: What, /// r
    pub rounds: u32 }
/// r
pub fn run(_context: &Context, _options: &Options) -> Result<Outcome> { todo!() }
