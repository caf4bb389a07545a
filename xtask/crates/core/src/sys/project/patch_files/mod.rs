//! Patches from elsewhere: a folder, an mbox, a queue with an order file, a package's recipe, one diff. All of it is
//! untrusted.

mod found;
mod makefiles;
mod names;
mod recipe;
mod recipe_text;

use std::path::{Path, PathBuf};

use espalier_series::{QuiltEntry, RecipeKind, conditional_lines, is_packed, printable, read_quilt_series};
pub use found::{FoundPatch, PatchFiles};
use found::{found_patch, unnamed_in};
use makefiles::changes_beside;
pub use names::read;
use names::{files_in, folders_in, has_ending, in_natural_order, is_patch, name_of, text_of};
use recipe::recipe;

use crate::error::{Error, Result};
use crate::next_command::quoted;
use crate::sys::machine::disk;

/// Names of order files: quilt's and StGit's, Electron's, dpatch's.
const ORDER_FILES: [&str; 3] = ["series", ".patches", "00list"];
/// Recipes that have the same name in every package: vcpkg, Nix, Alpine, Arch, MacPorts.
const RECIPES: [&str; 6] =
    ["portfile.cmake", "package.nix", "default.nix", "APKBUILD", "PKGBUILD", "Portfile"];
/// Strip count of quilt, of `git am` and of dpatch, for order files.
const OF_QUEUES: Option<u32> = Some(1);

/// Finds patches at `path`: a file of patches, an order file, a recipe, or a folder that has one of them.
pub fn find(path: &Path) -> Result<PatchFiles> {
    if !disk::exists(path) {
        return Err(Error::usage(format!("there is no `{}`", path.display()))
            .hint("name a folder of patches, an mbox, a quilt series or a diff")
            .hint("or commits of a fork: cargo xtask import --from REPO BASE..TIP"));
    }
    if path.is_dir() {
        return find_in(path);
    }
    let name = name_of(path);
    if ORDER_FILES.contains(&name.as_str()) || has_ending(path, &["series"]) {
        return ordered(path);
    }
    if let Some(kind) = RecipeKind::of(&name) {
        let found = recipe(path, kind)?;
        if found.patches.is_empty() {
            return Err(applies_none(path, &found).unwrap_or_else(|| {
                Error::usage(format!("`{}` names no patch", path.display()))
                    .detail(found.notes.join("\n"))
                    .hint("name the folder of the patches instead")
            }));
        }
        return Ok(found);
    }
    Ok(PatchFiles { patches: vec![found_patch(path.to_path_buf(), name)], ..PatchFiles::default() })
}

fn find_in(folder: &Path) -> Result<PatchFiles> {
    for folder in ["", "patches", "debian/patches"].map(|below| folder.join(below)) {
        let order = ORDER_FILES.iter().map(|name| folder.join(name)).find(|file| file.is_file());
        if let Some(order) = order {
            return ordered(&order);
        }
    }
    let files = files_in(folder)?;
    let mut unused = PatchFiles::default();
    if let Some(found) = by_recipe(folder, &files, &mut unused)? {
        return Ok(found);
    }
    if files.iter().any(|file| is_patch(file)) {
        return by_name(folder, files, unused);
    }
    let holders = holders_in(folder)?;
    match &holders[..] {
        [] => by_name(folder, files, unused),
        [holder] => find_in(holder),
        holders => Err(several(
            format!("`{}` has no patches itself, and several folders that do", folder.display()),
            holders,
        )),
    }
}

/// Returns the patches of the recipe in `folder`, if one applies patches that exist there. `unused` receives the notes on
/// recipes that do not, and their changes.
///
/// # Errors
///
/// Several recipes apply different patches, or the recipes only name patches that they do not apply: without a recipe,
/// all patches of the folder would be taken.
fn by_recipe(folder: &Path, files: &[PathBuf], unused: &mut PatchFiles) -> Result<Option<PatchFiles>> {
    let kind_of = |file: &PathBuf| RecipeKind::of(&name_of(file));
    let mut none = None;
    let mut add = |found: PatchFiles| {
        unused.notes.extend(found.notes);
        unused.changes.extend(found.changes);
    };
    for file in RECIPES.map(|name| folder.join(name)).iter().filter(|file| file.is_file()) {
        let Some(kind) = kind_of(file) else { continue };
        let found = recipe(file, kind)?;
        if !found.patches.is_empty() {
            return Ok(Some(found));
        }
        none = none.or_else(|| applies_none(file, &found));
        add(found);
    }
    let mut named = Vec::new();
    for file in files.iter().filter(|file| !RECIPES.contains(&name_of(file).as_str())) {
        let Some(kind) = kind_of(file) else { continue };
        let found = recipe(file, kind)?;
        if found.patches.is_empty() {
            none = none.or_else(|| applies_none(file, &found));
            add(found);
        } else {
            named.push((file.clone(), found));
        }
    }
    // Recipes for several versions of one package often name the same patches.
    named.dedup_by(|(_, left), (_, right)| left.patches == right.patches);
    match named.len() {
        0 => none.map_or(Ok(None), Err),
        1 => Ok(named.pop().map(|(_, found)| found)),
        _ => {
            let files: Vec<PathBuf> = named.into_iter().map(|(file, _)| file).collect();
            let what = format!("`{}` has several recipes, which name different patches", folder.display());
            Err(several(what, &files))
        }
    }
}

/// Returns the error for a recipe that names patches which lie beside it and applies none of them.
fn applies_none(file: &Path, found: &PatchFiles) -> Option<Error> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let is_there = |(name, _): &&(String, String)| folder.join(name).is_file();
    let there: Vec<&(String, String)> = found.others.iter().filter(is_there).collect();
    if there.is_empty() {
        return None;
    }
    let lines: Vec<String> = there.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    let names: Vec<String> = there.iter().map(|(name, _)| quoted(name)).collect();
    let series = quoted(&folder.join("series").display().to_string());
    Some(
        Error::usage(format!("`{}` applies none of the patches in its folder", file.display()))
            .detail([lines, found.notes.clone()].concat().join("\n"))
            .hint(format!(
                "list those to import in their order, then import that file: printf '%s\\n' {} >{series}",
                names.join(" ")
            )),
    )
}

fn several(what: String, paths: &[PathBuf]) -> Error {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let first = names.first().cloned().unwrap_or_default();
    Error::usage(what).detail(names.join("\n")).hint(format!("name the one to import: {}", quoted(&first)))
}

/// Adds every patch in `folder` to `found`, by name. Files that could be patches and are left out are reported.
fn by_name(folder: &Path, files: Vec<PathBuf>, mut found: PatchFiles) -> Result<PatchFiles> {
    found.changes.extend(changes_beside(folder)?);
    for file in files {
        let name = name_of(&file);
        if is_patch(&file) {
            found.patches.push(found_patch(file, name));
        } else if is_packed(&name) && has_ending(&file.with_extension(""), &["patch", "diff"]) {
            return Err(Error::usage(format!("`{}` is packed", file.display())).hint("unpack it first"));
        } else if !name.starts_with('.') {
            found.others.push((name, "its name is not that of a patch".to_string()));
        }
    }
    for holder in holders_in(folder)? {
        found.others.push((
            format!("{}/", name_of(&holder)),
            "a folder with patches: import it by itself".to_string(),
        ));
    }
    let by_name = found.patches.clone();
    found.patches.sort_by(|left, right| in_natural_order(&left.name, &right.name));
    let is_reordered = found.patches != by_name;
    if is_reordered {
        let note = "no series file or recipe gives the order: they were applied by the numbers in their names, so that 2 comes before 10";
        found.notes.push(note.to_string());
    }
    let is_numbered = |found: &FoundPatch| found.name.starts_with(|letter: char| letter.is_ascii_digit());
    if found.patches.len() > 1 && !is_reordered && !found.patches.iter().all(is_numbered) {
        let note = "no series file or recipe gives the order, and not every name has a number: they were applied in the order of their names";
        found.notes.push(note.to_string());
    }
    Ok(found)
}

/// Maximum depth of patches in the folder of a package.
const HOLDER_DEPTH: usize = 3;

/// Returns the folders directly in `folder` that hold patches or an order file, at some depth.
fn holders_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut holders = Vec::new();
    for below in folders_in(folder)? {
        if holds_patches(&below, HOLDER_DEPTH)? {
            holders.push(below);
        }
    }
    Ok(holders)
}

fn holds_patches(folder: &Path, depth: usize) -> Result<bool> {
    if name_of(folder).starts_with('.') {
        return Ok(false);
    }
    let has_order = ORDER_FILES.iter().any(|name| folder.join(name).is_file());
    if has_order || files_in(folder)?.iter().any(|file| is_patch(file)) {
        return Ok(true);
    }
    if depth > 0 {
        for below in folders_in(folder)? {
            if holds_patches(&below, depth - 1)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn ordered(order: &Path) -> Result<PatchFiles> {
    let folder = order.parent().unwrap_or(Path::new("")).to_path_buf();
    let file = name_of(order);
    let text = text_of(order)?;
    let entries = read_quilt_series(&file, &text).map_err(|wrong| {
        Error::usage(format!("`{}` has lines that `import` cannot interpret", order.display()))
            .detail(wrong.join("\n"))
            .hint("correct these lines, then run the same command again")
    })?;
    let mut found = PatchFiles { changes: changes_beside(&folder)?, ..PatchFiles::default() };
    let mut missing = Vec::new();
    for entry in entries {
        // dpatch omits the file extension.
        let names = [entry.name.clone(), format!("{}.dpatch", entry.name)];
        match names.iter().find(|name| disk::exists(&folder.join(name))) {
            Some(name) => found.patches.push(in_queue(&folder, name, &entry)),
            None => missing.push(entry.name),
        }
    }
    if !missing.is_empty() {
        return Err(Error::usage(format!("`{}` names patches that are not there", order.display()))
            .detail(missing.join("\n"))
            .hint("bring them there, or take their lines out"));
    }
    for unnamed in unnamed_in(&folder, &found.patches)? {
        found.others.push((unnamed, format!("`{file}` does not name it")));
    }
    let conditions: Vec<String> =
        conditional_lines(&text).iter().map(|line| format!("`{}`", printable(line.as_bytes()))).collect();
    if !conditions.is_empty() {
        found.notes.push(format!("conditions in `{file}` were not evaluated: {}", conditions.join(", ")));
    }
    Ok(found)
}

fn in_queue(folder: &Path, name: &str, entry: &QuiltEntry) -> FoundPatch {
    FoundPatch {
        path: folder.join(name),
        name: name.to_string(),
        strip: entry.options.strip,
        usual_strip: OF_QUEUES,
        reverse: entry.options.reverse,
        may_fuzz: Some(!entry.options.is_strict),
        is_of_recipe: false,
    }
}
