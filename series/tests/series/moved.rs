//! Detection of files that upstream moved.

use std::collections::BTreeSet;

use espalier_series::{
    AppliedSeries, ConflictReason, MemoryTree, Patch, PatchClass, Replay, Replayed, TreeNames,
};

use crate::real_git::RealGit;
use crate::support::{create, modify, read, rename, tree};

const BASE: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n";

/// A patch that changes the last line of `a.c`.
fn patch() -> Patch {
    let hunk = "@@ -5,4 +5,4 @@\n five\n six\n seven\n-eight\n+nine\n";
    read(&modify("src/a.c", BASE, &BASE.replace("eight", "nine"), hunk))
}

/// Returns the result of the last of `patches`.
fn replayed(pin: &MemoryTree, mut tip: MemoryTree, patches: &[Patch]) -> Replayed {
    tip.came_after(pin);
    let applied = AppliedSeries::new(patches, pin).unwrap();
    let nothing = BTreeSet::new();
    let mut replay = Replay::new(&applied, &tip, TreeNames::default(), &nothing);
    let steps: Vec<_> = (0..patches.len()).map(|at| replay.step(at).unwrap().replayed).collect();
    steps.last().unwrap().clone()
}

fn path_after(replayed: &Replayed) -> String {
    let after = replayed.files[0].after.as_ref().unwrap_or_else(|| panic!("{replayed:?}"));
    after.path.to_string()
}

#[test]
fn a_neighbour_that_moved_unchanged_is_not_the_file() {
    let (changed, neighbour) = (BASE.replace("one", "1"), BASE.replace("seven\neight", "more\nand more"));
    let pin = tree(&[("src/a.c", BASE), ("src/b.c", &neighbour)]);
    let moved = tree(&[("core/a.c", &changed), ("core/b.c", &neighbour)]);
    assert_eq!(path_after(&replayed(&pin, moved, &[patch()])), "core/a.c");
    // The file still exists: the new one is a copy, so the target would be ambiguous.
    let copied = tree(&[("core/a.c", &changed), ("core/b.c", &neighbour), ("src/b.c", &neighbour)]);
    let conflict = replayed(&pin, copied, &[patch()]);
    let ConflictReason::FileGone { candidates } = &conflict.conflicts().next().unwrap().reason else {
        panic!("{conflict:?}")
    };
    assert_eq!(candidates.len(), 2);
}

#[test]
fn a_possible_rename_of_another_file_is_not_followed() {
    let neighbour = BASE.replace("one\ntwo", "1\n2");
    let pin = tree(&[("src/a.c", BASE), ("src/b.c", &neighbour)]);
    // The neighbour, moved and changed; `src/a.c` is deleted.
    let moved = replayed(&pin, tree(&[("core/b.c", &neighbour.replace("five", "5"))]), &[patch()]);
    assert_eq!(moved.class(), PatchClass::TargetRenamed);
    // Which of two files that were identical?
    let twins = tree(&[("src/a.c", BASE), ("src/b.c", BASE)]);
    assert_eq!(replayed(&twins, tree(&[("core/b.c", BASE)]), &[patch()]).class(), PatchClass::TargetRenamed);
}

#[test]
fn a_folder_that_the_series_moved_away_is_created_again() {
    let (moves, makes) = (read(&rename("docs/old.md", "text/old.md")), read(&create("docs/new.md")));
    let pin = tree(&[("docs/old.md", "old\n")]);
    let taken = tree(&[("text/old.md", "old\n")]);
    assert_eq!(path_after(&replayed(&pin, taken, &[moves, makes])), "docs/new.md");
}

/// Files with equal content that move together keep their names, as in `git rebase`. If names do not decide, git picks
/// one and the replay stops.
#[test]
fn equal_files_that_move_together_are_distinguished_by_name() {
    type Paths<'a> = &'a [&'a str];
    let cases: [(Paths<'_>, Paths<'_>, &str, Option<&str>); 6] = [
        (&["old/a.c", "old/b.c", "old/c.c"], &["new/a.c", "new/b.c", "new/c.c"], "old/b.c", Some("new/b.c")),
        (&["old/a.c", "old/b.c"], &["new/a.c", "new/b.c"], "old/a.c", Some("new/a.c")),
        (&["old/a.c", "old/b.c"], &["x/y/b.c"], "old/b.c", Some("x/y/b.c")),
        (&["old/a.c", "old/b.c"], &["x/a.c", "y/b.c", "z/c.c"], "old/b.c", Some("y/b.c")),
        (&["old/x/a.c", "old/y/a.c"], &["new/x/a.c", "new/y/a.c"], "old/y/a.c", None),
        (&["old/a.c", "old/b.c"], &["new/d.c", "new/e.c"], "old/b.c", None),
    ];
    for (pin, tip, patched, expected) in cases {
        let of = |paths: Paths<'_>| tree(&paths.iter().map(|path| (*path, BASE)).collect::<Vec<_>>());
        let hunk = "@@ -5,4 +5,4 @@\n five\n six\n seven\n-eight\n+nine\n";
        let patch = read(&modify(patched, BASE, &BASE.replace("eight", "nine"), hunk));
        let replayed = replayed(&of(pin), of(tip), &[patch]);
        match expected {
            Some(path) => {
                assert_eq!(path_after(&replayed), path);
                assert_eq!(changed_by_git_rebase(pin, tip, patched), path);
            }
            None => assert_eq!(replayed.class(), PatchClass::TargetRenamed, "{tip:?}"),
        }
    }
    // Among candidates of equal content the one with the same name is listed first.
    let pin = tree(&[("old/m.c", BASE), ("old/n/m.c", BASE)]);
    let tip = tree(&[("a/a.c", BASE), ("b/m.c", BASE)]);
    let hunk = "@@ -5,4 +5,4 @@\n five\n six\n seven\n-eight\n+nine\n";
    let conflict =
        replayed(&pin, tip, &[read(&modify("old/m.c", BASE, &BASE.replace("eight", "nine"), hunk))]);
    let ConflictReason::FileGone { candidates } = &conflict.conflicts().next().unwrap().reason else {
        panic!("{conflict:?}")
    };
    assert_eq!(candidates[0].path, "b/m.c");
}

/// Returns the path of the file to which `git rebase` applies the change to `patched`.
fn changed_by_git_rebase(pin: &[&str], tip: &[&str], patched: &str) -> String {
    let git = RealGit::new();
    let run = |arguments: &[&str]| {
        let identity = ["-c", "user.name=T", "-c", "user.email=t@example.com"];
        String::from_utf8(git.run(&[&identity, arguments].concat(), b"")).unwrap()
    };
    let write = |path: &str, text: &str| {
        let path = git.folder().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let commit = || {
        run(&["add", "--all"]);
        run(&["commit", "--quiet", "--message", "x"]);
    };
    pin.iter().for_each(|path| write(path, BASE));
    commit();
    run(&["checkout", "--quiet", "-b", "patch"]);
    write(patched, &BASE.replace("eight", "nine"));
    commit();
    run(&["checkout", "--quiet", "main"]);
    run(&["rm", "--quiet", "-r", "."]);
    tip.iter().for_each(|path| write(path, BASE));
    commit();
    run(&["rebase", "--quiet", "main", "patch"]);
    run(&["diff", "--name-only", "main", "patch"]).trim().to_owned()
}
