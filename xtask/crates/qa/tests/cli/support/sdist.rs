//! Source distributions with a git repository or upstream's files inside, and a fake `python3` whose pip serves one.

use std::path::{Path, PathBuf};
use std::process::Command;

use espalier_core::sys::machine::disk;

use super::{Output, Project, files, git, program_path, upstream};

/// Path of the repository below the top folder.
pub const MEMBER: &str = ".git/modules/vendor/hello";

/// Path of the folder with upstream's files below the top folder.
pub const FOLDER: &str = "thirdparty/hello";

/// The tag under which `pins.toml` lists the package with upstream's files.
pub const RELEASE: &str = "v2.0";

/// The script of the tool is run with this `python3`; everything else is answered with a version.
const PYTHON: &str = r#"case "$1" in *pip_sdist.py) ;; *) echo "Python 3.11.2"; exit 0;; esac
echo "$@" > "$BESIDE/asked"
while [ $# -gt 0 ]; do [ "$1" = --dest ] && to=$2; shift; done
cp "$BESIDE/served.tar.gz" "$to/sdist.tar.gz""#;

/// A project that pins a commit by its id, and a package whose repository is a shallow clone of that commit.
pub struct Sdist {
    pub project: Project,
    /// The upstream that was cloned: the shared one, and one commit more.
    pub upstream: PathBuf,
    /// Full id of the pinned commit.
    pub commit: String,
    /// Entries of the archive.
    pub entries: Vec<Entry>,
}

/// One entry of an archive.
#[derive(Clone)]
pub struct Entry {
    /// Path from the top of the archive.
    pub path: String,
    /// Kind as in a tar header: `0` is a file, `2` a link.
    pub kind: u8,
    /// Permissions, such as `0o644`.
    pub mode: u32,
    /// Content of a file.
    pub content: Vec<u8>,
    /// Target of a link.
    pub target: String,
}

/// Returns the path in the archive of `path` in the repository.
pub fn in_repository(path: &str) -> String {
    format!("hello-1.0/{MEMBER}/{path}")
}

/// Returns the path in the archive of `path` in that folder.
pub fn in_folder(path: &str) -> String {
    format!("hello-1.0/{FOLDER}/{path}")
}

impl Entry {
    /// Returns an entry of `kind` without content; `target` is that of a link.
    pub fn empty(path: impl Into<String>, kind: u8, target: &str) -> Entry {
        Entry { path: path.into(), kind, mode: 0o644, content: Vec::new(), target: target.to_string() }
    }

    /// Returns a file.
    pub fn file(path: impl Into<String>, content: impl AsRef<[u8]>) -> Entry {
        Entry { content: content.as_ref().to_vec(), ..Entry::empty(path, b'0', "") }
    }
}

impl Sdist {
    /// Creates one with upstream's files in place of a repository, and a second source that has them but is not there:
    /// files alone cannot serve the pin of the default variant.
    pub fn of_files() -> Sdist {
        let mut sdist = Sdist::new();
        sdist.entries = files_of(&sdist.upstream);
        let sources = [files_source(RELEASE), "{ path = \"../nowhere\" }".to_string()];
        sdist.pin_to(&format!("tag = \"{RELEASE}\""), &sources);
        sdist
    }

    /// Creates one with a single pack.
    pub fn new() -> Sdist {
        Sdist::cloned(|_| {})
    }

    /// Creates one with loose objects only.
    pub fn with_loose_objects() -> Sdist {
        Sdist::cloned(|repository| {
            let packs = repository.join("objects/pack");
            for name in files::list(&packs) {
                let moved = repository.with_file_name(&name);
                std::fs::rename(packs.join(&name), &moved).unwrap();
                if name.ends_with(".pack") {
                    let unpack = format!("git unpack-objects -q <'{}'", moved.display());
                    let status = Command::new("sh").args(["-c", &unpack]).current_dir(repository).status();
                    assert!(status.unwrap().success());
                }
            }
        })
    }

    fn cloned(change: impl Fn(&Path)) -> Sdist {
        let project = Project::new();
        let moves = [("Change the readme", "README.md", "It says hello.", "It greets.")];
        let upstream = upstream::moved(&project, &moves);
        let commit = git::git(&upstream, &["rev-parse", "HEAD"]);
        let url = format!("file://{}", upstream.display());
        git::git(&project.beside(""), &["clone", "--quiet", "--bare", "--depth=1", &url, "nested.git"]);
        let nested = project.beside("nested.git");
        git::git(&nested, &["update-ref", "--no-deref", "HEAD", &commit]);
        change(&nested);
        let entry = |path: String| {
            let content = std::fs::read(nested.join(&path)).unwrap();
            Entry::file(in_repository(&path), content)
        };
        let entries = files::list(&nested).into_iter().map(entry).collect();
        let python = format!("BESIDE={}\n{PYTHON}", project.beside("").display());
        files::write_script(&project.beside("python/python3"), &python);
        let sdist = Sdist { project, upstream, commit, entries };
        let revision = format!("commit = \"{}\"", sdist.commit);
        sdist.pin_to(&revision, &[source(&sdist.commit, &"0".repeat(64))]);
        sdist
    }

    /// Pins the newest tree of upstream as `revision`, a line of `pins.toml`, with these sources.
    pub fn pin_to(&self, revision: &str, sources: &[String]) {
        let pins = self.project.read("pins.toml");
        let start = pins.find("[pins.hello]").unwrap();
        let end = pins.find("[variants.stock]").unwrap();
        let tree = git::tree_of(&self.upstream, "HEAD");
        let pin = format!(
            "[pins.hello]\nupstream = \"hello\"\n{revision}\ntree = \"{tree}\"\nsources = [\n    {},\n]\n\n",
            sources.join(",\n    ")
        );
        self.project.write("pins.toml", format!("{}{pin}{}", &pins[..start], &pins[end..]));
    }

    /// Returns the entry whose path ends with `end`.
    pub fn entry(&mut self, end: &str) -> &mut Entry {
        self.entries.iter_mut().find(|entry| entry.path.ends_with(end)).unwrap()
    }

    /// Adds a file of the repository, or replaces it.
    pub fn put(&mut self, path: &str, content: impl AsRef<[u8]>) {
        let path = in_repository(path);
        self.entries.retain(|entry| entry.path != path);
        self.entries.push(Entry::file(path, content));
    }

    /// Writes the archive that pip serves, and pins its digest.
    pub fn serve(&self) {
        let path = self.project.beside("served.tar");
        files::write(&path, tar(&self.entries));
        let zipped = Command::new("gzip").args(["--no-name", "--force"]).arg(&path).status().unwrap();
        assert!(zipped.success());
        let digest = disk::sha256(&std::fs::read(self.project.beside("served.tar.gz")).unwrap());
        let pins = self.project.read("pins.toml");
        let at = pins.find("\"1.0\" = \"").expect("the digest of version 1.0") + "\"1.0\" = \"".len();
        self.project.write("pins.toml", format!("{}{digest}{}", &pins[..at], &pins[at + digest.len()..]));
    }

    /// Runs the tool with that `python3`.
    pub fn run(&self, arguments: &[&str]) -> Output {
        let machine = program_path::of_this_machine();
        let folders = std::iter::once(self.project.beside("python")).chain(std::env::split_paths(&machine));
        self.project.run_with_path(arguments, std::env::join_paths(folders).unwrap())
    }

    /// Serves the archive and fetches from it.
    pub fn fetch(&self) -> Output {
        self.serve();
        self.run(&["fetch"])
    }

    /// Returns the arguments of the last call of pip.
    pub fn asked(&self) -> String {
        std::fs::read_to_string(self.project.beside("asked")).unwrap_or_default()
    }

    /// Asserts that nothing of a failed fetch is left, neither in the project nor beside it.
    pub fn assert_nothing_left(&self) {
        assert_eq!(self.project.scratch(), [""; 0]);
        assert_eq!(git::git(&self.project.store(), &["for-each-ref"]), "");
        let objects = ["cat-file", "--batch-all-objects", "--batch-check"];
        assert_eq!(git::git(&self.project.store(), &objects), "");
    }
}

/// Returns the source of a pin on `commit`.
pub fn source(commit: &str, sha256: &str) -> String {
    format!(
        "{{ pip = \"hello-py\", member = \"{MEMBER}\", versions = {{ \"{commit}\" = \"1.0\" }}, \
         sha256 = {{ \"1.0\" = \"{sha256}\" }} }}"
    )
}

/// Returns the source of the files of `revision`.
pub fn files_source(revision: &str) -> String {
    format!(
        "{{ pip = \"hello-py\", files = \"{FOLDER}\", versions = {{ \"{revision}\" = \"1.0\" }}, \
         sha256 = {{ \"1.0\" = \"{}\" }} }}",
        "0".repeat(64)
    )
}

/// Returns the files of the commit that is checked out in `upstream`, as entries.
fn files_of(upstream: &Path) -> Vec<Entry> {
    let listed = git::git(upstream, &["ls-files", "--stage"]);
    let entry = |line: &str| {
        let (head, path) = line.split_once('\t').unwrap();
        let (file, in_archive) = (upstream.join(path), in_folder(path));
        match head.split(' ').next().unwrap() {
            "120000" => Entry::empty(in_archive, b'2', std::fs::read_link(file).unwrap().to_str().unwrap()),
            mode => {
                let mode = u32::from_str_radix(&mode[3..], 8).unwrap();
                Entry { mode, ..Entry::file(in_archive, std::fs::read(file).unwrap()) }
            }
        }
    };
    listed.lines().map(entry).collect()
}

/// Returns a `.tar` whose entries may have any path and any kind.
fn tar(entries: &[Entry]) -> Vec<u8> {
    const BLOCK: usize = 512;
    let mut bytes = Vec::new();
    for entry in entries {
        bytes.extend(header(entry));
        bytes.extend(&entry.content);
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    }
    bytes.resize(bytes.len() + 2 * BLOCK, 0);
    bytes
}

fn header(entry: &Entry) -> [u8; 512] {
    let mut header = [0; 512];
    let mut put = |at: usize, text: &[u8]| header[at..at + text.len()].copy_from_slice(text);
    assert!(entry.path.len() <= 100, "{}", entry.path);
    put(0, entry.path.as_bytes());
    put(100, format!("{:07o}\0", entry.mode).as_bytes());
    put(124, format!("{:011o}\0", entry.content.len()).as_bytes());
    put(156, &[entry.kind]);
    put(157, entry.target.as_bytes());
    put(257, b"ustar\x0000");
    // The sum is computed with spaces in its place.
    put(148, b"        ");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}
