//! The source `pip`: a git repository in a source distribution, served by a fake `python3`, and by the real pip.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use espalier_core::sys::machine::disk::sha256;

use super::support::sdist::{Entry, MEMBER, Sdist, in_repository, source};
use super::support::{Output, Project, files, git, program_path, upstream::TAG};

/// Fetches, and asserts that the package is rejected with `words` and that nothing is left.
#[track_caller]
fn refused(sdist: &Sdist, code: i32, words: &[&str]) -> Output {
    let output = sdist.fetch().code(code).says(&["no source served the pin `hello`", "  next: "]).says(words);
    assert!(!output.stderr.contains("panicked"), "{output}");
    sdist.assert_nothing_left();
    output
}

#[test]
fn a_commit_is_fetched_by_its_id_and_is_there_offline() {
    let sdist = Sdist::new();
    sdist.fetch().success().says(&["pip hello-py==1.0"]);
    let asked = sdist.asked();
    let digest = asked.trim_end().rsplit(' ').next().unwrap();
    assert!(asked.contains(" --no-binary :all: ") && asked.contains(" -- hello-py==1.0 "), "{asked}");
    assert!(sdist.project.read("pins.toml").contains(digest), "{asked}");
    let store = sdist.project.store();
    let tree = git::tree_of(&sdist.upstream, "HEAD");
    let stored = git::git(&store, &["rev-parse", &format!("refs/espalier/pin-commits/{tree}")]);
    assert_eq!(stored, sdist.commit, "it is upstream's own commit");
    // It has a parent, which the package does not have.
    git::git(&store, &["rev-list", "--objects", "--quiet", &sdist.commit]);
    std::fs::remove_file(sdist.project.beside("served.tar.gz")).unwrap();
    assert!(sdist.run(&["--offline", "fetch"]).success().stdout.contains("already there"));
    sdist.run(&["--offline", "apply", "--check"]).success();
    assert_eq!(sdist.project.scratch(), [""; 0]);
}

#[test]
fn loose_objects_are_enough() {
    let sdist = Sdist::with_loose_objects();
    assert!(!sdist.entries.iter().any(|entry| entry.path.ends_with(".pack")));
    sdist.fetch().success();
    git::git(&sdist.project.store(), &["cat-file", "-e", &format!("{}:src/add.c", sdist.commit)]);
}

#[test]
fn a_tag_is_the_commit_that_is_checked_out() {
    let sdist = Sdist::new();
    sdist.project.edit("pins.toml", &format!("commit = \"{}\"", sdist.commit), "tag = \"v2.0\"");
    sdist.project.edit("pins.toml", &format!("{{ \"{}\" =", sdist.commit), "{ \"v2.0\" =");
    sdist.fetch().success();
}

#[test]
fn a_tag_of_the_repository_is_preferred_to_what_is_checked_out() {
    for (path, text) in [
        ("packed-refs", "# pack-refs with: sorted \nCOMMIT refs/tags/v2.0\n"),
        ("refs/tags/v2.0", "COMMIT\n"),
    ] {
        let mut sdist = Sdist::new();
        sdist.project.edit("pins.toml", &format!("commit = \"{}\"", sdist.commit), "tag = \"v2.0\"");
        sdist.project.edit("pins.toml", &format!("{{ \"{}\" =", sdist.commit), "{ \"v2.0\" =");
        sdist.put("HEAD", "1".repeat(40));
        refused(&sdist, 3, &["has no commit 1111111111111111111111111111111111111111"]);
        sdist.put("HEAD", "ref: refs/heads/main\n");
        sdist.put("packed-refs", "");
        refused(
            &sdist,
            3,
            &["HEAD of the repository in the package is not a commit id", "has no tag `v2.0`"],
        );
        sdist.put(path, text.replace("COMMIT", &sdist.commit));
        sdist.fetch().success();
    }
}

#[test]
fn another_tree_than_the_pinned_one() {
    let sdist = Sdist::new();
    let tree = git::tree_of(&sdist.upstream, "HEAD");
    sdist.project.edit("pins.toml", &tree, &"12".repeat(20));
    let says = format!("served tree {tree}, the pin says {}", "12".repeat(20));
    refused(&sdist, 1, &[&says, "do not belong together"]);
}

#[test]
fn a_package_that_is_not_the_pinned_one() {
    let sdist = Sdist::new();
    sdist.serve();
    let served = sdist.project.beside("served.tar.gz");
    let mut bytes = std::fs::read(&served).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    files::write(&served, bytes);
    let output = sdist.run(&["fetch"]).code(1);
    let output =
        output.says(&["hello-py==1.0 is not the pinned one", "expected sha256 ", "found    sha256 "]);
    output.says(&["next: do not trust this file"]).says_nothing_of("Unpacking");
    sdist.assert_nothing_left();
}

#[test]
fn packs_that_are_damaged() {
    let mut sdist = Sdist::new();
    let whole = sdist.entry(".pack").content.clone();
    for length in [0, 4, 12, whole.len() / 2, whole.len() - 1] {
        sdist.entry(".pack").content = whole[..length].to_vec();
        refused(&sdist, 3, &[".pack` in the package is damaged"]);
    }
    for at in [5, 30, whole.len() / 2, whole.len() - 5] {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        sdist.entry(".pack").content = flipped;
        refused(&sdist, 3, &[".pack` in the package is damaged"]);
    }
    // The index beside it is not read.
    sdist.entry(".pack").content = whole;
    sdist.entry(".idx").content = b"no index".to_vec();
    sdist.fetch().success();
}

#[test]
fn an_object_that_is_missing() {
    let mut sdist = Sdist::with_loose_objects();
    for (name, path) in [("blob", "src/add.c"), ("tree", "src")] {
        let id = git::git(&sdist.upstream, &["rev-parse", &format!("HEAD:{path}")]);
        let place = in_repository(&format!("objects/{}/{}", &id[..2], &id[2..]));
        let before = sdist.entries.clone();
        sdist.entries.retain(|entry| entry.path != place);
        let lacks = format!("it lacks the {name} {id} of `{path}`");
        refused(&sdist, 3, &["the repository in the package is incomplete", &lacks]);
        sdist.entries = before;
    }
    sdist.project.edit(
        "pins.toml",
        &format!("commit = \"{}\"", sdist.commit),
        &format!("commit = \"{}\"", "1".repeat(40)),
    );
    sdist.project.edit(
        "pins.toml",
        &format!("{{ \"{}\" =", sdist.commit),
        &format!("{{ \"{}\" =", "1".repeat(40)),
    );
    refused(
        &sdist,
        3,
        &["the repository in the package has no commit 1111111111111111111111111111111111111111"],
    );
}

#[test]
fn an_object_under_the_id_of_another() {
    let mut sdist = Sdist::with_loose_objects();
    let ids = ["src/add.c", "src/ring.c"]
        .map(|path| git::git(&sdist.upstream, &["rev-parse", &format!("HEAD:{path}")]));
    let [real, claimed] = ids.each_ref().map(|id| format!("objects/{}/{}", &id[..2], &id[2..]));
    let content = sdist.entry(&real).content.clone();
    sdist.entry(&claimed).content = content;
    refused(
        &sdist,
        1,
        &[&format!("{claimed}` in the package is the object {}", ids[0]), "do not trust this version"],
    );
}

#[test]
fn links_are_rejected() {
    let mut sdist = Sdist::new();
    let pack = format!("objects/pack/pack-{}.pack", "1".repeat(40));
    let inside = [pack.as_str(), "objects/info", "objects/12/x", "objects", "HEAD"].map(in_repository);
    let whole = sdist.entries.clone();
    for path in inside.iter().map(String::as_str).chain(["hello-1.0/.git"]) {
        // A hard link, a symbolic link, a device.
        for kind in *b"123" {
            let link = Entry::empty(path, kind, "/etc/passwd");
            sdist.entries = [&[link][..], &whole].concat();
            refused(&sdist, 1, &[&format!("`{path}` in the package is a link, a device or a sparse file")]);
        }
    }
    // Folders are not links, whatever their names.
    sdist.entries = inside.map(|path| Entry::empty(path, b'5', "")).into_iter().chain(whole).collect();
    sdist.fetch().success();
}

#[test]
fn paths_that_lead_out_are_rejected() {
    let mut sdist = Sdist::new();
    let whole = sdist.entries.clone();
    let unpacked = |sdist: &Sdist| {
        let beside = files::list(&sdist.project.beside(""));
        beside.into_iter().filter(|path| path.contains("evil")).collect::<Vec<_>>()
    };
    for path in ["../evil", "objects/../../evil", "objects/pack/../../../../../evil", "objects//evil"] {
        sdist.put(path, "evil");
        refused(&sdist, 1, &["evil` in the package leads out of its folder"]);
        assert_eq!(unpacked(&sdist), [""; 0]);
        sdist.entries.clone_from(&whole);
    }
    // Nothing else of the package is unpacked.
    let other = Entry { path: "hello-1.0/../../evil".to_string(), ..whole[0].clone() };
    sdist.entries.push(other);
    sdist.fetch().success();
    assert_eq!(unpacked(&sdist), [""; 0]);
}

#[test]
fn objects_of_other_repositories_are_not_borrowed() {
    for name in ["alternates", "http-alternates"] {
        let mut sdist = Sdist::new();
        let objects = sdist.upstream.join(".git/objects");
        sdist.put(&format!("objects/info/{name}"), format!("{}\n", objects.display()));
        refused(&sdist, 1, &["in the package borrows the objects of another repository"]);
    }
}

#[test]
fn a_pack_that_claims_billions_of_objects() {
    let mut sdist = Sdist::new();
    sdist.entry(".pack").content[8..12].copy_from_slice(&[0xff; 4]);
    refused(&sdist, 1, &["exceeds a limit: 4294967295 objects in packs, expected at most 1000000"]);
}

/// git would run each of these programs in the repository of the package, or read another repository.
#[test]
fn the_configuration_and_hooks_of_the_repository_do_nothing() {
    let mut sdist = Sdist::new();
    let mark = sdist.project.beside("mark");
    let touch = format!("touch '{}'", mark.display());
    let included = sdist.project.beside("included.config");
    let config = format!(
        "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tfsmonitor = \"{touch}\"\n\tsshCommand = \"{touch}\"\n\
         \tworktree = {0}\n\tgitProxy = \"{touch}\"\n\tpager = \"{touch}\"\n[uploadpack]\n\tpackObjectsHook = \"{touch};\"\n\
         [url \"{0}/elsewhere\"]\n\tinsteadOf = {0}\n[filter \"x\"]\n\tsmudge = \"{touch}\"\n[include]\n\tpath = {1}\n\
         [includeIf \"gitdir:/\"]\n\tpath = {1}\n",
        sdist.project.beside("").display(),
        included.display()
    );
    files::write(&included, format!("[core]\n\thooksPath = {}\n", sdist.project.beside("hooks").display()));
    sdist.put("config", config);
    sdist.put("info/attributes", "* filter=x\n");
    sdist.put("info/grafts", format!("{} {}\n", sdist.commit, "1".repeat(40)));
    sdist.put("shallow", "1".repeat(40));
    for hook in ["post-checkout", "pre-receive", "reference-transaction", "post-index-change", "pre-auto-gc"]
    {
        let script = format!("#!/bin/sh\n{touch}\n");
        sdist.put(&format!("hooks/{hook}"), &script);
        files::write_script(&sdist.project.beside("hooks").join(hook), &touch);
    }
    sdist.fetch().success();
    assert!(!mark.exists());
    let store = sdist.project.store();
    let config = std::fs::read_to_string(store.join("config")).unwrap();
    assert!(!config.contains("fsmonitor") && !config.contains("include"), "{config}");
    assert_eq!(std::fs::read_to_string(store.join("shallow")).unwrap(), format!("{}\n", sdist.commit));
}

#[test]
fn a_package_without_the_repository() {
    let mut sdist = Sdist::new();
    sdist.entries.retain(|entry| !entry.path.contains("/objects/"));
    refused(&sdist, 3, &[&format!("the package has no git repository `{MEMBER}`")]);
    let served = sdist.project.beside("served.tar.gz");
    let mut half = std::fs::read(&served).unwrap();
    half.truncate(half.len() / 2);
    let pins = sdist.project.read("pins.toml");
    let digest = pins.split("\"1.0\" = \"").nth(1).unwrap().split('"').next().unwrap();
    sdist.project.edit("pins.toml", digest, &sha256(&half));
    files::write(&served, half);
    sdist.run(&["fetch"]).code(3).says(&["the package is damaged"]);
    sdist.assert_nothing_left();
}

#[test]
fn a_revision_that_no_version_has() {
    let sdist = Sdist::new();
    sdist.project.edit("pins.toml", &format!("{{ \"{}\" =", sdist.commit), "{ \"v9\" =");
    refused(&sdist, 3, &[&format!("pip hello-py: this mirror has no `{}`", sdist.commit)]);
    assert_eq!(sdist.asked(), "", "pip was not started");
}

/// The pin of a project is often listed by one package of several.
#[test]
fn a_package_that_does_not_list_the_revision_is_skipped_without_a_warning() {
    let sdist = Sdist::new();
    let npm = "{ npm = \"other\", member = \"a.bundle\", versions = { \"v9\" = \"1.0.0\" } }";
    let revision = format!("commit = \"{}\"", sdist.commit);
    sdist.pin_to(&revision, &[npm.to_string(), source(&sdist.commit, &"0".repeat(64))]);
    let output = sdist.fetch().success().says(&["Fetching hello"]);
    output.says_nothing_of("warning").says_nothing_of("npm");
    // If nothing helps, it is named.
    std::fs::remove_dir_all(sdist.project.store()).unwrap();
    std::fs::remove_file(sdist.project.beside("served.tar.gz")).unwrap();
    let output = sdist.run(&["fetch"]).code(3);
    output.says(&[&format!("npm other: this mirror has no `{}`", sdist.commit), "pip hello-py==1.0: "]);
}

/// Neither is it a failure when the network is missing, and the commit was fetched before.
#[test]
fn a_branch_that_was_fetched_before_warns_only_of_sources_that_were_asked() {
    let sdist = Sdist::new();
    let npm = "{ npm = \"other\", member = \"a.bundle\", versions = { \"v9\" = \"1.0.0\" } }".to_string();
    let git = format!("{{ git = \"file://{}\" }}", sdist.upstream.display());
    sdist.pin_to(&format!("commit = \"{}\"", sdist.commit), &[npm, git]);
    sdist.run(&["status", "--tip", "HEAD"]).code(0).says_nothing_of("npm");
    let output = sdist.run(&["--offline", "status", "--tip", "HEAD"]).success();
    output.says(&["not tried because of `--offline`", "as of the last fetch"]).says_nothing_of("npm");
}

#[test]
fn offline_says_what_is_missing() {
    let sdist = Sdist::new();
    sdist.serve();
    let output = sdist.run(&["--offline", "fetch"]).code(3);
    output.says(&[
        &format!("no source served the pin `hello` (hello {})", sdist.commit),
        "pip hello-py==1.0: not tried because of `--offline`",
        "next: run once without `--offline`",
    ]);
    assert_eq!(sdist.asked(), "");
    sdist.assert_nothing_left();
}

#[test]
fn pip_that_fails_or_leaves_nothing() {
    let sdist = Sdist::new();
    sdist.serve();
    let python = sdist.project.beside("python/python3");
    files::write_script(
        &python,
        "echo 'ERROR: No matching distribution found for hello-py==1.0' >&2; exit 1",
    );
    sdist.run(&["fetch"]).code(3).says(&["pip failed: No matching distribution found for hello-py==1.0"]);
    files::write_script(
        &python,
        "echo \"ERROR: this pip cannot be used: No module named 'pip'\" >&2; exit 1",
    );
    let output = sdist.run(&["fetch"]).code(3).says(&["pip failed: this pip cannot be used"]);
    output.says(&["next: install Python 3 with pip"]);
    files::write_script(&python, "true");
    sdist.run(&["fetch"]).code(3).says(&["pip succeeded but downloaded no package"]);
    std::fs::remove_file(&python).unwrap();
    let path = program_path::only(&sdist.project.beside("bin"), &["git"]);
    let output = sdist.project.run_with_path(&["fetch"], path).code(3);
    output.says(&["could not run `python3`", "next: install Python 3 with pip"]);
    sdist.assert_nothing_left();
}

/// Another commit than the pin, by its id, whole or abbreviated, as `status --tip` and `rebase --to` request it.
#[test]
fn a_tip_is_fetched_by_its_id_once() {
    let sdist = Sdist::new();
    let pins = sdist.project.read("pins.toml");
    let upstream = format!("{{ path = {:?} }}", sdist.upstream.display().to_string());
    let pip = source(&sdist.commit, &"0".repeat(64));
    let tree = git::tree_of(&sdist.upstream, TAG);
    let both = pins
        .replace(&format!("commit = \"{}\"", sdist.commit), &format!("tag = \"{TAG}\""))
        .replace(&git::tree_of(&sdist.upstream, "HEAD"), &tree)
        .replace(&pip, &format!("{upstream},\n    {pip}"));
    sdist.project.write("pins.toml", both);
    sdist.serve();
    sdist.run(&["fetch"]).success();
    sdist.project.edit("pins.toml", &upstream, "{ path = \"../nowhere\" }");
    // So few digits may be the name of a tag.
    let short = &sdist.commit[..6];
    let output = sdist.run(&["status", "--tip", short]).code(3);
    output.says(&[
        &format!("this mirror has no `{short}`"),
        &format!("its full id is listed: {}", sdist.commit),
    ]);
    let short = &sdist.commit[..12];
    for arguments in [
        &["status", "--tip", short][..],
        &["--offline", "status", "--tip", short],
        &["--offline", "status", "--tip", &*sdist.commit],
    ] {
        let output = sdist.run(arguments);
        assert!(output.stdout.contains("patches are exact at"), "{output}");
    }
    sdist.run(&["--offline", "rebase", "--to", short]).success();
    let pins = sdist.project.read("pins.toml");
    assert!(pins.contains(&format!("commit = \"{}\"\n", sdist.commit)), "{pins}");
}

/// A package whose build backend leaves a mark when pip prepares its metadata.
fn package_that_runs_code(project: &Project, sdist: &Path, mark: &Path) {
    let backend = format!(
        "import os\nopen({:?}, 'w').close()\n\ndef prepare_metadata_for_build_wheel(folder, settings=None):\n    \
         name = 'hello_py-1.0.dist-info'\n    os.mkdir(os.path.join(folder, name))\n    \
         with open(os.path.join(folder, name, 'METADATA'), 'w') as file:\n        \
         file.write('Metadata-Version: 2.1\\nName: hello-py\\nVersion: 1.0\\n')\n    return name\n",
        mark.display().to_string()
    );
    let top = project.beside("content/hello_py-1.0");
    files::write(&top.join("backend.py"), backend);
    files::write(&top.join("PKG-INFO"), "Metadata-Version: 2.1\nName: hello-py\nVersion: 1.0\n");
    let build = "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n";
    files::write(&top.join("pyproject.toml"), build);
    files::copy_folder(&project.beside("nested.git"), &top.join(MEMBER));
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(sdist).arg("-C").arg(project.beside("content")).arg("hello_py-1.0");
    assert!(tar.status().unwrap().success());
}

/// Returns a command that sees no index, and the package in `served`.
fn without_index(mut command: Command, project: &Project) -> Command {
    command.env_clear().env("PATH", program_path::of_this_machine()).env("HOME", project.beside("home"));
    command.env("PIP_NO_INDEX", "1").env("PIP_FIND_LINKS", project.beside("served"));
    command
}

/// Whether the real Python has pip; pip itself would take longer to say so.
fn has_pip() -> bool {
    const FIND: &str = "import importlib.util, sys; sys.exit(importlib.util.find_spec('pip') is None)";
    Command::new("python3").args(["-c", FIND]).status().is_ok_and(|status| status.success())
}

#[test]
fn the_real_pip_runs_no_code_of_the_package() {
    if !has_pip() {
        eprintln!("SKIPPED: this machine has no pip");
        return;
    }
    let Sdist { project, .. } = Sdist::new();
    let (archive, mark) = (project.beside("served/hello_py-1.0.tar.gz"), project.beside("mark"));
    std::fs::create_dir_all(project.beside("served")).unwrap();
    package_that_runs_code(&project, &archive, &mark);
    let pip = |arguments: &[&str]| {
        let mut python = without_index(Command::new("python3"), &project);
        python.args(["-m", "pip"]).args(arguments).current_dir(project.beside("home")).output()
    };
    let download = ["download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "hello-py==1.0"];
    pip(&download).unwrap();
    assert!(mark.exists(), "`pip download` must run it, or nothing is tested");
    std::fs::remove_file(&mark).unwrap();
    let digest = sha256(&std::fs::read(&archive).unwrap());
    project.edit("pins.toml", &"0".repeat(64), &digest);
    let fetch = project.command(&["fetch"]);
    let mut command = without_index(Command::new(fetch.get_program()), &project);
    command.args(fetch.get_args()).current_dir(project.root());
    project.finish(command).success().says(&["pip hello-py==1.0"]);
    assert!(!mark.exists());
    project.edit("pins.toml", "= \"1.0\" }", "= \"1.1\" }");
    project.edit("pins.toml", "\"1.0\" = \"", "\"1.1\" = \"");
    std::fs::remove_dir_all(project.store()).unwrap();
    let mut command = without_index(Command::new(fetch.get_program()), &project);
    command.args(fetch.get_args()).current_dir(project.root());
    project.finish(command).code(3).says(&["No matching distribution found for hello-py==1.1"]);
}

/// Serves an index with one file, of which it sends ten bytes of a thousand; returns its port.
fn index_that_breaks_off() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = String::new();
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            while lines.read_line(&mut head).unwrap_or(0) > "\r\n".len() {}
            let page = "<!DOCTYPE html><a href=\"/hello_py-1.0.tar.gz\">hello_py-1.0.tar.gz</a>";
            let (kind, length, body) = match head.starts_with("GET /simple/") {
                true => ("text/html", page.len(), page),
                false => ("application/gzip", 1000, "ten bytes."),
            };
            let head = format!("Content-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close");
            // pip may have disconnected.
            let _ = write!(stream, "HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}");
        }
    });
    port
}

#[test]
fn an_interrupted_download_is_not_distrusted() {
    if !has_pip() {
        eprintln!("SKIPPED: this machine has no pip");
        return;
    }
    let Sdist { project, .. } = Sdist::new();
    let fetch = project.command(&["fetch"]);
    let mut command = Command::new(fetch.get_program());
    command.env_clear().env("PATH", program_path::of_this_machine()).env("HOME", project.beside("home"));
    command.env("PIP_INDEX_URL", format!("http://127.0.0.1:{}/simple", index_that_breaks_off()));
    command.args(fetch.get_args()).current_dir(project.root());
    let output = project.finish(command).code(3);
    output.says(&["pip failed: could not download hello_py-1.0.tar.gz"]).says_nothing_of("do not trust");
}
