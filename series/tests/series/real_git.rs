//! The real git, in a separate repository.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use espalier_series::ObjectId;
use git2::{Index, IndexEntry, IndexTime, Oid, Repository};
use tempfile::TempDir;

/// Path, mode and blob of a file.
pub type Listing = Vec<(Vec<u8>, u32, ObjectId)>;

pub struct RealGit {
    folder: TempDir,
    objects: Repository,
}

/// The result of git for a patch.
#[derive(Debug, PartialEq, Eq)]
pub enum ByGit {
    /// The id of the new tree.
    Accepted(ObjectId),
    /// With git's message.
    Refused(String),
    /// Killed by a signal: git 2.47 fails an assertion on some damaged headers.
    Crashed,
}

impl RealGit {
    pub fn new() -> RealGit {
        let folder = tempfile::tempdir().unwrap();
        run_git(folder.path(), &["init", "--quiet", "--initial-branch=main"], b"", None);
        let objects = Repository::open(folder.path()).unwrap();
        RealGit { folder, objects }
    }

    /// Runs git, which must succeed; returns its output.
    pub fn run(&self, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        let output = run_git(self.folder.path(), arguments, input, None);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {errors}");
        output.stdout
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Stores a blob and returns its id.
    pub fn store(&self, content: &[u8]) -> ObjectId {
        ours(self.objects.blob(content).unwrap())
    }

    /// Returns the tree id of some files.
    pub fn tree_id(&self, files: &Listing) -> ObjectId {
        ours(self.index_of(files, "ours").write_tree_to(&self.objects).unwrap())
    }

    /// Runs `git apply --cached` on some files.
    pub fn apply(&self, files: &Listing, patch: &[u8]) -> ByGit {
        self.index_of(files, "gits").write().unwrap();
        let path = self.index_path("gits");
        let arguments = ["apply", "--cached", "--whitespace=nowarn", "-"];
        let output = run_git(self.folder.path(), &arguments, patch, Some(&path));
        match output.status.code() {
            Some(0) => {
                let mut index = Index::open(&path).unwrap();
                ByGit::Accepted(ours(index.write_tree_to(&self.objects).unwrap()))
            }
            Some(_) => ByGit::Refused(String::from_utf8_lossy(&output.stderr).into_owned()),
            None => {
                std::fs::remove_file(path.with_file_name("index-gits.lock")).unwrap();
                ByGit::Crashed
            }
        }
    }

    fn index_path(&self, name: &str) -> PathBuf {
        self.folder.path().join(".git").join(format!("index-{name}"))
    }

    fn index_of(&self, files: &Listing, name: &str) -> Index {
        let mut index = Index::open(&self.index_path(name)).unwrap();
        index.clear().unwrap();
        for (path, mode, id) in files {
            index.add(&index_entry(path.clone(), *mode, *id)).unwrap();
        }
        index
    }
}

fn ours(id: Oid) -> ObjectId {
    id.to_string().parse().unwrap()
}

fn index_entry(path: Vec<u8>, mode: u32, id: ObjectId) -> IndexEntry {
    let never = IndexTime::new(0, 0);
    IndexEntry {
        ctime: never,
        mtime: never,
        dev: 0,
        ino: 0,
        mode,
        uid: 0,
        gid: 0,
        file_size: 0,
        id: Oid::from_bytes(id.as_bytes()).unwrap(),
        flags: 0,
        flags_extended: 0,
        path,
    }
}

pub fn run_git(folder: &Path, arguments: &[&str], input: &[u8], index: Option<&Path>) -> Output {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(folder);
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"] {
        command.env_remove(variable);
    }
    command.envs([("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("LC_ALL", "C")]);
    if let Some(index) = index {
        command.env("GIT_INDEX_FILE", index);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // git may refuse before it has read everything; that is a result, not a failure.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}
