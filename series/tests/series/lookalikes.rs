//! `git apply` accepts each of these patches and puts the hunk in the wrong place. We must not.

use espalier_series::{HunkClass, MemoryTree, Patch, PatchClass};

use crate::support::{classes, drift, hunks, modify, read, tree};

/// A function whose body is identical to those of all others here.
fn function(name: &str) -> String {
    format!(
        "static int {name}(int x) {{\n    int y = x;\n    y += 1;\n    y += 2;\n    y *= 3;\n    \
         y -= 4;\n    y -= 5;\n    return y;\n}}\n\n"
    )
}

const HUNK: &str =
    "    y += 1;\n     y += 2;\n-    y *= 3;\n+    y *= 4;\n     y -= 4;\n     y -= 5;\n     return y;\n";

/// A patch that changes the first function of `base`, which starts at line `start`.
fn patch_of_function(base: &str, name: &str, start: usize) -> Patch {
    let line = start + 2;
    let hunks = format!("@@ -{line},6 +{line},6 @@ static int {name}(int x) {{\n {HUNK}");
    let at = base.find(&function(name)).unwrap();
    let (before, after) = base.split_at(at);
    let new = format!("{before}{}", after.replacen("*= 3", "*= 4", 1));
    read(&modify("a.c", base, &new, &hunks))
}

/// Two trees: one with the pre-image available, as in a git store, and one with the patch text alone.
fn both_ways(base: &str, upstream: &str) -> [MemoryTree; 2] {
    let without = tree(&[("a.c", upstream)]);
    let mut with = without.clone();
    with.remember(base.as_bytes());
    [with, without]
}

#[test]
fn the_patched_function_is_gone_and_a_lookalike_remains() {
    let base = format!("{}{}", function("one"), function("two"));
    let patch = patch_of_function(&base, "one", 1);
    for tree in both_ways(&base, &function("two")) {
        let drift = drift(&patch, &tree);
        assert_eq!(classes(&drift), [HunkClass::MovedFunction { offset: 0 }], "{drift}");
        assert_eq!(drift.class, PatchClass::MovedFunction);
    }
}

#[test]
fn the_lookalike_is_further_down() {
    let base = format!("{}{}", function("one"), function("two"));
    let patch = patch_of_function(&base, "one", 1);
    let upstream = format!("int filler;\n\n{}", function("two"));
    for tree in both_ways(&base, &upstream) {
        assert_eq!(classes(&drift(&patch, &tree)), [HunkClass::MovedFunction { offset: 2 }]);
    }
}

#[test]
fn the_hunk_fits_twice() {
    let base = format!("{}int a;\n", function("one"));
    let patch = patch_of_function(&base, "one", 1);
    let upstream = format!("{}{}", function("zero"), base);
    for tree in both_ways(&base, &upstream) {
        let drift = drift(&patch, &tree);
        assert_eq!(classes(&drift), [HunkClass::Ambiguous], "{drift}");
        let places = &hunks(&drift)[0].fits_at;
        let seen: Vec<_> = places.iter().map(|place| (place.line, place.same_function)).collect();
        assert_eq!(seen, [(3, false), (13, true)]);
    }
}

#[test]
fn the_hunk_fits_on_its_own_line_but_also_elsewhere() {
    let base = format!("{}int a;\n", function("one"));
    let patch = patch_of_function(&base, "one", 1);
    let upstream = format!("{}{}", base, function("two"));
    for tree in both_ways(&base, &upstream) {
        assert_eq!(classes(&drift(&patch, &tree)), [HunkClass::Ambiguous]);
    }
}

/// Methods are not at column 0, so git's hunk header names their class, which both share.
#[test]
fn a_lookalike_method_of_the_same_class() {
    let method = |name: &str| {
        let function = function(name);
        let lines = function.lines().filter(|line| !line.is_empty());
        lines.map(|line| format!("    {line}\n")).collect::<String>()
    };
    let class = |body: &str| format!("struct box {{\n{body}}};\n");
    let base = class(&format!("{}{}", method("one"), method("two")));
    let hunk = "         y += 1;\n         y += 2;\n-        y *= 3;\n+        y *= 4;\n         y -= 4;\n         y -= 5;\n         return y;\n";
    let new = base.replacen("*= 3", "*= 4", 1);
    let text = modify("a.c", &base, &new, &format!("@@ -4,6 +4,6 @@ struct box {{\n{hunk}"));
    let upstream = class(&method("two"));
    for tree in both_ways(&base, &upstream) {
        let drift = drift(&read(&text), &tree);
        assert_eq!(classes(&drift), [HunkClass::MovedFunction { offset: 0 }], "{drift}");
    }
    // With the pre-image available, a method that only moved down is distinguished from that.
    let moved = format!("int a;\nint b;\n{}", class(&method("one")));
    let [with, without] = both_ways(&base, &moved);
    assert_eq!(classes(&drift(&read(&text), &with)), [HunkClass::Shifted { offset: 2 }]);
    assert_eq!(classes(&drift(&read(&text), &without)), [HunkClass::MovedFunction { offset: 2 }]);
}

/// The rest of the look-alike is below the patched function, which has ended by then.
#[test]
fn the_head_of_the_lookalike_is_gone() {
    let base = format!("{}{}", function("one"), function("two"));
    let patch = patch_of_function(&base, "one", 1);
    let body = function("two").replace("static int two(int x) {\n", "    REPLACED_HEAD\n");
    let upstream = format!("{}{body}", function("one").replace("*= 3", "*= 9"));
    for tree in both_ways(&base, &upstream) {
        let drift = drift(&patch, &tree);
        assert_eq!(classes(&drift), [HunkClass::MovedFunction { offset: 10 }], "{drift}");
    }
}

/// The look-alike already has the patch's result. That does not make the patch upstreamed.
#[test]
fn a_lookalike_with_the_result_is_not_upstreamed() {
    let base = format!("{}{}", function("one"), function("two").replace("*= 3", "*= 4"));
    let patch = patch_of_function(&base, "one", 1);
    let upstream = function("two").replace("*= 3", "*= 4");
    for tree in both_ways(&base, &upstream) {
        let drift = drift(&patch, &tree);
        assert_eq!(classes(&drift), [HunkClass::Conflict], "{drift}");
        assert!(!hunks(&drift)[0].result_at[0].same_function);
    }
}

/// Two cases are in one function; their labels tell them apart.
#[test]
fn a_lookalike_in_another_case() {
    let block =
        |call: &str| ["a", "b", call, "d", "e"].map(|call| format!("            {call}();\n")).concat();
    let text = |one: &str, two: &str| {
        format!(
            "int f(int op) {{\n    switch (op) {{\n        case One:\n{one}        case Two:\n{two}    }}\n}}\n"
        )
    };
    let (old, new, other) = (block("c"), block("ours"), "            other();\n");
    let base = text(other, &old);
    let hunk = "@@ -7,3 +7,3 @@ int f(int op) {\n             b();\n-            c();\n+            ours();\n             \
                d();\n";
    let patch = read(&modify("a.c", &base, &text(other, &new), hunk));
    // The pre-image, or the result, is in the other case only. A patch alone has no label.
    let expected = [
        (&old, HunkClass::MovedFunction { offset: -2 }, HunkClass::Shifted { offset: -2 }),
        (&new, HunkClass::Conflict, HunkClass::Upstreamed),
    ];
    for (one, with_base, alone) in expected {
        let [with, without] = both_ways(&base, &text(one, other));
        assert_eq!(classes(&drift(&patch, &with)), [with_base]);
        assert_eq!(classes(&drift(&patch, &without)), [alone]);
    }
}
