//! Real git, with a fixed author and date, so that commit ids repeat.

use std::path::Path;
use std::process::Command;

/// Runs git in `folder` and returns its standard output without the final newline.
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = command(folder).args(arguments).output().expect("git starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?} in {}: {stderr}", folder.display());
    String::from_utf8_lossy(&output.stdout).trim_end().to_string()
}

/// Runs git in `folder` and returns whether it succeeded.
pub fn try_git(folder: &Path, arguments: &[&str]) -> bool {
    command(folder).args(arguments).output().expect("git starts").status.success()
}

/// Returns a git command in `folder` that ignores the user's and the system's configuration.
pub fn command(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", folder).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    // Otherwise each commit starts another program, which looks for garbage to collect.
    command.env("GIT_CONFIG_COUNT", "1");
    command.env("GIT_CONFIG_KEY_0", "maintenance.auto").env("GIT_CONFIG_VALUE_0", "false");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "Test Person");
        command.env(format!("GIT_{role}_EMAIL"), "test@espalier.invalid");
        command.env(format!("GIT_{role}_DATE"), "2020-01-02T03:04:05Z");
    }
    command
}

/// Creates a repository whose first branch is `main` and that never converts line endings.
pub fn init(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    git(folder, &["init", "--quiet", "--initial-branch=main"]);
    git(folder, &["config", "core.autocrlf", "false"]);
}

/// Commits the whole work tree.
pub fn commit(folder: &Path, message: &str) {
    git(folder, &["add", "--all"]);
    git(folder, &["commit", "--quiet", "--message", message]);
}

/// Returns the tree of `revision`.
pub fn tree_of(folder: &Path, revision: &str) -> String {
    git(folder, &["rev-parse", &format!("{revision}^{{tree}}")])
}

/// Writes the commits after `base` as a series, as the patch guide describes, replacing the content of `series`.
pub fn export_series(work: &Path, base: &str, series: &Path) {
    if series.exists() {
        std::fs::remove_dir_all(series).unwrap();
    }
    std::fs::create_dir_all(series).unwrap();
    let folder = series.to_str().unwrap();
    let form = ["--full-index", "--zero-commit", "--no-signature", "--binary", "--find-renames"];
    let mut arguments = vec!["format-patch", "--quiet", "--no-cover-letter", "-o", folder];
    arguments.extend(form);
    arguments.push(base);
    git(work, &arguments);
    for entry in std::fs::read_dir(series).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().to_lowercase();
        std::fs::rename(&path, series.join(name)).unwrap();
    }
}
