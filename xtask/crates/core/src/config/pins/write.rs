//! Renders a pin and a variant for `pins.toml`: as a whole file, or as sections at the end of one.

use espalier_series::ObjectId;

use super::Revision;
use crate::config::name::Name;

/// A pin that is not in `pins.toml` yet, and its variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPin {
    /// `[variants.NAME]`; the pin has the same name.
    pub variant: Name,
    /// The upstream project, such as `llama.cpp`.
    pub upstream: String,
    /// The tag or commit of the pin.
    pub revision: Revision,
    /// The git tree id.
    pub tree: ObjectId,
    /// The source of its objects.
    pub source: NewSource,
}

/// The source of a pin's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewSource {
    /// The URL passed to `git fetch`.
    Git(String),
    /// A repository or bundle on this machine.
    Path(String),
}

impl NewSource {
    fn toml(&self) -> String {
        match self {
            NewSource::Git(url) => format!("{{ git = {} }}", quoted(url)),
            NewSource::Path(path) => format!("{{ path = {} }}", quoted(path)),
        }
    }
}

impl NewPin {
    /// The folder of the variant's patches, relative to the root.
    pub fn folder(&self) -> String {
        format!("patches/{}", self.variant)
    }

    /// A whole `pins.toml`.
    pub fn file(&self) -> String {
        format!(
            "# What we build from. The tree id decides, whatever the source: `git rev-parse TAG^{{tree}}`.\n\n\
             default-variant = {}\n\n{}",
            quoted(&self.variant),
            self.sections()
        )
    }

    /// Appends the two sections to `text`, a `pins.toml`.
    pub fn added_to(&self, text: &str) -> String {
        format!("{}\n\n{}", text.trim_end(), self.sections())
    }

    fn sections(&self) -> String {
        let name = &self.variant;
        format!(
            "[pins.{name}]\nupstream = {}\n{} = {}\ntree = \"{}\"\n# Tried in this order.\nsources = [\n    {},\n]\n\n\
             [variants.{name}]\npin = {}\npatches = {}\n",
            quoted(&self.upstream),
            self.revision.key(),
            quoted(&self.revision.to_string()),
            self.tree,
            self.source.toml(),
            quoted(name),
            quoted(&self.folder()),
        )
    }
}

/// Quotes `value`; TOML basic strings use the same escapes as JSON.
fn quoted(value: &str) -> String {
    serde_json::Value::String(value.to_string()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::pins::{Pins, Source};
    use crate::config::snippet::SourceText;

    fn sample(variant: &str) -> NewPin {
        NewPin {
            variant: Name::new(variant).unwrap(),
            upstream: "llama.\"cpp\"".to_string(),
            revision: Revision::parse("b1").unwrap(),
            tree: "1".repeat(40).parse::<ObjectId>().unwrap(),
            source: NewSource::Path("../a\\b".to_string()),
        }
    }

    #[test]
    fn a_rendered_variant_reads_back() {
        let text = sample("one").file();
        let both = sample("two").added_to(&text);
        assert!(both.starts_with(text.trim_end()));
        let pins = Pins::parse(SourceText { name: "pins.toml", text: &both }).unwrap();
        assert_eq!(pins.default_variant.as_str(), "one");
        let two = pins.variant(Some("two")).unwrap();
        assert_eq!(two.patches.as_deref(), Some("patches/two"));
        let pin = pins.pin_of(two);
        assert_eq!((pin.upstream.as_str(), pin.tree), ("llama.\"cpp\"", sample("two").tree));
        assert_eq!(pin.sources, [Source::Path { path: "../a\\b".to_string() }]);
    }
}
