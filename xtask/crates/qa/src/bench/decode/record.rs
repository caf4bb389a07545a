//! PURE: the result of the decode bench, compared with stock.

use serde::{Deserialize, Serialize};

use super::{FEATURES, PROMPT, SEQUENCES, STEPS, WEIGHTS, Workload};
use crate::bench::history::History;
use crate::bench::record::{BenchResult, Head, Plot};
use crate::report::bars::{Bar, Bars};
use crate::report::samples::Samples;
use crate::report::table::Table;

/// All cases.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::bench) struct Decode {
    #[serde(flatten)]
    workload: Workload,
    /// The enabled features.
    pub(in crate::bench) features: String,
    /// Tokens of each prompt.
    prompt: u32,
    /// Tokens that each sequence decodes.
    steps: u32,
    pub(in crate::bench) cases: Vec<Case>,
    failures: Vec<String>,
}

/// One model, and one number of sequences.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::bench) struct Case {
    pub(in crate::bench) weights: String,
    pub(in crate::bench) sequences: u32,
    /// Our build, with the features.
    pub(in crate::bench) enabled: Rates,
    pub(in crate::bench) stock: Rates,
    /// Our build, with everything off.
    pub(super) disabled: Rates,
}

/// Tokens per second of all sequences together, in each round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::bench) struct Rates {
    pub(in crate::bench) decode: Samples,
    prompt: Samples,
}

/// Weights of the models for which goals are set.
const GOAL_WEIGHTS: &str = "q8_0";

/// The smallest number of sequences for which the goal of decoding is set.
const GOAL_SEQUENCES: u32 = 8;

/// Goal: decoding with the features, as a multiple of stock's.
const MIN_DECODE: f64 = 1.3;

/// Goal: prompts are not slower than stock's. Two runs of one program differ by up to 3 %.
const MIN_PROMPT: f64 = 0.97;

impl Rates {
    pub(super) fn push(&mut self, decode: f64, prompt: f64) {
        self.decode.0.push(decode);
        self.prompt.0.push(prompt);
    }
}

impl Case {
    pub(super) fn new(weights: &str, sequences: u32) -> Case {
        let [enabled, stock, disabled] = [(); 3].map(|()| Rates::default());
        Case { weights: weights.to_string(), sequences, enabled, stock, disabled }
    }

    pub(super) fn title(&self) -> String {
        let s = if self.sequences == 1 { "" } else { "s" };
        format!("{}, {} sequence{s}", self.weights, self.sequences)
    }

    fn has_goal(&self) -> bool {
        self.weights == GOAL_WEIGHTS
    }

    /// Returns one line for each goal that is missed.
    fn violations(&self) -> Vec<String> {
        let Rates { decode, prompt } = &self.enabled;
        let decode = ("decoding", decode.ratio_to(&self.stock.decode), MIN_DECODE);
        let prompt = ("prompts", prompt.ratio_to(&self.stock.prompt), MIN_PROMPT);
        let decode = Some(decode).filter(|_| self.sequences >= GOAL_SEQUENCES);
        let goals = decode.into_iter().chain([prompt]).filter(|_| self.has_goal());
        let line = |(what, ratio, min): (&str, Option<f64>, f64)| {
            let ratio = ratio.filter(|ratio| *ratio < min)?;
            Some(format!("{}: {what} at {ratio:.2}x stock; expected {min:.2}x", self.title()))
        };
        goals.filter_map(line).collect()
    }

    fn table(&self, features: &str) -> String {
        let columns = "what | decode tokens/s, median | min - max | of stock | prompt tokens/s, median | min - max | \
                       of stock";
        let programs = [(features, &self.enabled), ("stock", &self.stock), ("features off", &self.disabled)];
        let row = |(name, rates): (&str, &Rates)| {
            let decode = cells(&rates.decode, &self.stock.decode);
            format!("{name} | {decode} | {}", cells(&rates.prompt, &self.stock.prompt))
        };
        format!("{}\n\n{}", self.title(), Table::new(columns, programs.map(row)))
    }

    /// Returns a bar for decoding and one for prompts.
    fn bars(&self) -> Vec<Bar> {
        let bar = |what: &str, rates: &Samples, stock: &Samples| {
            let ratios = rates.ratios_to(stock);
            let note = format!("{:.2}x, {:.1} tokens/s", ratios.median()?, rates.median()?);
            Bar::of(format!("{}: {what}", self.title()), &ratios, note)
        };
        let Rates { decode, prompt } = &self.enabled;
        let bars = [bar("decoding", decode, &self.stock.decode), bar("prompts", prompt, &self.stock.prompt)];
        bars.into_iter().flatten().collect()
    }
}

/// Formats the median, the extremes, and the median of the ratios to stock.
fn cells(rates: &Samples, stock: &Samples) -> String {
    match (rates.median(), rates.extremes(), rates.ratio_to(stock)) {
        (Some(median), Some((low, high)), Some(ratio)) => {
            format!("{median:.1} | {low:.1} - {high:.1} | {ratio:.2}x")
        }
        _ => "- | - | -".to_string(),
    }
}

impl Decode {
    /// Adds one line for every goal that is missed.
    pub(super) fn judged(workload: Workload, features: String, cases: Vec<Case>) -> Decode {
        let failures = cases.iter().flat_map(Case::violations).collect();
        Decode { workload, features, prompt: PROMPT, steps: STEPS, cases, failures }
    }

    fn conditions(&self, head: &Head) -> String {
        let (Decode { prompt, steps, .. }, pin, machine) = (self, &head.pin, head.machine());
        format!(
            "llama.cpp {pin}, qwen35, 4 layers of a 2 B model, prompts of {prompt} tokens, {steps} decoded in each \
             sequence, -t {}, {machine}",
            head.threads()
        )
    }

    /// Whether the features are the default.
    pub(in crate::bench) fn has_all_features(&self) -> bool {
        self.features == FEATURES.join(",")
    }

    /// Returns the plot's name; default values are not part of it.
    fn plot_name(&self) -> String {
        let Workload { weights, sequences } = &self.workload;
        let with = if self.has_all_features() { String::new() } else { format!("-{}", self.features) };
        let with = with.replace(',', "-");
        if *weights == WEIGHTS && *sequences == SEQUENCES {
            return format!("decode{with}");
        }
        let sequences: Vec<String> = sequences.iter().map(u32::to_string).collect();
        format!("decode{with}-{}-{}", weights.join("-"), sequences.join("-"))
    }
}

impl BenchResult for Decode {
    const HISTORY: History = History {
        bench: "decode",
        identity: "trees processor threads weights sequences features prompt steps",
    };

    fn tables(&self, head: &Head) -> String {
        let tables: Vec<String> = self.cases.iter().map(|case| case.table(&self.features)).collect();
        let is_judged = self.cases.iter().any(Case::has_goal);
        let note = format!("\nnot judged: goals are set for {GOAL_WEIGHTS} weights only");
        let note = if is_judged { "" } else { note.as_str() };
        format!("{}\n\n{}{note}", self.conditions(head), tables.join("\n"))
    }

    /// Draws the speed with the features as a multiple of stock's.
    fn plot(&self, head: &Head) -> Option<Plot> {
        let warning = if head.quiet == Some(false) { ", MACHINE NOT QUIET" } else { "" };
        let bars = Bars {
            title: format!("Speed with {}, as a multiple of stock's", self.features),
            subtitle: format!("{}{warning}", self.conditions(head)),
            bars: self.cases.iter().flat_map(Case::bars).collect(),
            line: Some((MIN_DECODE, format!("goal of decoding {MIN_DECODE:.1}x"))),
        };
        Some(Plot { name: self.plot_name(), svg: bars.svg() })
    }

    fn failures(&self) -> &[String] {
        &self.failures
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::bench::record::Record;
    use crate::bench::record::tests::head;

    fn workload() -> Workload {
        Workload { weights: WEIGHTS.map(String::from).to_vec(), sequences: SEQUENCES.to_vec() }
    }

    /// Two rounds in which our build decodes `decode` tokens and computes `prompt` prompt tokens while stock does 100.
    fn case(weights: &str, sequences: u32, decode: f64, prompt: f64) -> Case {
        let mut case = Case::new(weights, sequences);
        for round in [1.0, 2.0] {
            case.enabled.push(round * decode, round * prompt);
            case.stock.push(round * 100.0, round * 100.0);
            case.disabled.push(round * 100.0, round * 100.0);
        }
        case
    }

    fn judged(workload: Workload, cases: Vec<Case>) -> Decode {
        Decode::judged(workload, FEATURES.join(","), cases)
    }

    fn violations(weights: &str, sequences: u32, decode: f64, prompt: f64) -> String {
        case(weights, sequences, decode, prompt).violations().join("; ")
    }

    #[test]
    fn the_table() {
        let result = judged(workload(), vec![case("q8_0", 8, 125.0, 101.0)]);
        insta::assert_snapshot!(Record { head: head(), result }.text(), @"
        llama.cpp v1, qwen35, 4 layers of a 2 B model, prompts of 64 tokens, 12 decoded in each sequence, -t 2, Some CPU

        q8_0, 8 sequences

        | what | decode tokens/s, median | min - max | of stock | prompt tokens/s, median | min - max | of stock |
        |---|--:|--:|--:|--:|--:|--:|
        | gdn-flat-output,gdn-recurrence,mul-mat | 187.5 | 125.0 - 250.0 | 1.25x | 151.5 | 101.0 - 202.0 | 1.01x |
        | stock | 150.0 | 100.0 - 200.0 | 1.00x | 150.0 | 100.0 - 200.0 | 1.00x |
        | features off | 150.0 | 100.0 - 200.0 | 1.00x | 150.0 | 100.0 - 200.0 | 1.00x |

        not good: q8_0, 8 sequences: decoding at 1.25x stock; expected 1.30x
        ");
    }

    #[test]
    fn several_sequences_have_to_be_faster_and_prompts_not_slower() {
        assert_eq!(violations("q8_0", 32, 131.0, 98.0), "");
        assert_eq!(violations("q8_0", 1, 100.0, 100.0), "", "one sequence has no projection to flatten");
        assert_eq!(violations("q4_0", 8, 100.0, 50.0), "", "goals are set for q8_0");
        assert_eq!(
            violations("q8_0", 8, 120.0, 96.0),
            "q8_0, 8 sequences: decoding at 1.20x stock; expected 1.30x; \
             q8_0, 8 sequences: prompts at 0.96x stock; expected 0.97x"
        );
        assert_eq!(
            violations("q8_0", 1, 100.0, 90.0),
            "q8_0, 1 sequence: prompts at 0.90x stock; expected 0.97x"
        );
    }

    #[test]
    fn a_run_without_a_goal_says_so() {
        let text = |weights: &str| {
            let result = judged(workload(), vec![case(weights, 8, 100.0, 50.0)]);
            Record { head: head(), result }.text()
        };
        let note = "|\n\nnot judged: goals are set for q8_0 weights only";
        assert!(text("q4_0").ends_with(note), "{}", text("q4_0"));
        assert!(!text("q8_0").contains("not judged"), "{}", text("q8_0"));
    }

    #[test]
    fn the_plot_has_bars_for_decoding_and_prompts() {
        let cases = || vec![case("q8_0", 8, 150.0, 100.0)];
        let plot = judged(workload(), cases()).plot(&head()).unwrap();
        assert_eq!(plot.name, "decode");
        for words in ["q8_0, 8 sequences: decoding", "1.50x, 225.0 tokens/s", "goal of decoding 1.3x"] {
            assert!(plot.svg.contains(words), "{words}: {}", plot.svg);
        }
        let other = Workload { sequences: vec![8, 32], ..workload() };
        assert_eq!(judged(other.clone(), cases()).plot_name(), "decode-q8_0-q4_0-8-32");
        let some = |workload| Decode::judged(workload, "a,b".to_string(), cases()).plot_name();
        assert_eq!([some(workload()), some(other)], ["decode-a-b", "decode-a-b-q8_0-q4_0-8-32"]);
    }

    #[test]
    fn a_record_has_every_round() {
        let run =
            json!(Record { head: head(), result: judged(workload(), vec![case("q8_0", 8, 150.0, 100.0)]) });
        assert_eq!((&run["weights"], &run["steps"]), (&json!(["q8_0", "q4_0"]), &json!(STEPS)));
        assert_eq!(run["cases"][0]["enabled"]["decode"], json!([150.0, 300.0]));
    }
}
