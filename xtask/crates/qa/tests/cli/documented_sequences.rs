//! Documented commands that continue what another one began, undo it, or need a repository of the reader's: run in
//! sequence on this repository's own pins and patches, as the pages say.

use std::collections::BTreeSet;
use std::path::Path;

use super::documented_commands::{HOW, How, documented, name, words};
use super::support::own_copy::OwnCopy;
use super::support::{files, git};

/// One step of a sequence.
enum Step {
    /// A documented command, as it is; it has to succeed.
    Runs(&'static str),
    /// A documented command, the same with something replaced or added, and its exit code.
    RunsAs(&'static str, &'static str, i32),
    /// Work that a page describes in words, or as commands of git.
    Does(fn(&OwnCopy)),
}

use Step::{Does, Runs, RunsAs};

const SEQUENCES: [&[Step]; 5] = [&CANARY, &EDIT_A_PATCH, &NEW_PATCH, &PATCH_OF_A_PARENT, &IMPORT];

/// docs/guides/canary.md, at the present pin instead of the newest upstream commit, and without the builds.
const CANARY: [Step; 5] = [
    RunsAs("canary --until status --tip v0.7.0", "canary --until status --tip PIN", 0),
    RunsAs("canary", "canary --dry-run", 0),
    RunsAs("canary --until contract", "canary --until contract --dry-run", 0),
    RunsAs(
        "canary --html canary.html --report canary.md",
        "canary --html canary.html --report canary.md --until status --tip PIN",
        0,
    ),
    RunsAs("canary --github", "canary --github --dry-run", 0),
];

/// docs/guides/conflicts.md and move-the-pin.md: the rebase stops at the patch, with exit code 4.
const EDIT_A_PATCH: [Step; 4] = [
    RunsAs("rebase --edit 5", "rebase --edit 5", 4),
    Runs("prove --rebase"),
    Runs("rebase --continue"),
    Does(assert_unchanged),
];

/// CONTRIBUTING.md and docs/guides/change-a-patch.md.
const NEW_PATCH: [Step; 9] = [
    Runs("new \"server: log the size of the queue\""),
    Does(|copy| commit_a_change(&copy.edit_folder("paged"))),
    RunsAs("export", "export --dry-run", 0),
    Does(assert_unchanged),
    Runs("export"),
    Runs("lint"),
    Runs("undo --dry-run"),
    Runs("undo"),
    Does(assert_unchanged),
];

/// docs/guides/change-a-patch.md: `paged` is rebased onto the series that it extends.
const PATCH_OF_A_PARENT: [Step; 5] = [
    Runs("edit server-fixes"),
    Does(|copy| commit_a_change(&copy.edit_folder("server-fixes"))),
    Runs("export server-fixes"),
    Runs("undo"),
    Does(assert_unchanged),
];

/// docs/guides/import-a-fork.md: beside the variants of this repository, and in projects of their own.
const IMPORT: [Step; 18] = [
    Does(make_a_fork),
    Runs("import --from ../my-llama.cpp upstream/master..main --variant my-fork --upstream llama.cpp"),
    Runs("status --variant my-fork"),
    Runs("apply --variant my-fork"),
    // The trailers are to be filled in.
    RunsAs("lint", "lint", 1),
    Runs("trailers my-fork --set 'Upstream-Status: Pending' --set 'Drop-when: upstream has it'"),
    Runs("trailers my-fork --set 'Verified-by: cargo xtask gate' --set 'Numerics: identical'"),
    Runs("trailers my-fork --patch 7 --set 'Numerics: bounded 1e-5' --overwrite"),
    Runs("lint"),
    Runs("edit my-fork"),
    Runs("export my-fork"),
    Does(continue_the_fork),
    Runs("import more-patches --append --variant my-fork"),
    Does(|copy| std::fs::create_dir(copy.beside("my-fork")).unwrap()),
    RunsAs(
        "--root ../my-fork init --from https://github.com/ggml-org/llama.cpp --at b9842 --variant my-fork",
        "--root ../my-fork init --from ../my-llama.cpp --at upstream/master --variant my-fork",
        0,
    ),
    Runs("--root ../my-fork import ../my-patches"),
    Does(|copy| std::fs::create_dir(copy.beside("my-project")).unwrap()),
    Runs("--root ../my-project import --from ../my-llama.cpp upstream/master..main --variant my-fork"),
];

impl Step {
    /// Returns the words of the command as it is documented.
    fn documented(&self) -> Option<Vec<String>> {
        match self {
            Runs(documented) | RunsAs(documented, ..) => Some(words(documented)),
            Does(_) => None,
        }
    }

    fn run(&self, copy: &OwnCopy) {
        let (command, code) = match self {
            Runs(command) => (command, 0),
            RunsAs(_, command, code) => (command, *code),
            Does(work) => return work(copy),
        };
        let pin = OwnCopy::pin();
        let words = words(command);
        let words: Vec<&str> = words.iter().map(|word| if word == "PIN" { &*pin } else { &**word }).collect();
        let output = copy.run(&words);
        assert_eq!(output.code, Some(code), "cargo xtask {command}\n{output}");
    }
}

fn steps() -> impl Iterator<Item = &'static Step> {
    SEQUENCES.into_iter().flatten()
}

fn assert_unchanged(copy: &OwnCopy) {
    assert_eq!(copy.kept(), "");
}

/// Commits a change of the server with a complete message.
fn commit_a_change(repository: &Path) {
    const FILE: &str = "tools/server/server.cpp";
    const MESSAGE: &str = "server: log the size of the queue\n\nUpstream-Status: Inappropriate an example\n\
                           Drop-when: never\nVerified-by: cargo xtask gate\nNumerics: identical\n";
    let path = repository.join(FILE);
    let source = std::fs::read_to_string(&path).unwrap();
    files::write(&path, source + "// The log has the size of the queue.\n");
    git::git(repository, &["add", "--", FILE]);
    git::git(repository, &["commit", "--quiet", "--message", MESSAGE]);
}

/// Makes a fork of the pinned tree with seven commits, and its patches as files.
fn make_a_fork(copy: &OwnCopy) {
    let fork = copy.beside("my-llama.cpp");
    git::init(&fork);
    let objects = copy.root().join("target/espalier/store.git/objects");
    files::write(&fork.join(".git/objects/info/alternates"), format!("{}\n", objects.display()));
    let base = git::git(&fork, &["commit-tree", &OwnCopy::pin_tree(), "-m", "Upstream"]);
    for name in ["refs/remotes/upstream/master", "refs/heads/main"] {
        git::git(&fork, &["update-ref", name, &base]);
    }
    git::git(&fork, &["read-tree", "main"]);
    (1..=7).for_each(|number| add_a_commit(&fork, number));
    git::git(&fork, &["format-patch", "--quiet", "-o", "../my-patches", "upstream/master..main"]);
}

/// Commits one more file; the others are in the index only.
fn add_a_commit(fork: &Path, number: usize) {
    let file = format!("src/fork-{number}.h");
    files::write(&fork.join(&file), format!("// Part {number} of the fork.\n"));
    git::git(fork, &["update-index", "--add", &file]);
    git::git(fork, &["commit", "--quiet", "--message", &format!("src: add part {number} of the fork")]);
}

/// Adds a commit to the fork, and its patch to the folder that the page names.
fn continue_the_fork(copy: &OwnCopy) {
    let (fork, folder) = (copy.beside("my-llama.cpp"), copy.root().join("more-patches"));
    add_a_commit(&fork, 8);
    git::git(&fork, &["format-patch", "--quiet", "-o", folder.to_str().unwrap(), "main~1..main"]);
}

#[test]
fn documented_sequences_run_on_this_repository() {
    let copy = OwnCopy::new();
    steps().for_each(|step| step.run(&copy));
}

#[test]
fn sequences_have_the_commands_of_the_pages_and_all_that_are_left_to_them() {
    let run: BTreeSet<Vec<String>> = steps().filter_map(Step::documented).collect();
    let documented = documented();
    for words in &run {
        let is_shown = documented.iter().any(|(_, shown)| shown == words);
        assert!(is_shown, "no page has `cargo xtask {}` any more", words.join(" "));
    }
    for (page, words) in &documented {
        let is_left = |(known, how): &(&str, How)| *known == name(words) && matches!(how, How::InSequence);
        if HOW.iter().any(is_left) {
            assert!(run.contains(words), "{page}: cargo xtask {}: add it to a sequence", words.join(" "));
        }
    }
}
