//! The static libraries of Rust that a variant can link.

use espalier_core::config::pins::Variant;

/// A crate of this repository that cargo builds as a static library, for the variants that ask for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RustLibrary {
    /// `kernels/`.
    Kernels,
    /// `front/`: the server's transport.
    Front,
}

impl RustLibrary {
    /// Returns the libraries that `variant` links.
    pub fn of(variant: &Variant) -> impl Iterator<Item = RustLibrary> {
        let wanted = [(RustLibrary::Kernels, variant.kernels), (RustLibrary::Front, variant.front)];
        wanted.into_iter().filter_map(|(library, is_wanted)| is_wanted.then_some(library))
    }

    /// Name of its folder at the root, which is also that of its target folder and of its log.
    #[must_use]
    pub fn folder(self) -> &'static str {
        match self {
            RustLibrary::Kernels => "kernels",
            RustLibrary::Front => "front",
        }
    }

    /// Name of its package.
    #[must_use]
    pub fn package(self) -> String {
        format!("espalier-{}", self.folder())
    }

    /// CMake cache entry with its path; the one with its headers has the suffix `_INCLUDE`.
    #[must_use]
    pub fn cache_entry(self) -> &'static str {
        match self {
            RustLibrary::Kernels => "ESPALIER_KERNELS",
            RustLibrary::Front => "ESPALIER_FRONT",
        }
    }
}
