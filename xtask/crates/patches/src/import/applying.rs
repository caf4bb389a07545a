//! Patches from elsewhere as commits on the pin: git applies them, and every decision it had to make is reported.

use espalier_core::error::{Error, Kind, Result};
use espalier_core::next_command::quoted;
use espalier_core::sys::git::history::changed_between;
use espalier_core::sys::machine::clock;
use espalier_core::sys::work_trees::import_repo::ImportRepo;
use espalier_core::sys::work_trees::patch_apply::{Applied, Placed, apply, user_of_git};
use espalier_core::ui::{Ui, Unit};
use espalier_series::ObjectId;
use espalier_series::{Difference, find_author, find_date, is_context_diff, read_authorship, stated_blobs};

use super::left_out::LeftOut;
use super::line_ends::apply_with_those_of_files;
use super::loose::{Loose, LoosePatch};
use super::lost::refuse_lost;
use super::sequence::{PatchSequence, SequenceCommit};
use super::strip_count::{Fitted, Places, fit, note_on, other_places};

/// Applies all patches in sequence to `tree`. `author` is used for patches that name no author.
///
/// # Errors
///
/// All changes that git would skip, all patches that do not apply, all without an author, and all that a recipe applies
/// and that change nothing.
pub fn sequence_of(
    repo: &ImportRepo,
    loose: Loose,
    tree: ObjectId,
    left_out: &mut LeftOut<'_>,
    author: Option<&str>,
    ui: &Ui,
) -> Result<PatchSequence> {
    let mut sequence = PatchSequence::default();
    loose.others.into_iter().for_each(|(origin, why)| sequence.drop(origin, why));
    refuse_lost(&loose.patches, left_out)?;
    refuse_nameless(&loose.patches, author)?;
    let (mut misfits, mut ways_out): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let mut without_effect: Vec<&str> = Vec::new();
    let mut tree = tree;
    let mut progress = ui.progress("patches", Some(loose.patches.len() as u64), Unit::Steps);
    for (done, patch) in (1..).zip(&loose.patches) {
        let Attempt { applied, notes: guesses, way_out } = apply_anyhow(repo, tree, patch)?;
        let applied = match applied {
            Applied::Tree(new, _) if new == tree => Applied::There,
            other => other,
        };
        match applied {
            Applied::Not(why) => {
                misfits.push(format!("{}: {}", patch.origin, why.join("; ")));
                ways_out.extend(way_out.filter(|way| !ways_out.contains(way)));
            }
            // The build of a recipe would stop there.
            Applied::There if patch.options.is_of_recipe => without_effect.push(&patch.origin),
            Applied::There => sequence.drop(patch.origin.clone(), THERE),
            Applied::Tree(new, placed) => {
                let new = left_out.without(new)?;
                if new == tree {
                    sequence.drop(patch.origin.clone(), "it changes only what is left out");
                } else {
                    let notes = [guesses, notes(repo, patch, [tree, new], placed)?].concat();
                    sequence.commits.push(commit(patch, new, author, notes));
                    tree = new;
                }
            }
        }
        progress.set(done);
    }
    refuse_misfits(&misfits, loose.patches.len(), ways_out)?;
    refuse_without_effect(&without_effect)?;
    Ok(sequence)
}

/// Result of applying a patch in every way that is tried.
struct Attempt {
    applied: Applied,
    /// Notes for the user on how it was applied.
    notes: Vec<String>,
    /// Manual remedy, if it was not applied.
    way_out: Option<String>,
}

impl Attempt {
    fn misfit(why: Vec<String>, way_out: Option<String>) -> Attempt {
        Attempt { applied: Applied::Not(why), notes: Vec::new(), way_out }
    }

    fn in_several(places: Places) -> Attempt {
        Attempt::misfit(vec![places.described], Some(places.way_out))
    }
}

/// Applies `patch` with the settings of its queue, or those that fit; otherwise with the line endings of the files.
fn apply_anyhow(repo: &ImportRepo, tree: ObjectId, patch: &LoosePatch) -> Result<Attempt> {
    let may_fuzz = patch.options.may_fuzz;
    let why = match fit(repo, tree, patch, may_fuzz, |how| apply(repo, tree, &patch.diff, how))? {
        Fitted::With(strip, applied) => {
            let notes = note_on(patch, strip).into_iter().collect();
            return Ok(Attempt { applied, notes, way_out: None });
        }
        Fitted::Several(places) => return Ok(Attempt::in_several(places)),
        Fitted::Not(why) => why,
    };
    let tried = apply_with_those_of_files(repo, tree, patch)?;
    Ok(match tried.fitted {
        Fitted::With(strip, applied) => {
            let notes = tried.notes.into_iter().chain(note_on(patch, strip)).collect();
            Attempt { applied, notes, way_out: None }
        }
        Fitted::Several(places) => Attempt::in_several(places),
        Fitted::Not(_) if is_context_diff(&patch.diff) => {
            Attempt::misfit(vec![format!("{CONTEXT_DIFF} {}", patch.quoted_file())], tried.way_out)
        }
        Fitted::Not(_) => {
            let Places { described, way_out } = match other_places(repo, tree, patch)? {
                Some(places) => places,
                None => return Ok(Attempt::misfit([why, tried.causes].concat(), tried.way_out)),
            };
            Attempt::misfit([why, vec![described]].concat(), Some(way_out))
        }
    })
}

const CONTEXT_DIFF: &str =
    "it is a context diff, which git does not read; rewrite it as a unified one: filterdiff --format=unified";

const THERE: &str = "the pin, or a patch before it, has it already";

fn refuse_nameless(patches: &[LoosePatch], author: Option<&str>) -> Result<()> {
    if let Some(author) = author {
        let readable = read_authorship(author, EPOCH);
        return readable.map(drop).map_err(|why| Error::usage(format!("`--author`: {why}")));
    }
    let is_nameless = |patch: &&LoosePatch| patch.author.as_deref().and_then(find_author).is_none();
    let nameless: Vec<&str> = patches.iter().filter(is_nameless).map(|patch| patch.origin.as_str()).collect();
    if nameless.is_empty() || user_of_git().is_some() {
        return Ok(());
    }
    Err(Error::usage("some patches name no author")
        .detail(nameless.join("\n"))
        .hint("set one for all of them: --author 'Name <you@example.org>'"))
}

fn refuse_misfits(misfits: &[String], patches: usize, ways_out: Vec<String>) -> Result<()> {
    let Some(first) = misfits.first() else { return Ok(()) };
    let what = format!("{} of {patches} patches do not apply; nothing was written", misfits.len());
    let error = Error::new(Kind::Conflict, what).detail(misfits.join("\n"));
    let error = if misfits.len() > 1 {
        let name = first.split(": ").next().unwrap_or_default();
        error.detail(format!("the later ones may only need {name}"))
    } else {
        error
    };
    Err(ways_out
        .into_iter()
        .fold(error, Error::hint)
        .hint("import onto the upstream commit that they were made for, then move: cargo xtask init --help")
        .hint("or take these files away, import the rest, and make them by hand: cargo xtask edit"))
}

/// Refuses patches of a recipe that change nothing: patch(1) would not apply them, so the recipe was made for another
/// tree, or applies them in a way that was not followed.
fn refuse_without_effect(origins: &[&str]) -> Result<()> {
    if origins.is_empty() {
        return Ok(());
    }
    let what = match origins.len() {
        1 => "1 patch of the recipe changes nothing; nothing was written".to_string(),
        count => format!("{count} patches of the recipe change nothing; nothing was written"),
    };
    let lines: Vec<String> = origins.iter().map(|origin| format!("{origin}: {THERE}")).collect();
    let skips: Vec<String> = origins.iter().map(|origin| format!("--skip {}", quoted(origin))).collect();
    Err(Error::new(Kind::Conflict, what)
        .detail(lines.join("\n"))
        .detail(
            "the recipe was made for a tree without these changes, or it applies them in another way, for instance in \
             reverse in a program that was not followed",
        )
        .hint("import onto the upstream commit that the recipe builds, then move: cargo xtask init --help")
        .hint(format!("or leave them out: the same command with {}", skips.join(" "))))
}

const EPOCH: &str = "Thu, 1 Jan 1970 00:00:00 +0000";

fn commit(
    patch: &LoosePatch,
    tree: ObjectId,
    author: Option<&str>,
    mut notes: Vec<String>,
) -> SequenceCommit {
    let given = author.map(str::to_string).or_else(user_of_git).unwrap_or_default();
    let name = patch.author.as_deref().and_then(find_author).unwrap_or_else(|| {
        notes.push(match &patch.author {
            None => format!("it names no author; using {given}"),
            Some(text) => {
                format!("its author is `{}`, which is not `Name <address>`; using {given}", text.trim())
            }
        });
        given.clone()
    });
    let date = patch.date.as_deref().filter(|date| !date.trim().is_empty());
    let found = date.and_then(find_date);
    if let (Some(date), None) = (date, &found) {
        notes.push(format!("its date is `{}`, which cannot be read; using today's date", date.trim()));
    }
    let author = read_authorship(&name, found.as_deref().unwrap_or_default());
    let author = author.map(|author| author.ident()).unwrap_or_else(|_| {
        let plain = read_authorship(&name, EPOCH);
        let who =
            plain.map_or_else(|_| "nobody <>".to_string(), |who| format!("{} <{}>", who.name, who.address));
        format!("{who} {} +0000", clock::now())
    });
    SequenceCommit {
        origin: patch.origin.clone(),
        author,
        message: patch.message(),
        tree,
        status: patch.status.clone(),
        notes,
    }
}

/// Returns notes for the user: hunks that applied elsewhere, and files that differ from those the patch was made for.
fn notes(
    repo: &ImportRepo,
    patch: &LoosePatch,
    [old, new]: [ObjectId; 2],
    placed: Placed,
) -> Result<Vec<String>> {
    let mut notes = [patch.notes.clone(), placed.hunks].concat();
    let stated = stated_blobs(&patch.diff);
    if stated.is_empty() || patch.options.reverse {
        return Ok(notes);
    }
    let changed = changed_between(&repo.store, old, new)?;
    notes.extend(made_elsewhere(&changed, &stated).iter().map(|path| {
        let path = espalier_series::printable(path);
        let how = if placed.merged.contains(&path) {
            "git merged it"
        } else {
            "its hunks were placed by their context"
        };
        format!("{path}: made from different content than is here; {how}")
    }));
    Ok(notes)
}

/// Returns the paths of `changed` whose blobs no `index` line states, except pure renames, which have no such line.
fn made_elsewhere<'a>(changed: &'a [Difference], stated: &[(String, String)]) -> Vec<&'a [u8]> {
    let is_there = |id: ObjectId, side: usize| changed.iter().any(|change| change.blobs[side] == id);
    let starts = |id: ObjectId, short: &str| id.to_string().starts_with(short);
    let is_known = |change: &&Difference| {
        let [before, after] = change.blobs;
        let old = before.is_zero() || stated.iter().any(|(old, _)| starts(before, old));
        let new = after.is_zero() || stated.iter().any(|(_, new)| starts(after, new));
        let moved = (after.is_zero() && is_there(before, 1)) || (before.is_zero() && is_there(after, 0));
        (old && new) || moved || before == after
    };
    changed.iter().filter(|change| !is_known(change)).map(|change| change.path.as_slice()).collect()
}

#[cfg(test)]
mod tests {
    use super::{Difference, ObjectId, made_elsewhere};

    #[test]
    fn a_file_that_moved_is_made_from_what_is_here() {
        let id = |digit: &str| digit.repeat(40).parse::<ObjectId>().unwrap();
        let change = |path: &str, before: &str, after: &str| Difference {
            path: path.as_bytes().to_vec(),
            comes_or_goes: before == "0" || after == "0",
            blobs: [id(before), id(after)],
        };
        let stated = [("1111".to_string(), "2222".to_string())];
        let changed = [
            change("edited", "1", "2"),
            change("moved and edited from", "1", "0"),
            change("moved and edited to", "0", "2"),
            change("moved from", "5", "0"),
            change("moved to", "0", "5"),
            change("mode", "6", "6"),
            change("elsewhere", "3", "2"),
        ];
        assert_eq!(made_elsewhere(&changed, &stated), [b"elsewhere"]);
    }
}
