//! What upstream moved, and which file it is.

use std::collections::BTreeSet;

use espalier_series::{ConflictReason, MemoryTree, Origin, Patch, PatchClass, Replay, Replayed, TreeNames};

use crate::support::{create, modify, read, rename, tree};

const BASE: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n";

/// A patch that changes the last line of `a.c`.
fn patch() -> Patch {
    let hunk = "@@ -5,4 +5,4 @@\n five\n six\n seven\n-eight\n+nine\n";
    read(&modify("src/a.c", BASE, &BASE.replace("eight", "nine"), hunk))
}

/// What became of the last of `patches`.
fn replayed(pin: &MemoryTree, mut tip: MemoryTree, patches: &[Patch]) -> Replayed {
    tip.came_after(pin);
    let origin = Origin::new(patches, pin).unwrap();
    let nothing = BTreeSet::new();
    let mut replay = Replay::new(&origin, &tip, TreeNames::default(), &nothing);
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
    // It is still there: what came is a copy, and might be either.
    let copied = tree(&[("core/a.c", &changed), ("core/b.c", &neighbour), ("src/b.c", &neighbour)]);
    let conflict = replayed(&pin, copied, &[patch()]);
    let ConflictReason::FileGone { candidates } = &conflict.conflicts().next().unwrap().reason else {
        panic!("{conflict:?}")
    };
    assert_eq!(candidates.len(), 2);
}

#[test]
fn what_may_be_another_file_that_went_is_not_followed() {
    let neighbour = BASE.replace("one\ntwo", "1\n2");
    let pin = tree(&[("src/a.c", BASE), ("src/b.c", &neighbour)]);
    // The neighbour, moved and changed; `src/a.c` is deleted.
    let moved = replayed(&pin, tree(&[("core/b.c", &neighbour.replace("five", "5"))]), &[patch()]);
    assert_eq!(moved.class(), PatchClass::TargetRenamed);
    // Which of two files that were the same?
    let twins = tree(&[("src/a.c", BASE), ("src/b.c", BASE)]);
    assert_eq!(replayed(&twins, tree(&[("core/b.c", BASE)]), &[patch()]).class(), PatchClass::TargetRenamed);
}

#[test]
fn a_folder_that_the_series_moved_away_itself_is_made_anew() {
    let (moves, makes) = (read(&rename("docs/old.md", "text/old.md")), read(&create("docs/new.md")));
    let pin = tree(&[("docs/old.md", "old\n")]);
    let taken = tree(&[("text/old.md", "old\n")]);
    assert_eq!(path_after(&replayed(&pin, taken, &[moves, makes])), "docs/new.md");
}
