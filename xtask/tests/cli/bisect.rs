//! `bisect`: the commits at which patches break, in histories with merges, renames, reverts and re-applies.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;
use xtask::series::{PatchClass, PatchOutcome};
use xtask::sys::history::{self, Commit};
use xtask::sys::inputs::PatchFile;
use xtask::sys::range::{survey_history, survey_pin, survey_tree};
use xtask::sys::store::Store;

use super::support::history::{History, PIN};
use super::support::upstream::Upstream;
use super::support::{Output, Project, files, git};

const HISTORIES: u64 = 50;
const STEPS: usize = 40;
/// Of the series of every made-up history, the patches of the file that planted commits alone touch.
const VICTIMS: [usize; 2] = [8, 9];

#[test]
fn the_planted_culprit_is_found_in_every_history() {
    let mut kinds = [0; 3];
    for seed in 1..=HISTORIES {
        let made = History::new(seed, STEPS);
        let project = made.project();
        let report = project.run(&["--json", "bisect"]).code(1).json();
        for victim in VICTIMS {
            let found = &report["patches"][victim];
            check_planted(seed, &made, found);
        }
        let kind = usize::from(made.reverted.is_some()) + usize::from(made.applied_again.is_some());
        kinds[kind] += 1;
        Judged::all(&project, &made).check(seed, &report);
    }
    assert!(kinds.iter().all(|count| *count >= 5), "too few histories of a kind: {kinds:?}");
}

/// By construction: who broke it, whether that holds, and who did it last.
fn check_planted(seed: u64, made: &History, found: &Value) {
    let subject = |at: usize| Value::from(made.commits[at].subject.clone());
    let lasting = made.applied_again.or(made.reverted.is_none().then_some(made.planted));
    for name in ["stops_being_exact", "stops_applying"] {
        let found = &found[name];
        assert_eq!(found["first"]["subject"], subject(made.planted), "history {seed}: {found:#}");
        assert_eq!(found["lasting"]["subject"], lasting.map_or(Value::Null, subject), "history {seed}");
    }
}

/// What each patch is at each commit, judged anew for every commit without anything remembered.
struct Judged<'a> {
    made: &'a History,
    /// By the place of the commit in the made-up history.
    classes: HashMap<usize, Vec<PatchClass>>,
}

impl Judged<'_> {
    /// Checks on the way that the whole outcome is what the range engine says.
    fn all<'a>(project: &Project, made: &'a History) -> Judged<'a> {
        let store = Store::open(&project.store()).unwrap();
        let series = files::list(&project.path("patches/paged"));
        let patches: Vec<_> = series
            .iter()
            .map(|name| PatchFile {
                file: name.clone(),
                bytes: std::fs::read(project.path("patches/paged").join(name)).unwrap(),
                sha256: String::new(),
            })
            .map(|file| file.parse().unwrap())
            .collect();
        let upstream = project.beside("upstream");
        let id = |text: String| git2::Oid::from_str(&text).unwrap();
        let pin = id(git::tree_of(&upstream, "v1.0"));
        let tip = id(git::git(&upstream, &["rev-parse", "main"]));
        let commits = history::since(&store, tip, pin).unwrap().unwrap();
        let range = survey_history(&store, &patches, pin, &commits).unwrap();
        survey_pin(&store, &patches, pin).unwrap();
        let mut classes = HashMap::from([(PIN, range.at_pin.classes().collect())]);
        for (commit, found) in commits.iter().zip(&range.surveys) {
            let place = place(commit);
            assert_eq!(found.is_some(), made.has_pin(place), "{}", commit.subject);
            let Some(found) = found else { continue };
            let alone = survey_tree(&store, &patches, commit.tree).unwrap();
            let outcomes: Vec<PatchOutcome> = alone.outcomes(&patches);
            assert_eq!(found.outcomes(&patches), outcomes, "{}", commit.subject);
            classes.insert(place, alone.classes().collect());
        }
        Judged { made, classes }
    }

    /// Every transition of every patch, and the first and lasting beginnings of each kind.
    fn check(&self, seed: u64, report: &Value) {
        for patch in 0..report["patches"].as_array().unwrap().len() {
            let found = &report["patches"][patch];
            let turns: BTreeSet<usize> =
                found["turns"].as_array().unwrap().iter().map(|turn| place_in(&turn["commit"])).collect();
            let expected: BTreeSet<usize> = self
                .places()
                .filter(|at| self.begins(*at, |place| self.class(*at, patch) == self.class(place, patch)))
                .collect();
            assert_eq!(turns, expected, "history {seed}, patch {patch}: {found:#}");
            use PatchClass::{Exact, Shifted, Upstreamed};
            self.check_kind(&found["stops_being_exact"], patch, |class| class != Exact);
            self.check_kind(&found["stops_applying"], patch, |class| {
                ![Exact, Shifted, Upstreamed].contains(&class)
            });
            self.check_kind(&found["upstreamed"], patch, |class| class == Upstreamed);
        }
    }

    fn check_kind(&self, found: &Value, patch: usize, is_so: impl Fn(PatchClass) -> bool) {
        let is_so_at = |place: usize| is_so(self.class(place, patch));
        let all: BTreeSet<usize> = self.places().filter(|at| self.begins(*at, is_so_at)).collect();
        let lasting: BTreeSet<usize> =
            all.iter().copied().filter(|at| self.reaches_tip(*at, self.made.tip, &is_so_at)).collect();
        assert_eq!(found["times"].as_u64().unwrap_or(0), all.len() as u64, "{found:#}");
        if all.is_empty() {
            return;
        }
        let first = place_in(&found["first"]);
        assert!(all.contains(&first), "{first} is not in {all:?}");
        assert!(
            !all.iter().any(|other| *other != first && self.is_behind(*other, first)),
            "{first} of {all:?}"
        );
        match lasting.is_empty() {
            true => assert!(found["lasting"].is_null()),
            false => assert!(lasting.contains(&place_in(&found["lasting"]))),
        }
    }

    fn places(&self) -> impl Iterator<Item = usize> {
        self.classes.keys().copied().filter(|at| *at != PIN)
    }

    fn class(&self, place: usize, patch: usize) -> PatchClass {
        self.classes[&place][patch]
    }

    fn before(&self, at: usize) -> impl Iterator<Item = usize> {
        self.made.commits[at].parents.iter().copied().filter(|parent| self.classes.contains_key(parent))
    }

    fn begins(&self, at: usize, is_so: impl Fn(usize) -> bool) -> bool {
        is_so(at) && !self.before(at).any(is_so)
    }

    /// Whether there is a way from `at` up to `to` on which it is so all along.
    fn reaches_tip(&self, at: usize, to: usize, is_so: &impl Fn(usize) -> bool) -> bool {
        to != PIN
            && is_so(to)
            && (to == at || self.before(to).any(|parent| self.reaches_tip(at, parent, is_so)))
    }

    fn is_behind(&self, old: usize, new: usize) -> bool {
        old == new || self.before(new).any(|parent| parent >= old && self.is_behind(old, parent))
    }
}

/// The subject of a made-up commit starts with its place.
fn place(commit: &Commit) -> usize {
    commit.subject[..3].parse().unwrap()
}

fn place_in(commit: &Value) -> usize {
    commit["subject"].as_str().unwrap()[..3].parse().unwrap()
}

/// Upstream with commits after the tag, in a folder that belongs to one test.
fn moved_upstream(project: &Project, moves: &[(&str, &str, &str, &str)]) -> String {
    let repository = project.beside("moved");
    files::copy_folder(&Upstream::shared().repository(), &repository);
    for (message, file, from, to) in moves {
        files::edit(&repository.join(file), from, to);
        git::commit(&repository, message);
    }
    repository.display().to_string()
}

const COUNT_MOVES: (&str, &str, &str, &str) =
    ("Include more", "src/count.c", "#include \"words.h\"", "#include <stddef.h>\n#include \"words.h\"");
const GREETING_GOES: (&str, &str, &str, &str) =
    ("Say <b>hi</b> | bye", "src/greet.c", "return \"hello\";", "return \"hi\";");
const GREETING_IS_BACK: (&str, &str, &str, &str) =
    ("Revert \"Say hi\"", "src/greet.c", "return \"hi\";", "return \"hello\";");
const GREETING_GOES_AGAIN: (&str, &str, &str, &str) =
    ("Say hi after all", "src/greet.c", "return \"hello\";", "return \"hi\";");

fn bisect(project: &Project, upstream: &str, more: &[&str]) -> Output {
    project.run(&[&["--quiet", "bisect", "--tip", "main", "--from", upstream], more].concat())
}

#[test]
fn each_patch_has_the_commits_that_broke_it() {
    let project = Project::new();
    let moves = [COUNT_MOVES, GREETING_GOES, GREETING_IS_BACK, GREETING_GOES_AGAIN];
    let upstream = moved_upstream(&project, &moves);
    insta::assert_snapshot!(bisect(&project, &upstream, &[]), @r#"
    exit: 1
    -- stdout --
    paged: 3 of 3 patches do not stay exact over the 4 commits of hello from v1.0 to main

      patches/paged/0001-greet-more-warmly.patch: exact at the pin, conflict at the tip
        stops being exact and applying at d855eaf3abc1 2020-01-02 Say <b>hi</b> | bye (Test Person)
          2 times; the one that holds at main: e867fd74c59d 2020-01-02 Say hi after all (Test Person)
        exact -> conflict: d855eaf3abc1 Say <b>hi</b> | bye
        conflict -> exact: 03bb337816c3 Revert "Say hi"
        exact -> conflict: e867fd74c59d Say hi after all
      patches/paged/0002-say-what-is-counted.patch: exact at the pin, shifted at the tip
        stops being exact at a398aafe3209 2020-01-02 Include more (Test Person)
      patches/paged/0003-greet-dearly.patch: exact at the pin, blocked at the tip
        stops being exact and applying at d855eaf3abc1 2020-01-02 Say <b>hi</b> | bye (Test Person)
          2 times; the one that holds at main: e867fd74c59d 2020-01-02 Say hi after all (Test Person)
        exact -> blocked: d855eaf3abc1 Say <b>hi</b> | bye
        blocked -> exact: 03bb337816c3 Revert "Say hi"
        exact -> blocked: e867fd74c59d Say hi after all
    -- stderr --
    "#);
    insta::assert_snapshot!(bisect(&project, &upstream, &["--patch", "2"]), @"
    exit: 1
    -- stdout --
    paged: 1 of 1 patches do not stay exact over the 4 commits of hello from v1.0 to main

      patches/paged/0002-say-what-is-counted.patch: exact at the pin, shifted at the tip
        stops being exact at a398aafe3209 2020-01-02 Include more (Test Person)
    -- stderr --
    ");
    insta::assert_snapshot!(bisect(&project, &upstream, &["--markdown"]).stdout, @r"
    paged: 3 of 3 patches do not stay exact over the 4 commits of hello from v1.0 to main

    | patch | at the pin | at the tip | stops being exact | stops applying | upstreamed |
    |---|---|---|---|---|---|
    | `patches/paged/0001-greet-more-warmly.patch` | exact | conflict | `d855eaf3abc1` Say &lt;b&gt;hi&lt;/b&gt; \| bye, now `e867fd74c59d` Say hi after all | `d855eaf3abc1` Say &lt;b&gt;hi&lt;/b&gt; \| bye, now `e867fd74c59d` Say hi after all |  |
    | `patches/paged/0002-say-what-is-counted.patch` | exact | shifted | `a398aafe3209` Include more |  |  |
    | `patches/paged/0003-greet-dearly.patch` | exact | blocked | `d855eaf3abc1` Say &lt;b&gt;hi&lt;/b&gt; \| bye, now `e867fd74c59d` Say hi after all | `d855eaf3abc1` Say &lt;b&gt;hi&lt;/b&gt; \| bye, now `e867fd74c59d` Say hi after all |  |
    ");
}

#[test]
fn what_is_mended_is_told_as_mended() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[GREETING_GOES, GREETING_IS_BACK, COUNT_MOVES]);
    insta::assert_snapshot!(bisect(&project, &upstream, &["--patch", "0001"]), @r#"
    exit: 1
    -- stdout --
    paged: 1 of 1 patches do not stay exact over the 3 commits of hello from v1.0 to main

      patches/paged/0001-greet-more-warmly.patch: exact at the pin, exact at the tip
        stops being exact and applying at a1f2237ab970 2020-01-02 Say <b>hi</b> | bye (Test Person)
          mended since
        exact -> conflict: a1f2237ab970 Say <b>hi</b> | bye
        conflict -> exact: b7d1a0aaf03d Revert "Say hi"
    -- stderr --
    "#);
}

#[test]
fn nothing_breaks() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[("About", "README.md", "Hello", "Hello!")]);
    insta::assert_snapshot!(bisect(&project, &upstream, &[]), @"
    exit: 0
    -- stdout --
    paged: 0 of 3 patches do not stay exact over the 1 commit of hello from v1.0 to main

      patches/paged/0001-greet-more-warmly.patch: exact all the way
      patches/paged/0002-say-what-is-counted.patch: exact all the way
      patches/paged/0003-greet-dearly.patch: exact all the way
    -- stderr --
    ");
    // The pin itself, from the project's own source, whose HEAD it is.
    project.run(&["bisect"]).success();
}

#[test]
fn a_patch_that_is_not_there() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[]);
    insta::assert_snapshot!(bisect(&project, &upstream, &["--patch", "7"]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: `paged` has no patch `7`
      patches/paged/0001-greet-more-warmly.patch
      patches/paged/0002-say-what-is-counted.patch
      patches/paged/0003-greet-dearly.patch
      next: name one by its number: --patch 0001
    ");
}

#[test]
fn a_tip_without_its_history() {
    let project = Project::new();
    moved_upstream(&project, &[GREETING_GOES]);
    let folder = project.beside("moved");
    git::git(&folder, &["checkout", "--quiet", "--orphan", "squashed"]);
    git::commit(&folder, "All at once");
    git::git(&folder, &["branch", "--quiet", "--force", "main", "squashed"]);
    git::git(&folder, &["bundle", "create", "--quiet", "release.bundle", "main"]);
    let bundle = folder.join("release.bundle").display().to_string();
    insta::assert_snapshot!(bisect(&project, &bundle, &[]), @"
    exit: 3
    -- stdout --

    -- stderr --
    error: the commits of hello between v1.0 and main are not at hand
      path [UPSTREAM]: has them only if it is a clone of both
      next: name a clone in which main comes after v1.0: --from PATH
    ");
    // The same from a repository that has nothing of the pin behind it.
    let other = project.beside("other");
    git::init(&other);
    for text in ["1", "2"] {
        files::write(&other.join("file"), text);
        git::commit(&other, "Something else");
    }
    bisect(&project, other.to_str().unwrap(), &[]).code(3);
}

#[test]
fn a_shallow_clone() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[GREETING_GOES]);
    let alone = project.beside("alone");
    let (from, to) = (format!("file://{upstream}"), alone.display().to_string());
    git::git(project.root(), &["clone", "--quiet", "--depth", "1", &from, &to]);
    insta::assert_snapshot!(bisect(&project, &to, &[]), @"
    exit: 3
    -- stdout --

    -- stderr --
    warning: path [BESIDE]/alone: it sent nothing; if it is a shallow clone: `git fetch --unshallow` there
    error: no source has `main` of hello
      path [BESIDE]/alone: it sent nothing; if it is a shallow clone: `git fetch --unshallow` there
      next: name a repository or a bundle that has it: --from PATH
    ");
}

#[test]
fn a_project_with_nothing_but_pins_and_patches() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[COUNT_MOVES, GREETING_GOES]);
    let root = project.beside("small");
    files::copy_folder(&project.path("patches/paged"), &root.join("series"));
    let tree = Upstream::shared().tree();
    files::write(
        &root.join("pins.toml"),
        format!(
            "default-variant = \"ours\"\n\n[pins.hello]\nupstream = \"hello\"\ntag = \"v1.0\"\ntree = \"{tree}\"\n\
             sources = [{{ path = {upstream:?} }}]\n\n[variants.ours]\npin = \"hello\"\npatches = \"series\"\n"
        ),
    );
    let run = |command: &str, code: i32| {
        let mut run = std::process::Command::new(project.command(&[]).get_program());
        run.arg("--root").arg(&root).args(["--json", command, "--tip", "main"]);
        project.finish(run).code(code).json()
    };
    assert_eq!(run("bisect", 1)["patches"][0]["stops_applying"]["first"]["subject"], GREETING_GOES.0);
    assert_eq!(run("newest", 1)["applies"]["commit"]["subject"], COUNT_MOVES.0);
    let status = run("status", 1);
    assert_eq!(
        status["history"][status["patches"][2]["caused_by"].as_u64().unwrap() as usize]["subject"],
        GREETING_GOES.0
    );
    assert!(!root.join("ci").exists() && !root.join("espalier.lock").exists());
}
