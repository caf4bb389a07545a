//! `page`: the output of the browser driver, compared with the expected checks.
//!
//! The browser and Node.js are shell scripts here; `cargo xtask test` runs the real ones where they are installed.

use std::ffi::OsString;

use super::support::npm::{self, WELL};
use super::support::{Output, Project, files};

const CHECKS: [&str; 6] = ["open", "ask", "text-file", "image", "reload", "at-home"];

/// Creates a built project whose server has a page, with the parts of `ci/browser` that xtask reads.
fn project() -> Project {
    let project = Project::new();
    npm::give_page(&project);
    for file in ["package.json", "package-lock.json", "driver.mjs"] {
        project.write(&format!("ci/browser/{file}"), "{}\n");
    }
    project.run_with_path(&["build", "--no-smoke"], npm::path(&project, "20.19.0", WELL)).success();
    project
}

/// Returns the PATH of a machine with a Chromium, whose node runs `driver` in place of the driver.
fn path(project: &Project, driver: &str) -> OsString {
    let path = npm::path(project, "22.12.0", WELL);
    let folder = project.beside("browser");
    files::write_script(&folder.join("chromium"), "exit 1");
    let log = project.beside("driver.log").display().to_string();
    let node =
        format!("[ \"$1\" = --version ] && {{ echo v22.12.0; exit; }}\necho \"$*\" >'{log}'\n{driver}");
    files::write_script(&folder.join("node"), &node);
    std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&path))).unwrap()
}

/// Returns the output of a driver that reports success for everything except `wrong`.
fn says(wrong: &str) -> String {
    let error = |name: &str| if name == wrong { "\"no such thing\"" } else { "null" };
    CHECKS.map(|name| format!("echo '{{\"check\": \"{name}\", \"error\": {}}}'\n", error(name))).concat()
}

fn page(project: &Project, driver: &str) -> Output {
    project.run_with_path(&["page", "--screenshots", "shots"], path(project, driver))
}

#[test]
fn all_checks_pass() {
    let project = project();
    insta::assert_snapshot!(page(&project, &says("")), @r"
    exit: 0
    -- stdout --
    open       ok
    ask        ok
    text-file  ok
    image      ok
    reload     ok
    at-home    ok
    screenshots: shots
    -- stderr --
      Installing the packages of ci/browser/package-lock.json from npm, under target/
           Using the web page of paged-cpu-native in a browser
    ");
    let words = std::fs::read_to_string(project.beside("driver.log")).unwrap();
    assert!(words.contains("/driver.mjs http://127.0.0.1:") && words.ends_with("/shots images\n"), "{words}");
    assert!(project.path("shots").is_dir());
    let installs = npm::calls(&project).len();
    page(&project, &says("")).success();
    assert_eq!(npm::calls(&project).len(), installs, "the driver is installed once");
}

#[test]
fn each_check_can_fail() {
    let project = project();
    for name in CHECKS {
        let output = page(&project, &says(name)).code(1);
        assert!(output.stdout.contains("FAILED: no such thing"), "{output}");
    }
}

#[test]
fn a_driver_that_ends_early_fails_the_other_checks() {
    let project = project();
    let output =
        page(&project, "echo '{\"check\": \"open\", \"error\": null}'; echo the browser died >&2; exit 1");
    insta::assert_snapshot!(output, @r"
    exit: 1
    -- stdout --
    open       ok
    ask        FAILED: not reached: the browser died
    text-file  FAILED: not reached: the browser died
    image      FAILED: not reached: the browser died
    reload     FAILED: not reached: the browser died
    at-home    FAILED: not reached: the browser died
    screenshots: shots
    -- stderr --
      Installing the packages of ci/browser/package-lock.json from npm, under target/
           Using the web page of paged-cpu-native in a browser
    ");
    page(&project, "exit 0").code(3).says(&["driver.mjs"]);
}

#[test]
fn without_a_browser() {
    let project = project();
    let folder = project.beside("bare");
    let path = super::support::program_path::only(&folder, &["sh"]);
    insta::assert_snapshot!(project.run_with_path(&["page"], path), @r"
    exit: 3
    -- stdout --

    -- stderr --
    error: no Chromium on PATH
      next: install Chromium (Debian: `apt-get install chromium`)
    ");
}

#[test]
fn a_server_without_the_page() {
    let project = project();
    let machine = npm::path(&project, "20.19.0", WELL);
    project.run_with_path(&["build", "--no-smoke", "--no-ui"], &machine).success();
    insta::assert_snapshot!(page(&project, &says("")), @r"
    exit: 2
    -- stdout --

    -- stderr --
    error: the server in `target/espalier/dist/paged-cpu-native` was built without the web page
      next: cargo xtask build --variant paged --flavor cpu-native
    ");
}
