//! Proof of a move: on its new base, a series changes what it changed on the old one, and nothing else.
//!
//! Four trees meet in a move: upstream before and after, and either with the series. The difference of the patched trees
//! has to be that of the upstream trees, or, which is the same, the series has to make the same change on both. This is
//! checked on contents alone, for each patch and for the whole series:
//!
//! * Lines are counted (`accounts.rs`): for each line, the series must add and delete as many on the new base as on the
//!   old one. No diff and no merge is involved, so a merge that was clean and wrong cannot pass.
//! * Their places are those of a three-way merge of the two changes (`expected.rs`), and where that merge is ambiguous or
//!   in conflict, the function that holds the line has to be the same.
//! * Functions that upstream moved are proved by themselves (`moved_functions.rs`, `apart.rs`).
//! * Names, modes and contents that are not text are compared as they are (`file.rs`).
//!
//! Each difference becomes a `Finding` with a class. A call that upstream has removed is not a difference of lines, and
//! is noted (`calls.rs`); so is a word that upstream's code no longer has and that a patch or an overlay file uses
//! (`words.rs`).

mod accounts;
mod apart;
pub(crate) mod calls;
mod expected;
mod file;
pub(crate) mod finding;
mod functions;
mod hunks;
mod matching;
mod moved_functions;
mod moves;
mod pairs;
mod parts;
pub(crate) mod placed;
mod residue;
pub(crate) mod series;
mod text;
pub(crate) mod words;
