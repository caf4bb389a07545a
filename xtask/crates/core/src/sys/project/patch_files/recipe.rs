//! The patches that a package's recipe applies.

use std::path::Path;

use espalier_series::{Recipe, RecipeKind, RecipePatch, Remark, fits, is_packed, read_recipe};

use super::found::{FoundPatch, PatchFiles, found_patch, unnamed_in};
use super::names::{in_natural_order, is_patch, name_of};
use super::recipe_text::RecipeText;
use crate::config::paths;
use crate::error::{Error, Result};
use crate::next_command::quoted;
use crate::sys::machine::disk;

/// Returns the patches in `folder`, which contains a recipe, and below it.
fn candidates_for(folder: &Path) -> Result<Vec<String>> {
    let files = disk::files_below(folder)?;
    Ok(files.iter().filter(|file| is_patch(file)).map(|file| file.display().to_string()).collect())
}

/// Returns the patches that `file` applies, in its order; none if it applies no patch that exists beside it.
///
/// # Errors
///
/// A command of the recipe cannot be interpreted.
pub(super) fn recipe(file: &Path, kind: RecipeKind) -> Result<PatchFiles> {
    let text = RecipeText::read(file, kind)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let shown = |remarks: Vec<Remark>| -> Vec<String> { remarks.iter().map(|it| text.shown(it)).collect() };
    let Recipe { patches, notes, changes } = read_recipe(kind, &text.text).map_err(|wrong| {
        Error::usage(format!("`{}` has commands that `import` cannot interpret", file.display()))
            .detail(shown(wrong).join("\n"))
            .hint(format!(
                "list what it applies, with `-pN` and `-R`, and import that file: printf '%s\\n' 'NAME.patch -p1' >{}",
                quoted(&folder.join("series").display().to_string())
            ))
    })?;
    let notes = text.notes.iter().cloned().chain(shown(notes)).collect();
    let candidates = candidates_for(folder)?;
    let found = PatchFiles { notes, changes: shown(changes), ..PatchFiles::default() };
    let mut lookup = Lookup { file, folder, name: name_of(file), candidates, found };
    for named in patches.iter().filter(|named| named.left_out.is_none()) {
        lookup.take(named)?;
    }
    for named in &patches {
        if let Some(why) = &named.left_out {
            lookup.leave_out(named, why);
        }
    }
    lookup.finish()
}

/// The files that a recipe names, while they are looked up.
struct Lookup<'a> {
    file: &'a Path,
    folder: &'a Path,
    /// Name of the recipe.
    name: String,
    candidates: Vec<String>,
    found: PatchFiles,
}

impl Lookup<'_> {
    /// Adds the files that the recipe applies as `named`.
    fn take(&mut self, named: &RecipePatch) -> Result<()> {
        let files = self.files_of(named);
        match &files[..] {
            [] if is_packed(&named.pattern) && self.folder.join(&named.pattern).is_file() => {
                let file = self.folder.join(&named.pattern);
                return Err(Error::usage(format!("`{}` is packed", file.display())).hint("unpack it first"));
            }
            [] => {
                let why = format!("`{}` names it, and it is not there", self.name);
                self.found.others.push((named.pattern.clone(), why));
            }
            [one] => self.push(one, named),
            several if named.is_glob => several.iter().for_each(|one| self.push(one, named)),
            several => {
                let what = format!(
                    "`{}` names `{}`, which matches several files",
                    self.file.display(),
                    named.pattern
                );
                return Err(Error::usage(what)
                    .detail(several.join("\n"))
                    .hint("name the folder of the patches instead"));
            }
        }
        Ok(())
    }

    /// Returns the files that fit, in natural order: a recipe also may apply one whose name is not that of a patch.
    fn files_of(&self, named: &RecipePatch) -> Vec<String> {
        let fitting = fitting(&named.pattern, &self.candidates, &self.name);
        let mut files: Vec<String> = fitting.into_iter().map(str::to_string).collect();
        let is_plain = !named.pattern.contains('*') && !is_packed(&named.pattern);
        let is_inside = is_plain && !named.pattern.split('/').any(|part| part == ".." || part.is_empty());
        if files.is_empty() && is_inside && self.folder.join(&named.pattern).is_file() {
            files.push(named.pattern.clone());
        }
        files.sort_by(|left, right| in_natural_order(left, right));
        files
    }

    /// Adds a file, unless it is applied the same way already.
    fn push(&mut self, file: &str, named: &RecipePatch) {
        let options = named.options;
        let is_there = |patch: &FoundPatch| patch.name == file && patch.reverse == options.reverse;
        if self.found.patches.iter().any(is_there) {
            return;
        }
        self.found.patches.push(FoundPatch {
            strip: options.strip,
            usual_strip: named.usual_strip,
            reverse: options.reverse,
            may_fuzz: Some(!options.is_strict),
            is_of_recipe: true,
            ..found_patch(self.folder.join(file), file.to_string())
        });
    }

    /// Lists the files of a patch that the recipe does not apply, unless it applies them under another name.
    fn leave_out(&mut self, named: &RecipePatch, why: &str) {
        let files = self.files_of(named);
        let names = if files.is_empty() { vec![named.pattern.clone()] } else { files };
        for name in names {
            let is_applied = self.found.patches.iter().any(|patch| patch.name == name);
            let is_listed = self.found.others.iter().any(|(other, _)| *other == name);
            if !is_applied && !is_listed {
                self.found.others.push((name, why.to_string()));
            }
        }
    }

    /// Adds the patches that the recipe does not name, and the note on the order.
    fn finish(self) -> Result<PatchFiles> {
        let Lookup { folder, name, mut found, .. } = self;
        if found.patches.is_empty() {
            return Ok(found);
        }
        let mut unnamed = unnamed_in(folder, &found.patches)?;
        unnamed.retain(|unnamed| !found.others.iter().any(|(other, _)| other == unnamed));
        found
            .others
            .extend(unnamed.into_iter().map(|unnamed| (unnamed, format!("`{name}` does not name it"))));
        found.notes.push(format!("the order is that of `{name}`; conditions in it were not evaluated"));
        Ok(found)
    }
}

/// Returns the `candidates` that a recipe refers to by `pattern`. Yocto looks in a folder named like the recipe, then
/// like the package, then in `files`.
fn fitting<'a>(pattern: &str, candidates: &'a [String], recipe: &str) -> Vec<&'a str> {
    let whole: Vec<&str> = candidates.iter().map(String::as_str).filter(|name| fits(pattern, name)).collect();
    if whole.len() == 1 {
        return whole;
    }
    let last = paths::file_name(pattern);
    let is_last = |name: &&str| fits(last, paths::file_name(name));
    let all: Vec<&str> = candidates.iter().map(String::as_str).filter(is_last).collect();
    let stem = recipe.rsplit_once('.').map_or(recipe, |(stem, _)| stem);
    let package = stem.split('_').next().unwrap_or(stem);
    let own = ["".to_string(), stem.replace('_', "-"), package.to_string(), "files".to_string()];
    let in_own = |folder: &String| {
        let inside: Vec<&str> =
            all.iter().copied().filter(|name| paths::folder(name) == folder.as_str()).collect();
        (!inside.is_empty()).then_some(inside)
    };
    own.iter().find_map(in_own).unwrap_or(all)
}
