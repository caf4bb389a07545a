//! The result of the KV quality bench: the probe's measurements of caches.

use serde::{Deserialize, Serialize};

use super::Cache;
use crate::bench::history::History;
use crate::bench::record::{BenchResult, Head, Plot};
use crate::report::curves::{Axis, Curve, Curves, Scale};
use crate::report::table::{Table, ratio};

/// All measurements.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::bench) struct KvQuality {
    /// File name of the model, without the extension.
    pub(in crate::bench) name: String,
    /// SHA-256 of the model.
    pub(super) model: String,
    /// SHA-256 of the text.
    pub(super) text: String,
    pub(super) contexts: Vec<usize>,
    /// Number of chunks at each context.
    pub(in crate::bench) chunks: usize,
    pub(in crate::bench) measured: Vec<Measured>,
}

/// The measurement of one cache at one context, as the probe prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::bench) struct Measured {
    /// The probe prints only the types of K and V.
    #[serde(default)]
    pub(in crate::bench) cache: String,
    /// Context length in tokens.
    pub(in crate::bench) context: u64,
    #[serde(flatten)]
    pub(in crate::bench) divergence: Divergence,
    /// Number of facts that were asked for.
    pub(super) needles: u64,
    /// Average number of bits per value of K and V.
    #[serde(default)]
    pub(in crate::bench) bits: f64,
    /// The same measurements with an f16 cache.
    pub(super) base: Side,
    pub(super) asked: Side,
}

/// KL divergence of the token probabilities from those with an f16 cache, in nats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::bench) struct Divergence {
    pub(in crate::bench) mean: f64,
    pub(super) median: f64,
    /// 99th percentile.
    pub(super) p99: f64,
    /// Fraction of the tokens whose most likely successor is the same.
    pub(in crate::bench) same: f64,
}

/// The measurements of one cache.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Side {
    pub(super) perplexity: f64,
    /// Number of facts that were found.
    pub(super) needles: u64,
    /// Bytes of K and V per token, in all layers.
    pub(super) bytes: u64,
    /// Tokens per second over a prompt, from its first to its last.
    pub(super) prompt_rate: f64,
    /// Tokens per second of single-token decoding after the prompt.
    pub(super) decode_rate: f64,
}

impl Measured {
    /// Parses the probe's line.
    pub(super) fn read(cache: &Cache, line: &str) -> Result<Measured, String> {
        let wrong = |error: serde_json::Error| format!("{error}: {line}");
        let measured: Measured = serde_json::from_str(line.trim()).map_err(wrong)?;
        let bits = 16.0 * measured.asked.bytes as f64 / measured.base.bytes as f64;
        Ok(Measured { cache: cache.to_string(), bits, ..measured })
    }

    /// Returns a row of a table. Rates are given as fractions of those with f16, which were measured in turn.
    fn row(&self) -> String {
        let Measured { cache, bits, asked, base, needles, .. } = self;
        let Divergence { mean, median, p99, same } = self.divergence;
        let Side { bytes, perplexity, needles: found, .. } = asked;
        format!(
            "{cache} | {bits:.2} | {bytes} | {mean:.5} | {median:.5} | {p99:.4} | {:.1} % | {perplexity:.3} | \
             {found} of {needles} | {} | {}",
            100.0 * same,
            ratio(asked.prompt_rate, base.prompt_rate),
            ratio(asked.decode_rate, base.decode_rate),
        )
    }
}

impl KvQuality {
    fn table(&self, context: usize, threads: usize) -> String {
        let rows: Vec<&Measured> = self.measured.iter().filter(|one| one.context == context as u64).collect();
        let base = rows.first().map(|one| one.base);
        let base = base.map(|base| {
            format!(
                " (perplexity {:.3}, {} bytes a token, {:.0} and {:.0} tokens/s)",
                base.perplexity, base.bytes, base.prompt_rate, base.decode_rate
            )
        });
        let KvQuality { name, chunks, .. } = self;
        let columns = "K/V | bits | bytes a token | KLD mean | median | 99 % | same token | perplexity | needles | \
                       prompt | decode";
        format!(
            "{name}, {chunks} chunks of {context} tokens, against an f16 cache{}, -t {threads}\n\n{}",
            base.unwrap_or_default(),
            Table::new(columns, rows.into_iter().map(Measured::row))
        )
    }

    /// Plots the divergence of each cache at the longest context against its bits.
    fn curves(&self) -> Curves {
        let longest = self.contexts.iter().max().copied().unwrap_or_default();
        let at_longest = self.measured.iter().filter(|one| one.context == longest as u64);
        let curve =
            |one: &Measured| Curve { name: one.cache.clone(), points: vec![(one.bits, one.divergence.mean)] };
        Curves {
            title: "KV cache types: divergence from f16 against bits per value".to_string(),
            subtitle: format!("{}, {} chunks of {longest} tokens", self.name, self.chunks),
            x: Axis { name: "bits per value of K and V".to_string(), scale: Scale::Linear },
            y: Axis { name: "mean KLD, nats".to_string(), scale: Scale::Logarithmic },
            curves: at_longest.map(curve).collect(),
        }
    }
}

impl BenchResult for KvQuality {
    const HISTORY: History =
        History { bench: "kv-quality", identity: "model text contexts chunks processor" };

    /// Returns one table for each context.
    fn tables(&self, head: &Head) -> String {
        let table = |context: &usize| self.table(*context, head.threads());
        self.contexts.iter().map(table).collect::<Vec<_>>().join("\n")
    }

    fn plot(&self, _head: &Head) -> Option<Plot> {
        Some(Plot { name: Self::HISTORY.bench.to_string(), svg: self.curves().svg() })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bench::record::Record;
    use crate::bench::record::tests::head;

    const LINE: &str = r#"{"keys":"q8_0","values":"turbo4","context":512,"threads":2,"judged":1024,"needles":48,
        "mean":0.01,"median":0.005,"p99":0.1,"same":0.95,
        "base":{"perplexity":20.5,"prompt_rate":2000,"decode_rate":200,"needles":48,"bytes":6144},
        "asked":{"perplexity":20.7,"prompt_rate":1900,"decode_rate":180.5,"needles":47,"bytes":2424}}"#;

    pub(in super::super) fn measured(cache: &str) -> Measured {
        Measured::read(&cache.parse().unwrap(), LINE).unwrap()
    }

    pub(in super::super) fn found(measured: Vec<Measured>) -> Record<KvQuality> {
        let (model, text) = ("m".repeat(64), "t".repeat(64));
        let name = "model".to_string();
        let result = KvQuality { name, model, text, contexts: vec![512], chunks: 8, measured };
        Record { head: head(), result }
    }

    #[test]
    fn the_record_has_the_values_of_the_probe() {
        let one = measured("q8_0/turbo4+1");
        assert_eq!((one.context, one.asked.needles, one.base.bytes), (512, 47, 6144));
        assert_eq!((one.cache.as_str(), one.bits), ("q8_0/turbo4+1", 6.3125));
        assert_eq!(Measured::deserialize(&serde_json::json!(one)).unwrap(), one);
    }

    #[test]
    fn a_missing_field_is_named() {
        let cache: Cache = "q8_0/turbo4".parse().unwrap();
        let error = Measured::read(&cache, &LINE.replace("p99", "p98")).unwrap_err();
        assert!(error.contains("missing field `p99`"), "{error}");
        // A NaN divergence is printed as `nan`, which is invalid JSON.
        assert!(Measured::read(&cache, &LINE.replace("0.01", "nan")).is_err());
    }

    #[test]
    fn rates_are_parts_of_those_with_f16() {
        insta::assert_snapshot!(found(vec![measured("q8_0/turbo4")]).text(), @"
        model, 8 chunks of 512 tokens, against an f16 cache (perplexity 20.500, 6144 bytes a token, 2000 and 200 tokens/s), -t 2

        | K/V | bits | bytes a token | KLD mean | median | 99 % | same token | perplexity | needles | prompt | decode |
        |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
        | q8_0/turbo4 | 6.31 | 2424 | 0.01000 | 0.00500 | 0.1000 | 95.0 % | 20.700 | 47 of 48 | 0.95x | 0.90x |
        ");
    }

    #[test]
    fn each_cache_is_a_point() {
        let found = found(vec![measured("q8_0/turbo4"), measured("q8_0/tcq2")]);
        let curves = found.result.curves().curves;
        assert_eq!(curves[1].name, "q8_0/tcq2");
        assert_eq!(curves[0].points, [(6.3125, 0.01)]);
    }
}
