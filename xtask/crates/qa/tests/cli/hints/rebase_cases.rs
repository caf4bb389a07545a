//! Hints before, during and after a move of the pin.

use super::super::support::moving::greet;
use super::super::support::upstream::moved as moved_upstream;
use super::super::support::{Project, files, git};
use super::makers::{
    ABOUT, GREETING_GOES, clone_with_stale_child, committed, elsewhere, project_by_git, syncs_badly, waiting,
    waiting_before_a_part, with_child, with_stale_child,
};
use super::{HintCase, HintPlace};

pub const CASES: &[HintCase] = &[
    HintCase {
        name: "a dry run of a rebase",
        make: || project_by_git(&[GREETING_GOES]),
        command: "rebase --to main --dry-run",
        place: HintPlace::Clone,
        hints: &[("cargo xtask rebase --to main", 4)],
    },
    HintCase {
        name: "a rebase that is done",
        make: || committed(project_by_git(&[ABOUT])),
        command: "rebase --to main",
        place: HintPlace::Here,
        hints: &[
            ("cargo xtask prove HEAD", 0),
            // The patches have no trailers, which lint refuses.
            ("cargo xtask sync --since HEAD", 1),
            ("cargo xtask undo", 0),
        ],
    },
    HintCase {
        name: "a move that does not hold",
        make: || {
            let project = committed(project_by_git(&[ABOUT]));
            project.run(&["rebase", "--to", "main"]).success();
            project
        },
        command: "sync --since HEAD",
        place: HintPlace::Here,
        hints: &[("cargo xtask edit", 0), ("cargo xtask undo", 0)],
    },
    HintCase {
        name: "a move that was not made",
        make: || committed(project_by_git(&[ABOUT])),
        command: "sync --since HEAD",
        place: HintPlace::Here,
        hints: &[("cargo xtask sync --to main --dry-run", 0)],
    },
    HintCase {
        name: "a rebase with a conflict that was resolved before",
        make: || {
            let project = waiting(&[GREETING_GOES], |work| {
                files::write(&work.join("src/greet.c"), greet("hi there"));
                git::git(work, &["add", "--all"]);
            });
            project.run(&["rebase", "--abort"]).success();
            project
        },
        command: "rebase --to main",
        place: HintPlace::Here,
        hints: &[
            ("git -C target/espalier/rebase/hello/work status", 0),
            ("cargo xtask rebase --continue", 4),
            ("git -C target/espalier/rebase/hello/work checkout automatic", 0),
            ("cargo xtask rebase --skip", 4),
            ("cargo xtask rebase --abort", 0),
        ],
    },
    HintCase {
        name: "a rebase with a conflict",
        make: || project_by_git(&[GREETING_GOES]),
        command: "rebase --to main",
        place: HintPlace::Here,
        hints: &[
            ("git -C target/espalier/rebase/hello/work status", 0),
            ("cargo xtask rebase --continue", 4),
            ("cargo xtask rebase --skip", 4),
            ("cargo xtask rebase --abort", 0),
        ],
    },
    HintCase {
        name: "a rebase while another one waits",
        make: || {
            let project = project_by_git(&[GREETING_GOES]);
            project.run(&["rebase", "--to", "main"]).code(4);
            project
        },
        command: "rebase --to main",
        place: HintPlace::Here,
        hints: &[("cargo xtask rebase --continue", 4), ("cargo xtask rebase --abort", 0)],
    },
    HintCase {
        name: "a rebase of a variant that is not the default one",
        make: || {
            let project = with_child();
            std::fs::rename(moved_upstream(&project, &[GREETING_GOES]), project.beside("it's elsewhere"))
                .unwrap();
            project
        },
        command: "rebase --variant child --to main --from \"../it's elsewhere\"",
        place: HintPlace::Here,
        hints: &[
            ("git -C target/espalier/rebase/hello/work status", 0),
            ("cargo xtask rebase --variant child --continue", 4),
            ("cargo xtask rebase --variant child --skip", 4),
            ("cargo xtask rebase --variant child --abort", 0),
        ],
    },
    HintCase {
        name: "a rebase of a child onto its parent",
        make: with_stale_child,
        command: "rebase --variant child",
        place: HintPlace::Here,
        hints: &[
            ("git -C target/espalier/rebase/hello/work status", 0),
            ("cargo xtask rebase --variant child --continue", 4),
            ("cargo xtask rebase --variant child --skip", 0),
            ("cargo xtask rebase --variant child --abort", 0),
        ],
    },
    HintCase {
        name: "a rebase of a child without the tree that it was made for",
        make: clone_with_stale_child,
        command: "rebase --variant child",
        place: HintPlace::Here,
        hints: &[
            ("git restore --staged --worktree --source=COMMIT patches/paged", 0),
            ("cargo xtask apply --check --variant child", 0),
            ("git restore --staged --worktree --source=HEAD patches/paged && cargo", 4),
        ],
    },
    HintCase {
        name: "a rebase without a target of a series that extends none",
        make: Project::new,
        command: "rebase",
        place: HintPlace::Clone,
        hints: &[("cargo xtask rebase --to REF --variant paged", 0)],
    },
    HintCase {
        name: "a rebase that was not begun",
        make: Project::new,
        command: "rebase --continue",
        place: HintPlace::Clone,
        hints: &[("cargo xtask rebase --to REF --variant paged", 0)],
    },
    HintCase {
        name: "a rebase with a marker that was left",
        make: || waiting(&[GREETING_GOES], |_| {}),
        command: "rebase --continue",
        place: HintPlace::Here,
        hints: &[("git -C target/espalier/rebase/hello/work add", 0), ("cargo xtask rebase --continue", 4)],
    },
    HintCase {
        name: "a rebase with a conflict that is not staged",
        make: || waiting(&[GREETING_GOES], |work| files::write(&work.join("src/greet.c"), "int greet;\n")),
        command: "rebase --continue",
        place: HintPlace::Here,
        hints: &[("git -C target/espalier/rebase/hello/work add", 0), ("cargo xtask rebase --continue", 4)],
    },
    HintCase {
        name: "a rebase with more that is not staged",
        make: || {
            waiting(&[GREETING_GOES], |work| {
                files::write(&work.join("src/greet.c"), "int greet;\n");
                git::git(work, &["add", "--all"]);
                files::write(&work.join("src/add.c"), "int add;\n");
            })
        },
        command: "rebase --continue",
        place: HintPlace::Here,
        hints: &[
            ("git -C target/espalier/rebase/hello/work restore", 0),
            ("cargo xtask rebase --continue", 4),
            ("git -C target/espalier/rebase/hello/work add", 4),
        ],
    },
    HintCase {
        name: "a rebase with an edit beside the conflict",
        make: || {
            waiting(&[GREETING_GOES], |work| {
                files::write(&work.join("src/greet.c"), greet("hi there"));
                files::edit(&work.join("src/add.c"), "left + right", "right + left");
                git::git(work, &["add", "--all"]);
            })
        },
        command: "rebase --continue",
        place: HintPlace::Here,
        hints: &[
            ("git -C target/espalier/rebase/hello/work checkout automatic", 0),
            ("cargo xtask rebase --continue", 4),
            ("cargo xtask rebase --continue --allow-edits", 4),
            ("cargo xtask edit", 0),
        ],
    },
    HintCase {
        name: "a rebase with a file to allow that has no edit",
        make: || {
            waiting(&[GREETING_GOES], |work| {
                files::write(&work.join("src/greet.c"), greet("hi there"));
                git::git(work, &["add", "--all"]);
            })
        },
        command: "rebase --continue --allow-edits src/add.c",
        place: HintPlace::Here,
        hints: &[("cargo xtask rebase --continue", 4)],
    },
    HintCase {
        name: "a rebase with a document that lint refuses",
        make: || {
            waiting(&[GREETING_GOES], |work| {
                files::write(&work.join("src/greet.c"), greet("hi there"));
                files::write(&work.join("docs/more.md"), "more\n");
                git::git(work, &["add", "--all"]);
            })
        },
        command: "rebase --continue --allow-edits",
        place: HintPlace::Here,
        hints: &[("cargo xtask rebase --continue", 4)],
    },
    HintCase {
        name: "a rebase that stops at a patch to edit it",
        make: || project_by_git(&[ABOUT]),
        command: "rebase --to main --edit 2",
        place: HintPlace::Here,
        hints: &[
            ("git -C target/espalier/rebase/hello/work status", 0),
            ("cargo xtask rebase --continue", 0),
            ("cargo xtask rebase --skip", 0),
            ("cargo xtask rebase --abort", 0),
        ],
    },
    HintCase {
        name: "a rebase that is past the patch to edit",
        make: || {
            let project = project_by_git(&[ABOUT]);
            project.run(&["rebase", "--to", "main", "--edit", "2"]).code(4);
            project
        },
        command: "rebase --continue --edit 1",
        place: HintPlace::Here,
        hints: &[("cargo xtask edit", 0)],
    },
    HintCase {
        name: "a rebase with nothing left",
        make: || {
            waiting(&[GREETING_GOES], |work| {
                git::git(work, &["checkout", "--quiet", "HEAD", "--", "src/greet.c"]);
            })
        },
        command: "rebase --continue",
        place: HintPlace::Here,
        hints: &[("cargo xtask rebase --skip", 4), ("cargo xtask rebase --continue", 4)],
    },
    HintCase {
        name: "a rebase of a series that was changed meanwhile",
        make: || {
            let project = waiting(&[GREETING_GOES], |_| {});
            project.edit("patches/paged/0002-say-what-is-counted.patch", "what is", "what was");
            project
        },
        command: "rebase --continue",
        place: HintPlace::Here,
        hints: &[("cargo xtask rebase --continue", 4), ("cargo xtask rebase --abort", 0)],
    },
    HintCase {
        name: "a rebase that meets what upstream has after a conflict",
        make: || {
            let count = ("Count", "src/count.c", "int count = 0;", "int count = 0; // words, not letters");
            waiting(&[GREETING_GOES, count], |work| {
                files::write(&work.join("src/greet.c"), greet("hi there"));
                git::git(work, &["add", "--all"]);
            })
        },
        command: "rebase --continue",
        place: HintPlace::Here,
        hints: &[("cargo xtask rebase --continue --drop-upstreamed", 4), ("cargo xtask rebase --abort", 0)],
    },
    HintCase {
        name: "a rebase that meets what upstream has in part after a conflict",
        make: waiting_before_a_part,
        command: "rebase --continue",
        place: HintPlace::Here,
        hints: &[
            ("cargo xtask rebase --continue --trim-upstreamed", 0),
            ("cargo xtask rebase --continue --edit-upstreamed", 4),
            ("cargo xtask rebase --abort", 0),
        ],
    },
    HintCase {
        name: "a rebase that meets what upstream has",
        make: || {
            elsewhere(&[("Count", "src/count.c", "int count = 0;", "int count = 0; // words, not letters")])
        },
        command: "rebase --to main --from \"../it's elsewhere\"",
        place: HintPlace::Clone,
        hints: &[("cargo xtask rebase --to main", 0)],
    },
    HintCase {
        name: "a rebase whose record is damaged",
        make: || {
            let project = waiting(&[GREETING_GOES], |_| {});
            project.write("target/espalier/rebase/hello/state.json", "none");
            project
        },
        command: "rebase --continue",
        place: HintPlace::Here,
        hints: &[("cargo xtask rebase --abort", 0)],
    },
    HintCase {
        name: "a rebase whose work tree is gone",
        make: || {
            let project = waiting(&[GREETING_GOES], |_| {});
            std::fs::remove_dir_all(project.path("target/espalier/rebase/hello/work")).unwrap();
            project
        },
        command: "rebase --continue",
        place: HintPlace::Here,
        hints: &[("cargo xtask rebase --abort", 0)],
    },
    HintCase {
        name: "a rebase whose work tree is damaged",
        make: || {
            let project =
                waiting(&[GREETING_GOES], |work| files::write(&work.join("src/greet.c"), "int greet;\n"));
            project.write("target/espalier/rebase/hello/work/.git/index", "none");
            project
        },
        command: "rebase --continue",
        place: HintPlace::Here,
        hints: &[("cargo xtask rebase --abort", 0)],
    },
    HintCase {
        name: "a sync that does not pass",
        make: syncs_badly,
        command: "sync --variant child --to v2.0",
        place: HintPlace::Clone,
        hints: &[("cargo xtask edit child", 0), ("cargo xtask rebase --to v2.0 --variant child", 0)],
    },
];
