//! Oracle for the token counts in answers.

use super::completion::Completion;
use super::{Finding, Played, Reference, finding};
use crate::fuzz::plan::actions::Generate;

/// Checks the reported counts against the prompt and the answer.
pub fn judge(
    played: &Played,
    generate: &Generate,
    completion: &Completion,
    reference: &Reference,
) -> Vec<Finding> {
    let numbers = completion.numbers;
    let mut findings = Vec::new();
    let mut hold = |what: &str, expected: u64, came: Option<u64>| {
        if came.is_some_and(|came| came != expected) {
            findings.push(finding("numbers", played, format!("{what} {expected}"), format!("{numbers:?}")));
        }
    };
    hold("prompt tokens", reference.prompt_tokens, numbers.prompt);
    if generate.choices == 1 {
        let timed = numbers.timed.map(|(cached, computed)| cached + computed);
        hold("cache_n + prompt_n", reference.prompt_tokens, timed);
        let tokens = completion.choices.first().and_then(|choice| choice.tokens.as_ref());
        if let Some(tokens) = tokens {
            hold("tokens of the answer", tokens.len() as u64, numbers.completion);
        }
        if let (Some((timed, _)), Some(cached)) = (numbers.timed, numbers.cached) {
            hold("cached tokens, as in timings,", timed, Some(cached));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::judge::completion::{Choice, Numbers};
    use crate::fuzz::judge::samples;

    fn findings(numbers: Numbers) -> usize {
        let choices = vec![Choice { tokens: Some(vec![1, 2, 3]), ..Choice::default() }];
        let completion = Completion { numbers, choices, ..Completion::default() };
        let reference = Reference { prompt_tokens: 100, ..Reference::default() };
        let played = samples::played(samples::generate());
        judge(&played, &samples::generate(), &completion, &reference).len()
    }

    #[test]
    fn counts_have_to_agree() {
        let right = Numbers {
            prompt: Some(100),
            completion: Some(3),
            cached: Some(64),
            timed: Some((64, 36)),
            ..Numbers::default()
        };
        assert_eq!(findings(right), 0);
        assert_eq!(findings(Numbers::default()), 0);
        assert_eq!(findings(Numbers { timed: Some((64, 356)), ..right }), 1);
        assert_eq!(findings(Numbers { cached: Some(0), ..right }), 1);
        assert_eq!(findings(Numbers { completion: Some(4), ..right }), 1);
        assert_eq!(findings(Numbers { prompt: Some(99), ..right }), 1);
    }
}
