//! The step `workflows` of `cargo xtask test`: actionlint and our own rules, on every workflow file.

use std::path::PathBuf;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::plan::workflow_rules;
use crate::sys::machine::process::Run;
use crate::sys::machine::{disk, tools};

/// Checks every file under `.github/workflows`; exits with 1 on a finding.
pub fn check(context: &Context) -> Result<()> {
    let folder = context.layout.root().join(".github/workflows");
    let files: Vec<PathBuf> = disk::files_below(&folder)?.iter().map(|file| folder.join(file)).collect();
    let mut findings = lint(context, &files)?;
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

/// Runs actionlint, without the further linters for scripts that only some machines have.
fn lint(context: &Context, files: &[PathBuf]) -> Result<Vec<String>> {
    let pins = context.pins()?;
    let tool = pins
        .tools
        .get("actionlint")
        .ok_or_else(|| Error::usage("`pins.toml` has no `[tools.actionlint]`, which checks the workflows"))?;
    let program = tools::provide(tool, &context.layout, context.offline, &context.ui)?;
    let run = Run::new(program)
        .args(["-no-color", "-oneline", "-shellcheck=", "-pyflakes="])
        .args(files)
        .current_folder(context.layout.root());
    let words = run.words();
    let finished = run.finish()?;
    let said = crate::series::lossy(&finished.stdout).into_owned();
    match finished.status.code() {
        Some(0) => Ok(Vec::new()),
        // Exit code 1 means problems in the files; a higher code is an error of actionlint itself.
        Some(1) if !said.is_empty() => Ok(said.lines().map(String::from).collect()),
        _ => Err(crate::sys::machine::process::failed(&words, finished.status, &finished.stderr)),
    }
}
