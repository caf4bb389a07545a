//! Checks folders of patches that several variants name.

use super::{Pins, Variant};
use crate::next_command::quoted;

/// Reason why `other` cannot name the same folder of patches as `first`, and the next step; `None` if both have one
/// series. A patch names the blobs that it was made from, so a folder belongs to one pin and to one series below it:
/// otherwise a rebase of one variant would rewrite the patches of the other for another tree.
pub(super) fn refusal(pins: &Pins, first: &Variant, other: &Variant) -> Option<(String, String)> {
    if first.pin == other.pin && pins.patch_folders(first) == pins.patch_folders(other) {
        return None;
    }
    let label = format!(
        "a folder of patches fits one tree: `{}` has it {}, this variant {}",
        first.name,
        position(pins, first),
        position(pins, other)
    );
    let twice = [first, other].into_iter().find(|variant| has_its_folder_twice(pins, variant));
    let hint = match twice {
        Some(variant) => {
            format!(
                "remove `patches` from `[variants.{0}]`: what `{0}` extends has these patches",
                variant.name
            )
        }
        None => own_folder(other),
    };
    Some((label, hint))
}

/// Describes the tree that the own patches of `variant` apply to.
fn position(pins: &Pins, variant: &Variant) -> String {
    let mut below = pins.patch_folders(variant);
    below.pop();
    let pin = format!("on the pin `{}`", variant.pin);
    match below.is_empty() {
        true => pin,
        false => format!("after `{}` {pin}", below.join("`, `")),
    }
}

fn has_its_folder_twice(pins: &Pins, variant: &Variant) -> bool {
    let folders = pins.patch_folders(variant);
    folders.iter().filter(|folder| Some(**folder) == variant.patches.as_deref()).count() > 1
}

fn own_folder(variant: &Variant) -> String {
    let folder = variant.patches.as_deref().unwrap_or_default();
    let copy = format!("{folder}-of-{}", variant.name);
    format!(
        "give `{}` its own folder: cp -R {} {}    # and name it here",
        variant.name,
        quoted(folder),
        quoted(&copy)
    )
}

#[cfg(test)]
mod tests {
    use crate::config::pins::Pins;
    use crate::config::snippet::SourceText;
    use crate::error::Result;

    const PINS: &str = r#"default-variant = "a"
[pins.old]
upstream = "u"
tag = "v1"
tree = "0424752fbbc3bb01469ec830a30f2bc035497cd4"
sources = [{ path = "a" }]
[pins.new]
upstream = "u"
tag = "v2"
tree = "0424752fbbc3bb01469ec830a30f2bc035497cd4"
sources = [{ path = "a" }]
[variants.a]
pin = "old"
patches = "patches/a"
[variants.b]
extends = "a"
patches = "patches/b"
"#;

    fn parse(more: &str) -> Result<Pins> {
        let text = format!("{PINS}{more}");
        Pins::parse(SourceText { name: "pins.toml", text: &text })
    }

    fn refused(more: &str) -> String {
        parse(more).expect_err("must be refused").to_string()
    }

    #[test]
    fn one_series_can_have_several_variants() {
        for folder in ["patches/b", "patches/b/", "patches//b", "patches/./b"] {
            let pins = parse(&format!("[variants.c]\nextends = \"a\"\npatches = \"{folder}\"\n")).unwrap();
            assert_eq!(pins.variants["c"].patches, pins.variants["b"].patches, "{folder}");
        }
        parse("[variants.c]\nextends = \"a\"\n[variants.d]\nextends = \"c\"\npatches = \"patches/b\"\n")
            .unwrap();
    }

    #[test]
    fn a_folder_has_one_pin() {
        insta::assert_snapshot!(refused("[variants.c]\npin = \"new\"\npatches = \"patches/a\"\n"), @r#"
        error: invalid `pins.toml`
            --> pins.toml:20:11
             |
          20 | patches = "patches/a"
             |           ^^^^^^^^^^^ a folder of patches fits one tree: `a` has it on the pin `old`, this variant on the pin `new`
          next: give `c` its own folder: cp -R patches/a patches/a-of-c    # and name it here
        "#);
    }

    #[test]
    fn a_folder_has_one_series_below_it() {
        let message = refused("[variants.c]\npin = \"old\"\npatches = \"patches/b/\"\n");
        let why = "`b` has it after `patches/a` on the pin `old`, this variant on the pin `old`";
        assert!(message.contains("pins.toml:20:11") && message.contains(why), "{message}");
        assert!(
            message.contains("next: give `c` its own folder: cp -R patches/b patches/b-of-c"),
            "{message}"
        );
    }

    #[test]
    fn no_variant_applies_a_folder_twice() {
        let message = refused("[variants.c]\nextends = \"b\"\npatches = \"patches/a\"\n");
        assert!(
            message.contains("this variant after `patches/a`, `patches/b` on the pin `old`"),
            "{message}"
        );
        let next = "next: remove `patches` from `[variants.c]`: what `c` extends has these patches";
        assert!(message.contains(next), "{message}");
    }
}
