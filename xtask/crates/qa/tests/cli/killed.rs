//! SIGKILL at random points: whatever it leaves, the next run continues as if nothing had happened.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::support::kill::{self, Kills};
use super::support::random::XorShift;
use super::support::{Project, files, git, program_path, upstream::Upstream};

/// A command that is killed, and its initial state.
struct Phase {
    name: &'static str,
    arguments: &'static [&'static str],
    /// Number of kills.
    points: usize,
    /// Determines the moments of the kills; chosen so that the first ones are spread over the run.
    seed: u64,
    /// Removes files before every run; the rest is as the last run left it.
    start: fn(&Project),
}

fn without_anything(project: &Project) {
    remove(project, &["target", "espalier.lock"]);
}

fn only_fetched(project: &Project) {
    without_anything(project);
    project.run(&["fetch"]).success();
}

fn without_trees(project: &Project) {
    remove(project, &["target/espalier/trees"]);
}

fn without_build(project: &Project) {
    remove(project, &["target/espalier/build", "target/espalier/dist"]);
}

fn as_it_is(_: &Project) {}

fn remove(project: &Project, paths: &[&str]) {
    for path in paths.iter().map(|path| project.path(path)) {
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else if path.exists() {
            std::fs::remove_file(path).unwrap();
        }
    }
}

/// Two series that alternate, so that every run has something to change, and the final tree of each.
struct Turns {
    series: [std::path::PathBuf; 2],
    trees: [String; 2],
}

impl Turns {
    fn new(helper: &Project) -> Self {
        let tree = |project: &Project| {
            project.run(&["--json", "apply"]).json()["tree"].as_str().unwrap().to_string()
        };
        let first = tree(helper);
        let keep = helper.beside("other-series");
        helper.take_patch(change_many_files);
        let second = tree(helper);
        files::copy_folder(&helper.path("patches/paged"), &keep);
        Turns { series: [Upstream::shared().series(), keep], trees: [first, second] }
    }

    fn take(&self, project: &Project, turn: usize) -> &str {
        remove(project, &["patches/paged"]);
        files::copy_folder(&self.series[turn % 2], &project.path("patches/paged"));
        &self.trees[turn % 2]
    }
}

fn change_many_files(fork: &Path) {
    for name in ["add", "join", "length", "name", "ring", "upper"] {
        files::edit(
            &fork.join(format!("src/{name}.c")),
            "#include \"words.h\"\n",
            "#include \"words.h\"\n// changed\n",
        );
    }
    git::git(fork, &["mv", "docs/old/story.txt", "docs/tale.txt"]);
    for number in 0..40 {
        files::write(&fork.join(format!("extra/{number}/file.txt")), format!("{number}\n").repeat(200));
    }
}

fn command(project: &Project, arguments: &[&str]) -> Command {
    project.command_with_path(arguments, &program_path::with_build_tools())
}

fn assert_whole(project: &Project, tree: &str, context: &str) {
    assert_eq!(project.run(&["--json", "apply"]).success().json()["tree"], tree, "{context}");
    assert_eq!(files::tree_id(&project.tree("paged")), tree, "{context}");
    assert_eq!(project.scratch(), [""; 0], "{context}");
    let output = git::git(&project.store(), &["fsck", "--full", "--no-dangling"]);
    assert_eq!(output, "", "{context}");
}

impl Phase {
    /// Kills the command at random moments of its own duration; the next run ends at the same tree.
    fn kill_often(&self) {
        let (helper, project) = (Project::new(), Project::new());
        let turns = Turns::new(&helper);
        // What `start` leaves is there before the duration is measured, as it is before every killed run.
        turns.take(&project, 0);
        project.run_build(self.arguments).success();
        let whole = self.run_whole(&project, &turns);
        let mut random = XorShift::new(self.seed);
        let mut kills = Kills::of(self.name);
        for point in 0..kill::points(self.points) {
            let tree = turns.take(&project, point);
            (self.start)(&project);
            let limit = whole.mul_f64(random.fraction());
            kills.run(command(&project, self.arguments), limit);
            let context = format!("{} killed after {limit:?} of {whole:?}", self.name);
            let output = project.run_build(self.arguments);
            assert_eq!(output.code, Some(0), "{context}: {output}");
            assert_whole(&project, tree, &context);
        }
    }

    /// Returns the duration of a run that is not killed.
    fn run_whole(&self, project: &Project, turns: &Turns) -> Duration {
        turns.take(project, 1);
        (self.start)(project);
        kill::run_and_kill(command(project, self.arguments), Duration::from_secs(60))
    }
}

#[test]
fn fetch_killed() {
    let seed = 0x5eed_0001_0000_02a3;
    Phase { name: "fetch", arguments: &["fetch"], points: 6, seed, start: without_anything }.kill_often();
}

#[test]
fn apply_in_memory_killed() {
    let (name, arguments, seed) = ("apply in memory", &["apply", "--check"], 0x5eed_0002_0000_02e0);
    Phase { name, arguments, points: 5, seed, start: only_fetched }.kill_often();
}

#[test]
fn materialising_all_killed() {
    let (name, seed) = ("materialise all", 0x5eed_0003_0000_0237);
    Phase { name, arguments: &["apply"], points: 5, seed, start: without_trees }.kill_often();
}

#[test]
fn materialising_a_change_killed() {
    let (name, seed) = ("materialise a change", 0x5eed_0004_0000_00ba);
    Phase { name, arguments: &["apply"], points: 4, seed, start: as_it_is }.kill_often();
}

#[test]
fn building_all_killed() {
    let (name, seed) = ("build all", 0x5eed_0005_0000_001d);
    Phase { name, arguments: &["build"], points: 3, seed, start: without_build }.kill_often();
}

#[test]
fn building_a_change_killed() {
    let (name, seed) = ("build a change", 0x5eed_0006_0000_0002);
    Phase { name, arguments: &["build"], points: 2, seed, start: as_it_is }.kill_often();
}

/// Moments that random kills rarely hit: each file here is one that some step creates and removes again within
/// microseconds.
#[test]
fn leftovers_of_a_killed_run_do_not_block_later_runs() {
    let (helper, project) = (Project::new(), Project::new());
    let turns = Turns::new(&helper);
    let pin = format!("target/espalier/store.git/refs/espalier/pins/{}.lock", Upstream::shared().tree());
    let left = [
        pin.as_str(),
        "target/espalier/store.git/packed-refs.lock",
        "target/espalier/trees/paged.index.lock",
        "target/espalier/tmp/fetch-abc/quarantine.git/HEAD",
        "target/espalier/stage/stage-abc/pins.toml",
        "target/espalier/stage/stage-abc.lock",
        "target/espalier/dist/.espalier-tmp-package-abc/new/bin/hello",
        "target/espalier/store.git/objects/pack/pack-1234.pack",
        "target/espalier/trees/paged/src/.espalier-tmp-abc",
        "target/espalier/.espalier-tmp-abc",
        ".espalier-tmp-abc",
    ];
    for (turn, path) in left.iter().enumerate() {
        let tree = turns.take(&project, turn);
        if turn == 0 {
            project.run(&["apply", "--variant", "stock", "--check"]).success();
            std::fs::remove_file(project.path(&pin).with_extension("")).unwrap();
        }
        project.write(path, "half");
        let output = project.run(&["apply"]);
        assert_eq!(output.code, Some(0), "{path}: {output}");
        assert_eq!(files::tree_id(&project.tree("paged")), tree, "{path}");
    }
    project.run_build(&["build", "--no-smoke"]).success();
    assert_eq!(project.scratch(), [""; 0]);
}

/// Interrupted between two files, after which the user changes a patch once more, or reverts the change: the files that
/// the first run wrote are not user edits. (An empty folder in the place of a file interrupts the run here, always at
/// the same point.)
#[test]
fn cut_short_between_two_files_and_then_another_change() {
    for take_back in [false, true] {
        let (first, project) = (Project::new(), Project::new());
        project.run(&["apply"]).success();
        project.take_patch(|fork| {
            files::edit(&fork.join("src/add.c"), "left + right", "right + left");
            files::write(&fork.join("zz/new.txt"), "new\n".repeat(10_000));
        });
        // The system kills a run that writes a file larger than the limit.
        let tool = project.command(&["apply"]);
        let mut command = std::process::Command::new("sh");
        command
            .args(["-c", "ulimit -f 32 && exec \"$@\"", "sh"])
            .arg(tool.get_program())
            .args(tool.get_args());
        command.env_clear().env("PATH", program_path::of_this_machine()).env("HOME", project.beside("home"));
        command.current_dir(project.root());
        assert_eq!(project.finish(command).code, None);
        let half = std::fs::read_to_string(project.tree("paged").join("src/add.c")).unwrap();
        assert!(half.contains("right + left"), "it was not cut short between two files");
        if take_back {
            remove(&project, &["patches/paged"]);
            files::copy_folder(&first.path("patches/paged"), &project.path("patches/paged"));
        } else {
            project.take_patch(|fork| files::edit(&fork.join("src/add.c"), "left + right", "(left + right)"));
        }
        let json = project.run(&["--json", "apply"]).success().json();
        assert_eq!(files::tree_id(&project.tree("paged")), json["tree"].as_str().unwrap());
    }
}
