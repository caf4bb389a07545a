//! Patches that a move drops at their pin: they are dropped on its generations too, which may be older than the change
//! that upstream made in their place.

use espalier_core::error::Result;
use espalier_core::sys::project::inputs::{PatchFile, read_series};

use super::target::SeriesMove;
use crate::report::rebase::{Fate, PatchMove};

/// Adds a note to each own patch of `series_move` that is dropped: the generations that lose it although they have its
/// change from nowhere else. `moves` are all of these patches, in order.
pub fn note_losses(series_move: &SeriesMove<'_>, moves: &mut [PatchMove]) -> Result<()> {
    let dropped = |(_, moved): &(&PatchFile, &mut PatchMove)| moved.fate == Fate::Dropped;
    for (file, moved) in series_move.stack.own_files().iter().zip(moves).filter(dropped) {
        let losing = generations_losing(series_move, file)?;
        if !losing.is_empty() {
            moved.notes.push(describe(&losing));
        }
    }
    Ok(())
}

/// Returns the generations that have the patch. Where a sibling drops it, the tree of the generation has its change.
fn generations_losing(series_move: &SeriesMove<'_>, file: &PatchFile) -> Result<Vec<String>> {
    let pins = series_move.pins;
    let siblings = read_series(&series_move.context.layout, file.folder())?.siblings;
    let mut losing = Vec::new();
    for generation in pins.generations(&series_move.stack.variant.pin) {
        let has_series =
            pins.patched_on(&generation.name).any(|other| pins.patch_folders(other).contains(&file.folder()));
        let path = file.sibling_in(&generation.name);
        let sibling = siblings.iter().find(|sibling| Some(&sibling.file) == path.as_ref());
        let sibling = sibling.map(PatchFile::parse).transpose()?;
        if has_series && !sibling.is_some_and(|sibling| sibling.is_dropped()) {
            losing.push(generation.name.to_string());
        }
    }
    Ok(losing)
}

fn describe(losing: &[String]) -> String {
    let (generations, tree) = match losing {
        [one] => (format!("the generation {one} loses it too, and no sibling"), "its tree has"),
        several => (
            format!("the generations {} lose it too, and no sibling", several.join(", ")),
            "their trees have",
        ),
    };
    format!("{generations} says that {tree} the change")
}

#[cfg(test)]
mod tests {
    use super::describe;

    #[test]
    fn one_generation_and_several() {
        let one = "the generation v2 loses it too, and no sibling says that its tree has the change";
        assert_eq!(describe(&["v2".into()]), one);
        let two = "the generations v2, v3 lose it too, and no sibling says that their trees have the change";
        assert_eq!(describe(&["v2".into(), "v3".into()]), two);
    }
}
