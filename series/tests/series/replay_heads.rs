//! Heads of several lines: upstream adds a parameter, or gives another form to a condition or a declaration above the
//! place of a change. The function is the same one, unless another function has that head.

use espalier_series::{ConflictReason, Patch, PatchClass, hunks_between};

use crate::replay::{on, reason, result, step};
use crate::support::{modify, read, tree};

/// Returns the patch of one file from `base` to `new`, with git's context.
fn patch_between(path: &str, base: &str, new: &str) -> Patch {
    let mut text = Vec::new();
    for hunk in hunks_between(base.as_bytes(), new.as_bytes()) {
        text.extend(hunk.header().bytes());
        text.push(b'\n');
        for line in hunk.lines.iter() {
            text.push(line.kind.sign());
            text.extend(line.bytes);
        }
    }
    read(&modify(path, base, new, &String::from_utf8(text).unwrap()))
}

/// Returns a function with `parameters` on lines that are indented less than its body, as in OpenSSH.
fn function(name: &str, parameters: &str) -> String {
    format!(
        "int\n{name}({parameters})\n{{\n\tint y = x;\n\n\ty += 1;\n\ty += 2;\n\ty *= 3;\n\ty -= 4;\n\ty -= 5;\n\t\
         return y;\n}}\n\n"
    )
}

/// Checks that the change of the first factor of `base` goes to that of `upstream`.
fn goes_to_the_first_factor(base: &str, upstream: &str) {
    let change = |text: &str| text.replacen("*= 3", "*= 4", 1);
    let patch = patch_between("a.c", base, &change(base));
    let step = step(&tree(&[("a.c", base)]), &tree(&[("a.c", upstream)]), &patch);
    assert!(!step.replayed.has_conflict(), "{upstream}{:?}", step.replayed);
    assert_eq!(result(&step), change(upstream));
}

/// The last line of the parameters is also that of another function, so that its text alone proves nothing.
#[test]
fn a_parameter_that_upstream_added_leaves_the_function_the_same() {
    let other = function("other", "char *x,\n    int most");
    let with = |parameters: &str| function("one", parameters) + &other;
    let base = with("int x,\n    int most");
    for parameters in [
        "int x,\n    int most,\n    int more",
        "int x,\n    int least, int most",
        "struct box *box, int x,\n    int most, int more",
        "struct box *box,\n    int x,\n    int most",
    ] {
        goes_to_the_first_factor(&base, &with(parameters));
    }
    goes_to_the_first_factor(&with("int x, int most"), &with("struct box *box, int x,\n    int most"));
}

#[test]
fn a_condition_above_the_place_is_not_its_function() {
    let switch = |begin: &str| {
        let cases = "\tcase 1:\n\t\ta();\n\t\tb();\n\t\ty *= 3;\n\t\tc();\n\t\tbreak;\n\t}\n\treturn y;\n}\n";
        format!("int\none(int x,\n    int y)\n{{\n{begin}{cases}")
    };
    let base = switch("\tswitch (pick(x,\n\t    y)) {\n");
    goes_to_the_first_factor(&base, &switch("\tx = pick(x,\n\t    y);\n\tswitch (x) {\n"));
    goes_to_the_first_factor(&base, &switch("\tswitch (pick(x, y)) {\n"));
}

/// The place is outside of all functions, whatever form the declaration above it has.
#[test]
fn a_declaration_above_the_place_contains_nothing() {
    let attribute = "\t__attribute__((format(printf, 2, 3)));\n";
    let base =
        format!("void begin(int, ...)\n{attribute}void end(int);\n\n#define MOST 1\n#define LEAST 0\n");
    let change = |text: &str| text.replace("#define MOST", "int between(int);\n\n#define MOST");
    let upstream = base.replace("void end(int);\n", &format!("void end(int, ...)\n{attribute}"));
    let patch = patch_between("a.h", &base, &change(&base));
    let step = step(&tree(&[("a.h", &base)]), &tree(&[("a.h", &upstream)]), &patch);
    assert!(!step.replayed.has_conflict(), "{:?}", step.replayed);
    assert_eq!(result(&step), change(&upstream));
}

/// Two methods whose heads begin alike, the second without the text of the first.
fn methods(first: (&str, &str), second: Option<(&str, &str)>) -> String {
    let method = |(last, call): (&str, &str)| {
        let body: String = (1..8).map(|step| format!("        {call}_{step}(x);\n")).collect();
        format!("    int get(int x,\n      {last}) {{\n{body}    }}\n")
    };
    format!("class box {{\n{}{}}};\n", method(first), second.map(method).unwrap_or_default())
}

/// The body of the first is now below the head of the second, or its own head is below with another body: which of the
/// two is meant cannot be decided.
#[test]
fn the_rest_of_a_head_distinguishes_overloads() {
    let cases = [
        (methods(("long y", "walk"), Some(("int y", "run"))), methods(("int y", "walk"), None)),
        (methods(("long y", "walk"), None), methods(("int y", "walk"), Some(("long y", "run")))),
    ];
    for (base, upstream) in cases {
        let patch = patch_between("a.c", &base, &base.replace("walk_4(x)", "walk_4(x, 4)"));
        let replayed = on(&base, &upstream, &patch);
        assert!(matches!(reason(&replayed), ConflictReason::LookAlike { .. }), "{replayed:?}");
        assert_eq!(replayed.class(), PatchClass::MovedFunction);
    }
}

/// The head of another function with parameters on several lines is still the head of another function.
#[test]
fn a_twin_with_parameters_on_several_lines_never_gets_the_change() {
    let one = function("one", "int x,\n    int most");
    let two = function("two", "int x,\n    int most");
    let base = format!("{one}{two}");
    let change = base.replacen("*= 3", "*= 4", 1);
    let patch = patch_between("a.c", &base, &change);
    for stays in
        [two.clone(), function("two", "int x,\n    int most,\n    int more"), two.replace("y += 1;", "y++;")]
    {
        for upstream in [stays.clone(), format!("int a;\n\n{stays}int b;\n")] {
            assert!(on(&base, &upstream, &patch).has_conflict(), "{upstream}");
        }
    }
}

/// Upstream moves the first part of a function into a new one above the rest, which gets another name.
#[test]
fn the_rest_of_a_function_that_upstream_split_is_the_one_that_its_callers_call() {
    let steps = |range: std::ops::Range<usize>| -> String {
        range.map(|step| format!("    step_{step}(at);\n")).collect()
    };
    let run = |call: &str| format!("\nint run(void) {{\n    start();\n    return {call}(1);\n}}\n");
    let base = format!("int walk(int at) {{\n{}{}}}\n{}", steps(1..9), steps(9..13), run("walk"));
    let split = |head: &str, called: &str| {
        let rest = format!("int {head} {{\n    prepare(at, 1);\n{}}}\n", steps(9..13));
        format!("void prepare(int at, int by) {{\n{}}}\n\n{rest}{}", steps(1..9), run(called))
    };
    let change = |text: &str| text.replace("step_11(at)", "step_11(at, 11)");
    let patch = patch_between("a.c", &base, &change(&base));
    let upstream = split("walk_on(int at)", "walk_on");
    let step = step(&tree(&[("a.c", &base)]), &tree(&[("a.c", &upstream)]), &patch);
    assert!(!step.replayed.has_conflict(), "{:?}", step.replayed);
    assert_eq!(result(&step), change(&upstream));
    // Other parameters, a caller that calls another one, and no caller.
    let without_caller = upstream.replace(&run("walk_on"), "");
    for doubted in
        [split("walk_on(int at, int by)", "walk_on"), split("walk_on(int at)", "prepare"), without_caller]
    {
        let replayed = on(&base, &doubted, &patch);
        assert!(matches!(reason(&replayed), ConflictReason::LookAlike { .. }), "{replayed:?}");
    }
}
