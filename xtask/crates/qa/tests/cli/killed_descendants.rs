//! SIGKILL at random points of an export that rebases the series of descendants: all of them are written, or none.

use std::path::Path;
use std::time::Duration;

use super::support::editing::edit_folder;
use super::support::files;
use super::support::kill::{self, Kills};
use super::support::random::XorShift;
use super::support::stacked::Stacked;

const POINTS: usize = 8;

/// The project and the edit repository of `paged` before the export.
struct Start {
    committed: Vec<(String, String)>,
    edited: tempfile::TempDir,
}

impl Start {
    fn of(stacked: &Stacked) -> Start {
        let edited = tempfile::tempdir().unwrap();
        files::copy_folder(&edit_folder(&stacked.project, "paged"), &edited.path().join("paged"));
        Start { committed: stacked.committed(), edited }
    }

    fn restore(&self, stacked: &Stacked) {
        let replace = |folder: &Path| std::fs::remove_dir_all(folder).unwrap_or_default();
        replace(&stacked.project.path("patches"));
        for (path, text) in &self.committed {
            stacked.project.write(path, text);
        }
        let folder = edit_folder(&stacked.project, "paged");
        replace(&folder);
        files::copy_folder(&self.edited.path().join("paged"), &folder);
    }
}

#[test]
fn an_export_that_is_killed_rebases_all_descendants_or_none() {
    let stacked = Stacked::new();
    stacked.change("paged", "src/greet.c", ("said first.", "said first of all."), "Say more");
    let start = Start::of(&stacked);
    let export = || stacked.project.command(&["export", "paged"]);
    let whole = kill::run_and_kill(export(), Duration::from_secs(60));
    let wanted = stacked.committed();
    assert_ne!(wanted, start.committed);
    let mut random = XorShift::new(0x5eed_0dd5);
    let mut kills = Kills::of("export with descendants");
    for _ in 0..kill::points(POINTS) {
        start.restore(&stacked);
        kills.run(export(), whole.mul_f64(random.fraction()));
        // Any command completes a decided change.
        stacked.project.run(&["lint"]);
        let found = stacked.committed();
        assert!(found == start.committed || found == wanted);
        kills.left(if found == wanted { "written" } else { "as it was" });
        stacked.export("paged", &[]).success();
        assert_eq!(stacked.committed(), wanted);
        stacked.assert_settled();
    }
}
