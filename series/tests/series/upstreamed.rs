//! Detection of upstream commits that contain a patch.

use espalier_series::{AppliedSeries, ChangedFile, Event, Patch, UpstreamHistory, UpstreamScan};

use crate::support::{id, modify, read, tree};

const BASE: &str =
    "int one() {\n    a();\n    b();\n    c();\n}\n\nint two() {\n    d();\n    e();\n    f();\n}\n";
const HUNKS: &str = "@@ -1,11 +1,15 @@\n int one() {\n-    a();\n+    first();\n+    second();\n+    third();\n     b();\n     \
                     c();\n }\n \n int two() {\n     d();\n-    e();\n+    fourth();\n+    fifth();\n+    sixth();\n     f();\n }\n";

fn after() -> String {
    let one = BASE.replace("    a();\n", "    first();\n    second();\n    third();\n");
    one.replace("    e();\n", "    fourth();\n    fifth();\n    sixth();\n")
}

/// Returns the history of the patch if upstream's file goes through `texts`, one commit each.
fn history(texts: &[&str]) -> UpstreamHistory {
    let patch = read(&modify("a.c", BASE, &after(), HUNKS));
    let mut scan = scan(&patch);
    for (at, pair) in texts.windows(2).enumerate() {
        scan.see(at, "Something else", &[changed(pair[0], pair[1])]);
    }
    scan.history(0).unwrap().clone()
}

fn scan(patch: &Patch) -> UpstreamScan {
    let pin = tree(&[("a.c", BASE)]);
    UpstreamScan::new(&AppliedSeries::new(std::slice::from_ref(patch), &pin).unwrap()).unwrap()
}

fn changed(old: &str, new: &str) -> ChangedFile {
    let path = b"a.c".to_vec();
    let (old_id, new_id) = (id(old).to_string(), id(new).to_string());
    ChangedFile { path, moved_from: None, old_id, new_id, old: old.into(), new: new.into() }
}

fn upstreamed(by: usize) -> Event {
    Event::Upstreamed { by, earlier: Vec::new() }
}

#[test]
fn a_patch_is_known_again_whatever_is_around_it() {
    let elsewhere = format!("int zero;\n{BASE}");
    let there = format!("int zero;\n{}", after().replace("    first();", "\tfirst( );"));
    assert_eq!(history(&[BASE, &elsewhere, &there]).events, [upstreamed(1)]);
    // Together with another change, and modified by a later commit.
    let more = after().replace("int two", "int seven;\n\nint two");
    let changed = more.replace("second();", "second(2);").replace("third();", "");
    let squashed = history(&[BASE, &more, &changed]);
    assert_eq!(squashed.events, [upstreamed(0)]);
    assert!(squashed.is_upstreamed());
}

#[test]
fn a_patch_in_parts_is_upstreamed_with_the_last_of_them() {
    let half = BASE.replace("    a();\n", "    first();\n    second();\n    third();\n");
    let history = history(&[BASE, &half, &format!("int zero;\n{half}"), &format!("int zero;\n{}", after())]);
    assert_eq!(history.events, [Event::Upstreamed { by: 2, earlier: vec![0] }]);
}

#[test]
fn a_reverted_patch_can_be_upstreamed_again() {
    let back = history(&[BASE, &after(), BASE]);
    assert_eq!(back.events, [upstreamed(0), Event::Reverted { by: 1 }]);
    assert!(!back.is_upstreamed());
    let again = history(&[BASE, &after(), BASE, &after()]);
    assert_eq!(again.events, [upstreamed(0), Event::Reverted { by: 1 }, upstreamed(2)]);
}

#[test]
fn similar_changes_are_not_upstreamed() {
    let alike = history(&[BASE, &after().replace("sixth();", "sixth(6);")]);
    assert_eq!((alike.events.len(), alike.alike), (0, Some((0, 87))));
    let other = history(&[BASE, &BASE.replace("b();", "x();")]);
    assert_eq!(other, UpstreamHistory::default());
}

#[test]
fn few_lines_are_not_enough_by_themselves() {
    let hunk = "@@ -2,3 +2,4 @@ int one() {\n     a();\n     b();\n     c();\n+    return 0;\n";
    let new = BASE.replacen("    c();\n", "    c();\n    return 0;\n", 1);
    let patch = read(&modify("a.c", BASE, &new, hunk));
    let events = |subject: &str, new: &str| {
        let mut scan = scan(&patch);
        scan.see(0, subject, &[changed(BASE, new)]);
        scan.history(0).unwrap().events.clone()
    };
    let elsewhere = BASE.replace("    f();\n", "    f();\n    return 0;\n");
    assert_eq!(events("Something else", &elsewhere), []);
    assert_eq!(events("a change (#12)", &elsewhere), [upstreamed(0)]);
    assert_eq!(events("Something else", &new), [upstreamed(0)]);
}

#[test]
fn a_file_that_moves_keeps_what_it_took() {
    let patch = read(&modify("a.c", BASE, &after(), HUNKS));
    let mut scan = scan(&patch);
    let moved = |from: &str, to: &str, old: &str, new: &str| ChangedFile {
        path: to.into(),
        moved_from: Some(from.into()),
        ..changed(old, new)
    };
    let at = |path: &str, old: &str, new: &str| ChangedFile { path: path.into(), ..changed(old, new) };
    scan.see(0, "Take it", &[changed(BASE, &after())]);
    scan.see(1, "Move it", &[moved("a.c", "b.c", &after(), &after())]);
    let less = after().replace("int two", "int zero;\nint two");
    scan.see(2, "Move it again", &[moved("b.c", "c.c", &after(), &less)]);
    assert_eq!(scan.history(0).unwrap().events, [upstreamed(0)]);
    assert!(scan.cares_about(b"c.c") && !scan.cares_about(b"d.c"));
    scan.see(3, "Take it back", &[at("c.c", &after(), BASE)]);
    assert_eq!(scan.history(0).unwrap().events, [upstreamed(0), Event::Reverted { by: 3 }]);
    // And back under its old name, which is not a new file.
    scan.see(4, "Take it there", &[at("c.c", BASE, &after())]);
    scan.see(5, "Move it back", &[moved("c.c", "a.c", &after(), &after()), at("a.c", "", &after())]);
    assert_eq!(scan.history(0).unwrap().events.last(), Some(&upstreamed(4)));
}
