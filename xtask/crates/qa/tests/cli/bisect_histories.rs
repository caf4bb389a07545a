//! `bisect` on synthetic histories with merges, renames, reverts and re-applies.

use std::collections::{BTreeSet, HashMap};

use espalier_core::sys::git::history::{self, Commit};
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::store_tree::StoreTree;
use espalier_core::sys::project::inputs::PatchFile;
use espalier_patches::range::{applied_series, survey_each, survey_tree};
use espalier_series::PatchClass;
use serde_json::Value;

use super::support::history::{History, PIN};
use super::support::{self, Project, files, git};

/// Number of synthetic histories, and the environment variable that sets another one.
const HISTORIES: usize = 12;
const MORE: &str = "ESPALIER_HISTORIES";
const STEPS: usize = 40;
/// Indices, in the series of every synthetic history, of the patches of the file that only planted commits touch.
const VICTIMS: [usize; 2] = [8, 9];

#[test]
fn the_planted_culprit_is_found_in_every_history() {
    let histories = support::count(MORE, HISTORIES);
    let mut kinds = [0; 3];
    for seed in 1..=histories as u64 {
        let made = History::new(seed, STEPS);
        let project = made.project();
        let report = project.run(&["--json", "bisect", "--every-commit"]).code(1).json();
        let counted = git::git(&project.beside("upstream"), &["rev-list", "--count", "v1.0..main"]);
        assert_eq!(report["commits"].to_string(), counted, "history {seed}");
        for victim in VICTIMS {
            let found = &report["patches"][victim];
            check_planted(seed, &made, found);
        }
        let kind = usize::from(made.reverted.is_some()) + usize::from(made.applied_again.is_some());
        kinds[kind] += 1;
        Judged::all(&project, &made).check(seed, &report);
    }
    assert!(kinds.iter().all(|count| *count >= histories / 10), "too few histories of a kind: {kinds:?}");
}

/// Checks what is known by construction: the commit that broke the patch, and the last one, if the patch is still
/// broken.
fn check_planted(seed: u64, made: &History, found: &Value) {
    let subject = |at: usize| Value::from(made.commits[at].subject.clone());
    let lasting = made.applied_again.or(made.reverted.is_none().then_some(made.planted));
    for name in ["stops_being_exact", "stops_applying"] {
        let found = &found[name];
        assert_eq!(found["first"]["subject"], subject(made.planted), "history {seed}: {found:#}");
        assert_eq!(found["lasting"]["subject"], lasting.map_or(Value::Null, subject), "history {seed}");
    }
}

/// The class of each patch at each commit, computed from scratch for every commit without caching.
struct Judged<'a> {
    made: &'a History,
    /// Indexed by the position of the commit in the synthetic history.
    classes: HashMap<usize, Vec<PatchClass>>,
}

impl Judged<'_> {
    /// Judges all commits, and checks that each complete outcome equals the range engine's.
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
        let id = |text: String| text.parse().unwrap();
        let pin = id(git::tree_of(&upstream, "v1.0"));
        let tip = id(git::git(&upstream, &["rev-parse", "main"]));
        let commits = history::since(&store, tip, pin).unwrap().unwrap();
        let pin_tree = StoreTree::new(&store, pin).unwrap();
        let applied = applied_series(&store, &patches, &pin_tree).unwrap();
        let mut classes = HashMap::new();
        let range = survey_each(&store, &applied, &pin_tree, &commits, |at, found, upstreamed| {
            let (commit, place) = (&commits[at], place(&commits[at]));
            assert_eq!(found.is_some(), made.has_pin(place), "{}", commit.subject);
            let Some(found) = found else { return Ok(()) };
            let tree = StoreTree::in_range(&store, commit.tree, pin, commit.tree).unwrap();
            let alone = survey_tree(&applied, &tree, upstreamed).unwrap();
            assert_eq!(*found, alone, "{}", commit.subject);
            classes.insert(place, alone.classes().collect());
            Ok(())
        })
        .unwrap();
        classes.insert(PIN, range.at_pin.classes().collect());
        Judged { made, classes }
    }

    /// Checks every transition of every patch, and the first and lasting starts of each kind.
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
            use PatchClass::{Exact, Upstreamed};
            self.check_kind(&found["stops_being_exact"], patch, |class| class != Exact);
            self.check_kind(&found["stops_applying"], patch, |class| !class.applies() && class != Upstreamed);
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

    /// Whether there is a path from `at` up to `to` on which `is_so` holds throughout.
    fn reaches_tip(&self, at: usize, to: usize, is_so: &impl Fn(usize) -> bool) -> bool {
        to != PIN
            && is_so(to)
            && (to == at || self.before(to).any(|parent| self.reaches_tip(at, parent, is_so)))
    }

    fn is_behind(&self, old: usize, new: usize) -> bool {
        old == new || self.before(new).any(|parent| parent >= old && self.is_behind(old, parent))
    }
}

/// Returns the position of a synthetic commit, with which its subject starts.
fn place(commit: &Commit) -> usize {
    commit.subject[..3].parse().unwrap()
}

fn place_in(commit: &Value) -> usize {
    commit["subject"].as_str().unwrap()[..3].parse().unwrap()
}
