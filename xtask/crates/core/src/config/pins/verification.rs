//! Whether the id of a tree is known to be upstream's.

use serde::Serialize;

use super::{Content, Package, Pin, Registry, Source, short_name};

/// Whether the id of a tree is known to be upstream's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verification {
    /// Git objects were served under it: from a repository, or a copy of one.
    #[default]
    Verified,
    /// It was computed from unpacked files, and never compared with upstream's own id.
    Unverified,
}

impl Verification {
    /// Whether it is known.
    pub fn is_verified(&self) -> bool {
        *self == Verification::Verified
    }

    /// Returns the notice for reports on the tree of the commit `name`; `None` if there is nothing to report.
    pub fn notice(self, name: &str) -> Option<String> {
        let notice = || {
            let name = short_name(name);
            format!(
                "unverified: the tree id of {name} is that of unpacked files, and was not compared with upstream's \
                 own id"
            )
        };
        (!self.is_verified()).then(notice)
    }
}

impl Source {
    /// Whether the tree ids that it serves are known to be upstream's.
    pub fn verification(&self) -> Verification {
        match self {
            Source::Package(Package { registry: Registry::Pip { content: Content::Files, .. }, .. }) => {
                Verification::Unverified
            }
            Source::Git { .. } | Source::Package(_) | Source::Path { .. } => Verification::Verified,
        }
    }

    /// Whether it may have `revision`: a package has only those that `pins.toml` lists.
    pub fn may_have(&self, revision: &str) -> bool {
        match self {
            Source::Package(package) => package.version_of(revision).is_some(),
            Source::Git { .. } | Source::Path { .. } => true,
        }
    }
}

impl Pin {
    /// Index of its source of unpacked files if no other kind of source may have its revision: then its tree id cannot
    /// be compared with upstream's.
    pub fn unverifiable_source(&self) -> Option<usize> {
        let revision = self.revision.to_string();
        let mut able = self.sources.iter().enumerate().filter(|(_, source)| source.may_have(&revision));
        let (first, source) = able.next()?;
        let is_unverified = |source: &Source| !source.verification().is_verified();
        (is_unverified(source) && able.all(|(_, source)| is_unverified(source))).then_some(first)
    }

    /// Hint for a pin whose tree id has to be upstream's, and cannot be compared with it.
    pub fn way_to_verify(&self) -> String {
        let (name, revision) = (&self.name, self.revision.to_string());
        let revision = short_name(&revision);
        format!(
            "add a source with upstream's git objects of {revision} to `[pins.{name}]`, such as `{{ git = URL }}`, or \
             name a variant on another pin as `default-variant`"
        )
    }
}

/// Why the pin of the default variant cannot have unpacked files as its only source.
pub const UNVERIFIABLE: &str =
    "the tree id of the default variant's pin has to be upstream's, and unpacked files cannot confirm that";

#[cfg(test)]
mod tests {
    use crate::config::pins::{Pins, Verification};
    use crate::config::snippet::SourceText;
    use crate::error::Result;

    const GIT: &str = "{ git = \"https://example.invalid/x\" }";
    const NPM: &str = "{ npm = \"n\", member = \"a.bundle\", versions = { \"v1\" = \"1.0\" } }";
    const OTHER_NPM: &str = "{ npm = \"n\", member = \"a.bundle\", versions = { \"v2\" = \"2.0\" } }";

    /// A source of unpacked files that has `revision`.
    fn files(revision: &str) -> String {
        format!(
            "{{ pip = \"p\", files = \"vendor/x\", versions = {{ \"{revision}\" = \"1.0\" }}, \
             sha256 = {{ \"1.0\" = \"{}\" }} }}",
            "ab".repeat(32)
        )
    }

    /// A file with the pin `main`, which has a git source, and `next` with `sources`; `default` is that of the default
    /// variant.
    fn parse(sources: &[&str], default: &str) -> Result<Pins> {
        let pin = |name: &str, sources: &str| {
            format!(
                "[pins.{name}]\nupstream = \"u\"\ntag = \"v1\"\ntree = \"{}\"\nsources = [\n{sources}]\n\
                 [variants.on-{name}]\npin = \"{name}\"\n",
                "1".repeat(40)
            )
        };
        let listed: String = sources.iter().map(|source| format!("    {source},\n")).collect();
        let text = format!(
            "default-variant = \"on-{default}\"\n{}{}",
            pin("main", &format!("    {GIT},\n")),
            pin("next", &listed)
        );
        Pins::parse(SourceText { name: "pins.toml", text: &text })
    }

    #[test]
    fn the_default_pin_needs_a_source_that_can_confirm_its_tree() {
        let (v1, v2) = (files("v1"), files("v2"));
        let (v1, v2) = (v1.as_str(), v2.as_str());
        let unconfirmed = [(&[v1][..], "16:5"), (&[v1, v1][..], "16:5"), (&[OTHER_NPM, v1][..], "17:5")];
        for (sources, place) in unconfirmed {
            let message = parse(sources, "next").unwrap_err().to_string();
            let place = format!("--> pins.toml:{place}\n");
            let hint = "next: add a source with upstream's git objects of v1 to `[pins.next]`";
            for words in [super::UNVERIFIABLE, hint, place.as_str()] {
                assert!(message.contains(words), "{words}: {message}");
            }
            assert!(parse(sources, "main").is_ok(), "only the pin of the default variant");
        }
        for sources in [&[v1, GIT][..], &[GIT, v1], &[NPM, v1], &[v2], &[]] {
            assert!(parse(sources, "next").is_ok(), "{sources:?}");
        }
    }

    #[test]
    fn only_unpacked_files_are_unverified() {
        let pins = parse(&[GIT, NPM, &files("v1"), "{ path = \"x\" }"], "next").unwrap();
        let sources = pins.pins["next"].sources.iter();
        let unverified: Vec<bool> = sources.map(|source| !source.verification().is_verified()).collect();
        assert_eq!(unverified, [false, false, true, false]);
        assert_eq!(Verification::Verified.notice("v1"), None);
        let notice = Verification::Unverified.notice(&"0aceb8d1".repeat(5)).unwrap();
        assert!(
            notice.starts_with("unverified: the tree id of 0aceb8d10ace is that of unpacked files"),
            "{notice}"
        );
    }

    #[test]
    fn a_package_has_only_what_is_listed() {
        let pins = parse(&[GIT, NPM, &files("v2"), "{ path = \"x\" }"], "main").unwrap();
        let may_have = |revision: &str| -> Vec<bool> {
            pins.pins["next"].sources.iter().map(|source| source.may_have(revision)).collect()
        };
        assert_eq!(may_have("v1"), [true, true, false, true]);
        assert_eq!(may_have("v2"), [true, false, true, true]);
    }
}
