//! Arguments of the commands from the pin to a running server.

use clap::Args;
use espalier_core::config::flavors::DEFAULT_FLAVOR;
use espalier_core::config::name::Name;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::plan::gc::{Limits, size};
use espalier_dist::web_page::Wanted;

use super::values::absolute;
use crate::cmd;

/// Which build.
#[derive(Debug, Args)]
pub struct Which {
    /// Variant of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// Flavor of `ci/flavors.toml`.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_FLAVOR)]
    pub flavor: Name,
}

#[derive(Debug, Args)]
pub struct Smoke {
    #[command(flatten)]
    which: Which,
    /// Keep the model in the packaged `ggml-rpc-server`, a second process, and compare with the server alone.
    #[arg(long)]
    rpc: bool,
    /// Compute every operation of the model on the flavor's accelerator, and compare with the processor.
    #[arg(long, conflicts_with = "rpc")]
    operations: bool,
}

impl Smoke {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Smoke { which: Which { variant, flavor }, rpc, operations } = self;
        let variant = variant.as_deref();
        match (rpc, operations) {
            (true, _) => espalier_dist::smoke_rpc::command(context, variant, &flavor),
            (_, true) => espalier_dist::smoke_operations::command(context, variant, &flavor),
            _ => espalier_dist::smoke::command(context, variant, flavor.to_string()),
        }
    }
}

#[derive(Debug, Args)]
pub struct Fetch {
    /// Local repository or bundle, tried before all other sources.
    #[arg(long, value_name = "PATH")]
    from: Option<String>,
    /// Print what would be done.
    #[arg(long)]
    dry_run: bool,
}

impl Fetch {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Fetch { from, dry_run } = self;
        cmd::fetch::run(context, &cmd::fetch::Options { from: from.map(absolute), dry_run })
    }
}

#[derive(Debug, Args)]
pub struct Apply {
    /// Variant of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Only check whether everything applies; write no tree to disk.
    #[arg(long)]
    pub(super) check: bool,
    /// Discard manual edits in the tree on disk.
    #[arg(long, conflicts_with = "check")]
    discard_edits: bool,
    /// Print what would be done.
    #[arg(long)]
    dry_run: bool,
}

impl Apply {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Apply { variant, check, discard_edits, dry_run } = self;
        espalier_patches::apply::run(
            context,
            &espalier_patches::apply::Options { variant, check, discard_edits, dry_run },
        )
    }
}

#[derive(Debug, Args)]
pub struct Lock {
    /// Write nothing; a stale lock is an error.
    #[arg(long)]
    pub(super) check: bool,
}

impl Lock {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        espalier_patches::lock::run(context, &espalier_patches::lock::Options { check: self.check })
    }
}

#[derive(Debug, Args)]
pub struct Build {
    #[command(flatten)]
    which: Which,
    /// Number of parallel compile jobs.
    #[arg(long, short, value_name = "N")]
    jobs: Option<u32>,
    /// Skip the smoke test; the build then counts as unfinished.
    #[arg(long)]
    no_smoke: bool,
    /// Stop once CMake has found everything that the flavor needs.
    #[arg(long, conflicts_with = "no_smoke")]
    configure_only: bool,
    /// Build from an empty folder without a compiler cache, and write what it showed to ci/proofs/.
    #[arg(long)]
    record: bool,
    /// Build once more, from nothing in another folder, and compare every byte of both packages.
    #[arg(long, conflicts_with_all = ["no_smoke", "configure_only", "record"])]
    twice: bool,
    /// Compile all but ggml and libllama at -O1: enough to compare answers with, and never timed or shipped.
    #[arg(long, conflicts_with_all = ["record", "twice"])]
    reference: bool,
    /// Processors of the accelerator, separated by commas, instead of the flavor's own list.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    architectures: Vec<String>,
    /// Leave the web page out of the server.
    #[arg(long)]
    no_ui: bool,
    /// Print what would be done.
    #[arg(long)]
    dry_run: bool,
}

impl Build {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let options = espalier_dist::build::Options {
            variant: self.which.variant,
            flavor: self.which.flavor.to_string(),
            dry_run: self.dry_run,
            jobs: self.jobs,
            no_smoke: self.no_smoke,
            page: if self.no_ui { Wanted::No } else { Wanted::IfPossible },
            configure_only: self.configure_only,
            record: self.record,
            twice: self.twice,
            recompile: false,
            reference: self.reference,
            architectures: self.architectures,
        };
        espalier_dist::build::run(context, &options)
    }
}

#[derive(Debug, Args)]
pub struct Toolchain {
    /// Flavor of `ci/flavors.toml`.
    #[arg(value_name = "FLAVOR")]
    flavor: Name,
    /// Leave out the software device or emulator that runs it here.
    #[arg(long)]
    build_only: bool,
    /// Print what would be done.
    #[arg(long)]
    dry_run: bool,
}

impl Toolchain {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Toolchain { flavor, build_only, dry_run } = self;
        espalier_dist::toolchain::run(
            context,
            &espalier_dist::toolchain::Options { flavor, build_only, dry_run },
        )
    }
}

#[derive(Debug, Args)]
pub struct Model {
    /// Model of `ci/models.toml`; without one they are listed.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print what would be downloaded.
    #[arg(long)]
    dry_run: bool,
}

impl Model {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Model { name, dry_run } = self;
        cmd::model::run(context, &cmd::model::Options { name, dry_run })
    }
}

#[derive(Debug, Args)]
pub struct Doctor {
    /// Flavor of `ci/flavors.toml`; exit code 1 if it cannot be built.
    #[arg(value_name = "FLAVOR")]
    flavor: Option<Name>,
}

impl Doctor {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        espalier_dist::doctor::run(context, &espalier_dist::doctor::Options { flavor: self.flavor })
    }
}

#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    which: Which,
    /// Serve a small chat model, downloaded once (93 MB), with the paged KV cache.
    #[arg(long)]
    demo: bool,
    /// Arguments of the server: `cargo xtask run -- -m model.gguf --port 8080`.
    #[arg(last = true)]
    arguments: Vec<String>,
}

impl Run {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Run { which: Which { variant, flavor }, demo, arguments } = self;
        cmd::run::run(context, &cmd::run::Options { variant, flavor: flavor.to_string(), demo, arguments })
    }
}

#[derive(Debug, Args)]
pub struct Gc {
    /// Also build folders that nothing was written to for more than N days.
    #[arg(long, value_name = "N")]
    keep_days: Option<u64>,
    /// Also build folders, then toolchains, until what is left has at most this size: 20G, 500M.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_size: Option<u64>,
    /// Print what would be removed.
    #[arg(long)]
    dry_run: bool,
}

impl Gc {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Gc { keep_days, max_size, dry_run } = self;
        let limits = Limits { keep_days, max_bytes: max_size };
        cmd::gc::run(context, &cmd::gc::Options { limits, dry_run })
    }
}

#[derive(Debug, Args)]
pub struct Matrix {
    /// Only what a change since this commit affects; everything where that cannot be told.
    #[arg(long, value_name = "COMMIT")]
    changed_since: Option<String>,
    /// Only what container images are made of.
    #[arg(long)]
    images: bool,
    /// Print `name=value` lines for a workflow's output.
    #[arg(long)]
    github: bool,
    /// Number of jobs that take a part of the rows each; more rows than they may have are an error.
    #[arg(long, value_name = "N", requires = "github")]
    parts: Option<usize>,
}

impl Matrix {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Matrix { changed_since, images, github, parts } = self;
        espalier_dist::matrix::run(
            context,
            &espalier_dist::matrix::Options { changed_since, images, github, parts },
        )
    }
}
