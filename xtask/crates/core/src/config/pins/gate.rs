//! Checks the `gate` entries of variants.

use std::collections::BTreeMap;

use toml::Spanned;

use crate::config::name::Name;

/// Reason why a variant cannot be gated against `reference`; `None` if it can. Both must be built from the same pin:
/// upstream's changes between two pins must not be blamed on a patch.
pub(super) fn wrong_reference(
    name: &Name,
    reference: &Spanned<Name>,
    pin_names: &BTreeMap<&Name, Name>,
) -> Option<&'static str> {
    let reference = reference.get_ref();
    match pin_names.get(reference) {
        _ if reference == name => Some("a variant is not gated against itself"),
        None => Some("no variant has this name"),
        Some(pin) if *pin != pin_names[name] => Some("this variant has another pin"),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::config::pins::Pins;
    use crate::config::snippet::SourceText;

    const PINS: &str = r#"default-variant = "ours"
[pins.a]
upstream = "u"
tag = "v1"
tree = "0424752fbbc3bb01469ec830a30f2bc035497cd4"
sources = [{ path = "a" }]
[pins.b]
upstream = "u"
tag = "v2"
tree = "0424752fbbc3bb01469ec830a30f2bc035497cd4"
sources = [{ path = "a" }]
[variants.stock]
pin = "a"
[variants.other]
pin = "b"
[variants.ours]
extends = "stock"
gate = "stock"
"#;

    fn parse(reference: &str) -> crate::error::Result<Pins> {
        let text = PINS.replace("gate = \"stock\"", &format!("gate = \"{reference}\""));
        Pins::parse(SourceText { name: "pins.toml", text: &text })
    }

    #[test]
    fn the_gated_variants_are_those_that_say_so() {
        let pins = parse("stock").unwrap();
        assert_eq!(pins.variants["ours"].gate.as_deref(), Some("stock"));
        assert_eq!(pins.variants["stock"].gate, None);
    }

    #[test]
    fn a_reference_is_another_variant_of_the_same_pin() {
        let refused = |reference: &str| parse(reference).unwrap_err().to_string();
        assert!(refused("ours").contains("not gated against itself"), "{}", refused("ours"));
        assert!(refused("stok").contains("no variant has this name"), "{}", refused("stok"));
        assert!(refused("other").contains("another pin"), "{}", refused("other"));
    }
}
