//! Checks that programs and libraries find everything they link on a machine that has only these files and a base
//! image.

use std::collections::{BTreeMap, BTreeSet};

use espalier_core::config::paths::file_name;
use object::elf::{self, FileHeader64};
use object::read::elf::{ElfFile64, SectionTable};
use object::{Endianness, FileKind};

/// The dynamic dependencies of an ELF file, and the versions that it provides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linked {
    /// Libraries that it cannot start without.
    pub needed: Vec<String>,
    /// Symbol versions that it requires, by library: a library of that name may be too old.
    pub versions: BTreeMap<String, Vec<String>>,
    /// Symbol versions that it provides.
    pub has: BTreeSet<String>,
    /// Its target machine, as an ELF `e_machine` value.
    pub machine: u16,
}

/// A file and its path for display.
pub type Named = (String, Linked);

type Sections<'data> = SectionTable<'data, FileHeader64<Endianness>>;

/// Reads the dependencies of `bytes`; `None` when they are not a 64-bit ELF file.
///
/// # Errors
///
/// A sentence, when the file is damaged.
pub fn read(bytes: &[u8]) -> Result<Option<Linked>, String> {
    if FileKind::parse(bytes) != Ok(FileKind::Elf64) {
        return Ok(None);
    }
    read_elf(bytes).map(Some).map_err(|error| error.to_string())
}

fn read_elf(bytes: &[u8]) -> object::Result<Linked> {
    let file: ElfFile64<'_> = ElfFile64::parse(bytes)?;
    let (endian, sections) = (file.endian(), file.elf_section_table());
    let table = sections.dynamic_table(endian, bytes)?;
    let needed = table.iter().filter(|entry| entry.tag == elf::DT_NEEDED);
    Ok(Linked {
        needed: needed.map(|entry| table.string(entry).map(text)).collect::<object::Result<_>>()?,
        versions: versions(sections, endian, bytes)?,
        has: has(sections, endian, bytes)?,
        machine: file.elf_header().e_machine.get(endian).0,
    })
}

fn versions(
    sections: &Sections<'_>,
    endian: Endianness,
    bytes: &[u8],
) -> object::Result<BTreeMap<String, Vec<String>>> {
    let mut found = BTreeMap::new();
    let Some((needs, link)) = sections.gnu_verneed(endian, bytes)? else { return Ok(found) };
    let strings = sections.strings(endian, bytes, link)?;
    for need in needs {
        let (library, wanted) = need?;
        let names: &mut Vec<String> = found.entry(text(library.file(endian, strings)?)).or_default();
        for one in wanted {
            let one = one?;
            names.push(text(one.name(endian, strings)?));
        }
    }
    Ok(found)
}

fn has(sections: &Sections<'_>, endian: Endianness, bytes: &[u8]) -> object::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let Some((definitions, link)) = sections.gnu_verdef(endian, bytes)? else { return Ok(found) };
    let strings = sections.strings(endian, bytes, link)?;
    for definition in definitions {
        // The names after the first are its parent versions.
        if let Some(name) = definition?.1.next()? {
            found.insert(text(name.name(endian, strings)?));
        }
    }
    Ok(found)
}

fn text(bytes: &[u8]) -> String {
    espalier_series::lossy(bytes).into_owned()
}

/// Returns a sentence for each dependency of `files` that neither they nor `base` provide.
#[must_use]
pub fn unanswered(files: &[Named], base: &[Named]) -> Vec<String> {
    let mut by_name: BTreeMap<&str, &Linked> = BTreeMap::new();
    for (path, linked) in base.iter().chain(files) {
        by_name.insert(file_name(path), linked);
    }
    let by_name = &by_name;
    let messages = files.iter().flat_map(|(path, linked)| {
        linked.needed.iter().filter_map(move |library| match by_name.get(library.as_str()) {
            None => Some(format!("`{path}` links `{library}`, which nothing has")),
            Some(found) if found.machine != linked.machine => {
                Some(format!("`{path}` links `{library}`, which is for another processor"))
            }
            Some(found) => too_old(path, library, linked, found),
        })
    });
    messages.collect()
}

fn too_old(path: &str, library: &str, linked: &Linked, found: &Linked) -> Option<String> {
    let wanted = linked.versions.get(library)?;
    let missing: Vec<&str> =
        wanted.iter().filter(|version| !found.has.contains(*version)).map(String::as_str).collect();
    match missing.is_empty() {
        true => None,
        false => Some(format!("`{path}` needs {} of `{library}`, which is too old", missing.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, needed: &[&str], versions: &[(&str, &[&str])], has: &[&str]) -> Named {
        let all = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        let linked = Linked {
            needed: all(needed),
            versions: versions.iter().map(|(library, names)| (library.to_string(), all(names))).collect(),
            has: all(has).into_iter().collect(),
            machine: 62,
        };
        (path.to_string(), linked)
    }

    #[test]
    fn a_library_that_no_package_has_is_reported_with_its_users() {
        let base = [file("lib/libc.so.6", &["ld.so"], &[], &["GLIBC_2.2.5", "GLIBC_2.36"])];
        let mut server =
            file("bin/server", &["libc.so.6", "libllama.so.0"], &[("libc.so.6", &["GLIBC_2.36"])], &[]);
        let library = file("lib/libllama.so.0", &["libc.so.6"], &[], &[]);
        assert_eq!(unanswered(&[server.clone(), library.clone()], &base), [""; 0]);
        assert_eq!(
            unanswered(&[server.clone()], &base),
            ["`bin/server` links `libllama.so.0`, which nothing has"]
        );
        server.1.versions.insert("libc.so.6".into(), vec!["GLIBC_2.36".into(), "GLIBC_2.38".into()]);
        assert_eq!(
            unanswered(&[server.clone(), library.clone()], &base),
            ["`bin/server` needs GLIBC_2.38 of `libc.so.6`, which is too old"]
        );
        server.1.machine = 183;
        let messages = unanswered(&[server, library], &base);
        assert_eq!(messages[0], "`bin/server` links `libc.so.6`, which is for another processor");
    }

    /// Reads this test's own program, which links libc with symbol versions.
    #[cfg(target_os = "linux")]
    #[test]
    #[allow(clippy::disallowed_methods, reason = "it reads itself")]
    fn a_real_program_is_read() {
        let linked = read(&std::fs::read(std::env::current_exe().unwrap()).unwrap()).unwrap().unwrap();
        assert!(linked.needed.contains(&"libc.so.6".to_string()), "{linked:?}");
        assert!(linked.versions["libc.so.6"].iter().any(|version| version.starts_with("GLIBC_2.")));
        assert_eq!(read(b"#!/bin/sh\n"), Ok(None));
        assert!(read(&std::fs::read(std::env::current_exe().unwrap()).unwrap()[..100]).is_err());
    }
}
