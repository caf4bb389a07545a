//! PURE: oracles that compare the observed results of a round with the expected ones.

mod answer;
mod clock;
mod completion;
mod conversations;
mod drafts;
pub mod log;
mod metrics;
mod numbers;
pub mod queue;
mod rest;
#[cfg(test)]
mod samples;
mod sharing;
mod slots;
mod status;
mod stream;
pub mod tally;
mod views;
mod waits;

use std::collections::BTreeMap;
use std::time::Duration;

use espalier_core::http::Response;
use serde_json::{Value, json};

use self::completion::Completion;
pub use self::drafts::first_of_owners;
pub use self::waits::{cost, longest_silence};
use super::plan::actions::{Action, ActionKind, ConversationAction};
use super::plan::server::{ADAPTERS, ServerPlan};
use super::plan::{Act, Round};
use crate::serving::verdict::Answer;

/// Whether a server without requests is in a correct idle state.
pub fn is_at_rest(server: &ServerPlan, rest: &Rest) -> bool {
    rest::judge(server, 0, rest).is_empty()
}

/// A violation found by an oracle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Name of the oracle.
    pub oracle: &'static str,
    /// The request, and when it was sent.
    pub asked: String,
    /// The expected result.
    pub expected: String,
    /// The actual result.
    pub came: String,
}

impl Finding {
    /// Formats the finding as one line for the gate: `fuzzer` found it, and `replay` is the command that replays its
    /// round.
    pub fn line(&self, fuzzer: &str, replay: &str) -> String {
        let Finding { oracle, asked, expected, came } = self;
        format!("{fuzzer}: {oracle}: {asked}: expected {expected}; got {came} (replay: {replay})")
    }

    /// Human-readable form.
    pub fn lines(&self) -> [String; 3] {
        [
            format!("  {}: {}", self.oracle, self.asked),
            format!("    expected {}", self.expected),
            format!("    got      {}", self.came),
        ]
    }

    /// JSON form.
    pub fn json(&self) -> Value {
        json!({ "oracle": self.oracle, "asked": self.asked, "expected": self.expected, "came": self.came })
    }
}

/// An executed action.
#[derive(Clone, Debug)]
pub struct Played {
    /// Position: act, client, number.
    pub place: (usize, usize, usize),
    /// The action.
    pub action: Action,
    /// The server's own LoRA scales at that time.
    pub own_scales: [f64; ADAPTERS],
    /// Time it was sent, since the round began.
    pub sent: Duration,
    /// The actual result.
    pub response: Response,
    /// Key of its reference in [`Evidence::references`].
    pub reference: Option<String>,
}

impl Played {
    /// Time the response ended, since the round began.
    fn end(&self) -> Duration {
        self.sent + self.response.took
    }
}

/// Answer of the unpaged server to this request alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reference {
    /// The prompt in units: tokens, or less than tokens where there are images. Used only to compare prefixes.
    pub units: Vec<i64>,
    /// Number of prompt tokens.
    pub prompt_tokens: u64,
    /// The answer, as long as the longest requested one.
    pub answer: Option<Answer>,
    /// The answer's tokens as text, in bytes.
    pub pieces: Vec<Vec<u8>>,
    /// The embedding, if one was requested.
    pub vector: Option<Vec<f64>>,
}

/// State of the idle server.
#[derive(Clone, Debug, Default)]
pub struct Rest {
    /// `/props`'s `kv_pool`.
    pub pool: Value,
    /// `/slots`, merged over all API keys.
    pub slots: Value,
    /// `/slots` as each API key sees it.
    pub views: Vec<Value>,
    /// `/metrics`, if the server has it and does not sleep.
    pub scrape: Option<String>,
}

/// All observations of a round.
#[derive(Debug, Default)]
pub struct Evidence {
    /// Every action, in any order.
    pub played: Vec<Played>,
    /// References by name.
    pub references: BTreeMap<String, Reference>,
    /// Answers of servers without earlier requests to the requests of [`first_of_owners`], in that order.
    pub witnesses: Vec<Response>,
    /// Idle state after each act.
    pub rests: Vec<Rest>,
    /// Successive scrapes of `/metrics`.
    pub scrapes: Vec<String>,
    /// The server's log.
    pub log: String,
    /// Exit status of the server, if it ended by itself.
    pub ended: Option<String>,
    /// Maximum by which a token may be less likely than the reference's, in natural logarithms.
    pub tolerance: f64,
}

impl Played {
    /// The LoRA scales in effect.
    pub fn scales(&self, server: &ServerPlan) -> [f64; ADAPTERS] {
        match &self.action.what {
            _ if !server.adapters => [0.0; ADAPTERS],
            ActionKind::Generate(generate) => generate.scales.unwrap_or(self.own_scales),
            _ => self.own_scales,
        }
    }

    /// Describes the action in words.
    pub fn name(&self) -> String {
        let (act, client, number) = self.place;
        let sent = self.sent.as_millis();
        format!("act {act}, client {client}, number {number}, sent at {sent} ms: {}", in_words(&self.action))
    }
}

/// Describes an action by its essential parameters.
fn in_words(action: &Action) -> String {
    let key = action.key.map_or(String::new(), |key| format!(" with key {key}"));
    match &action.what {
        ActionKind::Generate(one) => {
            let prompt = &one.prompt;
            let conversation = one.conversation.map(ConversationAction::id);
            let conversation = conversation.map_or(String::new(), |id| format!(" as {id}"));
            format!(
                "{}{key}{conversation}, {} prompt tokens (family {}, {} of it; own {}; images {:?}), {} to predict, stream {}, \
                 salt {:?}, cache_prompt {}, scales {:?}, id_slot {:?}, n {}; leaves: {:?}",
                one.api.path(),
                prompt.length(),
                prompt.family,
                prompt.kept,
                prompt.own,
                prompt.images,
                one.predict,
                one.stream,
                one.salt,
                one.cache,
                one.scales,
                one.slot,
                one.choices,
                action.leave
            )
        }
        ActionKind::Embed(prompt) => format!("/v1/embeddings{key}, {} tokens", prompt.tokens().len()),
        ActionKind::Slot(slot) => format!("slot {} {} {}{key}", slot.slot, slot.action, slot.file_name()),
        ActionKind::Conversation(one) => {
            format!("{:?} {}{key}", one.order, ConversationAction::id(one.conversation))
        }
        ActionKind::Mistake(mistake, prompt) => format!("{mistake:?}{key}, {} tokens", prompt.length()),
    }
}

/// Runs every oracle.
pub fn judge(round: &Round, evidence: &Evidence, patience: Duration) -> Vec<Finding> {
    let mut findings = Vec::new();
    for played in &evidence.played {
        findings.extend(judge_one(round, evidence, played));
    }
    findings.extend(sharing::judge(round, evidence));
    findings.extend(slots::judge(round, evidence));
    findings.extend(conversations::judge(evidence));
    findings.extend(drafts::judge(round, evidence));
    findings.extend(waits::judge(round, evidence, patience));
    findings.extend(clock::judge(round, evidence));
    findings.extend(
        evidence.rests.iter().enumerate().flat_map(|(act, rest)| rest::judge(&round.server, act, rest)),
    );
    findings.extend(evidence.rests.iter().enumerate().flat_map(|(act, rest)| views::judge(act, rest)));
    findings.extend(metrics::judge(&evidence.scrapes));
    findings.extend(queue::judge(round, evidence));
    findings.extend(log::judge(&evidence.log, evidence.ended.as_deref()));
    findings
}

fn judge_one(round: &Round, evidence: &Evidence, played: &Played) -> Vec<Finding> {
    let mut findings = status::judge(&round.server, played, evidence);
    findings.extend(judge_answer(evidence, played));
    findings
}

/// Judges the answer to a client, including that of a resumed stream.
fn judge_answer(evidence: &Evidence, played: &Played) -> Vec<Finding> {
    let mut findings = Vec::new();
    let reference = played.reference.as_ref().and_then(|name| evidence.references.get(name));
    match (&played.action.what, reference) {
        (ActionKind::Generate(generate), reference) => {
            let completion = Completion::read(generate, &played.response);
            if !completion.wrong.is_empty() && conversations::may_have_been_replaced(evidence, played) {
                return findings;
            }
            findings.extend(completion.wrong.iter().map(|wrong| {
                finding("stream", played, "a stream that its API's clients can read", wrong.clone())
            }));
            if let Some(reference) =
                reference.filter(|_| completion.status == Some(200) && completion.is_whole)
            {
                findings.extend(answer::judge(played, generate, &completion, reference, evidence.tolerance));
                findings.extend(numbers::judge(played, generate, &completion, reference));
            }
        }
        (ActionKind::Embed(_), Some(reference)) => findings.extend(answer::judge_vector(played, reference)),
        _ => {}
    }
    findings
}

fn finding(
    oracle: &'static str,
    played: &Played,
    expected: impl Into<String>,
    came: impl Into<String>,
) -> Finding {
    Finding { oracle, asked: played.name(), expected: expected.into(), came: shorten(&came.into()) }
}

/// Truncates a body, which may be long.
fn shorten(text: &str) -> String {
    const MAX_CHARS: usize = 600;
    match text.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => format!("{} ...", &text[..at]),
        None => text.to_string(),
    }
}

fn act_of<'a>(round: &'a Round, played: &Played) -> &'a Act {
    &round.acts[played.place.0]
}
