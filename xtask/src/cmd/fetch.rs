//! `cargo xtask fetch`: fetches the pinned objects into the store.

use clap::Args;
use espalier_core::config::pins::{Pin, Source};
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::unverified::verification_of_pin;
use espalier_core::sys::project::root::absolute;
use espalier_core::sys::project::run_lock::Access;
use espalier_core::sys::upstream::fetch::{Fetched, fetch_pin};
use serde_json::json;

/// Options of `fetch`.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// Local repository or bundle, tried before all other sources.
    #[arg(long, value_name = "PATH", value_parser = absolute)]
    pub from: Option<String>,
    /// Print what would be done.
    #[arg(long)]
    pub dry_run: bool,
}

/// Fetches every pin.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let (_lock, pins) = context.begin(options.dry_run, Access::Build)?;
    let pins: Vec<Pin> = pins.pins.values().map(|pin| with_source(pin, options.from.as_deref())).collect();
    if options.dry_run {
        let plan: Vec<String> = pins.iter().map(describe).collect();
        return Ok(Outcome::ok(plan.join("\n"), json!({ "plan": plan })));
    }
    let store = Store::open(&context.layout.store())?;
    let mut lines = Vec::new();
    let mut entries = Vec::new();
    for pin in &pins {
        let fetched = fetch_pin(&store, &context.layout, pin, context.offline, &context.ui)?;
        let how = match &fetched {
            Fetched::AlreadyThere => "already there".to_string(),
            Fetched::From(source) => format!("from {source}"),
        };
        lines.push(format!("{} {} tree {} {how}", pin.upstream, pin.revision, pin.tree));
        let (key, revision, tree) = (pin.revision.key(), pin.revision.to_string(), pin.tree.to_string());
        let verification = verification_of_pin(&store, pin.tree);
        lines.extend(verification.notice(&revision));
        entries.push(json!({
            "pin": pin.name, key: revision, "tree": tree, "verification": verification, "how": how,
        }));
    }
    Ok(Outcome::ok(lines.join("\n"), json!({ "pins": entries })))
}

fn with_source(pin: &Pin, from: Option<&str>) -> Pin {
    let mut pin = pin.clone();
    if let Some(path) = from {
        pin.sources.insert(0, Source::Path { path: path.to_string() });
    }
    pin
}

fn describe(pin: &Pin) -> String {
    let sources = pin.describe_sources().join("; ");
    format!("{} {} tree {}, first of: {sources}", pin.upstream, pin.revision, pin.tree)
}
