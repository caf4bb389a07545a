//! Arguments of the commands that ship packages and verify shipped ones.

use clap::Args;
use espalier_core::config::name::Name;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;

use super::building::Which;
use super::values::absolute;

#[derive(Debug, Args)]
pub struct Verify {
    /// Folder of a package, an archive, or an image layout.
    #[arg(value_name = "PATH")]
    path: String,
    /// Leave the lock and the patches of this project out: the package is of another commit.
    #[arg(long)]
    alone: bool,
}

impl Verify {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Verify { path, alone } = self;
        espalier_dist::verify::run(
            context,
            &espalier_dist::verify::Options { path: absolute(path).into(), alone },
        )
    }
}

#[derive(Debug, Args)]
pub struct Release {
    /// Variant of `pins.toml`; every one that is built, unless flavors are named.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Flavor of `ci/flavors.toml`, which has to be built; every one that is when none is named.
    #[arg(long = "flavor", value_name = "NAME")]
    flavors: Vec<Name>,
    /// Tag that it is published under; has to be the version, and `CHANGELOG.md` needs an entry of it.
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Where the files will be, which install.sh then knows.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Print what would be done.
    #[arg(long)]
    dry_run: bool,
}

impl Release {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Release { variant, flavors, tag, url, dry_run } = self;
        let flavors = flavors.iter().map(ToString::to_string).collect();
        espalier_dist::release::run(
            context,
            &espalier_dist::release::Options { variant, flavors, tag, url, dry_run },
        )
    }
}

#[derive(Debug, Args)]
pub struct Image {
    #[command(flatten)]
    which: Which,
    /// Print what would be done.
    #[arg(long)]
    dry_run: bool,
}

impl Image {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Image { which: Which { variant, flavor }, dry_run } = self;
        let flavor = flavor.to_string();
        espalier_dist::image::run(context, &espalier_dist::image::Options { variant, flavor, dry_run })
    }
}
