//! One constructor hardens every git call; repositories are read and written through libgit2.

use std::path::Path;

use crate::error::Result;
use crate::sys::machine::disk;
use crate::sys::machine::process::Run;

/// `git` that ignores the caller's repository, runs no hook, starts no helper in the background,
/// asks nothing, and checks every object that it receives.
pub fn git(git_dir: &Path) -> Run {
    let mut run = Run::new("git")
        .install_hint("install git (Debian: `apt-get install git`)")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
        // Stronger than a person's `init.default...`, and known to be nothing by a git that is too old for it.
        // Upstream's ids are SHA-1, and libgit2 reads refs that are files.
        .env("GIT_DEFAULT_HASH", "sha1")
        .env("GIT_DEFAULT_REF_FORMAT", "files");
    for name in INHERITED {
        run = run.without_env(name);
    }
    for setting in SETTINGS {
        run = run.arg("-c").arg(setting);
    }
    run.arg(format!("--git-dir={}", git_dir.display()))
}

/// What a checkout is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkout {
    /// The full id of its commit.
    pub commit: String,
    /// Its branch. A runner checks out no branch and says it in `GITHUB_REF_NAME`.
    pub branch: String,
}

/// The commit and branch of the repository at `root`.
pub fn checkout_of(root: &Path) -> Result<Checkout> {
    let ask = |words: &[&str]| -> Result<String> {
        let said = git(&root.join(".git")).args(words).success()?;
        Ok(String::from_utf8_lossy(&said).trim().to_string())
    };
    let commit = ask(&["rev-parse", "--verify", "HEAD^{commit}"])?;
    let named = std::env::var("GITHUB_REF_NAME").ok().filter(|name| !name.is_empty());
    let branch = match named {
        Some(name) => name,
        None => ask(&["rev-parse", "--abbrev-ref", "HEAD"])?,
    };
    Ok(Checkout { commit, branch })
}

/// Files are written as they are in the commits, whatever the tree's attributes and the person's
/// configuration say: what is committed again must be the same bytes.
const ATTRIBUTES: &str = "* -text -ident -filter -working-tree-encoding\n";

/// Makes the work tree of the repository at `git_dir` one in which no byte is converted.
pub fn convert_nothing(git_dir: &Path) -> Result<()> {
    disk::write_atomically(&git_dir.join("info/attributes"), ATTRIBUTES.as_bytes())
}

/// What `git rev-parse --local-env-vars` lists, and the namespace: set when we are called from a hook or an alias.
const INHERITED: [&str; 16] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_IMPLICIT_WORK_TREE",
];

const SETTINGS: [&str; 12] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "fetch.fsckObjects=true",
    // Fewer objects than this would be written loose; a pack can be moved in one step.
    "fetch.unpackLimit=1",
    "fetch.writeCommitGraph=false",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    // What a borrowed store names may have come without its history: nothing is to be fetched on top of it.
    "core.alternateRefsPrefixes=refs/none/",
    // A host that answers and then says nothing must not hold a build for ever. In bytes a second, and seconds.
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=60",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: &[&str]) -> String {
        let said = git(Path::new("/dev/null")).args(words).success().unwrap();
        String::from_utf8(said).unwrap()
    }

    /// git knows best what ties it to one repository; a newer git may add to it.
    #[test]
    fn what_git_calls_local_is_taken_away() {
        let local = said(&["rev-parse", "--local-env-vars"]);
        assert!(local.contains("GIT_DIR"), "{local}");
        let missing: Vec<&str> = local.lines().filter(|name| !INHERITED.contains(name)).collect();
        assert_eq!(missing, [""; 0]);
    }

    /// git looks at the limit only when it has a time, and the other way round.
    #[test]
    fn a_slow_host_is_given_up() {
        for name in ["http.lowSpeedLimit", "http.lowSpeedTime"] {
            let value = said(&["config", "--default", "0", "--type=int", name]);
            assert!(value.trim().parse::<u64>().unwrap() > 0, "{name} is {value}");
        }
    }
}
