//! Failing `fetch`: no network, or a source that serves wrong objects, is truncated, damaged or missing.

use std::process::Command;

use super::support::importing::empty_project;
use super::support::{
    Output, Project, Source, files, git, program_path,
    upstream::{TAG, Upstream},
};

/// Asserts that nothing of a failed fetch is left: no object, no ref, no scratch file.
fn assert_nothing_left(project: &Project) {
    assert_eq!(project.scratch(), [""; 0]);
    let refs = git::git(&project.store(), &["for-each-ref"]);
    assert_eq!(refs, "");
    let objects = git::git(&project.store(), &["cat-file", "--batch-all-objects", "--batch-check"]);
    assert_eq!(objects, "");
}

fn fetch_without_npm(project: &Project, arguments: &[&str]) -> Output {
    let path = program_path::only(&project.beside("bin"), &["git"]);
    project.run_with_path(arguments, path)
}

fn bundle_bytes() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bundle");
    let upstream = Upstream::shared().repository();
    git::git(&upstream, &["bundle", "create", "--quiet", path.to_str().unwrap(), TAG, "HEAD"]);
    std::fs::read(path).unwrap()
}

fn with_bundle(bytes: &[u8]) -> Project {
    let project = Project::with_sources(&[Source::Path("upstream.bundle".into())]);
    project.write("upstream.bundle", bytes);
    project
}

#[test]
fn no_network_and_no_npm() {
    let project = Project::with_sources(&[Source::Git("https://espalier.invalid/x".into()), Source::Npm]);
    // A proxy of the machine would answer with its own text: this environment has none.
    insta::assert_snapshot!(fetch_without_npm(&project, &["fetch"]), @"
    exit: 3
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from git https://espalier.invalid/x
        Fetching hello v1.0 from npm node-llama-cpp@3.21.1
    error: no source served the pin `hello` (hello v1.0)
      expected tree f11e88fc55186cde99addc9e847a0385c4f7f056
      git https://espalier.invalid/x: git failed: unable to access 'https://espalier.invalid/x/': Could not resolve host: espalier.invalid
      npm node-llama-cpp@3.21.1: could not run `npm`
        no such program on PATH
      next: check the address, the network and the proxy, then try it alone: git ls-remote https://espalier.invalid/x
      next: install Node.js with npm (Debian: `apt-get install npm`), or use another source
      next: or use a local repository or bundle: cargo xtask fetch --from PATH
    ");
    assert_nothing_left(&project);
}

#[test]
fn no_git() {
    let project = Project::new();
    insta::assert_snapshot!(project.run_with_path(&["fetch"], ""), @"
    exit: 3
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
    error: no source served the pin `hello` (hello v1.0)
      expected tree f11e88fc55186cde99addc9e847a0385c4f7f056
      path [UPSTREAM]: could not run `git`
        no such program on PATH
      next: install git (Debian: `apt-get install git`)
      next: or use a local repository or bundle: cargo xtask fetch --from PATH
    ");
    assert_nothing_left(&project);
}

#[test]
fn offline_with_an_empty_store() {
    let project = Project::with_sources(&[Source::Git("https://espalier.invalid/x".into()), Source::Npm]);
    insta::assert_snapshot!(fetch_without_npm(&project, &["--offline", "fetch"]), @r"
    exit: 3
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from git https://espalier.invalid/x
        Fetching hello v1.0 from npm node-llama-cpp@3.21.1
    error: no source served the pin `hello` (hello v1.0)
      expected tree f11e88fc55186cde99addc9e847a0385c4f7f056
      git https://espalier.invalid/x: not tried because of `--offline`
      npm node-llama-cpp@3.21.1: not tried because of `--offline`
      next: run once without `--offline`, or give a copy: cargo xtask fetch --from PATH
    ");
    assert_nothing_left(&project);
}

#[test]
fn a_pin_with_another_tree_than_the_source_serves() {
    let project = Project::pinned(&"12".repeat(20), &[Source::Path(Upstream::shared().repository())]);
    insta::assert_snapshot!(project.run(&["fetch"]), @"
    exit: 1
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
    error: no source served the pin `hello` (hello v1.0)
      expected tree 1212121212121212121212121212121212121212
      path [UPSTREAM]: served tree f11e88fc55186cde99addc9e847a0385c4f7f056, the pin says 1212121212121212121212121212121212121212
      next: git rev-parse v1.0^{tree}    # in a clone that you trust: which of the two is right?
      next: if the pin is right, do not trust this source: remove `path [UPSTREAM]` from `pins.toml`
      next: or use a local repository or bundle: cargo xtask fetch --from PATH
    ");
    assert_nothing_left(&project);
}

#[test]
fn a_source_that_is_not_there() {
    let project = Project::with_sources(&[Source::Path("../upstream".into())]);
    insta::assert_snapshot!(project.run(&["fetch"]), @r"
    exit: 3
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path ../upstream
    error: no source served the pin `hello` (hello v1.0)
      expected tree f11e88fc55186cde99addc9e847a0385c4f7f056
      path ../upstream: `../upstream` is not there
      next: or use a local repository or bundle: cargo xtask fetch --from PATH
    ");
    assert_nothing_left(&project);
}

#[test]
fn a_repository_without_the_tag() {
    let project = Project::new();
    let empty = project.beside("empty");
    git::init(&empty);
    let project = Project::with_sources(&[Source::Path(empty)]);
    let output =
        project.run(&["fetch"]).code(3).says(&["no source served the pin `hello`", "fetch --from PATH"]);
    assert!(!output.stderr.contains("exit code"), "git's own words are missing\n{output}");
    assert_nothing_left(&project);
}

#[test]
fn a_folder_that_is_not_a_repository() {
    let project = Project::with_sources(&[Source::Path("ci".into())]);
    insta::assert_snapshot!(project.run(&["fetch"]), @"
    exit: 3
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path ci
    error: no source served the pin `hello` (hello v1.0)
      expected tree f11e88fc55186cde99addc9e847a0385c4f7f056
      path ci: `ci` is not a git repository
      next: or use a local repository or bundle: cargo xtask fetch --from PATH
    ");
    assert_nothing_left(&project);
}

/// An empty folder, or a part of a clone: every command that takes `--from` reports the same error, and not a missing
/// commit.
#[test]
fn fetching_from_a_folder_that_is_not_a_repository() {
    for new in [false, true] {
        let project = if new { empty_project() } else { Project::new() };
        let (empty, clone) = (project.beside("empty"), project.beside("clone"));
        std::fs::create_dir_all(&empty).unwrap();
        let upstream = Upstream::shared().repository();
        git::git(&empty, &["clone", "--quiet", upstream.to_str().unwrap(), clone.to_str().unwrap()]);
        let commands: [(&[&str], i32); 2] = match new {
            false => [(&["status", "--tip", "v2"], 3), (&["rebase", "--to", "v2"], 3)],
            true => [
                (&["import", "--variant", "my", "v1..v2"], 2),
                (&["init", "--at", "v2", "--variant", "my", "--upstream", "x"], 2),
            ],
        };
        for folder in ["empty", "clone/src"] {
            let from = project.beside(folder).display().to_string();
            for (command, code) in commands {
                let output = project.run(&[command, &["--from", &from]].concat()).code(code);
                let output =
                    output.says(&[&format!("`[BESIDE]/{folder}` is not a git repository"), "--from PATH"]);
                assert!(!output.stderr.contains("core.hooksPath"), "{output}");
                let has_place = output.stderr.contains("it is a folder in the repository `[BESIDE]/clone`");
                assert_eq!(has_place, folder == "clone/src", "{output}");
            }
        }
    }
}

/// A partial clone cannot serve all objects of a commit: git calls that corruption, and the printed command completes
/// the clone.
#[test]
fn from_a_partial_clone() {
    let project = Project::new();
    let upstream = project.beside("origin");
    std::fs::rename(project.fork(), &upstream).unwrap();
    git::git(&upstream, &["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", upstream.display());
    let arguments = ["clone", "--quiet", "--no-checkout", "--filter=blob:none", &url, "partial"];
    git::git(upstream.parent().unwrap(), &arguments);
    let from = project.beside("partial").display().to_string();
    let status = ["status", "--tip", "HEAD", "--from", &from];
    let refused = project.run(&status).code(3);
    let refused = refused.says(&["is a partial clone: it lacks the objects that its filter excluded"]);
    assert!(!refused.stderr.contains("corruption"), "{refused}");
    refused.says(&[
        "next: complete it, then run the same command again: git -C [BESIDE]/partial fetch --refetch",
    ]);
    git::git(&project.beside("partial"), &["fetch", "--quiet", "--refetch", "--no-filter"]);
    let complete = project.run(&status);
    assert!(complete.code != Some(3) && complete.stdout.contains("patches are exact at"), "{complete}");
}

#[test]
fn a_bundle_that_is_cut_short() {
    let bytes = bundle_bytes();
    let project = with_bundle(&bytes[..bytes.len() / 2]);
    insta::assert_snapshot!(project.run(&["fetch"]), @"
    exit: 3
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path upstream.bundle
    error: no source served the pin `hello` (hello v1.0)
      expected tree f11e88fc55186cde99addc9e847a0385c4f7f056
      path upstream.bundle: git failed: early EOF
        index-pack died
      next: or use a local repository or bundle: cargo xtask fetch --from PATH
    ");
    assert_nothing_left(&project);
}

#[test]
fn a_bundle_of_nothing() {
    let project = with_bundle(b"");
    insta::assert_snapshot!(project.run(&["fetch"]), @"
    exit: 3
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path upstream.bundle
    error: no source served the pin `hello` (hello v1.0)
      expected tree f11e88fc55186cde99addc9e847a0385c4f7f056
      path upstream.bundle: git failed: invalid gitfile format: upstream.bundle
        Could not read from remote repository.
      next: or use a local repository or bundle: cargo xtask fetch --from PATH
    ");
    assert_nothing_left(&project);
}

/// One bit at a time, from the header to the checksum at the end: never a success with another tree, and never anything
/// left behind.
#[test]
fn a_bundle_with_flipped_bits() {
    let bytes = bundle_bytes();
    let pack = bytes.windows(4).position(|four| four == b"PACK").unwrap();
    for at in [pack, pack + 7, pack + 30, (pack + bytes.len()) / 2, bytes.len() - 300, bytes.len() - 5] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        let project = with_bundle(&damaged);
        let output = project.run(&["fetch"]).code(3).says(&["no source served the pin", "  next: "]);
        assert!(!output.stderr.contains("panicked"), "{output}");
        assert_nothing_left(&project);
    }
}

#[test]
fn after_a_failure_the_same_command_works_once_the_source_is_whole() {
    let bytes = bundle_bytes();
    let project = with_bundle(&bytes[..bytes.len() / 2]);
    project.run(&["fetch"]).code(3);
    project.write("upstream.bundle", bytes);
    project.run(&["fetch"]).success();
}

#[test]
fn json_has_the_error_too() {
    let project = Project::with_sources(&[Source::Path("../upstream".into())]);
    let json = project.run(&["--json", "fetch"]).code(3).json();
    assert_eq!(json["error"]["kind"], "environment");
    assert!(json["error"]["hints"][0].as_str().unwrap().contains("--from PATH"), "{json}");
}

#[test]
fn a_store_that_is_damaged() {
    let project = Project::new();
    project.run(&["fetch"]).success();
    for file in files::list(&project.store().join("objects/pack")) {
        let path = project.store().join("objects/pack").join(file);
        if path.extension().is_some_and(|end| end == "pack") {
            std::fs::remove_file(&path).unwrap();
        }
    }
    insta::assert_snapshot!(project.run(&["apply"]), @r"
    exit: 3
    -- stdout --

    -- stderr --
    error: the object f11e88fc55186cde99addc9e847a0385c4f7f056 cannot be read from the store
      object not found - no match for id (f11e88fc55186cde99addc9e847a0385c4f7f056)
      next: rm -rf target/espalier/store.git    # it is fetched again
    ");
}

#[test]
fn a_configuration_that_git_cannot_read() {
    let project = Project::new();
    files::write(&project.beside("home/.gitconfig"), "[core\n");
    project
        .run(&["fetch"])
        .code(3)
        .says(&["git's configuration cannot be read", "git config --list --show-origin"]);
}

#[test]
fn a_repository_of_another_user() {
    let project = Project::new();
    let upstream = project.fork();
    let changed = Command::new("chown").args(["-R", "65534"]).arg(&upstream).output().unwrap();
    if !changed.status.success() {
        eprintln!("SKIPPED: this user may not give files away");
        return;
    }
    let path = upstream.display().to_string();
    let way_out = ["  next: git config --global --add safe.directory"];
    let other = Project::pinned(&"1".repeat(40), &[Source::Path(upstream)]);
    other.run(&["fetch"]).code(3).says(&way_out);
    other.run(&["status", "--tip", "main", "--from", &path]).code(3).says(&way_out);
}

#[test]
fn a_project_whose_path_is_not_utf_8() {
    use std::os::unix::ffi::OsStrExt;
    let project = Project::new();
    let odd = project.root().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir_all(&odd).unwrap();
    std::fs::copy(project.path("pins.toml"), odd.join("pins.toml")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_espalier-qa"));
    command.env_clear().env("PATH", program_path::of_this_machine()).env("HOME", project.beside("home"));
    command.arg("fetch").current_dir(odd);
    project.finish(command).code(2).says(&["is not UTF-8", "  next: move the project"]);
}

/// A server that starts counting objects and then finds that one is missing.
#[test]
fn a_server_that_breaks_off_is_reported_with_its_error() {
    let project = Project::new();
    let broken = project.fork();
    let blob = git::git(&broken, &["rev-parse", "v1.0:src/add.c"]);
    git::git(&broken, &["config", "gc.auto", "0"]);
    // Unpacked, so that one object can be removed.
    for pack in files::list(&broken.join(".git/objects/pack")).iter().filter(|name| name.ends_with(".pack")) {
        let from = broken.join(".git/objects/pack").join(pack);
        let moved = broken.join(pack);
        std::fs::rename(&from, &moved).unwrap();
        let unpack = format!("git unpack-objects -q <'{}'", moved.display());
        assert!(Command::new("sh").args(["-c", &unpack]).current_dir(&broken).status().unwrap().success());
    }
    std::fs::remove_file(broken.join(".git/objects").join(&blob[..2]).join(&blob[2..])).unwrap();
    let url = format!("file://{}", broken.display());
    let project = Project::with_sources(&[Source::Git(url)]);
    let output = project.run(&["fetch"]).code(3);
    let output = output.says(&[
        "git failed: ",
        &blob,
        "next: the server closed the connection: run the same command again",
    ]);
    output.says_nothing_of("Enumerating");
}
