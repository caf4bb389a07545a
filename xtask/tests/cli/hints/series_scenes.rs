//! What is said about a series, and the work on it.

use super::super::support::{Project, files, git};
use super::makers::edited;
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
];
