//! The source `pip` with `files`: upstream's files in a source distribution, without git objects. Their tree decides as
//! for every source, and is reported as unverified.

use super::support::sdist::{Entry, FOLDER, RELEASE, Sdist, files_source, in_folder};
use super::support::syncing::{commit_all, user_files};
use super::support::{Output, files, git, upstream::TAG};

const NOTICE: &str =
    "unverified: the tree id of v2.0 is that of unpacked files, and was not compared with upstream's own id";

/// Fetches, and asserts that the package is rejected with `words` and that nothing is left.
#[track_caller]
fn refused(sdist: &Sdist, code: i32, words: &[&str]) -> Output {
    let output = sdist.fetch().code(code).says(&["no source served the pin `hello`", "  next: "]).says(words);
    assert!(!output.stderr.contains("panicked"), "{output}");
    sdist.assert_nothing_left();
    let beside = files::list(&sdist.project.beside(""));
    assert!(!beside.iter().any(|path| path.contains("evil")), "{beside:?}");
    output
}

/// A package whose files are listed as `revision`, of a project that pins the commit before it.
fn newer(revision: &str) -> Sdist {
    let sdist = Sdist::of_files();
    let upstream = format!("{{ path = {:?} }}", sdist.upstream.display().to_string());
    sdist.pin_to(&format!("tag = \"{TAG}\""), &[upstream, files_source(revision)]);
    let (newest, pinned) = (git::tree_of(&sdist.upstream, "HEAD"), git::tree_of(&sdist.upstream, TAG));
    sdist.project.edit("pins.toml", &newest, &pinned);
    sdist.serve();
    sdist.run(&["fetch"]).success();
    // The repository has no `v2.0`, and is not needed any more.
    std::fs::rename(&sdist.upstream, sdist.project.beside("away")).unwrap();
    sdist
}

#[test]
fn the_files_are_the_pinned_tree_and_are_there_offline() {
    let sdist = Sdist::of_files();
    let tree = git::tree_of(&sdist.upstream, "HEAD");
    let output = sdist.fetch().success().says(&["Unpacking the files of hello-py==1.0"]);
    let lines = format!("hello v2.0 tree {tree} from pip hello-py==1.0\n{NOTICE}");
    assert!(output.stdout.contains(&lines), "{output}");
    let store = sdist.project.store();
    let commit = git::git(&store, &["rev-parse", &format!("refs/espalier/pin-commits/{tree}")]);
    let text = git::git(&store, &["cat-file", "commit", &commit]);
    let fixed = "Espalier <espalier@espalier.invalid> 946684800 +0000";
    let message = format!("The unpacked files of a package\n\nTree: {tree}");
    assert_eq!(text, format!("tree {tree}\nauthor {fixed}\ncommitter {fixed}\n\n{message}"));
    let modes = git::git(&store, &["ls-tree", "-r", &tree, "scripts/greet.sh", "docs/link", "src/add.c"]);
    let modes: Vec<&str> = modes.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(modes, ["120000", "100755", "100644"]);
    std::fs::remove_file(sdist.project.beside("served.tar.gz")).unwrap();
    let output = sdist.run(&["--offline", "fetch"]).success();
    assert!(output.stdout.contains("already there") && output.stdout.contains(NOTICE), "{output}");
    assert_eq!(sdist.run(&["--offline", "--json", "fetch"]).json()["pins"][0]["verification"], "unverified");
    let output = sdist.run(&["--offline", "status"]).success();
    assert_eq!(output.stdout.matches(NOTICE).count(), 1, "{output}");
    let json = sdist.run(&["--offline", "--json", "status"]).json();
    assert_eq!(
        (&json["pin"]["verification"], &json["tip"]["verification"]),
        (&"unverified".into(), &"unverified".into())
    );
    sdist.run(&["--offline", "apply", "--check"]).success();
    assert_eq!(sdist.project.scratch(), [""; 0]);
}

#[test]
fn the_same_tree_from_a_repository_is_verified() {
    let sdist = Sdist::of_files();
    sdist.fetch().success();
    std::fs::remove_dir_all(sdist.project.store()).unwrap();
    std::fs::remove_file(sdist.project.beside("served.tar.gz")).unwrap();
    git::git(&sdist.upstream, &["tag", RELEASE]);
    sdist.project.edit("pins.toml", "../nowhere", sdist.upstream.to_str().unwrap());
    for command in ["fetch", "status"] {
        let output = sdist.run(&[command]).success();
        assert!(!output.stdout.contains("unverified"), "{output}");
    }
}

#[test]
fn another_tree_than_the_pinned_one() {
    let mut sdist = Sdist::of_files();
    let tree = git::tree_of(&sdist.upstream, "HEAD");
    sdist.project.edit("pins.toml", &tree, &"12".repeat(20));
    let served = format!("pip hello-py==1.0: served tree {tree}, the pin says {}", "12".repeat(20));
    refused(&sdist, 1, &[&served, "that is the tree of unpacked files", "do not trust this source"]);
    // The permission to execute a file is a part of the tree.
    sdist.project.edit("pins.toml", &"12".repeat(20), &tree);
    sdist.entry("scripts/greet.sh").mode = 0o644;
    refused(&sdist, 1, &[&format!("the pin says {tree}")]);
}

#[test]
fn paths_that_lead_out_or_mean_something_else_are_rejected() {
    let mut sdist = Sdist::of_files();
    let whole = sdist.entries.clone();
    let other_top = format!("other-1.0/{FOLDER}/evil");
    for (path, why) in [
        (in_folder("../evil"), "has a path with a `.` or `..` component"),
        (in_folder("src/../../evil"), "has a path with a `.` or `..` component"),
        (in_folder("src//evil"), "has a path with a double or a trailing slash"),
        (format!("/{FOLDER}/evil"), "has an absolute path"),
        (format!("../{FOLDER}/evil"), "has a path with a `.` or `..` component"),
        (other_top, "is below another top folder than the files before it"),
        (in_folder(".git/config"), "has a path into `.git`"),
        (in_folder("src/.GIT/config"), "has a path into `.git`"),
        (in_folder("git~1/config"), "has a path into `.git`"),
        (in_folder(".g\u{200c}it/config"), "has a path into `.git`"),
        (in_folder("a\\evil"), "has a path with a backslash"),
        (in_folder("C:/evil"), "has a path with a colon"),
        (in_folder("nul.txt"), "has a path component that is a device on Windows"),
        (in_folder("readme.md"), "differs from `README.md` in case only"),
        (in_folder("README.md/evil"), "is below `README.md`, which is a file"),
        (in_folder("docs/link/evil"), "is below `docs/link`, which is a file"),
        (in_folder("README.md"), "occurs twice"),
        (format!("hello-1.0/{FOLDER}"), "is not a folder"),
    ] {
        sdist.entries = [&whole[..], &[Entry::file(&path, "evil")]].concat();
        refused(&sdist, 1, &[&format!("in the package {why}"), "do not trust this version"]);
    }
    // Folders are not in a tree, and files elsewhere in the package are not read.
    let folders = ["", "docs/", "../evil/"].map(|path| Entry::empty(in_folder(path), b'5', ""));
    let elsewhere = ["hello-1.0/../evil", "hello-1.0/setup.py"].map(|path| Entry::file(path, "evil"));
    sdist.entries = [&folders[..], &whole, &elsewhere].concat();
    sdist.fetch().success();
}

#[test]
fn links_that_lead_out_and_devices_are_rejected() {
    let mut sdist = Sdist::of_files();
    let whole = sdist.entries.clone();
    let no_file = "is a link, a device or a sparse file";
    for (path, kind, target, why) in [
        (in_folder("evil"), b'2', "/etc/passwd", "is a link to an absolute path"),
        (in_folder("docs/evil"), b'2', "../../etc/passwd", "is a link that leads out of the tree"),
        (in_folder("evil"), b'2', "docs/../../etc", "is a link to a path with a `.` or `..` component"),
        (in_folder("evil"), b'2', "", "is a link to an empty path"),
        (in_folder("evil"), b'1', "hello-1.0/README.md", no_file),
        (in_folder("evil"), b'3', "", no_file),
        (in_folder("evil"), b'6', "", no_file),
        ("hello-1.0/thirdparty".to_string(), b'2', "/etc", no_file),
    ] {
        sdist.entries = [&whole[..], &[Entry::empty(&path, kind, target)]].concat();
        refused(&sdist, 1, &[&format!("`{path}` in the package {why}")]);
    }
}

#[test]
fn a_package_without_the_folder() {
    let mut sdist = Sdist::of_files();
    sdist.entries.retain(|entry| !entry.path.contains(FOLDER));
    sdist.entries.push(Entry::file("hello-1.0/setup.py", "x\n"));
    refused(&sdist, 3, &[&format!("the package has no files in `{FOLDER}`")]);
}

/// Makes the default variant one on another pin, so that nothing asks for upstream's id of the pin `hello`.
fn with_another_default(sdist: &Sdist) {
    let pins =
        sdist.project.read("pins.toml").replace("default-variant = \"paged\"", "default-variant = \"old\"");
    let tree = git::tree_of(&sdist.project.beside("away"), TAG);
    let old = format!(
        "\n[pins.old]\nupstream = \"hello\"\ntag = \"{TAG}\"\ntree = \"{tree}\"\n\
         sources = [{{ path = \"../away\" }}]\n\n[variants.old]\npin = \"old\"\n"
    );
    sdist.project.write("pins.toml", pins + &old);
}

/// `status --tip` and `rebase --to` request it by its name, once.
#[test]
fn a_tip_of_files_is_there_offline_and_a_pin_can_move_to_it() {
    let sdist = newer(RELEASE);
    with_another_default(&sdist);
    let output = sdist.run(&["status", "--variant", "paged", "--tip", RELEASE]).success();
    assert!(
        output.stdout.contains("patches are exact at hello v2.0") && output.stdout.contains(NOTICE),
        "{output}"
    );
    std::fs::remove_file(sdist.project.beside("served.tar.gz")).unwrap();
    for arguments in [&["status", "--tip", RELEASE][..], &["rebase", "--dry-run", "--to", RELEASE]] {
        let output = sdist.run(&[&["--offline"], arguments, &["--variant", "paged"]].concat()).success();
        assert_eq!(output.stdout.matches(NOTICE).count(), 1, "{output}");
    }
    let output = sdist.run(&["--offline", "rebase", "--to", RELEASE, "--variant", "paged"]).success();
    assert!(output.stdout.contains(NOTICE), "{output}");
    let tree = git::tree_of(&sdist.project.beside("away"), "HEAD");
    let pins = sdist.project.read("pins.toml");
    assert!(pins.contains(&format!("tag = \"v2.0\"\ntree = \"{tree}\"\n")), "{pins}");
    for command in [&["fetch"][..], &["status", "--variant", "paged"]] {
        let output = sdist.run(&[&["--offline"], command].concat()).success();
        assert_eq!(output.stdout.matches(NOTICE).count(), 1, "{output}");
    }
}

/// Another source may have the release, and its objects are not here: the tree stays unverified.
#[test]
fn the_default_pin_does_not_move_to_an_unverified_tree() {
    let sdist = newer(RELEASE);
    let before = user_files(&sdist.project);
    sdist.run(&["status", "--tip", RELEASE]).success();
    for command in [&["rebase"][..], &["rebase", "--dry-run"], &["sync"]] {
        let output = sdist.run(&[command, &["--to", RELEASE]].concat()).code(2);
        output.says(&[
            "the pin `hello` cannot move to v2.0",
            "unpacked files cannot confirm that",
            "next: use v2.0 as a generation, a pin with `generation-of = \"hello\"`: docs/guides/generations.md",
            "cargo xtask rebase --to v2.0 --from PATH",
        ]);
    }
    assert!(user_files(&sdist.project) == before);
    // The same tree from upstream's objects.
    let clone = sdist.project.beside("away");
    git::git(&clone, &["tag", RELEASE]);
    let output = sdist.run(&["rebase", "--to", RELEASE, "--from", clone.to_str().unwrap()]).success();
    assert!(!output.stdout.contains("unverified"), "{output}");
}

/// An edit of `pins.toml` can put the default pin there; its move is not reported as one that holds.
#[test]
fn a_move_of_the_default_pin_by_hand_to_an_unverified_tree_has_no_report() {
    let sdist = newer(RELEASE);
    sdist.run(&["lock"]).success();
    commit_all(&sdist.project);
    let (old, new) = (
        git::tree_of(&sdist.project.beside("away"), TAG),
        git::tree_of(&sdist.project.beside("away"), "HEAD"),
    );
    sdist.project.edit("pins.toml", &format!("tag = \"{TAG}\""), "tag = \"v2.0\"");
    sdist.project.edit("pins.toml", &old, &new);
    sdist.run(&["fetch"]).success();
    sdist.run(&["lock"]).success();
    sdist.run(&["sync", "--since", "HEAD"]).code(2).says(&["the pin `hello` cannot move to v2.0"]);
    assert!(!sdist.project.path("docs/syncs").exists());
}

/// The commit in the store is not upstream's, and `pins.toml` must not name it.
#[test]
fn files_listed_by_a_commit_id_are_pinned_by_that_id() {
    let id = "0aceb8d1".repeat(5);
    let sdist = newer(&id);
    with_another_default(&sdist);
    sdist.run(&["status", "--variant", "paged", "--tip", &id]).success();
    sdist.run(&["--offline", "rebase", "--variant", "paged", "--to", &id]).success();
    let pins = sdist.project.read("pins.toml");
    assert!(pins.contains(&format!("commit = \"{id}\"\n")), "{pins}");
}

#[test]
fn files_alone_cannot_be_the_default_pin() {
    let sdist = Sdist::of_files();
    sdist.project.edit("pins.toml", ",\n    { path = \"../nowhere\" }", "");
    for command in ["fetch", "apply"] {
        sdist.run(&[command]).code(2).says(&[
            "error: invalid `pins.toml`\n",
            "--> pins.toml:8:5\n",
            "the tree id of the default variant's pin has to be upstream's, and unpacked files cannot confirm that",
            "next: add a source with upstream's git objects of v2.0 to `[pins.hello]`",
        ]);
    }
    assert!(!sdist.project.path("target").exists());
}

#[test]
fn the_default_pin_does_not_move_to_what_only_files_have() {
    let sdist = newer(RELEASE);
    let path = format!("{{ path = {:?} }}", sdist.upstream.display().to_string());
    let npm = format!("{{ npm = \"n\", member = \"a.bundle\", versions = {{ \"{TAG}\" = \"1.0.0\" }} }}");
    sdist.project.edit("pins.toml", &path, &npm);
    let pins = sdist.project.read("pins.toml");
    sdist.run(&["status", "--tip", RELEASE]).success();
    for more in [&["--dry-run"][..], &[]] {
        let output = sdist.run(&[&["rebase", "--to", RELEASE], more].concat()).code(2);
        output.says(&[
            "the pin `hello` cannot move to v2.0",
            "has to be upstream's",
            "next: use v2.0 as a generation",
            "next: add a source",
        ]);
    }
    assert_eq!(sdist.project.read("pins.toml"), pins);
}
