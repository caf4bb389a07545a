//! Places the hunks of a loose diff before git searches for them.
//!
//! git applies a hunk at the place nearest to its line number at which its context fits, in whatever function that is.
//! Here the header of each hunk gets the line number of its place (`hunk_places.rs`), so that git finds that one first.
//! Each choice among several places is reported, and each hunk that ends up in another function than its header names.

use super::changed_files::{ChangedFiles, FileAfter, changed_twice};
use super::diff_parts::parts_of;
use super::hunk_places::FileHere;
use super::loose_reading::LooseReading;
use super::placed_part::{PlacedPart, place_part, without_context};

/// A diff whose hunks have the line numbers of their places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlacedHunks {
    /// The diff.
    pub diff: Vec<u8>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Whether the context of a hunk fits, but nowhere in the function that its header names.
    pub is_elsewhere: bool,
    /// Hunks that cannot be placed: they have no context. git puts them at the end of the file if that fits.
    pub without_context: Vec<String>,
    /// Hunks that fit, but may belong to another place, with both; found on request
    /// ([`LooseReading::finds_uncertain`]).
    pub uncertain: Vec<String>,
    /// The changed files as they are after it, if git applies each hunk at its place, by path.
    pub files: Vec<(Vec<u8>, FileAfter)>,
}

/// Places the hunks of `diff` in the existing files. `file_of` is called with a path and the blob that the diff was
/// made from, possibly abbreviated. It returns `None` if there is no such file. It is called once for a file that the
/// diff changes twice.
pub fn place_hunks(
    diff: &[u8],
    reading: LooseReading,
    mut file_of: impl FnMut(&[u8], Option<&str>) -> Option<FileHere>,
) -> PlacedHunks {
    let mut parts = parts_of(diff);
    if reading.reverse {
        // In reverse, git undoes the last change of a file first.
        parts.reverse();
    }
    let twice = changed_twice(&parts, reading);
    let mut changed = ChangedFiles::default();
    let mut texts: Vec<Vec<u8>> = Vec::new();
    let mut all = PlacedHunks::default();
    for part in &parts {
        let here = changed.file_of(part, reading, &mut file_of);
        let placed = match &here {
            Some((path, file)) => {
                let paths = part.paths(reading.strip, reading.reverse);
                let is_only_part = !paths.iter().any(|path| twice.contains(path));
                place_part(part, reading, path, file, is_only_part)
            }
            None => PlacedPart {
                text: part.lines.iter().flat_map(|line| line.bytes).copied().collect(),
                ..PlacedPart::default()
            },
        };
        changed.record(part, reading, here.as_ref().map(|(path, _)| path.as_slice()), placed.after);
        texts.push(placed.text);
        all.notes.extend(placed.notes);
        all.is_elsewhere |= placed.is_elsewhere;
        all.uncertain.extend(placed.uncertain);
        all.without_context.extend(without_context(part, reading.strip, reading.reverse));
    }
    if reading.reverse {
        texts.reverse();
    }
    PlacedHunks { diff: texts.concat(), files: changed.0.into_iter().collect(), ..all }
}

#[cfg(test)]
mod tests {
    use super::{FileAfter, FileHere, LooseReading, PlacedHunks, place_hunks};

    const TWINS: &str =
        "int one() {\n    a();\n    b();\n    c();\n}\n\nint two() {\n    a();\n    b();\n    c();\n}\n";
    const CHANGE: &str = "     a();\n-    b();\n+    d();\n     c();\n";

    fn place(file: &str, hunks: &str, may_fuzz: bool) -> PlacedHunks {
        place_diff(file, &format!("--- a/x.c\n+++ b/x.c\n{hunks}"), may_fuzz)
    }

    /// The file is the base of a diff that names the blob `ba5e`.
    fn place_diff(file: &str, diff: &str, may_fuzz: bool) -> PlacedHunks {
        let reading = LooseReading { strip: 1, reverse: false, may_fuzz, finds_uncertain: false };
        place_hunks(diff.as_bytes(), reading, |path, blob| {
            let is_base = blob == Some("ba5e");
            (path == b"x.c").then(|| FileHere { content: file.as_bytes().to_vec(), is_base, base: None })
        })
    }

    /// Places hunks with an `index` line in `file`, of which `base` is the blob that the line names.
    fn place_with_base(file: &str, base: &str, hunks: &str) -> PlacedHunks {
        let diff = format!("{INDEX}--- a/x.c\n+++ b/x.c\n{hunks}");
        place_from_base(file, base, &diff)
    }

    fn place_from_base(file: &str, base: &str, diff: &str) -> PlacedHunks {
        let reading = LooseReading { strip: 1, reverse: false, may_fuzz: false, finds_uncertain: false };
        let [content, base] = [file, base].map(|text| text.as_bytes().to_vec());
        let here = FileHere { content, is_base: false, base: Some(base) };
        place_hunks(diff.as_bytes(), reading, |path, _| (path == b"x.c").then(|| here.clone()))
    }

    const INDEX: &str = "diff --git a/x.c b/x.c\nindex 01db1ab..ab1e 100644\n";

    fn has_index(placed: &PlacedHunks) -> bool {
        placed.diff.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"index "))
    }

    fn header(placed: &PlacedHunks, number: usize) -> String {
        let text = String::from_utf8(placed.diff.clone()).unwrap();
        text.lines().filter(|line| line.starts_with("@@")).nth(number - 1).unwrap().to_string()
    }

    #[test]
    fn a_hunk_goes_to_the_function_that_its_header_names() {
        for line in [2, 4, 8, 30] {
            let placed = place(TWINS, &format!("@@ -{line},3 +{line},3 @@ int two() {{\n{CHANGE}"), false);
            let is_there = line == 8;
            assert_eq!(header(&placed, 1), "@@ -8,3 +8,3 @@ int two() {");
            let note =
                "x.c: hunk #1 fits at lines 2 and 8; it was put at line 8, in `int two() {`, which it names";
            assert_eq!(placed.notes, if is_there { vec![] } else { vec![note] }, "{line}");
        }
        // At exactly its own line it would be in the look-alike.
        let placed = place(TWINS, &format!("@@ -8,3 +8,3 @@ int one() {{\n{CHANGE}"), false);
        assert_eq!((header(&placed, 1).as_str(), placed.notes.len()), ("@@ -2,3 +2,3 @@ int one() {", 1));
    }

    #[test]
    fn lines_that_came_above_are_counted() {
        let hunks = format!(
            "@@ -1,2 +1,3 @@\n int one() {{\n+    n();\n     a();\n@@ -3,3 +4,3 @@ int two() {{\n{CHANGE}"
        );
        let placed = place(TWINS, &hunks, false);
        assert_eq!(header(&placed, 2), "@@ -8,3 +9,3 @@ int two() {");
    }

    #[test]
    fn a_hunk_in_another_function_is_reported() {
        let notes = |file: &str, section: &str| {
            place(file, &format!("@@ -2,3 +2,3 @@{section}\n{CHANGE}"), false).notes
        };
        let one = &TWINS[..TWINS.find("int two").unwrap()];
        let other = "x.c: hunk #1 was made for `int two() {`, and is in `int one() {` at line 2";
        assert_eq!(notes(one, " int two() {"), [other]);
        let nowhere = "x.c: hunk #1 was made for `int six() {`, and fits elsewhere only, at lines 2 and 8; it was put at line 2, as its header says";
        assert_eq!(notes(TWINS, " int six() {"), [nowhere]);
        for silent in [" int one() {", "", " class x {", " public:"] {
            assert_eq!(notes(one, silent), [""; 0], "{silent}");
        }
        // An indented name comes from rules for the language.
        let method = "struct x {\n    int six() {\n    }\n};\n".to_owned() + one;
        assert_eq!(notes(&method, " int six() {"), [""; 0]);
    }

    #[test]
    fn equal_places_follow_the_hunk_above_or_are_reported() {
        let alike = format!("start\n{}\n{}", "    a();\n    b();\n    c();\n".repeat(2), "x\ny\n");
        let hunk = |line: usize| format!("@@ -{line},3 +{line},3 @@\n{CHANGE}");
        let stated = "x.c: hunk #1 fits at lines 2 and 5; it was put at line 2, as its header says";
        assert_eq!(place(&alike, &hunk(2), false).notes, [stated]);
        let placed = place(&alike, &hunk(3), false);
        assert_eq!(placed.notes, ["x.c: hunk #1 fits at lines 2 and 5; it was put at line 2, the nearest"]);
        assert_eq!(header(&placed, 1), "@@ -2,3 +2,3 @@");
        // The hunk above went three lines down.
        let above = "@@ -1,1 +1,1 @@\n-x\n+z\n";
        let shifted = "n\n".repeat(3) + "x\n" + &alike;
        let placed = place(
            &shifted,
            &(above.replace("-1,1 +1,1", "-1,2 +1,2").replace("+z\n", "+z\n start\n") + &hunk(3)),
            true,
        );
        assert_eq!(header(&placed, 2), "@@ -6,3 +6,3 @@");
        assert!(placed.notes[0].ends_with("at line 6, where the hunk above it went"), "{placed:?}");
    }

    #[test]
    fn less_context_counts_only_where_it_may() {
        let other = CHANGE.replace(" a();", " q();");
        let hunk = format!("@@ -2,3 +2,3 @@ int two() {{\n{}", "     r();\n".to_owned() + &other);
        let hunk = hunk.replace(",3", ",4");
        assert!(place(TWINS, &hunk, false).notes.is_empty());
        let placed = place(&TWINS.replace("a();", "q();"), &hunk, true);
        // One line of context is left out, for which git goes up one line.
        assert_eq!(header(&placed, 1), "@@ -7,4 +9,4 @@ int two() {");
    }

    #[test]
    fn many_places_and_lines_that_no_file_has_are_no_trouble() {
        let many = TWINS.repeat(100);
        let hunk = |line: usize| format!("@@ -{line},3 +{line},3 @@\n{CHANGE}");
        let placed = place(&many, &hunk(1001), false);
        assert_eq!(header(&placed, 1), "@@ -1003,3 +1003,3 @@");
        for file in [TWINS, ""] {
            let placed = place(file, &(hunk(usize::MAX) + &hunk(7)), true);
            assert_eq!(placed.notes.is_empty(), file.is_empty(), "{placed:?}");
        }
        let only_context = "@@ -9,2 +9,2 @@\n     a();\n     b();\n@@ -1,9 +1,9 @@\n";
        place(TWINS, only_context, true);
    }

    #[test]
    fn a_hunk_without_context_below_belongs_at_the_end() {
        let hunk = "@@ -1,1 +1,2 @@\n x\n+y\n";
        let placed = place("x\nx\nx\n", &hunk.replace("-1,1 +1,2", "-2,1 +2,2"), false);
        assert_eq!((placed.notes.len(), header(&placed, 1).as_str()), (0, "@@ -2,1 +2,2 @@"));
    }

    #[test]
    fn the_number_on_the_new_side_does_not_send_a_hunk_elsewhere() {
        // As of a hunk whose diff had another one above it.
        let placed = place(TWINS, &format!("@@ -2,3 +8,3 @@ int one() {{\n{CHANGE}"), false);
        assert_eq!(header(&placed, 1), "@@ -2,3 +2,3 @@ int one() {");
    }

    #[test]
    fn hunks_keep_their_order_and_leave_lines_for_later_ones() {
        let hunk = |line: usize| format!("@@ -{line},3 +{line},3 @@\n{CHANGE}");
        for lines in [[2, 8], [8, 14], [3, 4]] {
            let placed = place(TWINS, &(hunk(lines[0]) + &hunk(lines[1])), false);
            let headers = [header(&placed, 1), header(&placed, 2)];
            assert_eq!(headers, ["@@ -2,3 +2,3 @@", "@@ -8,3 +8,3 @@"], "{lines:?}");
        }
        let only_above = "@@ -5,3 +5,3 @@\n }\n \n-int two() {\n+int six() {\n".to_owned()
            + "@@ -12,2 +12,2 @@\n-int one() {\n+int q() {\n     a();\n";
        let placed = place(
            TWINS,
            &only_above.replace("+int six() {\n", "+int six() {\n     a();\n").replace("5,3", "5,4"),
            false,
        );
        assert_eq!(placed.notes, ["x.c: hunk #2 fits only at line 1, above the hunk before it"]);
    }

    #[test]
    fn a_hunk_whose_place_is_certain_says_how_far_the_others_moved() {
        let file = format!("int x;\n{}x();\n\n", "    a();\n    b();\n    c();\n".repeat(5));
        let hunks = |lines: [usize; 2]| {
            let [first, second] = lines;
            let below = format!("@@ -{second},3 +{second},3 @@\n     c();\n-x();\n+y();\n \n");
            format!("@@ -{first},3 +{first},3 @@\n{CHANGE}{below}")
        };
        let placed = place(&file, &hunks([8, 13]), false);
        assert_eq!(header(&placed, 1), "@@ -11,3 +11,3 @@");
        assert!(
            placed.notes[0].ends_with("it was put at line 11, where the hunk below it went"),
            "{placed:?}"
        );
        // The begin of the file is nearer.
        assert_eq!(header(&place(&file, &hunks([5, 13]), false), 1), "@@ -5,3 +5,3 @@");
        // Between two that did not move, its line is right.
        assert_eq!(place(&file, &hunks([8, 16]), false).notes, [""; 0]);
    }

    #[test]
    fn a_hunk_from_the_end_of_a_file_goes_to_the_end() {
        let hunk = "@@ -3,4 +3,4 @@\n     a();\n     b();\n-    c();\n+    d();\n }\n";
        let placed = place(TWINS, hunk, false);
        let note = "x.c: hunk #1 fits at lines 2 and 8; it was put at line 8, at the end of the file";
        assert_eq!(placed.notes, [note]);
        assert_eq!(header(&placed, 1), "@@ -8,4 +8,4 @@");
    }

    #[test]
    fn the_names_of_structs_and_methods_count_too() {
        let fields = "    int a;\n    int b;\n};\n";
        let structs = format!("struct one {{\n{fields}struct two {{\n{fields}");
        let change = "@@ -2,2 +2,3 @@ struct two {\n     int a;\n+    int n;\n     int b;\n";
        assert_eq!(header(&place(&structs, change, false), 1), "@@ -6,2 +6,3 @@ struct two {");
        let one = &structs[..structs.find("struct two").unwrap()];
        let renamed = format!("{one}struct two {{\n}};\n");
        let note = "x.c: hunk #1 was made for `struct two {`, and is in `struct one {` at line 2";
        assert_eq!(place(&renamed, change, false).notes, [note]);
        let methods = "class x {\n    int one() {\n        a();\n        b();\n    }\n    int two() {\n        a();\n        b();\n    }\n};\n";
        let change = "@@ -3,2 +3,3 @@ int two() {\n         a();\n+        n();\n         b();\n";
        assert_eq!(header(&place(methods, change, false), 1), "@@ -7,2 +7,3 @@ int two() {");
    }

    #[test]
    fn a_name_that_another_one_begins_with_is_not_cut_short() {
        let name = "static void a_function_with_a_long_name(";
        let twins = TWINS.replace("int one(", &format!("{name}int x")).replace("int two(", name);
        let hunk = format!("@@ -2,3 +2,3 @@ {name}) {{\n{CHANGE}");
        assert_eq!(header(&place(&twins, &hunk, false), 1), format!("@@ -8,3 +8,3 @@ {name}) {{"));
    }

    #[test]
    fn the_function_in_context_that_is_left_out_counts() {
        let hunk = format!("@@ -1,4 +1,4 @@\n int two() {{\n     gone();\n{CHANGE}").replace(",4", ",5");
        let placed = place(TWINS, &hunk, true);
        assert!(
            placed.notes[0].ends_with("it was put at line 8, in `int two() {`, which it names"),
            "{placed:?}"
        );
    }

    #[test]
    fn a_hunk_without_context_is_refused() {
        for (hunk, is_refused) in [
            ("@@ -2,0 +3,1 @@\n+n\n", true),
            ("@@ -3 +3 @@\n-    b();\n+n\n", true),
            ("@@ -0,0 +1 @@\n+n\n", false),
            ("@@ -1,2 +0,0 @@\n-a\n-b\n", false),
        ] {
            let refused = place(TWINS, hunk, true).without_context;
            assert_eq!(refused.len(), usize::from(is_refused), "{hunk}");
        }
        let new = place_diff("", "--- /dev/null\n+++ b/y.c\n@@ -0,0 +1 @@\n+n\n", true);
        assert!(new.without_context.is_empty());
    }

    #[test]
    fn a_file_that_is_changed_twice_is_known_with_the_first_change() {
        let change = |hunk: &str| format!("--- a/x.c\n+++ b/x.c\n{hunk}");
        let six = "+int six() {\n+    a();\n+    b();\n+    c();\n+}\n+\n";
        let above = format!("@@ -1,2 +1,8 @@\n{six} int one() {{\n     a();\n");
        let below = format!("@@ -8,3 +8,3 @@ int one() {{\n{CHANGE}");
        let placed = place_diff(TWINS, &(change(&above) + &change(&below)), false);
        // The middle one of three functions, and the only one that has the name.
        assert_eq!(
            (header(&placed, 2).as_str(), placed.notes.len()),
            ("@@ -8,3 +8,3 @@ int one() {", 0),
            "{placed:?}"
        );
        let below = below.replace("-8,3 +8,3", "-2,3 +2,3");
        for base in ["", "index ba5e..ab1e\n"] {
            let diff = format!("diff --git a/x.c b/x.c\n{base}{}{}", change(&above), change(&below));
            let placed = place_diff(TWINS, &diff, false);
            assert_eq!(header(&placed, 2), "@@ -8,3 +8,3 @@ int one() {", "{base}");
            assert_eq!(placed.notes.len(), 1, "{base}");
        }
    }

    #[test]
    fn a_base_is_changed_where_the_diff_says() {
        let diff = |line: usize| {
            format!(
                "diff --git a/x.c b/x.c\nindex ba5e..ab1e\n--- a/x.c\n+++ b/x.c\n@@ -{line},3 +{line},3 @@\n{CHANGE}"
            )
        };
        assert_eq!(place_diff(TWINS, &diff(8), false).notes, [""; 0]);
        assert_eq!(place_diff(TWINS, &diff(7), false).notes.len(), 1);
    }

    #[test]
    fn a_diff_that_does_not_fit_the_blob_that_it_names_is_placed_in_the_file() {
        let placed = place_with_base(TWINS, "x\n", &format!("@@ -2,3 +2,3 @@ int two() {{\n{CHANGE}"));
        assert_eq!(header(&placed, 1), "@@ -8,3 +8,3 @@ int two() {");
        assert!(!has_index(&placed), "git could still merge: {placed:?}");
        assert_eq!(
            placed.notes,
            ["x.c: hunk #1 fits at lines 2 and 8; it was put at line 8, in `int two() {`, which it names"]
        );
    }

    #[test]
    fn a_diff_that_fits_the_blob_that_it_names_is_placed_there_and_merged() {
        let base = format!("int x;\n{TWINS}");
        let placed = place_with_base(TWINS, &base, &format!("@@ -9,3 +9,3 @@ int two() {{\n{CHANGE}"));
        assert_eq!((header(&placed, 1).as_str(), has_index(&placed)), ("@@ -9,3 +9,3 @@ int two() {", true));
        assert_eq!(placed.notes, [""; 0]);
        // The blob has a twin at that line.
        let placed = place_with_base(TWINS, &base, &format!("@@ -3,3 +3,3 @@ int two() {{\n{CHANGE}"));
        assert_eq!((header(&placed, 1).as_str(), has_index(&placed)), ("@@ -9,3 +9,3 @@ int two() {", true));
        assert!(placed.notes[0].ends_with("(lines of the blob that its `index` line names)"), "{placed:?}");
    }

    #[test]
    fn only_what_git_can_merge_is_placed_in_the_blob() {
        let base = format!("int x;\n{TWINS}");
        let hunk = format!("@@ -9,3 +9,3 @@ int two() {{\n{CHANGE}");
        // git ignores the line above the header of another tool.
        let diff = format!("index 01db1ab..ab1e 100644\n--- a/x.c\n+++ b/x.c\n{hunk}");
        assert_eq!(header(&place_from_base(TWINS, &base, &diff), 1), "@@ -8,3 +8,3 @@ int two() {");
        // What a file that is changed again holds after a merge is not known here.
        let second = "diff --git a/x.c b/x.c\n--- a/x.c\n+++ b/x.c\n@@ -1,2 +1,2 @@\n-int one() {\n+int six() {\n     a();\n";
        let diff = format!("{INDEX}--- a/x.c\n+++ b/x.c\n{hunk}{second}");
        let placed = place_from_base(TWINS, &base, &diff);
        assert_eq!((header(&placed, 1).as_str(), has_index(&placed)), ("@@ -8,3 +8,3 @@ int two() {", false));
    }

    #[test]
    fn a_hunk_of_the_base_in_another_function_than_it_names_was_edited_by_hand() {
        let diff = format!(
            "diff --git a/x.c b/x.c\nindex ba5e..ab1e\n--- a/x.c\n+++ b/x.c\n@@ -2,3 +2,3 @@ int two() {{\n{CHANGE}"
        );
        assert_eq!(header(&place_diff(TWINS, &diff, false), 1), "@@ -8,3 +8,3 @@ int two() {");
    }

    #[test]
    fn a_file_without_hunks_does_not_take_part_in_a_merge() {
        let base = format!("int x;\n{TWINS}");
        let hunk = format!("@@ -9,3 +9,3 @@ int two() {{\n{CHANGE}");
        let empty = "diff --git a/empty b/empty\nnew file mode 100644\nindex 0000000..e69de29\n";
        let diff = format!("{empty}{INDEX}--- a/x.c\n+++ b/x.c\n{hunk}");
        let placed = place_from_base(TWINS, &base, &diff);
        assert_eq!((header(&placed, 1).as_str(), placed.notes.len()), ("@@ -9,3 +9,3 @@ int two() {", 0));
        assert_eq!(placed.files, [(b"x.c".to_vec(), FileAfter::Merged)]);
        assert_eq!(placed.diff, diff.as_bytes());
    }

    #[test]
    fn the_content_of_each_file_is_known() {
        let change = format!("--- a/x.c\n+++ b/x.c\n@@ -8,3 +8,3 @@\n{CHANGE}");
        let two = TWINS.find("int two").unwrap();
        let wanted = TWINS[..two].to_owned() + &TWINS[two..].replace("b();", "d();");
        let placed = place_diff(TWINS, &change, false);
        assert_eq!(placed.files, [(b"x.c".to_vec(), FileAfter::Content(wanted.into_bytes()))]);
        let lines: String = TWINS.lines().map(|line| format!("-{line}\n")).collect();
        let gone = format!("--- a/x.c\n+++ /dev/null\n@@ -1,11 +0,0 @@\n{lines}");
        assert_eq!(place_diff(TWINS, &gone, false).files, [(b"x.c".to_vec(), FileAfter::Unknown)]);
        let nowhere = change.replace("a();", "z();");
        assert_eq!(place_diff(TWINS, &nowhere, false).files, [(b"x.c".to_vec(), FileAfter::Unknown)]);
    }

    #[test]
    fn a_copy_is_made_from_the_file_before_the_diff() {
        let change = "diff --git a/x.c b/x.c\n--- a/x.c\n+++ b/x.c\n@@ -1,2 +1,2 @@\n-int one() {\n+int six() {\n     a();\n";
        let copy = "diff --git a/y.c b/y.c\nsimilarity index 90%\ncopy from x.c\ncopy to y.c\n--- a/x.c\n+++ b/y.c\n";
        let diff = format!("{change}{copy}@@ -2,3 +2,3 @@ int one() {{\n{CHANGE}");
        let placed = place_diff(TWINS, &diff, false);
        assert_eq!(header(&placed, 2), "@@ -2,3 +2,3 @@ int one() {");
        let after = |text: String| FileAfter::Content(text.into_bytes());
        let six = after(TWINS.replace("int one", "int six"));
        let wanted = [(b"x.c".to_vec(), six), (b"y.c".to_vec(), after(TWINS.replacen("b();", "d();", 1)))];
        assert_eq!(placed.files, wanted);
    }

    #[test]
    fn a_file_that_is_changed_twice_is_never_merged() {
        let change = |hunk: &str| format!("{INDEX}--- a/x.c\n+++ b/x.c\n{hunk}");
        let first = change("@@ -1,2 +1,2 @@\n-int one() {\n+int six() {\n     a();\n");
        let second = change(&format!("@@ -8,3 +8,3 @@ int two() {{\n{CHANGE}"));
        let placed = place_from_base(TWINS, &format!("int x;\n{TWINS}"), &(first + &second));
        assert!(!has_index(&placed), "{placed:?}");
        assert!(matches!(&placed.files[..], [(_, FileAfter::Content(_))]), "{placed:?}");
    }

    /// Returns the hunks of which `file` may have the result elsewhere than they belong.
    fn uncertain(file: &str, hunks: &str) -> Vec<String> {
        let reading = LooseReading { strip: 1, reverse: true, may_fuzz: false, finds_uncertain: true };
        let diff = format!("--- a/x.c\n+++ b/x.c\n{hunks}");
        let here = FileHere { content: file.as_bytes().to_vec(), is_base: false, base: None };
        place_hunks(diff.as_bytes(), reading, |_, _| Some(here.clone())).uncertain
    }

    #[test]
    fn a_look_alike_that_has_the_result_is_not_the_place_of_the_hunk() {
        let section = |name: &str, port: u32| format!("[{name}]\nhost=x\nport={port}\nuser=u\n\n");
        let hunk = |line: usize| format!("@@ -{line},3 +{line},3 @@\n host=x\n-port=1\n+port=2\n user=u\n");
        let both = section("a", 2) + &section("b", 5);
        let note = "x.c: hunk #1 is for line 7, and its result is at line 2, which may be a look-alike: its context \
                    is at lines 2 and 7";
        assert_eq!(uncertain(&both, &hunk(7)), [note]);
        assert_eq!(uncertain(&both, &hunk(2)), [""; 0]);
        // It may have moved, if nothing looks like it.
        assert_eq!(uncertain(&section("a", 2), &hunk(7)), [""; 0]);
        // Also with other lines between the context.
        let longer = section("a", 2) + &section("b", 5).replace("port=5", "port=5\npath=/");
        assert_eq!(uncertain(&longer, &hunk(7)).len(), 1);
    }

    #[test]
    fn a_hunk_that_certainly_moved_says_where_the_others_belong() {
        let moved = "n\n".repeat(3)
            + "first\ntop\nmid\nend\n[a]\nhost=x\nport=5\nuser=u\n\n[b]\nhost=x\nport=2\nuser=u\n\n";
        let top = "@@ -2,3 +2,3 @@\n top\n-old\n+mid\n end\n";
        let hunk = |line: usize| format!("@@ -{line},3 +{line},3 @@\n host=x\n-port=1\n+port=2\n user=u\n");
        assert_eq!(uncertain(&moved, &(top.to_owned() + &hunk(11))), [""; 0]);
        let of_the_other = uncertain(&moved, &(top.to_owned() + &hunk(6)));
        assert!(of_the_other[0].starts_with("x.c: hunk #2 is for line 9, and its result is at line 14"));
        // Alone, nothing tells how far it moved.
        assert_eq!(uncertain(&moved, &hunk(11)).len(), 1);
    }

    #[test]
    fn the_named_function_makes_a_place_certain_if_it_has_only_one() {
        let two = TWINS.find("int two").unwrap();
        let changed = TWINS[..two].to_owned() + &TWINS[two..].replace("b();", "d();");
        let hunk = |section: &str| format!("@@ -4,3 +4,3 @@{section}\n{CHANGE}");
        assert_eq!(uncertain(&changed, &hunk(" int two() {")), [""; 0]);
        assert_eq!(uncertain(&changed, &hunk("")).len(), 1);
        let cases = "int f(int k)\n{\n  case 1:\n    a();\n    x(2);\n    c();\n  case 2:\n    a();\n    x(5);\n    c();\n}\n";
        let change = "@@ -8,3 +8,3 @@ int f(int k)\n     a();\n-    x(1);\n+    x(2);\n     c();\n";
        assert_eq!(uncertain(cases, change).len(), 1);
    }
}
