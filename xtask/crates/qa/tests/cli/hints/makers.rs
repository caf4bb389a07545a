//! The initial projects of the scenarios.

use std::path::Path;

pub use super::super::support::editing::with_child;
use super::super::support::editing::{commit_project, edit_folder, parent_goes_on, refresh_last_patch};
use super::super::support::importing::{self, empty_project};
use super::super::support::moving::{Move, above_everything, greet};
use super::super::support::upstream::moved as moved_upstream;
use super::super::support::upstream::{TAG, Upstream};
use super::super::support::{Project, Source, files, git, syncing};

pub const ABOUT: (&str, &str, &str, &str) = ("About", "README.md", "Hello", "Hello!");
pub const GREETING_GOES: (&str, &str, &str, &str) =
    ("Say hi", "src/greet.c", "return \"hello\";", "return \"hi\";");

/// Creates a project whose upstream is served by git, and has newer commits.
pub fn project_by_git(moves: &[(&str, &str, &str, &str)]) -> Project {
    let project = Project::with_sources(&[Source::Path("../moved".into())]);
    let upstream = moved_upstream(&project, moves);
    project.edit("pins.toml", "path = \"../moved\"", &format!("git = \"file://{}\"", upstream.display()));
    project
}

/// Creates a project whose newer upstream commits are in a repository that `pins.toml` does not name.
pub fn elsewhere(moves: &[(&str, &str, &str, &str)]) -> Project {
    let project = Project::new();
    let upstream = moved_upstream(&project, moves);
    std::fs::rename(upstream, project.beside("it's elsewhere")).unwrap();
    project
}

/// Creates a project whose pin was moved, and whose last patch deletes a line of upstream since.
pub fn with_lost_line() -> Project {
    let Move { project, .. } = Move::moved(above_everything("src/greet.c"));
    refresh_last_patch(&project, |folder| {
        files::edit(&folder.join("src/greet.c"), "// And another one.\n", "");
    });
    project
}

/// Commits the project, with an updated lock.
pub fn committed(project: Project) -> Project {
    commit_project(&project);
    project
}

pub fn edited() -> Project {
    let project = Project::new();
    project.run(&["lock"]).success();
    project.run(&["edit"]).success();
    files::write(&project.path("target/espalier/edit/paged/src/more.c"), "int more;\n");
    project
}

/// Creates a project with a new edit repository, in which `change` was made.
pub fn with_work(change: fn(&Path)) -> Project {
    let project = Project::new();
    project.run(&["lock"]).success();
    project.run(&["edit"]).success();
    change(&edit_folder(&project, "paged"));
    project
}

/// `with_child`, committed; a commit in the edit repository of `child` is in no patch yet, and `paged` has got a new
/// patch since.
pub fn parent_went_on() -> Project {
    let project = with_child();
    commit_project(&project);
    parent_goes_on(&project);
    project
}

/// The same after a change of `paged` that conflicts with the patch of `child`.
pub fn with_stale_child() -> Project {
    let project = with_child();
    change_parent(&project);
    project
}

/// The same in a clone, whose store does not have the tree that `child` was made for.
pub fn clone_with_stale_child() -> Project {
    let project = with_child();
    project.fresh_clone("before");
    change_parent(&project);
    project.fresh_clone("after")
}

fn change_parent(project: &Project) {
    project.run(&["edit"]).success();
    let folder = edit_folder(project, "paged");
    files::edit(&folder.join("src/greet.c"), "dear\"", "friend\"");
    git::git(&folder, &["commit", "--quiet", "--all", "--amend", "--no-edit"]);
    project.run(&["export"]).success();
}

/// Creates a variant on top of `paged` whose overlay has a file that a commit of `paged` adds.
pub fn with_overlay_in_the_way() -> Project {
    let project = Project::new();
    let pins = project.read("pins.toml");
    let extra = "\n[variants.extra]\nextends = \"paged\"\noverlays = [\"overlay/more\"]\n";
    project.write("pins.toml", pins + extra);
    project.write("overlay/more/src/new.c", "int of_the_overlay;\n");
    project.run(&["lock"]).success();
    project.run(&["edit"]).success();
    let folder = edit_folder(&project, "paged");
    files::write(&folder.join("src/new.c"), "int of_the_patch;\n");
    git::commit(&folder, "Add a file");
    project
}

/// Creates a project with `my`, which has no patches; beside it are patches written by git.
pub fn started() -> Project {
    with_patches_beside(importing::started())
}

/// Writes the fork's commits with `git format-patch` into `patches` beside the project.
pub fn with_patches_beside(project: Project) -> Project {
    let folder = project.beside("patches");
    git::git(&Upstream::shared().fork(), &["format-patch", "--quiet", "-o", folder.to_str().unwrap(), TAG]);
    project
}

/// Creates `my` without patches. Beside it is a port with two patches; the pin has the change of the first one.
pub fn with_port_that_is_there() -> Project {
    let project = importing::started();
    let write = |name: &str, text: &str| files::write(&project.beside("port").join(name), text);
    let change = |from: &str, to: &str| {
        format!(
            "Description: name them\nAuthor: A <a@example.org>\n\n--- a/src/name.c\n+++ b/src/name.c\n@@ -3,3 +3,3 @@\n \
             const char * words_name(void) {{\n-    return \"{from}\";\n+    return \"{to}\";\n }}\n"
        )
    };
    write("PKGBUILD", "prepare() {\n  patch -p1 -i ../there.patch\n  patch -p1 -i ../new.patch\n}\n");
    write("there.patch", &change("people", "world"));
    write("new.patch", &change("world", "people"));
    project
}

/// Creates `my` without patches. Beside it is a port that applies one patch, and edits another file.
pub fn with_port_that_edits() -> Project {
    let project = with_port_that_is_there();
    let recipe = "prepare() {\n  patch -p1 -i ../new.patch\n  sed -i s/a/b/ src/add.c\n}\n";
    files::write(&project.beside("port/PKGBUILD"), recipe);
    project
}

/// Creates an empty folder with a fork beside it.
pub fn with_fork() -> Project {
    let project = empty_project();
    importing::fork(&project);
    project
}

/// Creates a fork beside the project into which it was imported, with newer commits; its tag `imported` marks the last
/// imported one.
pub fn fork_that_went_on() -> Project {
    let project = empty_project();
    let fork = importing::fork(&project);
    let mut import =
        vec!["import", "--from", fork.to_str().unwrap(), "upstream/main..main", "--variant", "my"];
    import.extend(importing::NOT_SAID.iter().flat_map(|path| ["--leave-out", path]));
    project.run(&import).success();
    git::git(&fork, &["tag", "imported"]);
    files::edit(&fork.join("src/name.c"), "\"people\"", "\"everybody\"");
    git::commit(&fork, "Name everybody");
    project
}

/// Creates a project with a series, and a fork beside it.
pub fn fork_and_series() -> Project {
    let project = Project::new();
    importing::fork(&project);
    project
}

/// Creates a rebase that stopped at the conflict of the first patch, with `work` done in its work tree.
pub fn waiting(moves: &[(&str, &str, &str, &str)], work: impl Fn(&Path)) -> Project {
    let project = project_by_git(moves);
    project.run(&["rebase", "--to", "main"]).code(4);
    work(&project.path("target/espalier/rebase/hello/work"));
    project
}

/// Creates a rebase with a resolved conflict, followed by a patch that upstream has in part.
pub fn waiting_before_a_part() -> Project {
    let count = ("Count", "src/count.c", "int count = 0;", "int count = 0; // words, not letters");
    let project = project_by_git(&[GREETING_GOES, count]);
    let fork = project.fork();
    git::git(&fork, &["reset", "--quiet", "--hard", TAG]);
    files::edit(&fork.join("src/greet.c"), "hello", "hello, dear");
    git::commit(&fork, "Greet dearly");
    files::edit(&fork.join("src/count.c"), "int count = 0;", "int count = 0; // words, not letters");
    files::edit(&fork.join("src/count.c"), "    return count;", "    return count - 1;");
    git::commit(&fork, "Count less");
    project.take_series(&fork);
    project.run(&["rebase", "--to", "main"]).code(4);
    let work = project.path("target/espalier/rebase/hello/work");
    files::write(&work.join("src/greet.c"), greet("hi, dear"));
    git::git(&work, &["add", "--all"]);
    project
}

/// Creates a `v2.0` on which the series applies but does not compile, and a variant on top.
pub fn syncs_badly() -> Project {
    let project = syncing::project(|upstream| {
        files::edit(&upstream.join("include/words.h"), "int words_ring(int at, int size);\n", "");
    });
    project.take_patch(|fork| {
        let with = "int (*ring)(int, int) = words_ring;\n\nint main";
        files::edit(&fork.join("programs/hello.c"), "int main", with);
    });
    let pins = project.read("pins.toml");
    let child = "\n[variants.child]\nextends = \"paged\"\npatches = \"patches/child\"\n";
    project.write("pins.toml", pins + child);
    syncing::finish_series(&project);
    project
}

/// Creates an empty folder with upstream and patches beside it.
pub fn with_patches_there() -> Project {
    let project = with_patches_beside(empty_project());
    files::copy_folder(&Upstream::shared().repository(), &project.beside("upstream"));
    project
}

/// Creates `my`, pinned to the tag, with a fork beside it that starts at a later commit.
pub fn fork_and_started() -> Project {
    let project = started();
    importing::fork(&project);
    project
}

/// Creates `my`, whose folder contains patches with git's file names.
pub fn dropped_into(folder: &str) -> Project {
    let project = started();
    project.edit("pins.toml", "patches/my", folder);
    for name in files::list(&project.beside("patches")) {
        let target = project.path(folder).join(&name);
        files::write(&target, std::fs::read(project.beside("patches").join(&name)).unwrap());
    }
    project
}
