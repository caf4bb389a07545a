//! Licence texts of everything that is linked into a package, and the names of the Rust crates among it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::Run;
use serde::Deserialize;

use crate::plan::shipped::sbom::{self, crate_folder};
use crate::plan::shipped::{LICENCES, Library, UPSTREAM_LICENCES, licence_text};

/// Texts by their path in a package.
pub type Texts = BTreeMap<String, Vec<u8>>;

/// Returns the project's own licences.
///
/// # Errors
///
/// A file cannot be read.
pub fn of_project(root: &Path) -> Result<Texts> {
    texts_in(root, &format!("{LICENCES}/espalier"))
}

/// Reads the licence files directly in `folder`, with paths below `to`.
fn texts_in(folder: &Path, to: &str) -> Result<Texts> {
    let mut texts = Texts::new();
    for file in disk::files_in(folder)? {
        if licence_text::is_licence_file(&file) {
            texts.insert(format!("{to}/{file}"), disk::read(&folder.join(&file))?);
        }
    }
    Ok(texts)
}

/// Returns the licences of the upstream tree: its own at the top, and those of all `sources` that are compiled in,
/// found in a folder above the source or in the source itself.
///
/// # Errors
///
/// A file cannot be read.
pub fn of_upstream(tree: &Path, sources: &BTreeSet<String>) -> Result<Texts> {
    let mut texts = texts_in(tree, UPSTREAM_LICENCES)?;
    if disk::exists(&tree.join(LICENCES)) {
        for file in disk::files_below(&tree.join(LICENCES))? {
            let path = format!("{UPSTREAM_LICENCES}/{LICENCES}/{}", file.display());
            texts.insert(path, disk::read(&tree.join(LICENCES).join(&file))?);
        }
    }
    let mut folders: BTreeMap<PathBuf, Texts> = BTreeMap::new();
    for source in sources {
        let mut found = Texts::new();
        for folder in Path::new(source).ancestors().skip(1).filter(|folder| *folder != Path::new("")) {
            if !folders.contains_key(folder) {
                let to = format!("{UPSTREAM_LICENCES}/{}", folder.display());
                folders.insert(folder.to_path_buf(), texts_in(&tree.join(folder), &to)?);
            }
            found.extend(folders[folder].clone());
        }
        if found.is_empty() {
            let mut licence = licence_text::in_source(&disk::read(&tree.join(source))?);
            if !licence.is_empty() {
                licence.push(b'\n');
                found.insert(format!("{UPSTREAM_LICENCES}/{source}.txt"), licence);
            }
        }
        texts.extend(found);
    }
    Ok(texts)
}

/// Returns the files of `tree` that were compiled into `targets` in the folder `build`, including headers, relative
/// to it.
///
/// # Errors
///
/// Ninja has no record of the build.
pub fn sources(ninja: &Path, build: &Path, targets: &[String], tree: &Path) -> Result<BTreeSet<String>> {
    let ask = |words: &[&str], more: &[String]| {
        Run::new(ninja).arg("-C").arg(build).args(["-t"]).args(words).args(more).success()
    };
    // The log also has the inputs of other targets.
    let inputs = espalier_series::lossy(&ask(&["inputs"], targets)?).into_owned();
    let inputs: BTreeSet<&str> = inputs.lines().map(str::trim).collect();
    let deps = espalier_series::lossy(&ask(&["deps"], &[])?).into_owned();
    let mut is_wanted = false;
    let mut found: BTreeSet<&str> = inputs.clone();
    for line in deps.lines() {
        match line.strip_prefix(' ') {
            Some(file) if is_wanted => drop(found.insert(file.trim())),
            Some(_) => {}
            None => is_wanted = line.split(": #deps").next().is_some_and(|output| inputs.contains(output)),
        }
    }
    let inside = |file: &str| {
        let path = without_detours(&build.join(file)).strip_prefix(tree).ok()?.to_str()?.to_string();
        tree.join(&path).is_file().then_some(path)
    };
    Ok(found.into_iter().filter_map(inside).collect())
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    manifest_path: PathBuf,
    source: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    kind: Option<String>,
}

/// Returns `path` without `..`: a compiler cache records paths relative to the build folder.
fn without_detours(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut straight, part| {
        match part {
            Component::ParentDir => drop(straight.pop()),
            _ => straight.push(part),
        }
        straight
    })
}

/// Returns the crates that are linked with the package `name`, except its own, and their licences. `metadata` is the
/// output of `cargo metadata`.
///
/// # Errors
///
/// `metadata` is malformed; a crate's folder cannot be read.
pub fn of_crates(metadata: &[u8], name: &str) -> Result<(Vec<Library>, Texts)> {
    let metadata: Metadata = serde_json::from_slice(metadata)
        .map_err(|error| Error::environment(format!("`cargo metadata` cannot be read: {error}")))?;
    let linked = linked(&metadata, name);
    let (mut libraries, mut texts) = (Vec::new(), Texts::new());
    for package in metadata.packages.iter().filter(|one| one.source.is_some() && linked.contains(&*one.id)) {
        let library = Library {
            name: package.name.clone(),
            version: package.version.clone(),
            licence: package.license.clone().unwrap_or_default(),
        };
        let folder = package.manifest_path.parent().unwrap_or(Path::new("."));
        texts.extend(texts_in(folder, &crate_folder(&library))?);
        libraries.push(library);
    }
    libraries.sort();
    Ok((libraries, texts))
}

fn linked<'a>(metadata: &'a Metadata, name: &str) -> BTreeSet<&'a str> {
    let nodes: BTreeMap<&str, &Node> =
        metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let first = metadata.packages.iter().find(|package| package.name == name && package.source.is_none());
    let mut open: Vec<&str> = first.map(|package| package.id.as_str()).into_iter().collect();
    let mut found = BTreeSet::new();
    while let Some(id) = open.pop() {
        if found.insert(id) {
            let dependencies = nodes.get(id).map(|node| node.deps.as_slice()).unwrap_or_default();
            let is_linked = |one: &&Dependency| one.dep_kinds.iter().any(|kind| kind.kind.is_none());
            open.extend(dependencies.iter().filter(is_linked).map(|one| one.pkg.as_str()));
        }
    }
    found
}

/// Returns Rust's own libraries, which are part of every static library: version and texts, from the compiler's
/// folder.
///
/// # Errors
///
/// rustc is missing, or a file cannot be read.
pub fn of_rust() -> Result<(Library, Texts)> {
    let stdout_of = |arguments: &[&str]| -> Result<String> {
        let stdout = Run::new("rustc").args(arguments).success()?;
        Ok(espalier_series::lossy(&stdout).trim().to_string())
    };
    let version = stdout_of(&["--version"])?.split(' ').nth(1).unwrap_or("unknown").to_string();
    let library = Library { name: sbom::RUST.into(), version, licence: "MIT OR Apache-2.0".into() };
    let documents = PathBuf::from(stdout_of(&["--print", "sysroot"])?).join("share/doc/rust");
    let mut texts = Texts::new();
    for (file, name) in RUST_TEXTS {
        if let Some(text) = disk::read_if_there(&documents.join(file))? {
            texts.insert(format!("{}/{name}", crate_folder(&library)), text);
        }
    }
    if texts.is_empty() {
        let text = format!(
            "Rust's libraries, version {}, are under MIT or Apache-2.0: {RUST_URL}\n",
            library.version
        );
        texts.insert(format!("{}/COPYRIGHT", crate_folder(&library)), text.into_bytes());
    }
    Ok((library, texts))
}

/// Returns the platform that rustc compiles for by default.
///
/// # Errors
///
/// rustc is missing.
pub fn host_triple() -> Result<String> {
    let stdout = Run::new("rustc").arg("-vV").success()?;
    let stdout = espalier_series::lossy(&stdout).into_owned();
    let triple = stdout.lines().find_map(|line| line.strip_prefix("host: "));
    triple.map(str::to_string).ok_or_else(|| Error::environment("`rustc -vV` names no host"))
}

/// Paths of the licences in Rust's distribution, and their names here.
const RUST_TEXTS: [(&str, &str); 5] = [
    ("COPYRIGHT-library.html", "COPYRIGHT-library.html"),
    ("licenses/MIT.txt", "LICENSE-MIT"),
    ("licenses/Apache-2.0.txt", "LICENSE-APACHE"),
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
];
const RUST_URL: &str = "https://www.rust-lang.org/policies/licenses";

/// Returns the packages of a page, from the headings of its licences.
#[must_use]
pub fn of_page(notices: &str) -> Vec<Library> {
    let mut found: Vec<Library> =
        notices.split(&format!("\n\n{}\n\n", "-".repeat(80))).filter_map(heading).collect();
    found.sort();
    found.dedup();
    found
}

/// Parses `name version (licence)`.
fn heading(part: &str) -> Option<Library> {
    let (rest, licence) = part.lines().next()?.strip_suffix(')')?.split_once(" (")?;
    let (name, version) = rest.rsplit_once(' ')?;
    Some(Library { name: name.into(), version: version.into(), licence: licence.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_and_test_dependencies_are_not_linked() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("LICENSE-MIT"), "MIT\n").unwrap();
        std::fs::write(folder.path().join("README.md"), "no licence\n").unwrap();
        let manifest = folder.path().join("Cargo.toml");
        let package = |name: &str, source: Option<&str>| {
            serde_json::json!({
                "id": name, "name": name, "version": "1.0.0", "license": "MIT",
                "manifest_path": &manifest, "source": source,
            })
        };
        let dependency = |name: &str, kind: Option<&str>| serde_json::json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let metadata = serde_json::json!({
            "packages": [
                package("ours", None),
                package("a", Some("r")),
                package("b", Some("r")),
                package("tests", Some("r")),
                package("builds", Some("r")),
            ],
            "resolve": { "nodes": [
                { "id": "ours", "deps": [dependency("a", None), dependency("tests", Some("dev"))] },
                { "id": "a", "deps": [dependency("b", None), dependency("builds", Some("build"))] },
                { "id": "tests", "deps": [] },
            ] },
        });
        let (libraries, texts) = of_crates(metadata.to_string().as_bytes(), "ours").unwrap();
        assert_eq!(libraries.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        let paths: Vec<&String> = texts.keys().collect();
        assert_eq!(paths, ["licenses/crates/a-1.0.0/LICENSE-MIT", "licenses/crates/b-1.0.0/LICENSE-MIT"]);
    }

    #[test]
    fn sources_are_found_by_any_way() {
        let path = without_detours(Path::new("/p/build/v-f/../../trees/v/ggml/./src/../a.c"));
        assert_eq!(path, Path::new("/p/trees/v/ggml/a.c"));
    }

    #[test]
    fn licences_lie_above_a_source_or_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("LICENSE", "ours\n");
        write("licenses/LICENSE-json", "json\n");
        write("vendor/a/LICENSE", "a\n");
        write("vendor/a/src/a.c", "// Copyright A\n");
        write("vendor/b/b.h", "// Public domain\nint b;\n");
        write("vendor/unused/LICENSE", "unused\n");
        write("src/plain.c", "int x;\n");
        let sources = ["vendor/a/src/a.c", "vendor/b/b.h", "src/plain.c"].map(String::from).into();
        let texts = of_upstream(folder.path(), &sources).unwrap();
        assert_eq!(
            texts.keys().collect::<Vec<_>>(),
            [
                "licenses/upstream/LICENSE",
                "licenses/upstream/licenses/LICENSE-json",
                "licenses/upstream/vendor/a/LICENSE",
                "licenses/upstream/vendor/b/b.h.txt",
            ]
        );
        assert_eq!(texts["licenses/upstream/vendor/b/b.h.txt"], b"// Public domain\n");
    }

    #[test]
    fn packages_of_a_page_are_in_the_headings_of_its_licences() {
        let line = "-".repeat(80);
        let text = format!(
            "@a/b 1.2 (MIT)\n\ntext (x)\n\n{line}\n\nsrc/lib/vendored\n\ntext\n\n{line}\n\nc 3 (ISC)\n"
        );
        let names: Vec<String> =
            of_page(&text).iter().map(|one| format!("{}@{}", one.name, one.version)).collect();
        assert_eq!(names, ["@a/b@1.2", "c@3"]);
    }
}
