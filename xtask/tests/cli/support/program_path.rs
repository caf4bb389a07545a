//! The PATH that runs get: the machine's own, with CMake and Ninja in front.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::files;

/// The PATH that the tests were started with.
pub fn of_this_machine() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

/// PATH with a CMake and a Ninja on it that work alone, and without a compiler cache: what one says is no part of a
/// snapshot. When the machine has none, the tool installs its pinned ones, once for all tests.
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

/// Whether it needs no other program of PATH. The stand-ins that version managers put there look for their manager.
fn works_alone(program: &Path) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").env_clear().env("PATH", "").output().is_ok_and(|said| said.status.success())
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

/// The folders of PATH without programs of these `names`, which `what` names together.
fn of_this_machine_without(what: &str, names: &[&str]) -> Vec<PathBuf> {
    std::env::split_paths(&of_this_machine()).map(|folder| without(folder, what, names)).collect()
}

/// The folder, or one with links to all else in it.
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

/// A build of any project brings the tools where the machine has none; this one keeps the caller's environment for pip.
fn install(shared: &Path) {
    let project = super::Project::new();
    files::copy_folder(project.root(), shared);
    let status = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["build", "--variant", "stock", "--no-smoke", "--root"])
        .arg(shared)
        .env("PATH", std::env::join_paths(of_this_machine_without("build-tools", &BUILD_TOOLS)).unwrap())
        .status()
        .unwrap();
    assert!(status.success(), "CMake and Ninja could not be installed for the tests");
}

/// Where `name` is on `path`.
pub fn find(path: &OsStr, name: &str) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// A folder with links to `programs` and to nothing else, to be the whole PATH.
pub fn only(folder: &Path, programs: &[&str]) -> PathBuf {
    std::fs::create_dir_all(folder).unwrap();
    for program in programs {
        let found = find(&with_build_tools(), program);
        let found = found.unwrap_or_else(|| panic!("this machine has no `{program}`"));
        std::os::unix::fs::symlink(found, folder.join(program)).unwrap();
    }
    folder.to_path_buf()
}
