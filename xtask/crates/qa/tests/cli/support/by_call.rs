//! A command that is killed, or fails, at each of its system calls in turn.

use std::collections::BTreeMap;
use std::process::Command;

use super::editing::offered_message;
use super::{Output, Project, files, program_path};

/// Environment variable that enables these tests.
const WANTED: &str = "ESPALIER_KILL_CALLS";

/// The calls that create and remove files.
const CALLS: [&str; 11] = [
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "link",
    "linkat",
    "mkdir",
    "rmdir",
    "fsync",
    "fdatasync",
];

/// The calls that fail without a kill, with the errors to inject.
const FAULTS: [(&str, &[&str]); 5] = [
    ("rename", &["ENOSPC", "EACCES", "EIO"]),
    ("unlink", &["EACCES", "EIO"]),
    ("openat", &["EMFILE", "EACCES", "ENOSPC"]),
    ("write", &["ENOSPC", "EIO"]),
    ("fsync", &["EIO"]),
];

/// Number of last calls that fail, one at a time.
const LAST: usize = 12;

/// A command whose every call is tried.
struct Subject<'a> {
    name: &'static str,
    project: &'a Project,
    arguments: Vec<String>,
    /// The user's files, before the command and after its completion.
    before: ProjectFiles,
    after: ProjectFiles,
    /// Restores the initial project.
    put_back: &'a dyn Fn(),
    /// Completes the interrupted command; the project is then as in `after`. The argument tells whether it is already.
    finish: &'a dyn Fn(bool),
}

type ProjectFiles = BTreeMap<String, Vec<u8>>;

fn project_files(project: &Project) -> ProjectFiles {
    // The next command that takes the lock removes partially written temporary files: `judge` checks that.
    let is_garbage = |path: &str| path.starts_with("target/") || path.contains(".espalier-tmp-");
    let paths = files::list(project.root()).into_iter().filter(|path| !is_garbage(path));
    let mut project_files: ProjectFiles =
        paths.map(|path| (path.clone(), std::fs::read(project.path(&path)).unwrap())).collect();
    project_files
        .extend(offered_message(project).map(|message| ("offered".to_string(), message.into_bytes())));
    project_files
}

impl Subject<'_> {
    /// Returns the command under strace with `more` options for strace.
    fn traced(&self, more: &[&str]) -> Command {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let tool = self.project.command_with_path(&arguments, &program_path::with_build_tools());
        let mut traced = Command::new("strace");
        traced.args(["-qq", "-o", "../calls"]).args(more).arg(tool.get_program()).args(tool.get_args());
        traced
            .env_clear()
            .env("PATH", program_path::with_build_tools())
            .env("HOME", self.project.beside("home"));
        traced.current_dir(self.project.root());
        traced
    }

    fn run(&self, more: &[&str]) -> Output {
        self.project.finish(self.traced(more))
    }

    /// Returns the number of `calls` that a run makes, counted as they are injected: in the first thread only.
    fn count(&self, calls: &str) -> usize {
        (self.put_back)();
        self.run(&["-e", &format!("trace={calls}")]);
        let text = std::fs::read_to_string(self.project.beside("calls")).unwrap();
        text.lines().filter(|line| !line.starts_with("---") && !line.starts_with("+++")).count()
    }

    /// Runs a command, since any command completes a decided change: then the result is complete or absent, and the
    /// command can be completed.
    fn judge(&self, context: &str) -> &'static str {
        self.project.run(&["lint"]);
        let found = project_files(self.project);
        let moved = found == self.after;
        assert!(moved || found == self.before, "{context}: half: {:?}", self.differs(&found));
        (self.finish)(moved);
        let found = project_files(self.project);
        assert!(found == self.after, "{context}: run again: {:?}", self.differs(&found));
        if self.after.contains_key("espalier.lock") {
            self.project.sweep();
        } else {
            self.project.run(&["lock"]).success();
        }
        assert_eq!(self.project.scratch(), [""; 0], "{context}");
        if moved { "after" } else { "before" }
    }

    fn differs(&self, found: &ProjectFiles) -> Vec<String> {
        let paths = found.keys().chain(self.after.keys());
        paths.filter(|path| found.get(*path) != self.after.get(*path)).cloned().collect()
    }

    /// Kills the command at every call; returns the number of kills.
    fn kill_at_every(&self, call: &str) -> usize {
        let count = self.count(call);
        let mut ends: BTreeMap<&str, usize> = BTreeMap::new();
        for number in 1..=count {
            (self.put_back)();
            let inject = format!("inject={call}:signal=KILL:when={number}");
            let killed = self.run(&["-e", &format!("trace={call}"), "-e", &inject]);
            let context = format!("{}, killed at {call} {number} of {count}", self.name);
            assert_eq!(killed.code, None, "{context}: it was not made\n{killed}");
            *ends.entry(self.judge(&context)).or_default() += 1;
        }
        eprintln!("{}: killed at each of {count} {call}; {ends:?}", self.name);
        count
    }

    /// Makes the last calls of a kind fail once, without a kill. Returns the number of failures.
    fn fail_the_last(&self, call: &str, fault: &str) -> usize {
        let count = self.count(call);
        let first = count.saturating_sub(LAST - 1).max(1);
        let mut ends: BTreeMap<(Option<i32>, &str), usize> = BTreeMap::new();
        for number in first..=count {
            (self.put_back)();
            let inject = format!("inject={call}:error={fault}:when={number}");
            let output = self.run(&["-e", &format!("trace={call}"), "-e", &inject]);
            let context = format!("{}, {fault} at {call} {number} of {count}\n{output}", self.name);
            assert!(!output.stderr.contains("panicked"), "{context}");
            let end = self.judge(&context);
            // A command that reported success must have completed.
            assert!(output.code != Some(0) || end == "after", "{context}");
            *ends.entry((output.code, end)).or_default() += 1;
        }
        eprintln!("{}: {fault} at the last of {count} {call}; {ends:?}", self.name);
        count + 1 - first
    }
}

/// Whether these tests are enabled.
pub fn wanted() -> bool {
    let wanted = std::env::var_os(WANTED).is_some();
    if !wanted {
        eprintln!("SKIPPED: it takes minutes, and strace: {WANTED}=1");
    }
    wanted
}

fn words(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|word| word.to_string()).collect()
}

/// Copies all files, generated or not; returns a function that restores them.
fn snapshot(project: &Project, name: &str) -> impl Fn() + use<> {
    let (root, copy) = (project.root().to_path_buf(), project.beside(name));
    files::copy_folder(&root, &copy);
    move || {
        std::fs::remove_dir_all(&root).unwrap();
        files::copy_folder(&copy, &root);
    }
}

/// Runs the same command once more, whatever the result of the first run.
pub fn again<'a>(project: &'a Project, arguments: &'a [&'a str]) -> impl Fn(bool) {
    move |_| drop(project.run_build(arguments).success())
}

/// Does the same for a command that fails when run twice.
pub fn unless_done<'a>(project: &'a Project, arguments: &'a [&'a str]) -> impl Fn(bool) {
    move |is_done| {
        if !is_done {
            project.run_build(arguments).success();
        }
    }
}

/// Tries one command with every kill and fault.
pub fn try_all(name: &'static str, project: &Project, arguments: &[&str], finish: &dyn Fn(bool)) {
    let put_back = snapshot(project, &format!("snapshot of {name}"));
    let before = project_files(project);
    project.run_build(arguments).success();
    let after = project_files(project);
    let subject =
        Subject { name, project, arguments: words(arguments), before, after, put_back: &put_back, finish };
    let killed: usize = CALLS.iter().map(|call| subject.kill_at_every(call)).sum();
    let faults = FAULTS.iter().flat_map(|(call, faults)| faults.iter().map(move |fault| (call, fault)));
    let failed: usize = faults.map(|(call, fault)| subject.fail_the_last(call, fault)).sum();
    eprintln!("{name}: {killed} kills, {failed} faults, all right");
    put_back();
}
