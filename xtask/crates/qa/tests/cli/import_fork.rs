//! `init` and `import --from`: a fork with merges, converted to a series.

use super::support::importing::{NOT_SAID, applied_by_git, empty_project, fork, started};
use super::support::upstream::{TAG, Upstream};
use super::support::{Project, files, git};

const RANGE: &str = "upstream/main..main";

fn import<'a>(fork: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["import", "--from", fork, RANGE, "--variant", "my"];
    arguments.extend(NOT_SAID.iter().flat_map(|path| ["--leave-out", path]));
    arguments.extend(more);
    arguments
}

/// Returns the fork's last tree without the left-out files, which the pin does not have.
fn goal(fork: &std::path::Path) -> String {
    let work = fork.with_file_name("goal");
    git::git(fork, &["worktree", "add", "--quiet", "--detach", work.to_str().unwrap(), "main"]);
    for path in NOT_SAID {
        git::git(&work, &["rm", "--quiet", path]);
    }
    let tree = git::git(&work, &["write-tree"]);
    git::git(fork, &["worktree", "remove", "--force", work.to_str().unwrap()]);
    tree
}

#[test]
fn a_fork_becomes_a_series_with_its_very_tree() {
    let project = empty_project();
    let fork = fork(&project);
    let output = project.run(&[import(fork.to_str().unwrap(), &[]), vec!["--json"]].concat()).success();
    let json = output.json();
    let base = git::git(&fork, &["rev-parse", "upstream/main~1"]);
    assert_eq!(json["pin"], base.as_str());
    assert_eq!(json["tree"], goal(&fork).as_str());
    assert_eq!(applied_by_git(&project, &fork, &base, "my"), goal(&fork));

    let dropped: Vec<String> = json["dropped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| format!("{}: {}", it["what"].as_str().unwrap(), it["why"].as_str().unwrap()))
        .collect();
    let is_dropped = |what: &str, why: &str| {
        let found = dropped.iter().any(|line| line.contains(what) && line.ends_with(why));
        assert!(found, "{what}: {why} is not in {dropped:#?}");
    };
    let taken = git::git(&fork, &["rev-parse", "--short=12", "upstream/main~2"]);
    is_dropped("(Change nothing)", "it is empty");
    is_dropped("(Link to the story)", "it changes only what is left out");
    is_dropped("(Name a file oddly)", "it changes only what is left out");
    is_dropped("(Say what the length is)", &format!("upstream has it, as {taken}"));
    assert_eq!(dropped.len(), 4, "{dropped:#?}");
    assert_eq!(json["merges"].as_array().unwrap().len(), 1);

    let names = files::list(&project.path("patches/my"));
    assert_eq!(names[0], "0001-count-to-1.patch");
    assert!(names.iter().any(|name| name.ends_with("-revert-add-the-other-way-round.patch")), "{names:#?}");
    let resolved = names.iter().find(|name| name.contains("-resolve-merge-")).unwrap();
    let resolved = project.read(&format!("patches/my/{resolved}"));
    assert!(resolved.contains("+        return \"hello from main and the side\";"), "{resolved}");
    assert!(resolved.contains("(Greet from the side)"), "{resolved}");

    let later = git::git(&fork, &["rev-parse", "upstream/main"]);
    let room = names.iter().find(|name| name.contains("-give-the-loop-room")).unwrap();
    let room = project.read(&format!("patches/my/{room}"));
    assert!(room.contains(&format!("\nUpstream-Status: Backport {later}\n")), "{room}");
}

#[test]
fn an_imported_series_can_be_edited_and_exported() {
    let project = empty_project();
    let fork = fork(&project);
    let text = project.run(&import(fork.to_str().unwrap(), &[])).success().stdout;
    assert!(text.contains("  next: cargo xtask lint"), "{text}");
    for command in [&["lock", "--check"][..], &["apply"], &["status"], &["edit"]] {
        project.run(command).success();
    }
    insta::assert_snapshot!(project.run(&["export"]), @r"
    exit: 0
    -- stdout --
    patches/my: 37 patches, nothing changed
    -- stderr --
    ");
    let lint = project.run(&["--json", "lint"]).code(1).json();
    let rules = lint["findings"].as_array().unwrap();
    assert!(rules.iter().all(|finding| finding["rule"] == "trailer-placeholder"), "{rules:#?}");
    let set =
        ["Upstream-Status: Pending", "Drop-when: never", "Verified-by: cargo test", "Numerics: identical"];
    let set: Vec<&str> = set.iter().flat_map(|set| ["--set", set]).collect();
    project.run(&[vec!["trailers", "my"], set].concat()).success();
    project.run(&["lint"]).success();
    project.run(&["lock", "--check"]).success();
}

#[test]
fn everything_that_patches_cannot_represent_is_reported_together() {
    let project = empty_project();
    let fork = fork(&project);
    let arguments = ["import", "--from", fork.to_str().unwrap(), RANGE, "--variant", "my"];
    let output = project.run(&arguments).code(4).says(&[
        "2 things cannot be expressed as a patch; nothing was written",
        "(Link to the story): docs/shortcut: the patch writes a symlink",
        "(Name a file oddly): ",
        "--leave-out docs/shortcut --leave-out $'a\\x09b.txt'",
    ]);
    assert!(files::list(project.root()).iter().all(|path| path.starts_with("target/")), "{output}");
}

/// The printed option is typed as it is.
#[cfg(target_os = "linux")]
#[test]
fn a_path_that_is_not_utf8_can_be_left_out() {
    use std::os::unix::ffi::OsStrExt;
    let project = started();
    let fork = project.fork();
    git::git(&fork, &["reset", "--quiet", "--hard", TAG]);
    let link = fork.join(std::ffi::OsStr::from_bytes(b"docs/caf\xe9"));
    std::os::unix::fs::symlink("old/story.txt", link).unwrap();
    git::commit(&fork, "Link to the story");
    files::edit(&fork.join("src/name.c"), "world", "people");
    git::commit(&fork, "Name people");
    let arguments = ["import", "--from", fork.to_str().unwrap(), "v1.0..HEAD", "--json"];
    let output = project.run(&arguments[..4]).code(4);
    let (_, option) = output.stderr.split_once("the same command with ").unwrap();
    assert_eq!(option.trim(), "--leave-out $'docs/caf\\xe9'");
    let command = project.command(&arguments);
    let mut pasted = std::process::Command::new("bash");
    pasted.args(["-c", &format!("exec \"$@\" {option}"), "bash"]).arg(command.get_program());
    pasted.args(command.get_args()).env_clear().current_dir(project.root());
    pasted.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let json = project.finish(pasted).success().json();
    assert_eq!(json["left_out"][0], "docs/caf\\xe9");
    assert_eq!(json["patches"].as_array().unwrap().len(), 1, "{json}");
}

#[test]
fn a_dry_run_says_the_same_and_writes_nothing() {
    let project = empty_project();
    let fork = fork(&project);
    let fork = fork.to_str().unwrap();
    let dry = project.run(&import(fork, &["--dry-run", "--json"])).success().json();
    assert!(files::list(project.root()).iter().all(|path| path.starts_with("target/")));
    let real = project.run(&import(fork, &["--json"])).success().json();
    assert_eq!(
        (&dry["patches"], &dry["dropped"], &dry["tree"]),
        (&real["patches"], &real["dropped"], &real["tree"])
    );
}

#[test]
fn into_a_variant_that_init_made() {
    let project = empty_project();
    let upstream = Upstream::shared().repository();
    let init =
        ["init", "--from", upstream.to_str().unwrap(), "--at", TAG, "--variant", "my", "--upstream", "hello"];
    let dry = project.run(&[&init[..], &["--dry-run"]].concat()).success();
    assert!(!project.path("pins.toml").exists() && !project.path("patches").exists());
    project.run(&init).success();
    assert_eq!(
        project.read("pins.toml").trim(),
        dry.stdout.trim().replace("[UPSTREAM]", upstream.to_str().unwrap())
    );
    project.run(&["lock"]).success();
    project.run(&init).code(2).says(&["there is a `pins.toml` already; nothing was changed"]);
    let fork = Upstream::shared().fork();
    let arguments = ["import", "--from", fork.to_str().unwrap(), "v1.0..main"];
    project.run(&arguments).success();
    assert_eq!(files::list(&project.path("patches/my")).len(), 3);
    project.run(&["lock", "--check"]).success();
    project.run(&arguments).code(2).says(&["my has 3 patches already; nothing was written"]);
}

#[test]
fn from_a_bundle_and_from_a_url() {
    let made = empty_project();
    let fork = fork(&made);
    let bundle = made.beside("fork.bundle");
    git::git(&fork, &["bundle", "create", "--quiet", bundle.to_str().unwrap(), "--all"]);
    let url = format!("file://{}", fork.display());
    for from in [bundle.to_str().unwrap(), url.as_str()] {
        let project = empty_project();
        let mut arguments = import(from, &["--json"]);
        arguments[3] = "refs/remotes/upstream/main..main";
        let output = project.run(&arguments).success();
        assert_eq!(output.json()["tree"], goal(&fork).as_str(), "{from}");
        project.run(&["lock", "--check"]).success();
        arguments[3] = "upstream/none..main";
        project.run(&arguments).code(2).says(&["git ls-remote"]);
    }
}

/// The pin is a commit without a tag: a clone of the committed project fetches it by its id.
#[test]
fn an_imported_series_works_in_a_fresh_clone() {
    let project = empty_project();
    let fork = fork(&project);
    project.run(&import(fork.to_str().unwrap(), &[])).success();
    assert!(project.read("pins.toml").contains("\ncommit = \""));
    std::fs::remove_dir_all(project.path("target")).unwrap();
    project.run(&["--locked", "apply"]).success();
}

/// A project that has a variant gets another one; existing files stay byte for byte the same.
#[test]
fn into_a_new_variant_beside_others() {
    let project = Project::new();
    project.run(&["lock"]).success();
    let before = project.read("pins.toml");
    let fork = fork(&project);
    project.run(&import(fork.to_str().unwrap(), &[])).success();
    assert!(project.read("pins.toml").starts_with(before.trim_end()));
    project.run(&["lock", "--check"]).success();
    let taken = ["import", "--from", fork.to_str().unwrap(), RANGE, "--variant", "stock"];
    project.run(&taken).code(2).says(&["has no series of its own"]);
}

/// The new variant has a pin of its own, and a folder of patches belongs to one pin.
#[test]
fn a_new_variant_whose_folder_another_variant_has() {
    let project = Project::new();
    project.edit("pins.toml", "patches = \"patches/paged\"", "patches = \"patches/my\"");
    let before = project.read("pins.toml");
    let fork = fork(&project);
    project.run(&import(fork.to_str().unwrap(), &[])).code(2).says(&[
        "`patches/my` is the folder of the variant `paged`",
        "next: choose another name: --variant my-fork",
    ]);
    assert_eq!(project.read("pins.toml"), before);
}

#[test]
fn a_fork_that_stands_somewhere_else() {
    let project = empty_project();
    let fork = fork(&project);
    let init = ["init", "--from", fork.to_str().unwrap(), "--at", "upstream/main", "--variant", "my"];
    project.run(&init).success();
    project.run(&import(fork.to_str().unwrap(), &[])).code(2).says(&[
        "the fork is based on",
        "with --variant NEW",
        "cargo xtask rebase --variant NEW --to",
    ]);
}

#[test]
fn mistakes_are_reported() {
    let project = empty_project();
    let fork = fork(&project);
    let fork = fork.to_str().unwrap();
    let from = |range: &'static str| ["import", "--from", fork, range, "--variant", "my"];
    project.run(&from("main")).code(2).says(&["`main` is not a range of commits"]);
    project.run(&from("main...side")).code(2).says(&["is not a range of commits"]);
    project.run(&from("none..main")).code(2).says(&["has no `none`"]);
    project.run(&from("main..main")).code(1).says(&["there is nothing to import", "next: name a range"]);
    project
        .run(&["import", "--from", "nowhere", RANGE, "--variant", "my"])
        .code(2)
        .says(&["there is no repository"]);
    project.run(&["import", "--from", fork, RANGE]).code(2).says(&["name it: --variant my-fork"]);
    project
        .run(&["import", "--from", fork, RANGE, "--variant", "../x"])
        .code(2)
        .says(&["a name has lower-case letters"]);
    project
        .run(&[&from(RANGE)[..], &["--locked"]].concat())
        .code(2)
        .says(&["cannot be used with `--locked`"]);
    project.run(&import(fork, &["--leave-out", "docs/shortcat"])).code(2).says(&["docs/shortcat"]);
    let url = ["--offline", "import", "--from", "https://example.invalid/x", RANGE, "--variant", "my"];
    project.run(&url).code(3).says(&["was not contacted because of `--offline`"]);
    assert!(files::list(project.root()).iter().all(|path| path.starts_with("target/")));
}
