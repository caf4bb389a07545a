//! The step `workflows` of `cargo xtask test`: actionlint, zizmor and our own rules, on every workflow file.

pub mod rules;

use std::ops::RangeInclusive;
use std::path::PathBuf;

use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::process::Run;
use espalier_core::sys::machine::{disk, tools};

use crate::cmd::workflows::rules as workflow_rules;

/// Checks every file under `.github/workflows`; exits with 1 on a finding.
pub fn check(context: &Context) -> Result<()> {
    let folder = context.layout.root().join(".github/workflows");
    let files: Vec<PathBuf> = disk::files_below(&folder)?.iter().map(|file| folder.join(file)).collect();
    let found = LINTERS.iter().map(|linter| lint(context, linter, &files)).collect::<Result<Vec<_>>>()?;
    let mut findings = found.concat();
    for file in &files {
        let name = context.layout.show(file);
        let broken = workflow_rules::broken(&name, &disk::read_text(file)?);
        findings.extend(broken.iter().map(|what| format!("{name}: {what}")));
    }
    if findings.is_empty() {
        return Ok(());
    }
    let shown = findings.join("\n");
    Err(Error::no("invalid workflows")
        .detail(shown)
        .hint("docs/decisions/0007-workflows.md says why the rules are as they are"))
}

/// A linter for workflow files; a tool of `pins.toml`.
struct Linter {
    name: &'static str,
    arguments: &'static [&'static str],
    /// Exit codes that mean findings; any other but 0 is an error of the linter itself.
    findings: RangeInclusive<i32>,
}

const LINTERS: [Linter; 2] = [
    // Without the further linters for scripts that only some machines have.
    Linter {
        name: "actionlint",
        arguments: &["-no-color", "-oneline", "-shellcheck=", "-pyflakes="],
        findings: 1..=1,
    },
    // Audits of low confidence report every image in a matrix as unpinned: our own rule reads where it comes from.
    Linter {
        name: "zizmor",
        arguments: &[
            "--offline",
            "--no-progress",
            "--quiet",
            "--color=never",
            "--min-severity=medium",
            "--min-confidence=medium",
        ],
        findings: 10..=14,
    },
];

fn lint(context: &Context, linter: &Linter, files: &[PathBuf]) -> Result<Vec<String>> {
    let Linter { name, arguments, findings } = linter;
    let pins = context.pins()?;
    let missing = || Error::usage(format!("`pins.toml` has no `[tools.{name}]`, which checks the workflows"));
    let tool = pins.tools.get(*name).ok_or_else(missing)?;
    let program = tools::provide(tool, &context.layout, context.offline, &context.ui)?;
    let run = Run::new(program).args(*arguments).args(files).current_folder(context.layout.root());
    let words = run.words();
    let finished = run.finish()?;
    let stdout = espalier_series::lossy(&finished.stdout).into_owned();
    match finished.status.code() {
        Some(0) => Ok(Vec::new()),
        Some(code) if findings.contains(&code) && !stdout.is_empty() => {
            Ok(stdout.lines().map(String::from).collect())
        }
        _ => Err(espalier_core::sys::machine::process::failed(&words, finished.status, &finished.stderr)),
    }
}
