//! The text of a recipe, with the files that it requires.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use espalier_series::{RecipeKind, Remark, printable};

use super::names::{name_of, text_of};
use crate::error::{Error, Result};
use crate::sys::machine::disk;

/// Maximum nesting of files that a recipe requires.
const INCLUDE_DEPTH: usize = 8;

/// Maximum size in bytes of a recipe together with the files that it requires.
const RECIPE_LIMIT: usize = 4 << 20;

/// The text of a recipe. Yocto keeps what several versions share in files that a recipe requires; each is inlined once.
pub(super) struct RecipeText<'a> {
    recipe: &'a Path,
    kind: RecipeKind,
    /// The folder of the recipe, without links: files outside it are not read.
    folder: PathBuf,
    pub text: String,
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
    pub notes: Vec<String>,
}

impl<'a> RecipeText<'a> {
    pub fn read(recipe: &'a Path, kind: RecipeKind) -> Result<RecipeText<'a>> {
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
    pub fn shown(&self, remark: &Remark) -> String {
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

#[cfg(test)]
mod tests {
    use super::{RECIPE_LIMIT, RecipeKind, RecipeText, disk};

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
    fn files_required_by_a_recipe_have_a_limit() {
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
}
