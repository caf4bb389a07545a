//! Arguments of the commands that start and change a series.

use std::ffi::OsString;

use clap::Args;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;

use super::values::absolute;
use crate::cmd;

#[derive(Debug, Args)]
pub struct Init {
    /// Upstream: repository, bundle or URL.
    #[arg(long, value_name = "PATH|URL")]
    from: String,
    /// Tag, branch or full commit id to pin.
    #[arg(long, value_name = "REF")]
    at: String,
    /// Name of the first variant.
    #[arg(long, value_name = "NAME")]
    variant: String,
    /// Name of upstream, such as `llama.cpp`.
    #[arg(long, value_name = "NAME")]
    upstream: Option<String>,
    /// Print the file that would be written.
    #[arg(long)]
    dry_run: bool,
}

impl Init {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Init { from, at, variant, upstream, dry_run } = self;
        let from = absolute(from);
        cmd::init::run(context, &cmd::init::Options { from, at, upstream, variant, dry_run })
    }
}

#[derive(Debug, Args)]
pub struct Import {
    /// Folder of patches, mbox, quilt series or diff; with `--from`, a range of commits: `BASE..TIP`.
    #[arg(value_name = "PATCHES|BASE..TIP")]
    what: String,
    /// Fork to import: repository, bundle or URL.
    #[arg(long, value_name = "PATH|URL")]
    from: Option<String>,
    /// Variant of `pins.toml`, or name of a new one.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Name of a new variant's upstream, such as `llama.cpp`.
    #[arg(long, value_name = "NAME")]
    upstream: Option<String>,
    /// File or folder to leave as it is at the pin; repeatable.
    #[arg(long, value_name = "PATH")]
    leave_out: Vec<OsString>,
    /// Author of patches that name none, `Name <address>`; default: you, from git's configuration.
    #[arg(long, value_name = "AUTHOR", conflicts_with = "from")]
    author: Option<String>,
    /// Number of leading path components to strip where no queue sets it; default: the one that fits.
    #[arg(long, short = 'p', value_name = "N", conflicts_with = "from")]
    strip: Option<u32>,
    /// Append them to the variant's patches.
    #[arg(long)]
    append: bool,
    /// Do everything except write.
    #[arg(long)]
    dry_run: bool,
}

impl Import {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Import { what, from, variant, upstream, leave_out, author, strip, append, dry_run } = self;
        let what = match from {
            Some(from) => espalier_patches::import::What::Fork { from: absolute(from), range: what, append },
            None => {
                espalier_patches::import::What::Patches { path: absolute(what).into(), author, strip, append }
            }
        };
        espalier_patches::import::run(
            context,
            &espalier_patches::import::Options { what, variant, upstream, leave_out, dry_run },
        )
    }
}

#[derive(Debug, Args)]
pub struct New {
    /// First line of its message, at most 72 characters.
    subject: String,
    /// Variant of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Print the message and write nothing.
    #[arg(long)]
    dry_run: bool,
}

impl New {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let New { subject, variant, dry_run } = self;
        espalier_patches::new::run(context, &espalier_patches::new::Options { subject, variant, dry_run })
    }
}

#[derive(Debug, Args)]
pub struct Edit {
    /// Variant of `pins.toml`.
    variant: Option<String>,
    /// Discard what is in the repository but in no patch.
    #[arg(long)]
    discard: bool,
    /// Print what would be done.
    #[arg(long)]
    dry_run: bool,
}

impl Edit {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Edit { variant, discard, dry_run } = self;
        espalier_patches::edit::run(context, &espalier_patches::edit::Options { variant, discard, dry_run })
    }
}

#[derive(Debug, Args)]
pub struct Export {
    /// Variant of `pins.toml`.
    variant: Option<String>,
    /// Print what would be written.
    #[arg(long)]
    dry_run: bool,
}

impl Export {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Export { variant, dry_run } = self;
        espalier_patches::export::run(context, &espalier_patches::export::Options { variant, dry_run })
    }
}

#[derive(Debug, Args)]
pub struct Trailers {
    /// Variant of `pins.toml`.
    variant: Option<String>,
    /// Trailer to set, `'Key: value'`; repeatable.
    #[arg(long, value_name = "TRAILER", required = true)]
    set: Vec<String>,
    /// Only this patch, by number, file name or path; repeatable.
    #[arg(long = "patch", value_name = "NNNN")]
    patches: Vec<String>,
    /// Replace values that are already filled in.
    #[arg(long)]
    overwrite: bool,
    /// Print what would change.
    #[arg(long)]
    dry_run: bool,
}

impl Trailers {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Trailers { variant, set, patches, overwrite, dry_run } = self;
        espalier_patches::trailers::run(
            context,
            &espalier_patches::trailers::Options { variant, set, patches, overwrite, dry_run },
        )
    }
}

#[derive(Debug, Args)]
pub struct Lint {
    /// Fix what can be fixed automatically: numbers, names, missing final newlines.
    #[arg(long)]
    fix: bool,
    /// Print what would be fixed.
    #[arg(long, requires = "fix")]
    dry_run: bool,
    /// Print every finding, however many there are.
    #[arg(long)]
    long: bool,
}

impl Lint {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Lint { fix, dry_run, long } = self;
        espalier_patches::lint::run(context, &espalier_patches::lint::Options { fix, dry_run, long })
    }
}
