//! A server binary under test: the packaged one, and before it another one if `--program` names it.

use std::path::{Path, PathBuf};

use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::net::server::{self, Server};
use serde::Serialize;

use crate::serving::bench_fixture::BenchFixture;
use crate::serving::test_server::TestServer;

/// A binary, and the tree that it is built from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Binary {
    /// Name in tables.
    pub(super) name: &'static str,
    #[serde(skip)]
    pub(super) program: PathBuf,
    /// Tree that the binary reports.
    pub(super) tree: String,
}

/// Arguments of every server. It logs warnings only: several lines per request would fill the disk.
const ARGUMENTS: [&str; 4] = ["--cache-ram", "0", "-lv", "2"];

impl Binary {
    /// Returns the packaged server, preceded by `before` if given.
    pub(super) fn all(fixture: &BenchFixture<'_>, before: Option<&Path>) -> Result<Vec<Binary>> {
        let now = Binary::find("now", &fixture.program(TestServer::Paged))?;
        let before = before.map(|program| Binary::find("before", program)).transpose()?;
        Ok(before.into_iter().chain([now]).collect())
    }

    fn find(name: &'static str, program: &Path) -> Result<Binary> {
        let shown = program.display();
        let wrong = |what: &str| {
            Error::usage(format!("`{shown}` {what}")).hint(
                "`--program` has to be the llama-server of a package: DIST/paged-cpu-native/bin/llama-server",
            )
        };
        if !disk::is_program(program) {
            return Err(wrong("is not a program"));
        }
        let flag = TestServer::Paged.needed_flag().unwrap_or_default();
        if !server::help_of(program)?.contains(flag) {
            return Err(wrong(&format!("does not know `{flag}`")));
        }
        let tree = tree_of(&server::version_of(program)?);
        Ok(Binary { name, program: program.to_path_buf(), tree })
    }

    /// Starts a fresh paged server of this binary.
    pub(super) fn server(
        &self,
        fixture: &BenchFixture<'_>,
        model: &Path,
        slots: usize,
        cells: usize,
        more: &[&str],
    ) -> Result<Server> {
        let cells = cells.to_string();
        let mut arguments = TestServer::Paged.arguments(slots);
        let rest = ["--ctx-size", &cells].into_iter().chain(ARGUMENTS).chain(more.iter().copied());
        arguments.extend(rest.map(String::from));
        fixture.server_of(&self.program, &format!("fairness-{}", self.name), model, &arguments)
    }
}

/// Returns the tree in the output of `--version`; an empty string if the binary does not report one.
fn tree_of(version: &str) -> String {
    let mut lines = version.lines().filter(|line| line.starts_with("espalier:"));
    lines
        .find_map(|line| line.split_once("tree "))
        .map(|(_, tree)| tree.trim().to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_says_its_tree() {
        let version = "version: 0.5.0\nespalier: variant paged, pin v1, tree 462273e\nespalier: enabled features: none\n";
        assert_eq!(tree_of(version), "462273e");
        assert_eq!(tree_of("version: 0.5.0\n"), "");
    }

    #[test]
    fn a_file_that_is_not_a_program_is_named() {
        let error = Binary::find("before", Path::new("no-such-server")).unwrap_err();
        assert!(error.what.contains("`no-such-server` is not a program"), "{error}");
    }
}
