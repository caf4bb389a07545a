//! Variants that name the same folder of patches have one series: a change of it reaches the lock entries of all.

use super::support::editing::edit;
use super::support::stacked::Stacked;
use super::support::{Project, files, git};

/// Declares variants in `pins.toml`, and updates the lock.
fn declare(project: &Project, variants: &str) {
    let pins = project.read("pins.toml");
    project.write("pins.toml", format!("{pins}\n{variants}"));
    project.run(&["lock"]).success();
}

const TWIN: &str = "[variants.twin]\nextends = \"stock\"\npatches = \"patches/paged\"\n";

#[test]
fn an_export_reaches_every_variant_with_the_series() {
    let project = Project::new();
    declare(&project, &format!("{TWIN}\n[variants.above-twin]\nextends = \"twin\"\n"));
    let folder = edit(&project);
    files::edit(&folder.join("src/add.c"), "left + right", "right + left");
    git::commit(&folder, "Add backwards");
    let output = project.run(&["export"]).success();
    output.says(&["Locking above-twin in", "Locking paged in", "Locking twin in"]).says_nothing_of("warning");
    project.run(&["--offline", "lock", "--check"]).success();
}

#[test]
fn an_appended_patch_reaches_them_too() {
    let project = Project::new();
    declare(&project, TWIN);
    let (fork, more) = (project.fork(), project.beside("more"));
    files::edit(&fork.join("src/add.c"), "left + right", "right + left");
    git::commit(&fork, "Add backwards");
    let more = more.to_str().unwrap();
    git::git(&fork, &["format-patch", "--quiet", "--output-directory", more, "HEAD~1"]);
    project.run(&["import", more, "--append"]).success();
    project.run(&["--offline", "lock", "--check"]).success();
}

#[test]
fn a_rebase_onto_the_parent_reaches_them_too() {
    let stacked = Stacked::without_grandchild();
    declare(&stacked.project, "[variants.twin]\nextends = \"paged\"\npatches = \"patches/child\"\n");
    stacked.turn_parent().success();
    stacked.rebase(&[]).code(4);
    stacked.solve();
    stacked.rebase(&["--continue"]).success();
    stacked.assert_settled();
}

#[test]
fn a_series_of_two_variants_is_rebased_once() {
    let stacked = Stacked::without_grandchild();
    declare(&stacked.project, "[variants.twin]\nextends = \"paged\"\npatches = \"patches/child\"\n");
    let output = stacked.comment_parent(&[]).success();
    assert_eq!(output.stderr.matches("Rebased ").count(), 1, "{output}");
    stacked.assert_settled();
}

/// Only the overlay of the other variant is in the way: there is nothing to rebase.
#[test]
fn a_variant_that_no_longer_applies_is_named() {
    let project = Project::new();
    project.write("overlay/more/src/new.c", "int of_the_overlay;\n");
    declare(&project, &format!("{TWIN}overlays = [\"overlay/more\"]\n"));
    let folder = edit(&project);
    files::write(&folder.join("src/new.c"), "int of_the_patch;\n");
    git::commit(&folder, "Add a file");
    project.run(&["export"]).success().says(&[
        "warning: twin has the patches of paged too and no longer applies",
        "next: cargo xtask apply --check --variant twin",
    ]);
    project.run(&["apply", "--check", "--variant", "twin"]).code(1).says(&["would replace `src/new.c`"]);
}
