//! Starting a rebase and running it to the end, or to a conflict.

use espalier_core::error::Result;
use espalier_core::sys::machine::{disk, owned};
use espalier_core::sys::work_trees::rebase_repo::RebaseRepo;

use super::target::Target;
use super::walk::{Walked, create_repo, go_on, new_state};
use super::{Choices, Prepared, conflict, finish};

/// Runs a rebase from the start, in a repository under the scratch folder that is kept only where it stops. `edit` has
/// the files of the patches at which the user wants to stop.
pub fn start(target: &Target<'_>, choices: Choices, edit: Vec<String>) -> Result<Prepared> {
    let layout = &target.named().context.layout;
    let scratch = disk::scratch_folder(&layout.scratch(), "rebase")?;
    let repo = create_repo(target, scratch.path())?;
    let mut state = new_state(target, choices);
    state.edit = edit;
    match go_on(target, &repo, &mut state)? {
        Walked::ToTheEnd => finish::prepare(target, &repo, &state),
        Walked::Refused(refusal) => Err(refusal.with_hints(", add:", "add")),
        Walked::Stopped(stop) => {
            conflict::write_state(scratch.path(), &state)?;
            let home = layout.rebase(&target.named().home);
            if let Some(parent) = home.parent() {
                disk::create_folder(parent)?;
            }
            drop(repo);
            owned::rename(&scratch.keep(), &home)?;
            conflict::hand_over(target, &RebaseRepo::open(&home)?, &mut state, *stop)
        }
    }
}
