//! A project whose series is used on two more upstream trees, its generations.

use std::path::{Path, PathBuf};

use super::moving::{above_everything, upstream_greets_otherwise};
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
        let generations = Generations::new();
        generations.rebase("v2", &["--drop-upstreamed"]).code(4);
        generations.solve("v2", &super::moving::greet("hi there"));
        generations.rebase("v2", &["--continue"]).code(4);
        generations.solve("v2", &super::moving::greet("hi there, dear"));
        generations.rebase("v2", &["--continue"]).success();
        generations
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

fn section(upstream: &Path, name: &str, tag: &str) -> String {
    let (path, tree) = (upstream.display().to_string(), git::tree_of(upstream, tag));
    format!(
        "\n[pins.{name}]\nupstream = \"hello\"\ngeneration-of = \"hello\"\ntag = \"{tag}\"\ntree = \"{tree}\"\n\
         sources = [{{ path = {path:?} }}]\n\n[variants.paged-{name}]\npin = \"{name}\"\nlike = \"paged\"\n"
    )
}
