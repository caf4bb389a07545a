//! Every command that the tool tells people to type next is typed: none of them is a dead end.
//!
//! A scene says what was run. Each command among its hints is run by a shell, to the letter, in a scene of its own: in a
//! fresh clone where the hint is for anybody, in the same folder where it is about what lies there.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::support::upstream::{TAG, Upstream};
use super::support::{Output, Project, files, git, program_path};
use makers::{ABOUT, GREETING_GOES, project_by_git};

mod all_covered;
mod makers;
mod pin_scenes;
mod series_scenes;

/// Where a hint is followed.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// By a colleague, who has the project and nothing else.
    Clone,
    /// Where it was printed.
    Here,
}

struct Scene {
    name: &'static str,
    make: fn() -> Project,
    /// What is run, as after `cargo xtask`, for a shell.
    command: &'static str,
    place: Place,
    /// The beginnings of the commands among its hints, each with the exit code that it has to end with.
    hints: &'static [(&'static str, i32)],
}

fn scenes() -> impl Iterator<Item = &'static Scene> {
    pin_scenes::SCENES.iter().chain(series_scenes::SCENES)
}

/// The commands among what was said: the whole of a hint, or what follows its colon.
fn commands(said: &Output) -> Vec<String> {
    let both = format!("{}\n{}", said.stdout, said.stderr);
    let is_hint = |line: &&str| line.starts_with("next: ") || line.starts_with("the pin can move: ");
    let hints = both.lines().map(str::trim).filter(is_hint);
    hints.filter_map(command_in).map(str::to_string).collect()
}

fn command_in(hint: &str) -> Option<&str> {
    let starts = ["cargo xtask ", "git ", "cd "].map(|program| format!(": {program}"));
    let first = starts.iter().filter_map(|start| hint.find(start)).min()?;
    hint.get(first + 2..)
}

fn shell(folder: &Path, project: &Project, command: &str) -> Output {
    let shims = project.beside("shims");
    std::fs::create_dir_all(&shims).unwrap();
    let cargo = format!("#!/bin/sh\nshift\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_xtask"));
    for (name, script) in [("cargo", cargo.as_str()), ("editor", "#!/bin/sh\necho More > \"$1\"\n")] {
        files::write(&shims.join(name), script);
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(shims.join(name), executable).unwrap();
    }
    let editor = shims.join("editor");
    let path = program_path::of_this_machine();
    let folders = std::iter::once(shims).chain(std::env::split_paths(&path));
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(folder).env_clear().env("HOME", project.beside("home"));
    shell.env("PATH", std::env::join_paths(folders).unwrap()).env("GIT_EDITOR", editor);
    for role in ["AUTHOR", "COMMITTER"] {
        shell.env(format!("GIT_{role}_NAME"), "A").env(format!("GIT_{role}_EMAIL"), "a@espalier.invalid");
    }
    // Paths are left as they are: what is printed is typed.
    Output::new(&shell.output().unwrap(), &[])
}

fn run(scene: &Scene, project: &Project) -> Output {
    shell(project.root(), project, &format!("cargo xtask {}", scene.command))
}

/// What a person fills in: a place that has the pin, and a check that takes hours elsewhere only as a plan.
fn filled_in(command: &str) -> String {
    let upstream = Upstream::shared().repository();
    let command = command.replace("PATH", upstream.to_str().unwrap());
    if command.starts_with("cargo xtask sync") { command + " --dry-run" } else { command }
}

fn follow(scene: &Scene, number: usize) -> (String, Output) {
    let project = (scene.make)();
    // What the run leaves behind is a part of the scene.
    let said = run(scene, &project);
    let command = commands(&said).swap_remove(number);
    let is_about_upstream = command.starts_with("git rev-parse");
    let folder: PathBuf = match scene.place {
        _ if is_about_upstream => Upstream::shared().repository(),
        Place::Here => project.root().to_path_buf(),
        Place::Clone => project.fresh_clone("clone").root().to_path_buf(),
    };
    let output = shell(&folder, &project, &filled_in(&command));
    (command, output)
}

/// Every hint of a scene that leads elsewhere than it should.
fn dead_ends(scene: &Scene) -> Vec<String> {
    let said = run(scene, &(scene.make)());
    let printed = commands(&said);
    if printed.len() != scene.hints.len() {
        return vec![format!("{}: {printed:#?}\n{said}", scene.name)];
    }
    let leads_on = |(number, (begins, code)): (usize, &(&str, i32))| {
        let (command, output) = follow(scene, number);
        let is_right = command.starts_with(begins) && output.code == Some(*code);
        (!is_right).then(|| format!("{}: {command}, not {begins}, {code}\n{output}", scene.name))
    };
    scene.hints.iter().enumerate().filter_map(leads_on).collect()
}

#[test]
fn every_command_that_is_printed_leads_on() {
    let dead: Vec<String> = scenes().flat_map(dead_ends).collect();
    assert!(dead.is_empty(), "{}", dead.join("\n\n"));
}

/// The pin that a hint leads to is one that a colleague can fetch.
#[test]
fn what_newest_offers_is_a_pin_for_everybody() {
    let project = project_by_git(&[ABOUT, GREETING_GOES]);
    let said = shell(project.root(), &project, "cargo xtask newest");
    shell(project.root(), &project, &commands(&said)[0]).success();
    assert!(project.read("pins.toml").contains("commit = "), "{TAG} is behind");
    let clone = project.fresh_clone("clone");
    clone.run(&["--locked", "apply"]).success();
    clone.run(&["--locked", "status"]).success();
}
