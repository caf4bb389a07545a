//! The tables of the cache types are up to date with the example that generates them.

#[path = "../examples/codebooks.rs"]
#[allow(dead_code, reason = "its main function is the example's")]
mod codebooks;

use sha2::{Digest, Sha256};

const COMMITTED: &str = include_str!("../src/kv_quant/levels.rs");

/// Digests of the committed file, and of the tables after `FEW` rounds, which change with the algorithm. Only all
/// rounds together compute the one from the other, which takes a minute of one core: a campaign does (CONTRIBUTING.md).
const DIGESTS: [&str; 2] = [
    "e08e629fa230ff0dec620ace016d1f48e7f19100221f626d909e4cc0318067a8",
    "9126577eb0e97860164a16e395f9bb58336a81ed0e29684d6b2a400f0826f9f8",
];

const FEW: usize = 3;

#[test]
fn the_tables_are_those_that_are_computed() {
    let command =
        "cargo run --release --package espalier-kernels --example codebooks > kernels/src/kv_quant/levels.rs";
    if std::env::var_os("ESPALIER_CODEBOOKS").is_some() {
        assert!(codebooks::text(codebooks::ROUNDS) == COMMITTED, "next: {command}");
    }
    let digests = [digest(COMMITTED), digest(&codebooks::text(FEW))];
    assert_eq!(digests, DIGESTS, "a table or its algorithm has changed: {command}, then these digests");
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
