//! Timing oracle: timing must not reveal what others sent, so a foreign prompt takes as long as a cold one.

use super::{Evidence, Finding, Played};
use crate::fuzz::plan::Round;
use crate::fuzz::plan::actions::ActionKind;
use crate::fuzz::plan::server::Theme;

/// A foreign prompt that takes less than this fraction of a cold one's time was served from the cache.
const LEAST_PART: f64 = 0.5;

/// Compares the median times of cold and foreign prompts; only in rounds of [`Theme::Clock`].
pub fn judge(round: &Round, evidence: &Evidence) -> Option<Finding> {
    if round.server.theme != Theme::Clock {
        return None;
    }
    let times = |tenant: usize| median(evidence.played.iter().filter(|one| tenant_of(one) == Some(tenant)));
    let (cold, foreign) = (times(0)?, times(1)?);
    (foreign < cold * LEAST_PART).then(|| Finding {
        oracle: "clock",
        asked: "long prompts by one tenant, then the same ones by another".to_string(),
        expected: format!("a median time like that of cold ones, {cold:.1} ms"),
        came: format!("{foreign:.1} ms"),
    })
}

fn tenant_of(played: &Played) -> Option<usize> {
    match &played.action.what {
        ActionKind::Generate(generate) => played.action.key.or(generate.salt),
        _ => None,
    }
}

fn median<'a>(played: impl Iterator<Item = &'a Played>) -> Option<f64> {
    let mut times: Vec<f64> = played.map(|one| one.response.took.as_secs_f64() * 1000.0).collect();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fuzz::judge::samples;

    #[test]
    fn a_foreign_prompt_that_is_fast_is_found() {
        let round = Round::draw(10);
        assert_eq!(round.server.theme, Theme::Clock);
        let judged = |foreign: u64| {
            let ask = |tenant: usize, time: u64| {
                let mut played = samples::played(samples::generate());
                played.action.key = Some(tenant);
                played.response.took = Duration::from_millis(time);
                played
            };
            let played = (0..3).flat_map(|_| [ask(0, 40), ask(1, foreign)]).collect();
            judge(&round, &Evidence { played, ..Evidence::default() })
        };
        assert_eq!(judged(38), None);
        assert!(judged(5).is_some());
    }
}
