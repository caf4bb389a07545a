//! Whole series.

use espalier_series::{PatchClass, run_series};

use crate::support::{create, modify, read_named, tree};

fn step(path: &str, from: &str, to: &str) -> String {
    let hunk = format!("@@ -1 +1 @@\n-{from}\n+{to}\n");
    modify(path, &format!("{from}\n"), &format!("{to}\n"), &hunk)
}

#[test]
fn each_patch_builds_on_the_one_before() {
    let tree = tree(&[("a", "1\n")]);
    let patches = [
        read_named("0001-a.patch", &step("a", "1", "2")),
        read_named("0002-b.patch", &create("b")),
        read_named("0003-c.patch", &format!("{}{}", step("a", "2", "3"), step("b", "new", "newer"))),
    ];
    let outcomes = run_series(&patches, &tree).unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.class == PatchClass::Exact && !outcome.provisional));
    let content = outcomes[2].verdict.changes()[0].new.as_ref().unwrap().content.as_ref().unwrap();
    assert_eq!(content.as_slice(), b"3\n");
}

#[test]
fn a_failed_patch_never_hides_the_next() {
    let tree = tree(&[("a", "other\n"), ("b", "1\n"), ("c", "other\n")]);
    let patches = [
        read_named("0001-fails.patch", &step("a", "1", "2")),
        read_named("0002-fits.patch", &step("b", "1", "2")),
        read_named("0003-blocked.patch", &step("a", "2", "3")),
        read_named("0004-blocked-twice.patch", &format!("{}{}", step("a", "3", "4"), step("b", "9", "10"))),
        read_named("0005-fails-alone.patch", &step("c", "1", "2")),
        read_named("0006-blocked-by-the-blocked.patch", &step("b", "10", "11")),
        read_named("0007-fits.patch", &create("d")),
    ];
    let outcomes = run_series(&patches, &tree).unwrap();
    let seen: Vec<_> = outcomes
        .iter()
        .map(|outcome| (outcome.class, outcome.provisional, outcome.blocked_by.join(" ")))
        .collect();
    let none = String::new;
    assert_eq!(
        seen,
        [
            (PatchClass::Conflict, false, none()),
            (PatchClass::Exact, true, none()),
            (PatchClass::Blocked, true, "0001-fails.patch".to_owned()),
            (PatchClass::Blocked, true, "0001-fails.patch".to_owned()),
            (PatchClass::Conflict, true, none()),
            (PatchClass::Blocked, true, "0001-fails.patch".to_owned()),
            (PatchClass::Exact, true, none()),
        ]
    );
}

/// Only patches that are not blocked themselves can be resolved now, so only those are named, in their order.
#[test]
fn a_patch_is_blocked_by_the_first_of_each_chain() {
    let tree = tree(&[("a", "other\n"), ("b", "other\n"), ("c", "other\n")]);
    let patches = [
        read_named("0001-fails.patch", &step("a", "1", "2")),
        read_named("0002-fails.patch", &step("b", "1", "2")),
        read_named("0003-after-2.patch", &format!("{}{}", step("b", "2", "3"), step("c", "1", "2"))),
        read_named("0004-after-1-and-3.patch", &format!("{}{}", step("a", "2", "3"), step("c", "2", "3"))),
    ];
    let outcomes = run_series(&patches, &tree).unwrap();
    let blocked_by: Vec<String> = outcomes.iter().map(|outcome| outcome.blocked_by.join(" ")).collect();
    assert_eq!(blocked_by, ["", "", "0002-fails.patch", "0001-fails.patch 0002-fails.patch"]);
}

#[test]
fn an_upstreamed_patch_blocks_nothing() {
    let tree = tree(&[("a", "2\n")]);
    let patches = [
        read_named("0001-done.patch", &step("a", "1", "2")),
        read_named("0002-fits.patch", &step("a", "2", "3")),
    ];
    let outcomes = run_series(&patches, &tree).unwrap();
    assert_eq!(outcomes[0].class, PatchClass::Upstreamed);
    assert_eq!((outcomes[1].class, outcomes[1].provisional), (PatchClass::Exact, false));
}
