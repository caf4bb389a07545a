//! Hints about generations.

use super::super::support::generations::{Generations, name};
use super::super::support::moving::greet;
use super::super::support::{files, git};
use super::{HintCase, HintPlace};

pub const CASES: &[HintCase] = &[
    HintCase {
        name: "a generation that needs siblings",
        make: || Generations::new().project,
        command: "apply --check --variant paged-v2",
        place: HintPlace::Here,
        hints: &[("cargo xtask rebase --variant paged-v2", 4)],
    },
    HintCase {
        name: "a dry run on a generation",
        make: || Generations::new().project,
        command: "rebase --variant paged-v2 --dry-run",
        place: HintPlace::Here,
        hints: &[("cargo xtask rebase --variant paged-v2", 4)],
    },
    HintCase {
        name: "a generation with a sibling that is behind its patch",
        make: || Generations::with_stale_sibling(name("everyone")).project,
        command: "apply --check --variant paged-v2",
        place: HintPlace::Here,
        hints: &[("cargo xtask rebase --variant paged-v2", 4)],
    },
    HintCase {
        name: "a sibling into which the change of its patch is merged",
        make: || Generations::with_stale_sibling(name("everyone")).project,
        command: "rebase --variant paged-v2 --edit 1",
        place: HintPlace::Here,
        hints: &[
            ("git -C target/espalier/rebase/v2/work status", 0),
            ("git -C target/espalier/rebase/v2/work diff sibling", 0),
            ("cargo xtask rebase --variant paged-v2 --continue", 0),
            // The sibling of the last patch needs the first one.
            ("cargo xtask rebase --variant paged-v2 --skip", 4),
            ("cargo xtask rebase --variant paged-v2 --abort", 0),
        ],
    },
    HintCase {
        name: "an edit beside a conflict on a generation",
        make: || {
            let generations = Generations::new();
            generations.rebase("v2", &["--drop-upstreamed"]).code(4);
            files::edit(&generations.work("v2").join("src/name.c"), "world", "all");
            git::git(&generations.work("v2"), &["add", "src/name.c"]);
            generations.solve("v2", &greet("hi there"));
            generations.project
        },
        command: "rebase --variant paged-v2 --continue",
        place: HintPlace::Here,
        hints: &[
            ("git -C target/espalier/rebase/v2/work checkout automatic", 0),
            ("cargo xtask rebase --variant paged-v2 --continue", 4),
            ("cargo xtask rebase --variant paged-v2 --continue --allow-edits", 4),
            ("cargo xtask rebase --variant paged-v2 --edit 0001", 4),
        ],
    },
    HintCase {
        name: "siblings that are written",
        make: || {
            let generations = Generations::new();
            generations.write_sibling("hello there");
            generations.project
        },
        command: "rebase --variant paged-v1-1",
        place: HintPlace::Here,
        hints: &[("cargo xtask prove --variant paged-v1-1 --generation v1-1", 0), ("cargo xtask undo", 0)],
    },
    HintCase {
        name: "the edit of a generation",
        make: || Generations::new().project,
        command: "edit paged-v2",
        place: HintPlace::Here,
        hints: &[("cargo xtask edit paged", 0), ("cargo xtask rebase --variant paged-v2 --edit", 4)],
    },
    HintCase {
        name: "the move of a generation",
        make: || Generations::new().project,
        command: "rebase --to v1.1 --variant paged-v2",
        place: HintPlace::Here,
        hints: &[
            ("cargo xtask rebase --to REF --variant paged", 0),
            ("cargo xtask rebase --variant paged-v2", 4),
        ],
    },
];
