//! Random models on disk, for the gate and the benches.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use super::disk;
use crate::error::Result;
use crate::modelgen::{ModelSpec, write_random_model};

/// Writes the model of `spec` to `path`; a half-written file of an earlier run is replaced.
pub fn write(path: &Path, spec: &ModelSpec) -> Result<()> {
    let fail = |error: std::io::Error| disk::explain("write the model", path, &error);
    let mut out = BufWriter::new(File::create(path).map_err(fail)?);
    write_random_model(&mut out, spec).map_err(fail)
}
