//! Applying a patch with its number of leading path components to strip (`-p`). If neither its queue, the user nor the
//! format of its queue sets it, it is the number that the form of the patch states, otherwise the one with which the
//! patch names files of the tree.

use std::collections::BTreeSet;

use espalier_core::error::Result;
use espalier_core::sys::git::history::changed_between;
use espalier_core::sys::git::store_tree::StoreTree;
use espalier_core::sys::work_trees::import_repo::ImportRepo;
use espalier_core::sys::work_trees::patch_apply::{Applied, HowToApply};
use espalier_series::{ObjectId, Tree, named_paths, printable, stated_strip};

use super::loose::LoosePatch;

/// Result of applying a patch with the strip counts that it may have.
pub enum Fitted {
    /// It applies, or is in the tree already, with this strip count.
    With(u32, Applied),
    /// It does not apply; the reasons.
    Not(Vec<String>),
    /// It applies to different files with different strip counts.
    Several(Places),
}

/// Places of a patch that applies to different files.
pub struct Places {
    /// Strip counts, each with its files, for messages.
    pub described: String,
    /// Hint that names the choices.
    pub way_out: String,
}

/// A strip count, and the files of the tree that the diff names with it.
#[derive(Clone)]
struct Count {
    strip: u32,
    files: Vec<Vec<u8>>,
}

/// Strip counts to try together.
struct Round {
    counts: Vec<Count>,
    may_fuzz: bool,
}

/// The strip counts that are tried if none is given.
const COUNTS: [u32; 3] = [0, 1, 2];

/// The default of git and patch(1) for paths with prefixes.
const USUAL: u32 = 1;

/// Applies `patch` to `tree` through `apply`, with its strip count or with those that it may have. A place that fits
/// exactly is preferred to one that needs less context, which `may_fuzz` allows.
///
/// # Errors
///
/// The tree cannot be read, or `apply` fails.
pub fn fit(
    repo: &ImportRepo,
    tree: ObjectId,
    patch: &LoosePatch,
    may_fuzz: bool,
    mut apply: impl FnMut(HowToApply) -> Result<Applied>,
) -> Result<Fitted> {
    let files = StoreTree::new(&repo.store, tree)?;
    let mut reasons = Vec::new();
    for Round { counts, may_fuzz } in rounds(&files, patch, may_fuzz)? {
        let mut fits = Vec::new();
        for count in counts {
            let how = HowToApply { strip: count.strip, reverse: patch.options.reverse, may_fuzz };
            match apply(how)? {
                Applied::Not(why) if reasons.is_empty() => reasons = why,
                Applied::Not(_) => {}
                applied => fits.push((count, applied)),
            }
        }
        if !fits.is_empty() {
            return chosen(repo, tree, fits);
        }
    }
    Ok(Fitted::Not(reasons))
}

/// Returns the note for the user on a strip count that neither the queue, the user nor the diff states.
pub fn note_on(patch: &LoosePatch, strip: u32) -> Option<String> {
    let stated = patch.options.strip.or_else(|| stated(patch));
    (stated != Some(strip)).then(|| format!("its paths fit with -p {strip}"))
}

/// Returns the places that `patch` names with other strip counts, if it names no file of `tree` with the one that is
/// set; if it names none with any count, the folder that has all of its files.
///
/// # Errors
///
/// The tree cannot be read.
pub fn other_places(repo: &ImportRepo, tree: ObjectId, patch: &LoosePatch) -> Result<Option<Places>> {
    let files = StoreTree::new(&repo.store, tree)?;
    let set = patch.options.strip;
    let counts = COUNTS.into_iter().chain(set.filter(|strip| !COUNTS.contains(strip)));
    let mut others = counts.map(|strip| count_in(&files, patch, strip)).collect::<Result<Vec<_>>>()?;
    others.retain(|count| !count.files.is_empty());
    let Some(first) = others.first().map(|count| count.strip) else { return made_below(&files, patch) };
    let Some(strip) = set.filter(|strip| others.iter().all(|count| count.strip != *strip)) else {
        return Ok(None);
    };
    let described: Vec<String> =
        others.iter().map(|count| described(count, &Applied::Not(Vec::new()))).collect();
    Ok(Some(Places {
        described: format!("with -p {strip} it names no file; it names {}", described.join(", and ")),
        way_out: format!(
            "set the number that it was made for: -p{first} after its name in a `series` file, or the same command with \
             -p {first} if no queue or recipe sets it"
        ),
    }))
}

/// Returns the folder that has all files which `patch` names, if it is the only one: ports may build in a folder of the
/// sources, and their patches name files from there.
fn made_below(files: &StoreTree<'_>, patch: &LoosePatch) -> Result<Option<Places>> {
    let mut folders: Option<BTreeSet<Vec<u8>>> = None;
    for strip in possible_counts(patch) {
        for path in named_paths(&patch.diff, strip) {
            let holders = folders_with(files, &path)?;
            // A file that the patch creates is in no folder yet.
            if holders.is_empty() {
                continue;
            }
            folders = Some(match folders.take() {
                None => holders,
                Some(folders) => folders.intersection(&holders).cloned().collect(),
            });
        }
        if folders.is_some() {
            break;
        }
    }
    let mut folders = folders.unwrap_or_default().into_iter();
    let (Some(folder), None) = (folders.next(), folders.next()) else { return Ok(None) };
    let folder = printable(&folder);
    Ok(Some(Places {
        described: format!("the files that it names are in `{folder}`"),
        way_out: format!(
            "if they were made in `{folder}`, put that before the paths in the headers of these patches, after `a/` \
             and `b/` if they have them"
        ),
    }))
}

/// Returns the folders, with a `/` at the end, below which `path` exists.
fn folders_with(files: &StoreTree<'_>, path: &[u8]) -> Result<BTreeSet<Vec<u8>>> {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    let found = files.find_file_name(name)?;
    let folder = |whole: &Vec<u8>| {
        let folder = whole.strip_suffix(path).filter(|folder| folder.ends_with(b"/"))?;
        Some(folder.to_vec())
    };
    Ok(found.iter().filter_map(folder).collect())
}

/// Returns the strip count that the form of the patch states. Patches of the BSD and macOS ports, named `patch-FILE`,
/// strip nothing.
fn stated(patch: &LoosePatch) -> Option<u32> {
    stated_strip(&patch.diff).or_else(|| patch.origin.starts_with("patch-").then_some(0))
}

/// Returns the count for git that means `strip` for patch(1), which takes `./a.c` for `a.c`.
fn for_git(patch: &LoosePatch, strip: u32) -> u32 {
    let paths = named_paths(&patch.diff, strip);
    strip + u32::from(!paths.is_empty() && paths.iter().all(|path| path.starts_with(b"./")))
}

/// Returns the strip counts that `patch` may have: the one that its queue, the user or its form states, otherwise those
/// that are tried.
pub fn possible_counts(patch: &LoosePatch) -> Vec<u32> {
    let stated = patch.options.strip.or_else(|| stated(patch));
    stated.map_or_else(|| COUNTS.to_vec(), |strip| vec![for_git(patch, strip)])
}

/// Returns the strip counts to try: first those of the first round, the next ones only if none of them fits.
fn rounds(files: &StoreTree<'_>, patch: &LoosePatch, may_fuzz: bool) -> Result<Vec<Round>> {
    let count = |strip: u32| count_in(files, patch, strip);
    if let Some(strip) = patch.options.strip {
        return Ok(vec![Round { counts: vec![count(for_git(patch, strip))?], may_fuzz }]);
    }
    if let Some(strip) = stated(patch).map(|strip| for_git(patch, strip)) {
        let first = count(strip)?;
        let is_there = !first.files.is_empty();
        let mut rounds = vec![Round { counts: vec![first], may_fuzz }];
        if !is_there {
            let others = COUNTS.into_iter().filter(|other| *other != strip).map(count);
            let mut counts = others.collect::<Result<Vec<_>>>()?;
            counts.retain(|count| !count.files.is_empty());
            rounds.push(Round { counts, may_fuzz: false });
        }
        return Ok(rounds);
    }
    let all = COUNTS.into_iter().map(count).collect::<Result<Vec<_>>>()?;
    let (named, others): (Vec<Count>, Vec<Count>) =
        all.into_iter().partition(|count| !count.files.is_empty());
    let counts = if named.is_empty() { others } else { named };
    let exact = (counts.len() > 1 && may_fuzz).then(|| Round { counts: counts.clone(), may_fuzz: false });
    Ok(exact.into_iter().chain([Round { counts, may_fuzz }]).collect())
}

fn count_in(files: &StoreTree<'_>, patch: &LoosePatch, strip: u32) -> Result<Count> {
    let mut there = Vec::new();
    for path in named_paths(&patch.diff, strip) {
        if files.entry(&path)?.is_some() {
            there.push(path);
        }
    }
    Ok(Count { strip, files: there })
}

/// Returns the result to use of those that fit, of which there is at least one.
fn chosen(repo: &ImportRepo, tree: ObjectId, mut fits: Vec<(Count, Applied)>) -> Result<Fitted> {
    let are_same = fits.windows(2).all(|two| is_same(&two[0].1, &two[1].1));
    let at = if are_same {
        0
    } else if fits.iter().all(|(count, _)| count.files.is_empty()) {
        for_new_files(repo, tree, &fits)?
    } else {
        return Ok(Fitted::Several(places_of(&fits)));
    };
    let (count, applied) = fits.swap_remove(at);
    Ok(Fitted::With(count.strip, applied))
}

fn is_same(one: &Applied, other: &Applied) -> bool {
    match (one, other) {
        (Applied::Tree(one, _), Applied::Tree(other, _)) => one == other,
        (one, other) => one == other,
    }
}

/// Returns the index of the result for a diff that only creates files, which fits with any count: paths are used as
/// they are if their folders exist, and otherwise lose the name of the folder in which the diff was made.
fn for_new_files(repo: &ImportRepo, tree: ObjectId, fits: &[(Count, Applied)]) -> Result<usize> {
    let index_of = |strip: u32| fits.iter().position(|(count, _)| count.strip == strip);
    if let Some(at) = index_of(0)
        && folders_are_there(repo, tree, &fits[at].1)?
    {
        return Ok(at);
    }
    Ok(index_of(USUAL).unwrap_or(0))
}

/// Returns whether the folders of all files that a diff creates exist in `tree`.
fn folders_are_there(repo: &ImportRepo, tree: ObjectId, applied: &Applied) -> Result<bool> {
    let Applied::Tree(new, _) = applied else { return Ok(true) };
    let files = StoreTree::new(&repo.store, tree)?;
    for change in changed_between(&repo.store, tree, *new)? {
        let is_new = change.comes_or_goes && change.blobs[0].is_zero();
        let end = change.path.iter().rposition(|byte| *byte == b'/');
        if let Some(end) = end.filter(|_| is_new)
            && files.entry(&change.path[..end])?.is_none()
        {
            return Ok(false);
        }
    }
    Ok(true)
}

fn places_of(fits: &[(Count, Applied)]) -> Places {
    let described: Vec<String> = fits.iter().map(|(count, applied)| described(count, applied)).collect();
    let options: Vec<String> = fits.iter().map(|(count, _)| format!("-p {}", count.strip)).collect();
    Places {
        described: format!("it fits different files: {}", described.join(", and ")),
        way_out: format!(
            "choose: the same command with {}; for one of several patches, -pN after its name in a `series` file",
            options.join(" or ")
        ),
    }
}

/// Describes a place: `src/a.c with -p 0`.
fn described(count: &Count, applied: &Applied) -> String {
    const SHOWN: usize = 3;
    let mut files: Vec<String> = count.files.iter().take(SHOWN).map(|path| printable(path)).collect();
    files.extend((count.files.len() > SHOWN).then(|| format!("{} more", count.files.len() - SHOWN)));
    let there = if *applied == Applied::There { " (it is there already)" } else { "" };
    format!("{} with -p {}{there}", files.join(" and "), count.strip)
}
