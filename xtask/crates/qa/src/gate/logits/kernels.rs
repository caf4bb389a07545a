//! PURE: whether two builds multiply weights with the same kernels on this machine.

use serde_json::{Value, json};

use crate::serving::switches::MUL_MAT;

/// Name of ggml's buffer type whose weights are multiplied by its AMX kernels.
const AMX: &str = "AMX";

/// Name of ggml's buffer type of repacked weights: those of q8_0 too on 64-bit Arm, and not on x86-64.
const REPACKED: &str = "CPU_REPACK";

/// Which of two builds uses AMX on this machine. Its kernels sum in another order than all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernels {
    /// Whether the reference uses it.
    reference_has_amx: bool,
    /// Whether the gated variant uses it.
    variant_has_amx: bool,
    /// Whether ggml multiplies q8_0 weights of the gated variant by kernels for a layout of their own.
    variant_repacks_q8_0: bool,
}

impl Kernels {
    /// Reads it from the types of buffers that the two builds offer for weights.
    pub fn of(reference: &[String], variant: &[String]) -> Kernels {
        let has_amx = |types: &[String]| types.iter().any(|name| name == AMX);
        let repacks = cfg!(target_arch = "aarch64") && variant.iter().any(|name| name == REPACKED);
        Kernels {
            reference_has_amx: has_amx(reference),
            variant_has_amx: has_amx(variant),
            variant_repacks_q8_0: repacks || has_amx(variant),
        }
    }

    /// Whether both use AMX, or neither does.
    pub fn are_the_same(self) -> bool {
        self.reference_has_amx == self.variant_has_amx
    }

    /// Whether a feature has no effect on this machine: its weights are repacked.
    pub fn override_feature(self, enabled: Option<&str>) -> bool {
        self.variant_repacks_q8_0 && enabled == Some(MUL_MAT)
    }

    /// Returns a line for reports; `None` if the kernels are the same.
    pub fn summary(self, reference: &str, variant: &str) -> Option<String> {
        let (with, without) = if self.variant_has_amx { (variant, reference) } else { (reference, variant) };
        (!self.are_the_same()).then(|| {
            format!(
                "{with} uses AMX and {without} does not: models with experts are compared with all in use"
            )
        })
    }

    /// Returns the JSON of a report.
    pub fn to_json(self) -> Value {
        json!({ "reference": self.reference_has_amx, "variant": self.variant_has_amx })
    }
}

/// Parses what the probe prints with `--buffer-types`; `None` if it is anything else.
pub fn parse_buffer_types(stdout: &[u8]) -> Option<Vec<String>> {
    let printed: Value = serde_json::from_slice(stdout).ok()?;
    let types = printed.get("buffer_types")?.as_array()?;
    types.iter().map(|name| name.as_str().map(str::to_string)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_string()).collect()
    }

    #[test]
    fn only_amx_on_one_side_makes_kernels_different() {
        let same = |reference: &[&str], variant: &[&str]| {
            Kernels::of(&types(reference), &types(variant)).are_the_same()
        };
        assert!(same(&[], &[]) && same(&["AMX"], &["AMX", "CPU_REPACK"]));
        assert!(same(&["CPU_REPACK"], &[]), "only AMX relaxes the comparison");
        assert!(!same(&["AMX"], &[]) && !same(&["CPU_REPACK"], &["AMX", "CPU_REPACK"]));
    }

    #[test]
    fn amx_of_the_variant_overrides_products_with_q8_0_alone() {
        let overrides = |reference: &[&str], variant: &[&str], feature: &str| {
            Kernels::of(&types(reference), &types(variant)).override_feature(Some(feature))
        };
        assert!(overrides(&[], &["AMX"], MUL_MAT) && !overrides(&["AMX"], &[], MUL_MAT));
        assert!(!overrides(&["AMX"], &["AMX"], "attention"));
        assert_eq!(overrides(&[], &["CPU_REPACK"], MUL_MAT), cfg!(target_arch = "aarch64"));
    }

    #[test]
    fn a_report_names_the_build_with_amx() {
        let summary = |reference: &[&str], variant: &[&str]| {
            Kernels::of(&types(reference), &types(variant)).summary("stock", "fixes")
        };
        assert_eq!(summary(&["AMX"], &["AMX"]), None);
        assert!(summary(&[], &["AMX"]).unwrap().starts_with("fixes uses AMX and stock does not: "));
        assert!(summary(&["AMX"], &[]).unwrap().starts_with("stock uses AMX and fixes does not: "));
    }

    #[test]
    fn only_a_list_of_names_is_read() {
        let parse = parse_buffer_types;
        assert_eq!(
            parse(b"{\"buffer_types\":[\"AMX\",\"CPU_REPACK\"]}\n"),
            Some(types(&["AMX", "CPU_REPACK"]))
        );
        assert_eq!(parse(b"{\"buffer_types\":[]}\n"), Some(Vec::new()));
        for wrong in ["", "{}", "{\"buffer_types\":\"AMX\"}", "{\"buffer_types\":[1]}"] {
            assert_eq!(parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
