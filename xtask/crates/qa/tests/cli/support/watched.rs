//! An upstream with newer commits, and the canary that watches it.

use std::path::PathBuf;
use std::process::Command;

use super::github::{FakeGitHub, REPOSITORY};
use super::moving::greet;
use super::upstream::Upstream;
use super::{Output, Project, files, git, program_path};

/// The token in the environment of the canary.
pub const TOKEN: &str = "ghs_verySecretToken0123456789";

/// A project, and an upstream with newer commits.
pub struct Watched {
    pub project: Project,
    pub upstream: PathBuf,
    pub server: FakeGitHub,
}

/// Creates the usual project, and a copy of its upstream to change.
pub fn watched() -> Watched {
    let project = Project::new();
    let upstream = project.beside("moved");
    files::copy_folder(&Upstream::shared().repository(), &upstream);
    Watched { project, upstream, server: FakeGitHub::start() }
}

impl Watched {
    /// Commits a change of one file upstream.
    pub fn upstream_does(&self, message: &str, file: &str, from: &str, to: &str) {
        files::edit(&self.upstream.join(file), from, to);
        git::commit(&self.upstream, message);
    }

    /// Lets upstream change the lines that the first patch changes.
    pub fn greeting_goes(&self) {
        self.upstream_does("Say hi, fixes #1 @octocat", "src/greet.c", "return \"hello\";", "return \"hi\";");
    }

    /// Reverts that change.
    pub fn greeting_is_back(&self) {
        self.upstream_does("Say hello again", "src/greet.c", "return \"hi\";", "return \"hello\";");
    }

    /// Returns the command `canary`, with the token and the fake GitHub.
    pub fn command(&self, more: &[&str]) -> Command {
        let from = self.upstream.display().to_string();
        let arguments = ["canary", "--from", &from];
        let path = program_path::with_build_tools();
        let mut command = self.project.command_with_path(&[&arguments, more].concat(), &path);
        command.env("GITHUB_TOKEN", TOKEN).env("GITHUB_REPOSITORY", REPOSITORY);
        command.env("GITHUB_API_URL", self.server.api());
        command
    }

    /// Runs it.
    pub fn run(&self, more: &[&str]) -> Output {
        self.project.finish(self.command(more))
    }

    /// Moves the project to upstream's tip, with the conflicts of the greeting resolved.
    pub fn fix_series(&self) {
        let from = self.upstream.display().to_string();
        self.project.run(&["rebase", "--to", "main", "--from", &from]).code(4);
        let work = self.project.path("target/espalier/rebase/hello/work");
        for (words, code) in [("hi there", 4), ("hi there, dear", 0)] {
            files::write(&work.join("src/greet.c"), greet(words));
            git::git(&work, &["add", "src/greet.c"]);
            self.project.run(&["rebase", "--continue"]).code(code);
        }
    }

    /// Runs up to the level `status` and updates the issues.
    pub fn keep_issues(&self) -> Output {
        self.run(&["--quiet", "--until", "status", "--github"])
    }

    /// Returns the titles of the issues in `state`.
    pub fn titles(&self, state: &str) -> Vec<String> {
        let issues = self.server.issues();
        let wanted = issues.iter().filter(|issue| issue["state"] == state);
        wanted.map(|issue| issue["title"].as_str().unwrap().to_string()).collect()
    }

    /// Returns the id of the newest commit upstream.
    pub fn tip(&self) -> String {
        git::git(&self.upstream, &["rev-parse", "HEAD"])
    }
}
