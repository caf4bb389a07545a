//! `prove` on results of a move that are wrong: made by hand, by a merge that git calls clean, or in a merge commit.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::support::editing::{commit_files, commit_project, edit_folder, refresh_last_patch};
use super::support::moving::{Move, TIP, above_everything};
use super::support::{Output, Project, files, git};

/// A fault in the last patch of a moved series: its name, the change of the tree after it, and the difference.
type Fault = (&'static str, fn(&Path), &'static str);

/// The line of the last patch.
const OWN: &str = "        return \"hello there, dear\";\n";

const FAULTS: [Fault; 20] = [
    (
        "a line that upstream has added is dropped",
        |folder| edit(folder, "src/greet.c", "// And another one.\n", ""),
        "new-deletion: src/greet.c:2",
    ),
    (
        "a line that upstream has had all along is dropped",
        |folder| edit(folder, "src/greet.c", "#include \"words.h\"\n", ""),
        "lost-upstream-line: src/greet.c:3",
    ),
    (
        "a line of a file that no patch changes is dropped",
        |folder| edit(folder, "src/ring.c", "    return at % size;\n", ""),
        "lost-upstream-line: src/ring.c:4",
    ),
    (
        "the line of the patch is another one",
        |folder| edit(folder, "src/greet.c", "dear", "friend"),
        "lost-own-line: src/greet.c:6",
    ),
    (
        "the hunk of the patch is there twice",
        |folder| edit(folder, "src/greet.c", OWN, &OWN.repeat(2)),
        "doubled: src/greet.c:9",
    ),
    (
        "a line of upstream is there twice",
        |folder| edit(folder, "src/add.c", "left + right;\n", "left + right;\n    return left + right;\n"),
        "doubled: src/add.c:5",
    ),
    ("a file can be run", |folder| chmod(folder, "src/greet.c", 0o755), "mode-or-name: src/greet.c"),
    (
        "a script cannot be run",
        |folder| chmod(folder, "scripts/greet.sh", 0o644),
        "mode-or-name: scripts/greet.sh",
    ),
    ("a file is deleted", |folder| remove(folder, "src/ring.c"), "new-deletion: src/ring.c"),
    ("a new file of upstream is deleted", |folder| remove(folder, "src/new.c"), "new-deletion: src/new.c"),
    ("a symbolic link is deleted", |folder| remove(folder, "docs/link"), "new-deletion: docs/link"),
    (
        "a binary file is changed",
        |folder| files::write(&folder.join("data/logo.bin"), [0u8, 9, 2, 255].repeat(80)),
        "binary: data/logo.bin",
    ),
    (
        "the white space of the line of the patch is changed",
        |folder| edit(folder, "src/greet.c", OWN, OWN.trim_start()),
        "lost-own-line: src/greet.c:6",
    ),
    (
        "a line end is changed",
        |folder| edit(folder, "docs/windows.txt", "two\r\n", "two\n"),
        "lost-upstream-line: docs/windows.txt:2",
    ),
    (
        "a file gets a final line feed",
        |folder| edit(folder, "docs/no-final-newline.txt", "three", "three\n"),
        "lost-upstream-line: docs/no-final-newline.txt:3",
    ),
    (
        "a line that upstream has deleted is there",
        |folder| edit(folder, "src/count.c", "inside = 1;\n", "inside = 1;\n            count++;\n"),
        "restored: src/count.c:11",
    ),
    (
        "a line that the patch deletes is there",
        |folder| edit(folder, "src/greet.c", OWN, &format!("{OWN}        return \"hello there\";\n")),
        "lost-deletion: src/greet.c:9",
    ),
    (
        "a line is in another place",
        |folder| {
            edit(folder, "docs/old/story.txt", "line 5 of the story\n", "");
            let place = "line 20 of the story\n";
            edit(folder, "docs/old/story.txt", place, &format!("{place}line 5 of the story\n"));
        },
        "misplaced: docs/old/story.txt:20",
    ),
    (
        "a line is there that neither side had",
        |folder| edit(folder, "src/greet.c", "// What is", "// Mine.\n// What is"),
        "added: src/greet.c:5",
    ),
    (
        "the patch is dropped",
        |folder| drop(git::git(folder, &["reset", "--quiet", "--hard", "HEAD~1"])),
        "lost-patch: 0003-greet-dearly.patch",
    ),
];

fn edit(folder: &Path, file: &str, from: &str, to: &str) {
    files::edit(&folder.join(file), from, to);
}

fn remove(folder: &Path, file: &str) {
    std::fs::remove_file(folder.join(file)).unwrap();
}

fn chmod(folder: &Path, file: &str, mode: u32) {
    std::fs::set_permissions(folder.join(file), std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns a move that is committed, and proved.
fn moved() -> Move {
    let moving = Move::moved(|folder| {
        above_everything("src/greet.c")(folder);
        edit(folder, "src/count.c", "            count++;\n", "");
        files::write(&folder.join("src/new.c"), "int words_new(void) {\n    return 1;\n}\n");
    });
    prove(&moving.project, &["HEAD~1", "HEAD"]).success();
    moving
}

fn prove(project: &Project, arguments: &[&str]) -> Output {
    project.run(&[&["prove"], arguments].concat())
}

#[test]
fn every_planted_fault_is_found_by_the_command() {
    let Move { project, .. } = moved();
    let mut missed = Vec::new();
    for (name, change, difference) in FAULTS {
        refresh_last_patch(&project, change);
        let stdout = prove(&project, &["HEAD~1", "."]).code(1).stdout;
        if !stdout.contains(difference) {
            missed.push(format!("{name}: not `{difference}`:\n{stdout}"));
        }
        git::git(project.root(), &["checkout", "--quiet", "HEAD", "--", "patches", "espalier.lock"]);
    }
    assert!(missed.is_empty(), "{}", missed.join("\n\n"));
    prove(&project, &["HEAD~1", "."]).success();
}

const STORY: &str = "docs/old/story.txt";

/// Moves line 5 of the story behind another one.
fn move_line_5(behind: usize) -> impl Fn(&Path) {
    move |folder: &Path| {
        let place = format!("line {behind} of the story\n");
        edit(folder, STORY, "line 5 of the story\n", "");
        edit(folder, STORY, &place, &format!("{place}line 5 of the story\n"));
    }
}

/// Both sides move a line, to different places. Git merges that without a conflict, and has the line twice then. The patch
/// changes another line too: otherwise upstream's commit would contain all of it.
#[test]
fn a_merge_that_git_calls_clean_is_not_proved() {
    let patch = |folder: &Path| {
        move_line_5(20)(folder);
        edit(folder, STORY, "line 2 of the story\n", "line two of the story\n");
    };
    let moving = Move::with_patch(patch, move_line_5(25));
    let (project, upstream) = (&moving.project, &moving.upstream);
    commit_project(project);
    let file = project.path("patches/paged/0001-change-something.patch");
    git::git(upstream, &["checkout", "--quiet", "--force", "--detach", TIP]);
    git::git(upstream, &["am", "--quiet", "-3", file.to_str().unwrap()]);
    let merged_by_git = std::fs::read_to_string(upstream.join(STORY)).unwrap();
    assert_eq!(merged_by_git.matches("line 5 of the story\n").count(), 2, "{merged_by_git}");
    git::git(upstream, &["checkout", "--quiet", "--force", "--detach", TIP]);
    let stdout = moving.rebase(&["--trim-upstreamed"]).success().stdout;
    assert!(stdout.contains("warning: the move made differences that nothing accounts for"), "{stdout}");
    assert_eq!(tree_after_series(project, STORY), merged_by_git);
    let stdout = prove(project, &["HEAD"]).code(1).stdout;
    assert!(stdout.contains("doubled: docs/old/story.txt:"), "{stdout}");
    assert!(stdout.contains(": `line 5 of the story`"), "{stdout}");
}

/// Returns a file after the last patch.
fn tree_after_series(project: &Project, file: &str) -> String {
    project.run(&["edit"]).success();
    std::fs::read_to_string(edit_folder(project, "paged").join(file)).unwrap()
}

/// The move was made on a branch. A merge commit is a state like any other, whichever of its parents it is compared with,
/// and a fault that only the merge commit has is found.
#[test]
fn the_state_of_a_merge_commit_is_proved() {
    let moving = Move::new(above_everything("src/greet.c"));
    let project = &moving.project;
    commit_project(project);
    git::git(project.root(), &["checkout", "--quiet", "-b", "notes"]);
    project.write("docs/notes.md", "A note.\n");
    commit_files(project, &["--message", "Take a note"]);
    git::git(project.root(), &["checkout", "--quiet", "main"]);
    moving.rebase(&[]).success();
    commit_files(project, &["--message", "Move the pin"]);
    git::git(project.root(), &["merge", "--quiet", "--no-edit", "notes"]);
    for parent in ["HEAD^1", "HEAD^2", "notes", "HEAD~2"] {
        prove(project, &[parent, "HEAD"]).success();
    }
    refresh_last_patch(project, |folder| edit(folder, "src/greet.c", "// And another one.\n", ""));
    commit_files(project, &["--amend", "--no-edit"]);
    let parents = git::git(project.root(), &["rev-list", "--parents", "--max-count=1", "HEAD"]);
    assert_eq!(parents.split(' ').count(), 3, "{parents}");
    for (parent, class) in [("HEAD^1", "lost-upstream-line"), ("HEAD^2", "new-deletion")] {
        let stdout = prove(project, &[parent, "HEAD"]).code(1).stdout;
        assert!(stdout.contains(&format!("{class}: src/greet.c:2: `// And another one.`")), "{stdout}");
    }
}

const LONG: &str = "src/long.c";

/// Returns a function of many lines.
fn long(head: &str) -> String {
    let body: String = (1..12).map(|step| format!("    step_{step}(at);\n")).collect();
    format!("{head} {{\n{body}    return at;\n}}\n")
}

fn write(texts: &[(&'static str, String)]) -> impl Fn(&Path) {
    let texts = texts.to_vec();
    move |folder: &Path| texts.iter().for_each(|(file, text)| files::write(&folder.join(file), text))
}

/// A person puts the change of a patch where upstream has the function now: under another head, with the old head above
/// another body, or in another file.
#[test]
fn a_change_that_went_along_with_its_function_is_proved() {
    let base =
        [(LONG, format!("int words_one(void) {{\n    return 1;\n}}\n\n{}", long("int words_long(int at)")))];
    let forwards = "int words_long(int at) {\n    return words_long_by(at, 1);\n}\n";
    let by = format!("{}\n{forwards}", long("int words_long_by(int at, int by)"));
    let one = "int words_one(void) {\n    return 1;\n}\n";
    let cases = [
        (LONG, vec![(LONG, format!("{one}\n{by}"))]),
        ("src/other.c", vec![(LONG, one.to_string()), ("src/other.c", long("int words_long(int at)"))]),
    ];
    for (file, upstream) in cases {
        let patch = |folder: &Path| edit(folder, LONG, "step_3(at)", "step_3(at, 3)");
        let moving = Move::with_base(write(&base), patch, write(&upstream));
        let project = &moving.project;
        commit_project(project);
        moving.rebase(&[]).code(4);
        write(&upstream)(&moving.work());
        edit(&moving.work(), file, "step_3(at)", "step_3(at, 3)");
        git::git(&moving.work(), &["add", "--all"]);
        moving.run(&["--continue", "--allow-edits"]).success();
        let stdout = prove(project, &["HEAD", "--long"]).success().stdout;
        assert!(stdout.contains("context only  0001-change-something.patch"), "{stdout}");
        assert!(
            stdout.contains("upstream has moved the function\n  on the old base it is in src/long.c:5"),
            "{stdout}"
        );
        commit_files(project, &["--message", "Move the pin"]);
        refresh_last_patch(project, |folder| edit(folder, file, "    step_7(at);\n", ""));
        let stdout = prove(project, &["HEAD~1", "."]).code(1).stdout;
        assert!(stdout.contains(&format!("lost-upstream-line: {file}:")), "{stdout}");
        assert!(stdout.contains("not proved: 1 difference\n"), "{stdout}");
    }
}
