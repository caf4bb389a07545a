//! `cargo xtask matrix`: the builds of CI, and those of them that a change affects.

pub mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::Args;
use espalier_core::config::flavors::Flavors;
use espalier_core::config::lock::Lock;
use espalier_core::config::pins::Pins;
use espalier_core::config::snippet::SourceText;
use espalier_core::config::toolchains::Toolchains;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::git::at_commit;
use espalier_core::sys::machine::disk;
use serde::Serialize;
use serde_json::json;

use crate::matrix::rows as matrix;
use crate::matrix::rows::{Inputs, Row};

/// Options of `matrix`.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// Print only the builds that changes since this commit affect; all of them if that cannot be determined.
    #[arg(long, value_name = "COMMIT")]
    pub changed_since: Option<String>,
    /// Print only the builds that container images are made from.
    #[arg(long)]
    pub images: bool,
    /// Print `name=value` lines for a workflow's output.
    #[arg(long)]
    pub github: bool,
    /// Number of jobs to split the rows across; fails if the rows do not fit.
    #[arg(long, value_name = "N", requires = "github")]
    pub parts: Option<usize>,
}

/// A row as it is printed.
#[derive(Clone, Debug, Serialize)]
struct Shown {
    variant: String,
    flavor: String,
    platform: String,
    runner: String,
    /// Image that the job runs in; empty for the runner itself.
    container: String,
    image: String,
    /// Digest of the toolchains; empty for the machine's own compilers.
    toolchain: String,
    /// Digest of all inputs of the build.
    key: String,
    /// Additional flags of `cargo xtask build`.
    flags: &'static str,
}

/// The files that define the builds, and the folders of the libraries of Rust.
const FILES: [&str; 5] = ["pins.toml", "espalier.lock", FLAVORS, TOOLCHAINS, "Cargo.lock"];
const FLAVORS: &str = "ci/flavors.toml";
const TOOLCHAINS: &str = "ci/toolchains.toml";
const KERNELS: &str = "kernels";
const FRONT: &str = "front";

/// Prints the rows.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let files = files_on_disk(context.layout.root())?;
    let mut rows = inputs(&files)?.rows()?;
    if let Some(reference) = &options.changed_since {
        match keys_at(context.layout.root(), reference) {
            Ok(keys) => rows.retain(|row| !keys.contains(&row.ingredients)),
            Err(error) => {
                context.ui.warn(format!("everything is built: `{reference}` cannot be compared\n{error}"))
            }
        }
    }
    rows.retain(|row| !options.images || row.has_image);
    let (left_out, rows): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|row| row.left_out.is_some());
    let shown: Vec<Shown> = rows.iter().map(show).collect();
    let left_out =
        Vec::from_iter(left_out.iter().map(|row| (name(row), row.left_out.clone().unwrap_or_default())));
    let text = match options.github {
        true => for_github(&shown, options.parts)?,
        false if !files.contains_key(FLAVORS) => {
            format!("0 rows: there is no `{FLAVORS}`, and nothing is built")
        }
        false => table(&shown, &left_out),
    };
    let left_out = Vec::from_iter(left_out.iter().map(|(row, why)| json!({ "row": row, "why": why })));
    Ok(Outcome::ok(text, json!({ "rows": shown, "left_out": left_out })))
}

/// Returns the keys of all rows at `reference`. A row with the same key there was built there.
fn keys_at(root: &Path, reference: &str) -> Result<BTreeSet<String>> {
    let paths = [&FILES[..], &[KERNELS, FRONT]].concat();
    let files = at_commit::files_at(root, reference, &paths)?;
    Ok(inputs(&files)?.rows()?.into_iter().map(|row| row.ingredients).collect())
}

fn files_on_disk(root: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for path in FILES {
        if let Some(bytes) = disk::read_if_there(&root.join(path))? {
            files.insert(path.to_string(), bytes);
        }
    }
    for library in [KERNELS, FRONT] {
        let folder = root.join(library);
        if !disk::exists(&folder) {
            continue;
        }
        for file in disk::files_below(&folder)? {
            files.insert(format!("{library}/{}", file.display()), disk::read(&folder.join(&file))?);
        }
    }
    Ok(files)
}

fn inputs(files: &BTreeMap<String, Vec<u8>>) -> Result<Inputs> {
    let text = |path: &str| {
        let bytes = files.get(path).ok_or_else(|| Error::usage(format!("there is no `{path}`")))?;
        String::from_utf8(bytes.clone()).map_err(|_| Error::usage(format!("`{path}` is not UTF-8 text")))
    };
    let if_there = |path: &str| if files.contains_key(path) { text(path).map(Some) } else { Ok(None) };
    let pins = text("pins.toml")?;
    let (lock, flavors, toolchains) = (if_there("espalier.lock")?, if_there(FLAVORS)?, if_there(TOOLCHAINS)?);
    let lock = lock.map(|text| Lock::parse(SourceText { name: "espalier.lock", text: &text })).transpose()?;
    // A project without flavors builds nothing.
    let flavors =
        flavors.map(|text| Flavors::parse(SourceText { name: FLAVORS, text: &text })).transpose()?;
    let toolchains =
        toolchains.map(|text| Toolchains::parse(SourceText { name: TOOLCHAINS, text: &text })).transpose()?;
    Ok(Inputs {
        pins: Pins::parse(SourceText { name: "pins.toml", text: &pins })?,
        lock: lock.unwrap_or_default(),
        flavors: flavors.unwrap_or_default(),
        toolchains: toolchains.unwrap_or_default(),
        kernels: digest_of_library(files, KERNELS),
        front: digest_of_library(files, FRONT),
    })
}

fn digest_of_library(files: &BTreeMap<String, Vec<u8>>, folder: &str) -> String {
    let is_ours = |path: &str| path == "Cargo.lock" || path.starts_with(&format!("{folder}/"));
    let ours = files.iter().filter(|(path, _)| is_ours(path));
    let text: String = ours.map(|(path, bytes)| format!("{path} {}\n", disk::sha256(bytes))).collect();
    disk::sha256(text.as_bytes())
}

fn show(row: &Row) -> Shown {
    let digest = |text: &str| disk::sha256(text.as_bytes())[..16].to_string();
    Shown {
        variant: row.variant.to_string(),
        flavor: row.flavor.to_string(),
        platform: row.platform.to_string(),
        runner: row.runner.runner.clone(),
        container: row.runner.container().to_string(),
        image: row.image.clone(),
        toolchain: if row.toolchains.is_empty() { String::new() } else { digest(&row.toolchains) },
        key: digest(&row.ingredients),
        flags: if row.has_device { "" } else { "--no-smoke" },
    }
}

fn name(row: &Row) -> String {
    format!("{} {} {}", row.variant, row.flavor, row.platform)
}

fn table(rows: &[Shown], left_out: &[(String, String)]) -> String {
    let (variant, flavor) = (width(rows, |row| &row.variant), width(rows, |row| &row.flavor));
    let (platform, runner) = (width(rows, |row| &row.platform), width(rows, |row| &row.runner));
    let line = |row: &Shown| {
        let Shown { key, .. } = row;
        format!(
            "{:<variant$} {:<flavor$} {:<platform$} {:<runner$} {key}",
            row.variant, row.flavor, row.platform, row.runner
        )
    };
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    lines.push(format!("{} rows", rows.len()));
    lines.extend(left_out.iter().map(|(row, why)| format!("left out: {row}: {why}")));
    lines.join("\n")
}

/// Returns the width of a column.
fn width<'r>(rows: &'r [Shown], cell: impl Fn(&'r Shown) -> &'r str) -> usize {
    rows.iter().map(|row| cell(row).len()).max().unwrap_or(0)
}

/// Formats the rows for GitHub: `rows=N`, `parts=M`, and for each part `part-K=JSON`, which a job can use as its
/// matrix. `parts` counts the parts that have rows.
fn for_github(rows: &[Shown], jobs: Option<usize>) -> Result<String> {
    let parts = matrix::parts(rows, jobs)?;
    let filled = parts.iter().filter(|rows| !rows.is_empty()).count();
    let mut lines = vec![format!("rows={}", rows.len()), format!("parts={filled}")];
    let part =
        |(index, rows): (usize, &&[Shown])| format!("part-{}={}", index + 1, json!({ "include": rows }));
    lines.extend(parts.iter().enumerate().map(part));
    Ok(lines.join("\n"))
}
