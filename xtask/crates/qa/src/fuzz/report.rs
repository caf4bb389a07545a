//! PURE: report of the findings, for people and machines.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::judge::Finding;
use super::judge::tally::{self, Tally};

/// Report of all rounds.
#[derive(Clone, Debug)]
pub struct FuzzReport {
    /// The command that plays rounds with the same program, without their seed.
    command: String,
    /// Rounds in the order in which they ran.
    pub rounds: Vec<RoundReport>,
}

/// Report of one round.
#[derive(Clone, Debug)]
pub struct RoundReport {
    /// Its seed.
    pub seed: u64,
    /// Its theme.
    pub theme: String,
    /// Name of the model.
    pub model: &'static str,
    /// Command line of its server.
    pub server: String,
    /// Number of executed actions.
    pub actions: usize,
    /// Counts of the events that oracles judge.
    pub tally: Tally,
    /// Events that its server was expected to have: the kind of the model's memory, and the name of the count.
    pub expected: Vec<(&'static str, &'static str)>,
    /// Time from the start of its server to the last verdict.
    pub took: Duration,
    /// Findings.
    pub findings: Vec<Finding>,
}

/// Maximum findings shown per oracle and round; one cause often has many effects.
const SHOWN: usize = 3;

impl FuzzReport {
    /// Builds an empty report. `command` plays rounds with the same program.
    pub fn new(command: String) -> FuzzReport {
        FuzzReport { command, rounds: Vec::new() }
    }

    /// Number of findings.
    pub fn findings(&self) -> usize {
        self.rounds.iter().map(|round| round.findings.len()).sum()
    }

    /// Returns the counts summed over all rounds.
    pub fn tally(&self) -> Tally {
        let mut all = Tally::new();
        self.rounds.iter().for_each(|round| tally::add(&mut all, &round.tally));
        all
    }

    fn replay(&self, seed: u64) -> String {
        format!("{} --seed {seed} --rounds 1", self.command)
    }

    /// Returns one line per finding.
    pub fn lines(&self) -> Vec<String> {
        let of_round = |round: &RoundReport| {
            let replay = self.replay(round.seed);
            round.findings.iter().map(|one| one.line("fuzz", &replay)).collect::<Vec<_>>()
        };
        self.rounds.iter().flat_map(of_round).collect()
    }

    /// Returns a line for each event that was expected in rounds with a kind of memory and occurred in none of them. A
    /// feature that is off would look like that, and nothing was tested.
    pub fn unreached(&self) -> Vec<String> {
        let mut counts = BTreeMap::<(&str, &str), (u64, Vec<String>)>::new();
        for round in &self.rounds {
            for (memory, event) in &round.expected {
                let (count, seeds) = counts.entry((*memory, *event)).or_default();
                *count += round.tally.get(event).copied().unwrap_or(0);
                seeds.push(round.seed.to_string());
            }
        }
        let unreached = counts.into_iter().filter(|(_, (count, _))| *count == 0);
        let line = |((memory, event), (_, seeds)): ((&str, &str), (u64, Vec<String>))| {
            format!("fuzz: {memory}: 0 {event} in the rounds with the seeds {}", seeds.join(", "))
        };
        unreached.map(line).collect()
    }

    /// Returns the findings of the last round, if any.
    pub fn findings_of_last(&self) -> Option<String> {
        let round = self.rounds.last().filter(|round| !round.findings.is_empty())?;
        Some(self.lines_of(round).join("\n"))
    }

    fn lines_of(&self, round: &RoundReport) -> Vec<String> {
        let RoundReport { seed, theme, model, actions, .. } = round;
        let (took, found) = (round.took.as_secs_f64(), round.findings.len());
        let mut lines = vec![format!(
            "seed {seed}, {theme}, {model}: {actions} actions in {took:.1} s, {found} findings"
        )];
        if found > 0 {
            lines.push(format!("  server: {}", round.server));
            lines.push(format!("  replay: {}", self.replay(*seed)));
        }
        lines.extend(shown(&round.findings));
        lines
    }

    /// Human-readable form.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        for round in &self.rounds {
            lines.extend(self.lines_of(round));
        }
        lines.extend(self.tally().iter().map(|(name, count)| format!("{count} {name}")));
        lines.push(format!("{} rounds, {} findings", self.rounds.len(), self.findings()));
        lines.join("\n")
    }

    /// JSON form, complete.
    pub fn json(&self) -> Value {
        let round = |one: &RoundReport| {
            json!({ "seed": one.seed, "theme": one.theme, "model": one.model, "server": one.server,
                    "actions": one.actions, "seconds": one.took.as_secs_f64(), "replay": self.replay(one.seed),
                    "tally": one.tally, "findings": one.findings.iter().map(Finding::json).collect::<Vec<_>>() })
        };
        json!({ "rounds": self.rounds.iter().map(round).collect::<Vec<_>>(), "tally": self.tally(), "findings": self.findings() })
    }
}

fn shown(findings: &[Finding]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut oracles: Vec<&str> = findings.iter().map(|one| one.oracle).collect();
    oracles.sort_unstable();
    oracles.dedup();
    for oracle in oracles {
        let of_oracle: Vec<&Finding> = findings.iter().filter(|one| one.oracle == oracle).collect();
        for one in of_oracle.iter().take(SHOWN) {
            lines.extend(one.lines());
        }
        if of_oracle.len() > SHOWN {
            lines.push(format!("  {oracle}: and {} more", of_oracle.len() - SHOWN));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(seed: u64, memory: &'static str, restored: u64) -> RoundReport {
        RoundReport {
            seed,
            theme: "Kept".to_string(),
            model: "qwen35",
            server: "llama-server".to_string(),
            actions: 5,
            tally: [("snapshots restored", restored)].into_iter().filter(|(_, count)| *count > 0).collect(),
            expected: vec![(memory, "snapshots restored")],
            took: Duration::from_secs(8),
            findings: Vec::new(),
        }
    }

    #[test]
    fn an_event_that_no_round_reached_is_named_with_its_seeds() {
        let unreached = |rounds| FuzzReport { command: "fuzz".to_string(), rounds }.unreached();
        // One round with each kind of memory is enough.
        assert!(unreached(vec![round(1, "states", 0), round(2, "states", 3)]).is_empty());
        let found = unreached(vec![round(1, "states", 0), round(2, "states", 0), round(3, "windows", 1)]);
        assert_eq!(found, ["fuzz: states: 0 snapshots restored in the rounds with the seeds 1, 2"]);
    }

    #[test]
    fn a_finding_has_its_seed_and_how_to_see_it_again() {
        let finding = Finding {
            oracle: "rest",
            asked: "after act 1".to_string(),
            expected: "no block in use".to_string(),
            came: "3".to_string(),
        };
        let round = RoundReport {
            server: "llama-server -np 2".to_string(),
            tally: [("answers judged", 4)].into(),
            findings: vec![finding; 5],
            ..round(9, "states", 0)
        };
        let report = FuzzReport { command: "fuzz".to_string(), rounds: vec![round] };
        let text = report.text();
        assert!(
            text.contains("seed 9, Kept, qwen35: 5 actions")
                && report.json()["rounds"][0]["model"] == "qwen35"
        );
        assert!(text.contains("--seed 9 --rounds 1") && text.contains("llama-server -np 2"), "{text}");
        assert!(text.contains("and 2 more") && text.ends_with("1 rounds, 5 findings"), "{text}");
        assert!(text.contains("4 answers judged") && report.json()["tally"]["answers judged"] == 4, "{text}");
        assert_eq!(report.json()["rounds"][0]["findings"].as_array().unwrap().len(), 5);
        assert!(report.lines()[0].contains("expected no block in use; got 3"));
        assert!(report.findings_of_last().unwrap().starts_with("seed 9, Kept"));
    }
}
