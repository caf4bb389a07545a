//! The table and the plot of the KV quality bench.

use super::measurements::{KvQualityRun, Measured};
use crate::report::curves::{Axis, Curve, Curves, Scale};

/// Returns one table for each context.
pub(super) fn text(found: &KvQualityRun) -> String {
    let tables: Vec<String> = found.contexts.iter().map(|context| table(found, *context)).collect();
    tables.join("\n")
}

fn table(found: &KvQualityRun, context: usize) -> String {
    let rows: Vec<&Measured> = found.measured.iter().filter(|one| one.context == context as u64).collect();
    let base = rows.first().map(|one| one.base);
    let head = format!(
        "{}, {} chunks of {context} tokens, against an f16 cache{}, -t {}\n\n\
         | K/V | bits | bytes a token | KLD mean | median | 99 % | same token | perplexity | needles | prompt | decode |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        found.name,
        found.chunks,
        base.map(|base| format!(
            " (perplexity {:.3}, {} bytes a token, {:.0} and {:.0} tokens/s)",
            base.perplexity, base.bytes, base.prompt_rate, base.decode_rate
        ))
        .unwrap_or_default(),
        found.threads,
    );
    head + &rows.into_iter().map(row).collect::<String>()
}

/// Rates are given as fractions of those with f16, which were measured in turn.
fn row(one: &Measured) -> String {
    let asked = one.asked;
    format!(
        "| {} | {:.2} | {} | {:.5} | {:.5} | {:.4} | {:.1} % | {:.3} | {} of {} | {} | {} |\n",
        one.cache,
        one.bits(),
        asked.bytes,
        one.divergence.mean,
        one.divergence.median,
        one.divergence.p99,
        100.0 * one.divergence.same,
        asked.perplexity,
        asked.needles,
        one.needles,
        relative(asked.prompt_rate, one.base.prompt_rate),
        relative(asked.decode_rate, one.base.decode_rate),
    )
}

/// Formats the ratio; `-` where no rates were measured.
fn relative(rate: f64, base: f64) -> String {
    if base > 0.0 { format!("{:.2}x", rate / base) } else { "-".to_string() }
}

/// Plots the divergence of each cache at the longest context against its bits.
pub(super) fn plot(found: &KvQualityRun) -> Curves {
    let longest = found.contexts.iter().max().copied().unwrap_or_default();
    let at_longest = found.measured.iter().filter(|one| one.context == longest as u64);
    let curve =
        |one: &Measured| Curve { name: one.cache.clone(), points: vec![(one.bits(), one.divergence.mean)] };
    Curves {
        title: "What a cache costs: divergence from f16, against bits".to_string(),
        subtitle: format!("{}, {} chunks of {longest} tokens", found.name, found.chunks),
        x: Axis { name: "bits a value of K and V".to_string(), scale: Scale::Linear },
        y: Axis { name: "mean KLD, nats".to_string(), scale: Scale::Logarithmic },
        curves: at_longest.map(curve).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::measurements::tests::{found, measured};
    use super::*;

    #[test]
    fn rates_are_parts_of_those_with_f16() {
        insta::assert_snapshot!(text(&found(vec![measured("q8_0/turbo4")])), @"
        model, 8 chunks of 512 tokens, against an f16 cache (perplexity 20.500, 6144 bytes a token, 2000 and 200 tokens/s), -t 2

        | K/V | bits | bytes a token | KLD mean | median | 99 % | same token | perplexity | needles | prompt | decode |
        |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
        | q8_0/turbo4 | 6.31 | 2424 | 0.01000 | 0.00500 | 0.1000 | 95.0 % | 20.700 | 47 of 48 | 0.95x | 0.90x |
        ");
    }

    #[test]
    fn each_cache_is_a_point() {
        let curves = plot(&found(vec![measured("q8_0/turbo4"), measured("q8_0/tcq2")])).curves;
        assert_eq!(curves[1].name, "q8_0/tcq2");
        assert_eq!(curves[0].points, [(6.3125, 0.01)]);
    }
}
