//! The names of a new variant and of its pin.

use crate::error::{Error, Result};
use crate::plan::name::Name;
use crate::plan::pins::{NewPin, NewSource, Revision};
use crate::series::ObjectId;
use crate::sys::work_trees::fork::ForkPlace;

/// A new variant needs a name.
pub fn checked_name(name: Option<&str>) -> Result<Name> {
    let name = name.ok_or_else(|| {
        Error::usage("there is no variant yet, and the new one has no name")
            .hint("name it: --variant my-fork")
    })?;
    Name::new(name).map_err(|why| {
        Error::usage(format!("`{}` cannot be a variant's name: {why}", name.escape_debug()))
            .hint("choose another name: --variant my-fork")
    })
}

/// A tag where there is one: people know it.
pub fn revision_of(place: &ForkPlace, commit: ObjectId) -> Revision {
    place.tags_at(commit).into_iter().find_map(Revision::parse).unwrap_or(Revision::Commit(commit))
}

/// What is true on this machine only.
pub fn notes_on(new: &NewPin) -> Vec<String> {
    match &new.source {
        NewSource::Git(_) => Vec::new(),
        NewSource::Path(path) => vec![format!(
            "the pin's only source is {path}, which other machines do not have: add {{ git = \"URL\" }} to \
             `sources` in pins.toml"
        )],
    }
}
