//! The tests of the crate `series` that involve several of its modules.
#![allow(
    clippy::disallowed_methods,
    missing_docs,
    reason = "tests run the real git and write temporary repositories"
)]

#[path = "series/drift_classes.rs"]
mod drift_classes;
#[path = "series/examples.rs"]
mod examples;
#[path = "series/hostile_text.rs"]
mod hostile_text;
#[path = "series/hostile_tree.rs"]
mod hostile_tree;
#[path = "series/likeness_oracle.rs"]
mod likeness_oracle;
#[path = "series/lint.rs"]
mod lint;
#[path = "series/lookalikes.rs"]
mod lookalikes;
#[path = "series/merge_oracle.rs"]
mod merge_oracle;
#[path = "series/moved.rs"]
mod moved;
#[path = "series/oracle.rs"]
mod oracle;
#[path = "series/oracle_mutations.rs"]
mod oracle_mutations;
#[path = "series/oracle_sources.rs"]
mod oracle_sources;
#[path = "series/proof.rs"]
mod proof;
#[path = "series/proof_faults.rs"]
mod proof_faults;
#[path = "series/proof_merges.rs"]
mod proof_merges;
#[path = "series/proof_moved_functions.rs"]
mod proof_moved_functions;
#[path = "series/proof_support.rs"]
mod proof_support;
#[path = "series/random.rs"]
mod random;
#[path = "series/real_git.rs"]
mod real_git;
#[path = "series/replay.rs"]
mod replay;
#[path = "series/replay_files.rs"]
mod replay_files;
#[path = "series/replay_functions.rs"]
mod replay_functions;
#[path = "series/replay_generation.rs"]
mod replay_generation;
#[path = "series/run.rs"]
mod run;
#[path = "series/speed.rs"]
mod speed;
#[path = "series/support.rs"]
mod support;
#[path = "series/survey.rs"]
mod survey;
#[path = "series/upstreamed.rs"]
mod upstreamed;

/// A test file that is not listed above would never run.
#[test]
fn every_test_file_is_listed() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/series");
    let listed = include_str!("series.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_listed = listed.contains(&format!("\"series/{name}\""));
        assert!(is_listed || !name.ends_with(".rs"), "{name} is not listed");
    }
}
