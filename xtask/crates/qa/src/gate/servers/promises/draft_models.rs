//! Draft models that read hidden states of the target (EAGLE-3, MTP, DFlash): they draft after a prefix-cache hit as if
//! the prompt had been computed, in every slot and beside others, and continue from nothing of another owner.

use std::collections::BTreeMap;

use espalier_core::error::Result;
use espalier_core::sys::net::server::Server;
use serde_json::{Value, json};

use super::asking::{ask, ask_as, plain, post, with};
use super::fixture::{Drafting, IN_PLACE, PLAIN, PromiseFixture};
use super::tenants::{ALICE, BOB, KEYS, MOMENT};
use crate::serving::cases::{self, BLOCK};
use crate::serving::kv_pool::Pool;

/// Blocks of a prompt that is long enough for a snapshot at its last boundary.
const BLOCKS: usize = 5;

/// Tokens of an answer.
const ANSWER: usize = 24;

/// The draft model proposes the same tokens with the same probabilities after a hit as on a cold server. All batches of
/// a prompt end where a block ends, so both servers compute the same batches.
pub fn after_a_hit(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    const ARGUMENTS: [&str; 11] =
        ["-np", "1", "-c", "4096", "-b", "64", "-ub", "64", "--kv-paged", "-lv", "5"];
    let tokens = cases::numbered_prompt(1, BLOCKS * BLOCK + 17);
    let in_place = [(Drafting::PREDICTING, IN_PLACE)];
    for (drafting, variables) in Drafting::ALL.map(|drafting| (drafting, PLAIN)).into_iter().chain(in_place) {
        let what = format!("{drafting:?} {variables:?}");
        let cold = fixture.serve_drafting_with(drafting, &ARGUMENTS, variables)?;
        let expected = ask(&cold, &plain(&tokens, ANSWER))?;
        let candidates = candidates(&cold, 0)?;
        fixture.must_have_found(&format!("{what}, cold"), &expected, 0);
        fixture.must(!candidates.is_empty(), || format!("{what} drafted nothing"));
        drop(cold);
        let warm = fixture.serve_drafting_with(drafting, &ARGUMENTS, variables)?;
        // An answer of one token needs no drafts.
        ask(&warm, &plain(&tokens, 1))?;
        let answer = ask(&warm, &plain(&tokens, ANSWER))?;
        fixture.must_have_found(&format!("{what}, warm"), &answer, BLOCKS * BLOCK);
        let after = self::candidates(&warm, 0)?;
        let differs = candidates.iter().zip(&after).position(|(cold, warm)| cold != warm);
        fixture.must(after == candidates, || {
            format!(
                "{what}: after a hit it has {} candidates, cold {}; the first difference is {differs:?}",
                after.len(),
                candidates.len()
            )
        });
        fixture.must(answer.1["tokens"] == expected.1["tokens"], || format!("{what}: the answers differ"));
    }
    Ok(())
}

/// Another owner of a prompt, in the same slot, gets the drafts that it gets after a different prompt: no draft model,
/// one without hidden states included, continues from cells or hidden states of the first owner.
///
/// The number of drafts would not show it: these models always draft as many tokens as they may, and the answers, which
/// the target decides, are the same. The candidates show it. The two servers differ only in the content of the first
/// prompt, so the same cells are placed in the same order, and the probabilities are equal to the last digit.
pub fn of_others(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    const ARGUMENTS: [&str; 12] =
        ["-np", "1", "-c", "4096", "-b", "64", "-ub", "64", "-lv", "5", "--api-key", KEYS];
    for mode in [&["--kv-paged"][..], &[]] {
        let arguments = [&ARGUMENTS[..], mode].concat();
        for drafting in Drafting::ALL.into_iter().chain([Drafting::SIMPLE]) {
            let what = format!("{drafting:?} {mode:?}");
            let same = candidates_after(fixture, drafting, &arguments, 1)?;
            let other = candidates_after(fixture, drafting, &arguments, 2)?;
            fixture.must(!same.is_empty(), || format!("{what} drafted nothing"));
            let differs = same.iter().zip(&other).position(|(same, other)| same != other);
            fixture.must(same == other, || {
                format!(
                    "{what}: after the same prompt of another owner there are {} candidates, after a different one {}; \
                     the first difference is {differs:?}",
                    same.len(),
                    other.len()
                )
            });
        }
    }
    Ok(())
}

/// Returns the candidates for the first prompt as bob, and then as alice with a salt, after alice has sent the prompt
/// with number `first`. Neither finds anything of what was sent before.
fn candidates_after(
    fixture: &mut PromiseFixture<'_>,
    drafting: Drafting,
    arguments: &[&str],
    first: u64,
) -> Result<Vec<Candidate>> {
    let server = fixture.serve_drafting(drafting, arguments)?;
    let request = |number: u64| plain(&cases::numbered_prompt(number, BLOCKS * BLOCK + 17), ANSWER);
    let what = format!("{drafting:?} after prompt {first}");
    let answer = ask_as(&server, ALICE, &request(first))?;
    fixture.must_have_found(&what, &answer, 0);
    let seen = candidates(&server, 0)?.len();
    for (key, request) in [(BOB, request(1)), (ALICE, with(request(1), "cache_salt", "a"))] {
        let answer = ask_as(&server, key, &request)?;
        fixture.must_have_found(&what, &answer, 0);
    }
    candidates(&server, seen)
}

/// A slot file has nothing of the draft model, which misses the restored tokens from there on. So other requests find
/// the blocks that were computed before the slot was saved, and none of those that a restored slot adds.
pub fn of_a_restored_slot(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    // Less than the saved tokens, so that the slot continues them, and long enough for a snapshot at their end.
    const MORE: usize = 300;
    let saved = cases::numbered_prompt(1, BLOCKS * BLOCK + 17);
    let next = [&saved[..], &cases::numbered_prompt(2, MORE)].concat();
    let in_slot = |prompt: &[u32], slot: u64| with(plain(prompt, 1), "id_slot", slot);
    for drafting in Drafting::ALL {
        let saves = fixture.empty_folder("slots")?;
        let arguments = ["-np", "2", "-c", "4096", "--kv-paged", "--slot-save-path", &saves];
        let server = fixture.serve_drafting(drafting, &arguments)?;
        ask(&server, &in_slot(&saved, 0))?;
        for action in ["save", "erase", "restore"] {
            let route = format!("/slots/0?action={action}");
            let answer = post(&server, &route, &json!({ "filename": "file" }))?;
            fixture.must_return(&format!("{drafting:?}, {action}"), &answer, 200);
        }
        for (what, slot, found) in [("the restored slot", 0, saved.len()), ("another one", 1, BLOCKS * BLOCK)]
        {
            let answer = ask(&server, &in_slot(&next, slot))?;
            fixture.must_have_found(&format!("{drafting:?}, {what}"), &answer, found);
        }
    }
    Ok(())
}

/// A token that a draft model considered.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    sequence: u32,
    /// Its rank, its place in the draft, the token and its probability.
    words: String,
}

impl Candidate {
    /// Reads a line of the log; `None` for one about something else.
    fn read(line: &str) -> Option<Candidate> {
        let (before, words) = line.split_once(", draft candidate")?;
        let (_, sequence) = before.rsplit_once("seq_id ")?;
        Some(Candidate { sequence: sequence.parse().ok()?, words: words.to_string() })
    }

    /// Returns the place and the token if it was drafted: it is the likeliest one. Without its probability, which
    /// depends on the order of the cells.
    fn drafted(&self) -> Option<&str> {
        let (token, _) = self.words.split_once(" (")?;
        let token = token.trim_start();
        token.starts_with("0,").then_some(token)
    }
}

/// Returns the tokens that the server's draft model considered, without the first `seen` ones, as the log has them. The
/// log is written with a delay, so this waits until it has no more.
fn candidates(server: &Server, seen: usize) -> Result<Vec<Candidate>> {
    let mut before = Vec::new();
    for _ in 0..100 {
        let now: Vec<Candidate> = server.log_text()?.lines().filter_map(Candidate::read).skip(seen).collect();
        if !now.is_empty() && now == before {
            return Ok(now);
        }
        before = now;
        std::thread::sleep(MOMENT);
    }
    Ok(before)
}

/// Returns the drafted tokens of each sequence.
fn drafts_by_sequence(candidates: &[Candidate]) -> BTreeMap<u32, Vec<&str>> {
    let mut drafts = BTreeMap::<u32, Vec<&str>>::new();
    for (candidate, token) in candidates.iter().filter_map(|one| Some((one, one.drafted()?))) {
        drafts.entry(candidate.sequence).or_default().push(token);
    }
    drafts
}

/// Number of choices of a request.
const CHOICES: usize = 3;

/// Each choice continues the drafts of the prompt that they share: equal choices have equal drafts. Their texts would
/// be equal without that, and without any draft.
pub fn of_choices(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    for drafting in Drafting::ALL {
        let server =
            fixture.serve_drafting(drafting, &["-np", "4", "-c", "4096", "--kv-paged", "-lv", "5"])?;
        let mut seen = 0;
        for length in [BLOCK, BLOCK + 20] {
            let what = format!("{drafting:?}, {length} tokens");
            let request = cases::request_for_choices(&cases::numbered_prompt(1, length), CHOICES);
            let (status, body) = post(&server, "/v1/completions", &request)?;
            let texts: Vec<&Value> =
                body["choices"].as_array().into_iter().flatten().map(|one| &one["text"]).collect();
            let is_same =
                texts.len() == CHOICES && texts.iter().all(|text| text.is_string() && *text == texts[0]);
            fixture.must(status == 200 && is_same, || format!("{what}: returned {status}: {body}"));
            let candidates = candidates(&server, seen)?;
            let drafts = drafts_by_sequence(&candidates);
            fixture.must(are_alike(&drafts), || format!("{what}: the choices have other drafts: {drafts:?}"));
            seen += candidates.len();
        }
    }
    Ok(())
}

/// Whether each choice has drafts, and all have the same.
fn are_alike(drafts: &BTreeMap<u32, Vec<&str>>) -> bool {
    let mut all = drafts.values();
    let first = all.next();
    drafts.len() == CHOICES && all.all(|other| Some(other) == first)
}

/// Requests are preempted and resumed with their drafts, blocks that drafts need are counted, and what is evicted is
/// evicted in both models. Answers are those of a server without drafts, which is why both are counted: without drafts,
/// or without eviction, they would be the same.
pub fn in_a_small_pool(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    const EXACT: [&str; 2] = ["-fa", "off"];
    for drafting in Drafting::ALL {
        let mut reference = fixture.reference(drafting.model, &EXACT)?;
        let server =
            fixture.serve_drafting(drafting, &["-fa", "off", "-np", "4", "-c", "1024", "--kv-paged"])?;
        let shared = cases::numbered_prompt(1, 2 * BLOCK);
        // Five blocks each with its answer; the pool has sixteen.
        let requests: Vec<Value> = (2..6)
            .map(|own| [&shared[..], &cases::numbered_prompt(own, 58)].concat())
            .chain((8..11).map(|own| cases::numbered_prompt(own, 186)))
            .map(|prompt| cases::request_for(&prompt, 80))
            .collect();
        let expected = requests.iter().map(|one| reference.expect(one)).collect::<Result<Vec<_>>>()?;
        let mut drafted = 0;
        for volley in 0..2 {
            let answers = server.post_at_once("/completion", &requests)?.answers;
            for (at, (status, body)) in answers.iter().enumerate() {
                let what = format!("{drafting:?}, volley {volley}, request {at}");
                fixture.hold(&what, &expected[at], reference.tolerance, (*status, body));
                drafted += body["timings"]["draft_n"].as_u64().unwrap_or_default();
            }
        }
        let evicted = Pool::of_server(&server)?.evicted_blocks;
        fixture.must(drafted > 0 && evicted > 0, || {
            format!("{drafting:?}: {drafted} tokens were drafted and {evicted} blocks evicted; expected some")
        });
        let is_preempted = server.log_text()?.contains("preempted with");
        fixture.arose(is_preempted, || format!("{drafting:?}: no request was preempted"));
    }
    Ok(())
}

/// All slots draft at once, of a server whose batches are smaller than their drafts.
pub fn many_at_once(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    const SLOTS: u64 = 6;
    const ARGUMENTS: [&str; 8] = ["-np", "6", "-c", "2048", "-b", "32", "-ub", "8"];
    for mode in [&["--kv-paged"][..], &[]] {
        let arguments = [&ARGUMENTS[..], mode].concat();
        for drafting in Drafting::ALL.into_iter().chain([Drafting::SIMPLE]) {
            let server = fixture.serve_drafting(drafting, &arguments)?;
            let requests: Vec<Value> =
                (0..SLOTS).map(|own| plain(&cases::numbered_prompt(own, 20), ANSWER)).collect();
            let mut drafted = 0;
            for answer in server.post_at_once("/completion", &requests)?.answers {
                fixture.must_return(&format!("{drafting:?} {mode:?}"), &answer, 200);
                drafted += answer.1["timings"]["draft_n"].as_u64().unwrap_or_default();
            }
            fixture.must(drafted > 0, || format!("{drafting:?} {mode:?}: nothing was drafted"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The log of a server with these drafts: sequence and token.
    fn log_of(drafts: &[(u32, u32)]) -> Vec<Candidate> {
        let lines = drafts.iter().map(|(sequence, token)| {
            let head = format!("0.01.2 D spec        draft:  - seq_id {sequence}, draft candidate");
            format!(
                "{head}   0, pos   0: {token:6} (   0.500) 'a'\n{head}   1, pos   0:      9 (   0.{sequence}00) 'b'\n"
            )
        });
        lines.collect::<String>().lines().filter_map(Candidate::read).collect()
    }

    #[test]
    fn choices_are_alike_if_each_has_the_same_drafts() {
        let alike = |drafts: &[(u32, u32)]| are_alike(&drafts_by_sequence(&log_of(drafts)));
        assert!(alike(&[(0, 5), (1, 5), (2, 5), (2, 6), (0, 6), (1, 6)]));
        // Another token, a choice with fewer drafts, one without any, and no drafts at all.
        assert!(!alike(&[(0, 5), (1, 5), (2, 7)]));
        assert!(!alike(&[(0, 5), (1, 5), (2, 5), (0, 6), (1, 6)]));
        assert!(!alike(&[(0, 5), (1, 5)]) && !alike(&[]));
    }

    #[test]
    fn other_lines_of_the_log_are_no_candidates() {
        assert_eq!(Candidate::read("slot 0: seq_id 1"), None);
        assert_eq!(Candidate::read("draft candidate 0"), None);
        assert_eq!(log_of(&[(3, 5)])[0].drafted(), Some("0, pos   0:      5"));
        assert_eq!(log_of(&[(3, 5)])[1].drafted(), None);
    }
}
