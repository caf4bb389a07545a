//! The server benches: a server that cannot be measured is reported before anything is measured.

use serde_json::json;

use super::support::{Project, files};

fn with_servers(names: &[(&str, &str)]) -> Project {
    let project = Project::new();
    for (package, help) in names {
        let server = project.path(&format!("target/espalier/dist/{package}/bin/llama-server"));
        files::write_script(&server, &format!("echo '{help}'"));
        let variant = package.trim_end_matches("-cpu-native");
        write_manifest(&project, variant);
    }
    project
}

/// Writes the manifest of the variant's package, which benches read.
pub(super) fn write_manifest(project: &Project, variant: &str) {
    let manifest = json!({
        "variant": variant, "flavor": "cpu-native", "pin": "v1", "base_tree": "1", "tree": "2", "patches": {},
        "compiler": "", "flags": {}, "files": {}, "inputs": "",
    });
    project.write(&format!("target/espalier/dist/{variant}-cpu-native/manifest.json"), manifest.to_string());
}

#[test]
fn nothing_is_built() {
    let project = Project::new();
    insta::assert_snapshot!(project.run(&["bench", "burst"]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: stock-cpu-native is not built, and the server under test `stock` needs it
      next: cargo xtask build --variant stock --flavor cpu-native
    ");
    insta::assert_snapshot!(project.run(&["bench", "burst", "--only", "paged"]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: paged-cpu-native is not built, and the server under test `paged` needs it
      next: cargo xtask build --variant paged --flavor cpu-native
    ");
}

#[test]
fn a_server_without_the_flag() {
    let project = with_servers(&[("stock-cpu-native", "--kv-unified"), ("paged-cpu-native", "--kv-unified")]);
    for bench in ["capacity", "paged-decode", "fairness"] {
        let output = project.run(&["bench", bench]).code(2);
        assert!(output.stderr.contains("does not know `--kv-paged`"), "{output}");
    }
    insta::assert_snapshot!(project.run(&["bench", "burst"]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: server under test `paged` cannot take part: the server of paged-cpu-native does not know `--kv-paged`
      next: build one that does: cargo xtask build --variant paged --flavor cpu-native
      next: or leave it out where the bench allows it: --only stock --only stock-split --only stock-unified
    ");
}

#[test]
fn figures_of_a_busy_machine_are_not_recorded() {
    let project = Project::new();
    let output = project.run(&["bench", "burst", "--record", "--busy-anyway"]).code(2);
    assert!(output.stderr.contains("'--record' cannot be used with '--busy-anyway'"), "{}", output.stderr);
}

#[test]
fn more_requests_than_sequences() {
    let project = Project::new();
    insta::assert_snapshot!(project.run(&["bench", "burst", "--requests", "257"]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: `--requests` has to be a number from 1 to 256
      next: cargo xtask bench --help
    ");
}
