//! Hints about pins.

use super::super::support::upstream::Upstream;
use super::super::support::{Project, Source, git};
use super::makers::{ABOUT, GREETING_GOES, elsewhere, project_by_git};
use super::{HintCase, HintPlace};

pub const CASES: &[HintCase] = &[
    HintCase {
        name: "newest, as far as some commit",
        make: || project_by_git(&[ABOUT, GREETING_GOES]),
        command: "newest",
        place: HintPlace::Clone,
        hints: &[("cargo xtask rebase --to", 0)],
    },
    HintCase {
        name: "newest in a repository that is not a source, in a folder with a blank and a quote in its name",
        make: || elsewhere(&[ABOUT]),
        command: "newest --variant paged --tip main --from \"../it's elsewhere\"",
        place: HintPlace::Clone,
        hints: &[("cargo xtask rebase --to", 0)],
    },
    HintCase {
        name: "newest, no further than the pin",
        make: || elsewhere(&[GREETING_GOES]),
        command: "newest --tip main --from \"../it's elsewhere\"",
        place: HintPlace::Clone,
        hints: &[("cargo xtask bisect --tip main", 1)],
    },
    HintCase {
        name: "the canary sees a good tip",
        make: || project_by_git(&[ABOUT]),
        command: "canary --until status",
        place: HintPlace::Clone,
        hints: &[("cargo xtask sync --to", 0)],
    },
    HintCase {
        name: "the canary sees a good tip that is in no source",
        make: || elsewhere(&[ABOUT]),
        command: "canary --until status --tip main --from \"../it's elsewhere\"",
        place: HintPlace::Clone,
        hints: &[("cargo xtask sync --to", 0)],
    },
    HintCase {
        name: "status at a tip that conflicts",
        make: || elsewhere(&[GREETING_GOES]),
        command: "status --tip main --from \"../it's elsewhere\"",
        place: HintPlace::Clone,
        hints: &[("cargo xtask status --long --tip main", 1), ("cargo xtask rebase --dry-run --to main", 4)],
    },
    HintCase {
        name: "status at a tip without its history",
        make: || {
            let project = elsewhere(&[GREETING_GOES]);
            let upstream = project.beside("it's elsewhere");
            git::git(&upstream, &["checkout", "--quiet", "--orphan", "squashed"]);
            git::commit(&upstream, "All at once");
            git::git(&upstream, &["branch", "--quiet", "--force", "main", "squashed"]);
            git::git(&upstream, &["bundle", "create", "--quiet", "../tip.bundle", "main"]);
            project
        },
        command: "status --tip main --from ../tip.bundle",
        place: HintPlace::Clone,
        hints: &[
            ("cargo xtask status --long --tip main", 1),
            ("cargo xtask rebase --dry-run --to main", 4),
            ("cargo xtask status --tip main --from", 0),
        ],
    },
    HintCase {
        name: "status of a patch that is not exact at its own pin",
        make: || {
            let project = Project::new();
            project.edit("patches/paged/0002-say-what-is-counted.patch", "// words", "// WORDS");
            project
        },
        command: "status",
        place: HintPlace::Clone,
        hints: &[("cargo xtask status --long", 1), ("cargo xtask apply --check", 1)],
    },
    HintCase {
        name: "no source is there",
        make: || Project::with_sources(&[Source::Path("../nowhere".into())]),
        command: "apply",
        place: HintPlace::Clone,
        hints: &[("cargo xtask fetch --from PATH", 0)],
    },
    HintCase {
        name: "a pin with the tree of something else",
        make: || Project::pinned(&"12".repeat(20), &[Source::Path(Upstream::shared().repository())]),
        command: "fetch",
        place: HintPlace::Clone,
        hints: &[("git rev-parse v1.0^{tree}", 0), ("cargo xtask fetch --from PATH", 1)],
    },
    HintCase {
        name: "a commit that no source has",
        make: || elsewhere(&[ABOUT]),
        command: "rebase --to v9 --from \"../it's elsewhere\"",
        place: HintPlace::Clone,
        hints: &[("git -C", 0), ("cargo xtask rebase --to v9 --from PATH", 3)],
    },
    HintCase {
        name: "a lock that is out of date",
        make: || {
            let project = Project::new();
            project.run(&["lock"]).success();
            project.write("overlay/extra/espalier/note.txt", "another note\n");
            project
        },
        command: "--locked apply",
        place: HintPlace::Clone,
        hints: &[("cargo xtask lock", 0)],
    },
    HintCase {
        name: "bisect of a patch that is not there",
        make: || elsewhere(&[GREETING_GOES]),
        command: "bisect --tip main --from \"../it's elsewhere\" --patch 7",
        place: HintPlace::Clone,
        hints: &[("cargo xtask bisect --tip main --from \"../it's elsewhere\" --patch 0001", 1)],
    },
    HintCase {
        name: "bisect up to a tip that is good",
        make: || elsewhere(&[ABOUT]),
        command: "bisect --variant paged --tip main --from \"../it's elsewhere\"",
        place: HintPlace::Clone,
        hints: &[
            ("cargo xtask newest --variant paged --tip main", 0),
            ("cargo xtask bisect --every-commit --variant paged --tip main", 0),
        ],
    },
    HintCase {
        name: "bisect up to the pin",
        make: Project::new,
        command: "bisect",
        place: HintPlace::Clone,
        // There is no commit of this name.
        hints: &[("cargo xtask bisect --tip REF", 3), ("cargo xtask bisect --every-commit", 0)],
    },
    HintCase {
        name: "bisect of a patch that is not exact at its own pin",
        make: || {
            let project = elsewhere(&[GREETING_GOES]);
            project.edit("patches/paged/0002-say-what-is-counted.patch", "// words", "// WORDS");
            project
        },
        command: "bisect --tip main --from \"../it's elsewhere\"",
        place: HintPlace::Clone,
        hints: &[("cargo xtask apply --check", 1), ("cargo xtask bisect --every-commit --tip main", 1)],
    },
    HintCase {
        name: "status --long at a tip",
        make: || {
            let lines = (
                "Include",
                "src/count.c",
                "#include \"words.h\"",
                "#include <stddef.h>\n#include \"words.h\"",
            );
            elsewhere(&[GREETING_GOES, lines])
        },
        command: "status --long --tip main --from \"../it's elsewhere\"",
        place: HintPlace::Clone,
        hints: &[],
    },
    HintCase {
        name: "apply of what the pin has",
        make: || {
            let project = Project::new();
            let text = project.read("patches/paged/0002-say-what-is-counted.patch");
            project.write("patches/paged/0004-say-what-is-counted.patch", text);
            project
        },
        command: "apply",
        place: HintPlace::Clone,
        hints: &[],
    },
    HintCase {
        name: "a lock that cannot be read",
        make: || {
            let project = Project::new();
            project.write("espalier.lock", "none\n");
            project
        },
        command: "apply",
        place: HintPlace::Clone,
        hints: &[("cargo xtask lock", 0)],
    },
    HintCase {
        name: "nothing is fetched, and nothing may be",
        make: || project_by_git(&[]),
        command: "--offline apply",
        place: HintPlace::Clone,
        hints: &[("cargo xtask fetch --from PATH", 0)],
    },
    HintCase {
        name: "a package that is not built",
        make: Project::new,
        command: "smoke",
        place: HintPlace::Clone,
        hints: &[("cargo xtask build --variant paged --flavor cpu-native", 0)],
    },
];
