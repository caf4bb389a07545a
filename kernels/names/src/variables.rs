//! The environment variables that our programs read. A misspelt one would silently have no effect.

use crate::nearest::nearest;

/// An environment variable.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Its reader.
    pub reader: Reader,
    /// Its name.
    pub name: &'static str,
    /// Its effect.
    pub purpose: &'static str,
}

/// The reader of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The programs of a package: it selects features.
    Server,
    /// `llama-server` and the programs with its common options: it is the variable of an option that upstream does not
    /// have.
    ServerOption,
    /// The same in the variant `front` only.
    FrontOption,
    /// The same by its former name, which is read for one release, with a warning.
    FormerOption,
    /// The kernels, also in their benchmarks.
    Kernels,
    /// A build of a package: CMake, or the build of the web page.
    Build,
    /// The tool.
    Tool,
    /// Our tests.
    Tests,
    /// Upstream's tests, with our plugin.
    UpstreamTests,
}

use Reader::{Build, FormerOption, FrontOption, Kernels, Server, ServerOption, Tests, Tool, UpstreamTests};

/// Every variable. No variable of an option that upstream has differs from one of these by two letters or fewer.
pub const KNOWN: &[Variable] = &[
    variable(Server, "ESPALIER_ENABLE", "features to switch on"),
    variable(Server, "ESPALIER_DISABLE", "features to switch off"),
    variable(Server, "ESPALIER_KV_EDGE_LAYERS", "layers at both ends whose V stays at q8_0"),
    variable(Server, "ESPALIER_KV_GATHER_CHECK", "--kv-gather: set hints for all backends, to check them"),
    variable(Server, "ESPALIER_KV_RECENT", "residual window: last tokens that are read in f16"),
    variable(Server, "ESPALIER_KV_SINKS", "attention sinks: first tokens that are read in f16"),
    variable(Server, "ESPALIER_KV_WINDOWS", "sliding windows that their layers have cells for"),
    variable(ServerOption, "LLAMA_ARG_ALLOW_PRIORITY", "requests may set a priority"),
    variable(ServerOption, "LLAMA_ARG_KV_EDGE_LAYERS", "layers at both ends whose V stays at q8_0"),
    variable(ServerOption, "LLAMA_ARG_KV_GATHER", "attention on a GPU reads only the cells of the step"),
    variable(ServerOption, "LLAMA_ARG_KV_PAGED", "paged KV cache"),
    variable(ServerOption, "LLAMA_ARG_KV_QUALITY", "types of the KV cache by name"),
    variable(ServerOption, "LLAMA_ARG_KV_RECENT", "residual window: last tokens that are read in f16"),
    variable(ServerOption, "LLAMA_ARG_KV_SINKS", "attention sinks: first tokens that are read in f16"),
    variable(ServerOption, "LLAMA_ARG_KV_SNAPSHOTS", "memory for snapshots of recurrent states"),
    variable(ServerOption, "LLAMA_ARG_MAX_QUEUED", "max queued requests"),
    variable(ServerOption, "LLAMA_ARG_PREFILL_BUDGET", "max prompt tokens per step beside decoding requests"),
    variable(ServerOption, "LLAMA_ARG_SHUTDOWN_TIMEOUT", "max time from a signal to the exit"),
    variable(FrontOption, "LLAMA_ARG_FRONT", "the transport in Rust"),
    variable(FrontOption, "LLAMA_ARG_FRONT_CLIENT_CA", "CAs of required client certificates"),
    variable(FrontOption, "LLAMA_ARG_FRONT_DRAIN", "time in which requests may finish after a signal"),
    variable(FrontOption, "LLAMA_ARG_FRONT_KEYS", "file of hashed API keys"),
    variable(FrontOption, "LLAMA_ARG_FRONT_LOG", "access log of the transport"),
    variable(FrontOption, "LLAMA_ARG_FRONT_REQUESTS", "max running and queued requests of the transport"),
    variable(FrontOption, "LLAMA_ARG_MAILBOX", "a result wakes only the thread that waits for it"),
    variable(FormerOption, "LLAMA_ALLOW_PRIORITY", "LLAMA_ARG_ALLOW_PRIORITY"),
    variable(FormerOption, "LLAMA_KV_PAGED", "LLAMA_ARG_KV_PAGED"),
    variable(FormerOption, "LLAMA_MAX_QUEUED", "LLAMA_ARG_MAX_QUEUED"),
    variable(FormerOption, "LLAMA_PREFILL_BUDGET", "LLAMA_ARG_PREFILL_BUDGET"),
    variable(Kernels, "ESPALIER_ISA", "the instruction set to use"),
    variable(Build, "ESPALIER_FRONT", "CMake: the library of the transport in Rust"),
    variable(Build, "ESPALIER_FRONT_INCLUDE", "CMake: the header of the transport in Rust"),
    variable(Build, "ESPALIER_IDENTITY_DIR", "CMake: the header that says which variant this is"),
    variable(Build, "ESPALIER_KERNELS", "CMake: the library of the kernels"),
    variable(Build, "ESPALIER_KERNELS_INCLUDE", "CMake: the header of the kernels"),
    variable(Build, "ESPALIER_PAGE_NOTICES", "the web page: its licences"),
    variable(Build, "ESPALIER_PAGE_VERSION", "the web page: its version"),
    variable(Build, "ESPALIER_REFERENCE", "CMake: a build for comparisons"),
    variable(Tool, "ESPALIER_CALLED_AS", "espalier-qa: the program that started it"),
    variable(Tests, "ESPALIER_CASES", "random cases to try"),
    variable(Tests, "ESPALIER_CODEBOOKS", "compute the tables of the KV cache types completely"),
    variable(Tests, "ESPALIER_HISTORIES", "histories to search for culprits"),
    variable(Tests, "ESPALIER_KILL_CALLS", "system calls to kill a run at"),
    variable(Tests, "ESPALIER_KILL_FACTOR", "factor of the number of kills of each test"),
    variable(Tests, "ESPALIER_LONG_HISTORY", "upstream commits over which memory is measured"),
    variable(Tests, "ESPALIER_MERGE_HISTORY", "a history to compare merges in"),
    variable(Tests, "ESPALIER_MERGE_PAIRS", "merges to compare"),
    variable(Tests, "ESPALIER_MERGE_TRIPLES", "merges to compare"),
    variable(Tests, "ESPALIER_ORACLE_MUTATIONS", "mutated patches to compare"),
    variable(Tests, "ESPALIER_OWN_MOVES", "variants to name in a move of this repository's pin"),
    variable(Tests, "ESPALIER_SERIES", "series to compare"),
    variable(UpstreamTests, "ESPALIER_SUITE_MODEL", "the tiny local model"),
    variable(UpstreamTests, "ESPALIER_SUITE_PART", "those of one part"),
    variable(UpstreamTests, "ESPALIER_SUITE_REPORT", "the file of the outcomes"),
    variable(UpstreamTests, "ESPALIER_SUITE_SETTLED", "the tests that are reported and not run"),
];

const fn variable(reader: Reader, name: &'static str, purpose: &'static str) -> Variable {
    Variable { reader, name, purpose }
}

impl Variable {
    /// Returns the option of the variable: `--kv-paged` for `LLAMA_ARG_KV_PAGED` and for its former name.
    pub fn option(&self) -> Option<String> {
        let prefix = match self.reader {
            ServerOption | FrontOption => "LLAMA_ARG_",
            FormerOption => "LLAMA_",
            _ => return None,
        };
        let words = self.name.strip_prefix(prefix)?;
        Some(format!("--{}", words.to_ascii_lowercase().replace('_', "-")))
    }
}

/// Returns the variables of a reader.
pub fn read_by(reader: Reader) -> impl Iterator<Item = &'static Variable> {
    KNOWN.iter().filter(move |known| known.reader == reader)
}

/// The common prefix of all but those of options.
const PREFIX: &str = "ESPALIER_";

/// Most letters to insert, delete, substitute or swap in a name that was meant to be another one.
const MAX_MISTAKES: usize = 2;

/// Returns a warning for each of `names`, the environment's variables, that resembles a known one and is none.
pub fn misspelt<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut warnings: Vec<String> = names.filter_map(warning).collect();
    warnings.sort();
    warnings
}

fn warning(name: &str) -> Option<String> {
    let upper = name.to_ascii_uppercase();
    if KNOWN.iter().any(|known| known.name == name) || is_of_a_service(&upper) {
        return None;
    }
    let meant = KNOWN.iter().filter(|known| known.reader != FormerOption).map(|known| known.name);
    let meant = nearest(&upper, meant).filter(|(distance, _)| *distance <= MAX_MISTAKES);
    let name = name.escape_debug();
    match meant {
        Some((_, meant)) => Some(format!("nothing reads the variable `{name}`; did you mean `{meant}`?")),
        None if upper.starts_with(PREFIX) => {
            let features: Vec<&str> = read_by(Server).chain(read_by(Kernels)).map(|one| one.name).collect();
            Some(format!("nothing reads the variable `{name}`; known are {}", features.join(", ")))
        }
        None => None,
    }
}

/// Kubernetes sets these for each service of the namespace, by the service's name.
fn is_of_a_service(upper: &str) -> bool {
    upper.contains("_SERVICE_") || upper.ends_with("_PORT") || upper.contains("_PORT_")
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test reads the files of this repository")]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

    #[test]
    fn a_misspelt_variable_is_named_with_the_one_that_was_meant() {
        for (name, meant) in [
            ("ESPALIER_ENABEL", "ESPALIER_ENABLE"),
            ("ESPALIER_ENABLED", "ESPALIER_ENABLE"),
            ("ESPALLIER_ENABLE", "ESPALIER_ENABLE"),
            ("espalier_enable", "ESPALIER_ENABLE"),
            ("ESPALIER_DISABLED", "ESPALIER_DISABLE"),
            ("ESPALLIER_KV_RECENTS", "ESPALIER_KV_RECENT"),
            ("LLAMA_ARG_KV_PAGD", "LLAMA_ARG_KV_PAGED"),
            ("LLAMA_ARG_KV_PAGE", "LLAMA_ARG_KV_PAGED"),
            ("LLAMA_ARG_KV_SNAPSHOT", "LLAMA_ARG_KV_SNAPSHOTS"),
            ("LLAMA_ARGS_MAX_QUEUED", "LLAMA_ARG_MAX_QUEUED"),
            ("LLAMA_ARG_SHUTDOWN_TIME_OUT", "LLAMA_ARG_SHUTDOWN_TIMEOUT"),
        ] {
            let expected = format!("nothing reads the variable `{name}`; did you mean `{meant}`?");
            assert_eq!(misspelt([name].into_iter()), [expected]);
        }
    }

    #[test]
    fn an_unknown_variable_with_our_prefix_is_named_with_those_that_exist() {
        let message = warning("ESPALIER_COMPLETELY_DIFFERENT").unwrap_or_default();
        assert!(
            message.contains("`ESPALIER_COMPLETELY_DIFFERENT`; known are ESPALIER_ENABLE, "),
            "{message}"
        );
        assert!(message.ends_with(", ESPALIER_ISA"), "{message}");
        assert!(
            warning("ESPALIER_THREADS").is_some_and(|message| message.contains("known are ESPALIER_ENABLE"))
        );
        assert!(warning("ESPALIER_\u{1b}[0m").is_some_and(|message| !message.contains('\u{1b}')));
    }

    #[test]
    fn known_variables_and_those_of_others_are_not_named() {
        let of_upstream =
            ["LLAMA_ARG_KV_OFFLOAD", "LLAMA_ARG_KV_UNIFIED", "LLAMA_ARG_TIMEOUT", "LLAMA_ARG_MODEL"];
        let of_others =
            ["PATH", "HOME", "CARGO", "ESPEAK_ENABLE", "ESPALIER_SERVICE_HOST", "ESPALIER_PORT_80_TCP"];
        for name in KNOWN.iter().map(|known| known.name).chain(of_upstream).chain(of_others) {
            assert_eq!(warning(name), None, "{name}");
        }
    }

    #[test]
    fn each_variable_is_known_once_and_a_former_name_belongs_to_an_option() {
        for (number, known) in KNOWN.iter().enumerate() {
            assert!(KNOWN[..number].iter().all(|before| before.name != known.name), "{}", known.name);
            let is_of_option = matches!(known.reader, ServerOption | FrontOption | FormerOption);
            assert_eq!(known.option().is_some(), is_of_option, "{}", known.name);
            assert_eq!(known.name.starts_with(PREFIX), !is_of_option, "{}", known.name);
        }
        let options: Vec<_> = read_by(ServerOption).filter_map(Variable::option).collect();
        assert!(options.contains(&"--kv-paged".to_string()), "{options:?}");
        for former in read_by(FormerOption) {
            assert!(former.option().is_some_and(|option| options.contains(&option)), "{}", former.name);
        }
    }

    /// A variable that the sources read but this list lacks would be reported as misspelt.
    #[test]
    fn every_variable_that_is_read_is_known() {
        let mut missing = Vec::new();
        for folder in ["xtask", "kernels", "front", "series", "health", "overlay"] {
            for file in files_below(&Path::new(ROOT).join(folder)) {
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
                    let is_known = name == PREFIX || KNOWN.iter().any(|known| known.name == name);
                    if name.starts_with(PREFIX) && is_name && !is_known {
                        missing.push(format!("{name} in {}", file.display()));
                    }
                }
            }
        }
        assert_eq!(missing, [""; 0]);
    }

    /// An option that a patch adds, and this list lacks, would not be removed from the environment of a server that is
    /// compared with another one, and no promise would check its variable.
    #[test]
    fn every_option_that_a_patch_adds_is_known() {
        let mut found = Vec::new();
        for file in files_below(&Path::new(ROOT).join("patches")) {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            let added = text.lines().filter(|line| line.starts_with('+'));
            let names = added.flat_map(|line| line.split(".set_env(\"").skip(1));
            found.extend(names.filter_map(|rest| Some(rest.split_once('"')?.0.to_string())));
        }
        found.sort();
        found.dedup();
        let known = read_by(ServerOption).chain(read_by(FrontOption));
        let mut known: Vec<&str> = known.map(|one| one.name).collect();
        known.sort_unstable();
        assert_eq!(found, known);
    }

    fn files_below(folder: &Path) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
    }
}
