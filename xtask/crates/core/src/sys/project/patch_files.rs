//! Patches from elsewhere: a folder, an mbox, a queue with an order file, a package's recipe, one diff. All of it is
//! untrusted.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use espalier_series::{
    Named, PATCH_SIZE_LIMIT, QuiltEntry, Recipe, RecipeKind, Remark, fits, is_packed, printable,
    read_quilt_series, read_recipe,
};

use crate::error::{Error, Result};
use crate::next_command::quoted;
use crate::sys::machine::disk;

/// The patches found at a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchFiles {
    /// The patches, in the order in which they apply.
    pub patches: Vec<FoundPatch>,
    /// Files that were left out, and why.
    pub others: Vec<(String, String)>,
    /// Notes on the order for the user.
    pub notes: Vec<String>,
}

/// One patch file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPatch {
    /// Path on disk.
    pub path: PathBuf,
    /// Name for people: its path in the folder of the order file or recipe.
    pub name: String,
    /// Number of leading components stripped from its paths, if its queue or recipe sets it.
    pub strip: Option<u32>,
    /// The number where that is not set, if the format of its queue or recipe defines one.
    pub usual_strip: Option<u32>,
    /// Whether it is applied in reverse.
    pub reverse: bool,
    /// Whether it may apply with reduced context (fuzz), as with patch(1), if its queue sets it.
    pub may_fuzz: Option<bool>,
    /// Whether a recipe applies it.
    pub is_of_recipe: bool,
}

/// Names of order files: quilt's and StGit's, Electron's, dpatch's.
const ORDER_FILES: [&str; 3] = ["series", ".patches", "00list"];
/// Recipes that have the same name in every package: vcpkg, Nix, Alpine, Arch.
const RECIPES: [&str; 5] = ["portfile.cmake", "package.nix", "default.nix", "APKBUILD", "PKGBUILD"];
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
    let mut notes = Vec::new();
    if let Some(found) = by_recipe(folder, &files, &mut notes)? {
        return Ok(found);
    }
    if files.iter().any(|file| is_patch(file)) {
        return by_name(folder, files, notes);
    }
    let holders = holders_in(folder)?;
    match &holders[..] {
        [] => by_name(folder, files, notes),
        [holder] => find_in(holder),
        holders => Err(several(
            format!("`{}` has no patches itself, and several folders that do", folder.display()),
            holders,
        )),
    }
}

/// Returns the patches of the recipe in `folder`, if one applies patches that exist there. `notes` receives the notes on
/// recipes that do not.
///
/// # Errors
///
/// Several recipes apply different patches, or the recipes only name patches that they do not apply: without a recipe,
/// all patches of the folder would be taken.
fn by_recipe(folder: &Path, files: &[PathBuf], notes: &mut Vec<String>) -> Result<Option<PatchFiles>> {
    let kind_of = |file: &PathBuf| RecipeKind::of(&name_of(file));
    let mut none = None;
    for file in RECIPES.map(|name| folder.join(name)).iter().filter(|file| file.is_file()) {
        let Some(kind) = kind_of(file) else { continue };
        let found = recipe(file, kind)?;
        if !found.patches.is_empty() {
            return Ok(Some(found));
        }
        none = none.or_else(|| applies_none(file, &found));
        notes.extend(found.notes);
    }
    let mut named = Vec::new();
    for file in files.iter().filter(|file| !RECIPES.contains(&name_of(file).as_str())) {
        let Some(kind) = kind_of(file) else { continue };
        let found = recipe(file, kind)?;
        if found.patches.is_empty() {
            none = none.or_else(|| applies_none(file, &found));
            notes.extend(found.notes);
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
        Error::usage(format!("`{}` applies none of the patches beside it", file.display()))
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

/// Returns every patch in `folder`, by name, with `notes`. Files that could be patches and are left out are reported.
fn by_name(folder: &Path, files: Vec<PathBuf>, notes: Vec<String>) -> Result<PatchFiles> {
    let mut found = PatchFiles { notes, ..PatchFiles::default() };
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
        let note = "no file says the order: they were applied by the numbers in their names, so that 2 comes before 10";
        found.notes.push(note.to_string());
    }
    let is_numbered = |found: &FoundPatch| found.name.starts_with(|letter: char| letter.is_ascii_digit());
    if found.patches.len() > 1 && !is_reordered && !found.patches.iter().all(is_numbered) {
        let note = "no file says the order, and not every name has a number: they were applied in the order of their names";
        found.notes.push(note.to_string());
    }
    Ok(found)
}

/// Compares two file names in natural order: `2.patch` comes before `10.patch`.
fn in_natural_order(left: &str, right: &str) -> Ordering {
    let (mut one, mut other) = (left, right);
    loop {
        let (first, second) = (digits_in(one), digits_in(other));
        let (value, other_value) = (first.trim_start_matches('0'), second.trim_start_matches('0'));
        let by_value = (value.len(), value).cmp(&(other_value.len(), other_value));
        if !first.is_empty() && !second.is_empty() && by_value.is_ne() {
            return by_value;
        }
        if !first.is_empty() && !second.is_empty() {
            (one, other) = (one.trim_start_matches(first), other.trim_start_matches(second));
            continue;
        }
        let (mut letters, mut other_letters) = (one.chars(), other.chars());
        match (letters.next(), other_letters.next()) {
            (Some(letter), Some(other_letter)) if letter == other_letter => {
                (one, other) = (letters.as_str(), other_letters.as_str());
            }
            // `01` and `1` have the same value.
            (None, None) => return left.cmp(right),
            (letter, other_letter) => return letter.cmp(&other_letter),
        }
    }
}

/// Returns the leading digits of `text`.
fn digits_in(text: &str) -> &str {
    text.split(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default()
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
        Error::usage(format!("`{}` cannot be followed", order.display()))
            .detail(wrong.join("\n"))
            .hint("correct these lines, then run the same command again")
    })?;
    let mut found = PatchFiles::default();
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

fn found_patch(path: PathBuf, name: String) -> FoundPatch {
    FoundPatch {
        path,
        name,
        strip: None,
        usual_strip: None,
        reverse: false,
        may_fuzz: None,
        is_of_recipe: false,
    }
}

/// Returns the patches in `folder`, which contains a recipe, and below it.
fn candidates_for(folder: &Path) -> Result<Vec<String>> {
    let files = disk::files_below(folder)?;
    Ok(files.iter().filter(|file| is_patch(file)).map(|file| file.display().to_string()).collect())
}

/// Returns the patches that `file` applies, in its order; none if it applies no patch that exists beside it.
///
/// # Errors
///
/// A command of the recipe cannot be followed.
fn recipe(file: &Path, kind: RecipeKind) -> Result<PatchFiles> {
    let text = RecipeText::read(file, kind)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let said = |remarks: Vec<Remark>| -> Vec<String> { remarks.iter().map(|it| text.shown(it)).collect() };
    let Recipe { patches, notes } = read_recipe(kind, &text.text).map_err(|wrong| {
        Error::usage(format!("`{}` cannot be followed", file.display()))
            .detail(said(wrong).join("\n"))
            .hint(format!(
                "list what it applies, with `-pN` and `-R`, and import that file: printf '%s\\n' 'NAME.patch -p1' >{}",
                quoted(&folder.join("series").display().to_string())
            ))
    })?;
    let notes = text.notes.iter().cloned().chain(said(notes)).collect();
    let candidates = candidates_for(folder)?;
    let found = PatchFiles { notes, ..PatchFiles::default() };
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
    fn take(&mut self, named: &Named) -> Result<()> {
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
                let what =
                    format!("`{}` names `{}`, which can be each of", self.file.display(), named.pattern);
                return Err(Error::usage(what)
                    .detail(several.join("\n"))
                    .hint("name the folder of the patches instead"));
            }
        }
        Ok(())
    }

    /// Returns the files that fit, in natural order: a recipe also may apply one whose name is not that of a patch.
    fn files_of(&self, named: &Named) -> Vec<String> {
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
    fn push(&mut self, file: &str, named: &Named) {
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
    fn leave_out(&mut self, named: &Named, why: &str) {
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
    let last = pattern.rsplit('/').next().unwrap_or(pattern);
    let is_last = |name: &&str| fits(last, name.rsplit('/').next().unwrap_or(name));
    let all: Vec<&str> = candidates.iter().map(String::as_str).filter(is_last).collect();
    let stem = recipe.rsplit_once('.').map_or(recipe, |(stem, _)| stem);
    let package = stem.split('_').next().unwrap_or(stem);
    let own = ["".to_string(), stem.replace('_', "-"), package.to_string(), "files".to_string()];
    let in_own = |folder: &String| {
        let of = |name: &str| name.rsplit_once('/').map_or("", |(folder, _)| folder).to_string();
        let inside: Vec<&str> = all.iter().copied().filter(|name| of(name) == *folder).collect();
        (!inside.is_empty()).then_some(inside)
    };
    own.iter().find_map(in_own).unwrap_or(all)
}

/// Returns patches beside the named ones that are not named themselves.
fn unnamed_in(folder: &Path, named: &[FoundPatch]) -> Result<Vec<String>> {
    let mut folders: Vec<&Path> = named.iter().filter_map(|patch| patch.path.parent()).collect();
    folders.sort();
    folders.dedup();
    let mut unnamed = Vec::new();
    for below in folders {
        let files = files_in(below)?;
        let is_unnamed = |file: &&PathBuf| is_patch(file) && !named.iter().any(|patch| patch.path == **file);
        let relative = |file: &PathBuf| file.strip_prefix(folder).unwrap_or(file).display().to_string();
        unnamed.extend(files.iter().filter(is_unnamed).map(relative));
    }
    Ok(unnamed)
}

/// Maximum nesting of files that a recipe requires.
const INCLUDE_DEPTH: usize = 8;

/// Maximum size in bytes of a recipe together with the files that it requires.
const RECIPE_LIMIT: usize = 4 << 20;

/// The text of a recipe. Yocto keeps what several versions share in files that a recipe requires; each is inlined once.
struct RecipeText<'a> {
    recipe: &'a Path,
    kind: RecipeKind,
    /// The folder of the recipe, without links: files outside it are not read.
    folder: PathBuf,
    text: String,
    /// The place of each line of the text: an index of `names`, and the number of the line in that file.
    places: Vec<(usize, usize)>,
    /// The names of the files that have been read.
    names: Vec<String>,
    /// The files that have been read, without links: a recipe may require itself.
    files: HashSet<PathBuf>,
    size: usize,
    /// The files that were not read, without links.
    unread: HashSet<PathBuf>,
    /// Notes on them for the user.
    notes: Vec<String>,
}

impl<'a> RecipeText<'a> {
    fn read(recipe: &'a Path, kind: RecipeKind) -> Result<RecipeText<'a>> {
        let folder = recipe.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = without_links(folder.unwrap_or(Path::new(".")))?;
        let mut all = RecipeText {
            recipe,
            kind,
            folder,
            text: String::new(),
            places: Vec::new(),
            names: Vec::new(),
            files: HashSet::new(),
            size: 0,
            unread: HashSet::new(),
            notes: Vec::new(),
        };
        all.add(recipe, 0)?;
        Ok(all)
    }

    fn add(&mut self, file: &Path, depth: usize) -> Result<()> {
        if !self.files.insert(without_links(file)?) {
            return Ok(());
        }
        let text = text_of(file)?;
        self.size += text.len();
        if self.size > RECIPE_LIMIT {
            let recipe = self.recipe.display();
            let what =
                format!("`{recipe}` and the files that it requires have more than {RECIPE_LIMIT} bytes");
            return Err(Error::usage(what)
                .detail(format!("the limit was passed in `{}`", file.display()))
                .hint("name the folder of the patches instead"));
        }
        let name = self.names.len();
        self.names.push(name_of(file));
        for (number, line) in (1..).zip(text.lines()) {
            match required(file, line).filter(|_| self.kind == RecipeKind::Yocto) {
                Some(path) if self.may_read(file, line, &path, depth)? => self.add(&path, depth + 1)?,
                _ => {
                    self.text += line;
                    self.text.push('\n');
                    self.places.push((name, number));
                }
            }
        }
        Ok(())
    }

    /// Returns a remark on the text with its place in a file.
    fn shown(&self, remark: &Remark) -> String {
        let place = remark.line.and_then(|line| self.places.get(line.checked_sub(1)?));
        match place.and_then(|(name, number)| Some((self.names.get(*name)?, number))) {
            Some((name, number)) => format!("{name}:{number}: {}", remark.text),
            None => format!("{}: {}", name_of(self.recipe), remark.text),
        }
    }

    /// Returns whether `path`, which `line` of `file` requires, is to be read; adds a note if it is not.
    fn may_read(&mut self, file: &Path, line: &str, path: &Path, depth: usize) -> Result<bool> {
        let whole = without_links(path)?;
        let is_inside = whole.starts_with(&self.folder);
        if is_inside && depth < INCLUDE_DEPTH {
            return Ok(true);
        }
        let why = match is_inside {
            true => format!("more than {INCLUDE_DEPTH} files deep"),
            false => "outside the folder of the recipe".to_string(),
        };
        let name = printable(name_in(line).unwrap_or_default().as_bytes());
        let note = format!("`{}` requires `{name}`, which was not read: it is {why}", name_of(file));
        if self.unread.insert(whole) {
            self.notes.push(note);
        }
        Ok(false)
    }
}

/// Returns the file that a line of `file` requires, if it exists.
fn required(file: &Path, line: &str) -> Option<PathBuf> {
    Some(file.parent()?.join(name_in(line)?)).filter(|path| path.is_file())
}

/// Returns the name in a line that requires a file.
fn name_in(line: &str) -> Option<&str> {
    ["require ", "include "].iter().find_map(|word| line.strip_prefix(word)).map(str::trim)
}

fn without_links(path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(|error| disk::explain("look at", path, &error))
}

/// Reads a text without the byte order mark that some editors write.
fn text_of(file: &Path) -> Result<String> {
    let text = String::from_utf8(read(file)?)
        .map_err(|_| Error::usage(format!("`{}` is not UTF-8 text", file.display())))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text))
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Returns the files directly in `folder`, by name.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    entries_in(folder, false)
}

fn folders_in(folder: &Path) -> Result<Vec<PathBuf>> {
    entries_in(folder, true)
}

fn entries_in(folder: &Path, are_folders: bool) -> Result<Vec<PathBuf>> {
    let fail = |error: std::io::Error| disk::explain("list", folder, &error);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        if entry.file_type().map_err(fail)?.is_dir() == are_folders {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

fn is_patch(file: &Path) -> bool {
    is_of_ports(&name_of(file))
        || has_ending(file, &["patch", "diff", "dpatch", "patchset", "eml", "mbox", "mbx"])
}

/// Whether a file is named like patches of the BSD ports: `patch-src_main.c`, without a file extension of its own.
fn is_of_ports(name: &str) -> bool {
    let leftovers = [".orig", ".rej", ".bak", "~"];
    name.starts_with("patch-") && !is_packed(name) && !leftovers.iter().any(|ending| name.ends_with(ending))
}

fn has_ending(file: &Path, endings: &[&str]) -> bool {
    file.extension().is_some_and(|ending| endings.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

/// Maximum size of one file in bytes: an mbox may hold many patches.
const FILE_LIMIT: u64 = 8 * PATCH_SIZE_LIMIT as u64;

/// Reads a regular file. A link, a pipe or a device is refused: it is not a patch.
pub fn read(file: &Path) -> Result<Vec<u8>> {
    let meta = std::fs::symlink_metadata(file).map_err(|error| disk::explain("read", file, &error))?;
    if !meta.is_file() {
        return Err(Error::usage(format!("`{}` is not a plain file", file.display()))
            .hint("put the file itself in its place"));
    }
    if meta.len() > FILE_LIMIT {
        return Err(Error::usage(format!("`{}` has {} bytes", file.display(), meta.len()))
            .hint(format!("{FILE_LIMIT} are the most that one file of patches may have")));
    }
    disk::read(file)
}

#[cfg(test)]
mod tests {
    use super::{RECIPE_LIMIT, RecipeKind, RecipeText, disk, in_natural_order};

    /// Writes files to a temporary folder.
    fn folder_of(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            disk::write_atomically(&folder.path().join(name), text.as_bytes()).unwrap();
        }
        folder
    }

    #[test]
    fn a_file_that_is_required_again_is_read_once() {
        let recipe = "require hello.bb\nrequire ./hello.inc\nrequire hello.inc\nfile://a.patch\n";
        let folder = folder_of(&[("hello.bb", recipe), ("hello.inc", "require hello.bb\nfile://z.patch\n")]);
        let path = folder.path().join("hello.bb");
        let RecipeText { text, notes, .. } = RecipeText::read(&path, RecipeKind::Yocto).unwrap();
        assert_eq!((text.as_str(), notes.len()), ("file://z.patch\nfile://a.patch\n", 0));
    }

    #[test]
    fn what_a_recipe_requires_has_a_limit() {
        let half = "#".repeat(RECIPE_LIMIT / 2);
        let folder =
            folder_of(&[("hello.bb", "require a.inc\nrequire b.inc\n"), ("a.inc", &half), ("b.inc", &half)]);
        let path = folder.path().join("hello.bb");
        let error = RecipeText::read(&path, RecipeKind::Yocto).err().unwrap().to_string();
        assert!(error.contains("hello.bb` and the files that it requires have more than"), "{error}");
        assert!(error.contains("b.inc`"), "{error}");
    }

    #[test]
    fn a_recipe_reads_nothing_outside_its_folder() {
        let secret = folder_of(&[("secret", "file://z.patch\n")]);
        let line = format!("require {}\n", secret.path().join("secret").display());
        let recipe = format!("{line}{line}file://a.patch\n");
        let folder = folder_of(&[("hello.bb", &recipe)]);
        let path = folder.path().join("hello.bb");
        let RecipeText { text, notes, .. } = RecipeText::read(&path, RecipeKind::Yocto).unwrap();
        assert!(!text.contains("z.patch") && text.ends_with("file://a.patch\n"), "{text}");
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].ends_with("which was not read: it is outside the folder of the recipe"));
    }

    #[test]
    fn numbers_in_names_are_compared_by_value() {
        let sorted = [
            "1",
            "0001-a",
            "1-b",
            "02",
            "2",
            "9z",
            "10",
            "10a",
            "99999999999999999999999",
            "a1",
            "a2b",
            "a10",
        ];
        for (at, left) in sorted.iter().enumerate() {
            for right in &sorted[at + 1..] {
                let both = (in_natural_order(left, right), in_natural_order(right, left));
                assert_eq!(both, (std::cmp::Ordering::Less, std::cmp::Ordering::Greater), "{left} {right}");
            }
        }
        assert!(in_natural_order("x", "x").is_eq());
    }
}
