//! Arguments of the commands that follow upstream and build on the way.

use std::path::PathBuf;

use clap::Args;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use xtask::cli::{Upstreamed, absolute};

use super::values::Until;
use crate::{canary, sync};

#[derive(Debug, Args)]
pub struct Sync {
    /// Target: tag, branch or commit id, also `v1.0~3`.
    #[arg(long, value_name = "REF")]
    to: String,
    /// Repository, bundle or URL to fetch it from, instead of the pin's sources.
    #[arg(long, value_name = "PATH|URL")]
    from: Option<String>,
    /// Variant of `pins.toml` whose pin moves.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    #[command(flatten)]
    upstreamed: Upstreamed,
    /// Open or update this pin's pull request.
    #[arg(long)]
    github: bool,
    /// Print what would become of each patch; check and write nothing.
    #[arg(long, conflicts_with = "github")]
    dry_run: bool,
}

impl Sync {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Sync { to, from, variant, upstreamed, github, dry_run } = self;
        let choices = upstreamed.choices();
        let from = from.map(absolute);
        sync::run(context, &sync::Options { variant, to, from, dry_run, choices, github })
    }
}

#[derive(Debug, Args)]
pub struct Canary {
    /// Variant of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Tag, branch or commit id, also `v1.0~3`; default: upstream's default branch.
    #[arg(long, value_name = "REF", default_value = "HEAD")]
    tip: String,
    /// Repository, bundle or URL to fetch it from, instead of the pin's sources.
    #[arg(long, value_name = "PATH|URL")]
    from: Option<String>,
    /// Last level to run.
    #[arg(long, value_enum, default_value_t = Until::Gate)]
    until: Until,
    /// Write the report as Markdown.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Also write the page of `status --html`.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Maintain one issue for each broken patch, about upstream's default branch (so not with `--tip`).
    #[arg(long, conflicts_with = "tip")]
    github: bool,
    /// Print what would be done.
    #[arg(long)]
    dry_run: bool,
}

impl Canary {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Canary { variant, tip, from, until, report, html, github, dry_run } = self;
        let (from, until) = (from.map(absolute), until.into());
        let options = canary::Options { variant, tip, from, until, report, html, github, dry_run };
        canary::run(context, &options)
    }
}
