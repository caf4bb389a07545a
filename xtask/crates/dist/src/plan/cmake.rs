//! CMake's command line and the identity header, as pure functions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use espalier_core::config::pins::Revision;

use super::compiler::Compiler;
use super::prefix_map::PrefixMap;
use super::rust_library::RustLibrary;

/// All settings passed to CMake.
#[derive(Clone, Debug)]
pub struct Configure<'a> {
    /// The materialised tree.
    pub source: &'a Path,
    /// CMake's build folder.
    pub build: &'a Path,
    /// The Ninja program.
    pub ninja: &'a Path,
    /// C and C++ compilers.
    pub compilers: (&'a Compiler, &'a Compiler),
    /// Cache entries of the flavor.
    pub entries: BTreeMap<String, String>,
    /// The static libraries of Rust that the variant links, each with its path and its header folder.
    pub libraries: Vec<(RustLibrary, PathBuf, PathBuf)>,
    /// The folder of the identity header.
    pub identity: PathBuf,
    /// Replacement names for this machine's folders in the programs.
    pub prefix_map: PrefixMap,
    /// The pinned tag or commit, passed because upstream's scripts would ask git and find our commit instead of
    /// upstream's.
    pub revision: &'a Revision,
}

impl Configure<'_> {
    /// The arguments after `cmake`.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            "-G".to_string(),
            "Ninja".to_string(),
            "-S".to_string(),
            show(self.source),
            "-B".to_string(),
            show(self.build),
        ];
        let mut entries = self.cache_entries();
        // The Windows compiler does not support the option.
        if let Some(build_type) = self.entries.get("CMAKE_BUILD_TYPE").filter(|_| !cfg!(windows)) {
            entries.extend(self.prefix_map.cmake(build_type));
        }
        arguments.extend(entries.iter().map(|(key, value)| format!("-D{key}={value}")));
        arguments
    }

    /// The commit name shown by `--version`: one that exists in upstream's repository.
    fn build_commit(&self) -> String {
        match self.revision {
            Revision::Tag(tag) => tag.to_string(),
            Revision::Commit(commit) => commit.to_string().chars().take(12).collect(),
        }
    }

    /// Every cache entry that determines the build, the flavor's and ours.
    pub fn cache_entries(&self) -> BTreeMap<String, String> {
        let mut entries = self.entries.clone();
        let mut set = |key: &str, value: String| drop(entries.insert(key.to_string(), value));
        set("CMAKE_MAKE_PROGRAM", show(self.ninja));
        // A toolchain for another platform has its own compilers.
        let is_crossed = self.entries.contains_key("CMAKE_TOOLCHAIN_FILE");
        for (language, compiler) in [("C", self.compilers.0), ("CXX", self.compilers.1)] {
            let launcher = compiler.launcher.as_deref().map(show).unwrap_or_default();
            set(&format!("CMAKE_{language}_COMPILER_LAUNCHER"), launcher);
            if is_crossed {
                continue;
            }
            set(&format!("CMAKE_{language}_COMPILER"), show(&compiler.program));
            if !compiler.arguments.is_empty() {
                set(&format!("CMAKE_{language}_COMPILER_ARG1"), compiler.argument_line());
            }
        }
        set("LLAMA_BUILD_NUMBER", "0".to_string());
        set("LLAMA_BUILD_COMMIT", self.build_commit());
        // ggml asks git for its commit and would get ours, so that each of our commits would change the output.
        set("GIT_EXE", "OFF".to_string());
        // Programs find their libraries both in the build folder and in the package.
        set("CMAKE_BUILD_WITH_INSTALL_RPATH", "ON".to_string());
        set("CMAKE_INSTALL_RPATH", format!("{ORIGIN};{ORIGIN}/../lib"));
        // Do not relink programs when a library's code changed but not its interface.
        set("CMAKE_LINK_DEPENDS_NO_SHARED", "ON".to_string());
        for (library, file, headers) in &self.libraries {
            set(library.cache_entry(), show(file));
            set(&format!("{}_INCLUDE", library.cache_entry()), show(headers));
            if *library == RustLibrary::Kernels {
                set("ESPALIER_IDENTITY_DIR", show(&self.identity));
            }
        }
        entries
    }
}

const ORIGIN: &str = if cfg!(target_os = "macos") { "@loader_path" } else { "$ORIGIN" };

/// The header that identifies a server. Only this header changes when only the tree id changes, so that one small file
/// is recompiled.
pub fn identity_header(variant: &str, pin: &str, tree: &str) -> String {
    format!(
        "#pragma once\n\
         #define ESPALIER_VARIANT \"{}\"\n\
         #define ESPALIER_PIN \"{}\"\n\
         #define ESPALIER_TREE \"{tree}\"\n",
        c_string(variant),
        c_string(pin)
    )
}

fn c_string(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .flat_map(|c| if "\"\\".contains(c) { vec!['\\', c] } else { vec![c] })
        .collect()
}

fn show(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configure(libraries: &[RustLibrary]) -> Vec<String> {
        configure_at("v0.5.0", libraries)
    }

    fn configure_at(revision: &str, libraries: &[RustLibrary]) -> Vec<String> {
        let path = Path::new("/x");
        let c = Compiler { launcher: None, program: PathBuf::from("/cc"), arguments: Vec::new() };
        let arguments = vec!["-m64".to_string(), "-DX=a b".to_string()];
        let cxx = Compiler { launcher: Some(PathBuf::from("/ccache")), program: "/c++".into(), arguments };
        Configure {
            source: path,
            build: path,
            ninja: path,
            compilers: (&c, &cxx),
            entries: BTreeMap::from([("GGML_NATIVE".to_string(), "ON".to_string())]),
            libraries: libraries
                .iter()
                .map(|library| {
                    let folder = Path::new("/").join(library.folder());
                    (*library, folder.join("x.a"), folder.join("include"))
                })
                .collect(),
            identity: PathBuf::from("/id"),
            prefix_map: PrefixMap::new(path, path, path),
            revision: &Revision::parse(revision).unwrap(),
        }
        .arguments()
    }

    #[test]
    fn a_stock_build_gets_none_of_our_arguments() {
        let arguments = configure(&[]);
        assert!(arguments.contains(&"-DGGML_NATIVE=ON".to_string()));
        // A tag or a commit, which can be looked up upstream; never a tree id.
        assert!(arguments.contains(&"-DLLAMA_BUILD_COMMIT=v0.5.0".to_string()));
        let at_commit = configure_at("0424752fbbc3bb01469ec830a30f2bc035497cd4", &[]);
        assert!(at_commit.contains(&"-DLLAMA_BUILD_COMMIT=0424752fbbc3".to_string()));
        assert!(arguments.contains(&"-DGIT_EXE=OFF".to_string()), "git would name our commit");
        assert!(!arguments.iter().any(|argument| argument.contains("ESPALIER")));
    }

    #[test]
    fn a_build_gets_the_libraries_that_its_variant_asks_for() {
        let of_ours = |libraries: &[RustLibrary]| {
            let arguments = configure(libraries);
            let ours = arguments.iter().filter_map(|argument| argument.strip_prefix("-DESPALIER_"));
            ours.map(str::to_string).collect::<Vec<String>>()
        };
        let kernels = ["IDENTITY_DIR=/id", "KERNELS=/kernels/x.a", "KERNELS_INCLUDE=/kernels/include"];
        assert_eq!(of_ours(&[RustLibrary::Kernels]), kernels);
        let front = ["FRONT=/front/x.a", "FRONT_INCLUDE=/front/include"];
        assert_eq!(of_ours(&[RustLibrary::Kernels, RustLibrary::Front]), [&front[..], &kernels[..]].concat());
    }

    #[test]
    fn compilers_are_passed_with_their_launchers_and_arguments() {
        let arguments = configure(&[]);
        let compiler_arguments: Vec<&str> =
            arguments.iter().filter_map(|one| one.strip_prefix("-DCMAKE_C")).collect();
        let expected =
            ["XX_COMPILER=/c++", "XX_COMPILER_ARG1=-m64 '-DX=a b'", "XX_COMPILER_LAUNCHER=/ccache"];
        assert_eq!(compiler_arguments, [&expected[..], &["_COMPILER=/cc", "_COMPILER_LAUNCHER="]].concat());
    }

    #[test]
    fn the_identity_cannot_leave_its_string() {
        let header = identity_header("a\"b\\c\nd", "v1", "00");
        assert!(header.contains("ESPALIER_VARIANT \"a\\\"b\\\\cd\""), "{header}");
    }
}
