//! The apply bench: our `apply` cold and unchanged, `git am`, one `git apply --cached` of all patches + write-tree.

use std::path::{Path, PathBuf};
use std::time::Instant;

use espalier_core::config::layout::Layout;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::git::command::git;
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::owned;
use espalier_core::sys::machine::process::Run;
use espalier_patches::lock_file;
use espalier_series::ObjectId;
use serde_json::json;

use super::synthetic::{self, Size};
use super::timing::{Times, table, to_json};

/// Measures on a synthetic project and on this one, and checks that all methods produce the same tree.
pub fn run(context: &Context, rounds: u32) -> Result<Outcome> {
    let scratch = disk::scratch_folder(&context.layout.generated().join("bench"), "apply")?;
    let mut text = Vec::new();
    let mut json = Vec::new();
    for contest in [made_up(scratch.path())?, real(context, scratch.path())?] {
        context.ui.status("Measuring", &contest.title);
        let times = contest.measure(rounds)?;
        text.push(table(&contest.title, &times));
        json.push(to_json(&contest.title, &times));
    }
    Ok(Outcome::ok(text.join("\n"), json!(json)))
}

/// The timed commands: a program, and for some methods a second one after it.
type Timed = (Run, Option<Run>);

/// One series and everything that is needed to apply it with each method.
struct Contest {
    title: String,
    /// A project for our tool, with a store that has the pin and nothing applied.
    project: PathBuf,
    variant: String,
    base_commit: ObjectId,
    patches: Vec<PathBuf>,
    /// The tree after the last patch.
    expected: String,
    work: PathBuf,
}

fn made_up(scratch: &Path) -> Result<Contest> {
    let project = scratch.join("made-up");
    let size = Size { files: 2000, patches: 120 };
    let made = synthetic::make(&project, size)?;
    ours(&project).arg("fetch").success()?;
    Ok(Contest {
        title: format!("A made-up project of {} files, {} patches", size.files, size.patches),
        patches: patch_files(&project.join("patches/synthetic"))?,
        variant: "synthetic".to_string(),
        base_commit: made.base_commit,
        expected: made.tip.to_string(),
        work: scratch.join("work-made-up"),
        project,
    })
}

/// Prepares this repository's own series, without its overlays, for which git has no counterpart.
fn real(context: &Context, scratch: &Path) -> Result<Contest> {
    let pins = context.pins()?;
    let variant = pins.variant(None)?;
    let folder = variant.patches.clone().unwrap_or_default();
    let locked = lock_file::read(context)?.and_then(|lock| lock.variants.get(variant.name.as_str()).cloned());
    let locked = locked.ok_or_else(|| Error::usage("`espalier.lock` is missing").hint("cargo xtask lock"))?;
    let project = scratch.join("real");
    for patch in patch_files(&context.layout.series(&folder))? {
        let name = patch.file_name().unwrap_or_default();
        disk::write_atomically(&project.join("patches/series").join(name), &disk::read(&patch)?)?;
    }
    disk::write_atomically(&project.join("pins.toml"), real_pins(&locked.pin, &locked.base).as_bytes())?;
    let store = context.layout.store().display().to_string();
    let pin_commit = git(&context.layout.store())
        .args(["rev-parse", &format!("refs/espalier/pins/{}", locked.base)])
        .success()?;
    let base_commit = espalier_series::lossy(&pin_commit)
        .trim()
        .parse::<ObjectId>()
        .map_err(|error| Error::environment(error.to_string()))?;
    let bare = project.join("upstream.git");
    git(&bare).args(["init", "--quiet", "--bare", "--template="]).arg(&bare).success()?;
    let to = format!("refs/espalier/pins/{}:refs/tags/{}", locked.base, locked.pin);
    git(&bare).args(["fetch", "--quiet", &store, &to]).success()?;
    ours(&project).arg("fetch").success()?;
    Ok(Contest {
        title: format!("llama.cpp {}, {} patches", locked.pin, locked.patches.len()),
        patches: patch_files(&project.join("patches/series"))?,
        variant: "synthetic".to_string(),
        base_commit,
        expected: locked.patches.last().map_or(locked.base.clone(), |patch| patch.tree.clone()),
        work: scratch.join("work-real"),
        project,
    })
}

fn real_pins(tag: &str, tree: &str) -> String {
    format!(
        "default-variant = \"synthetic\"\n\n[pins.real]\nupstream = \"real\"\ntag = \"{tag}\"\ntree = \"{tree}\"\n\
         sources = [{{ path = \"upstream.git\" }}]\n\n\
         [variants.synthetic]\npin = \"real\"\npatches = \"patches/series\"\n"
    )
}

fn patch_files(folder: &Path) -> Result<Vec<PathBuf>> {
    Ok(disk::files_below(folder)?.into_iter().map(|file| folder.join(file)).collect())
}

/// Returns a run of this same executable on another project.
pub(super) fn ours(project: &Path) -> Run {
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("xtask"));
    Run::new(program).args(["--quiet", "--offline", "--root"]).arg(project)
}

impl Contest {
    fn measure(&self, rounds: u32) -> Result<Vec<Times>> {
        self.prepare_git()?;
        let names = ["ours, cold", "ours, nothing changed", "one git apply --cached + write-tree", "git am"];
        let mut all: Vec<Times> = names.iter().map(|name| Times::new(name)).collect();
        for _ in 0..rounds {
            let runs: [&dyn Fn() -> Result<Timed>; 4] =
                [&|| self.ours_cold(), &|| self.ours_again(), &|| self.git_apply(), &|| self.git_am()];
            for (times, run) in all.iter_mut().zip(runs) {
                let (first, second) = run()?;
                let begin = Instant::now();
                let mut stdout = first.success()?;
                if let Some(second) = second {
                    stdout = second.success()?;
                }
                times.push(begin.elapsed());
                self.check(&times.title, &espalier_series::lossy(&stdout))?;
            }
        }
        Ok(all)
    }

    /// Checks the tree. `git am` prints nothing, so its result is read from the repository.
    fn check(&self, name: &str, stdout: &str) -> Result<()> {
        let tree = if name == "git am" {
            espalier_series::lossy(&self.git().args(["rev-parse", "HEAD^{tree}"]).success()?).into_owned()
        } else {
            stdout.to_string()
        };
        if tree.contains(&self.expected) {
            return Ok(());
        }
        Err(Error::no(format!("{name} produced a different tree: {}", tree.trim()))
            .detail(format!("expected {}", self.expected)))
    }

    fn ours_apply(&self) -> Run {
        ours(&self.project).args(["apply", "--check", "--variant", &self.variant])
    }

    /// Removes the lock, the applied commit and every object except the pin's.
    fn ours_cold(&self) -> Result<Timed> {
        let layout = Layout::new(&self.project);
        disk::remove_file(&layout.lock())?;
        owned::remove_folder(&layout.generated())?;
        ours(&self.project).arg("fetch").success()?;
        Ok((self.ours_apply(), None))
    }

    /// Writes the lock first, which the cold run did not.
    fn ours_again(&self) -> Result<Timed> {
        ours(&self.project).arg("lock").success()?;
        Ok((self.ours_apply(), None))
    }

    fn git(&self) -> Run {
        git(&self.work.join(".git"))
            .arg(format!("--work-tree={}", self.work.display()))
            .current_folder(&self.work)
    }

    fn prepare_git(&self) -> Result<()> {
        disk::create_folder(&self.work)?;
        self.git().args(["init", "--quiet", "--template="]).success()?;
        let upstream = self.project.join("upstream.git").display().to_string();
        self.git().args(["fetch", "--quiet", &upstream, "refs/tags/*:refs/tags/*"]).success()?;
        self.reset()
    }

    fn reset(&self) -> Result<()> {
        let commit = self.base_commit.to_string();
        self.git().args(["checkout", "--quiet", "--force", "--detach", &commit]).success().map(drop)
    }

    /// Fills the index before the clock starts, in a separate file.
    fn git_apply(&self) -> Result<Timed> {
        let index = self.work.join(".git/bench-index");
        disk::remove_file(&index)?;
        let commit = self.base_commit.to_string();
        let with_index = |run: Run| run.env("GIT_INDEX_FILE", &index);
        with_index(self.git()).args(["read-tree", &commit]).success()?;
        let apply = with_index(self.git()).args(["apply", "--cached"]).args(&self.patches);
        Ok((apply, Some(with_index(self.git()).arg("write-tree"))))
    }

    fn git_am(&self) -> Result<Timed> {
        self.reset()?;
        let who = [
            "-c",
            "user.name=Bench",
            "-c",
            "user.email=bench@espalier.invalid",
            "-c",
            "commit.gpgSign=false",
        ];
        Ok((self.git().args(who).args(["am", "--quiet"]).args(&self.patches), None))
    }
}
