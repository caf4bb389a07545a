//! The build that a command is about: a variant in a flavor.

use clap::Args;
use espalier_core::config::flavors::DEFAULT_FLAVOR;
use espalier_core::config::name::Name;

/// Names a build. A command looks up the variant and the flavor once, and passes those on.
#[derive(Clone, Debug, Args)]
pub struct Which {
    /// Variant of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<Name>,
    /// Flavor of `ci/flavors.toml`.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_FLAVOR)]
    pub flavor: Name,
}

impl Which {
    /// Returns the build of a variant in the default flavor.
    #[must_use]
    pub fn of_variant(variant: &Name) -> Which {
        Which { variant: Some(variant.clone()), ..Which::default() }
    }
}

impl Default for Which {
    fn default() -> Which {
        let flavor = DEFAULT_FLAVOR.parse().expect("the default flavor has a valid name");
        Which { variant: None, flavor }
    }
}
