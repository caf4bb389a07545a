//! GPU architectures of an accelerator, by the names that its compiler uses.

use serde::Deserialize;
use toml::Spanned;

use crate::config::snippet::SourceText;
use crate::error::{Error, Result};

/// The architectures of one vendor, as one toolchain supports them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// The CMake cache entry that takes the list.
    pub option: String,
    /// Every name that the toolchain accepts.
    pub known: Vec<String>,
}

impl Family {
    /// Returns the value of the CMake entry for `names`.
    ///
    /// # Errors
    ///
    /// A sentence, when the list is empty or contains an architecture that the toolchain does not support. A compiler
    /// would report that only after an hour, or build for no architecture at all.
    pub fn value(&self, names: &[String]) -> std::result::Result<String, String> {
        let known = self.known.join(", ");
        if names.is_empty() {
            return Err(format!("no architecture is named: one or more of {known}"));
        }
        match names.iter().find(|name| !self.known.contains(name)) {
            Some(name) => Err(format!("there is no architecture `{name}`: one or more of {known}")),
            None => Ok(names.join(";")),
        }
    }

    /// Returns [`Family::value`] of names from the command line.
    ///
    /// # Errors
    ///
    /// A usage error, as in [`Family::value`].
    pub fn typed(&self, names: &[String]) -> Result<String> {
        self.value(names).map_err(Error::usage)
    }

    /// Checks a list in a project file with [`Family::value`].
    ///
    /// # Errors
    ///
    /// As in [`Family::value`], with the list underlined.
    pub(super) fn written(&self, source: SourceText<'_>, names: &Spanned<Vec<String>>) -> Result<()> {
        self.value(names.get_ref()).map(drop).map_err(|message| source.error_at(names.span(), &message))
    }
}

#[cfg(test)]
mod tests {
    use super::Family;

    #[test]
    fn a_list_is_known_names_and_never_empty() {
        let known = ["80", "90", "120a"].map(str::to_string).to_vec();
        let family = Family { option: "CMAKE_CUDA_ARCHITECTURES".into(), known };
        let value = |names: &[&str]| family.value(&names.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(value(&["90", "120a"]).unwrap(), "90;120a");
        assert_eq!(value(&[]).unwrap_err(), "no architecture is named: one or more of 80, 90, 120a");
        assert_eq!(
            value(&["90", "12"]).unwrap_err(),
            "there is no architecture `12`: one or more of 80, 90, 120a"
        );
        assert!(value(&["90;80"]).is_err());
    }
}
