//! Detection of source code, and the end of functions in it.

/// The way in which the end of a function is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// Not source code, or not known to be: no line is the head of a function.
    NotCode,
    /// A function ends at a closing brace.
    Braces,
    /// A function ends at the next line that is not indented.
    Indentation,
}

const BRACES: [&str; 59] = [
    "c", "h", "cc", "hh", "cpp", "hpp", "cxx", "hxx", "c++", "h++", "inc", "inl", "ipp", "tpp", "m", "mm",
    "cu", "cuh", "hip", "cl", "clh", "comp", "glsl", "vert", "frag", "hlsl", "wgsl", "metal", "rs", "go",
    "js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "java", "kt", "kts", "swift", "scala", "groovy",
    "gradle", "cs", "php", "pl", "pm", "d", "zig", "dart", "vala", "y", "l", "proto", "awk", "sv", "v",
];

const INDENTATION: [&str; 24] = [
    "py", "pyi", "pyx", "rb", "lua", "sh", "bash", "zsh", "ksh", "ps1", "ex", "exs", "hs", "ml", "mli", "jl",
    "r", "nim", "tcl", "f", "f90", "s", "asm", "el",
];

/// Template suffixes: the suffix before them decides, as in `config.h.in`.
const TEMPLATES: [&str; 3] = ["in", "tmpl", "template"];

impl Language {
    /// Returns the language of the file at `path`. A file without a suffix is code if it starts with an interpreter
    /// line.
    pub fn of(path: &[u8], content: &[u8]) -> Language {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_ascii_lowercase();
        let mut endings = name.rsplit(|byte| *byte == b'.').peekable();
        let mut ending = endings.next().unwrap_or_default();
        if is_one_of(&TEMPLATES, ending) {
            ending = endings.next().unwrap_or_default();
        }
        match endings.peek() {
            None if content.starts_with(b"#!") => Language::Indentation,
            None => Language::NotCode,
            Some(_) if is_one_of(&BRACES, ending) => Language::Braces,
            Some(_) if is_one_of(&INDENTATION, ending) => Language::Indentation,
            Some(_) => Language::NotCode,
        }
    }
}

fn is_one_of(endings: &[&str], ending: &[u8]) -> bool {
    endings.iter().any(|known| known.as_bytes() == ending)
}

#[cfg(test)]
mod tests {
    use super::Language;

    #[test]
    fn only_source_code_has_functions() {
        let language = |path: &str| Language::of(path.as_bytes(), b"text\n");
        for path in ["a.c", "src/GGML.CPP", "kernel.cu", "config.h.in", "a.b/c.metal", "x.test.ts"] {
            assert_eq!(language(path), Language::Braces, "{path}");
        }
        for path in ["convert.py", "ci/run.sh"] {
            assert_eq!(language(path), Language::Indentation, "{path}");
        }
        let texts = [
            "redis.conf",
            "LICENSE",
            "configure",
            "c",
            "src.c/README",
            "a.md",
            "x.service",
            "CMakeLists.txt",
            "m4/a.m4",
            ".gitignore",
            "go.mod",
            "a.json",
            "a.conf.in",
            "Kconfig",
            "debian/rules",
            "x.patch",
            "a.ini",
            "in",
        ];
        for path in texts {
            assert_eq!(language(path), Language::NotCode, "{path}");
        }
        assert_eq!(Language::of(b"tools/run", b"#!/bin/sh\n"), Language::Indentation);
    }
}
