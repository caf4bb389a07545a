//! The function that a replayed change lands in: renamed, repeated, or only similar to the one it was made for.

use espalier_series::{ConflictReason, Patch, PatchClass};

use crate::replay::{change_factor, function, marked, on, reason, replayed, result, step};
use crate::support::{modify, read, tree};
/// Returns a function that calls `call` in one case, as llama.cpp's operations do.
fn operation(name: &str, call: &str) -> String {
    format!("void {name}(int * p) {{\n{}}}\n\n", switch(call))
}

fn switch(call: &str) -> String {
    format!(
        "    switch (p[0]) {{\n        case F32:\n            {{\n                {call}(p);\n            }} break;\n        \
         default:\n            {{\n                ABORT();\n            }}\n    }}\n"
    )
}

const OTHER_CASE: &str =
    "        case I32:\n            {\n                sort_i32(p);\n            } break;\n";

/// Returns `text` with another case after the first one.
fn with_other_case(text: &str) -> String {
    text.replacen("        default:\n", &format!("{OTHER_CASE}        default:\n"), 1)
}

/// Returns a patch that adds a case to the operation that `base` begins with.
fn add_case(base: &str) -> Patch {
    let added: String = OTHER_CASE.lines().map(|line| format!("+{line}\n")).collect();
    let hunk = format!(
        "@@ -4,6 +4,10 @@ void sort(int * p) {{\n             {{\n                 sort_f32(p);\n             \
         }} break;\n{added}         default:\n             {{\n                 ABORT();\n"
    );
    read(&modify("a.c", base, &with_other_case(base), &hunk))
}

/// A function of the same form below fits as well from the bottom up, but the context is in one of the two only.
#[test]
fn a_new_function_of_the_same_form_is_not_in_the_way() {
    let base = format!("{}int end;\n", operation("sort", "sort_f32"));
    let upstream = base.replace("int end;", &format!("{}int end;", operation("topk", "topk_f32")));
    let step = step(&tree(&[("a.c", &base)]), &tree(&[("a.c", &upstream)]), &add_case(&base));
    assert!(!step.replayed.has_conflict(), "{:?}", step.replayed);
    assert_eq!(result(&step), with_other_case(&upstream));
}

/// Neither of two places in one function is certain, nor one of two that have the whole context.
#[test]
fn a_look_alike_that_the_context_does_not_tell_apart_is_left_to_a_person() {
    let base = format!("{}int end;\n", operation("sort", "sort_f32"));
    let twice = base.replace("    }\n}\n", &format!("    }}\n{}}}\n", switch("topk_f32")));
    let copied = base.replace("int end;", &format!("{}int end;", operation("topk", "sort_f32")));
    for upstream in [twice, copied] {
        let replayed = on(&base, &upstream, &add_case(&base));
        assert!(matches!(reason(&replayed), ConflictReason::LookAlike { .. }), "{replayed:?}");
    }
}

/// Upstream deletes a function; one with the same body stays, exactly or nearly. No kind of merge may put the change
/// into the one that stays.
#[test]
fn a_deleted_function_never_hands_its_change_to_its_twin() {
    let (one, two) = (function("one", 3), function("two", 3));
    let base = format!("{one}{two}");
    let nearly = two.replace("y += 1;", "y += 1; // first");
    let renamed = function("three", 3);
    for stays in
        [two.clone(), nearly, renamed, format!("int filler;\n\n{two}"), two.replace("return y", "return -y")]
    {
        for (order, upstream) in [("first", stays.clone()), ("last", format!("int a;\n{stays}int b;\n"))] {
            let replayed = on(&base, &upstream, &change_factor(&base, "one"));
            assert!(replayed.has_conflict(), "{order}:\n{upstream}");
        }
    }
}

/// The line merge is clean here: only the function tells that the place is wrong.
#[test]
fn a_merge_that_lands_in_a_lookalike_is_looked_at() {
    // Upstream deletes `one`; `two` stays, moved and with nearly the text of `one`.
    let two = format!("static int two(int x) {{\n{}}}\n\n", "    int z = 0;\n".repeat(9));
    let base = format!("{two}int a;\n{}int b;\n", function("one", 3));
    let upstream = format!("int a;\n{}int b;\n", function("two", 3).replace("y += 1", "y += 11"));
    let replayed = on(&base, &upstream, &change_factor(&base, "one"));
    let ConflictReason::LookAlike { ambiguities } = reason(&replayed) else { panic!("{replayed:?}") };
    assert_eq!(ambiguities[0].made_for.as_deref(), Some("static int one(int x) {"));
    assert_eq!(ambiguities[0].made_for_line, Some(14));
    assert_eq!(ambiguities[0].lands_in.as_deref(), Some("static int two(int x) {"));
    assert_eq!(ambiguities[0].lands_in_line, Some(2));
    let expected = "<<<<<<< v2\n    y *= 3;\n=======\n    y *= 4;\n>>>>>>> 0001-a-change.patch\n";
    assert!(marked(&replayed).contains(expected), "{}", marked(&replayed));
}

/// Upstream gives the function another name, other parameters, another type, or another first line of its body.
#[test]
fn a_function_that_upstream_renamed_is_still_the_one() {
    let base = format!("{}{}", function("one", 3), function("two", 5));
    let head = "static int one(int x) {\n";
    let heads = [
        "static int one_impl(int x) {\n",
        "int one(int x, int more) {\n",
        "GGML_API size_t other(\n        int x,\n        int more) {\n",
        "template <typename T>\nstatic T one(T x)\n{\n",
        "static int helper(int x) {\n    return x;\n}\n\nstatic int one_impl(int x) {\n    x = helper(x);\n",
    ];
    for other in heads {
        let upstream = base.replace(head, other);
        let step = step(&tree(&[("a.c", &base)]), &tree(&[("a.c", &upstream)]), &change_factor(&base, "one"));
        assert!(!step.replayed.has_conflict(), "{other}{:?}", step.replayed);
        assert_eq!(result(&step), upstream.replace("*= 3", "*= 4"));
    }
}

/// A head counts as renamed only if the old name is gone and the new one was not there before.
#[test]
fn the_head_of_another_function_is_not_a_new_name() {
    let other = |name: &str| format!("static int {name}(int x) {{\n{}}}\n\n", "    int z = 0;\n".repeat(9));
    let base = format!("{}{}", function("one", 3), other("two"));
    // `one` is now another function, below.
    let replaced = format!("{}{}", function("three", 3), other("one"));
    // `two` moved to the place of `one`.
    let moved = function("two", 3);
    for upstream in [replaced, moved] {
        let upstream = upstream.replace("y += 1;", "y += 11;");
        assert_eq!(
            on(&base, &upstream, &change_factor(&base, "one")).class(),
            PatchClass::MovedFunction,
            "{upstream}"
        );
    }
}

/// Of functions with equal heads, as on both sides of an `#else`, the line tells which one is meant.
#[test]
fn a_repeated_head_is_distinguished_by_its_line() {
    let with = |call: &str| {
        format!("static int one(int x) {{\n    {call}a(x);\n    {call}b(x);\n    return x;\n}}\n")
    };
    let text = |first: &str, second: &str| format!("#if A\n{first}#else\n{second}#endif\n");
    let base = text(&with("first_"), &with("second_"));
    let new = base.replace("second_b", "ours");
    let hunk = "@@ -8,5 +8,5 @@ static int one(int x) {\n static int one(int x) {\n     second_a(x);\n-    \
                second_b(x);\n+    ours(x);\n     return x;\n }\n";
    let patch = read(&modify("a.c", &base, &new, hunk));
    for first in ["", "#include <x>\n", &with("other_")] {
        let upstream = text(first, &with("second_"));
        let step = step(&tree(&[("a.c", &base)]), &tree(&[("a.c", &upstream)]), &patch);
        assert!(!step.replayed.has_conflict(), "{:?}", step.replayed);
        assert_eq!(result(&step), upstream.replace("second_b", "ours"));
    }
}

/// Returns a text with two blocks of the same content, of the kind that `path` names.
fn two_blocks(path: &str, names: [&str; 2]) -> String {
    let body = |indent: &str| ["a", "b", "c", "d", "e"].map(|call| format!("{indent}{call}();\n")).concat();
    let function = format!("int run(void) {{\n{}}}\n", body("    "));
    let block = |name: &str| match path {
        "case.c" => format!("        case {name}:\n{}", body("            ")),
        "rows.c" => format!("    {{ \"{name}\",\n{}    }},\n", body("      ")),
        "space.cpp" => format!("namespace {name} {{\n{function}}}\n"),
        "brace.cpp" => format!("namespace {name}\n{{\n{function}}}\n"),
        "condition.c" => format!("#ifdef {name}\n{function}#endif\n"),
        "macro.c" => format!("#define {name}(x) \\\n{}    x\n\n", body("    ").replace('\n', " \\\n")),
        "class.py" => format!("class {name}:\n    def run(self):\n{}", body("        ")),
        "sections.ini" => format!("[{name}]\n{}", body("")),
        _ => format!("{name}:\n  steps:\n{}", body("    - ")),
    };
    let blocks = names.map(block).concat();
    match path {
        "case.c" => format!("int f(int op) {{\n    switch (op) {{\n{blocks}    }}\n}}\n"),
        "rows.c" => format!("static row rows[] = {{\n{blocks}}};\n"),
        _ => blocks,
    }
}

/// Returns a patch of the last line of `base` that calls `call`: it calls `ours` instead.
fn change_of_last(call: &str, path: &str, base: &str) -> Patch {
    let lines: Vec<&str> = base.lines().collect();
    let at = lines.iter().rposition(|line| line.contains(call)).unwrap();
    let (old, new) = (lines[at], lines[at].replace(call, "ours();"));
    let (above, below) = (lines[..at].join("\n"), lines[at + 1..].join("\n"));
    let after = format!("{above}\n{new}\n{below}\n");
    let (before, behind) = (lines[at - 1], lines[at + 1]);
    let hunk = format!("@@ -{at},3 +{at},3 @@\n {before}\n-{old}\n+{new}\n {behind}\n");
    read(&modify(path, base, &after, &hunk))
}

/// Upstream lets two blocks of the same content change places. Their first lines tell which one is meant, although
/// they are not heads of functions.
#[test]
fn a_change_never_follows_the_content_of_another_block() {
    let paths = [
        "case.c",
        "rows.c",
        "space.cpp",
        "brace.cpp",
        "condition.c",
        "macro.c",
        "class.py",
        "keys.yml",
        "sections.ini",
    ];
    for path in paths {
        let base = two_blocks(path, ["One", "Two"]);
        let patch = change_of_last("c();", path, &base);
        let on = |upstream: &str| replayed(&tree(&[(path, &base)]), &tree(&[(path, upstream)]), &patch);
        let swapped = on(&two_blocks(path, ["Two", "One"]));
        let ConflictReason::LookAlike { ambiguities } = reason(&swapped) else {
            panic!("{path}: {swapped:?}")
        };
        let [place] = &ambiguities[..] else { panic!("{path}: {swapped:?}") };
        assert_eq!(place.class, PatchClass::MovedFunction, "{path}: {swapped:?}");
        assert!(place.made_for.as_ref().is_some_and(|line| line.contains("Two")), "{path}: {swapped:?}");
        assert!(place.lands_in.as_ref().is_some_and(|line| line.contains("One")), "{path}: {swapped:?}");
        // Another name, of this block or of the one above, changes nothing about the place.
        for names in [["Other", "Two"], ["One", "Other"]] {
            let replayed = on(&two_blocks(path, names));
            assert!(!replayed.has_conflict(), "{path}: {replayed:?}");
        }
    }
}

/// Upstream moves or repeats lines around a place that stays where it is.
#[test]
fn lines_that_do_not_identify_a_block_stop_nothing() {
    let switch = |labels: &[&str]| {
        let labels = labels.concat();
        format!(
            "int f(int op) {{\n    switch (op) {{\n{labels}            a();\n            b();\n            c();\n    }}\n}}\n"
        )
    };
    let [one, two, three] = ["        case One:\n", "        case Two:\n", "        case Three:\n"];
    let calls = "    a();\n    b();\n    c();\n";
    let function = |head: &str, end: &str| format!("int f(int x,\n      {head}{calls}{end}}}\n\n");
    let in_if = |condition: &str| {
        format!(
            "int f(int x) {{\n    if ({condition}) {{\n{}    }}\n}}\n\n",
            calls.replace("    ", "        ")
        )
    };
    let literal = "int g(int x) {\n    if (x == '{') {\n        return 1;\n    }\n    return 0;\n}\n\n";
    let longer = function("int y) {\n", "    d();\n    e();\n    return;\n");
    let cases = [
        // A label that is added to others, or changes places with them.
        (switch(&[one]), switch(&[one, two])),
        (switch(&[one]), switch(&[two, one])),
        (switch(&[one, two, three]), switch(&[three, one, two])),
        // A line that is rewritten here, and equal to a new one elsewhere: a condition, a list of parameters, `#else`.
        (
            in_if("x"),
            in_if("x && on") + "int g(int x) {\n    if (x) {\n        return 1;\n    }\n    return x;\n}\n",
        ),
        (
            function("int y) {\n", ""),
            function("int y, int z) {\n", "") + "int g(int z,\n      int y) {\n    return y;\n}\n",
        ),
        (
            function("int y) {\n#if OLD\n    old();\n#else\n", "#endif\n"),
            function("int y) {\n", "")
                + "int g(void) {\n#if NEW\n    return 2;\n#else\n    return 1;\n#endif\n}\n",
        ),
        // A function with a brace in a literal, which is moved below.
        (format!("{literal}{longer}int last;\n"), format!("{longer}{literal}int last;\n")),
    ];
    for (base, upstream) in cases {
        let patch = change_of_last("b();", "a.c", &base);
        let step = step(&tree(&[("a.c", &base)]), &tree(&[("a.c", &upstream)]), &patch);
        assert!(!step.replayed.has_conflict(), "{base}{upstream}{:?}", step.replayed);
        assert_eq!(result(&step), upstream.replace("b();", "ours();"));
    }
}

/// A block that is added below two others is in neither of them.
#[test]
fn a_place_below_a_block_is_not_in_it() {
    let with_new = |text: &str| {
        let end = "            e();\n    }\n";
        text.replace(end, "            e();\n        case New:\n            n();\n    }\n")
    };
    let base = two_blocks("case.c", ["One", "Two"]);
    let hunk = "@@ -13,4 +13,6 @@ int f(int op) {\n             d();\n             e();\n+        case New:\n\
                +            n();\n     }\n }\n";
    let patch = read(&modify("a.c", &base, &with_new(&base), hunk));
    let upstream = two_blocks("case.c", ["Two", "One"]);
    let step = step(&tree(&[("a.c", &base)]), &tree(&[("a.c", &upstream)]), &patch);
    assert!(!step.replayed.has_conflict(), "{:?}", step.replayed);
    assert_eq!(result(&step), with_new(&upstream));
}

/// The result of a patch is in another `case` already, which has the same content otherwise. Its own `case` does not
/// have it.
#[test]
fn a_result_in_another_case_does_not_count() {
    let base = two_blocks("case.c", ["One", "Two"]).replacen("c();", "ours();", 1);
    let new = base.replace("c();", "ours();");
    let hunk = "@@ -10,5 +10,5 @@ int f(int op) {\n             a();\n             b();\n-            c();\n+            \
                ours();\n             d();\n             e();\n";
    let patch = read(&modify("a.c", &base, &new, hunk));
    let (above, below) = base.split_at(base.find("Two").unwrap());
    let upstream = format!("{above}{}", below.replace("a();", "z();"));
    assert_eq!(on(&base, &upstream, &patch).class(), PatchClass::Merged);
}

/// Not every line without indentation is the head of a function.
#[test]
fn declarations_and_imports_are_in_no_function() {
    let replayed_as = |path: &str, base: &str, upstream: &str| {
        let new = base.replace("LAST = 1", "LAST = 2");
        let lines: Vec<&str> = base.lines().collect();
        let context: String = lines[..lines.len() - 1].iter().map(|line| format!(" {line}\n")).collect();
        let count = lines.len();
        let hunk = format!("@@ -1,{count} +1,{count} @@\n{context}-LAST = 1\n+LAST = 2\n");
        let patch = read(&modify(path, base, &new, &hunk));
        replayed(&tree(&[(path, base)]), &tree(&[(path, upstream)]), &patch).class()
    };
    let python = "import one\nimport two\n\nLAST = 1\n";
    let more = "import one\nimport two\nimport three\n\nLAST = 1\n";
    assert_eq!(replayed_as("a.py", python, more), PatchClass::Merged);
    assert_eq!(
        replayed_as("a.py", python, "import one\nfrom two import x\n\nLAST = 1\n"),
        PatchClass::Merged
    );
    let inside = "import one\nimport two\ndef f():\n    pass\n\nLAST = 1\n";
    assert_eq!(replayed_as("a.py", python, inside), PatchClass::Merged);
    for path in ["redis.conf", "LICENSE", "debian/rules", "ggml.pc.in", "a.service"] {
        let conf = "pidfile one\n  more\n\nLAST = 1\n";
        assert_eq!(
            replayed_as(path, conf, "loglevel two\n  more\n\nLAST = 1\n"),
            PatchClass::Merged,
            "{path}"
        );
    }
}

/// The base tells which of the two is meant.
#[test]
fn a_lookalike_elsewhere_does_not_stop_a_rebase() {
    let base = format!("{}int a;\n", function("one", 3));
    let upstream = format!("{}{base}", function("zero", 3));
    let step = step(&tree(&[("a.c", &base)]), &tree(&[("a.c", &upstream)]), &change_factor(&base, "one"));
    let expected = format!("{}{}", function("zero", 3), base.replace("*= 3", "*= 4"));
    assert_eq!(result(&step), expected);
}

/// One function with a block twice, and a patch of the first. Upstream changes the first too, so that only the second
/// still has the text that the patch expects.
#[test]
fn a_change_never_goes_into_the_twin_block_of_its_function() {
    let block = "    a();\n    b();\n    c();\n    d();\n    e();\n    f();\n    g();\n";
    let text =
        |first: &str, second: &str| format!("static int one(void) {{\n{first}    middle();\n{second}}}\n");
    let base = text(block, block);
    let theirs = text(&block.replace("d()", "ours()"), block);
    let hunk = "@@ -2,7 +2,7 @@ static int one(void) {\n     a();\n     b();\n     c();\n-    d();\n+    ours();\n     e();\n     f();\n     g();\n";
    let patch = read(&modify("a.c", &base, &theirs, hunk));
    for first in [block.replace("d()", "theirs()"), block.replace("    d();\n", ""), String::new()] {
        let replayed = on(&base, &text(&first, block), &patch);
        assert!(replayed.has_conflict(), "{replayed:?}");
    }
    let elsewhere = text(block, &block.replace("d()", "theirs()"));
    let step = step(&tree(&[("a.c", &base)]), &tree(&[("a.c", &elsewhere)]), &patch);
    assert_eq!(result(&step), text(&block.replace("d()", "ours()"), &block.replace("d()", "theirs()")));
}

/// Two equal adjacent blocks, of which upstream deletes one: it is undecidable which.
#[test]
fn a_change_of_one_of_two_identical_places_needs_review() {
    let block = "    a();\n    b();\n    c();\n    d();\n";
    let base = format!("static int one(void) {{\n{block}{block}}}\n");
    let theirs = base.replacen("b()", "ours()", 1);
    let hunk = "@@ -1,6 +1,6 @@\n static int one(void) {\n     a();\n-    b();\n+    ours();\n     c();\n     d();\n     a();\n";
    let patch = read(&modify("a.c", &base, &theirs, hunk));
    let replayed = on(&base, &base.replacen(block, "", 1), &patch);
    assert!(matches!(reason(&replayed), ConflictReason::LookAlike { .. }), "{replayed:?}");
}

#[test]
fn a_text_without_functions_has_no_wrong_one() {
    let base = "option(A)\noption(B)\n\n# build\nadd_library(x)\n";
    let new = base.replace("# build", "if(X)\nendif()\n# build");
    let hunk = "@@ -1,5 +1,7 @@\n option(A)\n option(B)\n \n+if(X)\n+endif()\n # build\n add_library(x)\n";
    let there = base.replace("option(B)", "feature(C)");
    let class = |path: &str| {
        let patch = read(&modify(path, base, &new, hunk));
        replayed(&tree(&[(path, base)]), &tree(&[(path, &there)]), &patch).class()
    };
    assert_eq!(class("CMakeLists.txt"), PatchClass::Merged);
    assert_eq!(class("build.script"), PatchClass::Merged);
}

/// A place outside of all functions cannot be in a wrong one, whatever is above.
#[test]
fn between_functions_is_between_functions() {
    let function = "int first(void) {\n    return 1;\n}\n\n";
    let base = format!("{function}int most = 8;\n\n#include <x>\n#include <y>\n");
    let new = format!("{base}#include <z>\n");
    let patch =
        read(&modify("a.c", &base, &new, "@@ -7,2 +7,3 @@\n #include <x>\n #include <y>\n+#include <z>\n"));
    let without_declaration = base.replace("int most = 8;\n\n", "");
    for there in [&without_declaration, &without_declaration.replace(function, "// nothing\n")] {
        assert_eq!(on(&base, there, &patch).class(), PatchClass::Shifted, "{there}");
    }
    // The second one declares its parameters on lines of their own.
    for head in ["int open(void) {\n", "int open(a)\nint a;\n{\n"] {
        let inside = base.replace("int most = 8;\n", head);
        assert_eq!(on(&base, &inside, &patch).class(), PatchClass::MovedFunction, "{head}");
    }
}

/// A line that ends with a semicolon is not a scope.
#[test]
fn a_statement_is_not_a_scope() {
    let base = "int f(int x) {\n    switch (x) {\n        case 0:\n            break;\n        case 1:\n            \
                return 1;\n        case 2:\n            {\n                int a = x;\n                a += 1;\n\
                \x20               a += 2;\n                return a;\n            }\n    }\n    return 0;\n}\n";
    let hunk = "@@ -8,5 +8,6 @@ int f(int x) {\n             {\n                 int a = x;\n                 a += 1;\n\
                +                a += 3;\n                 a += 2;\n                 return a;\n";
    let new = base.replace("a += 2", "a += 3;\n                a += 2");
    let patch = read(&modify("a.c", base, &new, hunk));
    let there = base.replace("return 1;", "x += 1;\n            break;");
    assert_eq!(on(base, &there, &patch).class(), PatchClass::Shifted);
}

/// A head without parentheses can be renamed too.
#[test]
fn a_struct_that_upstream_renamed_is_still_the_one() {
    let fields = "    int one;\n    int two;\n    int three;\n    int four;\n};\n";
    let base = format!("struct box {{\n{fields}");
    let new = base.replace("    int three", "    int more;\n    int three");
    let hunk = "@@ -1,6 +1,7 @@\n struct box {\n     int one;\n     int two;\n+    int more;\n     int three;\n     int \
                four;\n };\n";
    let patch = read(&modify("a.c", &base, &new, hunk));
    let with_head = |head: &str| on(&base, &format!("{head} {{\n{fields}"), &patch).class();
    assert_eq!(with_head("struct crate"), PatchClass::Merged);
    assert_eq!(with_head("struct box : other"), PatchClass::Merged);
}
