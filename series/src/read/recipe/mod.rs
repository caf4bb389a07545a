//! The patches that a package's recipe applies, in order, with the options of the commands that apply them.
//!
//! A recipe is a program, but is not executed: its text is followed as far as it applies patches. A variable that the
//! recipe does not set matches anything in a name. Conditions are not evaluated: both branches count.

mod changes;
mod collected;
mod macports;
mod make;
mod nix;
mod nix_tokens;
mod packages;
mod patch_script;
mod pattern;
mod script;
mod shell;
mod spec;
mod tcl;
mod vcpkg;
mod yocto;

pub use self::make::read_makefile;
pub use self::patch_script::{PatchScript, read_patch_script};
pub use self::pattern::fits;
use super::apply_options::ApplyOptions;

/// A format of recipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecipeKind {
    /// `APKBUILD` of Alpine.
    Alpine,
    /// `PKGBUILD` of Arch and MSYS2.
    Arch,
    /// `NAME.ebuild` of Gentoo.
    Gentoo,
    /// `NAME.recipe` of Haiku.
    Haiku,
    /// `Portfile` of MacPorts.
    MacPorts,
    /// `package.nix`, `default.nix`.
    Nix,
    /// `NAME.spec` of RPM.
    Rpm,
    /// `portfile.cmake` of vcpkg.
    Vcpkg,
    /// `NAME.bb` and `NAME.bbappend` of Yocto.
    Yocto,
}

impl RecipeKind {
    /// Returns the format of the file `name`, if it is a recipe.
    pub fn of(name: &str) -> Option<RecipeKind> {
        match name {
            "APKBUILD" => return Some(RecipeKind::Alpine),
            "PKGBUILD" => return Some(RecipeKind::Arch),
            "Portfile" => return Some(RecipeKind::MacPorts),
            "portfile.cmake" => return Some(RecipeKind::Vcpkg),
            _ => {}
        }
        let (_, ending) = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty())?;
        match ending.to_ascii_lowercase().as_str() {
            "bb" | "bbappend" => Some(RecipeKind::Yocto),
            "ebuild" => Some(RecipeKind::Gentoo),
            "nix" => Some(RecipeKind::Nix),
            "recipe" => Some(RecipeKind::Haiku),
            "spec" => Some(RecipeKind::Rpm),
            _ => None,
        }
    }
}

/// A recipe, as far as it concerns patches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recipe {
    /// The patches in the order in which they are applied, then those that the recipe names without applying them.
    pub patches: Vec<RecipePatch>,
    /// Notes for the user on what was not followed.
    pub notes: Vec<Remark>,
    /// Changes of the sources that no patch has: by commands, or by placeholders that the build replaces in a patch.
    pub changes: Vec<Remark>,
}

/// One patch that a recipe names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecipePatch {
    /// The path as written, with `*` for each variable.
    pub pattern: String,
    /// Whether every file that fits is meant, as with `*.patch`.
    pub is_glob: bool,
    /// Settings with which the recipe applies it.
    pub options: ApplyOptions,
    /// Number of leading path components that are stripped where the recipe states none, if its format defines one.
    pub usual_strip: Option<u32>,
    /// The reason why the recipe does not apply it to the source, if it does not.
    pub left_out: Option<String>,
}

/// A remark on a recipe for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Number of the line, from 1, if it is about one.
    pub line: Option<usize>,
    /// The text.
    pub text: String,
}

/// Reads `text` as a recipe.
///
/// # Errors
///
/// All commands that apply patches in a way that cannot be followed.
pub fn read_recipe(kind: RecipeKind, text: &str) -> Result<Recipe, Vec<Remark>> {
    let unapplied = match kind {
        RecipeKind::Rpm => "the spec file does not apply it",
        _ => "nothing in the recipe applies it",
    };
    let collected = match kind {
        RecipeKind::Alpine => packages::read_alpine(text),
        RecipeKind::Arch => packages::read_arch(text),
        RecipeKind::Gentoo => packages::read_gentoo(text),
        RecipeKind::Haiku => packages::read_haiku(text),
        RecipeKind::MacPorts => macports::read_macports(text),
        RecipeKind::Nix => nix::read_nix(text),
        RecipeKind::Rpm => spec::read_spec(text),
        RecipeKind::Vcpkg => vcpkg::read_vcpkg(text),
        RecipeKind::Yocto => yocto::read_yocto(text),
    };
    collected.finish(unapplied)
}

#[cfg(test)]
mod change_tests;
#[cfg(test)]
mod tests;
