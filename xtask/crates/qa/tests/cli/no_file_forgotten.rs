//! A test file that is not declared would never run, and so never fail.

use std::path::Path;

#[test]
fn every_file_in_this_folder_is_a_module() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let declared = std::fs::read_to_string(tests.join("cli.rs")).unwrap();
    for entry in std::fs::read_dir(tests.join("cli")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        assert!(declared.contains(&format!("mod {name};")), "`{name}` is not declared in tests/cli.rs");
    }
}
