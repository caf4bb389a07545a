//! Environment variables that nothing reads because their name is misspelt: the option would silently keep its default.

use crate::report;

/// The common prefix of our variables.
const PREFIX: &str = "ESPALIER_";

/// Variables with that prefix that this program reads.
const OURS: [&str; 6] = [
    "ESPALIER_ENABLE",
    "ESPALIER_DISABLE",
    "ESPALIER_ISA",
    "ESPALIER_KV_EDGE_LAYERS",
    "ESPALIER_KV_RECENT",
    "ESPALIER_KV_SINKS",
];

/// Variables with that prefix that the build tool, its tests or upstream's tests read: who starts the server from
/// there has not misspelt anything.
const OF_THE_TOOL: [&str; 22] = [
    "ESPALIER_CALLED_AS",
    "ESPALIER_CASES",
    "ESPALIER_CODEBOOKS",
    "ESPALIER_HISTORIES",
    "ESPALIER_IDENTITY_DIR",
    "ESPALIER_KERNELS",
    "ESPALIER_KERNELS_INCLUDE",
    "ESPALIER_KILL_CALLS",
    "ESPALIER_KILL_FACTOR",
    "ESPALIER_LONG_HISTORY",
    "ESPALIER_MERGE_HISTORY",
    "ESPALIER_MERGE_PAIRS",
    "ESPALIER_MERGE_TRIPLES",
    "ESPALIER_ORACLE_MUTATIONS",
    "ESPALIER_OWN_MOVES",
    "ESPALIER_PAGE_NOTICES",
    "ESPALIER_PAGE_VERSION",
    "ESPALIER_REFERENCE",
    "ESPALIER_SERIES",
    "ESPALIER_SUITE_MODEL",
    "ESPALIER_SUITE_PART",
    "ESPALIER_SUITE_REPORT",
];

/// Variables of the options that upstream does not have. No variable of an upstream option is within
/// [`MOST_MISTAKES`] of one of these.
const OPTIONS: [&str; 10] = [
    "LLAMA_ARG_ALLOW_PRIORITY",
    "LLAMA_ARG_KV_EDGE_LAYERS",
    "LLAMA_ARG_KV_PAGED",
    "LLAMA_ARG_KV_QUALITY",
    "LLAMA_ARG_KV_RECENT",
    "LLAMA_ARG_KV_SINKS",
    "LLAMA_ARG_KV_SNAPSHOTS",
    "LLAMA_ARG_MAX_QUEUED",
    "LLAMA_ARG_PREFILL_BUDGET",
    "LLAMA_ARG_SHUTDOWN_TIMEOUT",
];

/// Most letters to insert, delete or replace in a name that was meant to be another one.
const MOST_MISTAKES: usize = 2;

/// Writes a warning to stderr for each variable of the environment that resembles one that this program reads, and is none.
pub fn warn_of_misspelt() {
    let mut names: Vec<String> =
        std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    names.sort();
    for warning in names.iter().filter_map(|name| warning(name)) {
        report::line_to_stderr(&warning);
    }
}

fn warning(name: &str) -> Option<String> {
    let known = || OURS.iter().chain(&OF_THE_TOOL).chain(&OPTIONS);
    let upper = name.to_ascii_uppercase();
    if known().any(|known| *known == name) || is_of_a_service(&upper) {
        return None;
    }
    let meant = OURS.iter().chain(&OPTIONS).find(|known| distance(&upper, known) <= MOST_MISTAKES);
    let name = name.escape_debug();
    match meant {
        Some(meant) => Some(format!("warning: nothing reads the variable `{name}`; did you mean `{meant}`?")),
        None if upper.starts_with(PREFIX) => {
            Some(format!("warning: nothing reads the variable `{name}`; known are {}", OURS.join(", ")))
        }
        None => None,
    }
}

/// Kubernetes sets these for each service of the namespace, by the service's name.
fn is_of_a_service(upper: &str) -> bool {
    upper.contains("_SERVICE_") || upper.ends_with("_PORT") || upper.contains("_PORT_")
}

/// Edit distance: the number of letters to insert, delete or replace.
fn distance(left: &str, right: &str) -> usize {
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (row, a) in left.bytes().enumerate() {
        let mut line = vec![row + 1];
        for (column, b) in right.bytes().enumerate() {
            let changed = above[column] + usize::from(a != b);
            line.push(changed.min(above[column + 1] + 1).min(line[column] + 1));
        }
        above = line;
    }
    above[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_variable_is_named_with_the_one_that_was_meant() {
        for (name, meant) in [
            ("ESPALIER_ENABEL", "ESPALIER_ENABLE"),
            ("espalier_enable", "ESPALIER_ENABLE"),
            ("ESPALLIER_KV_RECENTS", "ESPALIER_KV_RECENT"),
            ("LLAMA_ARG_KV_PAGD", "LLAMA_ARG_KV_PAGED"),
            ("LLAMA_ARG_KV_PAGE", "LLAMA_ARG_KV_PAGED"),
            ("LLAMA_ARG_KV_SNAPSHOT", "LLAMA_ARG_KV_SNAPSHOTS"),
            ("LLAMA_ARGS_MAX_QUEUED", "LLAMA_ARG_MAX_QUEUED"),
            ("LLAMA_ARG_SHUTDOWN_TIME_OUT", "LLAMA_ARG_SHUTDOWN_TIMEOUT"),
        ] {
            let said = warning(name).unwrap_or_default();
            assert_eq!(
                said,
                format!("warning: nothing reads the variable `{name}`; did you mean `{meant}`?")
            );
        }
    }

    #[test]
    fn an_unknown_variable_with_our_prefix_is_named_with_those_that_exist() {
        let said = warning("ESPALIER_THREADS").unwrap_or_default();
        assert!(said.contains("`ESPALIER_THREADS`; known are ESPALIER_ENABLE, "), "{said}");
        assert!(warning("ESPALIER_\u{1b}[0m").is_some_and(|said| !said.contains('\u{1b}')));
    }

    #[test]
    fn known_variables_and_those_of_others_are_not_named() {
        let known = OURS.iter().chain(&OF_THE_TOOL).chain(&OPTIONS).copied();
        // Old names of options, which are still read, and variables of upstream options.
        let others = ["LLAMA_KV_PAGED", "LLAMA_MAX_QUEUED", "LLAMA_ARG_KV_OFFLOAD", "LLAMA_ARG_KV_UNIFIED"];
        for name in known.chain(others).chain(["PATH", "HOME", "LLAMA_ARG_TIMEOUT", "ESPALIER_SERVICE_HOST"])
        {
            assert_eq!(warning(name), None, "{name}");
        }
    }

    #[test]
    fn a_distance_counts_single_letters() {
        assert_eq!((distance("abc", "abc"), distance("abc", "axc"), distance("", "ab")), (0, 1, 2));
        assert_eq!((distance("abc", "acb"), distance("abcd", "abd")), (2, 1));
    }
}
