//! Allowed imports between crates and modules: the tables of ARCHITECTURE.md, compared with the manifests and with
//! every `crate::` and `super::` in the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::support::files;

/// The path of a module, from the crate's root.
type Module = Vec<String>;

/// The folders of all crates with modules in tables or more than one folder.
const CRATES: [&str; 8] = [
    "series",
    "kernels",
    "front",
    "xtask",
    "xtask/crates/core",
    "xtask/crates/patches",
    "xtask/crates/dist",
    "xtask/crates/qa",
];

/// The crates that each crate of xtask may depend on.
const ALLOWED_EVERYWHERE: [&str; 2] = ["series", "names"];

/// A heading, the crate that its table describes, and the top-level module whose submodules it lists, if any.
const TABLES: [(&str, &str, Option<&str>); 7] = [
    ("### core", "xtask/crates/core", None),
    ("### core/sys", "xtask/crates/core", Some("sys")),
    ("### patches", "xtask/crates/patches", None),
    ("### dist", "xtask/crates/dist", None),
    ("### qa", "xtask/crates/qa", None),
    ("## The modules of the series", "series", None),
    ("## The modules of the kernels", "kernels", None),
];

#[test]
fn crates_depend_only_on_what_the_table_allows() {
    for (name, allowed) in table("## The crates of xtask") {
        let folder =
            if name == "xtask" { root().join("xtask") } else { root().join("xtask/crates").join(&name) };
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let dependencies = manifest.lines().filter(|line| line.contains("path = \"")).filter_map(|line| {
            let name = line.split_once(" = {")?.0;
            Some(name.strip_prefix("espalier-").unwrap_or(name).to_string())
        });
        let dependencies: BTreeSet<String> =
            dependencies.filter(|name| !ALLOWED_EVERYWHERE.contains(&name.as_str())).collect();
        assert_eq!(dependencies, allowed, "the dependencies of `{name}`");
    }
}

#[test]
fn modules_import_only_what_the_tables_allow() {
    for (heading, folder, inside) in TABLES {
        let table = table(heading);
        let imports = imports(folder);
        let imports = inside.map(|outer| inside_of(outer, &imports)).unwrap_or(imports);
        let modules: BTreeSet<&str> = imports.keys().map(|module| module[0].as_str()).collect();
        assert_eq!(modules, table.keys().map(String::as_str).collect(), "{heading} names other modules");
        for (module, targets) in &imports {
            for target in targets.iter().filter(|target| target[0] != module[0]) {
                let (from, to) = (module.join("::"), target.join("::"));
                assert!(table[&module[0]].contains(&target[0]), "{from} imports {to}: see {heading}");
            }
        }
    }
}

/// A file outside of the crate is named from the crate's folder (`CARGO_MANIFEST_DIR`): the module that includes it can
/// be moved, and what a crate needs from elsewhere can be searched for.
#[test]
fn included_files_are_in_the_crate_or_named_from_its_folder() {
    for folder in CRATES.into_iter().chain(["xtask/crates/modelgen", "kernels/names", "health"]) {
        for sources in ["src", "tests"].map(|below| root().join(folder).join(below)) {
            for file in files::list(&sources).iter().filter(|file| file.ends_with(".rs")) {
                let text = std::fs::read_to_string(sources.join(file)).unwrap();
                // From the folder of the file to that of the crate.
                let most = 1 + file.matches('/').count();
                let outside = included(&text).find(|path| path.matches("../").count() > most);
                assert_eq!(outside, None, "{}", sources.join(file).display());
            }
        }
    }
}

/// Returns the paths in `include_str!` and `include_bytes!`.
fn included(text: &str) -> impl Iterator<Item = &str> {
    let names = ["include_str!(\"", "include_bytes!(\""];
    names.into_iter().flat_map(move |name| text.split(name).skip(1)).filter_map(|rest| rest.split('"').next())
}

/// Returns the imports among the submodules of `outer`, without its `mod.rs`.
fn inside_of(
    outer: &str,
    imports: &BTreeMap<Module, BTreeSet<Module>>,
) -> BTreeMap<Module, BTreeSet<Module>> {
    let inner = |path: &Module| (path.len() > 1 && path[0] == outer).then(|| path[1..].to_vec());
    let targets = |targets: &BTreeSet<Module>| targets.iter().filter_map(inner).collect();
    imports.iter().filter_map(|(module, found)| Some((inner(module)?, targets(found)))).collect()
}

/// Neither the modules of a crate nor the modules inside of them. For modules without a table this is their order: of
/// two that need each other, the one below must not import the one above.
#[test]
fn folders_do_not_import_each_other_in_circles() {
    for folder in CRATES {
        for depth in [1, 2] {
            let found = circles(&imports(folder), |path, _| path.iter().take(depth).cloned().collect());
            assert!(found.is_empty(), "circles in {folder}: {found:?}");
        }
    }
}

/// A file may import from the `mod.rs` of its own folder, which declares the file.
#[test]
fn files_do_not_import_each_other_in_circles() {
    for folder in CRATES {
        let imports = imports(folder);
        let file = |path: &Module| (1..=path.len()).rev().find_map(|n| imports.get_key_value(&path[..n]));
        let found = circles(&imports, |path, from| match file(path) {
            Some((file, _)) if !from.starts_with(file) => file.clone(),
            _ => from.clone(),
        });
        assert!(found.is_empty(), "circles in {folder}: {found:?}");
    }
}

/// Returns the import cycles: `place` maps a path that a module imports to the unit to check.
fn circles(
    imports: &BTreeMap<Module, BTreeSet<Module>>,
    place: impl Fn(&Module, &Module) -> Module,
) -> BTreeMap<Module, BTreeSet<Module>> {
    let known: BTreeSet<Module> = imports.keys().map(|module| place(module, &Module::new())).collect();
    let mut graph: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, targets) in imports {
        let from = place(module, &Module::new());
        let others = targets.iter().map(|target| place(target, module));
        let others: BTreeSet<Module> =
            others.filter(|other| *other != from && known.contains(other)).collect();
        graph.entry(from).or_default().extend(others);
    }
    // Nodes without remaining imports, or without remaining importers, are removed: the cycles are left.
    while let Some(free) = free(&graph) {
        graph.remove(&free);
    }
    let left: BTreeSet<Module> = graph.keys().cloned().collect();
    graph.values_mut().for_each(|to| to.retain(|to| left.contains(to)));
    graph
}

fn free(graph: &BTreeMap<Module, BTreeSet<Module>>) -> Option<Module> {
    let imports_none = |to: &BTreeSet<Module>| to.iter().all(|to| !graph.contains_key(to));
    let is_imported = |module: &Module| graph.values().any(|to| to.contains(module));
    graph
        .iter()
        .find(|(module, to)| imports_none(to) || !is_imported(module))
        .map(|(module, _)| module.clone())
}

fn root() -> PathBuf {
    files::of_this_repository("")
}

/// Returns the modules of the table under `heading`, from top to bottom, and what each may import: only modules listed
/// below it.
fn table(heading: &str) -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let section = text.split(&format!("\n{heading}\n")).nth(1).unwrap().split("\n#").next().unwrap();
    let rows: Vec<Vec<&str>> = section.lines().filter(|line| line.starts_with("| `")).map(cells).collect();
    let names: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    let mut table = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        let may: BTreeSet<String> = row[2].split_whitespace().map(str::to_string).collect();
        let is_below = |name: &String| names[at + 1..].contains(&name.as_str());
        assert!(may.iter().all(is_below), "{heading}: `{}` imports what is not below it: {may:?}", row[0]);
        table.insert(row[0].to_string(), may);
    }
    table
}

fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect()
}

/// Returns the imports of each file of the crate in `folder`, without its tests and its roots, which name every module.
fn imports(folder: &str) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut found = imports_below(&root().join(folder).join("src"));
    found.retain(|module, _| !matches!(module[0].as_str(), "lib" | "main" | "bin"));
    found
}

fn imports_below(sources: &Path) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![sources.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let module = module_of(path.strip_prefix(sources).unwrap());
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap();
                found.insert(module.clone(), paths_in(code, &module));
            }
        }
    }
    found
}

fn module_of(path: &Path) -> Module {
    let path = path.with_extension("");
    path.iter().map(|part| part.to_string_lossy().into_owned()).filter(|part| part != "mod").collect()
}

/// Returns every path that starts with `crate` or `super`, from the crate's root; for a group in braces, the first
/// component of each item.
fn paths_in(code: &str, module: &Module) -> BTreeSet<Module> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = BTreeSet::new();
    for (at, start) in code.match_indices("crate::").chain(code.match_indices("super::")) {
        if code[..at].ends_with(|c: char| is_name(c) || c == ':') || is_comment(code, at) {
            continue;
        }
        let mut path = if start == "crate::" { Vec::new() } else { module[..module.len() - 1].to_vec() };
        let mut rest = &code[at + start.len()..];
        while let Some(after) = rest.strip_prefix("super::") {
            path.pop();
            rest = after;
        }
        let written = &rest[..rest.find(|c: char| !is_name(c) && c != ':').unwrap_or(rest.len())];
        path.extend(written.split("::").filter(|name| !name.is_empty()).map(str::to_string));
        match rest[written.len()..].strip_prefix('{').and_then(|group| group.split('}').next()) {
            Some(group) if written.is_empty() || written.ends_with("::") => {
                let names = group.split(',').map(|name| name.trim().split(|c| !is_name(c)).next().unwrap());
                found.extend(names.filter(|name| !name.is_empty()).map(|name| with(&path, name)));
            }
            _ => drop(found.insert(path)),
        }
    }
    found.retain(|path| !path.is_empty() && path.last().is_none_or(|last| last != "self"));
    found
}

fn with(path: &Module, name: &str) -> Module {
    let own = (name != "self").then(|| name.to_string());
    path.iter().cloned().chain(own).collect()
}

fn is_comment(code: &str, at: usize) -> bool {
    code[..at].rsplit('\n').next().unwrap().trim_start().starts_with("//")
}
