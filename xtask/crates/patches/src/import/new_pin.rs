//! Names of a new variant and its pin.

use espalier_core::config::name::Name;
use espalier_core::config::pins::{NewPin, NewSource, Revision};
use espalier_core::error::{Error, Result};
use espalier_core::sys::work_trees::fork::ForkPlace;
use espalier_series::ObjectId;

/// Returns the name of a new variant, which is required.
pub fn required_name(name: Option<&Name>) -> Result<Name> {
    name.cloned().ok_or_else(|| {
        Error::usage("no variant is defined; the new one needs a name").hint("name it: --variant my-fork")
    })
}

/// Returns a tag if there is one, because people know it, otherwise the commit.
pub fn revision_of(place: &ForkPlace, commit: ObjectId) -> Revision {
    place.tags_at(commit).into_iter().find_map(Revision::parse).unwrap_or(Revision::Commit(commit))
}

/// Returns notes on settings that are valid only on this machine.
pub fn notes_on(new: &NewPin) -> Vec<String> {
    match &new.source {
        NewSource::Git(_) => Vec::new(),
        NewSource::Path(path) => vec![format!(
            "the pin's only source is {path}, which other machines do not have: add {{ git = \"URL\" }} to \
             `sources` in pins.toml"
        )],
    }
}
