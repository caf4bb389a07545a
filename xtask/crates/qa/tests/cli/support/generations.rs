//! A project whose series is used on two more upstream trees, its generations.

use std::path::{Path, PathBuf};

use super::editing::{commit_project, edit_folder};
use super::moving::{above_everything, greet, upstream_greets_otherwise};
use super::upstream::TAG;
use super::{Output, Project, files, git};

/// The patches of `paged`, without number and extension.
pub const PATCHES: [&str; 3] = ["0001-greet-more-warmly", "0002-say-what-is-counted", "0003-greet-dearly"];

/// A project with the variants `paged-v1-1` and `paged-v2`, which are like `paged`.
///
/// On `v1.1`, every patch is replayed without a decision, on other lines. On `v2.0` the first and the last are in
/// conflict, and upstream has the second.
pub struct Generations {
    pub project: Project,
    /// The repository with the trees of the generations.
    pub upstream: PathBuf,
}

impl Generations {
    pub fn new() -> Generations {
        let project = Project::new();
        let upstream = project.beside("generations");
        std::fs::rename(project.fork(), &upstream).unwrap();
        let release = |tag: &str, change: &dyn Fn(&Path)| {
            git::git(&upstream, &["checkout", "--quiet", "--force", "--detach", TAG]);
            change(&upstream);
            git::commit(&upstream, &format!("Release {tag}"));
            git::git(&upstream, &["tag", tag]);
        };
        release("v1.1", &|folder| {
            above_everything("src/greet.c")(folder);
            files::edit(&folder.join("src/ring.c"), "at % size", "(at + 1) % size");
        });
        release("v2.0", &|folder| {
            upstream_greets_otherwise(folder);
            files::edit(
                &folder.join("src/count.c"),
                "int count = 0;",
                "int count = 0; // words, not letters",
            );
        });
        let more = [("v1-1", "v1.1"), ("v2", "v2.0")].map(|(name, tag)| section(&upstream, name, tag));
        let pins = project.read("pins.toml");
        project.write("pins.toml", pins + &more.concat());
        project.write("ci/lint.toml", "require-trailers = []\n");
        Generations { project, upstream }
    }

    /// Creates the project with the siblings that `paged-v2` needs.
    pub fn with_siblings() -> Generations {
        Generations::with_siblings_and(|_| {})
    }

    /// Does the same; the sibling of the first patch makes `change` beside its conflict.
    pub fn with_siblings_and(change: impl Fn(&Path)) -> Generations {
        let generations = Generations::new();
        generations.rebase("v2", &["--drop-upstreamed"]).code(4);
        change(&generations.work("v2"));
        git::git(&generations.work("v2"), &["add", "--all", "--", ".", ":!src/greet.c"]);
        generations.solve("v2", &greet("hi there"));
        generations.rebase("v2", &["--continue", "--allow-edits"]).code(4);
        generations.solve("v2", &greet("hi there, dear"));
        generations.rebase("v2", &["--continue"]).success();
        generations
    }

    /// Creates a committed project with siblings. That of the first patch has another ring; the patch has got `change`
    /// at its pin since.
    pub fn with_stale_sibling(change: impl Fn(&Path)) -> Generations {
        let generations = Generations::with_siblings_and(ring_otherwise);
        commit_project(&generations.project);
        generations.change_patch(1, change);
        generations
    }

    /// Makes `change` in a patch, by its number, at its pin, and exports the series.
    pub fn change_patch(&self, number: usize, change: impl Fn(&Path)) -> Output {
        self.project.run(&["edit", "paged"]).success();
        let folder = edit_folder(&self.project, "paged");
        change(&folder);
        let commit = format!("HEAD~{}", PATCHES.len() - number);
        git::git(&folder, &["commit", "--quiet", "--all", "--fixup", &commit]);
        let editor = "sequence.editor=true";
        git::git(&folder, &["-c", editor, "rebase", "--quiet", "--interactive", "--autosquash"]);
        self.project.run(&["export", "paged"]).success()
    }

    /// Runs `rebase` for `paged` on a generation.
    pub fn rebase(&self, generation: &str, more: &[&str]) -> Output {
        let variant = format!("paged-{generation}");
        self.project.run(&[&["rebase", "--variant", &variant], more].concat())
    }

    /// Resolves the conflict of `src/greet.c`: writes `text`, and stages the file.
    pub fn solve(&self, generation: &str, text: &str) {
        let work = self.work(generation);
        files::write(&work.join("src/greet.c"), text);
        git::git(&work, &["add", "src/greet.c"]);
    }

    /// Returns the work tree of a conflict.
    pub fn work(&self, generation: &str) -> PathBuf {
        self.project.path(&format!("target/espalier/rebase/{generation}/work"))
    }

    /// Returns the names of the siblings.
    pub fn siblings(&self) -> Vec<String> {
        let mut names = files::list(&self.project.path("patches/paged"));
        names.retain(|name| name.contains('@'));
        names
    }

    /// Returns a file of `paged` on a generation.
    pub fn file(&self, generation: &str, path: &str) -> String {
        let variant = format!("paged-{generation}");
        self.project.run(&["apply", "--variant", &variant]).success();
        std::fs::read_to_string(self.project.tree(&variant).join(path)).unwrap()
    }

    /// Writes a sibling of the first patch for `v1.1`, with `greeting` instead of its own.
    pub fn write_sibling(&self, greeting: &str) {
        git::git(&self.upstream, &["checkout", "--quiet", "--force", "--detach", "v1.1"]);
        files::edit(&self.upstream.join("src/greet.c"), "\"hello\"", &format!("\"{greeting}\""));
        git::commit(&self.upstream, "Greet more warmly");
        let folder = self.project.beside("sibling");
        git::export_series(&self.upstream, "v1.1", &folder);
        let name = format!("{}.patch", PATCHES[0]);
        let text = std::fs::read(folder.join(&name)).unwrap();
        self.project.write(&format!("patches/paged/{}@v1-1.patch", PATCHES[0]), text);
    }
}

/// Changes `src/ring.c`, which no patch changes.
pub fn ring_otherwise(folder: &Path) {
    files::edit(&folder.join("src/ring.c"), "at % size", "size % at");
}

/// Changes the line that [`ring_otherwise`] changes.
pub fn ring_in_another_way(folder: &Path) {
    files::edit(&folder.join("src/ring.c"), "at % size", "at % (size + 1)");
}

/// Changes the name in `src/name.c`, which no patch changes.
pub fn name(new: &str) -> impl Fn(&Path) {
    move |folder: &Path| files::edit(&folder.join("src/name.c"), "\"world\"", &format!("\"{new}\""))
}

fn section(upstream: &Path, name: &str, tag: &str) -> String {
    let (path, tree) = (upstream.display().to_string(), git::tree_of(upstream, tag));
    format!(
        "\n[pins.{name}]\nupstream = \"hello\"\ngeneration-of = \"hello\"\ntag = \"{tag}\"\ntree = \"{tree}\"\n\
         sources = [{{ path = {path:?} }}]\n\n[variants.paged-{name}]\npin = \"{name}\"\nlike = \"paged\"\n"
    )
}
