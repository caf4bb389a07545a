//! Merges checked against git's own: `git merge-file` with the algorithm of its `ort` merges.
//!
//! Where git reports a conflict, we do. Where git merges cleanly, our text is the same, or we stop because the place is
//! uncertain.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use espalier_series::{
    AppliedSeries, ConflictReason, HunkClass, MergeKind, Patch, PatchClass, Replay, ReplayedFile, Step,
    TreeNames,
};

use crate::random::Random;
use crate::support::{modify, read, tree};

/// Number of generated triples.
const TRIPLES: usize = 1_000;
const SEED: u64 = 20_261_122;

/// A folder of real triples, `NAME.b`, `NAME.o` and `NAME.t`, to be merged by hand.
const REAL: &str = "ESPALIER_MERGE_TRIPLES";

#[derive(Debug, Default)]
struct Tally {
    same: usize,
    both_stop: usize,
    only_we_stop: usize,
}

struct Triple {
    base: String,
    ours: String,
    theirs: String,
}

#[test]
fn we_merge_as_git_does_or_stop() {
    let folder = tempfile::tempdir().unwrap();
    let mut tally = Tally::default();
    for (name, triple) in triples() {
        if triple.base != triple.theirs {
            compare(folder.path(), &name, &triple, &mut tally);
        }
    }
    println!("{tally:?}");
    let tests_something = if std::env::var_os(REAL).is_some() {
        // They may all be conflicts, as those of duplicated blocks are; but where git merges some, so do we.
        tally.same > 0 || (tally.both_stop > 0 && tally.only_we_stop == 0)
    } else {
        tally.same > 0 && tally.both_stop > 0
    };
    assert!(tests_something, "the test tests nothing: {tally:?}");
}

fn triples() -> Box<dyn Iterator<Item = (String, Triple)>> {
    match std::env::var_os(REAL) {
        Some(folder) => Box::new(real_triples(PathBuf::from(folder))),
        None => {
            let mut random = Random::new(SEED);
            Box::new((0..TRIPLES).map(move |number| (format!("made up {number}"), make_up(&mut random))))
        }
    }
}

fn real_triples(folder: PathBuf) -> impl Iterator<Item = (String, Triple)> {
    let mut names: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.extension().is_some_and(|end| end == "b"));
    names.sort();
    names.into_iter().filter_map(|path| {
        let text = |end| std::fs::read_to_string(path.with_extension(end)).ok();
        let triple = Triple { base: text("b")?, ours: text("o")?, theirs: text("t")? };
        Some((path.display().to_string(), triple))
    })
}

/// Few distinct lines, so that many alignments are possible.
fn make_up(random: &mut Random) -> Triple {
    let words = 4 + random.below(40);
    let base: Vec<String> = (0..6 + random.below(50)).map(|_| word(random, words)).collect();
    let (ours, theirs) = (edited(&base, random, words), edited(&base, random, words));
    Triple { base: base.concat(), ours: ours.concat(), theirs: theirs.concat() }
}

fn word(random: &mut Random, words: usize) -> String {
    let indentation = " ".repeat(4 * random.below(3));
    format!("{indentation}word{}();\n", random.below(words))
}

fn edited(base: &[String], random: &mut Random, words: usize) -> Vec<String> {
    let mut lines = base.to_vec();
    for _ in 0..1 + random.below(3) {
        let at = random.below(lines.len() + 1);
        let end = (at + random.below(4)).min(lines.len());
        let new: Vec<String> = (0..random.below(4)).map(|_| word(random, words)).collect();
        lines.splice(at..end, new);
    }
    lines
}

fn compare(folder: &Path, name: &str, triple: &Triple, tally: &mut Tally) {
    write(folder, triple);
    let by_git = merged_by_git(folder);
    let step = replayed(&patch_of(folder, triple), triple);
    assert!(is_consistent(&step.replayed.files[0]), "{name}: {:?}", step.replayed);
    let reason = step.replayed.conflicts().next().map(|conflict| &conflict.reason);
    match (by_git, reason) {
        (Some(text), None) => {
            assert_eq!(text_of(&step, triple), text, "{name}");
            tally.same += 1;
        }
        (Some(_), Some(ConflictReason::LookAlike { .. })) => tally.only_we_stop += 1,
        (None, Some(_)) => tally.both_stop += 1,
        (Some(_), Some(reason)) => panic!("{name}: git merges it, we say {reason:?}"),
        (None, None) => panic!("{name}: git stops, we do not"),
    }
}

/// Returns whether the classes of the hunks explain the result of the merge.
fn is_consistent(file: &ReplayedFile) -> bool {
    let (mut placed, mut merged, mut there, mut uncertain, mut conflicts) = (0, 0, 0, 0, 0);
    for hunk in &file.hunks {
        match hunk {
            HunkClass::Exact | HunkClass::Shifted { .. } => placed += 1,
            HunkClass::Merged => merged += 1,
            HunkClass::Upstreamed | HunkClass::PartlyUpstreamed => there += 1,
            HunkClass::MovedFunction { .. } | HunkClass::Ambiguous => uncertain += 1,
            HunkClass::Conflict => conflicts += 1,
        }
    }
    match &file.merge_kind {
        MergeKind::Unchanged | MergeKind::Placed => placed == file.hunks.len(),
        MergeKind::Merged | MergeKind::DeletedByBoth { .. } => {
            merged > 0 && placed + merged == file.hunks.len()
        }
        MergeKind::AlreadyThere => there == file.hunks.len(),
        MergeKind::PartlyThere { .. } => there > 0 && uncertain + conflicts == 0,
        MergeKind::Conflict(conflict) => match conflict.reason {
            ConflictReason::LookAlike { .. } => uncertain > 0 && conflicts == 0,
            _ => conflicts > 0,
        },
    }
}

fn text_of(step: &Step, triple: &Triple) -> String {
    match step.changes.iter().find_map(|change| change.new.as_ref()?.content.clone()) {
        Some(content) => String::from_utf8(content.to_vec()).unwrap(),
        None if step.replayed.class() == PatchClass::Upstreamed => triple.ours.clone(),
        None => triple.theirs.clone(),
    }
}

fn replayed(patch: &Patch, triple: &Triple) -> Step {
    let (pin, tip) = (tree(&[("a.c", &triple.base)]), tree(&[("a.c", &triple.ours)]));
    let applied = AppliedSeries::new(std::slice::from_ref(patch), &pin).unwrap();
    let names = TreeNames { pin: "v1", tip: "v2" };
    Replay::new(&applied, &tip, names, &BTreeSet::new()).step(0).unwrap()
}

fn patch_of(folder: &Path, triple: &Triple) -> Patch {
    let diff = git(folder, &["diff", "--no-index", "base", "theirs"]);
    let text = String::from_utf8(diff.stdout).unwrap();
    let hunks = text.find("\n@@").map_or("", |at| &text[at + 1..]);
    read(&modify("a.c", &triple.base, &triple.theirs, hunks))
}

fn merged_by_git(folder: &Path) -> Option<String> {
    let arguments = ["merge-file", "--diff-algorithm=histogram", "-p", "ours", "base", "theirs"];
    let merged = git(folder, &arguments);
    (merged.status.code() == Some(0)).then(|| String::from_utf8(merged.stdout).unwrap())
}

fn write(folder: &Path, triple: &Triple) {
    for (name, text) in [("base", &triple.base), ("ours", &triple.ours), ("theirs", &triple.theirs)] {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

fn git(folder: &Path, arguments: &[&str]) -> Output {
    Command::new("git").args(arguments).current_dir(folder).output().unwrap()
}
