//! One synthetic project in a temporary folder.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;

use super::upstream::{TAG, Upstream};
use super::{Output, files, git, program_path, upstream};

/// A source of the pin of a project.
pub enum Source {
    /// `path = "..."`
    Path(PathBuf),
    /// `git = "..."`
    Git(String),
    /// The npm package of the real project; no test may fetch it over the network.
    Npm,
}

impl Source {
    fn toml(&self) -> String {
        match self {
            Source::Path(path) => format!("{{ path = {:?} }}", path.display().to_string()),
            Source::Git(url) => format!("{{ git = {url:?} }}"),
            Source::Npm => {
                format!(
                    "{{ npm = \"node-llama-cpp\", member = \"package/llama/gitRelease.bundle\", \
                     versions = {{ \"{TAG}\" = \"3.21.1\" }} }}"
                )
            }
        }
    }
}

/// A project with the variants `stock` and `paged`.
pub struct Project {
    folder: Arc<TempDir>,
    root: PathBuf,
}

impl Project {
    /// Creates a project whose pin comes from the shared upstream repository, by its path.
    pub fn new() -> Self {
        Project::with_sources(&[Source::Path(Upstream::shared().repository())])
    }

    /// Creates a project whose pin has these sources.
    pub fn with_sources(sources: &[Source]) -> Self {
        Project::pinned(&Upstream::shared().tree(), sources)
    }

    /// Creates a project that pins `tree`.
    pub fn pinned(tree: &str, sources: &[Source]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Resolved, because some systems have symbolic links in the path of their temporary folder.
        let root = folder.path().canonicalize().unwrap().join("project");
        let project = Project { folder: Arc::new(folder), root };
        std::fs::create_dir_all(project.home()).unwrap();
        project.write("pins.toml", pins(tree, sources));
        project.write("ci/flavors.toml", FLAVORS);
        project.write("ci/models/espalier-draft.gguf", "GGUF");
        project.write("overlay/extra/espalier/note.txt", "from the overlay\n");
        files::copy_folder(&Upstream::shared().series(), &project.path("patches/paged"));
        project
    }

    /// Returns the folder that contains `pins.toml`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns `path` in the project.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    /// Writes a file of the project.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        files::write(&self.path(path), text);
    }

    /// Replaces a text in a file of the project.
    #[track_caller]
    pub fn edit(&self, path: &str, from: &str, to: &str) {
        files::edit(&self.path(path), from, to);
    }

    /// Returns the text of a file of the project.
    pub fn read(&self, path: &str) -> String {
        String::from_utf8_lossy(&std::fs::read(self.path(path)).unwrap()).into_owned()
    }

    /// Clones the committed project into a folder `name` beside it. Files that a run left under `target/` are not in
    /// the clone.
    pub fn fresh_clone(&self, name: &str) -> Project {
        if !self.path(".git").is_dir() {
            git::init(self.root());
        }
        git::git(self.root(), &["add", "--all", "--", ".", ":!target"]);
        git::git(self.root(), &["commit", "--quiet", "--allow-empty", "--message", "The project"]);
        let root = self.root.with_file_name(name);
        git::git(self.root(), &["clone", "--quiet", self.root().to_str().unwrap(), root.to_str().unwrap()]);
        Project { folder: Arc::clone(&self.folder), root }
    }

    /// Creates a separate fork for this project, to make other patches with.
    pub fn fork(&self) -> PathBuf {
        upstream::copy(self.folder.path())
    }

    /// Exports the commits of `fork` as the series of `paged`.
    pub fn take_series(&self, fork: &Path) {
        super::git::export_series(fork, TAG, &self.path("patches/paged"));
    }

    /// Replaces the series of `paged` by one patch, which makes `change` to upstream.
    pub fn take_patch(&self, change: impl Fn(&Path)) {
        let fork = self.fork();
        super::git::git(&fork, &["reset", "--quiet", "--hard", TAG]);
        change(&fork);
        super::git::commit(&fork, "Change something");
        self.take_series(&fork);
        std::fs::remove_dir_all(fork).unwrap();
    }

    /// Returns the materialised tree of a variant.
    pub fn tree(&self, variant: &str) -> PathBuf {
        self.path("target/espalier/trees").join(variant)
    }

    /// Returns the object store.
    pub fn store(&self) -> PathBuf {
        self.path("target/espalier/store.git")
    }

    /// Returns a path beside the project.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn home(&self) -> PathBuf {
        self.beside("home")
    }

    /// Returns a command that runs the tool on this project with a clean environment.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_with_path(arguments, &program_path::of_this_machine())
    }

    /// Does the same with another PATH.
    pub fn command_with_path(&self, arguments: &[&str], path: &OsStr) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_espalier-qa"));
        command.env_clear().env("PATH", path).env("HOME", self.home()).current_dir(self.root());
        command.arg("--root").arg(self.root()).args(arguments);
        command
    }

    /// Runs the tool.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.finish(self.command(arguments))
    }

    /// Runs the tool with `path` as PATH.
    pub fn run_with_path(&self, arguments: &[&str], path: impl Into<OsString>) -> Output {
        self.finish(self.command_with_path(arguments, &path.into()))
    }

    /// Runs the tool with CMake and Ninja on PATH.
    pub fn run_build(&self, arguments: &[&str]) -> Output {
        self.run_with_path(arguments, program_path::with_build_tools())
    }

    /// Runs a command of this project with files limited to this many blocks of 512 bytes: simulates a full disk
    /// without privileges.
    pub fn finish_with_room_for(&self, blocks: u32, command: &Command) -> Output {
        let mut limited = Command::new("sh");
        limited.args(["-c", "ulimit -f \"$0\"; trap '' XFSZ; exec \"$@\"", &blocks.to_string()]);
        limited.arg(command.get_program()).args(command.get_args()).env_clear();
        limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        limited.current_dir(self.root());
        self.finish(limited)
    }

    /// Runs a command of this project to its end.
    pub fn finish(&self, mut command: Command) -> Output {
        self.output(&command.output().unwrap())
    }

    /// Captures the output of a run of this project, with normalised paths.
    pub fn output(&self, output: &std::process::Output) -> Output {
        let beside = self.root.parent().unwrap().display().to_string();
        let root = self.root.display().to_string();
        let names = [
            // Every run here passes the root; hints.rs checks `--root` in printed commands.
            (format!(" --root {root}"), ""),
            (root, "[ROOT]"),
            (beside, "[BESIDE]"),
            (Upstream::shared().repository().display().to_string(), "[UPSTREAM]"),
        ];
        Output::new(output, &names)
    }

    /// Removes the leftovers of a killed run, as every command that changes the project does: `lock` writes nothing
    /// new, because the lock is up to date.
    #[track_caller]
    pub fn sweep(&self) {
        self.run(&["lock", "--check"]).success();
        self.run(&["lock"]).success();
    }

    /// Returns everything that only an interrupted run may leave.
    pub fn scratch(&self) -> Vec<String> {
        let marks =
            ["target/espalier/tmp/", "target/espalier/stage/", ".espalier-tmp-", "target/espalier/dist/."];
        let is_lock = |path: &str| {
            path.ends_with(".lock") && (path.contains("/store.git/") || path.contains("/trees/"))
        };
        let mut found = files::list(&self.root);
        found.retain(|path| is_lock(path) || marks.iter().any(|mark| path.contains(mark)));
        found
    }
}

fn pins(tree: &str, sources: &[Source]) -> String {
    let sources: Vec<String> = sources.iter().map(|source| format!("    {},\n", source.toml())).collect();
    format!(
        "default-variant = \"paged\"\n\n[pins.hello]\nupstream = \"hello\"\ntag = \"{TAG}\"\ntree = \"{tree}\"\n\
         sources = [\n{}]\n\n[variants.stock]\npin = \"hello\"\n\n\
         [variants.paged]\nextends = \"stock\"\npatches = \"patches/paged\"\noverlays = [\"overlay/extra\"]\n\n{}",
        sources.concat(),
        tools_of_this_repository()
    )
}

/// Returns the real `[tools.*]` tables: the tests use the tools that the project pins.
fn tools_of_this_repository() -> String {
    let text = std::fs::read_to_string(files::of_this_repository("pins.toml")).unwrap();
    let start = text.find("[tools.").expect("pins.toml pins tools");
    text[start..].to_string()
}

/// CMake need not try whether the C compiler works, and for which machine it compiles: that takes most of the time of a
/// configuration, and no program of the synthetic upstream depends on it.
const FLAVORS: &str = "programs = [\"hello\", \"llama-server\"]\n[cmake]\nCMAKE_BUILD_TYPE = \"Release\"\n\
                       CMAKE_C_COMPILER_FORCED = \"ON\"\n\n\
                       [flavors.cpu-native]\nabout = \"the processor of the machine that builds it\"\n";
