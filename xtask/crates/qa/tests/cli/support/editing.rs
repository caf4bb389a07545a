//! Helpers for the tests of `edit` and `export`: the edit repository, and the series on disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::upstream::TAG;
use super::{Project, files, git};

/// Name and content of every patch of `paged`.
pub type Series = BTreeMap<String, Vec<u8>>;

/// The expected message, and the change made in the edit repository before the run.
pub type FailingEdit = (&'static str, fn(&Path));

/// Returns the series of `paged` on disk.
pub fn series(project: &Project) -> Series {
    let folder = project.path("patches/paged");
    files::list(&folder)
        .into_iter()
        .map(|name| (name.clone(), std::fs::read(folder.join(name)).unwrap()))
        .collect()
}

/// Returns the file names of the series.
pub fn names(project: &Project) -> Vec<String> {
    series(project).into_keys().collect()
}

/// Asserts that lock, series and edit repository agree, and that a second run has nothing to do.
pub fn assert_settled(project: &Project) {
    project.run(&["lock", "--check"]).success();
    let before = series(project);
    assert!(project.run(&["export"]).success().stdout.contains("nothing changed"));
    assert_eq!(series(project), before);
    assert_eq!(project.run(&["--json", "edit"]).success().json()["made"], false);
    assert_eq!(project.scratch(), [""; 0]);
}

/// Returns the folder of a variant's edit repository.
pub fn edit_folder(project: &Project, variant: &str) -> PathBuf {
    project.path("target/espalier/edit").join(variant)
}

/// Creates the edit repository of `paged`, after updating the lock.
pub fn edit(project: &Project) -> PathBuf {
    project.run(&["lock"]).success();
    project.run(&["edit"]).success();
    edit_folder(project, "paged")
}

/// Declares `variant`, which extends `parent` and has a folder for patches.
pub fn extend(project: &Project, variant: &str, parent: &str) {
    let pins = project.read("pins.toml");
    let more = format!("\n[variants.{variant}]\nextends = \"{parent}\"\npatches = \"patches/{variant}\"\n");
    project.write("pins.toml", pins + &more);
    std::fs::create_dir_all(project.path("patches").join(variant)).unwrap();
}

/// Creates a variant `child` on top of `paged`, with one patch of its own.
pub fn with_child() -> Project {
    let project = Project::new();
    extend(&project, "child", "paged");
    project.run(&["edit", "child"]).success();
    let folder = edit_folder(&project, "child");
    files::edit(&folder.join("src/greet.c"), "dear\"", "my dear\"");
    git::commit(&folder, "Greet my dear");
    project.run(&["export", "child"]).success();
    project
}

/// Commits the project, with an updated lock, to a new repository.
pub fn commit_project(project: &Project) {
    project.run(&["lock"]).success();
    git::init(project.root());
    commit_files(project, &["--message", "The project"]);
}

/// Commits the files of the project that a user commits; `arguments` are those of `git commit`.
pub fn commit_files(project: &Project, arguments: &[&str]) {
    git::git(project.root(), &["add", "--all", "--", ".", ":!target"]);
    git::git(project.root(), &[&["commit", "--quiet"], arguments].concat());
}

/// Changes the tree after the last patch of `paged`, and exports the series.
pub fn refresh_last_patch(project: &Project, change: impl Fn(&Path)) {
    project.run(&["edit", "--discard"]).success();
    let folder = edit_folder(project, "paged");
    change(&folder);
    git::git(&folder, &["add", "--all"]);
    git::git(&folder, &["commit", "--quiet", "--amend", "--no-edit"]);
    project.run(&["export"]).success();
}

/// Makes a commit in the edit repository of `child` that is in no patch, and then a new patch of `paged`.
pub fn parent_goes_on(project: &Project) {
    let child = edit_folder(project, "child");
    files::edit(&child.join("src/ring.c"), "at % size", "size % at");
    git::commit(&child, "Ring otherwise");
    let parent = edit(project);
    files::edit(&parent.join("src/add.c"), "left + right", "right + left");
    git::commit(&parent, "Add backwards");
    project.run(&["export"]).success();
}

/// Returns the message that `git commit` offers in the edit repository of `paged`; `None` if there is no repository or
/// no message.
pub fn offered_message(project: &Project) -> Option<String> {
    let folder = edit_folder(project, "paged");
    let config = folder.join(".git/config");
    if !config.exists() {
        return None;
    }
    let mut asked = git::command(&folder);
    asked.args(["config", "--file", config.to_str().unwrap(), "--path", "commit.template"]);
    let output = asked.output().unwrap();
    let path = output.status.success().then(|| String::from_utf8(output.stdout).unwrap())?;
    Some(std::fs::read_to_string(folder.join(path.trim_end())).unwrap())
}

/// Runs `git rebase -i` with a `sed` script as the editor of the commit list.
pub fn rebase(folder: &Path, script: &str) {
    let editor = format!("sequence.editor=sed -i -e '{script}'");
    git::git(folder, &["-c", &editor, "-c", "core.editor=true", "rebase", "--quiet", "--interactive"]);
}

/// Replaces the series by one with every kind of change that a patch can represent, as different users and tools might
/// have written it: nothing in it depends on our own format.
pub fn take_rich_series(project: &Project) {
    let fork = project.fork();
    git::git(&fork, &["reset", "--quiet", "--hard", TAG]);
    files::edit(&fork.join("src/twins.c"), "result * 2", "result * 3");
    git::commit(&fork, "Treble\n\nWhy: \"more\".\n\nNumerics: bounded 1e-5");
    std::fs::write(fork.join("data/logo.bin"), [&[9u8, 0, 200][..], &[8; 400]].concat()).unwrap();
    files::write(&fork.join("docs/windows.txt"), "one\r\n2\r\nthree\r\nfour");
    git::commit(&fork, "Change a picture and a text of another system");
    git::git(&fork, &["mv", "docs/old/story.txt", "docs/tale.txt"]);
    files::edit(&fork.join("docs/tale.txt"), "line 7 of", "line seven of");
    git::git(&fork, &["update-index", "--chmod=-x", "scripts/greet.sh"]);
    git::git(&fork, &["add", "docs"]);
    git::git(&fork, &["commit", "--quiet", "--message", "Move a story, and run no script"]);
    git::git(&fork, &["reset", "--quiet", "--hard"]);
    std::fs::remove_file(fork.join("src/ring.c")).unwrap();
    files::write(&fork.join("docs/no-final-newline.txt"), "one\ntwo\nthree\n");
    let author = "--author=Jörg \"J.\" Müller <joerg@example.invalid>";
    git::git(&fork, &["add", "--all"]);
    let date = "--date=Tue, 14 Nov 2023 23:13:20 +0130";
    git::git(
        &fork,
        &[
            "commit",
            "--quiet",
            author,
            date,
            "--message",
            "Weg damit: ein sehr langer Betreff, der in einem Brief in mehr als eine Zeile gebrochen wird",
        ],
    );
    project.take_series(&fork);
    let mut written: Vec<String> = names(project);
    let last = written.pop().unwrap();
    // Names and formats that git itself would not choose.
    std::fs::rename(
        project.path(&format!("patches/paged/{last}")),
        project.path("patches/paged/0004-weg-damit.patch"),
    )
    .unwrap();
    project.edit("patches/paged/0001-treble.patch", "From: Test Person <", "From: Test P. Person <");
    project.edit("patches/paged/0001-treble.patch", "---\n src", "---\nA note that is in no commit.\n src");
    std::fs::remove_dir_all(fork).unwrap();
}
