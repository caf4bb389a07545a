//! Two concurrent runs in one project: the second waits, and both succeed.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use super::support::held_lock::HeldLock;
use super::support::importing::started;
use super::support::upstream::Upstream;
use super::support::{Output, Project, Source, files, program_path};

fn at_once(project: &Project, arguments: [&[&str]; 2]) -> [Output; 2] {
    let path = program_path::with_build_tools();
    let children = arguments.map(|arguments| {
        let mut command = project.command_with_path(arguments, &path);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    children.map(|child| project.output(&child.wait_with_output().unwrap()).success())
}

#[test]
fn two_builds() {
    let project = Project::new();
    let outputs = at_once(&project, [&["build"], &["build"]]);
    let stderr: String = outputs.iter().map(|output| output.stderr.clone()).collect();
    assert!(stderr.contains("Waiting for another run in this folder to end"), "{stderr}");
    assert!(
        stderr.contains("Finished paged-cpu-native") && stderr.contains("Current paged-cpu-native"),
        "{stderr}"
    );
    assert_eq!(project.scratch(), [""; 0]);
}

/// State that was read before the wait is stale: the other run may have moved the pins.
#[test]
fn pins_that_change_while_a_run_waits() {
    let project = Project::new();
    project.run(&["lock"]).success();
    let other = std::fs::File::options().write(true).open(project.path("target/espalier/run.lock")).unwrap();
    let other = HeldLock::exclusive(other);
    let mut waiting =
        project.command(&["lock"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut byte = [0; 1];
    waiting.stderr.as_mut().unwrap().read_exact(&mut byte).unwrap();
    project.edit(
        "pins.toml",
        "[variants.paged]",
        "[variants.third]\nextends = \"paged\"\n\n[variants.paged]",
    );
    drop(other);
    let output = project.output(&waiting.wait_with_output().unwrap()).success();
    assert!(output.stdout.contains("variant third is not in the lock"), "{output}");
    project.run(&["lock", "--check"]).success();
}

#[test]
fn two_applies_of_two_variants() {
    let project = Project::new();
    at_once(&project, [&["apply", "--variant", "stock"], &["apply", "--variant", "paged"]]);
    project.run(&["lock", "--check"]).success();
    let json = project.run(&["--json", "apply"]).success().json();
    assert_eq!(files::tree_id(&project.tree("paged")), json["tree"].as_str().unwrap());
}

/// A compiler cache starts a server that outlives the build: it must not block the next run.
#[test]
fn a_program_that_stays_in_the_background_blocks_no_run() {
    let project = Project::new();
    let sccache = project.beside("bin/sccache");
    files::write_script(
        &sccache,
        "[ -e \"$HOME/started\" ] || { : > \"$HOME/started\"; setsid sleep 20 > /dev/null 2>&1 < /dev/null & }\nexec \"$@\"",
    );
    let programs =
        ["git", "cmake", "ninja", "cc", "c++", "as", "ld", "ar", "ranlib", "sh", "setsid", "sleep"];
    let path = program_path::only(&project.beside("bin"), &programs).into_os_string();
    project.finish(project.command_with_path(&["build"], &path)).success();
    assert!(project.beside("home/started").exists(), "the cache was not used");
    let begin = std::time::Instant::now();
    project.run(&["apply"]).success();
    assert!(begin.elapsed().as_secs() < 10, "waited for the server in the background");
}

/// Runs a command with an upstream at `ssh://upstream/hello`; git's connection to it leaves a program in the background
/// for 20 seconds, as a credential helper does.
fn with_a_helper_of_git(project: &Project, arguments: &[&str]) -> Output {
    let ssh = project.beside("ssh");
    let upstream = Upstream::shared().repository();
    let helper = ": > \"$HOME/started\"; setsid sleep 20 > /dev/null 2>&1 < /dev/null &";
    files::write_script(&ssh, &format!("{helper}\nexec git upload-pack '{}'", upstream.display()));
    let mut command = project.command(arguments);
    command.env("GIT_SSH", &ssh).env("GIT_SSH_VARIANT", "simple");
    let output = project.finish(command);
    assert!(project.beside("home/started").exists(), "git did not connect: {output}");
    output
}

#[track_caller]
fn assert_is_not_blocked(project: &Project) {
    let begin = std::time::Instant::now();
    project.run(&["lock"]).success();
    assert!(begin.elapsed().as_secs() < 10, "waited for the helper in the background");
}

/// git's `credential.helper=cache` starts such a daemon at a fetch from a private repository.
#[test]
fn a_helper_that_git_leaves_after_a_fetch_blocks_no_run() {
    let project = Project::with_sources(&[Source::Git("ssh://upstream/hello".to_string())]);
    with_a_helper_of_git(&project, &["fetch"]).success();
    assert_is_not_blocked(&project);
}

/// `import` asks for the refs first, and finds that there is no such commit.
#[test]
fn a_helper_that_git_leaves_after_looking_at_refs_blocks_no_run() {
    let project = started();
    let import = ["import", "--from", "ssh://upstream/hello", "v1.0..gone"];
    with_a_helper_of_git(&project, &import).code(2).says(&["has no `gone`"]);
    assert_is_not_blocked(&project);
}

/// Takes the locks of a compiling build, as another process would hold them.
fn as_a_build(project: &Project) -> [HeldLock; 2] {
    let open = |name: &str| {
        let path = project.path("target/espalier").join(name);
        std::fs::File::options().create(true).truncate(false).write(true).open(path).unwrap()
    };
    let [run, shared] = ["run.lock", "project.lock"].map(open);
    [HeldLock::exclusive(run), HeldLock::shared(shared)]
}

/// Runs a command beside a build that ends after 20 seconds: a command that waits for it prints that it does.
fn beside_a_build(project: &Project, command: &[&str]) -> Output {
    let build = as_a_build(project);
    let (ended, end) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        let _ = end.recv_timeout(Duration::from_secs(20));
        drop(build);
    });
    let output = project.run(command);
    drop(ended);
    output
}

/// They change nothing that a build reads.
#[test]
fn commands_that_read_go_on_beside_a_build() {
    let project = Project::new();
    project.run(&["lock"]).success();
    project.run(&["edit"]).success();
    for command in [
        &["status"][..],
        &["lock", "--check"],
        &["apply", "--check"],
        &["apply", "--dry-run"],
        &["export", "--dry-run"],
        &["bisect", "--tip", "v1.0", "--every-commit"],
        &["newest", "--tip", "v1.0"],
        &["rebase", "--to", "v1.0", "--dry-run"],
        &["sync", "--to", "v1.0", "--dry-run"],
        &["gc", "--dry-run"],
    ] {
        beside_a_build(&project, command).success().says_nothing_of("Waiting");
    }
    beside_a_build(&project, &["lint"]).says_nothing_of("Waiting");
}

/// A command that changes something waits, and prints which command it waits for.
#[test]
fn a_command_that_waits_says_for_whom() {
    let project = Project::new();
    project.run(&["lock"]).success();
    let build = as_a_build(&project);
    let mut ended = std::process::Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    let (here, gone) = (std::process::id(), ended.id());
    let holders = [
        (here, format!("to end: `xtask build --flavor cpu`, process {here}, running for ")),
        (gone, format!("to end: a child of `xtask build --flavor cpu`, process {gone}, which has ended")),
    ];
    let mut waiting = Vec::new();
    for (pid, expected) in holders {
        let record = format!(r#"{{"pid":{pid},"command":"xtask build --flavor cpu","since":0}}"#);
        std::fs::write(project.path("target/espalier/run.lock"), record).unwrap();
        let mut child =
            project.command(&["lock"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains(&expected), "{line}");
        waiting.push(child);
    }
    drop(build);
    for child in waiting {
        project.output(&child.wait_with_output().unwrap()).success();
    }
    let left = project.read("target/espalier/run.lock");
    assert!(left.contains("\"command\":\"cargo xtask ") && left.contains("lock\",\"since\":"), "{left}");
}
