//! `cargo xtask page`: tests the web page of the built server in a browser.

use std::path::{Path, PathBuf};

use clap::Args;
use espalier_core::config::layout::SMOKE_MODEL;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::{self, Run, Seen, Watch};
use espalier_core::sys::net::server::Server;
use espalier_core::sys::project::root::absolute_path;
use espalier_dist::build_args::Which;
use espalier_dist::packaged;
use espalier_dist::plan::manifest::build_command;
use espalier_dist::sys::node;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::sys::models;

/// Options of `page`.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// The build.
    #[command(flatten)]
    pub which: Which,
    /// Folder for the screenshots.
    #[arg(long, value_name = "DIR", value_parser = absolute_path)]
    pub screenshots: Option<PathBuf>,
}

/// Every check of `ci/browser/driver.mjs`: a check that the driver does not report has failed.
const CHECKS: [&str; 6] = ["open", "ask", "text-file", "image", "reload", "at-home"];

/// The driver, relative to the root.
const PAGE: &str = "ci/browser/driver.mjs";

/// The files of the driver, which are installed and run.
const DRIVER: [&str; 3] = ["package.json", "package-lock.json", "driver.mjs"];

const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Embedding length of the smoke test's model, which the vision encoder must match.
const EMBEDDING: u64 = 128;

/// One line of the driver's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CheckResult {
    check: String,
    error: Option<String>,
}

/// Returns an error with a hint if this machine lacks a program that the check needs.
pub fn missing() -> Option<Error> {
    let Some(_) = browser() else {
        let hint = "install Chromium (Debian: `apt-get install chromium`)";
        return Some(Error::environment("no Chromium on PATH").hint(hint));
    };
    node::find().err().map(|why| Error::environment(why).hint(node::INSTALL))
}

fn browser() -> Option<PathBuf> {
    BROWSERS.iter().find_map(|name| disk::find_program(name))
}

/// Starts the packaged server, and a browser that uses its page.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let pins = context.pins()?;
    let Which { variant, flavor } = &options.which;
    let variant = pins.variant(variant.as_deref())?;
    let (name, layout) = (format!("{}-{flavor}", variant.name), &context.layout);
    let program = layout.server(&variant.name, flavor);
    refuse_without_page(context, &variant.name, flavor)?;
    if let Some(missing) = missing() {
        return Err(missing);
    }
    context.file_of_espalier(PAGE)?;
    let folder = layout.root().join("ci/browser");
    let driver = node::packages(&folder, &DRIVER, layout, context.offline, &context.ui)?;
    let screenshots = options.screenshots.clone().unwrap_or_else(|| layout.screenshots(&name));
    disk::create_folder(&screenshots)?;
    let server = Run::new(program).args(SERVER).args(variant.kernels.then_some("--kv-paged"));
    let server = start(context, server, &name)?;
    context.ui.status("Using", format!("the web page of {name} in a browser"));
    let run = Run::new("node")
        .arg(driver.join("driver.mjs"))
        .arg(server.base())
        .args(browser().iter().chain([&screenshots]))
        .arg("images");
    Ok(outcome(context, &check_results(run)?, &screenshots))
}

/// Few tokens per answer, but enough for the check to see the answer grow.
const SERVER: [&str; 10] =
    ["--ctx-size", "4096", "--threads", "1", "--seed", "1", "--parallel", "1", "--predict", "600"];

fn refuse_without_page(context: &Context, variant: &str, flavor: &str) -> Result<()> {
    if !is_left_out(context, variant, flavor)? {
        return Ok(());
    }
    let folder = context.layout.show(&context.layout.package(variant, flavor));
    Err(Error::usage(format!("the server in `{folder}` was built without the web page"))
        .hint(build_command(variant, flavor)))
}

/// Whether the packaged server was built without the page.
///
/// # Errors
///
/// The package is not built.
pub fn is_left_out(context: &Context, variant: &str, flavor: &str) -> Result<bool> {
    let manifest = packaged::manifest(context, variant, flavor)?;
    let manifest = manifest.ok_or_else(|| packaged::not_built(variant, flavor))?;
    Ok(manifest.page.is_none())
}

/// Starts a server that accepts images.
fn start(context: &Context, server: Run, name: &str) -> Result<Server> {
    let layout = &context.layout;
    let vision = layout.page_vision();
    disk::create_folder(vision.parent().unwrap_or(&vision))?;
    models::write_small_vision(&vision, EMBEDDING)?;
    let log = layout.log(&format!("page-{name}"));
    let server =
        server.arg("--model").arg(context.file_of_espalier(SMOKE_MODEL)?).arg("--mmproj").arg(&vision);
    Server::start(server, &log)
        .map_err(|error| error.hint(format!("the server's whole log: {}", layout.show(&log))))
}

/// Returns the driver's result of every check; a check that it did not report counts as failed.
fn check_results(run: Run) -> Result<Vec<CheckResult>> {
    let (words, mut output, mut results) = (run.words(), String::new(), Vec::new());
    let status = run.watch(|seen| {
        if let Seen::Line(line) = seen {
            match serde_json::from_str::<CheckResult>(line) {
                Ok(one) => results.push(one),
                Err(_) => output += &format!("{line}\n"),
            }
        }
        Watch::GoOn
    })?;
    if results.is_empty() {
        return Err(process::failed(&words, status, &output));
    }
    let how = format!("not reached: {}", process::last_words(&output).lines().next().unwrap_or_default());
    let is_missing = |name: &str| !results.iter().any(|one| one.check == name);
    let missing = CHECKS.into_iter().filter(|name| is_missing(name));
    let missing = missing.map(|name| CheckResult { check: name.to_string(), error: Some(how.clone()) });
    let missing: Vec<CheckResult> = missing.collect();
    Ok(results.into_iter().chain(missing).collect())
}

fn outcome(context: &Context, results: &[CheckResult], screenshots: &Path) -> Outcome {
    let line = |one: &CheckResult| match &one.error {
        None => format!("{:<10} ok", one.check),
        Some(error) => format!("{:<10} FAILED: {error}", one.check),
    };
    let failed = results.iter().filter(|one| one.error.is_some()).count();
    let folder = context.layout.show(screenshots);
    let mut lines: Vec<String> = results.iter().map(line).collect();
    lines.push(format!("screenshots: {folder}"));
    let json = json!({ "checks": results, "failed": failed, "screenshots": folder });
    Outcome { text: lines.join("\n"), json, code: u8::from(failed > 0) }
}
