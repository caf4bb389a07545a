//! A synthetic project for the benches: files of C-like text, a series of patches, and a newer upstream.

use std::path::Path;

use espalier_core::error::Result;
use espalier_core::random::Random;
use espalier_core::sys::git::command::git;
use espalier_core::sys::git::store::{Store, commit_text};
use espalier_core::sys::git::tree::{Entry, GitTree};
use espalier_core::sys::machine::disk;
use espalier_series::{ObjectId, ObjectKind};

/// Size of the synthetic project.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Number of files in the tree.
    pub files: usize,
    /// Number of patches in the series.
    pub patches: usize,
}

/// The generated objects, all below one folder.
#[derive(Clone, Debug)]
pub struct Synthetic {
    /// The tree before the series.
    pub base: ObjectId,
    /// The commit with that tree.
    pub base_commit: ObjectId,
    /// The tree after the series, from the git objects that were written while generating it.
    pub tip: ObjectId,
    /// The commits of the series, in order.
    pub commits: Vec<ObjectId>,
    /// A commit on the base that changes every patched file, and others, only where no patch does.
    pub newer: ObjectId,
}

/// Creates `folder/upstream.git`, `folder/patches/synthetic` and `folder/pins.toml`.
pub fn make(folder: &Path, size: Size) -> Result<Synthetic> {
    let store = Store::open(&folder.join("upstream.git"))?;
    let made = write_history(&store, size)?;
    let tip_commit = made.commits.last().copied().unwrap_or(made.base_commit);
    let patches = folder.join("patches/synthetic");
    disk::create_folder(&patches)?;
    git(store.path())
        .args(["format-patch", "--quiet", "--full-index", "--zero-commit", "--no-signature", "--binary"])
        .arg("--output-directory")
        .arg(&patches)
        .arg(format!("{}..{tip_commit}", made.base_commit))
        .success()?;
    disk::write_atomically(&folder.join("pins.toml"), pins(&made).as_bytes())?;
    Ok(made)
}

fn pins(made: &Synthetic) -> String {
    format!(
        "default-variant = \"synthetic\"\n\n[pins.made]\nupstream = \"made\"\ntag = \"v1\"\ntree = \"{}\"\n\
         sources = [{{ path = \"upstream.git\" }}]\n\n[variants.base]\npin = \"made\"\n\n\
         [variants.synthetic]\nextends = \"base\"\npatches = \"patches/synthetic\"\n",
        made.base
    )
}

/// Writes the base and one commit per patch, and tags the base as `v1`.
fn write_history(store: &Store, size: Size) -> Result<Synthetic> {
    let empty = store.make(ObjectKind::Tree, Vec::new());
    let mut tree = GitTree::new(store, empty)?;
    let mut files: Vec<(String, Vec<String>)> = (0..size.files).map(|n| (path_of(n), lines_of(n))).collect();
    for (path, lines) in &files {
        put(store, &mut tree, path, lines)?;
    }
    let untouched = files.clone();
    let base = tree.write()?;
    let base_commit = commit_with_trees(store, base, None, "Start\n")?;
    store.set_tag("v1", base_commit)?;
    let (mut tip, mut commit) = (base, base_commit);
    let mut commits = Vec::new();
    let mut random = Random(1);
    for number in 0..size.patches {
        for _ in 0..1 + random.below(5) {
            let at = random.below(files.len());
            let Some((path, lines)) = files.get_mut(at) else { continue };
            edit(lines, number, &mut random);
            put(store, &mut tree, path, lines)?;
        }
        tip = tree.write()?;
        commit = commit_with_trees(store, tip, Some(commit), &message(number))?;
        commits.push(commit);
    }
    let newer = write_newer(store, base, base_commit, &untouched, &files)?;
    Ok(Synthetic { base, base_commit, tip, commits, newer })
}

/// Writes upstream's next commit on `base`: a new function, and one changed line in every fourth function, away from
/// all patches, so that nothing conflicts.
fn write_newer(
    store: &Store,
    base: ObjectId,
    base_commit: ObjectId,
    before: &[(String, Vec<String>)],
    after: &[(String, Vec<String>)],
) -> Result<ObjectId> {
    let mut tree = GitTree::new(store, base)?;
    for (number, ((path, lines), (_, patched))) in before.iter().zip(after).enumerate() {
        if lines == patched && number % 3 > 0 {
            continue;
        }
        put(store, &mut tree, path, &change_functions(lines, &patched.concat(), number))?;
    }
    commit_with_trees(store, tree.write()?, Some(base_commit), "Go on\n")
}

/// Changes functions that, like their neighbours, are the same in `patched`; adds a new function before the first of
/// them.
fn change_functions(lines: &[String], patched: &str, number: usize) -> Vec<String> {
    let functions: Vec<&[String]> = lines.chunks(FUNCTION_LINES).collect();
    let mut changed = Vec::new();
    for (at, function) in functions.iter().enumerate() {
        let around = functions.get(at.saturating_sub(1)..(at + 2).min(functions.len())).unwrap_or_default();
        let is_free = at % 4 == 1 && patched.contains(&around.concat().concat());
        if is_free && changed.len() == at * FUNCTION_LINES {
            changed.push(format!("static int newer_{number}(void) {{\n    return {number};\n}}\n\n"));
        }
        for (line_number, line) in function.iter().enumerate() {
            changed.push(if is_free && line_number == 4 { line.replace(';', " + 1;") } else { line.clone() });
        }
    }
    changed
}

/// Commits with the trees written to disk, because git reads this repository next; trees are built in memory.
fn commit_with_trees(
    store: &Store,
    tree: ObjectId,
    parent: Option<ObjectId>,
    message: &str,
) -> Result<ObjectId> {
    store.write_tree(tree)?;
    store.write(ObjectKind::Commit, commit_text(tree, parent, message).as_bytes())
}

fn message(number: usize) -> String {
    format!("Change number {number}\n\nUpstream-Status: Pending\nDrop-when: never\n")
}

fn put(store: &Store, tree: &mut GitTree<'_>, path: &str, lines: &[String]) -> Result<()> {
    let id = store.write(ObjectKind::Blob, lines.concat().as_bytes())?;
    tree.set(path.as_bytes(), Some(Entry { mode: 0o100_644, id }))
}

/// Returns the path of file `number`.
pub(super) fn path_of(number: usize) -> String {
    format!("part{:02}/group{}/file{number:04}.c", number % 40, number % 5)
}

const FUNCTION_LINES: usize = 12;

/// Returns functions of twelve lines. Most files are small and a few are large, as in real projects: half of them have
/// 120 lines, and each doubling of the length is half as frequent, up to 3,840.
pub(super) fn lines_of(number: usize) -> Vec<String> {
    let doublings = (number % 64).trailing_ones().min(5);
    (0..10usize << doublings)
        .flat_map(|function| {
            let head = format!("static int function_{number}_{function}(int value) {{\n");
            let body = (0..8).map(move |line| format!("    value = value * {} + {line};\n", function + 3));
            std::iter::once(head).chain(body).chain(["    return value;\n".into(), "}\n".into(), "\n".into()])
        })
        .collect()
}

/// Makes three hunks: each replaces a line and adds one.
pub(super) fn edit(lines: &mut Vec<String>, number: usize, random: &mut Random) {
    for _ in 0..3 {
        let at = random.below(lines.len());
        if let Some(line) = lines.get_mut(at) {
            *line = format!("    value += {number}; /* {} */\n", random.below(1_000_000));
        }
        lines.insert(at, format!("    value ^= {};\n", random.below(1_000_000)));
    }
}
