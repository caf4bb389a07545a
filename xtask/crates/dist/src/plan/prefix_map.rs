//! Source paths in compiled files. Compilers embed them in their output; prefix maps make them the same everywhere, so
//! that a build in another folder has the same bytes and hits the compiler cache.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use espalier_core::next_command::quoted_for_sh;

/// The replacement name of each folder in the programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixMap(Vec<(String, &'static str)>);

impl PrefixMap {
    /// Returns the map for a build of `tree` in `build`, in the project at `root`.
    #[must_use]
    pub fn new(root: &Path, tree: &Path, build: &Path) -> PrefixMap {
        let show = |path: &Path| path.display().to_string();
        // The last match wins, and all other folders are below the root. A compiler cache passes the compiler paths
        // relative to the build folder, its working directory.
        let mut map = vec![(show(root), "espalier"), (show(tree), TREE), (show(build), "build")];
        if let Some(path) = from(build, tree) {
            map.push((show(&path), TREE));
        }
        PrefixMap(map)
    }

    /// CMake cache entries for programs of the `build_type`; CMake appends its own flags for that type.
    #[must_use]
    pub fn cmake(&self, build_type: &str) -> BTreeMap<String, String> {
        let options: Vec<String> = self
            .0
            .iter()
            .map(|(from, to)| quoted_for_sh(&format!("-ffile-prefix-map={from}={to}")))
            .collect();
        let entry = |language: &str, value: String| {
            (format!("CMAKE_{language}_FLAGS_{}_INIT", build_type.to_uppercase()), value)
        };
        let cuda = options.iter().map(|option| format!("-Xcompiler={option}")).collect::<Vec<_>>();
        let own = LANGUAGES.iter().map(|language| entry(language, options.join(" ")));
        own.chain([entry("CUDA", cuda.join(" "))]).collect()
    }
}

/// Languages whose compilers support the option.
const LANGUAGES: [&str; 3] = ["C", "CXX", "HIP"];

const TREE: &str = "llama.cpp";

/// The relative path from one folder to another, if they share a folder other than the root.
fn from(here: &Path, there: &Path) -> Option<PathBuf> {
    let common = here.components().zip(there.components()).take_while(|(a, b)| a == b).count();
    let up = here.components().skip(common).map(|_| Path::new("..")).collect::<PathBuf>();
    (common > 1).then(|| up.join(there.components().skip(common).collect::<PathBuf>()))
}

/// `CARGO_ENCODED_RUSTFLAGS` for the same purpose; the user's `flags` come first.
#[must_use]
pub fn rust_flags(flags: &[String], cargo_home: &Path) -> String {
    let remap = format!("--remap-path-prefix={}=cargo", cargo_home.display());
    flags.iter().map(String::as_str).chain([remap.as_str()]).collect::<Vec<_>>().join("\u{1f}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_one_name_wherever_it_lies() {
        let map = PrefixMap::new(Path::new("/p"), Path::new("/p/t/trees/v"), Path::new("/p/t/build/v-f"));
        let expected = [
            ("/p", "espalier"),
            ("/p/t/trees/v", TREE),
            ("/p/t/build/v-f", "build"),
            ("../../trees/v", TREE),
        ];
        assert_eq!(map.0.iter().map(|(from, to)| (from.as_str(), *to)).collect::<Vec<_>>(), expected);
        let entries = map.cmake("Release");
        assert!(
            entries["CMAKE_C_FLAGS_RELEASE_INIT"].ends_with(" -ffile-prefix-map=../../trees/v=llama.cpp")
        );
        let cuda = &entries["CMAKE_CUDA_FLAGS_RELEASE_INIT"];
        assert!(cuda.starts_with("-Xcompiler=-ffile-prefix-map=/p=espalier -Xcompiler="), "{cuda}");
    }

    #[test]
    fn a_folder_may_have_blanks() {
        let map = PrefixMap::new(Path::new("/a b"), Path::new("/a b/t"), Path::new("/a b/b"));
        let entries = map.cmake("Release");
        assert!(entries["CMAKE_C_FLAGS_RELEASE_INIT"].starts_with("'-ffile-prefix-map=/a b=espalier' "));
    }

    #[test]
    fn flags_of_others_stay() {
        let flags = ["-C".to_string(), "debuginfo=1".to_string()];
        let all = rust_flags(&flags, Path::new("/h/.cargo"));
        assert_eq!(all, "-C\u{1f}debuginfo=1\u{1f}--remap-path-prefix=/h/.cargo=cargo");
    }
}
