//! Conditions under which a gated delta net layer may flatten the input of its output projection.
//!
//! Stock llama.cpp multiplies a `[value_dim, n_seq_tokens, n_seqs]` activation. With one token per sequence, as in
//! decoding, that is `n_seqs` matrix-vector products, and each reads the whole weight. Viewed as
//! `[value_dim, n_seq_tokens * n_seqs]` the same values are one matrix product, and the weight is read once.
//!
//! The two shapes reach different kernels. This module decides where those kernels are known to accumulate in the same
//! order, so that the outputs stay byte-identical. Everywhere else the stock shape is kept, and the reason is logged
//! once.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::features::Feature;
use crate::report;

/// `GGML_TYPE_Q4_0`: part of the GGUF format, so the number cannot change.
pub const GGML_TYPE_Q4_0: i32 = 2;
/// `GGML_TYPE_Q8_0`: part of the GGUF format, so the number cannot change.
pub const GGML_TYPE_Q8_0: i32 = 8;

/// The C++ side's description of one output projection. Booleans are 0 or 1.
///
/// The layout is `struct espalier_gdn_output_facts` of the C header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct OutputFacts {
    /// `enum ggml_type` of the weight.
    pub weight_type: i32,
    /// The weight lies in ggml's plain or repacked CPU memory (not AMX, KleidiAI, a device, ...).
    pub weight_in_cpu_memory: i32,
    /// Every device of the process is a CPU: no operation can be offloaded for being large.
    pub only_cpu_devices: i32,
    /// ggml's CPU kernels were compiled with AVX2, FMA and F16C.
    pub cpu_kernels_use_avx2: i32,
    /// An active LoRA adapter has a low-rank pair for this weight.
    pub adapter_covers_weight: i32,
}

/// Reasons to keep the stock shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum KeptBecause {
    /// Only q4_0 and q8_0 are proven. f16 and f32 are known to differ in the last bits.
    WeightType = 0,
    /// The weight's memory type has its own kernels.
    WeightMemory = 1,
    /// A large batch may be offloaded to another device, and "large" depends on the shape.
    OtherDevices = 2,
    /// With AVX2 (and with AVX-512 on top) both kernels accumulate one block after the other. With plain AVX the vector
    /// kernel takes two blocks at a time, and the outputs are known to differ. The kernels of other processors have not
    /// been compared.
    CpuKernels = 3,
    /// Adapter matrices are f16 or f32, and they are multiplied with the same activation.
    Adapter = 4,
}

impl KeptBecause {
    fn text(self) -> &'static str {
        match self {
            KeptBecause::WeightType => "only q4_0 and q8_0 weights are proven bit-identical",
            KeptBecause::WeightMemory => "the weight is not in plain or repacked CPU memory",
            KeptBecause::OtherDevices => "the process has devices other than the CPU",
            KeptBecause::CpuKernels => "the CPU kernels were built without AVX2, FMA and F16C",
            KeptBecause::Adapter => "a LoRA adapter covers the weight",
        }
    }
}

/// Decides whether to flatten. No other code makes this decision.
pub fn check_flattening(facts: &OutputFacts) -> Result<(), KeptBecause> {
    let conditions = [
        (is_proven_type(facts.weight_type), KeptBecause::WeightType),
        (facts.weight_in_cpu_memory != 0, KeptBecause::WeightMemory),
        (facts.only_cpu_devices != 0, KeptBecause::OtherDevices),
        (facts.cpu_kernels_use_avx2 != 0, KeptBecause::CpuKernels),
        (facts.adapter_covers_weight == 0, KeptBecause::Adapter),
    ];
    match conditions.into_iter().find(|(holds, _)| !holds) {
        Some((_, reason)) => Err(reason),
        None => Ok(()),
    }
}

fn is_proven_type(weight_type: i32) -> bool {
    matches!(weight_type, GGML_TYPE_Q4_0 | GGML_TYPE_Q8_0)
}

/// Like [`check_flattening`], but logs the first refusal for each reason on stderr, so that a user who enabled the
/// feature learns that it has no effect.
pub fn may_flatten(facts: &OutputFacts) -> bool {
    match check_flattening(facts) {
        Ok(()) => true,
        Err(reason) => {
            report_first_refusal(reason);
            false
        }
    }
}

fn report_first_refusal(reason: KeptBecause) {
    static REPORTED: AtomicU32 = AtomicU32::new(0);
    let bit = 1 << (reason as u32);
    if REPORTED.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
        let feature = Feature::GdnFlatOutput.name();
        report::line_to_stderr(&format!("{feature} keeps the stock shape: {}", reason.text()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROVEN: OutputFacts = OutputFacts {
        weight_type: GGML_TYPE_Q8_0,
        weight_in_cpu_memory: 1,
        only_cpu_devices: 1,
        cpu_kernels_use_avx2: 1,
        adapter_covers_weight: 0,
    };

    #[test]
    fn the_proven_types_are_flattened() {
        for weight_type in [GGML_TYPE_Q4_0, GGML_TYPE_Q8_0] {
            assert_eq!(check_flattening(&OutputFacts { weight_type, ..PROVEN }), Ok(()));
        }
    }

    #[test]
    fn no_other_type_is_flattened() {
        let proven = [GGML_TYPE_Q4_0, GGML_TYPE_Q8_0];
        for weight_type in (-1..64).filter(|weight_type| !proven.contains(weight_type)) {
            let facts = OutputFacts { weight_type, ..PROVEN };
            assert_eq!(check_flattening(&facts), Err(KeptBecause::WeightType), "{weight_type}");
        }
    }

    #[test]
    fn every_missing_condition_keeps_the_stock_shape() {
        let cases = [
            (OutputFacts { weight_in_cpu_memory: 0, ..PROVEN }, KeptBecause::WeightMemory),
            (OutputFacts { only_cpu_devices: 0, ..PROVEN }, KeptBecause::OtherDevices),
            (OutputFacts { cpu_kernels_use_avx2: 0, ..PROVEN }, KeptBecause::CpuKernels),
            (OutputFacts { adapter_covers_weight: 1, ..PROVEN }, KeptBecause::Adapter),
        ];
        for (facts, reason) in cases {
            assert_eq!(check_flattening(&facts), Err(reason));
            assert!(!may_flatten(&facts));
        }
    }
}
