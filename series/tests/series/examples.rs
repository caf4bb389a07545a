//! The examples still print what they are meant to show.

#[path = "../../examples/merge.rs"]
#[allow(dead_code, reason = "its main function is the example's")]
mod merge;
#[path = "../../examples/replay.rs"]
#[allow(dead_code, reason = "its main function is the example's")]
mod replay;

#[test]
fn the_replay_reports_each_hunk_and_merges_both() {
    let report = replay::report().unwrap();
    let patch = "0001-stack-count-calls.patch";
    for line in [
        format!("{patch}: conflict\n"),
        format!("    hunk 1 @@ -1,4 +1,5 @@ ({patch}:10): shifted by +1 lines\n"),
        format!("    hunk 2 @@ -7,4 +8,5 @@ ({patch}:16): conflict\n"),
        "\nreplayed: merged\n\nsrc/stack.c:\n#include \"stack.h\"\nvoid push(".to_owned(),
        "    s->pushes += 1;\n    s->items[s->used++] = item;\n".to_owned(),
        "    check(!is_empty(s));\n    s->used -= 1;\n    s->pops += 1;\n".to_owned(),
    ] {
        assert!(report.contains(&line), "{line}is not in:\n{report}");
    }
}

#[test]
fn each_version_is_merged_in_its_own_way() {
    let merged = |first: &str| format!("{first}\nretries = 2\ntimeout = 60\nverbose = no\n\n");
    let placed = merged("Placed:\n# Defaults\nlimit = 8");
    let nearby = merged("Merged:\nlimit = 16");
    let conflict = "SameLines:\nlimit = 8\nretries = 2\n<<<<<<< ours\ntimeout = 45\n\
                    ||||||| base, before theirs\ntimeout = 30\n=======\ntimeout = 60\n>>>>>>> theirs\n\
                    verbose = no\n\n";
    assert_eq!(merge::report().unwrap(), format!("{placed}{nearby}{conflict}"));
}
