//! `cargo xtask gc`: removes generated files that are no longer needed.

use std::collections::BTreeSet;

use clap::Args;
use espalier_core::config::pins::Pins;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::plan::gc::{self, GeneratedFile, Limits, Needed, Removal, shown, size};
use espalier_core::sys::git::collect;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::garbage;
use espalier_core::sys::project::run_lock::Access;
use espalier_core::sys::project::undo::Undo;
use espalier_dist::sys::toolchain;
use espalier_dist::web_page;
use espalier_patches::apply;
use serde_json::json;

/// Options of `gc`.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Options {
    /// Also remove build folders that were not written to for more than N days.
    #[arg(long, value_name = "N")]
    pub keep_days: Option<u64>,
    /// Also remove build folders, then toolchains, until the rest has at most this size: 20G, 500M.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_size: Option<u64>,
    /// Print what would be removed.
    #[arg(long)]
    pub dry_run: bool,
}

impl Options {
    fn limits(&self) -> Limits {
        Limits { keep_days: self.keep_days, max_bytes: self.max_size }
    }
}

/// Garbage below this size in the store, such as an index or a temporary object, does not justify repacking it.
const STORE_SLACK: u64 = 4_000_000;

/// Removes the garbage and reports the freed space.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let (_lock, pins) = context.begin(options.dry_run, Access::Change)?;
    let layout = &context.layout;
    let before = garbage::bytes(layout);
    let all = garbage::look(layout);
    let needed = needed(context, &pins, &all)?;
    let listed: u64 = all.iter().map(|one| one.bytes).sum();
    let removals = gc::plan(&all, &needed, options.limits(), before.saturating_sub(listed));
    let store = store(context, &pins)?;
    let mut lines: Vec<String> = removals.iter().map(|removal| line(context, removal)).collect();
    lines.extend(store.says.clone());
    lines.extend(
        needed
            .edited
            .iter()
            .map(|name| format!("kept: {}, which has edits", layout.show(&layout.tree(name)))),
    );
    if !options.dry_run {
        removals.iter().try_for_each(|removal| garbage::remove(layout, &removal.found))?;
        if store.is_collected {
            collect::collect(&layout.store(), &store.stale)?;
        }
    }
    let planned = removals.iter().map(|removal| removal.found.bytes).sum::<u64>() + store.bytes;
    let bytes = if options.dry_run { planned } else { before.saturating_sub(garbage::bytes(layout)) };
    lines.push(match options.dry_run {
        true => format!("would free {} of {}", shown(bytes), shown(before)),
        false => format!("freed {} of {}", shown(bytes), shown(before)),
    });
    let entry = |removal: &Removal| {
        let path = layout.show(&garbage::place(layout, &removal.found));
        json!({ "path": path, "bytes": removal.found.bytes, "why": removal.why })
    };
    let entries: Vec<_> = removals.iter().map(entry).collect();
    let json = json!({ "removals": entries, "store_bytes": store.bytes, "bytes": bytes, "before": before });
    Ok(Outcome::ok(lines.join("\n"), json))
}

fn line(context: &Context, removal: &Removal) -> String {
    let path = context.layout.show(&garbage::place(&context.layout, &removal.found));
    format!("{:>12}  {path}: {}", shown(removal.found.bytes), removal.why)
}

fn needed(context: &Context, pins: &Pins, all: &[GeneratedFile]) -> Result<Needed> {
    let (flavors, toolchains, models) =
        (context.flavors_if_there()?, context.toolchains()?, context.models()?);
    let variants: BTreeSet<String> = pins.variants.values().map(|variant| variant.name.to_string()).collect();
    let builds = match &flavors {
        Some(flavors) => variants
            .iter()
            .flat_map(|variant| flavors.flavors.keys().map(move |flavor| format!("{variant}-{flavor}")))
            .collect(),
        // Without flavors there is no list of the builds in use: all of them stay.
        None => all.iter().map(|one| one.name.clone()).collect(),
    };
    let folder_name = |(name, toolchain)| {
        let folder = toolchain::place(name, toolchain, &context.layout);
        folder.file_name().map(|name| name.to_string_lossy().into_owned())
    };
    let stale_trees = all.iter().filter(|one| one.folder == "trees" && !variants.contains(&one.name));
    let is_edited = |name: &str| apply::has_edits(context, name);
    let edited = stale_trees.map(|one| Ok(is_edited(&one.name)?.then(|| one.name.clone())));
    Ok(Needed {
        builds,
        pages: web_page::trees(context, pins)?,
        tools: pins.tools.values().map(|tool| format!("{}-{}", tool.name, tool.version)).collect(),
        toolchains: toolchains.toolchains.iter().filter_map(folder_name).collect(),
        models: models.models.iter().map(|(name, model)| model.folder(name)).collect(),
        edited: edited.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect(),
        undo: Undo::needs_record(&context.layout),
        variants,
    })
}

/// The plan for the object store.
#[derive(Default)]
struct StorePlan {
    stale: Vec<String>,
    bytes: u64,
    is_collected: bool,
    says: Option<String>,
}

fn store(context: &Context, pins: &Pins) -> Result<StorePlan> {
    let path = context.layout.store();
    if !disk::exists(&path) {
        return Ok(StorePlan::default());
    }
    let shown_path = context.layout.show(&path);
    if let Some(borrower) = garbage::borrower(&context.layout) {
        let borrower = context.layout.show(&borrower);
        let says = Some(format!("kept: {shown_path} as it is, whose objects {borrower} borrows"));
        return Ok(StorePlan { says, ..StorePlan::default() });
    }
    let trees: BTreeSet<String> = pins.pins.values().map(|pin| pin.tree.to_string()).collect();
    let stale = collect::stale_refs(&path, &trees)?;
    let bytes = collect::unreachable_bytes(&path, &stale)?;
    if stale.is_empty() && bytes < STORE_SLACK {
        return Ok(StorePlan::default());
    }
    let says = Some(format!("{:>12}  {shown_path}: objects that no pin leads to", shown(bytes)));
    Ok(StorePlan { stale, bytes, is_collected: true, says })
}
