//! Environment variables that this tool or its server reads. A misspelt one is silently ignored, and the default
//! applies.

use crate::nearest::nearest;

/// The common prefix.
const PREFIX: &str = "ESPALIER_";

/// Every known variable, with its reader and purpose.
pub const KNOWN: [(&str, &str); 28] = [
    ("ESPALIER_CALLED_AS", "espalier-qa: the program that started it"),
    ("ESPALIER_ENABLE", "the server: features to switch on"),
    ("ESPALIER_DISABLE", "the server: features to switch off"),
    ("ESPALIER_ISA", "the kernels: the instruction set to use"),
    ("ESPALIER_KV_EDGE_LAYERS", "the server: layers at both ends whose V stays at q8_0"),
    ("ESPALIER_KV_RECENT", "the server: newest tokens that stay in f16"),
    ("ESPALIER_KV_SINKS", "the server: first tokens that stay in f16"),
    ("ESPALIER_KERNELS", "CMake: the library of the kernels"),
    ("ESPALIER_KERNELS_INCLUDE", "CMake: the header of the kernels"),
    ("ESPALIER_IDENTITY_DIR", "CMake: the header that says which variant this is"),
    ("ESPALIER_REFERENCE", "CMake: a build for comparisons"),
    ("ESPALIER_PAGE_NOTICES", "the build of the web page"),
    ("ESPALIER_PAGE_VERSION", "the build of the web page"),
    ("ESPALIER_SUITE_MODEL", "upstream's tests"),
    ("ESPALIER_SUITE_PART", "upstream's tests: those of one part"),
    ("ESPALIER_SUITE_REPORT", "upstream's tests"),
    ("ESPALIER_CASES", "tests: random cases to try"),
    ("ESPALIER_CODEBOOKS", "tests: compute the tables of the KV cache types completely"),
    ("ESPALIER_KILL_FACTOR", "tests: factor of the number of kills of each test"),
    ("ESPALIER_KILL_CALLS", "tests: system calls to kill a run at"),
    ("ESPALIER_MERGE_HISTORY", "tests: a history to compare merges in"),
    ("ESPALIER_MERGE_PAIRS", "tests: merges to compare"),
    ("ESPALIER_HISTORIES", "tests: histories to search for culprits"),
    ("ESPALIER_LONG_HISTORY", "tests: upstream commits over which memory is measured"),
    ("ESPALIER_SERIES", "tests: series to compare"),
    ("ESPALIER_MERGE_TRIPLES", "tests: merges to compare"),
    ("ESPALIER_ORACLE_MUTATIONS", "tests: mutated patches to compare"),
    ("ESPALIER_OWN_MOVES", "tests: variants to name in a move of this repository's pin"),
];

/// Returns a warning for each of `names`, the environment's variables, that resembles a known variable but is not one.
pub fn misspelt<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut warnings: Vec<String> = names.filter_map(warning).collect();
    warnings.sort();
    warnings
}

fn warning(name: &str) -> Option<String> {
    if KNOWN.iter().any(|(known, _)| *known == name) {
        return None;
    }
    let upper = name.to_ascii_uppercase();
    let (distance, nearest) = nearest(&upper, KNOWN.iter().map(|(known, _)| *known))?;
    let is_ours = upper.starts_with(PREFIX);
    // Another program's variable may resemble our own; up to two edits count as a typo.
    if !is_ours && distance > 2 {
        return None;
    }
    let hint = match distance <= upper.len() / 3 {
        true => format!("did you mean `{nearest}`?"),
        false => format!("known are `{}` and others, see docs", KNOWN[0].0),
    };
    Some(format!("nothing reads the variable `{}`; {hint}", name.escape_debug()))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test reads the files of this repository")]
mod tests {
    use super::{KNOWN, misspelt};

    #[test]
    fn a_misspelt_variable_is_named_with_the_nearest() {
        let said = |name: &str| misspelt([name].into_iter()).join("");
        for (name, nearest) in [
            ("ESPALIER_ENABEL", "ESPALIER_ENABLE"),
            ("ESPALIER_ENABLED", "ESPALIER_ENABLE"),
            ("ESPALLIER_ENABLE", "ESPALIER_ENABLE"),
            ("espalier_enable", "ESPALIER_ENABLE"),
            ("ESPALIER_DISABLED", "ESPALIER_DISABLE"),
            ("ESPALIER_KV_RECENTS", "ESPALIER_KV_RECENT"),
        ] {
            assert_eq!(said(name), format!("nothing reads the variable `{name}`; did you mean `{nearest}`?"));
        }
        assert!(said("ESPALIER_COMPLETELY_DIFFERENT").contains("known are"));
        for (name, _) in KNOWN {
            assert_eq!(said(name), "");
        }
        for other in ["PATH", "HOME", "CARGO", "ESPEAK_ENABLE", "LLAMA_ARG_MODEL"] {
            assert_eq!(said(other), "");
        }
    }

    /// A variable that the sources read but this list lacks would be reported as misspelt.
    #[test]
    fn every_variable_that_is_read_is_known() {
        let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."));
        let mut missing = Vec::new();
        for folder in ["xtask", "kernels", "series", "health", "overlay"] {
            for file in sources(&root.join(folder)) {
                // Misspelt on purpose.
                if ["variables.rs", "no_flavors.rs", "configured.rs"].iter().any(|name| file.ends_with(name))
                {
                    continue;
                }
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                // String literals that consist of one name: code that reads the variable, or sets it for a program that
                // does.
                for name in text.split('"').skip(1) {
                    let is_name = name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
                    let is_known = name == super::PREFIX || KNOWN.iter().any(|(known, _)| *known == name);
                    if name.starts_with(super::PREFIX) && is_name && !is_known {
                        missing.push(format!("{name} in {}", file.display()));
                    }
                }
            }
        }
        assert_eq!(missing, [""; 0]);
    }

    /// The server warns of unknown variables as well, by a list of its own.
    #[test]
    fn the_server_knows_the_same_variables() {
        let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."));
        let text = std::fs::read_to_string(root.join("kernels/src/variables.rs")).unwrap();
        let names = KNOWN.iter().map(|(name, _)| *name);
        let missing: Vec<&str> = names.filter(|name| !text.contains(&format!("    \"{name}\",\n"))).collect();
        assert_eq!(missing, [""; 0]);
    }

    fn sources(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
    }
}
