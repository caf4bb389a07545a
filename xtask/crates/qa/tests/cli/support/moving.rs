//! A project, and an upstream with newer commits than its pin.

use std::path::{Path, PathBuf};

use super::{
    Output, Project,
    editing::{commit_files, commit_project},
    files, git,
    upstream::{TAG, Upstream},
};

/// A project and a newer upstream beside it.
pub struct Move {
    pub project: Project,
    pub upstream: PathBuf,
}

pub const TIP: &str = "v2.0";

/// The first lines of standard error in a move to `TIP`: its fetches. The pin is fetched once.
pub const FETCHES: [&str; 3] = [
    "    Fetching hello v1.0 from path [UPSTREAM]",
    "    Fetching hello v2.0 from path [BESIDE]/newer",
    "     Reading 1 commit of hello since v1.0",
];

/// The last lines of standard error when a patch does not apply.
pub const STOP_HINTS: [&str; 5] = [
    "  described for people and programs in target/espalier/rebase/hello/conflict",
    "  next: git -C target/espalier/rebase/hello/work status    # git diff and git mergetool work there too",
    "  next: resolve it, `git add` the files, then: cargo xtask rebase --continue",
    "  next: or drop this patch: cargo xtask rebase --skip",
    "  next: or abort the rebase; nothing has changed: cargo xtask rebase --abort",
];

/// The last lines of standard output after a move of the pin.
pub const MOVE_HINTS: [&str; 3] = [
    "next: cargo xtask prove HEAD    # what each patch changes, compared with the last commit",
    "next: cargo xtask sync --since HEAD    # all checks, with builds and gates, and the report of the move",
    "next: cargo xtask undo    # if the move was a mistake; before any other change",
];

impl Move {
    /// Creates the usual project, and an upstream that made `change` since the pin.
    pub fn new(change: impl Fn(&Path)) -> Move {
        Move::of(Project::new(), change)
    }

    /// Does the same, and moves the pin without a conflict. There is a commit before the move and one after it.
    pub fn moved(change: impl Fn(&Path)) -> Move {
        let moving = Move::new(change);
        commit_project(&moving.project);
        moving.rebase(&[]).success();
        commit_files(&moving.project, &["--message", "Move the pin"]);
        moving
    }

    /// As [`Move::new`], for the given project.
    pub fn of(project: Project, change: impl Fn(&Path)) -> Move {
        let fork = project.fork();
        Move::from_fork(project, &fork, change)
    }

    /// Creates a project with one patch, which makes `patch`, and an upstream that made `change`.
    pub fn with_patch(patch: impl Fn(&Path), change: impl Fn(&Path)) -> Move {
        let project = Project::new();
        project.take_patch(patch);
        Move::of(project, change)
    }

    /// Does the same with a separate pin, which is the usual one plus `base`.
    pub fn with_base(base: impl Fn(&Path), patch: impl Fn(&Path), change: impl Fn(&Path)) -> Move {
        let project = Project::new();
        let (pinned, fork) = (project.beside("pinned"), project.fork());
        git::git(&fork, &["checkout", "--quiet", "--force", "-B", "main", TAG]);
        base(&fork);
        git::commit(&fork, "Begin");
        git::git(&fork, &["tag", "--force", TAG]);
        files::copy_folder(&fork, &pinned);
        let shared = Upstream::shared();
        let pins = project.read("pins.toml").replace(&shared.tree(), &git::tree_of(&fork, TAG));
        let path = shared.repository();
        project.write("pins.toml", pins.replace(path.to_str().unwrap(), pinned.to_str().unwrap()));
        patch(&fork);
        git::commit(&fork, "Change something");
        project.take_series(&fork);
        std::fs::remove_dir_all(&fork).unwrap();
        files::copy_folder(&pinned, &fork);
        Move::from_fork(project, &fork, change)
    }

    /// Builds a project from its upstream at `fork`, which then makes `change`.
    fn from_fork(project: Project, fork: &Path, change: impl Fn(&Path)) -> Move {
        let upstream = project.beside("newer");
        std::fs::rename(fork, &upstream).unwrap();
        git::git(&upstream, &["checkout", "--quiet", "--force", "--detach", TAG]);
        change(&upstream);
        git::commit(&upstream, "Change upstream");
        git::git(&upstream, &["tag", TIP]);
        Move { project, upstream }
    }

    pub fn rebase(&self, more: &[&str]) -> Output {
        let from = self.upstream.to_str().unwrap();
        self.run(&[&["--to", TIP, "--from", from], more].concat())
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.project.run(&[&["rebase"], arguments].concat())
    }

    /// Returns the work tree of a conflict.
    pub fn work(&self) -> PathBuf {
        self.project.path("target/espalier/rebase/hello/work")
    }

    /// Resolves the conflict of `src/greet.c`: writes `text`, and stages the file.
    pub fn solve(&self, text: impl AsRef<[u8]>) {
        files::write(&self.work().join("src/greet.c"), text);
        git::git(&self.work(), &["add", "src/greet.c"]);
    }

    /// Returns the description of the conflict for people.
    pub fn readme(&self) -> String {
        self.project.read("target/espalier/rebase/hello/conflict/README.md")
    }

    /// Returns the description of the conflict for programs.
    pub fn package(&self) -> serde_json::Value {
        let text = self.project.read("target/espalier/rebase/hello/conflict/conflict.json");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// Resolves every conflict of `file` with `text`, and stages the file. A file without markers is staged as it is.
    pub fn solve_in(&self, file: &str, text: &str) {
        let path = self.work().join(file);
        let marked = std::fs::read_to_string(&path).unwrap();
        files::write(&path, without_conflicts(&marked, text));
        git::git(&self.work(), &["add", file]);
    }

    pub fn tip_tree(&self) -> String {
        git::tree_of(&self.upstream, TIP)
    }

    /// Returns everything that a user commits.
    pub fn committed(&self) -> Vec<(String, String)> {
        let mut paths = files::list(self.project.root());
        paths.retain(|path| !path.starts_with("target/"));
        paths.into_iter().map(|path| (path.clone(), self.project.read(&path))).collect()
    }

    /// Asserts that pins, lock and series are consistent, and that the series is exact on the new pin.
    pub fn assert_moved(&self) {
        let pins = self.project.read("pins.toml");
        assert!(pins.contains(&format!("tag = \"{TIP}\"")) && pins.contains(&self.tip_tree()), "{pins}");
        self.project.run(&["--locked", "--offline", "lock", "--check"]).success();
        assert_eq!(self.project.scratch(), [""; 0]);
        for name in ["pending", "rebase/hello"] {
            assert!(!self.project.path("target/espalier").join(name).exists(), "{name}");
        }
    }
}

/// Returns `marked` with `text` in place of each conflict.
pub fn without_conflicts(marked: &str, text: &str) -> String {
    let mut parts = marked.split("<<<<<<< ");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |done, part| {
        let (_, after) = part.split_once(">>>>>>> ").unwrap();
        done + text + after.split_once('\n').unwrap().1
    })
}

/// Inserts two lines at the top of `path`.
pub fn above_everything(path: &str) -> impl Fn(&Path) {
    move |folder: &Path| {
        let path = folder.join(path);
        let text = std::fs::read_to_string(&path).unwrap();
        files::write(&path, format!("// A new first line.\n// And another one.\n{text}"));
    }
}

pub fn upstream_greets_otherwise(folder: &Path) {
    files::edit(&folder.join("src/greet.c"), "return \"hello\";", "return \"hi\";");
    files::edit(&folder.join("src/add.c"), "left + right", "right + left");
}

/// Returns `src/greet.c` of the newer upstream, with another greeting.
pub fn greet(words: &str) -> String {
    format!(
        "#include \"words.h\"\n\n// What is said first.\nconst char * words_greeting(int kind) {{\n    \
         if (kind == 0) {{\n        return \"{words}\";\n    }}\n    return \"good day to you\";\n}}\n"
    )
}
