//! `docs/design/kv-parity.md` agrees with the tests.

use std::collections::BTreeSet;

const TABLE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/design/kv-parity.md"));
const FILES: [(&str, &str); 8] = [
    ("parity_events", include_str!("parity_events.rs")),
    ("parity_groups", include_str!("parity_groups.rs")),
    ("parity_hashes", include_str!("parity_hashes.rs")),
    ("parity_lookup", include_str!("parity_lookup.rs")),
    ("parity_prefix_caching", include_str!("parity_prefix_caching.rs")),
    ("parity_queue", include_str!("parity_queue.rs")),
    ("parity_snapshots", include_str!("parity_snapshots.rs")),
    ("parity_windows", include_str!("parity_windows.rs")),
];

fn row(test: &str, file: &str) -> String {
    format!("| `{test}` | covered by `kernels/tests/pool/{file}.rs` |")
}

#[test]
fn the_table_names_the_tests_that_are_there() {
    let covered: BTreeSet<String> =
        TABLE.lines().filter(|line| line.contains("| covered by")).map(str::to_owned).collect();
    let tests = FILES.iter().flat_map(|(file, text)| {
        let starts = text.split("#[test]\nfn test_").skip(1);
        starts.filter_map(|text| text.split('(').next()).map(|name| row(&format!("test_{name}"), file))
    });
    assert_eq!(covered, tests.collect());
}

#[test]
fn every_other_row_says_why() {
    let rows = TABLE.lines().filter(|line| line.starts_with("| `test_"));
    for row in rows.filter(|row| !row.contains("| covered by")) {
        assert!(row.contains("| not yet: "), "{row}");
    }
}
