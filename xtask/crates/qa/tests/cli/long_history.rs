//! A series of 120 patches and 400 upstream commits: the page of `status`, and the memory of the commands that walk the
//! history, have limits that do not depend on its length. With 25 times as many commits, which takes long and which
//! `campaigns.yml` runs every week:
//! `ESPALIER_LONG_HISTORY=10000 cargo test -p espalier-qa --test cli long_history -- --nocapture`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use espalier_core::sys::machine::memory::peak_bytes;
use espalier_qa::bench::made_history::{self, Size};

use super::support::{self, Output, Project};

/// Number of upstream commits since the pin, and the environment variable that sets another one.
const COMMITS: usize = 400;
const MORE: &str = "ESPALIER_LONG_HISTORY";
const PATCHES: usize = 120;
const PAGE_BYTES: usize = 1_000_000;
/// Maximum resident memory of a command; measured values are in docs/measurements/patch-engine.md.
const MEMORY_BYTES: u64 = 256 << 20;

/// Exit codes of the commands that judge the series at the tip.
const JUDGED: &[i32] = &[0, 1, 4];

/// Runs the tool on the project at `root`. Returns its output and the peak of its resident memory; `None` where the
/// system does not report that.
fn run(project: &Project, root: &Path, arguments: &[&str]) -> (Output, Option<u64>) {
    let tool = project.command(&[]);
    let mut command = Command::new(tool.get_program());
    command.arg("--root").arg(root).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_clear().envs(tool.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let child = command.spawn().unwrap();
    let (id, is_over) = (child.id(), AtomicBool::new(false));
    // On a busy machine a short run can be over before the thread has started.
    let first = peak_bytes(id);
    let peak = || {
        let mut peak = first;
        while !is_over.load(Ordering::Relaxed) {
            peak = peak.max(peak_bytes(id));
            std::thread::sleep(Duration::from_millis(5));
        }
        peak
    };
    std::thread::scope(|threads| {
        let watching = threads.spawn(peak);
        let output = child.wait_with_output();
        is_over.store(true, Ordering::Relaxed);
        (project.output(&output.unwrap()), watching.join().unwrap())
    })
}

/// Returns the peak that was measured. Only a system that has none may give none: a limit that nothing is compared with
/// would pass whatever the memory is.
fn measured(peak: Option<u64>) -> Option<u64> {
    assert!(peak.is_some_and(|peak| peak > 0) || !cfg!(target_os = "linux"), "no memory was measured");
    peak
}

#[test]
#[cfg(target_os = "linux")]
#[should_panic(expected = "no memory was measured")]
fn a_run_without_a_measurement_fails() {
    measured(None);
}

#[test]
fn a_long_history_takes_bounded_memory_and_a_bounded_page() {
    let commits = support::count(MORE, COMMITS);
    let project = Project::new();
    let root = project.beside("made-up");
    let size = Size { files: 400, commits: commits + 10, after_pin: commits, patches: PATCHES };
    made_history::make(&root, size).unwrap();
    let page = project.beside("page.html");
    // Some patches do not apply at the tip, so the rebase stops at the first of them.
    let commands: [(&[&str], &[i32]); 7] = [
        (&["fetch"], &[0]),
        (&["status", "--tip", "main", "--html", page.to_str().unwrap()], JUDGED),
        (&["newest", "--tip", "main"], JUDGED),
        (&["bisect", "--tip", "main"], JUDGED),
        (&["rebase", "--to", "main", "--dry-run"], JUDGED),
        (&["rebase", "--to", "main"], &[4]),
        (&["rebase", "--abort"], &[0]),
    ];
    for (arguments, codes) in commands {
        let (output, peak) = run(&project, &root, arguments);
        assert!(output.code.is_some_and(|code| codes.contains(&code)), "{arguments:?}: {output}");
        let Some(peak) = measured(peak) else { continue };
        eprintln!("{} over {commits} commits: {} MiB", arguments.join(" "), peak >> 20);
        assert!(peak <= MEMORY_BYTES, "{arguments:?}: {} MiB", peak >> 20);
    }
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.len() <= PAGE_BYTES, "{} bytes", html.len());
    assert_eq!(html.matches("<h2 class=\"name\">").count(), PATCHES);
}
