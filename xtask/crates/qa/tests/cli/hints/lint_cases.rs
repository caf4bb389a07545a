//! Hints of `lint` and `trailers` about a series.

use super::super::support::{Project, files, git};
use super::makers::{dropped_into, with_child};
use super::{HintCase, HintPlace};

pub const CASES: &[HintCase] = &[
    HintCase {
        name: "docs that are stale",
        make: Project::new,
        command: "docs --check",
        place: HintPlace::Here,
        hints: &[("cargo xtask docs", 0)],
    },
    HintCase {
        name: "lint of names and what is not a source file",
        make: || {
            let project = Project::new();
            project.take_patch(|fork| files::edit(&fork.join("README.md"), "Hello", "Hi"));
            let name = |name: &str| project.path("patches/paged").join(name);
            std::fs::rename(name("0001-change-something.patch"), name("0004-odd.patch")).unwrap();
            project.edit("patches/paged/0004-odd.patch", "\n---\n", "\n\nNumerics: TODO\n---\n");
            project
        },
        command: "lint",
        place: HintPlace::Clone,
        hints: &[
            ("cargo xtask lint --fix", 1),
            ("cargo xtask lint --fix", 1),
            ("cargo xtask trailers paged --help", 0),
        ],
    },
    HintCase {
        name: "lint that fixes",
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
        place: HintPlace::Here,
        hints: &[("cargo xtask lock", 0)],
    },
    HintCase {
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
        place: HintPlace::Clone,
        hints: &[("cargo xtask lint --fix", 1), ("cargo xtask lint --fix", 1)],
    },
    HintCase {
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
        place: HintPlace::Clone,
        hints: &[("cargo xtask lint --long", 1)],
    },
    HintCase {
        name: "lint of a folder that people dropped their patches into",
        make: || dropped_into("patches/my"),
        command: "lint",
        place: HintPlace::Clone,
        hints: &[
            ("mv patches/my patches/my.before && mkdir", 0),
            ("mv patches/my patches/my.before && mkdir", 0),
            ("mv patches/my patches/my.before && mkdir", 0),
        ],
    },
    HintCase {
        name: "the same in a folder with a blank and a quote in its name",
        make: || dropped_into("patches/it's mine"),
        command: "lint",
        place: HintPlace::Clone,
        hints: &[("mv", 0), ("mv", 0), ("mv", 0)],
    },
    HintCase {
        name: "a patch that cannot be read",
        make: || dropped_into("patches/my"),
        command: "apply",
        place: HintPlace::Clone,
        hints: &[("cargo xtask lint", 1)],
    },
    HintCase {
        name: "unknown trailers",
        make: with_child,
        command: "trailers child --set \"Signed-off-by: me\"",
        place: HintPlace::Clone,
        hints: &[("cargo xtask trailers child --set", 0)],
    },
    HintCase {
        name: "trailers of a patch that is not there",
        make: Project::new,
        command: "trailers --set \"Numerics: identical\" --patch 9",
        place: HintPlace::Clone,
        hints: &[("cargo xtask trailers --set \"Numerics: identical\" --patch 0007", 2)],
    },
];
