//! The PATH of the tested runs: the machine's own, preceded by CMake and Ninja.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::files;

/// Returns the PATH that the tests were started with.
pub fn of_this_machine() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

/// Returns a PATH with a self-contained CMake and Ninja, and without a compiler cache, whose output would appear in
/// snapshots. If the machine has none, the tool installs its pinned ones, once for all tests.
pub fn with_build_tools() -> OsString {
    static FOUND: OnceLock<OsString> = OnceLock::new();
    FOUND.get_or_init(find_or_install).clone()
}

fn find_or_install() -> OsString {
    let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli-tools");
    let path =
        joined(&[files::of_this_repository("target/espalier/tools"), shared.join("target/espalier/tools")]);
    if BUILD_TOOLS.iter().all(|name| find(&path, name).is_some_and(|program| works_alone(&program))) {
        return path;
    }
    install(&shared);
    joined(&[shared.join("target/espalier/tools")])
}

const BUILD_TOOLS: [&str; 2] = ["cmake", "ninja"];

/// Whether it runs without any other program on PATH. The shims of version managers need their manager.
fn works_alone(program: &Path) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").env_clear().env("PATH", "").output().is_ok_and(|output| output.status.success())
}

fn joined(folders_of_tools: &[PathBuf]) -> OsString {
    let mut folders = Vec::new();
    for folder in folders_of_tools {
        let Ok(tools) = std::fs::read_dir(folder) else { continue };
        for tool in tools {
            let tool = tool.unwrap().path();
            folders.extend([tool.join("cmake/data/bin"), tool.join("bin")]);
        }
    }
    folders.retain(|folder| folder.is_dir());
    folders.extend(of_this_machine_without("compiler-cache", &COMPILER_CACHES));
    std::env::join_paths(folders).unwrap()
}

const COMPILER_CACHES: [&str; 2] = ["ccache", "sccache"];

/// Returns the folders of PATH without the programs `names`; `what` is the name of this set.
fn of_this_machine_without(what: &str, names: &[&str]) -> Vec<PathBuf> {
    std::env::split_paths(&of_this_machine()).map(|folder| without(folder, what, names)).collect()
}

/// Returns the folder itself, or one with links to everything else in it.
fn without(folder: PathBuf, what: &str, names: &[&str]) -> PathBuf {
    if !names.iter().any(|name| folder.join(name).exists()) {
        return folder;
    }
    let name = folder.display().to_string().replace('/', "-");
    let links = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("without-{what}{name}"));
    let _ = std::fs::remove_dir_all(&links);
    std::fs::create_dir_all(&links).unwrap();
    for program in std::fs::read_dir(&folder).unwrap().map(|program| program.unwrap().file_name()) {
        if !names.iter().any(|name| program == *name) {
            std::os::unix::fs::symlink(folder.join(&program), links.join(&program)).unwrap();
        }
    }
    links
}

/// Installs the tools by building any project; this run keeps the caller's environment for pip.
fn install(shared: &Path) {
    let project = super::Project::new();
    files::copy_folder(project.root(), shared);
    let status = Command::new(env!("CARGO_BIN_EXE_espalier-qa"))
        .args(["build", "--variant", "stock", "--no-smoke", "--root"])
        .arg(shared)
        .env("PATH", std::env::join_paths(of_this_machine_without("build-tools", &BUILD_TOOLS)).unwrap())
        .status()
        .unwrap();
    assert!(status.success(), "CMake and Ninja could not be installed for the tests");
}

/// Returns the path of `name` on `path`.
pub fn find(path: &OsStr, name: &str) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Creates a folder with links to `programs` only, for use as the whole PATH.
pub fn only(folder: &Path, programs: &[&str]) -> PathBuf {
    std::fs::create_dir_all(folder).unwrap();
    for program in programs {
        let found = find(&with_build_tools(), program);
        let found = found.unwrap_or_else(|| panic!("this machine has no `{program}`"));
        std::os::unix::fs::symlink(found, folder.join(program)).unwrap();
    }
    folder.to_path_buf()
}
