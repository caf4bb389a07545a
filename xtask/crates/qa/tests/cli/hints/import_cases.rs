//! Hints for users who import from elsewhere.

use super::super::support::Project;
use super::super::support::importing::empty_project;
use super::makers::{
    fork_and_series, fork_and_started, fork_that_went_on, started, with_fork, with_patches_beside,
    with_patches_there, with_port_that_edits, with_port_that_is_there,
};
use super::{HintCase, HintPlace};

pub const CASES: &[HintCase] = &[
    HintCase {
        name: "init",
        make: with_patches_there,
        command: "init --from ../upstream --at v1.0 --variant my",
        place: HintPlace::Here,
        hints: &[
            ("cargo xtask import PATCHES --variant my", 0),
            ("cargo xtask new \"subject\" --variant my", 0),
        ],
    },
    HintCase {
        name: "init where a project is",
        make: fork_and_started,
        command: "init --from ../upstream --at v1.0 --variant other",
        place: HintPlace::Here,
        hints: &[("cargo xtask import --help", 0), ("mkdir -p DIR && cargo xtask init --root DIR", 0)],
    },
    HintCase {
        name: "import of a fork",
        make: with_fork,
        command: "import --from '../the fork' upstream/main..main --variant my --leave-out docs/shortcut --leave-out 'a\tb.txt'",
        place: HintPlace::Here,
        hints: &[
            ("cargo xtask lint", 1),
            ("cargo xtask trailers my --set", 0),
            ("cargo xtask status --variant my", 0),
        ],
    },
    HintCase {
        name: "import of a fork with what no patch can say",
        make: with_fork,
        command: "import --from '../the fork' upstream/main..main --variant my",
        place: HintPlace::Here,
        hints: &[("cargo xtask import --from", 0)],
    },
    HintCase {
        name: "import of a fork without a name",
        make: with_fork,
        command: "import --from '../the fork' upstream/main..main --leave-out docs/shortcut --leave-out 'a\tb.txt'",
        place: HintPlace::Here,
        hints: &[("cargo xtask import --from", 0)],
    },
    HintCase {
        name: "import without a project",
        make: || with_patches_beside(empty_project()),
        command: "import ../patches",
        place: HintPlace::Here,
        hints: &[("cargo xtask init --from UPSTREAM", 0)],
    },
    HintCase {
        name: "import into a series",
        make: fork_and_series,
        command: "import --from '../the fork' upstream/main..main",
        place: HintPlace::Here,
        hints: &[
            ("cargo xtask import --variant NEW", 0),
            ("git -C", 0),
            ("cargo xtask import more-patches", 0),
        ],
    },
    HintCase {
        name: "import of what a fork has more by now",
        make: fork_that_went_on,
        command: "import --from '../the fork' imported..main --append --variant my",
        place: HintPlace::Here,
        hints: &[("git -C", 0), ("cargo xtask import more-patches --append --variant my", 0)],
    },
    HintCase {
        name: "import of patches into a series",
        make: || with_patches_beside(Project::new()),
        command: "import ../patches",
        place: HintPlace::Here,
        hints: &[("cargo xtask import ../patches --append", 4)],
    },
    HintCase {
        name: "import of a fork that stands elsewhere",
        make: fork_and_started,
        command: "import --from '../the fork' upstream/main..main --leave-out docs/shortcut --leave-out 'a\tb.txt'",
        place: HintPlace::Here,
        hints: &[("cargo xtask import --from", 0), ("cargo xtask rebase --variant NEW --to", 0)],
    },
    HintCase {
        name: "import of patches that do not fit",
        make: || {
            let project = started();
            std::fs::remove_file(project.beside("patches/0001-Greet-more-warmly.patch")).unwrap();
            project
        },
        command: "import ../patches",
        place: HintPlace::Here,
        hints: &[("cargo xtask init --help", 0), ("cargo xtask edit", 0)],
    },
    HintCase {
        name: "import of an empty range",
        make: with_fork,
        command: "import --from '../the fork' main..main --variant my",
        place: HintPlace::Here,
        hints: &[("cargo xtask import --help", 0)],
    },
    HintCase {
        name: "import of a recipe's patch that is there",
        make: with_port_that_is_there,
        command: "import ../port",
        place: HintPlace::Here,
        hints: &[("cargo xtask init --help", 0), ("cargo xtask import ../port --skip there.patch", 0)],
    },
    HintCase {
        name: "import of a recipe that edits a file by a command",
        make: with_port_that_edits,
        command: "import ../port",
        place: HintPlace::Here,
        hints: &[
            ("cargo xtask edit my", 0),
            ("cargo xtask lint", 1),
            ("cargo xtask trailers my --set", 0),
            ("cargo xtask status --variant my", 0),
        ],
    },
    HintCase {
        name: "import of nothing",
        make: started,
        command: "import ../nowhere",
        place: HintPlace::Here,
        hints: &[("cargo xtask import --from REPO", 2)],
    },
];
