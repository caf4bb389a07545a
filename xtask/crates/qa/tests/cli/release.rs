//! `release`: archives, and the script that installs one of them.

use std::path::Path;
use std::process::Command;

use super::support::sealing::{PACKAGE, built, change, seal};
use super::support::{Project, files, program_path};

const RELEASE: &str = "target/espalier/release";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the name of the one package in the release.
fn top() -> String {
    format!("espalier-{VERSION}-paged-cpu-native-{}-{}", std::env::consts::OS, std::env::consts::ARCH)
}

fn archive(project: &Project) -> std::path::PathBuf {
    project.path(RELEASE).join(format!("{}.tar.gz", top()))
}

/// Creates a release whose server prints its version, which the server of the other tests cannot.
fn released() -> Project {
    let project = built();
    let package = project.path(PACKAGE);
    files::write_script(&package.join("bin/llama-server"), "echo version 1");
    seal(&package, &["bin/llama-server"]);
    project.run(&["release"]).success();
    project
}

#[test]
fn a_release_has_archives_sums_changes_and_a_script() {
    let project = built();
    project.write("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n\n* greets\n");
    let report = project.run(&["--json", "release"]).success().json();
    let archive_name = format!("{}.tar.gz", top());
    let mut expected = vec!["CHANGES.md", "SHA256SUMS", &archive_name, "install.sh", "manifest.json"];
    expected.sort();
    assert_eq!(files::list(&project.path(RELEASE)), expected);
    assert_eq!(report["archives"][0]["file"], archive_name);
    let mut sums = Command::new("sha256sum");
    sums.args(["--check", "SHA256SUMS"]).current_dir(project.path(RELEASE));
    assert!(sums.output().unwrap().status.success());
    let changes = project.read(&format!("{RELEASE}/CHANGES.md"));
    for part in [&format!("# Espalier {VERSION}\n\n* greets\n"), "hello v1.0, tree `", "| Greet dearly |"] {
        assert!(changes.contains(part), "{part}: {changes}");
    }
    let verified = project.run(&["verify", archive(&project).to_str().unwrap()]).success();
    assert!(verified.stdout.contains("paged cpu-native for "), "{verified}");
    assert_eq!(project.scratch(), [""; 0]);
}

#[test]
fn the_same_packages_give_the_same_release() {
    let project = built();
    let digest = || project.run(&["--json", "release"]).success().json()["archives"][0]["sha256"].clone();
    let first = digest();
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    std::fs::File::open(project.path(PACKAGE).join("bin/hello")).unwrap().set_modified(old).unwrap();
    assert_eq!(first, digest());
}

#[test]
fn a_harmed_archive_is_found() {
    let project = built();
    project.run(&["release"]).success();
    let path = archive(&project);
    let whole = std::fs::read(&path).unwrap();
    for at in [whole.len() / 3, whole.len() / 2, whole.len() - 20] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        project.run(&["verify", path.to_str().unwrap()]).code(1);
    }
}

#[test]
fn missing_or_altered_packages_are_not_released() {
    let project = built();
    project.run(&["release"]).success();
    let before = files::times(&project.path(RELEASE));
    project.run(&["release", "--flavor", "cpu-native", "--variant", "stock"]).code(2).says(&[
        "error: stock-cpu-native is not built",
        "next: cargo xtask build --variant stock --flavor cpu-native",
    ]);
    project.run(&["release", "--flavor", "gpu"]).code(2).says(&["there is no flavor `gpu`"]);
    project.run(&["release", "--variant", "x"]).code(2).says(&["there is no variant `x`"]);
    project.run(&["release", "--tag", "v9.9.9"]).code(2).says(&["the tag `v9.9.9` is not `v"]);
    project.run(&["release", "--tag", &format!("v{VERSION}")]).code(2).says(&["`CHANGELOG.md` has no entry"]);
    project.run(&["release", "--url", "https://x/'; rm -rf '"]).code(2).says(&["is not a plain https URL"]);
    change(&project.path(PACKAGE), "sbom.cdx.json", |bom| bom["version"] = 2.into());
    project.run(&["release"]).code(1).says(&[
        "failed verification",
        "next: build it again: cargo xtask build --variant paged --flavor cpu-native\n",
    ]);
    assert_eq!(before, files::times(&project.path(RELEASE)));
}

#[test]
fn a_disk_that_takes_no_more_leaves_no_release() {
    let project = built();
    let release = ["release", "--variant", "paged"];
    let output = project.finish_with_room_for(8, &project.command(&release)).code(3);
    let output = output.says(&[
        "error: could not write `target/espalier/tmp/release-",
        "File too large",
        "next: raise the limit",
    ]);
    assert!(!archive(&project).exists(), "{output}");
    project.run(&release).success();
}

#[test]
fn a_dry_run_writes_nothing() {
    let project = built();
    let stdout = project.run(&["release", "--dry-run"]).success().stdout;
    assert!(stdout.contains(&format!("write        {RELEASE}/{}.tar.gz", top())), "{stdout}");
    assert_eq!(stdout.lines().count(), 5);
    assert!(!project.path(RELEASE).exists());
}

/// Runs the script with a separate home; its environment contains only HOME and PATH.
fn install(project: &Project, path: &std::ffi::OsStr, arguments: &[&str]) -> std::process::Output {
    let script = project.path(RELEASE).join("install.sh");
    std::fs::create_dir_all(project.beside("person")).unwrap();
    let mut command = Command::new("sh");
    command.arg(script).args(arguments).env_clear().env("PATH", path).env("HOME", project.beside("person"));
    command.output().unwrap()
}

fn install_from_folder(project: &Project) -> std::process::Output {
    let folder = project.path(RELEASE);
    install(project, &program_path::of_this_machine(), &[folder.to_str().unwrap()])
}

fn installed(project: &Project) -> Vec<String> {
    files::list(&project.beside("person"))
}

fn stderr(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_script_installs_what_was_released_twice_over() {
    let project = released();
    for _ in 0..2 {
        let output = install_from_folder(&project);
        assert!(output.status.success(), "{}", stderr(&output));
        let hello = Command::new(project.beside("person/.local/bin/hello")).output().unwrap();
        assert_eq!(hello.stdout, b"hello there, dear, world\n");
        let package = project.beside(&format!("person/.local/share/espalier/{VERSION}/paged-cpu-native"));
        project.run(&["verify", package.to_str().unwrap()]).success();
        assert!(
            installed(&project).iter().all(|file| !file.contains("installing")),
            "{:?}",
            installed(&project)
        );
    }
}

#[test]
fn archives_that_differ_from_the_release_are_not_unpacked() {
    let project = released();
    let path = archive(&project);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let output = install_from_folder(&project);
    assert!(
        !output.status.success() && stderr(&output).contains("is not what was released"),
        "{}",
        stderr(&output)
    );
    assert_eq!(installed(&project), [""; 0]);
    let sums = project.read(&format!("{RELEASE}/SHA256SUMS"));
    let others: Vec<&str> = sums.lines().filter(|line| !line.contains("tar.gz")).collect();
    project.write(&format!("{RELEASE}/SHA256SUMS"), others.join("\n"));
    let output = install_from_folder(&project);
    assert!(
        !output.status.success() && stderr(&output).contains("has no archive of paged"),
        "{}",
        stderr(&output)
    );
    assert_eq!(installed(&project), [""; 0]);
}

#[test]
fn unverified_archives_are_not_installed() {
    let project = released();
    let tools = project.beside("tools");
    std::fs::create_dir_all(&tools).unwrap();
    for tool in ["sh", "uname", "mkdir", "mktemp", "rm", "cp", "tar", "gzip", "mv", "ln", "readlink", "tail"]
    {
        let path = std::env::var_os("PATH").unwrap();
        let mut found = std::env::split_paths(&path).map(|folder| folder.join(tool));
        let found = found.find(|path| path.is_file()).unwrap_or_else(|| panic!("no {tool}"));
        std::os::unix::fs::symlink(found, tools.join(tool)).unwrap();
    }
    let folder = project.path(RELEASE);
    let output = install(&project, tools.as_os_str(), &[folder.to_str().unwrap()]);
    assert!(
        !output.status.success() && stderr(&output).contains("neither sha256sum nor shasum"),
        "{}",
        stderr(&output)
    );
    let path = program_path::of_this_machine();
    let output = install(&project, &path, &["http://example.invalid/x"]);
    assert!(!output.status.success() && stderr(&output).contains("prove nothing"), "{}", stderr(&output));
    assert_eq!(installed(&project), [""; 0]);
    assert!(!install(&project, &path, &[]).status.success());
}

#[test]
fn programs_of_others_stay() {
    let project = released();
    let link = project.beside("person/.local/bin/hello");
    files::write(&link, "another file's");
    let output = install_from_folder(&project);
    assert!(output.status.success() && stderr(&output).contains("stays as it is"), "{}", stderr(&output));
    assert_eq!(std::fs::read(&link).unwrap(), b"another file's");
    assert!(Path::new(&project.beside("person/.local/bin/llama-server")).exists());
}

/// It may not start on another processor, where `install.sh` would install it.
#[test]
fn builds_for_this_machine_are_released_only_by_name() {
    let project = built();
    let about = "about = \"the processor of the machine that builds it\"\n";
    project.edit("ci/flavors.toml", about, &format!("{about}cmake = {{ GGML_NATIVE = \"ON\" }}\n"));
    // Its name comes before that of the variant that is built.
    project.edit(
        "pins.toml",
        "[variants.paged]",
        "[variants.earlier]\nextends = \"paged\"\n\n[variants.paged]",
    );
    project.run(&["release"]).code(2).says(&[
        "only `cpu-native` is built, whose programs may not start on another processor",
        "next: build one for all: cargo xtask build --variant paged --flavor cpu\n",
        "next: or release it anyway: cargo xtask release --flavor cpu-native",
    ]);
    assert!(!project.path(RELEASE).exists());
    project.run(&["release", "--flavor", "cpu-native"]).success();
}
