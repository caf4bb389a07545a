//! Patches on another generation: replayed ones, and siblings in their place.

use espalier_series::{AppliedSeries, MergeKind, Replay, Verdict, apply_patch, exact_patch};

use crate::replay::{NAMES, NOTHING_UPSTREAMED, change_factor, function};
use crate::support::{modify, read, tree};

/// The patch of a generation: the replayed change, as a patch that applies there on its own lines.
#[test]
fn a_replayed_patch_is_exact_on_the_new_tree() {
    let base = format!("{}{}", function("one", 3), function("two", 5));
    let above = format!("int more;\n{}", base.replace("*= 5", "*= 7"));
    let beside = base.replacen("y += 1;", "y += 9;", 1);
    let patch = change_factor(&base, "one");
    for (upstream, kind) in
        [(&base, MergeKind::Unchanged), (&above, MergeKind::Placed), (&beside, MergeKind::Merged)]
    {
        let (pin, mut tip) = (tree(&[("a.c", &base)]), tree(&[("a.c", upstream)]));
        tip.came_after(&pin);
        let applied = AppliedSeries::new(std::slice::from_ref(&patch), &pin).unwrap();
        let mut replay = Replay::new(&applied, &tip, NAMES, &NOTHING_UPSTREAMED);
        let step = replay.step(0).unwrap();
        assert_eq!(step.replayed.files[0].merge_kind, kind);
        assert!(!step.replayed.needs_decision());
        let exact = exact_patch(&patch, &step.replayed, &replay).unwrap();
        let Verdict::Exact(changes) = apply_patch(&exact, &tip).unwrap() else { panic!("{exact:?}") };
        assert_eq!(changes, step.changes);
    }
}

#[test]
fn a_sibling_takes_the_place_of_a_patch() {
    let base = function("one", 3);
    let upstream = base.replace("*= 3", "*= 8");
    let (pin, mut tip) = (tree(&[("a.c", &base)]), tree(&[("a.c", &upstream)]));
    tip.came_after(&pin);
    let patches = [change_factor(&base, "one")];
    let applied = AppliedSeries::new(&patches, &pin).unwrap();
    let mut replay = Replay::new(&applied, &tip, NAMES, &NOTHING_UPSTREAMED);
    assert!(replay.try_step(0).unwrap().replayed.needs_decision());
    let hunk = "@@ -2,5 +2,5 @@\n     int y = x;\n     y += 1;\n     y += 2;\n-    y *= 8;\n+    y *= 9;\n     y -= 4;\n";
    let sibling = read(&modify("a.c", &upstream, &upstream.replace("*= 8", "*= 9"), hunk));
    assert!(matches!(replay.apply_instead(&sibling).unwrap(), Verdict::Exact(_)));
    // It was applied: it does not apply again.
    assert!(matches!(replay.apply_instead(&sibling).unwrap(), Verdict::Drifted(_)));
}
