//! Generations: pins of the same upstream on which the patches of another pin are used too, and the variants on them.

use std::collections::BTreeMap;

use espalier_names::nearest::meant;
use toml::Spanned;

use super::read::{RawPin, RawVariant, Reader};
use super::{Pin, Pins, Variant};
use crate::config::name::Name;
use crate::error::{Error, Result};

/// A variant on a generation.
#[derive(Clone, Copy, Debug)]
pub struct Generation<'a> {
    /// The generation.
    pub pin: &'a Pin,
    /// The pin that the patches were made for.
    pub base: &'a Pin,
    /// The variant whose patches these are, on that pin.
    pub like: &'a Variant,
}

impl Pins {
    /// The generation that `variant` is on; `None` for a variant whose patches were made for its pin.
    pub fn generation_of<'a>(&'a self, variant: &'a Variant) -> Option<Generation<'a>> {
        let like = self.variants.get(variant.like.as_ref()?)?;
        Some(Generation { pin: self.pin_of(variant), base: self.pin_of(like), like })
    }

    /// The generations of `pin`.
    pub fn generations<'a>(&'a self, pin: &'a Name) -> impl Iterator<Item = &'a Pin> {
        self.pins.values().filter(move |other| other.generation_of.as_ref() == Some(pin))
    }

    /// The variants on `pin`, also those without patches.
    pub fn variants_on<'a>(&'a self, pin: &'a Name) -> impl Iterator<Item = &'a Variant> {
        self.variants.values().filter(move |variant| variant.pin == *pin)
    }

    /// The variants on the generation `pin` that have patches.
    pub fn patched_on<'a>(&'a self, pin: &'a Name) -> impl Iterator<Item = &'a Variant> {
        let is_patched = move |variant: &&Variant| {
            variant.pin == *pin && variant.like.is_some() && !self.patch_folders(variant).is_empty()
        };
        self.variants.values().filter(is_patched)
    }

    /// One variant of the base pin for every series that is used on the generation `pin`, parents first.
    pub fn series_like<'a>(&'a self, base: &Name, pin: &'a Name) -> Vec<&'a Variant> {
        let used: Vec<Vec<&str>> = self.patched_on(pin).map(|variant| self.patch_folders(variant)).collect();
        let mut series = self.series_on(base);
        series.retain(|variant| {
            let folders = self.patch_folders(variant);
            used.iter().any(|used| used.starts_with(&folders))
        });
        series
    }

    /// Refuses a command about a move of the pin of `variant`, such as `rebase --to REF`: a generation does not move.
    /// Its tree is given, and the patches on it were made for another pin.
    ///
    /// # Errors
    ///
    /// The variant is on a generation; the hints name the command for its base, and how to give it another tree.
    pub fn refuse_generation(&self, variant: &Variant, command: &str) -> Result<()> {
        let Some(base) = &self.pin_of(variant).generation_of else { return Ok(()) };
        let Variant { name, pin, .. } = variant;
        let mut on_base = self.variants_on(base).map(|other| &other.name);
        let other = variant.like.as_ref().or_else(|| on_base.next());
        let other = other.map(|other| format!(" --variant {other}")).unwrap_or_default();
        Err(Error::usage(format!("`{name}` is on the generation {pin}, which does not move"))
            .hint(format!("for the pin that its patches were made for: cargo xtask {command}{other}"))
            .hint(format!(
                "or write another commit and tree into `[pins.{pin}]`, then: cargo xtask rebase --variant {name}"
            )))
    }

    /// The generation called `name`.
    ///
    /// # Errors
    ///
    /// There is none; the hint names those that there are.
    pub fn generation(&self, name: &str) -> Result<&Pin> {
        let known = || self.pins.values().filter(|pin| pin.generation_of.is_some());
        known().find(|pin| pin.name.as_str() == name).ok_or_else(|| {
            let names: Vec<&str> = known().map(|pin| pin.name.as_str()).collect();
            let error = Error::usage(format!("there is no generation `{name}` in `pins.toml`"));
            match names.is_empty() {
                true => error.hint("describe one: docs/guides/generations.md"),
                false => error.hint(format!("use one of: {}", names.join(", "))),
            }
        })
    }
}

impl Reader<'_> {
    /// Checks the base of a generation: another pin of the same upstream, which is not a generation itself.
    pub(super) fn generation_of(&self, raw: &RawPin) -> Result<Option<Name>> {
        let Some(place) = &raw.generation_of else { return Ok(None) };
        let name = place.get_ref();
        let Some(base) = self.raw.pins.get(name) else {
            return Err(self.at(place, &unknown("pin", name, self.raw.pins.keys())));
        };
        if base.generation_of.is_some() {
            return Err(self
                .at(place, "this pin is a generation itself: name the pin that its patches were made for"));
        }
        if base.upstream != raw.upstream {
            let label = format!("this pin is of `{}`: a generation is of the same upstream", base.upstream);
            return Err(self.at(place, &label));
        }
        Ok(Some(name.clone()))
    }

    /// Checks what a variant on the pin `pin` may say: on a generation its patches are those of another variant, and it
    /// takes all of its stack.
    pub(super) fn check_generation(&self, pin: &Name, raw: &RawVariant) -> Result<()> {
        let is_generation = self.raw.pins.get(pin).is_some_and(|pin| pin.generation_of.is_some());
        if let Some(like) = &raw.like {
            if !is_generation || raw.pin.is_none() {
                let label = "a variant with `like` also has `pin`, which names a generation";
                return Err(self.at(like, label));
            }
            if raw.patches.is_some() || !raw.overlays.is_empty() || raw.kernels || raw.front {
                let label = "a variant with `like` has the patches, overlays, kernels and front of that variant, and no others";
                return Err(self.at(like, label));
            }
            return Ok(());
        }
        match raw.patches.as_ref().filter(|_| is_generation) {
            Some(patches) => {
                let label =
                    "patches on a generation are those of a variant on its base: `like = VARIANT` instead";
                Err(self.at(patches, label))
            }
            None => Ok(()),
        }
    }

    /// Refuses to extend a variant on a generation: its own patches would need a base that no pin has.
    pub(super) fn check_parent(&self, parent: &Spanned<Name>) -> Result<()> {
        let raw = self.raw.variants.get(parent.get_ref());
        match raw.is_some_and(|raw| raw.like.is_some()) {
            true => {
                Err(self
                    .at(parent, "a variant with `like` is not extended: extend the variant that it is like"))
            }
            false => Ok(()),
        }
    }

    /// Returns `own`, a variant on a generation, with everything that it takes from the variant `like`.
    pub(super) fn like(
        &self,
        like: &Spanned<Name>,
        pins: &BTreeMap<&Name, Name>,
        own: Variant,
    ) -> Result<Variant> {
        let name = like.get_ref();
        let Some(raw) = self.raw.variants.get(name) else {
            return Err(self.at(like, &unknown("variant", name, self.raw.variants.keys())));
        };
        if raw.like.is_some() {
            return Err(self.at(like, "`like` cannot be chained: name the variant that defines the series"));
        }
        let base = self.raw.pins.get(&own.pin).and_then(|pin| pin.generation_of.as_ref());
        if base.is_none_or(|base| *base.get_ref() != pins[name]) {
            let label = format!(
                "this variant is on the pin `{}`, and `{}` is not a generation of it",
                pins[name], own.pin
            );
            return Err(self.at(like, &label));
        }
        let model = self.own_variant(name, pins, raw)?;
        let gate = match (own.gate, &model.gate) {
            (Some(gate), _) => Some(gate),
            (None, Some(reference)) => Some(self.gate_like(like, &own.pin, reference)?),
            (None, None) => None,
        };
        let cmake = model.cmake.into_iter().chain(own.cmake).collect();
        let (name, pin, flavors) = (own.name, own.pin, own.flavors.or(model.flavors));
        Ok(Variant { name, pin, like: own.like, gate, flavors, cmake, ..model })
    }

    /// Returns the variant on the generation `pin` that is like `reference`: a variant is gated there as on its base.
    fn gate_like(&self, like: &Spanned<Name>, pin: &Name, reference: &Name) -> Result<Name> {
        let is_named = |name: &Option<Spanned<Name>>, wanted: &Name| {
            name.as_ref().is_some_and(|name| name.get_ref() == wanted)
        };
        let mut variants = self.raw.variants.iter();
        let found = variants.find(|(_, raw)| is_named(&raw.like, reference) && is_named(&raw.pin, pin));
        found.map(|(name, _)| name.clone()).ok_or_else(|| {
            let label =
                format!("it is gated against `{reference}`, and no variant on `{pin}` is like that one");
            let section = format!("[variants.{reference}-{pin}]");
            self.at(like, &label)
                .hint(format!("add {section} with pin = \"{pin}\" and like = \"{reference}\""))
        })
    }
}

fn unknown<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a Name>) -> String {
    match meant(name, known.map(Name::as_str)) {
        Some(near) => format!("no {kind} has this name; the nearest is `{near}`"),
        None => format!("no {kind} has this name"),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::name::Name;
    use crate::config::pins::Pins;
    use crate::config::snippet::SourceText;
    use crate::error::Result;

    const PINS: &str = r#"default-variant = "paged"
[pins.main]
upstream = "u"
tag = "v1"
tree = "0424752fbbc3bb01469ec830a30f2bc035497cd4"
sources = [{ path = "a" }]
[pins.b2]
upstream = "u"
generation-of = "main"
tag = "v2"
tree = "0424752fbbc3bb01469ec830a30f2bc035497cd4"
sources = [{ path = "a" }]
[variants.stock]
pin = "main"
[variants.fixes]
extends = "stock"
patches = "patches/fixes"
[variants.paged]
extends = "fixes"
patches = "patches/paged"
kernels = true
front = true
gate = "stock"
flavors = ["cpu"]
cmake = { A = "1", B = "1" }
[variants.stock-b2]
pin = "b2"
like = "stock"
[variants.paged-b2]
pin = "b2"
like = "paged"
cmake = { B = "2" }
"#;

    fn parse(text: &str) -> Result<Pins> {
        Pins::parse(SourceText { name: "pins.toml", text })
    }

    fn refusal(from: &str, to: &str) -> String {
        assert!(PINS.contains(from), "{from}");
        parse(&PINS.replacen(from, to, 1)).expect_err("must be refused").to_string()
    }

    #[test]
    fn a_variant_on_a_generation_is_like_another_one() {
        let pins = parse(PINS).unwrap();
        let variant = pins.variant(Some("paged-b2")).unwrap();
        assert_eq!(pins.patch_folders(variant), ["patches/fixes", "patches/paged"]);
        assert_eq!((variant.gate.as_deref(), variant.kernels, variant.front), (Some("stock-b2"), true, true));
        assert_eq!(variant.flavors, pins.variants["paged"].flavors);
        let entries: Vec<(String, String)> = pins.cache_entries(variant).into_iter().collect();
        assert_eq!(entries, [("A".into(), "1".into()), ("B".into(), "2".into())]);
        let generation = pins.generation_of(variant).unwrap();
        assert_eq!((generation.pin.name.as_str(), generation.base.name.as_str()), ("b2", "main"));
        assert!(pins.generation_of(&pins.variants["paged"]).is_none());
    }

    #[test]
    fn the_series_of_a_generation_are_those_that_its_variants_use() {
        let pins = parse(PINS).unwrap();
        let (main, b2) = (Name::new("main").unwrap(), Name::new("b2").unwrap());
        let names = |series: Vec<&crate::config::pins::Variant>| -> Vec<String> {
            series.into_iter().map(|variant| variant.name.to_string()).collect()
        };
        assert_eq!(names(pins.series_like(&main, &b2)), ["fixes", "paged"]);
        assert_eq!(names(pins.series_on(&main)), ["fixes", "paged"]);
        assert_eq!(names(pins.variants_on(&b2).collect()), ["paged-b2", "stock-b2"]);
        assert_eq!(names(pins.patched_on(&b2).collect()), ["paged-b2"]);
        let fixes = parse(&PINS.replace("like = \"paged\"", "like = \"fixes\"")).unwrap();
        assert_eq!(names(fixes.series_like(&main, &b2)), ["fixes"]);
        assert!(pins.generation("b3").unwrap_err().to_string().contains("next: use one of: b2"));
    }

    #[test]
    fn invalid_generations_are_refused() {
        let of = "generation-of = \"main\"";
        assert!(refusal(of, "generation-of = \"mian\"").contains("the nearest is `main`"));
        assert!(refusal(of, "generation-of = \"b2\"").contains("is a generation itself"));
        let other = PINS.replacen("upstream = \"u\"\ngen", "upstream = \"w\"\ngen", 1);
        assert!(parse(&other).unwrap_err().to_string().contains("of the same upstream"));
        assert!(refusal("\"paged\"\n[pins", "\"paged-b2\"\n[pins").contains("never the default"));
    }

    #[test]
    fn invalid_variants_on_a_generation_are_refused() {
        let like = "pin = \"b2\"\nlike = \"paged\"";
        assert!(refusal(like, "pin = \"main\"\nlike = \"paged\"").contains("which names a generation"));
        assert!(refusal(like, "pin = \"b2\"\nlike = \"pagd\"").contains("the nearest is `paged`"));
        assert!(refusal(like, "pin = \"b2\"\nlike = \"stock-b2\"").contains("`like` cannot be chained"));
        assert!(refusal(like, &format!("{like}\npatches = \"p\"")).contains("and no others"));
        assert!(refusal(like, "pin = \"b2\"\npatches = \"p\"").contains("`like = VARIANT` instead"));
        assert!(refusal(like, "extends = \"stock-b2\"").contains("is not extended"));
        let missing = refusal("[variants.stock-b2]\npin = \"b2\"\nlike = \"stock\"\n", "");
        assert!(missing.contains("it is gated against `stock`"), "{missing}");
        assert!(
            missing.contains("next: add [variants.stock-b2] with pin = \"b2\" and like = \"stock\""),
            "{missing}"
        );
    }
}
