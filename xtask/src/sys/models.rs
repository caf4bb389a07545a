//! Random models on disk, for the gate and the benches.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use super::disk;
use crate::error::Result;
use crate::modelgen::{ModelSpec, VisionSpec, write_random_model, write_random_vision};

/// Writes the model of `spec` to `path`; a half-written file of an earlier run is replaced.
pub fn write(path: &Path, spec: &ModelSpec) -> Result<()> {
    write_with(path, |out| write_random_model(out, spec))
}

/// Writes the vision encoder of `spec` to `path`; likewise.
pub fn write_vision(path: &Path, spec: &VisionSpec) -> Result<()> {
    write_with(path, |out| write_random_vision(out, spec))
}

fn write_with(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<()> {
    let fail = |error: io::Error| disk::explain("write the model", path, &error);
    let mut out = BufWriter::new(File::create(path).map_err(fail)?);
    write(&mut out).map_err(fail)
}
