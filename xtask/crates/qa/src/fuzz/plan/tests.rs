use espalier_core::http::Disconnect;

use super::actions::{Api, Generate, Mistake, Order};
use super::server::{COPIES, Drafts, Files};
use super::*;

fn rounds() -> Vec<Round> {
    (0..320).map(Round::draw).collect()
}

fn generates(rounds: &[Round]) -> Vec<(&ServerPlan, &Action, &Generate)> {
    let mut all = Vec::new();
    for round in rounds {
        for (_, action) in round.actions() {
            if let ActionKind::Generate(generate) = &action.what {
                all.push((&round.server, action, generate));
            }
        }
    }
    all
}

#[test]
fn a_seed_repeats_and_seeds_differ() {
    assert_eq!(Round::draw(7), Round::draw(7));
    assert_ne!(Round::draw(7), Round::draw(7 + 16));
}

#[test]
fn every_kind_of_server_comes() {
    let rounds = rounds();
    let has = |what: fn(&ServerPlan) -> bool| rounds.iter().any(|round| what(&round.server));
    assert!(Theme::ALL.iter().all(|theme| rounds.iter().any(|round| round.server.theme == *theme)));
    for kind in Drafts::KINDS {
        assert!(rounds.iter().any(|round| round.server.drafts == kind && round.server.keys), "{kind:?}");
    }
    for model in [ModelKind::Gemma3, ModelKind::Qwen35] {
        let is_split = |plan: &ServerPlan| plan.is_split && plan.model == model && plan.keys;
        assert!(rounds.iter().any(|round| is_split(&round.server)), "{model:?}");
    }
    assert!(has(|plan| plan.prefill_budget == Some(2_147_483_647)) && has(|plan| plan.sleeps));
    assert!([1, 2, 4].iter().all(|most| rounds.iter().any(|round| round.server.max_queued == Some(*most))));
    assert!(has(|plan| plan.max_queued.is_some() && !plan.is_paged() && plan.keys));
    assert!(!has(|plan| plan.max_queued.is_some() && !plan.metrics), "the gauges are judged");
    assert!(!has(|plan| plan.max_queued.is_some() && plan.theme == Theme::Conversations));
    assert!(has(|plan| plan.keys && plan.keeps) && has(|plan| !plan.keys && plan.keeps));
    assert!(has(|plan| plan.kv_type == "f16") && has(|plan| plan.blocks == 64) && has(|plan| plan.vision));
    assert!(has(|plan| plan.kv_type == COPIES) && !has(|plan| plan.kv_type == COPIES && plan.keeps));
    assert!(rounds.iter().all(|round| round.server.batches.1 <= round.server.batches.0));
}

#[test]
fn every_budget_of_snapshots_comes_with_states_and_shows_in_the_metrics() {
    let servers: Vec<ServerPlan> = rounds().into_iter().map(|round| round.server).collect();
    for budget in [None, Some(0), Some(1), Some(3)] {
        let has_it = |plan: &ServerPlan| {
            plan.is_paged() && plan.model.state_kib().is_some() && plan.snapshots == budget && plan.metrics
        };
        assert!(servers.iter().any(has_it), "{budget:?}");
    }
    assert!(servers.iter().all(|plan| plan.snapshots.is_none() || plan.model.has_state() && plan.is_paged()));
    let one = ServerPlan { snapshots: Some(1), model: ModelKind::Qwen35, ..servers[0].clone() };
    assert!(one.arguments(&files()).join(" ").contains("--kv-snapshots 631K"));
    let none = ServerPlan { snapshots: Some(0), ..one };
    assert!(none.arguments(&files()).join(" ").contains("--kv-snapshots 0K") && !none.takes_snapshots());
}

#[test]
fn windows_have_few_cells_in_some_rounds() {
    let all: Vec<ServerPlan> = (0..600).map(|seed| Round::draw(seed).server).collect();
    for model in [ModelKind::Gemma3, ModelKind::GptOss] {
        assert!(all.iter().any(|plan| plan.model == model && plan.few_windows), "{model:?}");
        assert!(
            all.iter().any(|plan| plan.model == model && plan.is_paged() && !plan.few_windows),
            "{model:?}"
        );
    }
    let drafting =
        ServerPlan { drafts: Drafts::NgramMod, model: ModelKind::Gemma3, is_split: false, ..all[0].clone() };
    let has_few = |seed: u64| {
        let mut plan = drafting.clone();
        plan.limit_windows(&mut Dice::new(seed, 4));
        plan.few_windows
    };
    assert!((0..20).any(has_few) && !(0..20).all(has_few));
    for plan in all.iter().filter(|plan| plan.few_windows) {
        // Three blocks beside each window, and those of a batch: at most half of the pool.
        let window = plan.model.spec().map_or(0, |spec| spec.sliding_window.tokens);
        let blocks = 2 * plan.slots * (window.div_ceil(64) as usize + 3) + plan.batches.0.div_ceil(64);
        assert!(plan.is_paged() && window > 0 && blocks <= plan.blocks / 2, "{plan:?}");
        assert_eq!(plan.variables(), [("ESPALIER_KV_WINDOWS", (2 * plan.slots).to_string())]);
    }
}

#[test]
fn states_are_computed_in_place_in_some_rounds() {
    let all: Vec<ServerPlan> = (0..600).map(|seed| Round::draw(seed).server).collect();
    let with = |is_paged: bool, in_place: bool| {
        let fits = |plan: &&ServerPlan| {
            plan.model == ModelKind::Qwen35 && plan.is_paged() == is_paged && plan.in_place == in_place
        };
        all.iter().find(fits).unwrap_or_else(|| panic!("none is paged {is_paged} and in place {in_place}"))
    };
    for is_paged in [false, true] {
        assert_eq!(with(is_paged, false).features(), "attention");
        assert_eq!(with(is_paged, true).features(), "attention,gdn-recurrence");
    }
    assert!(all.iter().all(|plan| !plan.in_place || plan.model == ModelKind::Qwen35));
}

#[test]
fn images_come_with_positions_in_three_dimensions_and_with_a_state() {
    let rounds = rounds();
    for model in ModelKind::SEEING {
        let sees = |round: &&Round| round.server.vision && round.server.model == model;
        let round = rounds.iter().find(sees).unwrap_or_else(|| panic!("no images with {model:?}"));
        assert!(!round.server.adapters && round.server.arguments(&files()).contains(&"in-place".to_string()));
        assert!(round.server.reference_arguments(&files()).contains(&"in-place".to_string()));
    }
}

#[test]
fn drafts_come_from_hidden_states_too() {
    let rounds = rounds();
    for (drafts, model) in Drafts::HIDDEN {
        let round = rounds.iter().find(|round| (round.server.drafts, round.server.model) == (drafts, model));
        let server = &round.unwrap_or_else(|| panic!("no {drafts:?} of {model:?}")).server;
        let (ours, reference) = (server.arguments(&files()), server.reference_arguments(&files()));
        assert!(ours.iter().any(|word| word.starts_with("draft-")) && server.kv_type == "f16", "{ours:?}");
        assert!(!reference.contains(&"--spec-type".to_string()));
        let is_draft_model = ours.contains(&"-md".to_string());
        let is_part_of_it = ours[..2] == reference[..2] && ours[1].ends_with("predicting.gguf");
        assert!(is_draft_model != is_part_of_it, "{ours:?}");
    }
    for of_foreign in Drafts::HIDDEN {
        let is_it = |server: &ServerPlan| {
            server.theme == Theme::ForeignDrafts && (server.drafts, server.model) == of_foreign && server.keys
        };
        assert!(rounds.iter().any(|round| is_it(&round.server)), "two owners: {of_foreign:?}");
    }
    for kind in Drafts::KINDS {
        let is_it = |server: &ServerPlan| server.theme == Theme::ForeignDrafts && server.drafts == kind;
        assert!(rounds.iter().any(|round| is_it(&round.server)), "two owners: {kind:?}");
    }
    // A model that none of them is for is drafted for in another way.
    let seed = 16 + Theme::ALL.iter().position(|theme| *theme == Theme::Drafts).unwrap() as u64;
    assert!(Round::draw(seed).server.drafts.reads_hidden_states());
    assert!(!Round::draw_for(seed, Some(ModelKind::Gemma3)).server.drafts.reads_hidden_states());
}

#[test]
fn every_kind_of_action_comes() {
    let rounds = rounds();
    let all: Vec<&Action> =
        rounds.iter().flat_map(|round| round.actions().map(|(_, action)| action)).collect();
    let has = |what: fn(&Action) -> bool| all.iter().any(|action| what(action));
    assert!(has(|action| matches!(action.what, ActionKind::Embed(_))));
    for kind in ["save", "restore", "erase"] {
        assert!(
            all.iter().any(|action| matches!(&action.what, ActionKind::Slot(slot) if slot.action == kind))
        );
    }
    for order in [Order::Resume, Order::LookUp, Order::End, Order::Refused] {
        assert!(
            all.iter()
                .any(|action| matches!(&action.what, ActionKind::Conversation(one) if one.order == order))
        );
    }
    for kind in [Mistake::Grammar, Mistake::Salt, Mistake::TooLong, Mistake::Infill] {
        assert!(all.iter().any(|action| matches!(&action.what, ActionKind::Mistake(one, _) if *one == kind)));
    }
    assert!(has(|action| action.leave == Disconnect::AfterTime(std::time::Duration::ZERO)));
    assert!(has(|action| matches!(action.leave, Disconnect::AfterEvents(0))));
    assert!(has(|action| matches!(action.leave, Disconnect::AfterEvents(3..))));
}

#[test]
fn every_kind_of_request_comes() {
    let rounds = rounds();
    let all = generates(&rounds);
    let has = |what: fn(&Generate) -> bool| all.iter().any(|(_, _, generate)| what(generate));
    for api in [Api::Completion, Api::Completions, Api::Chat, Api::Messages, Api::Responses] {
        assert!(all.iter().any(|(_, _, one)| one.api == api && one.stream));
        assert!(all.iter().any(|(_, _, one)| one.api == api && !one.stream));
    }
    assert!(has(|one| one.choices == 4) && has(|one| !one.cache) && has(|one| one.slot.is_some()));
    assert!(has(|one| one.escaped && one.salt.is_some()) && has(|one| one.prompt.images.len() == 2));
    assert!(has(|one| one.scales == Some([-1.0, 0.0])) && has(|one| one.prompt.length() % 64 == 0));
    assert!(all.iter().any(|(server, _, one)| one.prompt.length() + 64 > server.cells() - 2));
}

#[test]
fn every_request_fits_into_its_pool_alone() {
    for (server, _, one) in generates(&rounds()) {
        assert!(one.prompt.length() + one.predict < server.cells(), "{server:?} {one:?}");
        assert!(one.choices <= server.slots && one.predict > 0);
    }
}

#[test]
fn an_escaped_name_is_still_the_same_json() {
    let rounds = rounds();
    let (server, action, _) =
        *generates(&rounds).iter().find(|(_, _, one)| one.escaped && one.salt.is_some()).expect("one comes");
    let body = body::request(action, server, "").body;
    assert!(body.contains("cache_\\u0073alt") && !body.contains("cache_salt"));
    let parsed: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert!(parsed["cache_salt"].is_string());
}

fn files() -> Files {
    Files {
        trained: "trained".into(),
        random: "random".into(),
        adapters: ["one".into(), "two".into()],
        vision: "vision".into(),
        vision_in_place: "in-place".into(),
        slots: "slots".into(),
    }
}

#[test]
fn every_theme_comes_with_every_model_that_it_allows() {
    let mut found = std::collections::BTreeSet::new();
    for seed in 0..16 * 22 {
        let server = Round::draw(seed).server;
        assert!(server.allows(server.model), "{server:?}");
        assert!(seed >= 16 || server.model == ServerPlan::draw(&mut Dice::new(seed, 0), server.theme).model);
        found.insert((format!("{:?}", server.theme), server.model.name()));
    }
    let of = |theme: Theme| found.iter().filter(|(name, _)| *name == format!("{theme:?}")).count();
    for theme in [Theme::Pressure, Theme::Kept, Theme::Embeddings, Theme::Choices, Theme::Sleep] {
        assert_eq!(of(theme), ModelKind::ALL.len(), "{theme:?}");
    }
    assert_eq!(of(Theme::Unpaged), ModelKind::ROTATION.len());
    assert_eq!((of(Theme::Adapters), of(Theme::Clock)), (1, 1));
    assert_eq!(of(Theme::ForeignDrafts), 3, "the trained model, and those that have draft models");
}

#[test]
fn a_chosen_model_is_used_where_the_theme_allows_it() {
    let model_of = |seed| Round::draw_for(seed, Some(ModelKind::Qwen35)).server.model;
    assert_eq!([0, 16, 32].map(model_of), [ModelKind::Qwen35; 3]);
    let adapters = Theme::ALL.iter().position(|theme| *theme == Theme::Adapters).unwrap();
    assert_eq!(model_of(adapters as u64), ModelKind::Llama);
    // The model decides nothing but the model, and the options that it rules out.
    let (own, other) = (Round::draw(0), Round::draw_for(0, Some(ModelKind::Qwen35)));
    assert_eq!((own.server.slots, own.server.blocks), (other.server.slots, other.server.blocks));
    assert_eq!(own.acts, other.acts);
}

#[test]
fn the_reference_loads_the_same_model() {
    let files = files();
    let model_in =
        |words: &[String]| words[1 + words.iter().position(|word| word == "--model").unwrap()].clone();
    for model in ModelKind::ALL {
        let server = Round::draw_for(0, Some(model)).server;
        assert_eq!(server.model, model);
        let (ours, reference) = (server.arguments(&files), server.reference_arguments(&files));
        assert_eq!(model_in(&ours), model_in(&reference));
        assert_eq!(model_in(&ours), files.model(model).display().to_string());
        assert_eq!(
            ours.contains(&"-l".to_string()),
            model != ModelKind::Trained,
            "random weights write bytes"
        );
    }
}

#[test]
fn a_server_is_unpaged_by_its_buffers_or_by_its_model() {
    let has = |words: &[String], flag: &str| words.iter().any(|word| word == flag);
    for seed in 0..16 * 22 {
        let server = Round::draw(seed).server;
        let (ours, reference) = (server.arguments(&files()), server.reference_arguments(&files()));
        let is_unpaged = server.theme == Theme::Unpaged;
        assert!(has(&ours, "--kv-paged") && has(&reference, "--kv-unified"), "{server:?}");
        assert_eq!((has(&ours, "--no-kv-unified"), has(&reference, "--no-kv-unified")), (is_unpaged, false));
        assert_eq!(server.is_paged(), !is_unpaged && server.model.can_be_paged(), "{server:?}");
        if !server.is_paged() {
            assert_eq!((server.kv_type, server.prefill_budget), ("f16", None), "{server:?}");
            assert_eq!(server.context(), server.cells() * server.slots, "{server:?}");
        }
    }
}

#[test]
fn the_reference_is_the_same_for_servers_that_compute_alike() {
    let files = files();
    let server = Round::draw(0).server;
    let other =
        ServerPlan { slots: 7, keys: !server.keys, blocks: 33, max_queued: Some(2), ..server.clone() };
    assert_eq!(server.reference_arguments(&files), other.reference_arguments(&files));
    assert!(other.arguments(&files).join(" ").contains("-c 2112 "));
    assert!(other.arguments(&files).join(" ").contains("--max-queued 2"));
    assert!(!server.reference_arguments(&files).contains(&"--kv-paged".to_string()));
}

#[test]
fn an_id_of_a_conversation_is_used_by_both_keys_and_by_one_client_of_each() {
    let is_about_them = |round: &Round| round.server.theme == Theme::Conversations;
    let mut meetings = 0;
    for round in rounds().iter().filter(|round| is_about_them(round)) {
        let mut users = std::collections::BTreeMap::<_, std::collections::BTreeSet<_>>::new();
        for ((act, client, _), action) in round.actions() {
            let id = match &action.what {
                ActionKind::Generate(generate) => generate.conversation,
                ActionKind::Conversation(one) => Some(one.conversation),
                _ => None,
            };
            if let Some(id) = id {
                users.entry((act, id)).or_default().insert((client, action.key));
            }
        }
        for ((act, _), users) in users.into_iter().filter(|((act, _), _)| *act > 0) {
            let keys: std::collections::BTreeSet<_> = users.iter().map(|(_, key)| *key).collect();
            assert_eq!(keys.len(), users.len(), "act {act}: {users:?}");
            meetings += usize::from(keys.len() == 2);
        }
    }
    assert!(meetings > 20, "{meetings}");
}

#[test]
fn a_client_with_drafts_after_others_sent_no_request_before() {
    let about = |round: &&Round| round.server.theme == Theme::ForeignDrafts;
    let first = rounds().into_iter().find(|round| about(&round)).map(|round| round.server.drafts);
    assert_eq!(first, Some(Drafts::NgramMod), "the kind that shows the most");
    for round in rounds().iter().filter(about) {
        let alone: Vec<_> = round.actions().filter(|((act, _, _), _)| *act == 0).collect();
        let fresh = alone.iter().filter_map(|(_, action)| match &action.what {
            ActionKind::Generate(one) if one.salt.is_some() || !one.cache => Some((action.key, one)),
            _ => None,
        });
        let fresh: Vec<_> = fresh.collect();
        let salts: std::collections::BTreeSet<_> =
            fresh.iter().filter_map(|(key, one)| Some((key, one.salt?))).collect();
        let unshared = fresh.iter().filter(|(_, one)| !one.cache).count();
        assert_eq!((fresh.len(), salts.len(), unshared), (6, 4, 2));
        for prompt in fresh.iter().map(|(_, one)| &one.prompt) {
            let askers = alone.iter().filter(|(_, action)| {
                matches!(&action.what,
                    ActionKind::Generate(one) if one.prompt.family == prompt.family)
            });
            assert!(askers.count() >= 2);
        }
    }
}

#[test]
fn a_saved_salted_prompt_is_repeated_without_its_salt() {
    let about = |round: &&Round| matches!(round.server.theme, Theme::SlotFiles | Theme::Unpaged);
    for round in rounds().iter().filter(about).filter(|round| round.server.keeps) {
        let first: Vec<&Action> = round.acts[0].clients[0].iter().take(16).collect();
        let mut families = std::collections::BTreeSet::new();
        for four in first.chunks(4) {
            let [
                ActionKind::Generate(one),
                ActionKind::Slot(save),
                ActionKind::Slot(restore),
                ActionKind::Generate(again),
            ] = [&four[0].what, &four[1].what, &four[2].what, &four[3].what]
            else {
                panic!("{four:?}");
            };
            assert!(four.iter().all(|action| action.key == first[0].key));
            assert_eq!((save.action, restore.action), ("save", "restore"));
            assert_eq!((save.owner, save.file), (restore.owner, restore.file));
            assert_eq!((one.slot, again.slot), (Some(save.slot), Some(restore.slot)));
            assert!(one.prompt == again.prompt && one.salt.is_some() && one.salt != again.salt);
            families.insert(one.prompt.family);
        }
        let asks = |family| {
            generates(std::slice::from_ref(round))
                .iter()
                .filter(|(_, _, one)| one.prompt.family == family)
                .count()
        };
        assert!(families.len() == 4 && families.iter().all(|family| asks(*family) == 2));
    }
}
