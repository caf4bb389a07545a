//! The oracle: the real git accepts every patch that we accept, with the same result, and neither a damaged patch nor a
//! changed file ever makes us panic or leave the tree.
//!
//! The real git writes the patches of a history of generated files. Each patch, and the files under it, are then
//! damaged in many ways, and both we and `git apply --cached` try the result.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use espalier_series::{
    Content, FileDriftKind, Hunk, HunkClass, HunkDrift, LineKind, MemoryTree, Mode, ObjectId, Patch,
    PatchClass, PatchDrift, TreeChange, Verdict, apply_patch, parse, run_series,
};

use crate::oracle_mutations::{Files, mutate_files, mutate_lines, mutate_patch};
use crate::oracle_sources::{Case, TaggedLine, apply_steps, content, make_case};
use crate::random::Random;
use crate::real_git::{ByGit, Listing, RealGit};

/// Number of damaged patches, unless the environment variable `MORE` sets another one.
const MUTATIONS: usize = 4_000;
const MORE: &str = "ESPALIER_ORACLE_MUTATIONS";
/// Number of tests that share the damaged patches. Each has its own repository, so that they run in parallel.
const PARTS: usize = 4;
const CASES: usize = 200;
const SEED: u64 = 20_260_101;

struct History {
    git: RealGit,
    cases: Vec<Case>,
    /// Output of `git format-patch` for each case.
    texts: Vec<Vec<u8>>,
}

#[test]
fn git_agrees_with_every_untouched_patch() {
    check_untouched_patches(&make_history());
}

#[test]
fn git_agrees_with_every_patch_that_we_accept_1_of_4() {
    try_mutations(0);
}

#[test]
fn git_agrees_with_every_patch_that_we_accept_2_of_4() {
    try_mutations(1);
}

#[test]
fn git_agrees_with_every_patch_that_we_accept_3_of_4() {
    try_mutations(2);
}

#[test]
fn git_agrees_with_every_patch_that_we_accept_4_of_4() {
    try_mutations(3);
}

/// Tries one of `PARTS` ranges of mutations. A mutation's number is its seed, so it does not depend on the others.
fn try_mutations(part: usize) {
    let mutations = std::env::var(MORE).map_or(MUTATIONS, |number| number.parse().expect(MORE));
    let history = make_history();
    let mut tally = Tally::default();
    for number in mutations * part / PARTS..mutations * (part + 1) / PARTS {
        let at = number % history.cases.len();
        let mut random = Random::new(SEED + 1 + number as u64);
        try_mutation(&history, at, &mut random, &mut tally);
    }
    println!("{tally:#?}");
    assert_eq!(tally.wrongly_placed_by_us, 0);
    assert_eq!(tally.upstreamed_but_called_applicable, 0);
    assert!(tally.accepted_by_both > 0 && tally.misplaced_by_git > 0, "the test tests nothing");
}

fn make_history() -> History {
    let mut random = Random::new(SEED);
    let cases: Vec<Case> = (0..CASES).map(|at| make_case(&mut random, &format!("case{at}"))).collect();
    let git = RealGit::new();
    git.run(&["fast-import", "--quiet"], &import_stream(&cases));
    let arguments =
        "format-patch --quiet --full-index --zero-commit --no-signature --binary -o out start..main";
    git.run(&arguments.split(' ').collect::<Vec<_>>(), b"");
    let mut names: Vec<_> =
        std::fs::read_dir(git.folder().join("out")).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let texts: Vec<Vec<u8>> = names.iter().map(|name| std::fs::read(name).unwrap()).collect();
    assert_eq!(texts.len(), cases.len());
    History { git, cases, texts }
}

/// Returns a history of one commit with every old file, tagged `start`, then one commit for each case.
fn import_stream(cases: &[Case]) -> Vec<u8> {
    let mut stream = Vec::new();
    let commit = |stream: &mut Vec<u8>, message: &str| {
        let head = "commit refs/heads/main\ncommitter A <a@b> 1700000000 +0000\n";
        stream.extend_from_slice(format!("{head}data {}\n{message}\n", message.len()).as_bytes());
    };
    let write = |stream: &mut Vec<u8>, (path, mode, bytes): &(String, u32, Vec<u8>)| {
        stream.extend_from_slice(format!("M {mode:o} inline {path}\ndata {}\n", bytes.len()).as_bytes());
        stream.extend_from_slice(bytes);
        stream.push(b'\n');
    };
    commit(&mut stream, "start");
    cases
        .iter()
        .flat_map(|case| &case.files)
        .filter_map(|file| file.old.as_ref())
        .for_each(|old| write(&mut stream, old));
    stream.extend_from_slice(b"\nreset refs/tags/start\nfrom refs/heads/main\n\n");
    for (at, case) in cases.iter().enumerate() {
        commit(&mut stream, &format!("change {at}\n\nWhy: ö"));
        for file in &case.files {
            if let Some((path, ..)) = &file.old {
                stream.extend_from_slice(format!("D {path}\n").as_bytes());
            }
        }
        case.files.iter().filter_map(|file| file.new.as_ref()).for_each(|new| write(&mut stream, new));
    }
    stream
}

/// Checks that unmodified patches give exactly git's tree, one by one and as a series.
fn check_untouched_patches(history: &History) {
    let mut start = Listing::new();
    let mut tree = MemoryTree::new();
    for (path, mode, bytes) in history.cases.iter().flat_map(old_files) {
        start.push((path.clone().into_bytes(), mode, history.git.store(&bytes)));
        tree.put(&path, mode_of(mode), &bytes);
    }
    let patches: Vec<Patch> = history.texts.iter().map(|text| parse("x.patch", text).unwrap()).collect();
    let revisions = history.git.run(&["log", "--reverse", "--format=%T", "start..main"], b"");
    let revisions = String::from_utf8(revisions).unwrap();
    let outcomes = run_series(&patches, &tree).unwrap();
    for (outcome, tree_of_git) in outcomes.iter().zip(revisions.lines()) {
        let Verdict::Exact(changes) = &*outcome.verdict else { panic!("{outcome:?}") };
        start = changed(&history.git, &start, changes);
        assert_eq!(history.git.tree_id(&start).to_string(), tree_of_git);
    }
}

fn old_files(case: &Case) -> Files {
    case.files.iter().filter_map(|file| file.old.clone()).collect()
}

fn mode_of(mode: u32) -> Mode {
    match mode {
        0o100_755 => Mode::Executable,
        0o120_000 => Mode::Symlink,
        _ => Mode::File,
    }
}

fn changed(git: &RealGit, files: &Listing, changes: &[TreeChange]) -> Listing {
    let mut by_path: BTreeMap<Vec<u8>, (u32, ObjectId)> =
        files.iter().map(|(path, mode, id)| (path.clone(), (*mode, *id))).collect();
    for change in changes {
        let path = change.path.as_bytes();
        assert_stays_inside(path);
        match &change.new {
            None => assert!(by_path.remove(path).is_some(), "deletes what is not there"),
            Some(file) => {
                if let Some(bytes) = &file.content {
                    assert_eq!(git.store(bytes), file.id);
                }
                by_path.insert(path.to_vec(), (file.mode.as_git_mode(), file.id));
            }
        }
    }
    by_path.into_iter().map(|(path, (mode, id))| (path, mode, id)).collect()
}

/// Written independently of the crate's own rules.
fn assert_stays_inside(path: &[u8]) {
    let text = String::from_utf8_lossy(path).to_lowercase();
    let bad_part = |part: &str| matches!(part, "" | "." | ".." | ".git" | "git~1");
    let is_bad = text.split(['/', '\\']).any(bad_part) || text.contains([':', '\\', '\0', '\n']);
    assert!(!is_bad, "{text}");
}

/// No damage to a patch makes us write a blob that git did not write when the patch was made. (A pure rename or mode
/// change writes none: it keeps the existing blob, and names no id.)
fn assert_ids_are_recorded(git: &RealGit, case: &Case, changes: &[TreeChange]) {
    let recorded: Vec<ObjectId> = case
        .files
        .iter()
        .filter_map(|file| file.new.as_ref())
        .map(|(_, _, bytes)| git.store(bytes))
        .collect();
    let new_files = changes.iter().filter_map(|change| change.new.as_ref());
    for file in new_files.filter(|file| file.content.is_some()) {
        assert!(recorded.contains(&file.id), "{changes:?}");
    }
}

/// The results of one range of mutations.
#[derive(Debug, Default)]
struct Tally {
    accepted_by_both: usize,
    refused_as_text: usize,
    refused_by_both: usize,
    /// git applied it with the intended result; we require a rebase first.
    refused_by_us_alone: usize,
    /// git applied it at the wrong place, or with an unintended result. We refused.
    misplaced_by_git: usize,
    /// Of these, those whose text was unmodified; only the files had changed.
    undamaged_patches_misplaced_by_git: usize,
    git_crashed: usize,
    /// Patches whose change is upstream already, by our verdict on the text file.
    seen_as_upstreamed: usize,
    seen_as_other: usize,
    /// Hunks of these that we would call applicable: they would be applied twice.
    upstreamed_but_called_applicable: usize,
    /// Hunks that we called `exact` or `shifted` but that do not belong there.
    wrongly_placed_by_us: usize,
    classes: BTreeMap<&'static str, usize>,
    refusals: BTreeMap<String, usize>,
}

/// A mutated patch on mutated files, and the intended result, if there is one.
struct Attempt {
    text: Vec<u8>,
    files: Files,
    /// For a text file that changed under an unmodified patch: its current lines.
    lines: Option<Vec<TaggedLine>>,
    meant: Option<Files>,
    knows_pre_image: bool,
    /// Whether the text file already has the change of the patch.
    is_upstream: bool,
}

fn make_attempt(history: &History, at: usize, random: &mut Random) -> Attempt {
    let case = &history.cases[at];
    let mut attempt = Attempt {
        text: history.texts[at].clone(),
        files: old_files(case),
        lines: None,
        meant: Some(case.files.iter().filter_map(|file| file.new.clone()).collect()),
        knows_pre_image: random.one_in(2),
        is_upstream: false,
    };
    match random.below(8) {
        0..=2 => attempt.text = mutate_patch(random, &history.texts[at], random_text(history, at)),
        3 => {
            mutate_files(random, &mut attempt.files);
            attempt.meant = None;
        }
        4 => take_change_upstream(case, random, &mut attempt),
        _ => change_text_below(case, random, &mut attempt),
    }
    attempt
}

fn random_text(history: &History, at: usize) -> &[u8] {
    &history.texts[(at * 7 + 3) % history.texts.len()]
}

fn change_text_below(case: &Case, random: &mut Random, attempt: &mut Attempt) {
    let Some(text) = &case.text else {
        return;
    };
    let lines = mutate_lines(random, &text.lines);
    attempt.files[0].2 = content(&lines);
    let result = apply_steps(&lines, &text.steps);
    attempt.meant = attempt.meant.take().and_then(|mut meant| {
        meant[0].2 = result?;
        Some(meant)
    });
    attempt.lines = Some(lines);
}

/// Upstream has made the very change of the patch, and another one above it.
fn take_change_upstream(case: &Case, random: &mut Random, attempt: &mut Attempt) {
    let Some(text) = &case.text else {
        return;
    };
    let result = apply_steps(&text.lines, &text.steps).unwrap();
    let head = "#define HEAD 1\n".repeat(random.below(3));
    attempt.files[0].2 = [head.as_bytes(), &result].concat();
    attempt.is_upstream = true;
    attempt.meant = None;
}

fn try_mutation(history: &History, at: usize, random: &mut Random, tally: &mut Tally) {
    let attempt = make_attempt(history, at, random);
    let git = &history.git;
    let listing = stored(git, &attempt.files);
    let by_git = git.apply(&listing, &attempt.text);
    let meant = attempt.meant.as_ref().map(|files| git.tree_id(&stored(git, files)));
    let ours = catch_unwind(AssertUnwindSafe(|| try_ours(history, at, &attempt)));
    match ours.unwrap_or_else(|_| panic!("panic on:\n{}", String::from_utf8_lossy(&attempt.text))) {
        Ours::Exact(changes) => {
            let tree = git.tree_id(&changed(git, &listing, &changes));
            assert_eq!(by_git, ByGit::Accepted(tree), "{}", String::from_utf8_lossy(&attempt.text));
            assert_ids_are_recorded(git, &history.cases[at], &changes);
            tally.accepted_by_both += 1;
        }
        Ours::RefusedAsText(refusal) => {
            tally.refused_as_text += 1;
            *tally.refusals.entry(refusal).or_default() += 1;
            tally.count_refused(by_git, meant);
        }
        Ours::Drifted(drift) => {
            *tally.classes.entry(drift.class.describe()).or_default() += 1;
            tally.wrongly_placed_by_us += count_wrong_places(&drift, &attempt);
            if attempt.is_upstream {
                tally.count_upstreamed(&drift);
            }
            let is_undamaged = attempt.lines.is_some() || attempt.is_upstream;
            if is_undamaged && matches!(by_git, ByGit::Accepted(tree) if Some(tree) != meant) {
                tally.undamaged_patches_misplaced_by_git += 1;
            }
            tally.count_refused(by_git, meant);
        }
    }
}

impl Tally {
    fn count_upstreamed(&mut self, drift: &PatchDrift) {
        let hunks = match &drift.files[0].kind {
            FileDriftKind::Hunks { hunks, .. } => hunks.as_slice(),
            FileDriftKind::Upstreamed => &[],
            other => panic!("{other:?}"),
        };
        match hunks.iter().all(|hunk| hunk.class == HunkClass::Upstreamed) {
            true => self.seen_as_upstreamed += 1,
            false => self.seen_as_other += 1,
        }
        let is_applicable = |class| matches!(class, HunkClass::Exact | HunkClass::Shifted { .. });
        let applicable = hunks.iter().filter(|hunk| is_applicable(hunk.class)).count();
        if applicable > 0 {
            println!("would be applied twice:\n{drift}");
        }
        self.upstreamed_but_called_applicable += applicable;
    }

    fn count_refused(&mut self, by_git: ByGit, meant: Option<ObjectId>) {
        match by_git {
            ByGit::Crashed => self.git_crashed += 1,
            ByGit::Refused(_) => self.refused_by_both += 1,
            ByGit::Accepted(tree) if Some(tree) == meant => self.refused_by_us_alone += 1,
            ByGit::Accepted(_) => self.misplaced_by_git += 1,
        }
    }
}

fn stored(git: &RealGit, files: &Files) -> Listing {
    let store =
        |(path, mode, bytes): &(String, u32, Vec<u8>)| (path.clone().into_bytes(), *mode, git.store(bytes));
    files.iter().map(store).collect()
}

enum Ours {
    Exact(Vec<TreeChange>),
    Drifted(PatchDrift),
    RefusedAsText(String),
}

fn try_ours(history: &History, at: usize, attempt: &Attempt) -> Ours {
    let patch = match parse("x.patch", &attempt.text) {
        Ok(patch) => patch,
        Err(error) => return Ours::RefusedAsText(format!("{:?}", error.refusal)),
    };
    let mut tree = MemoryTree::new();
    if attempt.knows_pre_image {
        old_files(&history.cases[at]).iter().for_each(|(_, _, bytes)| {
            tree.remember(bytes);
        });
    }
    for (path, mode, bytes) in &attempt.files {
        tree.put(path, mode_of(*mode), bytes);
    }
    match apply_patch(&patch, &tree).unwrap() {
        Verdict::Exact(changes) => Ours::Exact(changes),
        Verdict::Replayed(step) => panic!("{step:?}"),
        Verdict::Drifted(drift) => {
            assert!(drift.class != PatchClass::Exact && !drift.to_string().is_empty());
            Ours::Drifted(drift)
        }
    }
}

/// Returns the number of hunks called `exact` or `shifted` that would change another line than they were made for.
fn count_wrong_places(drift: &PatchDrift, attempt: &Attempt) -> usize {
    let (Some(lines), Ok(patch)) = (&attempt.lines, parse("x.patch", &attempt.text)) else {
        return 0;
    };
    let FileDriftKind::Hunks { hunks: drifts, .. } = &drift.files[0].kind else {
        return 0;
    };
    let Content::Text(hunks) = &patch.files[0].content else {
        return 0;
    };
    let placed = |class| matches!(class, HunkClass::Exact | HunkClass::Shifted { .. });
    let pairs = hunks.iter().zip(drifts).filter(|(_, drift)| placed(drift.class));
    pairs.filter(|(hunk, drift)| !is_rightly_placed(hunk, drift, lines)).count()
}

/// Checks the line that the hunk deletes first, or after which it inserts. A context line may be another one with the
/// same text, and any blank line before a function is as good as another.
fn is_rightly_placed(hunk: &Hunk, drift: &HunkDrift, lines: &[TaggedLine]) -> bool {
    let leading = hunk.lines.iter().take_while(|line| line.kind == LineKind::Context).count();
    let deletes = hunk.lines.iter().nth(leading).is_some_and(|line| line.kind == LineKind::Delete);
    let changed = if deletes { leading } else { leading.saturating_sub(1) };
    let start = drift.fits_at[0].line - 1;
    let is_own = |at: usize| {
        let line = lines.get(start + at);
        line.and_then(|line| line.identity) == Some(hunk.old_lines_before() + at)
    };
    let is_blank = lines[start + changed].text.trim_ascii().is_empty();
    is_own(changed) || (is_blank && is_own(changed + 1))
}
