//! Runs the probe of one build on one model.

use std::path::Path;

use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::{self, Run};

use super::cases::Case;
use super::kernels::parse_buffer_types;
use crate::serving::switches::{with_feature, without_features};

/// Output of the probe of one build for one model.
pub struct Logits {
    /// Logits as f32 in native byte order.
    pub bytes: Vec<u8>,
    /// Our lines on stderr.
    pub log: String,
}

/// Decodes `model` with `enabled` switched on; the logits go through the file `out`.
pub fn logits(probe: &Path, model: &Path, out: &Path, case: &Case, enabled: Option<&str>) -> Result<Logits> {
    let run = Run::new(probe)
        .args(["--prompt", "12", "--steps", "8", "--ragged", "--seqs"])
        .arg(case.sequences.to_string())
        .arg("--threads")
        .arg(case.threads.to_string())
        .arg("--model")
        .arg(model)
        .arg("--out")
        .arg(out);
    let run = with_feature(run, enabled);
    let words = run.words();
    let finished = run.finish()?;
    if !finished.status.success() {
        return Err(process::failed(&words, finished.status, &finished.stderr));
    }
    let bytes = disk::read(out)?;
    disk::remove_file(out)?;
    if bytes.is_empty() {
        return Err(Error::no(format!("`{words}` wrote no logits")));
    }
    Ok(Logits { bytes, log: ours(&finished.stderr) })
}

/// Returns the types of buffers that a build offers for weights on this machine, beside plain memory.
///
/// # Errors
///
/// The probe failed or printed no such list.
pub fn buffer_types(probe: &Path) -> Result<Vec<String>> {
    let run = without_features(Run::new(probe)).arg("--buffer-types");
    let words = run.words();
    parse_buffer_types(&run.success()?)
        .ok_or_else(|| Error::no(format!("`{words}` printed no list of buffer types")))
}

fn ours(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.lines().filter(|line| line.starts_with("espalier:")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::ours;

    #[test]
    fn only_our_own_lines_are_read() {
        assert_eq!(ours("load: x\nespalier: y\n"), "espalier: y");
    }
}
