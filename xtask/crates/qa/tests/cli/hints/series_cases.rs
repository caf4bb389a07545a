//! Hints about the work on a series.

use super::super::support::{Project, files, git};
use super::makers::{
    edited, parent_went_on, with_child, with_lost_line, with_overlay_in_the_way, with_stale_child, with_work,
};
use super::{HintCase, HintPlace};

pub const CASES: &[HintCase] = &[
    HintCase {
        name: "a tree that a person changed",
        make: || {
            let project = Project::new();
            project.run(&["apply"]).success();
            files::write(&project.tree("paged").join("README.md"), "mine\n");
            project
        },
        command: "apply",
        place: HintPlace::Here,
        hints: &[("cargo xtask apply --variant paged --discard-edits", 0)],
    },
    HintCase {
        name: "edit over commits that were not exported",
        make: || {
            let project = edited();
            git::commit(&project.path("target/espalier/edit/paged"), "More");
            project
        },
        command: "edit",
        place: HintPlace::Here,
        hints: &[
            ("git -C target/espalier/edit/paged status", 0),
            ("cargo xtask export paged", 0),
            ("cargo xtask edit paged --discard", 0),
        ],
    },
    HintCase {
        name: "export of work that is not committed",
        make: edited,
        command: "export",
        place: HintPlace::Here,
        hints: &[
            ("git -C target/espalier/edit/paged add --all && git", 0),
            ("git -C target/espalier/edit/paged stash", 0),
        ],
    },
    HintCase {
        name: "export over a new patch of the parent",
        make: parent_went_on,
        command: "export child",
        place: HintPlace::Here,
        hints: &[("cargo xtask edit child", 4)],
    },
    HintCase {
        name: "edit over commits and a new patch of the parent",
        make: parent_went_on,
        command: "edit child",
        place: HintPlace::Here,
        hints: &[
            ("git -C target/espalier/edit/child status", 0),
            ("git -C target/espalier/edit/child rebase --onto espalier/edit/next", 0),
            ("cargo xtask export child", 0),
            ("cargo xtask edit child --discard", 0),
        ],
    },
    HintCase {
        name: "edit over everything that export does not keep",
        make: || {
            let project = edited();
            let folder = project.path("target/espalier/edit/paged");
            git::git(&folder, &["stash", "--include-untracked"]);
            git::git(&folder, &["branch", "mine"]);
            files::write(&folder.join("src/more.c"), "int much_more;\n");
            project
        },
        command: "edit",
        place: HintPlace::Here,
        hints: &[
            ("git -C target/espalier/edit/paged status", 0),
            ("git -C target/espalier/edit/paged add --all && git", 0),
            ("git -C target/espalier/edit/paged stash pop", 1),
            ("git -C target/espalier/edit/paged bundle create", 0),
            ("cargo xtask edit paged --discard", 0),
        ],
    },
    HintCase {
        name: "edit over a bisect",
        make: || with_work(|folder| drop(git::git(folder, &["bisect", "start", "HEAD", "HEAD~1"]))),
        command: "edit",
        place: HintPlace::Here,
        hints: &[
            ("git -C target/espalier/edit/paged status", 0),
            ("git -C target/espalier/edit/paged bisect reset", 0),
            ("git -C target/espalier/edit/paged bundle create", 0),
            ("cargo xtask edit paged --discard", 0),
        ],
    },
    HintCase {
        name: "edit over a repository with another work tree",
        make: || {
            let project = with_work(|folder| {
                drop(git::git(folder, &["worktree", "add", "--quiet", "--detach", "../../../../../linked"]))
            });
            std::fs::remove_file(project.path("patches/paged/0003-greet-dearly.patch")).unwrap();
            project
        },
        command: "edit",
        place: HintPlace::Here,
        hints: &[("git -C target/espalier/edit/paged worktree remove", 0)],
    },
    HintCase {
        name: "prove of a lost line",
        make: with_lost_line,
        command: "prove HEAD~1",
        place: HintPlace::Here,
        hints: &[("cargo xtask prove HEAD~1 . --write-intended", 1)],
    },
    HintCase {
        name: "entries for a lost line",
        make: with_lost_line,
        command: "prove HEAD~1 --write-intended",
        place: HintPlace::Here,
        // The entry has no reason yet.
        hints: &[("cargo xtask prove HEAD~1", 2)],
    },
    HintCase {
        name: "entries for a commit",
        make: with_lost_line,
        command: "prove HEAD~1 HEAD --write-intended",
        place: HintPlace::Here,
        hints: &[("cargo xtask prove HEAD~1 . --write-intended", 1)],
    },
    HintCase {
        name: "export without an edit repository",
        make: Project::new,
        command: "export",
        place: HintPlace::Clone,
        hints: &[("cargo xtask edit paged", 0)],
    },
    HintCase {
        name: "edit",
        make: Project::new,
        command: "edit",
        place: HintPlace::Here,
        hints: &[("git -C target/espalier/edit/paged rebase -i", 0), ("cargo xtask export paged", 0)],
    },
    HintCase {
        name: "new",
        make: Project::new,
        command: "new \"greet: say more\"",
        place: HintPlace::Here,
        hints: &[("git -C target/espalier/edit/paged add --all && git", 0), ("cargo xtask export paged", 0)],
    },
    HintCase {
        name: "undo",
        make: || {
            let project = Project::new();
            project.run(&["lock"]).success();
            project
        },
        command: "undo",
        place: HintPlace::Here,
        hints: &[("cargo xtask undo", 0)],
    },
    HintCase {
        name: "undo over a patch that was changed since",
        make: || {
            let project = Project::new();
            project.run(&["trailers", "--set", "Drop-when: upstream has it"]).success();
            project.edit("patches/paged/0001-greet-more-warmly.patch", "Greet more", "Greet much more");
            project
        },
        command: "undo",
        place: HintPlace::Here,
        hints: &[("mv patches/paged/0001-greet-more-warmly.patch", 0)],
    },
    HintCase {
        name: "edit of a variant without a series",
        make: Project::new,
        command: "edit stock",
        place: HintPlace::Clone,
        hints: &[("cargo xtask edit VARIANT", 0)],
    },
    HintCase {
        name: "edit over a repository that is none",
        make: || {
            let project = with_work(|_| {});
            std::fs::remove_dir_all(project.path("target/espalier/edit/paged/.git")).unwrap();
            project.write("target/espalier/edit/paged/.git", "none");
            project
        },
        command: "edit",
        place: HintPlace::Here,
        hints: &[("cargo xtask edit paged --discard", 0)],
    },
    HintCase {
        name: "export without refs",
        make: || with_work(|folder| drop(git::git(folder, &["update-ref", "-d", "refs/espalier/edit/base"]))),
        command: "export",
        place: HintPlace::Here,
        hints: &[("git -C target/espalier/edit/paged bundle", 0), ("cargo xtask edit paged --discard", 0)],
    },
    HintCase {
        name: "export on another branch",
        make: || with_work(|folder| drop(git::git(folder, &["switch", "--quiet", "--detach"]))),
        command: "export",
        place: HintPlace::Here,
        hints: &[("git -C target/espalier/edit/paged switch edit/paged", 0)],
    },
    HintCase {
        name: "export of a merge",
        make: || {
            with_work(|folder| {
                git::git(folder, &["switch", "--quiet", "--create", "side", "HEAD~1"]);
                files::write(&folder.join("src/more.c"), "int more;\n");
                git::commit(folder, "More");
                git::git(folder, &["switch", "--quiet", "edit/paged"]);
                git::git(folder, &["merge", "--quiet", "--no-edit", "side"]);
            })
        },
        command: "export",
        place: HintPlace::Here,
        hints: &[("git -C target/espalier/edit/paged rebase -i", 0)],
    },
    HintCase {
        name: "export of an empty commit",
        make: || {
            with_work(|folder| {
                drop(git::git(folder, &["commit", "--quiet", "--allow-empty", "-m", "Nothing"]))
            })
        },
        command: "export",
        place: HintPlace::Here,
        hints: &[("git -C target/espalier/edit/paged rebase -i", 0)],
    },
    HintCase {
        name: "export of a message that does not survive",
        make: || {
            with_work(|folder| {
                files::write(&folder.join("src/more.c"), "int more;\n");
                git::commit(folder, "More\n\n---\nand more");
            })
        },
        command: "export",
        place: HintPlace::Here,
        hints: &[("git -C target/espalier/edit/paged rebase -i", 0)],
    },
    HintCase {
        name: "export of a file that no patch can say",
        make: || {
            with_work(|folder| {
                files::write(&folder.join("src/a\tb.c"), "int more;\n");
                git::commit(folder, "More");
            })
        },
        command: "export",
        place: HintPlace::Here,
        hints: &[("git -C target/espalier/edit/paged rebase -i", 0)],
    },
    HintCase {
        name: "export over a series that changed since",
        make: || {
            let project = with_work(|_| {});
            std::fs::remove_file(project.path("patches/paged/0003-greet-dearly.patch")).unwrap();
            project
        },
        command: "export",
        place: HintPlace::Here,
        hints: &[("cargo xtask edit paged", 0)],
    },
    HintCase {
        name: "export of commits below the base",
        make: || {
            let project = with_child();
            let folder = project.path("target/espalier/edit/child");
            git::git(&folder, &["reset", "--quiet", "--hard", "espalier/edit/base~1"]);
            files::edit(&folder.join("src/add.c"), "left + right", "right + left");
            git::commit(&folder, "Add backwards");
            project
        },
        command: "export child",
        place: HintPlace::Here,
        hints: &[("cargo xtask edit paged", 0), ("git -C target/espalier/edit/child rebase --onto", 0)],
    },
    HintCase {
        name: "export of a parent on which its child does not stand any more",
        make: || {
            let project = with_child();
            project.run(&["edit"]).success();
            let folder = project.path("target/espalier/edit/paged");
            git::git(&folder, &["reset", "--quiet", "--hard", "espalier/edit/base"]);
            project
        },
        command: "export",
        place: HintPlace::Here,
        hints: &[("cargo xtask rebase --variant child", 4)],
    },
    HintCase {
        name: "export of a parent that has a file of its child's overlay",
        make: with_overlay_in_the_way,
        command: "export",
        place: HintPlace::Here,
        hints: &[("cargo xtask apply --check --variant extra", 1)],
    },
    HintCase {
        name: "status of a child whose parent has changed",
        make: with_stale_child,
        command: "status --variant child",
        place: HintPlace::Here,
        hints: &[("cargo xtask status --long --variant child", 1), ("cargo xtask rebase --variant child", 4)],
    },
    HintCase {
        name: "apply of a child whose parent has changed",
        make: with_stale_child,
        command: "apply --variant child",
        place: HintPlace::Here,
        hints: &[("cargo xtask rebase --variant child", 4)],
    },
];
