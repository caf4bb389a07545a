//! Arguments of the commands that prove that nothing changed by accident.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use xtask::cli::{Which, absolute};

use super::reference;
use super::values::{Part, each};
use crate::{fuzz, gate};
use crate::{long, page, test};

#[derive(Debug, Args)]
pub struct Test {
    /// Run only this step, or with `--long` only this flavor; repeatable.
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// List the steps.
    #[arg(long)]
    list: bool,
    /// Leave out steps that have passed here with the same inputs, and say which; ignored if `CI` is set.
    #[arg(long, conflicts_with = "long")]
    changed: bool,
    /// Build every flavor that this machine can build from nothing, and record each in ci/proofs/; takes hours.
    #[arg(long, conflicts_with = "list")]
    long: bool,
    /// Print what would be built.
    #[arg(long, requires = "long")]
    dry_run: bool,
}

impl Test {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Test { only, list, changed, long, dry_run } = self;
        if long {
            return long::run(context, &long::Options { only, dry_run });
        }
        let commands = reference::markdown();
        test::run(context, &test::Options { only, list, changed, commands })
    }
}

#[derive(Debug, Args)]
pub struct Gate {
    /// Variant of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Compare only this part; repeatable.
    #[arg(long, value_enum, value_name = "PART")]
    only: Vec<Part>,
    /// Compare only this model, such as `qwen35`; with `--only logits` or `--only servers`; repeatable.
    #[arg(long = "model", value_name = "NAME")]
    models: Vec<String>,
    /// Run only this check of the servers, such as `answers`; with `--only servers`; repeatable.
    #[arg(long = "check", value_name = "NAME")]
    checks: Vec<String>,
    /// Check only this promise, by name; with `--only promises`; repeatable.
    #[arg(long = "promise", value_name = "NAME")]
    promises: Vec<String>,
    /// Check this server instead of the packaged one; with `--only promises`.
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Ask every chat and long prompt, for long answers; with `--only weights`.
    #[arg(long)]
    full: bool,
}

impl Gate {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Gate { variant, only, models, checks, promises, program, full } = self;
        let only = each(only);
        let weights = if full { gate::weights::Size::Full } else { gate::weights::Size::Short };
        gate::run(context, &gate::Options { variant, only, models, checks, promises, program, weights })
    }
}

#[derive(Debug, Args)]
pub struct Fuzz {
    #[command(subcommand)]
    what: FuzzWhat,
}

/// What can be fuzzed.
#[derive(Debug, Subcommand)]
enum FuzzWhat {
    /// Compare the paged server with the same one unpaged: random options, random clients, every answer judged.
    Servers(FuzzServers),
    /// Send grammars, schemas, lists and bodies of growing size, and hold each to a budget of time and memory.
    Requests(FuzzRequests),
}

#[derive(Debug, Args)]
struct FuzzServers {
    /// Start no new round after N minutes.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
    /// Seed of the first round; each round after it adds 1.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Maximum number of rounds.
    #[arg(long, value_name = "N")]
    rounds: Option<u64>,
    /// `llama-server` to test; default: the packaged one.
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Seconds that a client waits in silence if no request is ahead of it.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    patience: u32,
}

#[derive(Debug, Args)]
struct FuzzRequests {
    /// Start no new round after N minutes.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
    /// Seed of the first round; each round after it adds 1.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Maximum number of rounds.
    #[arg(long, value_name = "N")]
    rounds: Option<u64>,
    /// `llama-server` to test; default: the packaged one.
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Only this family of requests, such as `grammar-range`; repeatable.
    #[arg(long = "family", value_name = "NAME")]
    families: Vec<String>,
    /// Seconds in which another client has to be answered; a request itself has twice as many.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    patience: u32,
}

impl Fuzz {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        match self.what {
            FuzzWhat::Servers(FuzzServers { minutes, seed, rounds, program, patience }) => {
                let span = fuzz::Span { minutes, seed, rounds };
                fuzz::run(context, &fuzz::Options { span, program, patience })
            }
            FuzzWhat::Requests(FuzzRequests { minutes, seed, rounds, program, families, patience }) => {
                let span = fuzz::Span { minutes, seed, rounds };
                fuzz::requests::run(context, &fuzz::requests::Options { span, program, families, patience })
            }
        }
    }
}

#[derive(Debug, Args)]
pub struct Page {
    #[command(flatten)]
    which: Which,
    /// Folder for the screenshots.
    #[arg(long, value_name = "DIR")]
    screenshots: Option<String>,
}

impl Page {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Page { which: Which { variant, flavor }, screenshots } = self;
        let screenshots = screenshots.map(|folder| PathBuf::from(absolute(folder)));
        let flavor = flavor.to_string();
        page::run(context, &page::Options { variant, flavor, screenshots })
    }
}
