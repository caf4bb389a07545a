//! One constructor hardens every git call; repositories are read and written through libgit2.

use std::path::Path;

use crate::error::Result;
use crate::sys::machine::disk;
use crate::sys::machine::process::Run;

/// Returns a `git` command that ignores the caller's repository, runs no hook, starts no helper in the background,
/// never prompts, and checks every object that it receives.
pub fn git(git_dir: &Path) -> Run {
    let mut run = Run::new("git").install_hint("install git (Debian: `apt-get install git`)");
    for (name, _) in std::env::vars_os().filter(|(name, _)| !may_reach_git(&name.to_string_lossy())) {
        run = run.without_env(name);
    }
    run = run
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
        // Overrides the user's `init.default...` settings; a git too old for the variable ignores it. Upstream's ids
        // are SHA-1, and libgit2 reads only refs that are files.
        .env("GIT_DEFAULT_HASH", "sha1")
        .env("GIT_DEFAULT_REF_FORMAT", "files");
    for setting in SETTINGS {
        run = run.arg("-c").arg(setting);
    }
    run.arg(format!("--git-dir={}", git_dir.display()))
}

/// The commit and branch of a checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkout {
    /// Full id of the commit.
    pub commit: String,
    /// Branch name. GitHub's runners check out a detached HEAD and pass the name in `GITHUB_REF_NAME`.
    pub branch: String,
}

/// Returns the commit and branch of the repository at `root`.
pub fn checkout_of(root: &Path) -> Result<Checkout> {
    let ask = |words: &[&str]| -> Result<String> {
        let stdout = git(&root.join(".git")).args(words).success()?;
        Ok(espalier_series::lossy(&stdout).trim().to_string())
    };
    let commit = ask(&["rev-parse", "--verify", "HEAD^{commit}"])?;
    let named = std::env::var("GITHUB_REF_NAME").ok().filter(|name| !name.is_empty());
    let branch = match named {
        Some(name) => name,
        None => ask(&["rev-parse", "--abbrev-ref", "HEAD"])?,
    };
    Ok(Checkout { commit, branch })
}

/// Files are written byte for byte as in the commits, whatever the tree's attributes and the user's configuration
/// say: committing them again must yield the same bytes.
const ATTRIBUTES: &str = "* -text -ident -filter -working-tree-encoding\n";

/// Disables every byte conversion in the work tree of the repository at `git_dir`.
pub fn convert_nothing(git_dir: &Path) -> Result<()> {
    disk::write_atomically(&git_dir.join("info/attributes"), ATTRIBUTES.as_bytes())
}

/// Whether git may see the variable `name` of our environment. Of git's own variables, only those pass that set how a
/// remote is reached, who commits, where the configuration is, and what is traced: the others point git to another
/// repository, or change what it reads and writes, as `GIT_ATTR_SOURCE` does.
fn may_reach_git(name: &str) -> bool {
    !name.starts_with("GIT_") || PASSED_ON.iter().any(|start| name.starts_with(start))
}

/// Prefixes of the names that pass.
const PASSED_ON: [&str; 13] = [
    "GIT_ASKPASS",
    "GIT_AUTHOR_",
    "GIT_COMMITTER_",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "GIT_CURL_",
    "GIT_EXEC_PATH",
    "GIT_HTTP_",
    "GIT_PROXY_",
    "GIT_SSH",
    "GIT_SSL_",
    "GIT_TRACE",
];

const SETTINGS: [&str; 12] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "fetch.fsckObjects=true",
    // A fetch of fewer objects than this would be unpacked into loose objects; a pack can be moved in one step.
    "fetch.unpackLimit=1",
    "fetch.writeCommitGraph=false",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    // Commits of a borrowed store may lack their history, so a fetch must not use them as negotiation base.
    "core.alternateRefsPrefixes=refs/none/",
    // A host that accepts the connection and then stalls must not block a build for ever. In bytes a second, and
    // seconds.
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=60",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn stdout_of(words: &[&str]) -> String {
        let stdout = git(Path::new("/dev/null")).args(words).success().unwrap();
        String::from_utf8(stdout).unwrap()
    }

    /// git itself lists the variables that tie it to one repository; a newer git may add to the list.
    #[test]
    fn local_variables_of_git_are_removed() {
        let local = stdout_of(&["rev-parse", "--local-env-vars"]);
        assert!(local.contains("GIT_DIR"), "{local}");
        let passed: Vec<&str> = local.lines().filter(|name| may_reach_git(name)).collect();
        assert_eq!(passed, [""; 0]);
    }

    /// A variable that a newer git introduces is withheld until it is added to the list of those that pass.
    #[test]
    fn only_known_variables_reach_git() {
        for name in
            ["GIT_ATTR_SOURCE", "GIT_EXTERNAL_DIFF", "GIT_LITERAL_PATHSPECS", "GIT_DEFAULT_HASH", "GIT_NEW"]
        {
            assert!(!may_reach_git(name), "{name}");
        }
        for name in ["PATH", "HOME", "GITHUB_TOKEN", "GIT_SSH_COMMAND", "GIT_TRACE2_EVENT", "GIT_SSL_CAINFO"]
        {
            assert!(may_reach_git(name), "{name}");
        }
    }

    /// git applies the speed limit only together with a time, and vice versa.
    #[test]
    fn a_slow_host_is_given_up() {
        for name in ["http.lowSpeedLimit", "http.lowSpeedTime"] {
            let value = stdout_of(&["config", "--default", "0", "--type=int", name]);
            assert!(value.trim().parse::<u64>().unwrap() > 0, "{name} is {value}");
        }
    }
}
