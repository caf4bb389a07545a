//! placeholder
use super::{Context, Outcome};
use crate::error::Result;
/// o
pub struct Options { /// v
    pub variant: Option<String> }
/// r
pub fn run(_context: &Context, _options: &Options) -> Result<Outcome> { todo!() }
