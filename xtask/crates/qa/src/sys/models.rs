//! Random models on disk, for the gate and the benches.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use espalier_core::error::Result;
use espalier_core::sys::machine::disk;
use espalier_modelgen::{
    AdapterSpec, DraftSpec, ModelSpec, VisionSpec, write_random_adapter, write_random_draft,
    write_random_model, write_random_vision,
};

/// Writes the model of `spec` to `path`; replaces a half-written file of an earlier run.
pub fn write(path: &Path, spec: &ModelSpec) -> Result<()> {
    create(path, |out| write_random_model(out, spec))
}

/// Writes the vision encoder of `spec` to `path`.
pub fn write_vision(path: &Path, spec: &VisionSpec) -> Result<()> {
    create(path, |out| write_random_vision(out, spec))
}

/// Writes a small vision encoder for a model whose embeddings have `n_embd` dimensions.
pub fn write_small_vision(path: &Path, n_embd: u64) -> Result<()> {
    write_vision(path, &VisionSpec::small(n_embd))
}

/// Writes the draft model of `spec` to `path`.
pub fn write_draft(path: &Path, spec: &DraftSpec) -> Result<()> {
    create(path, |out| write_random_draft(out, spec))
}

/// Writes the LoRA adapter of `spec` to `path`.
pub fn write_adapter(path: &Path, spec: &AdapterSpec) -> Result<()> {
    create(path, |out| write_random_adapter(out, spec))
}

fn create(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<()> {
    let fail = |error: io::Error| disk::explain("write the model", path, &error);
    fill(&mut BufWriter::new(File::create(path).map_err(fail)?)).map_err(fail)
}
