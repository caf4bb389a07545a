//! A drift report as plain text. The caller adds the next command to run.

use std::fmt;

use super::classify::describe_refusal;
use super::drift::{
    Candidate, FileDrift, FileDriftKind, HunkClass, HunkDrift, PatchDrift, Placement, RenameCandidate,
};

impl fmt::Display for PatchDrift {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}: {}", self.patch, self.class.describe())?;
        for file in &self.files {
            write_file(formatter, &self.patch, file)?;
        }
        Ok(())
    }
}

fn write_file(out: &mut fmt::Formatter<'_>, patch: &str, file: &FileDrift) -> fmt::Result {
    write!(out, "  {} ({patch}:{}): ", file.path, file.patch_line)?;
    match &file.kind {
        FileDriftKind::Hunks { hunks, expected, found } => {
            let exact = hunks.iter().filter(|hunk| hunk.class == HunkClass::Exact).count();
            writeln!(out, "{exact} of {} hunks exact", hunks.len())?;
            writeln!(out, "    made from blob {expected}")?;
            writeln!(out, "    found blob     {found}")?;
            hunks.iter().try_for_each(|hunk| write_hunk(out, patch, hunk))
        }
        FileDriftKind::TargetRenamed { candidates } => {
            writeln!(out, "the file is gone from this path")?;
            candidates.iter().try_for_each(|candidate| write_rename(out, candidate))
        }
        other => writeln!(out, "{}", one_line(other)),
    }
}

fn one_line(kind: &FileDriftKind) -> String {
    match kind {
        FileDriftKind::Exact => "exact".to_owned(),
        FileDriftKind::Upstreamed => "upstreamed: already as the patch would leave it".to_owned(),
        FileDriftKind::BinaryDiffers { expected, found } => {
            format!("binary content differs: expected blob {expected}, found {found}")
        }
        FileDriftKind::ContentDiffers { expected, found } => {
            format!("content differs: expected blob {expected}, found {found}")
        }
        FileDriftKind::ModeDiffers { expected, found } => {
            format!("expected {}, found {}", expected.describe(), found.describe())
        }
        FileDriftKind::PathExists => "the patch makes this file, but one is there".to_owned(),
        FileDriftKind::Moved { to } => format!("moved upstream to {to}"),
        FileDriftKind::TargetDeleted => "the file is gone, and so is its content".to_owned(),
        FileDriftKind::Refused { refusal } => format!("refused: {}", describe_refusal(refusal)),
        FileDriftKind::PatchContradictsItself { detail } => {
            format!("the patch contradicts itself: {detail}")
        }
        // Both are written over several lines by `write_file`.
        FileDriftKind::Hunks { .. } | FileDriftKind::TargetRenamed { .. } => String::new(),
    }
}

fn write_rename(out: &mut fmt::Formatter<'_>, candidate: &RenameCandidate) -> fmt::Result {
    let RenameCandidate { path, certain, percent, of_whole_file } = candidate;
    match (certain, of_whole_file) {
        (true, _) => writeln!(out, "    renamed to {path} (the same content)"),
        (false, true) => writeln!(out, "    maybe renamed to {path} ({percent} % of it is the same)"),
        (false, false) => {
            writeln!(out, "    maybe renamed to {path} (it has {percent} % of the expected lines)")
        }
    }
}

fn write_hunk(out: &mut fmt::Formatter<'_>, patch: &str, hunk: &HunkDrift) -> fmt::Result {
    let class = describe_class(hunk.class);
    writeln!(out, "    hunk {} {} ({patch}:{}): {class}", hunk.number, hunk.header, hunk.patch_line)?;
    if hunk.class == HunkClass::Exact {
        return Ok(());
    }
    if let Some(function) = &hunk.function {
        writeln!(out, "      made for: {function}")?;
    }
    write_places(out, "fits at", &hunk.fits_at)?;
    write_places(out, "its result is at", &hunk.result_at)?;
    match (&hunk.nearest, hunk.class) {
        (Some(candidate), _) => write_candidate(out, candidate),
        (None, HunkClass::Conflict) => writeln!(out, "      none of its lines is in the file"),
        _ => Ok(()),
    }
}

fn describe_class(class: HunkClass) -> String {
    match class {
        HunkClass::Exact => "exact".to_owned(),
        HunkClass::Shifted { offset } => format!("shifted by {offset:+} lines"),
        HunkClass::MovedFunction { offset } => {
            format!("moved function, {offset:+} lines: it fits, but not where it was made for")
        }
        HunkClass::Ambiguous => "ambiguous".to_owned(),
        HunkClass::Upstreamed => "upstreamed".to_owned(),
        HunkClass::PartlyUpstreamed => "partly upstreamed".to_owned(),
        HunkClass::Merged => "merged: upstream changed the lines around it".to_owned(),
        HunkClass::Conflict => "conflict".to_owned(),
    }
}

fn write_places(out: &mut fmt::Formatter<'_>, what: &str, places: &[Placement]) -> fmt::Result {
    for place in places {
        writeln!(out, "      {what} line {}{}", place.line, in_function(place.function.as_deref()))?;
    }
    Ok(())
}

/// Returns an empty string above the first function of a file and in a file without functions.
fn in_function(function: Option<&str>) -> String {
    function.map(|function| format!(", in function: {function}")).unwrap_or_default()
}

fn write_candidate(out: &mut fmt::Formatter<'_>, candidate: &Candidate) -> fmt::Result {
    let Candidate { line, agreeing, of, .. } = candidate;
    let function = in_function(candidate.function.as_deref());
    writeln!(out, "      nearest: line {line}, {agreeing} of {of} lines agree{function}")?;
    for disagreement in &candidate.disagreements {
        let patch_line = disagreement.patch_line;
        writeln!(out, "        expected (patch line {patch_line}): {}", disagreement.expected)?;
        let found = disagreement.found.as_deref().unwrap_or("the end of the file");
        writeln!(out, "        found    (file line {}): {found}", disagreement.file_line)?;
    }
    Ok(())
}
