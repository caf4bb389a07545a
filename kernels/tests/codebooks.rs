//! The tables of the cache types are up to date with the example that generates them.

#[path = "../examples/codebooks.rs"]
#[allow(dead_code, reason = "its main function is the example's")]
mod codebooks;

#[test]
fn the_tables_are_those_that_are_computed() {
    let command =
        "cargo run --release --package espalier-kernels --example codebooks > kernels/src/kv_types/levels.rs";
    assert!(codebooks::text() == include_str!("../src/kv_types/levels.rs"), "next: {command}");
}
