//! Instruction set of the kernels: the best that the processor has, or the one that `ESPALIER_ISA` names.

use std::sync::OnceLock;

use super::portable::Portable;
use super::{Simd, Work};
#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, avx512::Avx512};
use crate::report;

/// The environment variable that names the instruction set to use.
pub const ISA_VARIABLE: &str = "ESPALIER_ISA";

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// Baseline that every processor has.
    Scalar,
    /// AVX2, FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
    /// The same with VBMI and VNNI.
    Avx512Vbmi,
    /// NEON.
    Neon,
}

impl Isa {
    /// From the slowest to the fastest.
    const ALL: [Isa; 5] = [Isa::Scalar, Isa::Neon, Isa::Avx2, Isa::Avx512, Isa::Avx512Vbmi];

    fn name(self) -> &'static str {
        match self {
            Isa::Scalar => "scalar",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
            Isa::Avx512Vbmi => "avx512vbmi",
            Isa::Neon => "neon",
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn is_here(self) -> bool {
        match self {
            Isa::Scalar => true,
            Isa::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            }
            Isa::Avx512 => {
                Isa::Avx2.is_here()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            Isa::Avx512Vbmi => {
                Isa::Avx512.is_here()
                    && is_x86_feature_detected!("avx512vbmi")
                    && is_x86_feature_detected!("avx512vnni")
            }
            Isa::Neon => false,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn is_here(self) -> bool {
        self == Isa::Scalar || (cfg!(target_arch = "aarch64") && self == Isa::Neon)
    }

    /// Returns the instruction sets that this processor has, from the slowest to the fastest.
    pub fn here() -> impl Iterator<Item = Isa> {
        Self::ALL.into_iter().filter(|isa| isa.is_here())
    }

    /// Returns the one that this process uses. An unknown or unsupported name is reported once.
    #[must_use]
    pub fn chosen() -> Isa {
        static CHOSEN: OnceLock<Isa> = OnceLock::new();
        *CHOSEN.get_or_init(|| {
            let asked = std::env::var_os(ISA_VARIABLE).unwrap_or_default();
            Isa::choose(&asked.to_string_lossy()).unwrap_or_else(|message| {
                report::line_to_stderr(&message);
                Isa::best()
            })
        })
    }

    fn best() -> Isa {
        Self::here().last().unwrap_or(Isa::Scalar)
    }

    fn choose(asked: &str) -> Result<Isa, String> {
        if asked.is_empty() {
            return Ok(Self::best());
        }
        let found = Self::here().find(|isa| isa.name() == asked);
        found.ok_or_else(|| {
            let known: Vec<&str> = Self::here().map(Isa::name).collect();
            format!("{ISA_VARIABLE} names `{asked}`, and this processor has: {}", known.join(", "))
        })
    }

    /// Runs `work`, compiled for this instruction set.
    ///
    /// # Panics
    ///
    /// If the processor does not have it: [`Isa::here`] and [`Isa::chosen`] return only those that it has.
    pub fn run<W: Work>(self, work: W) -> W::Output {
        assert!(self.is_here(), "{self:?}");
        // SAFETY: the assertion has checked that the processor has it.
        unsafe {
            match self {
                Isa::Scalar => Portable::run(work),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => Avx2::run(work),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => Avx512::<false>::run(work),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512Vbmi => Avx512::<true>::run(work),
                #[cfg(target_arch = "aarch64")]
                Isa::Neon => super::neon::Neon::run(work),
                #[allow(unreachable_patterns, reason = "other processors have fewer arms")]
                _ => Portable::run(work),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_reported_with_the_known_ones() {
        assert_eq!(Isa::choose(""), Ok(Isa::best()));
        assert_eq!(Isa::choose("scalar"), Ok(Isa::Scalar));
        let message = Isa::choose("sse9").unwrap_err();
        assert!(
            message.starts_with("ESPALIER_ISA names `sse9`, and this processor has: scalar"),
            "{message}"
        );
    }
}
