//! SIGKILL at random points of `rebase`, of its start and of `--continue`.

use std::time::Duration;

use super::support::moving::{Move, TIP, greet, upstream_greets_otherwise};
use super::support::random::XorShift;
use super::support::{files, git, kill};

/// A rebase that is killed anywhere is finished or forgotten by the next commands, whole.
#[test]
fn killed_at_fifty_points_nothing_is_lost() {
    let moving = Move::new(upstream_greets_otherwise);
    moving.project.run(&["lock"]).success();
    let start = moving.committed();
    let first = ["--to", TIP, "--from", moving.upstream.to_str().unwrap()];
    let mut random = XorShift::new(0x0dd_ba11);
    let long = Duration::from_secs(60);
    let whole_start = moving.run_and_kill(&first, long);
    moving.solve_and_stage();
    moving.solve_the_rest(long);
    let whole_end = moving.run_and_kill(&["--continue"], long);
    moving.assert_moved();
    for _ in 0..25 {
        moving.put_back(&start);
        moving.run_and_kill(&first, whole_start.mul_f64(random.fraction()));
        if !moving.work().exists() {
            moving.assert_project_is(&start, "killed before the conflict");
            moving.rebase(&[]).code(4);
        }
        // What was shown half is shown again.
        moving.run(&["--continue"]).code(4);
        moving.solve_and_stage();
        moving.solve_the_rest(whole_end.mul_f64(random.fraction()));
        moving.run_and_kill(&["--continue"], whole_end.mul_f64(random.fraction()));
        moving.finish(&start);
    }
}

impl Move {
    /// Gives how long it ran.
    fn run_and_kill(&self, arguments: &[&str], limit: Duration) -> Duration {
        kill::run_and_kill(self.project.command(&[&["rebase"], arguments].concat()), limit)
    }

    fn solve_and_stage(&self) {
        files::write(&self.work().join("src/greet.c"), greet("hi there"));
        git::git(&self.work(), &["add", "src/greet.c"]);
    }

    /// Goes on to the second conflict, by a run that is killed and one that is not, and solves it.
    fn solve_the_rest(&self, limit: Duration) {
        self.run_and_kill(&["--continue"], limit);
        self.run(&["--continue"]).code(4);
        files::write(&self.work().join("src/greet.c"), greet("hi there, dear"));
        git::git(&self.work(), &["add", "src/greet.c"]);
    }

    /// The project as at the start, and no rebase.
    fn put_back(&self, start: &[(String, String)]) {
        std::fs::remove_dir_all(self.project.path("patches")).unwrap();
        for (path, text) in start {
            self.project.write(path, text);
        }
        std::fs::remove_dir_all(self.project.path("target/espalier/rebase")).unwrap_or_default();
    }

    /// Any command finishes what was decided, so one is run first.
    #[track_caller]
    fn assert_project_is(&self, expected: &[(String, String)], context: &str) {
        self.project.run(&["lint"]);
        assert!(self.committed() == expected, "{context}");
    }

    /// The killed run had moved everything, or nothing: then what was solved is still there.
    fn finish(&self, start: &[(String, String)]) {
        self.project.run(&["lint"]);
        if self.work().exists() {
            self.assert_project_is(start, "a rebase that waits has changed nothing");
            self.run(&["--continue"]).success();
        }
        self.assert_moved();
        let last = self.project.read("patches/paged/0003-greet-dearly.patch");
        assert!(last.contains("+        return \"hi there, dear\";"), "{last}");
    }
}
