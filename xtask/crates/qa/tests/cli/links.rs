//! Every relative link in a document of this repository leads to a file, and to an existing heading if it names one. No
//! page is so long that a reader needs a table of its contents.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::support::files;

/// Largest number of lines in a page, except for the changelog.
const MAX_LINES: usize = 300;

#[test]
fn relative_links_of_documents_lead_somewhere() {
    let root = files::of_this_repository("");
    let broken: Vec<String> = documents(&root).iter().flat_map(|page| broken_links(&root, page)).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn a_link_to_nothing_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let text = "# A title: `one` & two\n[there](#a-title-one--two) [gone](#three) [b](b.md) ![p](p.svg) [x](https://x.org)\n";
    files::write(&folder.path().join("docs/a.md"), text);
    let found = broken_links(folder.path(), Path::new("docs/a.md"));
    assert_eq!(found, ["docs/a.md: #three", "docs/a.md: b.md", "docs/a.md: p.svg"]);
}

#[test]
fn no_page_is_too_long() {
    let root = files::of_this_repository("");
    let lines = |page: &PathBuf| std::fs::read_to_string(root.join(page)).unwrap().lines().count();
    // A report of a move is as long as the move; `sync` limits each of its parts.
    let is_record = |page: &Path| page == Path::new("CHANGELOG.md") || page.starts_with("docs/syncs");
    let is_too_long = |page: &PathBuf| !is_record(page) && lines(page) > MAX_LINES;
    let found: Vec<PathBuf> = documents(&root).into_iter().filter(is_too_long).collect();
    assert!(found.is_empty(), "more than {MAX_LINES} lines, to be split by subject: {found:?}");
}

/// Returns the pages at the root, and all below `docs`.
fn documents(root: &Path) -> Vec<PathBuf> {
    let at_root = std::fs::read_dir(root).unwrap().map(|entry| PathBuf::from(entry.unwrap().file_name()));
    let below_docs = files::list(&root.join("docs")).into_iter().map(|path| Path::new("docs").join(path));
    let is_page = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "md");
    let pages: Vec<PathBuf> = at_root.chain(below_docs).filter(is_page).collect();
    assert!(pages.len() > 40, "{pages:?}");
    pages
}

fn broken_links(root: &Path, page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(root.join(page)).unwrap();
    let is_broken = |link: &&str| !leads_somewhere(root, page, link);
    links(&text).into_iter().filter(is_broken).map(|link| format!("{}: {link}", page.display())).collect()
}

/// Returns the link targets (the text in parentheses after `]`), except for web addresses.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:")).collect()
}

fn leads_somewhere(root: &Path, page: &Path, link: &str) -> bool {
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    let folder = page.parent().unwrap_or(Path::new(""));
    let target = if path.is_empty() { page.to_path_buf() } else { normal(&folder.join(path)) };
    let file = root.join(target);
    file.exists() && (heading.is_empty() || headings(&file).contains(heading))
}

/// Returns `path` with `..` resolved.
fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut normal, part| {
        if part == Component::ParentDir {
            normal.pop();
        } else {
            normal.push(part);
        }
        normal
    })
}

/// Returns the headings of a page in GitHub's form for addresses.
fn headings(page: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let lines = text.lines().filter(|line| line.starts_with('#'));
    lines.map(|line| name_of(line.trim_start_matches('#').trim())).collect()
}

fn name_of(heading: &str) -> String {
    let is_kept = |letter: &char| letter.is_alphanumeric() || "-_ ".contains(*letter);
    heading
        .to_lowercase()
        .chars()
        .filter(is_kept)
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}
