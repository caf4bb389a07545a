//! A project in which `child` extends `paged` and `grandchild` extends `child`, each with its own series.

use std::path::PathBuf;

use super::editing::{edit_folder, extend};
use super::moving::without_conflicts;
use super::{Output, Project, files, git};

/// The patches of `child`: the first changes a file that no other variant changes.
pub const CHILD: [&str; 2] =
    ["patches/child/0001-ring-for-negative-positions.patch", "patches/child/0002-greet-all.patch"];
/// The patch of `grandchild`.
pub const GRANDCHILD: &str = "patches/grandchild/0001-greet-below-zero.patch";

/// The project, with an up-to-date lock.
pub struct Stacked {
    pub project: Project,
}

impl Stacked {
    /// Creates the project with `grandchild`.
    pub fn new() -> Stacked {
        let stacked = Stacked::without_grandchild();
        extend(&stacked.project, "grandchild", "child");
        stacked.change("grandchild", "src/greet.c", ("kind == 0", "kind <= 0"), "Greet below zero");
        stacked.export("grandchild", &[]).success();
        stacked
    }

    /// Creates the project without it.
    pub fn without_grandchild() -> Stacked {
        let stacked = Stacked { project: Project::new() };
        extend(&stacked.project, "child", "paged");
        let more = "Ring for negative positions";
        stacked.change("child", "src/ring.c", ("at % size", "(at + size) % size"), more);
        stacked.change("child", "src/greet.c", ("day to you", "day to you all"), "Greet all");
        stacked.export("child", &[]).success();
        stacked.project.run(&["lock"]).success();
        stacked
    }

    /// Replaces one text in the edit repository of `variant` and commits.
    pub fn change(&self, variant: &str, file: &str, (from, to): (&str, &str), message: &str) {
        let output = self.project.run(&["edit", variant]);
        assert!(output.code == Some(0) || output.stderr.contains("commits that are in no patch"), "{output}");
        let folder = edit_folder(&self.project, variant);
        files::edit(&folder.join(file), from, to);
        git::commit(&folder, message);
    }

    /// Makes a change of `paged` that does not conflict with the patches of `child`, and exports it with the arguments
    /// `more`.
    pub fn comment_parent(&self, more: &[&str]) -> Output {
        self.change("paged", "src/greet.c", ("said first.", "said first of all."), "Say more");
        self.export("paged", more)
    }

    /// Makes a change of `paged` that conflicts with the second patch of `child`, and exports it.
    pub fn turn_parent(&self) -> Output {
        self.change("paged", "src/greet.c", ("good day", "good evening"), "Greet in the evening");
        self.export("paged", &[])
    }

    /// Makes the same change in the last commit of `paged`: no patch produces the tree any more that `child` was made
    /// for.
    pub fn amend_parent(&self) -> Output {
        self.change("paged", "src/greet.c", ("good day", "good evening"), "Greet in the evening");
        let folder = edit_folder(&self.project, "paged");
        git::git(&folder, &["reset", "--quiet", "--soft", "HEAD~1"]);
        git::git(&folder, &["commit", "--quiet", "--amend", "--no-edit"]);
        self.export("paged", &[])
    }

    /// Removes the last commit of `paged`, and exports.
    pub fn revert_parent(&self) -> Output {
        self.project.run(&["edit", "paged"]).success();
        git::git(&edit_folder(&self.project, "paged"), &["reset", "--quiet", "--hard", "HEAD~1"]);
        self.export("paged", &[])
    }

    pub fn export(&self, variant: &str, more: &[&str]) -> Output {
        self.project.run(&[&["export", variant], more].concat())
    }

    pub fn rebase(&self, more: &[&str]) -> Output {
        self.project.run(&[&["rebase", "--variant", "child"], more].concat())
    }

    /// Returns the work tree of a conflict.
    pub fn work(&self) -> PathBuf {
        self.project.path("target/espalier/rebase/hello/work")
    }

    /// Resolves the conflict of `turn_parent`.
    pub fn solve(&self) {
        let text = std::fs::read_to_string(self.work().join("src/greet.c")).unwrap();
        let solved = without_conflicts(&text, "    return \"good evening to you all\";\n");
        files::write(&self.work().join("src/greet.c"), solved);
        git::git(&self.work(), &["add", "src/greet.c"]);
    }

    /// Returns everything that a user commits.
    pub fn committed(&self) -> Vec<(String, String)> {
        let mut paths = files::list(self.project.root());
        paths.retain(|path| !path.starts_with("target/") && !path.starts_with(".git/"));
        paths.into_iter().map(|path| (path.clone(), self.project.read(&path))).collect()
    }

    /// Asserts that every series applies, that the lock is up to date, and that nothing is in progress.
    #[track_caller]
    pub fn assert_settled(&self) {
        self.project.run(&["--locked", "--offline", "lock", "--check"]).success();
        assert_eq!(self.project.scratch(), [""; 0]);
        for name in ["pending", "rebase/hello"] {
            assert!(!self.project.path("target/espalier").join(name).exists(), "{name}");
        }
    }

    /// Returns `src/greet.c` of `variant`.
    pub fn greeting_of(&self, variant: &str) -> String {
        self.project.run(&["apply", "--variant", variant]).success();
        std::fs::read_to_string(self.project.tree(variant).join("src/greet.c")).unwrap()
    }
}
