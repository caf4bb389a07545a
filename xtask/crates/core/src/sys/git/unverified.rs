//! Trees of unpacked files: their ids were computed here, and not compared with upstream's own.

use espalier_series::{ObjectId, ObjectKind};

use super::store::{Store, commit_text};
use crate::config::pins::Verification;

/// Returns the text of the commit that stands for a tree of unpacked files. It depends on nothing but the tree, so that
/// its id alone tells such a tree from one that came with upstream's objects.
pub(in crate::sys) fn commit_of_files(tree: ObjectId) -> String {
    commit_text(tree, None, &format!("The unpacked files of a package\n\nTree: {tree}\n"))
}

fn id_of_commit(tree: ObjectId) -> ObjectId {
    ObjectId::of(ObjectKind::Commit, commit_of_files(tree).as_bytes())
}

/// Whether the tree id of a pin is known to be upstream's: not as long as only unpacked files were fetched for it.
pub fn verification_of_pin(store: &Store, tree: ObjectId) -> Verification {
    let of_files = id_of_commit(tree);
    let fetched = store.fetched_pin(tree).or_else(|| store.has(of_files).then_some(of_files));
    match fetched == Some(of_files) {
        true => Verification::Unverified,
        false => Verification::Verified,
    }
}

/// As [`verification_of_pin`], for the tree of `commit`, which was fetched or stands for a pin.
pub fn verification_of(store: &Store, commit: ObjectId, tree: ObjectId) -> Verification {
    let stands_for_pin = store.pin_commit(tree).is_ok_and(|pin| pin == commit);
    match stands_for_pin {
        true => verification_of_pin(store, tree),
        false if commit == id_of_commit(tree) => Verification::Unverified,
        false => Verification::Verified,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_of_files_is_unverified_until_a_commit_of_upstream_was_fetched() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let tree = store.write(ObjectKind::Tree, b"").unwrap();
        let write = |text: &str| store.write(ObjectKind::Commit, text.as_bytes()).unwrap();
        let upstream = write(&commit_text(tree, None, "One release\n"));
        assert_eq!(verification_of_pin(&store, tree), Verification::Verified);
        let of_files = write(&commit_of_files(tree));
        assert_eq!(verification_of_pin(&store, tree), Verification::Unverified);
        assert_eq!(verification_of(&store, of_files, tree), Verification::Unverified);
        assert_eq!(verification_of(&store, upstream, tree), Verification::Verified);
        for (commit, verification) in
            [(of_files, Verification::Unverified), (upstream, Verification::Verified)]
        {
            store.mark_pin(commit, tree).unwrap();
            let pin = store.pin_commit(tree).unwrap();
            assert_eq!(verification_of(&store, pin, tree), verification);
            // A move to the pin itself knows only the commit that stands for it.
            store.mark_pin(pin, tree).unwrap();
            assert_eq!(verification_of_pin(&store, tree), verification);
        }
    }
}
