//! The probe's measurements of caches, and their JSON form.

use serde_json::{Value, json};

use super::Cache;

/// One run of the bench.
pub(super) struct KvQualityRun {
    /// File name of the model, without the extension.
    pub(super) name: String,
    /// SHA-256 of the model.
    pub(super) model: String,
    /// SHA-256 of the text.
    pub(super) text: String,
    pub(super) contexts: Vec<usize>,
    /// Number of chunks at each context.
    pub(super) chunks: usize,
    pub(super) threads: usize,
    pub(super) processor: Option<String>,
    pub(super) measured: Vec<Measured>,
}

/// The measurement of one cache at one context, as the probe prints it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measured {
    pub(super) cache: String,
    /// Context length in tokens.
    pub(super) context: u64,
    pub(super) divergence: Divergence,
    /// Number of facts that were asked for.
    pub(super) needles: u64,
    /// The same measurements with an f16 cache.
    pub(super) base: Side,
    pub(super) asked: Side,
}

/// KL divergence of the token probabilities from those with an f16 cache, in nats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Divergence {
    pub(super) mean: f64,
    pub(super) median: f64,
    /// 99th percentile.
    pub(super) p99: f64,
    /// Fraction of the tokens whose most likely successor is the same.
    pub(super) same: f64,
}

/// The measurements of one cache.
#[derive(Clone, Copy, Debug, PartialEq)]
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
        let line: Value = serde_json::from_str(line.trim()).map_err(|error| format!("{error}: {line}"))?;
        Measured::of_json(cache.to_string(), &line)
    }

    /// Parses a stored result.
    pub(super) fn of_json(cache: String, line: &Value) -> Result<Measured, String> {
        Ok(Measured {
            cache,
            context: whole(line, "context")?,
            divergence: Divergence {
                mean: number(line, "mean")?,
                median: number(line, "median")?,
                p99: number(line, "p99")?,
                same: number(line, "same")?,
            },
            needles: whole(line, "needles")?,
            base: Side::of_json(&line["base"])?,
            asked: Side::of_json(&line["asked"])?,
        })
    }

    fn to_json(&self) -> Value {
        let Divergence { mean, median, p99, same } = self.divergence;
        json!({ "cache": self.cache, "context": self.context, "mean": mean, "median": median, "p99": p99,
                "same": same, "needles": self.needles, "bits": self.bits(),
                "base": self.base.to_json(), "asked": self.asked.to_json() })
    }

    /// Returns the average number of bits per value of K and V.
    pub(super) fn bits(&self) -> f64 {
        16.0 * self.asked.bytes as f64 / self.base.bytes as f64
    }
}

impl Side {
    fn of_json(side: &Value) -> Result<Side, String> {
        Ok(Side {
            perplexity: number(side, "perplexity")?,
            needles: whole(side, "needles")?,
            bytes: whole(side, "bytes")?,
            prompt_rate: number(side, "prompt_rate")?,
            decode_rate: number(side, "decode_rate")?,
        })
    }

    fn to_json(self) -> Value {
        let Side { perplexity, needles, bytes, prompt_rate, decode_rate } = self;
        json!({ "perplexity": perplexity, "needles": needles, "bytes": bytes,
                "prompt_rate": prompt_rate, "decode_rate": decode_rate })
    }
}

fn number(of: &Value, key: &str) -> Result<f64, String> {
    of[key].as_f64().ok_or_else(|| format!("no number `{key}` in {of}"))
}

fn whole(of: &Value, key: &str) -> Result<u64, String> {
    of[key].as_u64().ok_or_else(|| format!("no integer `{key}` in {of}"))
}

impl KvQualityRun {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "name": self.name, "model": self.model, "text": self.text, "contexts": self.contexts,
            "chunks": self.chunks, "threads": self.threads, "processor": self.processor,
            "measured": self.measured.iter().map(Measured::to_json).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const LINE: &str = r#"{"keys":"q8_0","values":"turbo4","context":512,"threads":2,"judged":1024,"needles":48,
        "mean":0.01,"median":0.005,"p99":0.1,"same":0.95,
        "base":{"perplexity":20.5,"prompt_rate":2000,"decode_rate":200,"needles":48,"bytes":6144},
        "asked":{"perplexity":20.7,"prompt_rate":1900,"decode_rate":180.5,"needles":47,"bytes":2424}}"#;

    pub(in super::super) fn measured(cache: &str) -> Measured {
        Measured::read(&cache.parse().unwrap(), LINE).unwrap()
    }

    pub(in super::super) fn found(measured: Vec<Measured>) -> KvQualityRun {
        let processor = Some("P".to_string());
        let (model, text) = ("m".repeat(64), "t".repeat(64));
        let name = "model".to_string();
        KvQualityRun { name, model, text, contexts: vec![512], chunks: 8, threads: 2, processor, measured }
    }

    #[test]
    fn what_is_kept_is_what_the_probe_said() {
        let one = measured("q8_0/turbo4+1");
        assert_eq!((one.context, one.asked.needles, one.base.bytes), (512, 47, 6144));
        assert_eq!(one.bits(), 6.3125);
        assert_eq!(Measured::of_json(one.cache.clone(), &one.to_json()).unwrap(), one);
    }

    #[test]
    fn what_is_missing_is_named() {
        let cache: Cache = "q8_0/turbo4".parse().unwrap();
        let error = Measured::read(&cache, &LINE.replace("p99", "p98")).unwrap_err();
        assert!(error.contains("no number `p99`"), "{error}");
        // A NaN divergence is printed as `nan`, which is invalid JSON.
        assert!(Measured::read(&cache, &LINE.replace("0.01", "nan")).is_err());
    }
}
