//! Parsing and rendering of git tree objects.

use std::collections::BTreeMap;
use std::convert::Infallible;

use espalier_series::{ObjectId, ObjectKind};

use super::FETCH_ANEW;
use crate::error::{Error, Result};

/// One entry of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Git's mode, such as `0o100644`, `0o40000` for a folder.
    pub mode: u32,
    /// Blob, tree or commit id.
    pub id: ObjectId,
}

/// The mode of a folder.
pub const FOLDER: u32 = 0o040_000;

/// The entries of one folder by name.
pub type Folder = BTreeMap<Vec<u8>, Entry>;

/// Parses the content of the tree `id`.
pub fn parse(id: ObjectId, text: &[u8]) -> Result<Folder> {
    parse_tree(text).ok_or_else(|| Error::environment(format!("the tree {id} is damaged")).hint(FETCH_ANEW))
}

/// Returns `folder/name`; the path of the root is empty.
pub fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

/// Parses git's tree format: `MODE NAME NUL ID` repeated, the mode in octal.
fn parse_tree(mut text: &[u8]) -> Option<Folder> {
    let mut folder = Folder::new();
    while !text.is_empty() {
        let space = text.iter().position(|byte| *byte == b' ')?;
        let mode = u32::from_str_radix(std::str::from_utf8(&text[..space]).ok()?, 8).ok()?;
        let rest = &text[space + 1..];
        let nul = rest.iter().position(|byte| *byte == 0)?;
        let id = ObjectId::from_bytes(*rest.get(nul + 1..)?.first_chunk()?);
        folder.insert(rest[..nul].to_vec(), Entry { mode, id });
        text = &rest[nul + 21..];
    }
    Some(folder)
}

/// Renders a tree in git's order.
pub fn render_tree(folder: &Folder) -> Vec<u8> {
    let mut entries: Vec<(&Vec<u8>, &Entry)> = folder.iter().collect();
    entries.sort_by(|left, right| sort_key(*left).cmp(sort_key(*right)));
    let mut text = Vec::with_capacity(entries.len() * 48);
    for (name, entry) in entries {
        match entry.mode {
            FOLDER => text.extend_from_slice(b"40000 "),
            0o100_644 => text.extend_from_slice(b"100644 "),
            other => text.extend_from_slice(format!("{other:o} ").as_bytes()),
        }
        text.extend_from_slice(name);
        text.push(0);
        text.extend_from_slice(entry.id.as_bytes());
    }
    text
}

/// Returns the id of the tree that has `files`, by their paths in it.
pub fn id_of_files(files: &[(Vec<u8>, Entry)]) -> ObjectId {
    let mut id_of = |text: &[u8]| Ok::<ObjectId, Infallible>(ObjectId::of(ObjectKind::Tree, text));
    let Ok(id) = write_trees(files, &mut id_of);
    id
}

/// Passes the content of the tree that has `files`, by their paths in it, to `write`, which returns its id, and before
/// it those of the trees below it. Returns the id of the whole tree.
pub fn write_trees<E>(
    files: &[(Vec<u8>, Entry)],
    write: &mut impl FnMut(&[u8]) -> std::result::Result<ObjectId, E>,
) -> std::result::Result<ObjectId, E> {
    let mut folder = Folder::new();
    let mut below: BTreeMap<&[u8], Vec<(Vec<u8>, Entry)>> = BTreeMap::new();
    for (path, entry) in files {
        match path.iter().position(|byte| *byte == b'/') {
            Some(at) => below.entry(&path[..at]).or_default().push((path[at + 1..].to_vec(), *entry)),
            None => drop(folder.insert(path.clone(), *entry)),
        }
    }
    for (name, files) in below {
        let id = write_trees(&files, write)?;
        folder.insert(name.to_vec(), Entry { mode: FOLDER, id });
    }
    write(&render_tree(&folder))
}

/// Git sorts a folder as if its name ended with a slash.
fn sort_key<'a>((name, entry): (&'a Vec<u8>, &Entry)) -> impl Iterator<Item = &'a u8> {
    let end: &[u8] = if entry.mode == FOLDER { b"/" } else { b"" };
    name.iter().chain(end)
}
