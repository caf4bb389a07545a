//! PURE: report of the findings and of the size at which each family ended, for people and machines.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::judge::{Evidence, Observation};
use super::plan::regressions;
use crate::fuzz::judge::Finding;

/// Report of all rounds.
#[derive(Clone, Debug)]
pub struct RequestFuzzReport {
    /// The command that plays rounds with the same program, without their families and seed.
    command: String,
    /// Rounds in the order in which they ran.
    pub rounds: Vec<RequestRoundReport>,
}

/// Report of one round.
#[derive(Clone, Debug)]
pub struct RequestRoundReport {
    /// Its seed.
    pub seed: u64,
    /// Values of `--family`.
    pub chosen: Vec<String>,
    /// Names of the families in the request.
    pub families: Vec<&'static str>,
    /// Family and carrier in words.
    pub words: String,
    /// Command line of the server.
    pub server: String,
    /// Largest size that was answered with 200.
    pub accepted: Option<usize>,
    /// First size that was refused, with the status and the message.
    pub refused: Option<(usize, u16, String)>,
    /// Maximum time of an answer.
    pub slowest: Duration,
    /// Maximum time of an answer to the other client.
    pub other: Duration,
    /// Peak memory above that of the idle server, in bytes.
    pub growth: u64,
    /// Time from the start of the server to the last verdict.
    pub took: Duration,
    /// Findings.
    pub findings: Vec<Finding>,
}

impl RequestRoundReport {
    /// Adds sizes, times and memory from the evidence.
    pub fn summarize(mut self, evidence: &Evidence) -> RequestRoundReport {
        for one in &evidence.observations {
            self.add(one, evidence.rest);
        }
        self
    }

    fn add(&mut self, one: &Observation, rest: u64) {
        match one.status() {
            Some((200, _)) => self.accepted = Some(one.size),
            Some((status, message)) if self.refused.is_none() => {
                self.refused = Some((one.size, status, message))
            }
            _ => {}
        }
        self.slowest = self.slowest.max(one.response.took);
        self.other = self.other.max(one.other.longest);
        self.growth = self.growth.max(one.peak.saturating_sub(rest));
    }

    fn line(&self) -> String {
        let accepted =
            self.accepted.map_or("never answered".to_string(), |size| format!("answered up to {size}"));
        let refused = self.refused.as_ref().map_or(String::new(), |(size, status, message)| {
            format!(", {status} at {size}: {}", one_line(message))
        });
        let (slowest, other, growth) =
            (self.slowest.as_secs_f64(), self.other.as_secs_f64(), self.growth >> 20);
        format!(
            "seed {}, {}: {accepted}{refused}; slowest {slowest:.2} s, others {other:.2} s, memory +{growth} MiB, {} findings",
            self.seed,
            self.words,
            self.findings.len()
        )
    }
}

impl RequestFuzzReport {
    /// Builds an empty report. `command` plays rounds with the same program.
    pub fn new(command: String) -> RequestFuzzReport {
        RequestFuzzReport { command, rounds: Vec::new() }
    }

    /// Number of findings.
    pub fn findings(&self) -> usize {
        self.rounds.iter().map(|round| round.findings.len()).sum()
    }

    fn replay(&self, round: &RequestRoundReport) -> String {
        let families: String = round.chosen.iter().map(|name| format!(" --family {name}")).collect();
        format!("{}{families} --seed {} --rounds 1", self.command, round.seed)
    }

    /// Returns one line per finding.
    pub fn lines(&self) -> Vec<String> {
        let of_round = |round: &RequestRoundReport| {
            let replay = self.replay(round);
            round.findings.iter().map(|one| one.line("fuzz requests", &replay)).collect::<Vec<_>>()
        };
        self.rounds.iter().flat_map(of_round).collect()
    }

    /// Returns the findings of the last round, if any.
    pub fn findings_of_last(&self) -> Option<String> {
        let round = self.rounds.last().filter(|round| !round.findings.is_empty())?;
        Some(self.lines_of(round).join("\n"))
    }

    fn lines_of(&self, round: &RequestRoundReport) -> Vec<String> {
        let mut lines = vec![round.line()];
        if !round.findings.is_empty() {
            lines.push(format!("  server: {}", round.server));
            lines.push(format!("  replay: {}", self.replay(round)));
        }
        lines.extend(round.findings.iter().flat_map(Finding::lines));
        lines
    }

    /// Human-readable form.
    pub fn text(&self) -> String {
        let mut lines: Vec<String> = self.rounds.iter().flat_map(|round| self.lines_of(round)).collect();
        lines.extend(self.reminder());
        lines.push(format!("{} rounds, {} findings", self.rounds.len(), self.findings()));
        lines.join("\n")
    }

    /// Names the families of the rounds with findings in which there is no family that the gate plays.
    fn reminder(&self) -> Option<String> {
        let with_findings = self.rounds.iter().filter(|round| !round.findings.is_empty());
        let is_new =
            |round: &&RequestRoundReport| !round.families.iter().any(|name| regressions::is_in_gate(name));
        let names: BTreeSet<&str> =
            with_findings.filter(is_new).flat_map(|round| round.families.clone()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let text = "the gate does not play these families: add them to plan/regressions.rs with the fix: ";
        (!names.is_empty()).then(|| format!("{text}{}", names.join(", ")))
    }

    /// JSON form.
    pub fn json(&self) -> Value {
        let round = |one: &RequestRoundReport| {
            json!({ "seed": one.seed, "request": one.words, "server": one.server, "accepted": one.accepted,
                    "refused": one.refused, "slowest_seconds": one.slowest.as_secs_f64(),
                    "other_seconds": one.other.as_secs_f64(), "growth_bytes": one.growth,
                    "seconds": one.took.as_secs_f64(), "replay": self.replay(one),
                    "findings": one.findings.iter().map(Finding::json).collect::<Vec<_>>() })
        };
        json!({ "rounds": self.rounds.iter().map(round).collect::<Vec<_>>(), "findings": self.findings() })
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().take(24).collect::<Vec<_>>().join(" ").chars().take(160).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(findings: Vec<Finding>) -> RequestRoundReport {
        RequestRoundReport {
            seed: 9,
            chosen: vec!["prompts".to_string()],
            families: vec!["prompts"],
            words: "prompts as a request of its own".to_string(),
            server: "llama-server -np 2".to_string(),
            accepted: Some(4096),
            refused: Some((8192, 400, "too many\nprompts".to_string())),
            slowest: Duration::from_millis(1500),
            other: Duration::from_millis(20),
            growth: 7 << 20,
            took: Duration::from_secs(2),
            findings,
        }
    }

    #[test]
    fn a_round_says_where_its_family_ended() {
        let report = RequestFuzzReport { command: "fuzz".to_string(), rounds: vec![round(Vec::new())] };
        let text = report.text();
        assert!(
            text.contains("answered up to 4096, 400 at 8192: too many prompts; slowest 1.50 s"),
            "{text}"
        );
        assert!(text.contains("memory +7 MiB") && text.ends_with("1 rounds, 0 findings"), "{text}");
        assert_eq!((report.findings_of_last(), report.lines().len()), (None, 0));
    }

    #[test]
    fn a_finding_has_its_seed_and_how_to_see_it_again() {
        let finding = Finding {
            oracle: "memory",
            asked: "prompts".to_string(),
            expected: "at most 300 MiB".to_string(),
            came: "900 MiB".to_string(),
        };
        let report = RequestFuzzReport { command: "fuzz".to_string(), rounds: vec![round(vec![finding])] };
        assert!(report.text().contains("--family prompts --seed 9 --rounds 1"), "{}", report.text());
        assert!(report.lines()[0].contains("memory: prompts: expected at most 300 MiB; got 900 MiB"));
        assert!(report.findings_of_last().unwrap().starts_with("seed 9, prompts"));
        assert_eq!(report.json()["rounds"][0]["findings"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn a_finding_of_a_family_outside_the_gate_has_a_reminder() {
        let finding = Finding {
            oracle: "memory",
            asked: "prompts".to_string(),
            expected: "at most 300 MiB".to_string(),
            came: "900 MiB".to_string(),
        };
        let with = |families: Vec<&'static str>, findings: Vec<Finding>| {
            let round = RequestRoundReport { families, ..round(findings) };
            RequestFuzzReport { command: "fuzz".to_string(), rounds: vec![round] }.reminder()
        };
        let reminder = with(vec!["prompts"], vec![finding.clone()]).unwrap();
        assert!(reminder.ends_with("with the fix: prompts"), "{reminder}");
        assert_eq!(with(vec!["query"], vec![finding]), None);
        assert_eq!(with(vec!["prompts"], Vec::new()), None);
    }
}
