//! Which builds have ggml's AMX kernels: none whose series lacks the fixes, since GCC 12 compiles upstream's kernels
//! wrongly, and none that the gate compares with stock byte by byte, since they sum in another order.

use espalier_core::config::flavors::platform::Platform;
use espalier_core::config::flavors::{DEFAULT_FLAVOR, Flavor, Flavors};
use espalier_core::config::name::Name;
use espalier_core::config::pins::{Pins, Variant};
use espalier_core::config::snippet::SourceText;

use super::support::files;

/// The patches that fix the kernels, without their numbers.
const FIXES: [&str; 2] = [
    "-ggml-cpu-write-the-amx-tile-config-before-loading-it.patch",
    "-ggml-cpu-address-the-batches-of-amx-matrix-products.patch",
];

/// The compiler option without which the kernels are compiled.
const WITHOUT_AMX: &str = "-U__AMX_INT8__";

/// The variants of a `pins.toml`, and the flavors of this repository.
struct Builds {
    pins: Pins,
    flavors: Flavors,
}

impl Builds {
    fn of(pins: &str) -> Builds {
        let flavors = read("ci/flavors.toml");
        Builds {
            pins: Pins::parse(SourceText { name: "pins.toml", text: pins }).unwrap(),
            flavors: Flavors::parse(SourceText { name: "ci/flavors.toml", text: &flavors }).unwrap(),
        }
    }

    fn of_this_repository() -> Builds {
        Builds::of(&read("pins.toml"))
    }

    fn x86_flavors(&self) -> impl Iterator<Item = (&Name, &Flavor)> {
        self.flavors.flavors.iter().filter(|(_, flavor)| is_x86(flavor))
    }

    /// Returns the flavors for x86-64 in which the variant has the kernels.
    fn with_amx(&self, variant: &str) -> Vec<&str> {
        let variant = self.pins.variant(Some(variant)).unwrap();
        let flavors = self.x86_flavors().filter(|(_, flavor)| self.has_amx(variant, flavor));
        flavors.map(|(name, _)| name.as_str()).collect()
    }

    fn has_amx(&self, variant: &Variant, flavor: &Flavor) -> bool {
        let entries = self.flavors.cache_entries(flavor, &[], &self.pins.cache_entries(variant)).unwrap();
        let is_without = |key: &str| {
            entries.get(key).is_some_and(|flags| flags.split_whitespace().any(|flag| flag == WITHOUT_AMX))
        };
        // The kernels are C++, and ggml reports AMX from C.
        let [c, cxx] = ["CMAKE_C_FLAGS", "CMAKE_CXX_FLAGS"].map(is_without);
        assert_eq!(c, cxx, "{}: {entries:?}", variant.name);
        !cxx
    }

    fn has_fixes(&self, variant: &str) -> bool {
        let folders = self.pins.patch_folders(self.pins.variant(Some(variant)).unwrap());
        let patches: Vec<String> =
            folders.into_iter().flat_map(|folder| files::list(&files::of_this_repository(folder))).collect();
        FIXES.iter().all(|fix| patches.iter().any(|patch| patch.ends_with(*fix)))
    }

    /// Returns the variants that have the kernels in a flavor, and not their fixes.
    fn unfixed(&self) -> Vec<&str> {
        let names = self.pins.variants.keys().map(Name::as_str);
        names.filter(|name| !self.with_amx(name).is_empty() && !self.has_fixes(name)).collect()
    }
}

fn is_x86(flavor: &Flavor) -> bool {
    flavor.is_for(Platform::LinuxX86) || flavor.is_for(Platform::WindowsX86)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(files::of_this_repository(path)).unwrap()
}

#[test]
fn stock_is_compiled_without_amx_in_every_flavor() {
    let builds = Builds::of_this_repository();
    for variant in ["stock", "stock-b11549"] {
        assert_eq!(builds.with_amx(variant), [""; 0], "{variant}");
        assert!(!builds.has_fixes(variant), "{variant}");
    }
}

#[test]
fn packages_have_amx_and_builds_that_equal_stocks_bytes_do_not() {
    let builds = Builds::of_this_repository();
    let all: Vec<&str> = builds.x86_flavors().map(|(name, _)| name.as_str()).collect();
    let packaged: Vec<&str> = all.iter().copied().filter(|name| *name != DEFAULT_FLAVOR).collect();
    assert!(packaged.contains(&"cpu") && packaged.len() + 1 == all.len(), "{all:?}");
    for variant in ["server-fixes", "paged", "server-fixes-b11549", "paged-b11549"] {
        assert_eq!(builds.with_amx(variant), packaged, "{variant}");
    }
    // The gate allows their logits to differ from stock's.
    for variant in ["upstream-fixes", "upstream-fixes-b11549"] {
        assert_eq!(builds.with_amx(variant), all, "{variant}");
    }
}

#[test]
fn every_variant_with_amx_has_the_fixes() {
    assert_eq!(Builds::of_this_repository().unfixed(), [""; 0]);
}

#[test]
fn a_variant_with_amx_and_without_the_fixes_is_found() {
    let with = |fork: &str| Builds::of(&format!("{}\n[variants.fork]\n{fork}\n", read("pins.toml")));
    assert_eq!(with("pin = \"llama\"").unfixed(), ["fork"]);
    assert_eq!(with("extends = \"stock\"").unfixed(), [""; 0], "it inherits stock's CMake entries");
    assert_eq!(with("extends = \"server-fixes\"").unfixed(), [""; 0]);
}
