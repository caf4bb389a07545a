//! The processors of an accelerator, by the names that its compiler gives them.

use serde::Deserialize;
use toml::Spanned;

use crate::error::{Error, Result};
use crate::plan::snippet::SourceText;

/// One maker's processors, as one toolchain knows them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// The CMake cache entry that takes the list.
    pub option: String,
    /// Every name that the toolchain takes.
    pub known: Vec<String>,
}

impl Family {
    /// The value of the CMake entry for `names`.
    ///
    /// # Errors
    ///
    /// A sentence, when the list is empty or names what the toolchain does not know; a compiler would say so after
    /// an hour, or build for nothing at all.
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

    /// [`Family::value`] of what a person typed.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn typed(&self, names: &[String]) -> Result<String> {
        self.value(names).map_err(Error::usage)
    }

    /// [`Family::value`] of a list in a file of ours.
    ///
    /// # Errors
    ///
    /// As there, with the list underlined.
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
