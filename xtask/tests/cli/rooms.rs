//! Who may import whom: the tables of ARCHITECTURE.md, held against every `crate::` and `super::` of the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::support::files;

/// A module by its names, from the crate's root.
type Module = Vec<String>;

const SOURCES: [&str; 3] = ["xtask", "series", "kernels"];

/// A table, the sources that it is about, and the room of which it tells the inside.
const TABLES: [(&str, &str, Option<&str>); 3] = [
    ("## The rooms of xtask", "xtask", None),
    ("### Inside sys", "xtask", Some("sys")),
    ("## The rooms of the series", "series", None),
];

#[test]
fn rooms_import_only_what_stands_below_them() {
    for (heading, sources, inside) in TABLES {
        let table = table(heading);
        let imports = imports(sources);
        let imports = inside.map(|room| inside_of(room, &imports)).unwrap_or(imports);
        let rooms: BTreeSet<&str> = imports.keys().map(|module| module[0].as_str()).collect();
        assert_eq!(rooms, table.keys().map(String::as_str).collect(), "{heading} names other rooms");
        for (module, targets) in &imports {
            for target in targets.iter().filter(|target| target[0] != module[0] && target[0] != "series") {
                let (from, to) = (module.join("::"), target.join("::"));
                assert!(table[&module[0]].contains(&target[0]), "{from} imports {to}: see {heading}");
            }
        }
    }
}

/// What the modules of `room` import of each other; its `mod.rs` is none of them.
fn inside_of(room: &str, imports: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeMap<Module, BTreeSet<Module>> {
    let inner = |path: &Module| (path.len() > 1 && path[0] == room).then(|| path[1..].to_vec());
    let targets = |targets: &BTreeSet<Module>| targets.iter().filter_map(inner).collect();
    imports.iter().filter_map(|(module, found)| Some((inner(module)?, targets(found)))).collect()
}

/// Else a room could be reached past the tables.
#[test]
fn only_the_roots_of_crates_name_crates() {
    for folder in files::sources_of_the_tool() {
        for file in files::list(&folder).iter().filter(|file| !["lib.rs", "main.rs"].contains(&file.as_str()))
        {
            let text = std::fs::read_to_string(folder.join(file)).unwrap();
            assert!(!text.contains(" espalier_") && !text.contains("xtask::"), "{file} names a crate");
        }
    }
}

#[test]
fn folders_do_not_import_each_other_in_circles() {
    for sources in SOURCES {
        let found = circles(&imports(sources), |path, _| path.iter().take(2).cloned().collect());
        assert!(found.is_empty(), "circles in {sources}: {found:?}");
    }
}

/// A file may name what stands in the `mod.rs` of its own folder, which names the file.
#[test]
fn files_do_not_import_each_other_in_circles() {
    for sources in SOURCES {
        let imports = imports(sources);
        let file = |path: &Module| (1..=path.len()).rev().find_map(|n| imports.get_key_value(&path[..n]));
        let found = circles(&imports, |path, from| match file(path) {
            Some((file, _)) if !from.starts_with(file) => file.clone(),
            _ => from.clone(),
        });
        assert!(found.is_empty(), "circles in {sources}: {found:?}");
    }
}

/// What imports each other: `place` says where a path leads that a module writes.
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
    // What imports nothing that is left is taken away, and what nothing that is left imports: circles stay.
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

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The rooms of the table under `heading`, from top to bottom, and what each may import: only what stands below it.
fn table(heading: &str) -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let section = text.split(heading).nth(1).unwrap().split("\n#").next().unwrap();
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

/// What each file imports, tests left out. `lib.rs` and `main.rs` name every room and are none. A room of the tool has
/// one name in all its crates: each says in `lib.rs` where the rooms below it are.
fn imports(name: &str) -> BTreeMap<Module, BTreeSet<Module>> {
    let folders =
        if name == "xtask" { files::sources_of_the_tool() } else { vec![root().join(name).join("src")] };
    let mut found: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for folder in folders {
        found.extend(imports_below(&folder));
    }
    found.retain(|module, _| !matches!(module[0].as_str(), "lib" | "main"));
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

/// Every path that starts with `crate` or `super`, from the crate's root; of a group in braces each first name.
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
