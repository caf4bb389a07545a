//! Upstream's tests of the server, on the packaged server of a variant and the local model.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Suite;
use super::outcome::{self, Outcomes};
use crate::error::{Error, Result};
use crate::plan::suites::ServerTests;
use crate::serving::switches::{PAGED, without_features};
use crate::sys::machine::disk;
use crate::sys::machine::ours;
use crate::sys::machine::process::{self, Run};

/// The tests with one server.
pub struct ServerSuite<'a> {
    /// Which.
    pub tests: &'a ServerTests,
    /// The tree that has them.
    pub tree: PathBuf,
    /// The server.
    pub server: PathBuf,
    /// Whether its KV cache is paged.
    pub paged: bool,
    /// The folders of our plugin and of the packages that the tests import.
    pub python_path: [PathBuf; 2],
    /// Where they run and leave what they write.
    pub work: PathBuf,
    /// The tiny trained model.
    pub model: PathBuf,
}

/// Some minutes on two cores; each test has a limit of its own.
const LIMIT: Duration = Duration::from_secs(60 * 60);

/// Nobody listens there: what a test would fetch is refused at once, with a network or without. Python looks at the
/// names in small letters first.
const PROXIES: [(&str, &str); 6] = [
    ("http_proxy", "http://127.0.0.1:9"),
    ("https_proxy", "http://127.0.0.1:9"),
    ("no_proxy", "127.0.0.1,localhost"),
    ("HTTP_PROXY", "http://127.0.0.1:9"),
    ("HTTPS_PROXY", "http://127.0.0.1:9"),
    ("NO_PROXY", "127.0.0.1,localhost"),
];

impl Suite for ServerSuite<'_> {
    fn all(&self) -> Result<Outcomes> {
        self.run(&self.tests.run, &self.work.join("all"))
    }

    fn alone(&self, test: &str) -> Result<Outcomes> {
        self.run(&[test.to_string()], &self.work.join("alone"))
    }
}

impl ServerSuite<'_> {
    fn run(&self, tests: &[String], work: &Path) -> Result<Outcomes> {
        // As deep as upstream's folder of tests: they name files relative to it.
        let folder = work.join("tools/server/tests");
        ours::remove_folder(work)?;
        disk::create_folder(&folder.join("tmp"))?;
        let report = work.join("report.jsonl");
        let run = self.environment(self.pytest(tests), &report)?.current_folder(&folder);
        let words = run.words();
        let ended = run.finish_within(LIMIT)?;
        disk::write_atomically(&work.join("pytest.log"), ended.said.as_bytes())?;
        // 1 says that tests failed, and 5 that none was there, which is for the comparison.
        match ended.status.and_then(|status| status.code()) {
            Some(0 | 1 | 5) => outcome::read_server_tests(&read_report(&report)?),
            _ => Err(process::failed_so(&words, &ended.how(), &ended.said)),
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

    fn environment(&self, run: Run, report: &Path) -> Result<Run> {
        let path = std::env::join_paths(&self.python_path).map_err(|error| {
            Error::usage("this folder's path cannot be given to Python").detail(error.to_string())
        })?;
        let run = ["PYTEST_ADDOPTS", "PYTEST_PLUGINS", "SLOW_TESTS"]
            .iter()
            .fold(without_features(run), |run, name| run.without_env(name));
        let run = if self.paged { run.env(PAGED, "1") } else { run };
        let run = PROXIES.iter().fold(run, |run, (name, proxy)| run.env(name, proxy));
        Ok(run
            .env("PYTHONPATH", path)
            .env("PYTHONNOUSERSITE", "1")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            // Two threads of a model this small mostly wait for each other.
            .env("LLAMA_ARG_THREADS", "1")
            .env("LLAMA_CACHE", self.work.join("cache"))
            .env("LLAMA_SERVER_BIN_PATH", &self.server)
            .env("ESPALIER_SUITE_MODEL", &self.model)
            .env("ESPALIER_SUITE_REPORT", report))
    }
}

/// There is none when no test was there.
fn read_report(path: &Path) -> Result<String> {
    Ok(crate::series::lossy(&disk::read_if_there(path)?.unwrap_or_default()).into_owned())
}
