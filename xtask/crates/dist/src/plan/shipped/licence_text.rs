//! Licence texts: recognises licence files, licence comments in sources, and well-known licences.

/// Whether a file of this name contains a licence, or a notice that a licence requires to be passed on.
#[must_use]
pub fn is_licence_file(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["licen", "copying", "copyright", "notice", "unlicense"].iter().any(|start| name.starts_with(start))
        && ![".rs", ".py", ".cpp", ".h"].iter().any(|end| name.ends_with(end))
}

/// Phrases that identify a comment about the rights to a source.
const MARKS: [&str; 4] = ["copyright", "public domain", "spdx-license-identifier", "mit licen"];

/// Concatenates the licence comments of a C or C++ source, byte for byte; empty if there are none.
#[must_use]
pub fn in_source(source: &[u8]) -> Vec<u8> {
    // One character for each byte, whatever the encoding of the source: only ASCII is searched for.
    let text: String = source.iter().map(|byte| char::from(*byte)).collect();
    let licence = licence_comments(&text);
    licence.chars().filter_map(|letter| u8::try_from(letter).ok()).collect()
}

fn licence_comments(text: &str) -> String {
    let is_about_rights = |comment: &String| {
        let comment = comment.to_ascii_lowercase();
        MARKS.iter().any(|mark| comment.contains(mark))
    };
    comments(text).into_iter().filter(is_about_rights).collect::<Vec<_>>().join("\n\n")
}

/// Every comment at the start of a line: `/* */`, or consecutive lines with `//`.
fn comments(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let start = line.trim_start();
        let mut comment = line.to_string();
        if start.starts_with("/*") {
            while !comment.contains("*/") {
                let Some(next) = lines.next() else { break };
                comment = comment + "\n" + next;
            }
        } else if start.starts_with("//") {
            while let Some(next) = lines.next_if(|next| next.trim_start().starts_with("//")) {
                comment = comment + "\n" + next;
            }
        } else {
            continue;
        }
        found.push(comment);
    }
    found
}

/// The SPDX id of a well-known licence text; `None` for any other.
#[must_use]
pub fn spdx_id(text: &str) -> Option<&'static str> {
    let words: String = text.split_whitespace().collect::<Vec<_>>().join(" ").to_ascii_lowercase();
    let says = |part: &str| words.contains(part);
    if says("permission is hereby granted, free of charge, to any person obtaining a copy of this software")
        && says("shall be included in all copies or substantial portions of the software")
    {
        return Some("MIT");
    }
    if says("this is free and unencumbered software released into the public domain") {
        return Some("Unlicense");
    }
    if says("apache license version 2.0, january 2004") && says("end of terms and conditions") {
        return Some("Apache-2.0");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_comments_about_rights_are_found_wherever_they_stand() {
        let source = "// Copyright 2024 A\n// all rights\nint x; // no licence\n/* how to use it\n*/\nint y;\n\
                      /* ALTERNATIVE B\n Public Domain */\n    // MIT licensed.\n";
        let in_source = |text: &str| String::from_utf8(in_source(text.as_bytes())).unwrap();
        assert_eq!(
            in_source(source),
            "// Copyright 2024 A\n// all rights\n\n/* ALTERNATIVE B\n Public Domain */\n\n    // MIT licensed."
        );
        assert_eq!(in_source("// adds two numbers\nint add(int a, int b);\n"), "");
        assert_eq!(in_source("/* copyright, and no end"), "/* copyright, and no end");
    }

    #[test]
    fn a_licence_keeps_its_bytes() {
        let comment = b"// Copyright \xa9 J\xf6rg";
        assert_eq!(in_source(&[&comment[..], b"\nint x;\n"].concat()), comment);
    }

    #[test]
    fn files_with_licences_are_known_by_their_names() {
        for name in ["LICENSE", "LICENSE-MIT", "license.md", "LICENCE.txt", "COPYING", "NOTICE", "UNLICENSE"]
        {
            assert!(is_licence_file(name), "{name}");
        }
        for name in ["README.md", "src", "license.rs", "LICENSE.cpp"] {
            assert!(!is_licence_file(name), "{name}");
        }
    }

    #[test]
    fn well_known_licences_have_an_id() {
        let mit = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../LICENSE-MIT"));
        let apache = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../LICENSE-APACHE"));
        assert_eq!((spdx_id(mit), spdx_id(apache)), (Some("MIT"), Some("Apache-2.0")));
        assert_eq!(spdx_id("You may look at this software."), None);
        assert_eq!(spdx_id(&mit.replace("substantial portions", "none")), None);
    }
}
