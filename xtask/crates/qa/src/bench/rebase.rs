//! The rebase bench: ours in memory, and `git merge-tree --write-tree` with `git commit-tree` in a loop.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::git::command::git;
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::Run;
use serde_json::{Value, json};

use super::Rounds;
use super::synthetic::{self, Size, Synthetic};
use super::timing::{Times, table, to_json};

/// Options of `bench rebase`.
#[derive(Clone, Copy, Debug, Args)]
pub struct Options {
    /// Number of rounds.
    #[command(flatten)]
    pub rounds: Rounds,
    /// Number of patches in the series.
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u16).range(1..=9999))]
    pub patches: u16,
}

/// Measures on a synthetic project, and checks that both methods produce the same tree.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let scratch = disk::scratch_folder(&context.layout.generated().join("bench"), "rebase")?;
    let project = scratch.path().join("made-up");
    let size = Size { files: 2000, patches: options.patches.into() };
    let contest = Contest { made: synthetic::make(&project, size)?, project };
    contest.prepare()?;
    let title = format!("{} patches rebased in a project of {} files", size.patches, size.files);
    context.ui.status("Measuring", &title);
    let times = contest.measure(options.rounds.count())?;
    Ok(Outcome::ok(table(&title, &times), json!([to_json(&title, &times)])))
}

struct Contest {
    made: Synthetic,
    project: PathBuf,
}

impl Contest {
    /// Packs the objects, and fetches them into our store, so that both sides read packed objects from disk.
    fn prepare(&self) -> Result<()> {
        git(&self.upstream()).args(["repack", "-a", "-d", "-q"]).success()?;
        self.ours().success().map(drop)
    }

    fn upstream(&self) -> PathBuf {
        self.project.join("upstream.git")
    }

    fn measure(&self, rounds: u32) -> Result<Vec<Times>> {
        let names = ["ours, in memory", "merge-tree + commit-tree loop", "ours, only started"];
        let [mut ours, mut loops, mut started] = names.map(Times::new);
        for _ in 0..rounds {
            let begin = Instant::now();
            let stdout = self.ours().success()?;
            ours.push(begin.elapsed());
            let begin = Instant::now();
            let tree = self.git_loop()?;
            loops.push(begin.elapsed());
            check(&stdout, &tree)?;
            let begin = Instant::now();
            program().arg("--help").success()?;
            started.push(begin.elapsed());
        }
        Ok(vec![ours, loops, started])
    }

    /// Names the commit by its id, which never moves, so nothing is fetched a second time.
    fn ours(&self) -> Run {
        let newer = self.made.newer.to_string();
        program().args(["--quiet", "--json", "--root"]).arg(&self.project).args([
            "rebase",
            "--dry-run",
            "--no-range-diff",
            "--to",
            &newer,
        ])
    }

    /// Returns the final tree. A shell runs the loop: each start of a process from this one, which holds the made-up
    /// repository in memory, would copy its page tables and count against git.
    fn git_loop(&self) -> Result<String> {
        let commits: String = self.made.commits.iter().map(|commit| format!("{commit}\n")).collect();
        let file = self.project.join("commits.txt");
        disk::write_atomically(&file, commits.as_bytes())?;
        let [base, head] = [self.made.base_commit, self.made.newer].map(|id| id.to_string());
        let shell =
            Run::new("sh").args(["-c", GIT_LOOP, "sh"]).arg(self.upstream()).args([base, head]).arg(&file);
        Ok(espalier_series::lossy(&shell.success()?).trim().to_string())
    }
}

/// Arguments: repository, base, new base, and a file with the commits of the series. Prints the final tree.
const GIT_LOOP: &str = r#"
export GIT_DIR="$1" base="$2" head="$3"
while read -r commit; do
    tree=$(git merge-tree --write-tree --merge-base="$base" "$head" "$commit") || exit
    head=$(git -c user.name=Bench -c user.email=bench@espalier.invalid commit-tree "$tree" -p "$head" -m Change) || exit
    base=$commit
done < "$4"
echo "$tree"
"#;

/// Returns a run of this same executable.
fn program() -> Run {
    Run::new(std::env::current_exe().unwrap_or_else(|_| PathBuf::from("xtask")))
}

fn check(ours: &[u8], tree: &str) -> Result<()> {
    let report: Value = serde_json::from_slice(ours).unwrap_or_default();
    let found = report.get("tree").and_then(Value::as_str).unwrap_or_default();
    if found == tree {
        return Ok(());
    }
    Err(Error::no("ours and git give different trees").detail(format!("ours {found}\ngit  {tree}")))
}
