//! The rules for this repository's own workflow files.

use xtask::plan::workflow_rules;

use super::support::files;

#[test]
fn our_workflows_keep_our_rules() {
    let folder = files::of_this_repository(".github/workflows");
    let names = files::list(&folder);
    assert_eq!(names, ["canary.yml", "ci.yml", "pin-sync.yml"]);
    for name in names {
        let text = std::fs::read_to_string(folder.join(&name)).unwrap();
        assert_eq!(workflow_rules::broken(&name, &text), [""; 0], "{name}");
        assert!(text.contains("cargo xtask"), "{name} calls something else");
    }
}
