//! What is said about a series, and the work on it.

use super::super::support::{Project, files, git};
use super::makers::{dropped_into, edited, with_child, with_work};
use super::{Place, Scene};

pub const SCENES: &[Scene] = &[
    Scene {
        name: "a tree that a person changed",
        make: || {
            let project = Project::new();
            project.run(&["apply"]).success();
            files::write(&project.tree("paged").join("README.md"), "mine\n");
            project
        },
        command: "apply",
        place: Place::Here,
        hints: &[("cargo xtask apply --variant paged --discard-edits", 0)],
    },
    Scene {
        name: "edit over commits that were not exported",
        make: || {
            let project = edited();
            git::commit(&project.path("target/espalier/edit/paged"), "More");
            project
        },
        command: "edit",
        place: Place::Here,
        hints: &[
            ("cd target/espalier/edit/paged", 0),
            ("cargo xtask export paged", 0),
            ("cargo xtask edit paged --discard", 0),
        ],
    },
    Scene {
        name: "export of work that is not committed",
        make: edited,
        command: "export",
        place: Place::Here,
        hints: &[
            ("git -C target/espalier/edit/paged add --all && git", 0),
            ("git -C target/espalier/edit/paged stash", 0),
        ],
    },
    Scene {
        name: "export without an edit repository",
        make: Project::new,
        command: "export",
        place: Place::Clone,
        hints: &[("cargo xtask edit paged", 0)],
    },
    Scene {
        name: "edit",
        make: Project::new,
        command: "edit",
        place: Place::Here,
        hints: &[("cd target/espalier/edit/paged", 0), ("git rebase -i", 0), ("cargo xtask export paged", 0)],
    },
    Scene {
        name: "new",
        make: Project::new,
        command: "new \"greet: say more\"",
        place: Place::Here,
        hints: &[
            ("cd target/espalier/edit/paged", 0),
            ("git add --all && git", 0),
            ("cargo xtask export paged", 0),
        ],
    },
    Scene {
        name: "edit of a variant without a series",
        make: Project::new,
        command: "edit stock",
        place: Place::Clone,
        hints: &[("cargo xtask edit VARIANT", 0)],
    },
    Scene {
        name: "edit over a repository that is none",
        make: || {
            let project = with_work(|_| {});
            std::fs::remove_dir_all(project.path("target/espalier/edit/paged/.git")).unwrap();
            project.write("target/espalier/edit/paged/.git", "none");
            project
        },
        command: "edit",
        place: Place::Here,
        hints: &[("cargo xtask edit paged --discard", 0)],
    },
    Scene {
        name: "export without refs",
        make: || {
            with_work(|folder| drop(git::git(folder, &["update-ref", "-d", "refs/espalier/edit/border"])))
        },
        command: "export",
        place: Place::Here,
        hints: &[("git -C target/espalier/edit/paged bundle", 0), ("cargo xtask edit paged --discard", 0)],
    },
    Scene {
        name: "export on another branch",
        make: || with_work(|folder| drop(git::git(folder, &["switch", "--quiet", "--detach"]))),
        command: "export",
        place: Place::Here,
        hints: &[("git -C target/espalier/edit/paged switch edit/paged", 0)],
    },
    Scene {
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
        place: Place::Here,
        hints: &[("git -C target/espalier/edit/paged rebase -i", 0)],
    },
    Scene {
        name: "export of an empty commit",
        make: || {
            with_work(|folder| {
                drop(git::git(folder, &["commit", "--quiet", "--allow-empty", "-m", "Nothing"]))
            })
        },
        command: "export",
        place: Place::Here,
        hints: &[("git -C target/espalier/edit/paged rebase -i", 0)],
    },
    Scene {
        name: "export of a message that does not survive",
        make: || {
            with_work(|folder| {
                files::write(&folder.join("src/more.c"), "int more;\n");
                git::commit(folder, "More\n\n---\nand more");
            })
        },
        command: "export",
        place: Place::Here,
        hints: &[("git -C target/espalier/edit/paged rebase -i", 0)],
    },
    Scene {
        name: "export of a file that no patch can say",
        make: || {
            with_work(|folder| {
                files::write(&folder.join("src/a\tb.c"), "int more;\n");
                git::commit(folder, "More");
            })
        },
        command: "export",
        place: Place::Here,
        hints: &[("git -C target/espalier/edit/paged rebase -i", 0)],
    },
    Scene {
        name: "export over a series that changed since",
        make: || {
            let project = with_work(|_| {});
            std::fs::remove_file(project.path("patches/paged/0003-greet-dearly.patch")).unwrap();
            project
        },
        command: "export",
        place: Place::Here,
        hints: &[("cargo xtask edit paged --discard", 0)],
    },
    Scene {
        name: "export across the border",
        make: || {
            let project = with_child();
            let folder = project.path("target/espalier/edit/child");
            git::git(&folder, &["reset", "--quiet", "--hard", "espalier/edit/border~1"]);
            files::edit(&folder.join("src/add.c"), "left + right", "right + left");
            git::commit(&folder, "Add backwards");
            project
        },
        command: "export child",
        place: Place::Here,
        hints: &[("cargo xtask edit paged", 0), ("git -C target/espalier/edit/child rebase --onto", 0)],
    },
    Scene {
        name: "export of a parent on which its child does not stand any more",
        make: || {
            let project = with_child();
            project.run(&["edit"]).success();
            let folder = project.path("target/espalier/edit/paged");
            git::git(&folder, &["reset", "--quiet", "--hard", "espalier/edit/border"]);
            project
        },
        command: "export",
        place: Place::Here,
        hints: &[("cargo xtask status --variant child", 1)],
    },
    Scene {
        name: "lint of names and what is no source",
        make: || {
            let project = Project::new();
            project.take_patch(|fork| files::edit(&fork.join("README.md"), "Hello", "Hi"));
            let name = |name: &str| project.path("patches/paged").join(name);
            std::fs::rename(name("0001-change-something.patch"), name("0004-odd.patch")).unwrap();
            project.edit("patches/paged/0004-odd.patch", "\n---\n", "\n\nNumerics: TODO\n---\n");
            project
        },
        command: "lint",
        place: Place::Clone,
        hints: &[
            ("cargo xtask lint --fix", 1),
            ("cargo xtask lint --fix", 1),
            ("cargo xtask trailers paged --help", 0),
        ],
    },
    Scene {
        name: "lint that mends",
        make: || {
            let project = Project::new();
            let name = |name: &str| project.path("patches/paged").join(name);
            std::fs::rename(name("0003-greet-dearly.patch"), name("0007-odd.patch")).unwrap();
            let path = name("0007-odd.patch");
            let text = std::fs::read_to_string(&path).unwrap();
            files::write(&path, format!("{text}-- \n2.47"));
            project
        },
        command: "lint --fix",
        place: Place::Here,
        hints: &[("cargo xtask lock", 0)],
    },
    Scene {
        name: "lint of one subject twice, and a last line without an end",
        make: || {
            let project = Project::new();
            project.edit(
                "patches/paged/0002-say-what-is-counted.patch",
                "Say what is counted",
                "Greet more warmly",
            );
            let path = project.path("patches/paged/0003-greet-dearly.patch");
            let text = std::fs::read_to_string(&path).unwrap();
            files::write(&path, format!("{text}-- \n2.47"));
            project
        },
        command: "lint",
        place: Place::Clone,
        hints: &[("cargo xtask lint --fix", 1), ("cargo xtask lint --fix", 1)],
    },
    Scene {
        name: "lint of a long series",
        make: || {
            let project = Project::new();
            let fork = project.fork();
            for number in 0..4 {
                files::write(&fork.join("src/more.c"), format!("int more_{number};\n"));
                git::commit(&fork, &format!("More, for the time number {number}"));
            }
            project.take_series(&fork);
            project
        },
        command: "lint",
        place: Place::Clone,
        hints: &[("cargo xtask lint --long", 1)],
    },
    Scene {
        name: "lint of a folder that people dropped their patches into",
        make: || dropped_into("patches/my"),
        command: "lint",
        place: Place::Clone,
        hints: &[
            ("mv patches/my patches/my.before && mkdir", 0),
            ("mv patches/my patches/my.before && mkdir", 0),
            ("mv patches/my patches/my.before && mkdir", 0),
        ],
    },
    Scene {
        name: "the same in a folder with a blank and a quote in its name",
        make: || dropped_into("patches/it's mine"),
        command: "lint",
        place: Place::Clone,
        hints: &[("mv", 0), ("mv", 0), ("mv", 0)],
    },
    Scene {
        name: "a patch that nobody can read",
        make: || dropped_into("patches/my"),
        command: "apply",
        place: Place::Clone,
        hints: &[("cargo xtask lint", 1)],
    },
    Scene {
        name: "trailers that nobody knows",
        make: with_child,
        command: "trailers child --set \"Signed-off-by: me\"",
        place: Place::Clone,
        hints: &[("cargo xtask trailers child --set", 0)],
    },
    Scene {
        name: "trailers of a patch that is not there",
        make: Project::new,
        command: "trailers --set \"Numerics: identical\" --patch 9",
        place: Place::Clone,
        hints: &[("cargo xtask trailers --set \"Numerics: identical\" --patch 0007", 2)],
    },
    Scene {
        name: "trailers where the pin is not at hand",
        make: || {
            let project = Project::new();
            project.run(&["lock"]).success();
            project.fresh_clone("other")
        },
        command: "trailers --set \"Numerics: identical\"",
        place: Place::Here,
        hints: &[("cargo xtask lock", 0)],
    },
];
