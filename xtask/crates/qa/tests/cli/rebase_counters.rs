//! Both sides incremented one counter: upstream has the patch's new value, which is too small for both additions.

use std::path::Path;

use super::support::moving::Move;
use super::support::{files, git};

const OPS: &str = "src/name.c";

/// Returns a file like llama.cpp's `ggml.h`, and a counter of its operations in a second file.
fn ops(names: &[&str], count: usize) -> String {
    let names: String = names.iter().map(|name| format!("    OP_{name},\n")).collect();
    format!(
        "#include \"words.h\"\n\nenum op {{\n    OP_NONE,\n{names}    OP_LAST,\n}};\n\n\
         // one line\n// another line\n// a third line\n\nint op_count(void) {{\n    return {count};\n}}\n\n\
         const char * words_name(void) {{\n    return \"world\";\n}}\n"
    )
}

const CHECK: &str = "docs/ops.txt";

fn check(count: usize) -> String {
    format!("operations:\n\nstatic_assert(OP_COUNT == {count});\n")
}

/// Upstream adds one operation and the patch another one, elsewhere in the list; both increment the counters.
fn both_add_an_operation() -> Move {
    Move::with_base(
        |folder| {
            files::write(&folder.join(OPS), ops(&["ADD", "MUL", "SUB", "DIV", "EXP"], 81));
            files::write(&folder.join(CHECK), check(81));
        },
        |folder| {
            files::write(&folder.join(OPS), ops(&["ADD", "FUSE", "MUL", "SUB", "DIV", "EXP"], 82));
            files::write(&folder.join(CHECK), check(82));
        },
        |folder| {
            files::write(&folder.join(OPS), ops(&["ADD", "MUL", "SUB", "DIV", "ROLL", "EXP"], 82));
            files::write(&folder.join(CHECK), check(82));
        },
    )
}

const PATCH: &str = "patches/paged/0001-change-something.patch";

#[test]
fn the_lines_are_shown_and_a_counter_is_named() {
    let moving = both_add_an_operation();
    let before = moving.committed();
    moving.rebase(&[]).code(4).says(&[
        "src/name.c: upstream has 2 of 3 changed lines",
        "\n    hello v2.0 src/name.c:19, the patch src/name.c:19: both have\n      -    return 81;\n      +    return 82;\n",
        "\n      possibly a counter: both sides changed it from 81 to 82; if each added an entry of its own, the right value is 83\n",
        "docs/ops.txt:3",
        "      +static_assert(OP_COUNT == 82);\n",
        "\n      trimming keeps 82\n",
        "next: a counter may be too low: stop at each patch that it has in part, and set it: add --edit-upstreamed\n  \
         next: or if upstream's value is right, add: --trim-upstreamed",
    ]);
    assert_eq!(moving.committed(), before);
    let tried = moving.rebase(&["--dry-run"]).code(4);
    assert!(tried.stdout.contains("the right value is 83"), "{tried}");
    assert!(tried.stdout.contains("next: it stops at each patch that upstream has in part: "), "{tried}");
    assert!(tried.stdout.trim_end().ends_with(" --edit-upstreamed"), "{tried}");
}

/// Trimming leaves the counter as upstream has it, without another question, so the doubt outlives the move.
#[test]
fn a_trimmed_counter_stays_in_doubt() {
    let json = |more: &[&str]| {
        let moving = both_add_an_operation();
        moving.rebase(&[&["--trim-upstreamed", "--json"], more].concat()).success().json()
    };
    for report in [json(&["--dry-run"]), json(&[])] {
        let patch = &report["patches"][0];
        assert_eq!(patch["counter_in_doubt"], true, "{report}");
        let notes = patch["notes"].to_string();
        assert!(notes.contains("the right value is 83\\n  trimming keeps 82"), "{notes}");
    }
    let stdout = both_add_an_operation().rebase(&["--trim-upstreamed"]).success().stdout;
    assert!(
        stdout.contains("\nwarning: trimmed patches keep upstream's value of a possible counter"),
        "{stdout}"
    );
    assert!(stdout.contains(&format!("\n  {PATCH}\n")), "{stdout}");
}

#[test]
fn a_person_sets_the_counter_by_hand() {
    let moving = both_add_an_operation();
    moving.rebase(&["--edit-upstreamed"]).code(4).says(&[
        "src/name.c: review it: upstream has made a part of the change",
        "the right value is 83",
        "cargo xtask rebase --continue",
    ]);
    let readme = moving.readme();
    let title = "patches/paged/0001-change-something.patch is to be edited: hello v2.0 has a part of it.\n";
    assert!(readme.starts_with(title), "{readme}");
    assert!(readme.contains("the right value is 83"), "{readme}");
    assert!(readme.contains("\n  both sides have the same text\n"), "{readme}");
    let shown = std::fs::read_to_string(moving.work().join(OPS)).unwrap();
    for marked in
        ["<<<<<<< v2.0\n    return 82;\n", "=======\n    return 82;\n>>>>>>> 0001-change-something.patch\n"]
    {
        assert!(shown.contains(marked), "{shown}");
    }
    assert!(shown.contains("    OP_FUSE,\n") && shown.contains("    OP_ROLL,\n"), "{shown}");
    moving.run(&["--continue"]).code(4).says(&["conflict marker"]);
    let names = ["ADD", "FUSE", "MUL", "SUB", "DIV", "ROLL", "EXP"];
    files::write(&moving.work().join(OPS), ops(&names, 83));
    files::write(&moving.work().join(CHECK), check(83));
    git::git(&moving.work(), &["add", OPS, CHECK]);
    moving.run(&["--continue"]).success();
    moving.assert_moved();
    let patch = moving.project.read(PATCH);
    for line in [
        "-    return 82;",
        "+    return 83;",
        "-static_assert(OP_COUNT == 82);",
        "+static_assert(OP_COUNT == 83);",
    ] {
        assert!(patch.lines().any(|found| found == line), "{line}\n{patch}");
    }
}

/// The choice that the first call refused can be made in the suspended rebase; trimmed parts are distinguished from
/// edited ones.
#[test]
fn the_choice_can_come_later() {
    let moving = both_add_an_operation();
    moving.rebase(&["--edit-upstreamed", "--trim-upstreamed"]).code(2);
    moving.rebase(&["--edit-upstreamed"]).code(4);
    moving.run(&["--skip"]).success();
    moving.assert_moved();
}

/// A line without a number that both changed in the same way is shown, but not called a counter.
#[test]
fn a_line_without_a_number_is_not_a_counter() {
    let change = |folder: &Path| {
        files::edit(&folder.join("src/count.c"), "int count = 0;", "int count = -0;");
        files::edit(&folder.join("src/count.c"), "    return count;", "    return count - 1;");
    };
    let moving = Move::with_patch(change, |folder| {
        files::edit(&folder.join("src/count.c"), "int count = 0;", "int count = -0;");
    });
    let refused = moving.rebase(&[]).code(4).says(&["src/count.c:4", "      +    int count = -0;\n"]);
    assert!(!refused.stderr.contains("counter"), "{refused}");
}

/// The operations are added at one place, a conflict. The counters are raised outside of it, by both sides alike.
#[test]
fn counters_beside_a_conflict_are_named() {
    let operations = |names: &'static [&'static str], count: usize| {
        move |folder: &Path| files::write(&folder.join(OPS), ops(names, count))
    };
    let moving = Move::with_base(
        operations(&["ADD", "MUL"], 81),
        operations(&["ADD", "FUSE", "MUL"], 82),
        operations(&["ADD", "ROLL", "MUL"], 82),
    );
    let named = [
        "src/name.c: upstream added lines at the same place\n",
        "outside of the markers, both sides made the same change",
        "\n      upstream src/name.c:16, the patch src/name.c:16: both have\n        -    return 81;\n        +    return 82;\n",
        "if each added an entry of its own, the right value is 83\n",
    ];
    moving.rebase(&[]).code(4).says(&named);
    let described = moving.package()["files"][0]["description"].as_str().unwrap().to_string();
    assert!(described.contains("the right value is 83"), "{described}");
    let readme = moving.readme();
    assert!(readme.contains("the right value is 83"), "{readme}");
}
