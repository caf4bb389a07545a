//! Oracle for the status: 200; 400 for requests that are invalid or can never fit into the pool; 429 only with
//! `--max-queued`; 503 only if a request alone outgrows the pool.

use espalier_core::http::Ending;

use super::completion::Completion;
use super::{Evidence, Finding, Played, finding};
use crate::fuzz::plan::actions::{ActionKind, Generate, Mistake, Order, SlotAction};
use crate::fuzz::plan::server::ServerPlan;
use crate::serving::cases::BLOCK;

/// Status of a request that found the queue full.
pub const REFUSED: u16 = 429;

/// Checks that the status is one that the action may have.
pub fn judge(server: &ServerPlan, played: &Played, evidence: &Evidence) -> Vec<Finding> {
    let Played { action, response, .. } = played;
    let (status, error) = read(played);
    if is_refused(played) && may_refuse(server, &action.what) {
        return Vec::new();
    }
    let allowed = allowed(server, played, evidence);
    let expected = || format!("one of {allowed:?}");
    match (status, &response.ending) {
        (Some(status), _) if allowed.contains(&status) => Vec::new(),
        (Some(status), _) => vec![finding("status", played, expected(), format!("{status}: {error}"))],
        (None, Ending::Left | Ending::Silent) => Vec::new(),
        (None, ending) => vec![finding("status", played, expected(), format!("no answer: {ending:?}"))],
    }
}

/// Returns the status of a response, also that of an error that ended a stream, and the error.
pub fn read(played: &Played) -> (Option<u16>, String) {
    match &played.action.what {
        ActionKind::Generate(generate) => {
            let completion = Completion::read(generate, &played.response);
            (completion.status, completion.error.unwrap_or_default())
        }
        _ => (played.response.status, played.response.json().to_string()),
    }
}

/// Whether the request was refused because the queue was full.
pub fn is_refused(played: &Played) -> bool {
    read(played).0 == Some(REFUSED)
}

/// Whether a full queue may refuse a request of this kind. Actions on slots are not queued.
fn may_refuse(server: &ServerPlan, what: &ActionKind) -> bool {
    server.max_queued.is_some() && !matches!(what, ActionKind::Slot(_) | ActionKind::Conversation(_))
}

fn allowed(server: &ServerPlan, played: &Played, evidence: &Evidence) -> Vec<u16> {
    match &played.action.what {
        ActionKind::Generate(generate) => {
            let reference = played.reference.as_ref().and_then(|name| evidence.references.get(name));
            let prompt = reference.map_or(generate.prompt.length() as u64, |one| one.prompt_tokens);
            match may_outgrow(server, generate, usize::try_from(prompt).unwrap_or(usize::MAX)) {
                true => vec![200, 400, 503],
                false => vec![200],
            }
        }
        ActionKind::Embed(_) => vec![200],
        ActionKind::Mistake(mistake, _) => vec![of_mistake(*mistake)],
        ActionKind::Slot(slot) => {
            let is_before = |one: &&Played| one.sent <= played.end();
            let mut before = evidence.played.iter().filter(is_before);
            of_slot(server, *slot, before.any(|one| has_saved(one, played.action.key, *slot)))
        }
        ActionKind::Conversation(one) => match one.order {
            Order::Resume => vec![200, 404],
            Order::LookUp => vec![200],
            Order::End => vec![204],
            Order::Refused => vec![400],
        },
    }
}

/// An upper bound: it assumes that no two choices share the block in which the prompt ends. Images take no more blocks
/// than their tokens: no block is closed behind one for a request that would not fit.
fn may_outgrow(server: &ServerPlan, generate: &Generate, prompt: usize) -> bool {
    let shared = prompt / BLOCK;
    let own = (prompt + generate.predict + 1).div_ceil(BLOCK) - shared;
    server.is_paged() && generate.choices > 1 && shared + generate.choices * own > server.blocks
}

fn of_mistake(mistake: Mistake) -> u16 {
    match mistake {
        Mistake::Grammar | Mistake::Salt | Mistake::TooLong => 400,
        Mistake::Infill => 501,
    }
}

/// Returns whether `one` saved the file under `key`: a file belongs to the key that saved it, whatever its name says.
fn has_saved(one: &Played, key: Option<usize>, file: SlotAction) -> bool {
    let is_it =
        |slot: &SlotAction| slot.action == "save" && (slot.owner, slot.file) == (file.owner, file.file);
    let ActionKind::Slot(slot) = &one.action.what else { return false };
    is_it(slot) && one.action.key == key && one.response.status == Some(200)
}

/// Returns the permitted statuses of a slot action. The slot's sequence may be another tenant's, and a file that its
/// tenant has not saved cannot be restored. An action on a slot that stays busy is refused, and so is a restore while
/// running requests hold the blocks that it needs.
fn of_slot(server: &ServerPlan, slot: SlotAction, has_saved: bool) -> Vec<u16> {
    if !server.keeps {
        return vec![501];
    }
    let of_action: &[u16] = match slot.action {
        "restore" if !has_saved => &[400, 403],
        _ => &[200, 400, 403],
    };
    [of_action, &[503]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::judge::samples;
    use crate::fuzz::plan::Round;
    use crate::fuzz::plan::prompts::Prompt;

    fn judged(server: &ServerPlan, what: ActionKind, status: u16) -> usize {
        let response = samples::response(status, "{}");
        let mut played = Played { response, ..samples::of_what(what) };
        played.action.key = Some(0);
        judge(server, &played, &Evidence::default()).len()
    }

    #[test]
    fn an_error_of_the_server_is_never_right() {
        let server = ServerPlan { blocks: 16, ..Round::draw(0).server };
        assert_eq!(judged(&server, ActionKind::Generate(samples::generate()), 200), 0);
        assert_eq!(judged(&server, ActionKind::Generate(samples::generate()), 500), 1);
        assert_eq!(judged(&server, ActionKind::Generate(samples::generate()), 503), 1);
        assert_eq!(judged(&server, ActionKind::Embed(samples::generate().prompt), 500), 1);
    }

    #[test]
    fn a_full_queue_is_an_answer_only_where_the_queue_is_limited() {
        let server = |max_queued| ServerPlan { max_queued, keeps: true, ..Round::draw(0).server };
        let ask = || ActionKind::Generate(samples::generate());
        assert_eq!(judged(&server(None), ask(), 429), 1);
        assert_eq!((judged(&server(Some(1)), ask(), 429), judged(&server(Some(1)), ask(), 503)), (0, 1));
        let save = ActionKind::Slot(SlotAction { slot: 0, action: "save", owner: 0, file: 0 });
        assert_eq!(judged(&server(Some(1)), save, 429), 1, "actions on slots are not queued");
    }

    #[test]
    fn choices_that_outgrow_the_pool_may_be_refused() {
        let server = ServerPlan { blocks: 16, ..Round::draw(0).server };
        let choices = |kept, choices| {
            let mut generate = Generate { choices, predict: 20, ..samples::generate() };
            generate.prompt.kept = kept;
            ActionKind::Generate(generate)
        };
        assert_eq!(judged(&server, choices(640, 4), 503), 1, "10 blocks and 4");
        assert_eq!(judged(&server, choices(900, 4), 503), 0, "14 blocks and 4");
        assert_eq!(judged(&server, choices(900, 4), 400), 0, "14 blocks and 4");
        assert_eq!(judged(&server, choices(640, 4), 400), 1, "10 blocks and 4");
        let mut with_images = Generate { choices: 4, predict: 20, ..samples::generate() };
        with_images.prompt = Prompt { kept: 512, images: vec![1, 2], ..with_images.prompt };
        assert_eq!(judged(&server, ActionKind::Generate(with_images), 400), 1, "11 blocks and 4");
    }

    #[test]
    fn a_mistake_is_refused_and_a_foreign_file_too() {
        let server = ServerPlan { keeps: true, keys: true, ..Round::draw(0).server };
        let prompt = samples::generate().prompt;
        assert_eq!(judged(&server, ActionKind::Mistake(Mistake::Salt, prompt.clone()), 400), 0);
        assert_eq!(judged(&server, ActionKind::Mistake(Mistake::Salt, prompt), 200), 1);
    }

    #[test]
    fn a_file_is_restored_only_by_who_saved_it() {
        let server = ServerPlan { keeps: true, keys: true, ..Round::draw(0).server };
        let of_file = |action| ActionKind::Slot(SlotAction { slot: 0, action, owner: 1, file: 0 });
        let judged = |saver: Option<usize>, status| {
            let mut restored = samples::of_what(of_file("restore"));
            restored.response = samples::response(status, "{}");
            restored.action.key = Some(0);
            restored.sent = std::time::Duration::from_secs(1);
            let mut saved = samples::of_what(of_file("save"));
            saved.action.key = saver;
            let played = saver.is_some().then_some(saved).into_iter().collect();
            judge(&server, &restored, &Evidence { played, ..Evidence::default() }).len()
        };
        assert_eq!((judged(Some(0), 200), judged(Some(0), 403)), (0, 0));
        assert_eq!((judged(Some(1), 200), judged(Some(1), 403)), (1, 0));
        assert_eq!((judged(None, 200), judged(None, 400)), (1, 0));
        assert_eq!((judged(Some(0), 503), judged(None, 503)), (0, 0));
    }

    #[test]
    fn a_slot_can_stay_busy_without_paging_too() {
        let action = SlotAction { slot: 0, action: "restore", owner: 1, file: 0 };
        for is_split in [false, true] {
            let server = ServerPlan { keeps: true, is_split, ..Round::draw(0).server };
            assert!(of_slot(&server, action, false).contains(&503));
        }
    }
}
