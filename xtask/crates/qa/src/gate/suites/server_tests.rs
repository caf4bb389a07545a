//! Upstream's server tests, with the packaged server of a variant and the local model.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::owned;
use espalier_core::sys::machine::process::{self, Run};
use espalier_core::sys::net::server::without_user_config;
use serde_json::json;

use super::Suite;
use super::outcome::{self, Outcomes};
use crate::gate::suites::declared::ServerTests;
use crate::serving::switches::{PAGED, without_features};

/// The server tests with one server.
pub struct ServerSuite<'a> {
    /// The selected tests.
    pub tests: &'a ServerTests,
    /// Source tree with the tests.
    pub tree: PathBuf,
    /// The server executable.
    pub server: PathBuf,
    /// Whether its KV cache is paged.
    pub paged: bool,
    /// Folders of our plugin and of the packages that the tests import.
    pub python_path: [PathBuf; 2],
    /// Working folder, which also receives their output.
    pub work: PathBuf,
    /// The tiny trained model.
    pub model: PathBuf,
}

/// Timeout of the whole run, which takes some minutes on two cores; each test has a timeout of its own.
const LIMIT: Duration = Duration::from_secs(60 * 60);

/// Proxy settings that point to a closed port: any download by a test is refused at once, with or without a network.
/// Python checks the lower-case names first.
const PROXIES: [(&str, &str); 6] = [
    ("http_proxy", "http://127.0.0.1:9"),
    ("https_proxy", "http://127.0.0.1:9"),
    ("no_proxy", "127.0.0.1,localhost"),
    ("HTTP_PROXY", "http://127.0.0.1:9"),
    ("HTTPS_PROXY", "http://127.0.0.1:9"),
    ("NO_PROXY", "127.0.0.1,localhost"),
];

/// Number of parts in which the tests of one server are run, each by a pytest of its own, which collects all tests in a
/// second or two.
pub const PARTS: usize = 6;

/// Variable with the part, as `1/4`: the plugin selects its files.
const PART: &str = "ESPALIER_SUITE_PART";

/// Variable with the path of the names of tests that are reported and not run, as a list in JSON.
const SETTLED: &str = "ESPALIER_SUITE_SETTLED";

impl Suite for ServerSuite<'_> {
    fn alone(&self, test: &str) -> Result<Outcomes> {
        self.run(&[test.to_string()], &self.work.join("alone"), None, &BTreeSet::new())
    }
}

impl ServerSuite<'_> {
    /// Runs the tests of one of [`PARTS`] parts, counted from 0, but for those that are `settled`.
    pub fn part(&self, part: usize, settled: &BTreeSet<String>) -> Result<Outcomes> {
        let number = part + 1;
        let work = self.work.join(format!("part-{number}"));
        self.run(&self.tests.run, &work, Some(format!("{number}/{PARTS}")), settled)
    }

    fn run(
        &self,
        tests: &[String],
        work: &Path,
        part: Option<String>,
        settled: &BTreeSet<String>,
    ) -> Result<Outcomes> {
        // As deep as upstream's test folder: the tests name files relative to it.
        let folder = work.join("tools/server/tests");
        owned::remove_folder(work)?;
        disk::create_folder(&folder.join("tmp"))?;
        let (report, names) = (work.join("report.jsonl"), work.join("settled.json"));
        disk::write_atomically(&names, json!(settled).to_string().as_bytes())?;
        let run = self.environment(self.pytest(tests), work, &report)?.current_folder(&folder);
        let run = match part {
            Some(part) => run.env(PART, part),
            None => run.without_env(PART),
        }
        .env(SETTLED, &names);
        let words = run.words();
        let ended = run.finish_within(LIMIT)?;
        disk::write_atomically(&work.join("pytest.log"), ended.output.as_bytes())?;
        // pytest exits with 1 if tests failed and with 5 if none was collected; both are for the comparison to judge.
        match ended.status.and_then(|status| status.code()) {
            Some(0 | 1 | 5) => outcome::read_server_tests(&read_report(&report)?),
            _ => Err(process::failed_so(&words, &ended.how(), &ended.output)),
        }
    }

    fn pytest(&self, tests: &[String]) -> Run {
        let folder = self.tree.join("tools/server/tests");
        Run::new("python3")
            .args(["-m", "pytest", "-p", "local_model", "-p", "no:cacheprovider", "-q", "--tb=short"])
            .args(["-m", "not slow", "--timeout", &self.tests.seconds.to_string()])
            .args([Path::new("-c"), &folder.join("pytest.ini"), Path::new("--rootdir"), &folder])
            .args(tests.iter().map(|test| folder.join(test)))
    }

    fn environment(&self, run: Run, work: &Path, report: &Path) -> Result<Run> {
        let path = std::env::join_paths(&self.python_path).map_err(|error| {
            Error::usage("this folder's path cannot be given to Python").detail(error.to_string())
        })?;
        let run = ["PYTEST_ADDOPTS", "PYTEST_PLUGINS", "SLOW_TESTS"]
            .iter()
            .fold(without_features(run), |run, name| run.without_env(name));
        let run = if self.paged { run.env(PAGED, "1") } else { run };
        let run = PROXIES.iter().fold(run, |run, (name, proxy)| run.env(name, proxy));
        Ok(without_user_config(run)
            .env("PYTHONPATH", path)
            .env("PYTHONNOUSERSITE", "1")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            // With a model this small two threads mostly wait for each other.
            .env("LLAMA_ARG_THREADS", "1")
            .env("LLAMA_CACHE", work.join("cache"))
            .env("LLAMA_SERVER_BIN_PATH", &self.server)
            .env("ESPALIER_SUITE_MODEL", &self.model)
            .env("ESPALIER_SUITE_REPORT", report))
    }
}

/// Reads the report; empty if there is none because no test was collected.
fn read_report(path: &Path) -> Result<String> {
    Ok(espalier_series::lossy(&disk::read_if_there(path)?.unwrap_or_default()).into_owned())
}
