//! CMake's `compile_commands.json`: finds the commands that compile the files of a series, and turns them into syntax
//! checks.

use std::collections::{BTreeMap, BTreeSet};

use espalier_core::config::paths::file_name;
use serde::Deserialize;

/// One file that a build compiles.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CompileCommand {
    /// Working directory of the compiler.
    pub directory: String,
    /// The compiler's command line, as a shell would read it.
    pub command: String,
    /// The source file.
    pub file: String,
    /// The object file; older versions of CMake omit it.
    #[serde(default)]
    pub output: String,
}

/// The commands to check for a series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Indices into the list of commands, in order.
    pub commands: BTreeSet<usize>,
    /// Touched code that this build does not compile.
    pub not_compiled: Vec<String>,
}

/// Parses the whole file; `None` when it is not in CMake's format.
pub fn parse(text: &str) -> Option<Vec<CompileCommand>> {
    serde_json::from_str(text).ok()
}

const SOURCES: [&str; 7] = ["c", "cc", "cpp", "cxx", "m", "mm", "cu"];
const HEADERS: [&str; 6] = ["h", "hh", "hpp", "hxx", "inc", "cuh"];

/// Whether `path` is code that is compiled directly or through an include.
pub fn is_code(path: &str) -> bool {
    has_ending(path, &SOURCES) || is_header(path)
}

/// Whether `path` is a header.
pub fn is_header(path: &str) -> bool {
    has_ending(path, &HEADERS)
}

fn has_ending(path: &str, endings: &[&str]) -> bool {
    path.rsplit_once('.').is_some_and(|(_, ending)| endings.contains(&ending))
}

/// Chooses the commands that compile the `touched` files: the file itself, the file that CMake generates from a
/// template, or the first file that includes it, if it is a header, or a source in a unity build. Paths are relative to
/// `tree`; `texts` has the code of the tree by path, and that of generated files by their own paths.
pub fn choose(
    commands: &[CompileCommand],
    tree: &str,
    touched: &BTreeSet<String>,
    texts: &BTreeMap<String, String>,
) -> Chosen {
    let files: Vec<&str> = commands.iter().map(|command| relative(&command.file, tree)).collect();
    let mut chosen = Chosen::default();
    for path in touched {
        let template = path.strip_suffix(".in");
        let found = match template {
            Some(made) => files.iter().position(|file| file_name(file) == file_name(made)),
            None if is_header(path) => first_to_include(path, &files, texts),
            None => {
                files.iter().position(|file| file == path).or_else(|| first_to_include(path, &files, texts))
            }
        };
        match found {
            Some(at) => drop(chosen.commands.insert(at)),
            None if is_code(template.unwrap_or(path)) => chosen.not_compiled.push(path.clone()),
            None => {}
        }
    }
    chosen
}

fn relative<'a>(file: &'a str, tree: &str) -> &'a str {
    file.strip_prefix(tree).map_or(file, |rest| rest.trim_start_matches('/'))
}

/// Follows includes through other headers when no compiled file includes it directly.
fn first_to_include(header: &str, files: &[&str], texts: &BTreeMap<String, String>) -> Option<usize> {
    let mut wanted = BTreeSet::from([header]);
    loop {
        let includes = |file: &str| texts.get(file).is_some_and(|text| includes_one_of(text, &wanted));
        if let Some(at) = files.iter().position(|file| includes(file)) {
            return Some(at);
        }
        let more: Vec<&str> =
            texts.keys().map(String::as_str).filter(|path| is_header(path) && includes(path)).collect();
        let before = wanted.len();
        wanted.extend(more);
        if wanted.len() == before {
            return None;
        }
    }
}

fn includes_one_of(text: &str, wanted: &BTreeSet<&str>) -> bool {
    text.lines().filter_map(included).any(|name| wanted.iter().any(|path| is_end_of(name, path)))
}

/// Returns `x.h` for `#include "x.h"` and for `#include <x.h>`.
fn included(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start();
    let close = match rest.chars().next()? {
        '"' => '"',
        '<' => '>',
        _ => return None,
    };
    rest[1..].split(close).next()
}

/// Whether the path ends with the included name, ignoring leading `../`.
fn is_end_of(name: &str, path: &str) -> bool {
    let name = name.rsplit("../").next().unwrap_or(name);
    path.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// The arguments of the command that checks the file without writing output; `None` when a quote is not closed.
pub fn syntax_only(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut given = shlex::split(command)?.into_iter();
    while let Some(word) = given.next() {
        match word.as_str() {
            // Replace it in place: the words before the compiler's own arguments may be another program.
            "-c" => words.push("-fsyntax-only".to_string()),
            "-MD" | "-MMD" => {}
            // Each of these is followed by the name of an output file or target.
            "-o" | "-MF" | "-MT" | "-MQ" => drop(given.next()),
            _ => words.push(word),
        }
    }
    Some(words)
}

/// The Ninja target that generates the headers needed by `output`.
pub fn generated_headers_target(output: &str) -> Option<String> {
    let folder = output.split('/').find_map(|part| part.strip_suffix(".dir"))?;
    Some(format!("cmake_object_order_depends_target_{folder}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(files: &[&str]) -> Vec<CompileCommand> {
        let command = |file: &&str| CompileCommand {
            directory: "/b".into(),
            command: format!("cc -c {file}"),
            file: file.to_string(),
            output: String::new(),
        };
        files.iter().map(command).collect()
    }

    fn chosen(touched: &[&str]) -> Chosen {
        let texts = [
            ("src/a.c", "#include \"deep.h\"\n"),
            ("src/b.c", "#  include <words.h>\n"),
            ("include/words.h", ""),
            ("include/deep.h", "#include \"../include/deeper.h\"\n"),
            ("include/deeper.h", ""),
            ("include/lonely.h", "// #include \"words.h\"\n"),
            ("/b/unity_0.cxx", "#include \"src/one.cpp\"\n#include \"src/two.cpp\"\n"),
        ];
        let texts = texts.map(|(path, text)| (path.to_string(), text.to_string()));
        let touched = touched.iter().map(ToString::to_string).collect();
        let list = commands(&["/t/src/a.c", "/t/src/b.c", "/b/made/info.cpp", "/b/unity_0.cxx"]);
        choose(&list, "/t", &touched, &texts.into())
    }

    fn places(touched: &[&str]) -> Vec<usize> {
        chosen(touched).commands.into_iter().collect()
    }

    #[test]
    fn a_file_a_template_and_a_header_find_their_command() {
        assert_eq!(places(&["src/b.c"]), [1]);
        assert_eq!(places(&["common/info.cpp.in"]), [2]);
        assert_eq!(places(&["include/words.h"]), [1]);
        assert_eq!(places(&["include/deeper.h"]), [0]);
    }

    #[test]
    fn a_source_of_a_unity_build_finds_its_command() {
        assert_eq!(places(&["src/two.cpp"]), [3]);
    }

    #[test]
    fn uncompiled_sources_are_reported_and_text_files_are_not() {
        let found = chosen(&["src/gpu.cu", "include/lonely.h", "README.md", "CMakeLists.txt"]);
        assert!(found.commands.is_empty());
        assert_eq!(found.not_compiled, ["include/lonely.h", "src/gpu.cu"]);
    }

    #[test]
    fn nothing_that_would_be_written_is_left_in_a_command() {
        let words =
            syntax_only(r#"/usr/bin/c++ -DA=\"b\ c\" '-DD=e f' "-I/x y" -MD -MF a.d -o a.o -c /t/a.cpp"#);
        let words = words.unwrap();
        assert_eq!(words, ["/usr/bin/c++", "-DA=\"b c\"", "-DD=e f", "-I/x y", "-fsyntax-only", "/t/a.cpp"]);
        let wrapped = syntax_only("/w/wrapper cc -o a.o -c /t/a.c");
        assert_eq!(wrapped.unwrap(), ["/w/wrapper", "cc", "-fsyntax-only", "/t/a.c"]);
        assert_eq!(syntax_only("cc -c '/t/a.c"), None);
    }

    #[test]
    fn the_target_is_in_the_objects_path() {
        let target = generated_headers_target("tools/server/CMakeFiles/server-lib.dir/a.cpp.o");
        assert_eq!(target.unwrap(), "cmake_object_order_depends_target_server-lib");
        assert_eq!(generated_headers_target(""), None);
    }
}
