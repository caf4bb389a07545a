//! The web page of the server: built once for its sources, or skipped with a message, never partially.

use std::ffi::OsStr;

use super::support::npm::{self, WELL};
use super::support::upstream::{TAG, Upstream};
use super::support::{Output, Project, Source, files, git, program_path};

const DIST: &str = "target/espalier/build/paged-cpu-native/tools/ui/dist";
const PACKAGE: &str = "target/espalier/dist/paged-cpu-native";

fn project() -> Project {
    let project = Project::new();
    npm::give_page(&project);
    project
}

/// Returns the folders of built pages.
fn pages(project: &Project) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(project.path("target/espalier/ui")) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn manifest(project: &Project) -> serde_json::Value {
    serde_json::from_str(&project.read(&format!("{PACKAGE}/manifest.json"))).unwrap()
}

fn assert_nothing_half(project: &Project) {
    assert_eq!(pages(project), [""; 0]);
    assert_eq!(project.scratch(), [""; 0]);
}

#[test]
fn a_build_has_the_page_and_names_it() {
    let project = project();
    let path = npm::path(&project, "20.19.0", WELL);
    let output = project.run_with_path(&["--json", "build"], &path).success();
    let tree = files::tree_id(&project.tree("paged").join("tools/ui"));
    assert_eq!(output.json()["page"]["tree"], tree);
    assert_eq!(pages(&project), std::slice::from_ref(&tree));
    assert_eq!(files::list(&project.path(DIST)), ["app/code.js", "index.html"]);
    assert_eq!(project.read(&format!("{PACKAGE}/licenses/web-page.txt")), "licences\n");
    let manifest = manifest(&project);
    assert_eq!(manifest["page"]["tree"], tree);
    assert_eq!(manifest["page"]["sha256"].as_str().unwrap().len(), 64);
    assert!(manifest["files"]["licenses/web-page.txt"].is_string());
    assert_eq!(project.scratch(), [""; 0]);
}

#[test]
fn code_of_others_gets_no_scripts_no_tokens_and_no_home() {
    let project = project();
    let path = npm::path(&project, "22.12.0", WELL);
    let mut command = project.command_with_path(&["build", "--no-smoke"], &path);
    for name in ["NPM_TOKEN", "NODE_AUTH_TOKEN", "GITHUB_TOKEN", "npm_config_script_shell", "NODE_OPTIONS"] {
        command.env(name, "secret");
    }
    command.env("HTTPS_PROXY", "http://name:secret@proxy.invalid");
    project.finish(command).success();
    let log = std::fs::read_to_string(project.beside("npm.log")).unwrap();
    let (install, build) = log.split_at(log.find("npm run build").unwrap());
    assert!(install.starts_with("npm ci --ignore-scripts "), "{log}");
    assert!(install.contains("\nnpm_config_registry=https://registry.invalid/\n"), "{log}");
    assert!(install.contains("\nHTTPS_PROXY="), "npm has to reach the network: {log}");
    assert!(!install.replace("HTTPS_PROXY=http://name:secret", "").contains("secret"), "{log}");
    assert!(!build.contains("secret"), "{log}");
    let home = project.beside("home").display().to_string();
    assert!(!log.lines().any(|line| line == format!("HOME={home}")), "{log}");
}

#[test]
fn it_is_built_once_for_its_sources() {
    let project = project();
    let path = npm::path(&project, "20.19.0", WELL);
    project.run_with_path(&["build"], &path).success();
    assert_eq!(npm::calls(&project).len(), 2);
    let again = project.run_with_path(&["--json", "build"], &path).success();
    assert_eq!(again.json()["current"], true);
    // Another build folder, on a machine without the programs to build a page.
    std::fs::remove_dir_all(project.path("target/espalier/build")).unwrap();
    let without = program_path::only(
        &project.beside("without"),
        &["git", "cc", "c++", "ld", "as", "ar", "ranlib", "cmake", "ninja", "sh"],
    );
    project.run_with_path(&["--offline", "build"], without).success();
    assert_eq!(npm::calls(&project).len(), 2);
    assert_eq!(files::list(&project.path(DIST)), ["app/code.js", "index.html"]);
    project.edit("overlay/extra/tools/ui/src/page.html", "Hello", "Good day");
    project.run_with_path(&["build"], &path).success();
    assert_eq!(npm::calls(&project).len(), 4);
    assert_eq!(project.read(&format!("{DIST}/index.html")), "<h1>Good day</h1>\n");
    assert_eq!(pages(&project).len(), 2);
}

#[test]
fn with_and_without_it_builds_differ() {
    let project = project();
    let path = npm::path(&project, "20.19.0", WELL);
    let without = project.run_with_path(&["--json", "build", "--no-ui"], &path).success();
    assert_eq!(without.json()["page"]["left_out"], "`--no-ui`");
    let inputs = manifest(&project)["inputs"].clone();
    assert!(manifest(&project)["page"].is_null());
    assert!(!project.path(DIST).exists() && npm::calls(&project).is_empty());
    let with = project.run_with_path(&["--json", "build"], &path).success();
    assert_eq!(with.json()["current"], false);
    assert_ne!(manifest(&project)["inputs"], inputs);
    let back = project.run_with_path(&["build", "--no-ui"], &path).success();
    assert!(back.stderr.contains("dist/paged-cpu-native, without the web page: `--no-ui`\n"), "{back}");
    assert_eq!(manifest(&project)["inputs"], inputs);
    assert!(!project.path(DIST).exists());
    assert!(!project.path(&format!("{PACKAGE}/licenses")).exists());
}

/// Asserts that a build succeeds without the page, and reports last what is missing.
fn left_out(output: Output, project: &Project) -> String {
    let output = output.success();
    assert!(manifest(project)["page"].is_null());
    assert_nothing_half(project);
    let at = output.stderr.find("warning: the server has no web page").unwrap_or_else(|| panic!("{output}"));
    output.stderr[at..].to_string()
}

#[test]
fn a_machine_without_npm() {
    let project = project();
    let path = program_path::only(
        &project.beside("without"),
        &["git", "cc", "c++", "ld", "as", "ar", "ranlib", "cmake", "ninja", "sh"],
    );
    insta::assert_snapshot!(left_out(project.run_with_path(&["build"], path), &project), @r"
    warning: the server has no web page: `node` not found
      next: install Node.js with npm (Debian: `apt-get install npm`, or a newer one from nodejs.org)
    ");
}

#[test]
fn a_node_that_is_too_old() {
    let project = project();
    let path = npm::path(&project, "18.20.4", WELL);
    insta::assert_snapshot!(left_out(project.run_with_path(&["build"], &path), &project), @r"
    warning: the server has no web page: node 18.20.4 cannot run `vite`, which asks for ^20.19.0 || >=22.12.0
      next: install Node.js with npm (Debian: `apt-get install npm`, or a newer one from nodejs.org)
    ");
    assert_eq!(npm::calls(&project), [""; 0]);
}

#[test]
fn no_network() {
    let project = project();
    project.run(&["fetch"]).success();
    let path = npm::path(&project, "20.19.0", WELL);
    insta::assert_snapshot!(left_out(project.run_with_path(&["--offline", "build"], &path), &project), @r"
    warning: the server has no web page: it is not built yet, and `--offline` prevents downloading what builds it
      next: run once without `--offline`
    ");
    assert_eq!(npm::calls(&project), [""; 0]);
}

fn fails(npm: &str) -> (Project, Output) {
    let project = project();
    let output = project.run_with_path(&["build"], npm::path(&project, "20.19.0", npm));
    assert_nothing_half(&project);
    assert!(!project.path(PACKAGE).exists());
    let path = npm::path(&project, "20.19.0", WELL);
    project.run_with_path(&["build"], &path).success();
    assert_eq!(pages(&project).len(), 1);
    (project, output)
}

/// Returns the error at the end. The lines before it are of two threads, in any order.
fn error_of(output: &Output) -> &str {
    let at = output.stderr.rfind("\nerror: ").unwrap_or_else(|| panic!("{output}"));
    &output.stderr[at + 1..]
}

#[test]
fn npm_that_cannot_reach_the_registry() {
    let (_, output) = fails("echo npm error network request failed >&2; exit 1");
    let output = output.code(3).says(&[
        "warning: the web page was not built (page-install failed), and is reported again at the end",
    ]);
    insta::assert_snapshot!(error_of(&output), @r"
    error: page-install failed
      npm error network request failed
      next: the whole output: target/espalier/logs/page-install.log
      next: add `--no-ui` to build without the web page
    ");
}

#[test]
fn a_package_that_is_not_what_the_lock_says() {
    let (_, output) = fails("echo npm error code EINTEGRITY >&2; exit 1");
    output.code(1).says(&["npm error code EINTEGRITY", "  next: add `--no-ui`"]);
}

#[test]
fn a_page_that_does_not_build() {
    let (_, output) =
        fails("[ $1 = ci ] || { mkdir dist; echo half >dist/index.html; echo error: no >&2; exit 1; }");
    insta::assert_snapshot!(error_of(&output.code(1)), @r"
    error: page-build failed
      error: no
      next: the whole output: target/espalier/logs/page-build.log
      next: add `--no-ui` to build without the web page
    ");
}

#[test]
fn a_build_that_ends_well_and_leaves_no_page() {
    let (_, output) = fails("true");
    output.code(1).says(&["the web page was built without a word, and has no `index.html`"]);
}

#[test]
fn a_full_disk() {
    let (_, output) = fails("echo npm error ENOSPC: No space left on device >&2; exit 1");
    output.code(3).says(&["free some disk space"]);
}

#[test]
fn cut_in_the_middle() {
    for at in ["ci", "run"] {
        let project = project();
        let cut =
            format!("[ $1 = {at} ] && {{ mkdir -p dist; echo half >dist/index.html; kill -9 $PPID; }}\ntrue");
        let killed = project.run_with_path(&["build"], npm::path(&project, "20.19.0", &cut));
        assert_eq!((killed.code, pages(&project)), (None, Vec::new()), "{killed}");
        let path = npm::path(&project, "20.19.0", WELL);
        project.run_with_path(&["build"], &path).success();
        assert_eq!((pages(&project).len(), project.scratch()), (1, Vec::new()));
    }
}

#[test]
fn a_built_page_that_was_changed() {
    let project = project();
    let path = npm::path(&project, "20.19.0", WELL);
    project.run_with_path(&["build"], &path).success();
    let folder = format!("target/espalier/ui/{}", pages(&project)[0]);
    project.write(&format!("{folder}/dist/index.html"), "<h1>Mine</h1>\n");
    std::fs::remove_dir_all(project.path(PACKAGE)).unwrap();
    let output = project.run_with_path(&["build"], &path).code(3);
    assert!(output.stderr.contains(&format!("next: rm -rf {folder} ")), "{output}");
    std::fs::remove_dir_all(project.path(&folder)).unwrap();
    project.run_with_path(&["build"], &path).success();
    assert_eq!(project.read(&format!("{DIST}/index.html")), "<h1>Hello</h1>\n");
}

/// Returns the lines of the step `page`.
fn planned(project: &Project, more: &[&str], path: &OsStr) -> String {
    let output = project.run_with_path(&[&["build", "--dry-run"], more].concat(), path).success();
    let from = output.stdout.find("\npage ").unwrap_or_else(|| panic!("{output}"));
    let rest = &output.stdout[from + 1..];
    rest[..rest.find("\nconfigure ").unwrap()].to_string()
}

#[test]
fn dry_run_says_what_becomes_of_it() {
    let project = project();
    let path = npm::path(&project, "20.19.0", WELL);
    insta::assert_snapshot!(planned(&project, &[], &path), @r"
    page         tools/ui, if the tree has it
                 npm ci --ignore-scripts --engine-strict --no-audit --no-fund --fetch-retries=1
                 npm run build
                 at the same time as the steps up to compile, which then compiles it into the programs
    ");
    insta::assert_snapshot!(planned(&project, &["--no-ui"], &path), @r"
    page         left out: `--no-ui`
    ");
    assert!(!project.path("target").exists());
    let old = npm::path(&project, "18.0.0", WELL);
    project.run_with_path(&["build"], &old).success();
    let current =
        |path| project.run_with_path(&["build", "--dry-run"], path).success().stdout.contains("current");
    assert_eq!([current(&old), current(&path)], [true, false], "npm is here now");
}

/// A fetched pin is examined before its tree is on disk.
#[test]
fn dry_run_looks_at_the_page_of_the_pin() {
    let giver = project();
    let upstream = giver.beside("with-a-page");
    files::copy_folder(&Upstream::shared().repository(), &upstream);
    files::copy_folder(&giver.path("overlay/extra/tools/ui"), &upstream.join("tools/ui"));
    git::commit(&upstream, "Have a page");
    git::git(&upstream, &["tag", "--force", TAG]);
    let project = Project::pinned(&git::tree_of(&upstream, TAG), &[Source::Path(upstream.clone())]);
    project.run(&["fetch"]).success();
    let path = npm::path(&project, "20.19.0", WELL);
    let page = git::git(&upstream, &["rev-parse", &format!("{TAG}:tools/ui")]);
    let output = planned(&project, &[], &path);
    assert!(output.contains(&format!("target/espalier/ui/{page}\n  ")), "{output}");
    assert!(planned(&project, &["--offline"], &path).contains("left out: it is not built yet"));
    project.run_with_path(&["build"], &path).success();
    project.edit("ci/flavors.toml", "\"Release\"", "\"Debug\"");
    assert_eq!(planned(&project, &[], &path), format!("page         target/espalier/ui/{page}"));
    assert_eq!(pages(&project), [page]);
}

/// Returns what the plugin leaves of an index of icons when the page's sources have this text; `None` on a machine
/// without Node.js.
fn left_of_icons(source: &str, index: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    files::write(&folder.path().join("src/lib/page.svelte"), source);
    files::write(&folder.path().join("index.js"), index);
    let plugin = files::of_this_repository("xtask/crates/dist/src/sys/web_page/espalier.icons.mjs");
    let script = format!(
        "import {{ icons }} from {:?};
         import {{ readFileSync }} from 'node:fs';
         const id = '/node_modules/@lucide/svelte/dist/icons/index.js';
         const index = readFileSync('index.js', 'utf-8');
         process.stdout.write(icons().transform(index, id)?.code ?? index);",
        plugin.display().to_string()
    );
    let mut node = std::process::Command::new("node");
    let output =
        node.args(["--input-type=module", "--eval", &script]).current_dir(folder.path()).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn of_all_icons_only_those_that_the_sources_name_are_compiled() {
    const INDEX: &str = "export { default as Check } from './check.svelte';\n\
                         export { \n/** @deprecated use {@link LoaderCircle} */\ndefault as Loader2 } from './loader.js';\n\
                         export { default as Skull, default as SkullIcon } from './skull.js';\n\
                         export { default as Anchor } from './anchor.svelte';\n";
    let left = |source: &str| left_of_icons(source, INDEX);
    let Some(some) =
        left("import {\n\tCheck,\n\tLoader2 as Waiting,\n\tSkullIcon\n} from '@lucide/svelte';\n")
    else {
        return;
    };
    for (file, is_left) in [("check.", true), ("loader.", true), ("skull.", true), ("anchor.", false)] {
        assert_eq!(some.contains(file), is_left, "{file}: {some}");
    }
    for all in [
        "import * as all from '@lucide/svelte';",
        "import { icons as all } from '@lucide/svelte';",
        "const all = await import('@lucide/svelte');",
    ] {
        assert_eq!(left(all).as_deref(), Some(INDEX), "{all}");
    }
    let other = left("import { Anchor } from 'elsewhere';").unwrap();
    assert!(!other.contains("anchor"), "{other}");
}
