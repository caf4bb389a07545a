//! SIGKILL at random points of `rebase`, of its start and of `--continue`.

use std::process::Command;
use std::time::Duration;

use super::support::kill::{self, Kills};
use super::support::moving::{Move, TIP, greet, upstream_greets_otherwise};
use super::support::random::XorShift;

/// Number of rebases, each killed at its start, in the middle and at its end.
const ROUNDS: usize = 13;

/// A rebase that is killed at any point is completed or discarded entirely by the next commands.
#[test]
fn killed_at_any_point_nothing_is_lost() {
    let moving = Move::new(upstream_greets_otherwise);
    moving.project.run(&["lock"]).success();
    let start = moving.committed();
    let first = ["--to", TIP, "--from", moving.upstream.to_str().unwrap()];
    let mut random = XorShift::new(0x0dd_ba11);
    let long = Duration::from_secs(60);
    let whole_start = kill::run_and_kill(moving.command(&first), long);
    moving.solve_and_stage();
    moving.solve_the_rest();
    let whole_end = kill::run_and_kill(moving.command(&["--continue"]), long);
    moving.assert_moved();
    let mut kills = Kills::of("rebase");
    for _ in 0..kill::points(ROUNDS) {
        moving.put_back(&start);
        kills.run(moving.command(&first), whole_start.mul_f64(random.fraction()));
        kills.left(if moving.work().exists() { "stopped at the conflict" } else { "not begun" });
        if !moving.work().exists() {
            moving.assert_project_is(&start, "killed before the conflict");
            moving.rebase(&[]).code(4);
        }
        // A partially shown conflict is shown again.
        moving.run(&["--continue"]).code(4);
        moving.solve_and_stage();
        kills.run(moving.command(&["--continue"]), whole_end.mul_f64(random.fraction()));
        moving.solve_the_rest();
        kills.run(moving.command(&["--continue"]), whole_end.mul_f64(random.fraction()));
        kills.left(moving.finish(&start));
    }
}

impl Move {
    fn command(&self, arguments: &[&str]) -> Command {
        self.project.command(&[&["rebase"], arguments].concat())
    }

    fn solve_and_stage(&self) {
        self.solve(greet("hi there"));
    }

    /// Continues to the second conflict, and resolves it.
    fn solve_the_rest(&self) {
        self.run(&["--continue"]).code(4);
        self.solve(greet("hi there, dear"));
    }

    /// Restores the project as at the start, without a rebase.
    fn put_back(&self, start: &[(String, String)]) {
        std::fs::remove_dir_all(self.project.path("patches")).unwrap();
        for (path, text) in start {
            self.project.write(path, text);
        }
        std::fs::remove_dir_all(self.project.path("target/espalier/rebase")).unwrap_or_default();
    }

    /// Runs a command first, since any command completes a decided change.
    #[track_caller]
    fn assert_project_is(&self, expected: &[(String, String)], context: &str) {
        self.project.run(&["lint"]);
        assert!(self.committed() == expected, "{context}");
    }

    /// The killed run had moved everything, or nothing, in which case the resolutions are still there. Returns which.
    fn finish(&self, start: &[(String, String)]) -> &'static str {
        self.project.run(&["lint"]);
        let waits = self.work().exists();
        if waits {
            self.assert_project_is(start, "a rebase that waits has changed nothing");
            self.run(&["--continue"]).success();
        }
        self.project.sweep();
        self.assert_moved();
        let last = self.project.read("patches/paged/0003-greet-dearly.patch");
        assert!(last.contains("+        return \"hi there, dear\";"), "{last}");
        if waits { "waits" } else { "moved" }
    }
}
