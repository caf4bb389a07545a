//! Oracle for resumable streams: a stream belongs to the API key that started it; another key that uses the same id
//! neither sees nor ends it.

use std::collections::BTreeMap;

use espalier_core::http::Ending;

use super::{Evidence, Finding, Played, finding, judge_answer, shorten};
use crate::fuzz::plan::actions::{ActionKind, ConversationAction, Order};

/// State of one key's conversation id that the server must have.
#[derive(Clone)]
enum Session<'a> {
    /// It was never started, or its client ended it.
    Absent,
    /// The client disconnected before the head of the answer arrived, or was refused.
    Unknown,
    /// The body as far as it arrived, and whether it is complete.
    Begun { by: &'a Played, body: &'a [u8], is_whole: bool },
}

/// Checks every resumable stream. In each act a key's id is used by one client only, so the state of a stream follows
/// from what that client did.
pub fn judge(evidence: &Evidence) -> Vec<Finding> {
    let mut played: Vec<&Played> = evidence.played.iter().collect();
    played.sort_by_key(|one| one.place);
    let mut sessions: BTreeMap<(Option<usize>, usize), Session<'_>> = BTreeMap::new();
    let mut findings = Vec::new();
    for one in played {
        match &one.action.what {
            ActionKind::Generate(generate) => {
                if let Some(id) = generate.conversation {
                    sessions.insert((one.action.key, id), begun_by(one));
                }
            }
            ActionKind::Conversation(action) => {
                let session =
                    sessions.entry((one.action.key, action.conversation)).or_insert(Session::Absent);
                findings.extend(wrong_with(*action, one, session));
                findings.extend(wrong_answer(evidence, *action, one, session));
                session.follow(*action, one);
            }
            _ => {}
        }
    }
    findings
}

fn begun_by(played: &Played) -> Session<'_> {
    let response = &played.response;
    match (response.status, &response.ending) {
        (Some(200), Ending::Closed | Ending::Left) => Session::Begun {
            by: played,
            is_whole: response.is_whole && response.ending == Ending::Closed,
            body: &response.body,
        },
        _ => Session::Unknown,
    }
}

/// Whether the stream may have been replaced by an earlier request of its conversation: a client that left before the
/// head of an answer does not know when the server reads its request, which can be after later ones.
pub fn may_have_been_replaced(evidence: &Evidence, played: &Played) -> bool {
    let conversation = |one: &Played| match &one.action.what {
        ActionKind::Generate(generate) => generate.conversation.map(|id| (one.action.key, id)),
        _ => None,
    };
    let left_early = |one: &&Played| one.response.ending == Ending::Left && one.response.status.is_none();
    let mut earlier = evidence.played.iter().filter(|one| one.place < played.place).filter(left_early);
    conversation(played).is_some_and(|this| earlier.any(|one| conversation(one) == Some(this)))
}

impl<'a> Session<'a> {
    fn follow(&mut self, action: ConversationAction, played: &'a Played) {
        match (&mut *self, action.order) {
            (Session::Begun { .. }, Order::End) => *self = Session::Absent,
            // A stream whose client disconnected is complete once it was resumed to its end.
            (Session::Begun { body, is_whole, .. }, Order::Resume)
                if played.response.is_whole && played.response.status == Some(200) =>
            {
                (*body, *is_whole) = (&played.response.body[..], true);
            }
            _ => {}
        }
    }
}

fn wrong_with(action: ConversationAction, played: &Played, session: &Session<'_>) -> Option<Finding> {
    let is_there = match session {
        Session::Absent => false,
        Session::Unknown => return None,
        Session::Begun { .. } => true,
    };
    // Unanswered requests are covered by another oracle.
    let status = played.response.status?;
    let (expected, came) = match (action.order, session) {
        (Order::Resume, Session::Begun { body, is_whole, .. }) => {
            let found = &played.response.body;
            let is_it = status == 200 && if *is_whole { found == body } else { found.starts_with(body) };
            if is_it {
                return None;
            }
            let come = format!("{status}: {}", played.response.text());
            ("the stream that this key started, byte by byte".to_string(), come)
        }
        (Order::Resume, _) if status == 404 => return None,
        (Order::Resume, _) => ("404: this key has no stream of that id".to_string(), status.to_string()),
        (Order::LookUp, _) => {
            let id = ConversationAction::id(action.conversation);
            let found = played.response.json();
            let all = found.as_array()?;
            if all.len() == usize::from(is_there) && all.iter().all(|one| one["conversation_id"] == *id) {
                return None;
            }
            (format!("{} streams of that id", usize::from(is_there)), found.to_string())
        }
        (Order::End | Order::Refused, _) => return None,
    };
    Some(finding("conversations", played, expected, shorten(&came)))
}

/// Judges a resumed stream like any other answer.
fn wrong_answer(
    evidence: &Evidence,
    action: ConversationAction,
    played: &Played,
    session: &Session<'_>,
) -> Vec<Finding> {
    let Session::Begun { by, .. } = session else { return Vec::new() };
    if action.order != Order::Resume || played.response.status != Some(200) {
        return Vec::new();
    }
    judge_answer(evidence, &Played { response: played.response.clone(), ..(*by).clone() })
}

#[cfg(test)]
mod tests {
    use espalier_core::http::Response;

    use super::*;
    use crate::fuzz::judge::samples;
    use crate::fuzz::plan::actions::Generate;

    const HERS: &str = "data: {\"content\":\"a\",\"stop\":true}\n\n";

    fn start(number: usize, key: usize, body: &str) -> Played {
        let generate = Generate { conversation: Some(0), stream: true, ..samples::generate() };
        at(number, key, ActionKind::Generate(generate), 200, body)
    }

    fn order(number: usize, key: usize, order: Order, status: u16, body: &str) -> Played {
        at(number, key, ActionKind::Conversation(ConversationAction { conversation: 0, order }), status, body)
    }

    fn at(number: usize, key: usize, what: ActionKind, status: u16, body: &str) -> Played {
        let mut played = samples::of_what(what);
        (played.place.2, played.action.key) = (number, Some(key));
        played.response = samples::response(status, body);
        played
    }

    fn findings(played: Vec<Played>) -> usize {
        judge(&Evidence { played, ..Evidence::default() }).len()
    }

    #[test]
    fn a_stream_is_resumed_by_its_key_alone() {
        let resumed = |key, status, body: &str| {
            findings(vec![start(0, 0, HERS), order(1, key, Order::Resume, status, body)])
        };
        assert_eq!((resumed(0, 200, HERS), resumed(1, 404, "{}")), (0, 0));
        assert_eq!(resumed(1, 200, HERS), 1, "another key's stream");
        assert_eq!(resumed(0, 404, "{}"), 1, "lost");
        assert_eq!(resumed(0, 200, "data: {\"stop\":true}\n\n"), 1, "another stream");
    }

    #[test]
    fn a_stream_may_be_replaced_by_a_request_whose_client_left_before_it() {
        let left = |number: usize, key: usize| {
            let mut played = start(number, key, "");
            played.response = Response::none(Ending::Left);
            played
        };
        let cut = |others: Vec<Played>| {
            let played = [others, vec![start(2, 0, "")]].concat();
            let evidence = Evidence { played, ..Evidence::default() };
            judge_answer(&evidence, evidence.played.last().unwrap()).len()
        };
        assert!(cut(vec![]) > 0, "an empty stream");
        assert_eq!(cut(vec![left(1, 0)]), 0);
        assert!(cut(vec![left(1, 1)]) > 0, "another key's request");
        assert!(
            cut(vec![left(3, 0)]) > 0,
            "a later request, which the client sent after the end of this one"
        );
        assert!(cut(vec![start(1, 0, HERS)]) > 0, "a request that was answered before");
    }

    #[test]
    fn a_stream_is_looked_up_by_its_key_alone() {
        let found = "[{\"conversation_id\":\"conversation-0\"}]";
        let looked = |key, body| findings(vec![start(0, 0, HERS), order(1, key, Order::LookUp, 200, body)]);
        assert_eq!((looked(0, found), looked(1, "[]")), (0, 0));
        assert_eq!((looked(0, "[]"), looked(1, found)), (1, 1));
    }

    #[test]
    fn a_stream_is_ended_and_replaced_by_its_key_alone() {
        let after = |what: Played, status, body: &str| {
            findings(vec![start(0, 0, HERS), what, order(2, 0, Order::Resume, status, body)])
        };
        let his = "data: {\"content\":\"b\",\"stop\":true}\n\n";
        assert_eq!(after(order(1, 0, Order::End, 204, ""), 404, "{}"), 0);
        assert_eq!(after(order(1, 0, Order::End, 204, ""), 200, HERS), 1, "ended, and still there");
        assert_eq!(after(order(1, 1, Order::End, 204, ""), 200, HERS), 0);
        assert_eq!(after(order(1, 1, Order::End, 204, ""), 404, "{}"), 1, "ended by another key");
        assert_eq!(after(start(1, 1, his), 200, HERS), 0);
        assert_eq!(after(start(1, 1, his), 200, his), 1, "replaced by another key");
        assert_eq!(after(order(1, 0, Order::Refused, 400, "{}"), 200, HERS), 0);
        assert_eq!(after(order(1, 0, Order::Refused, 400, "{}"), 404, "{}"), 1, "ended by a refused request");
    }

    #[test]
    fn a_client_that_went_away_finds_what_it_had_and_the_rest() {
        let resumed = |body: &str| {
            let mut left = start(0, 0, &HERS[..10]);
            left.response.ending = Ending::Left;
            findings(vec![left, order(1, 0, Order::Resume, 200, body)])
        };
        assert_eq!(resumed(HERS), 0);
        assert_eq!(resumed("data: {\"stop\":true}\n\n"), 1);
        assert_eq!(resumed(&HERS[..10]), 1, "no stream that a client can read");
    }
}
