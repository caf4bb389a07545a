//! PURE: derives a round from a seed: the server's configuration, and the actions of each client.

pub mod actions;
pub mod body;
mod clock;
pub mod dice;
mod foreign_drafts;
pub mod model;
pub mod prompts;
pub mod server;
mod slot_files;

use self::actions::{Action, ActionKind, CONVERSATIONS, ConversationAction, Order};
use self::dice::Dice;
use self::model::ModelKind;
use self::prompts::Prompt;
use self::server::{ADAPTERS, Drafts, KEYS, ServerPlan, Theme};

/// Everything that a seed decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// The seed.
    pub seed: u64,
    /// The server.
    pub server: ServerPlan,
    /// Acts, run in sequence; between them the server is idle.
    pub acts: Vec<Act>,
}

/// A group of concurrent clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Act {
    /// LoRA scales that the server is set to before the act.
    pub own_scales: [f64; ADAPTERS],
    /// Whether the server is asleep when the clients arrive.
    pub after_sleep: bool,
    /// The actions of each client, in order.
    pub clients: Vec<Vec<Action>>,
}

impl Act {
    /// Whether there is only one client, so that the state left by earlier requests is known.
    pub fn is_alone(&self) -> bool {
        self.clients.len() == 1
    }
}

impl Round {
    /// Draws the round of a seed. Consecutive seeds cycle through the themes.
    pub fn draw(seed: u64) -> Round {
        Round::draw_for(seed, None)
    }

    /// As [`Round::draw`], with this model if the theme allows it.
    pub fn draw_for(seed: u64, model: Option<ModelKind>) -> Round {
        let themes = Theme::ALL.len() as u64;
        let index = usize::try_from(seed % themes).unwrap_or(0);
        let pass = usize::try_from(seed / themes).unwrap_or(0);
        let theme = Theme::ALL[index];
        let mut dice = Dice::new(seed, 0);
        let mut server = ServerPlan::draw(&mut dice, theme);
        if theme == Theme::ForeignDrafts {
            // Starts with the table that all slots of an owner share: it leaks most if owners are mixed up.
            let first = Drafts::KINDS.iter().position(|kind| *kind == Drafts::NgramMod).unwrap_or(0);
            server.drafts = Drafts::KINDS[(first + pass) % Drafts::KINDS.len()];
        }
        server = server.with_suggested(pass, index, model);
        server.limit_queue(&mut Dice::new(seed, 2));
        server.limit_snapshots(&mut Dice::new(seed, 3));
        server.limit_windows(&mut Dice::new(seed, 4));
        server.compute_in_place(&mut Dice::new(seed, 5));
        let prompts = Prompt::draw_all(&mut dice, &server, seed);
        let mut acts: Vec<Act> = match theme {
            Theme::Clock => vec![clock::act(&server, seed)],
            Theme::ForeignDrafts => vec![
                foreign_drafts::act(&mut dice, &server, seed),
                Act::draw(&mut dice, &server, &prompts, 1),
            ],
            _ => (0..3).map(|number| Act::draw(&mut dice, &server, &prompts, number)).collect(),
        };
        if matches!(theme, Theme::SlotFiles | Theme::Unpaged) && server.keeps {
            acts[0].clients[0].splice(0..0, slot_files::actions(&server, seed));
        }
        Round { seed, server, acts }
    }

    /// Iterates over all actions with their positions: act, client, number.
    pub fn actions(&self) -> impl Iterator<Item = ((usize, usize, usize), &Action)> {
        self.acts.iter().enumerate().flat_map(|(act, one)| {
            one.clients.iter().enumerate().flat_map(move |(client, actions)| {
                actions.iter().enumerate().map(move |(number, action)| ((act, client, number), action))
            })
        })
    }
}

impl Act {
    fn draw(dice: &mut Dice, server: &ServerPlan, prompts: &[Prompt], number: usize) -> Act {
        // A file has to be saved before it can be restored.
        let most_alone = if server.theme == Theme::SlotFiles { 40 } else { 16 };
        // The first act has a single client, which makes the expected results most precise.
        let clients = if number == 0 { 1 } else { dice.between(2, server.slots + 4) };
        let visits = if number == 0 { most_alone } else { dice.between(5, 9) };
        let few = &prompts[..if number == 0 { 4 } else { prompts.len() }];
        let draw_client = |_| (0..visits).map(|_| Action::draw(dice, server, few)).collect();
        let mut clients: Vec<Vec<Action>> = (0..clients).map(draw_client).collect();
        if number == 0 {
            clients.iter_mut().flatten().for_each(stay);
        }
        if server.theme == Theme::Conversations && number > 0 {
            divide_conversations(&mut clients);
        }
        Act {
            own_scales: if number == 1 { [0.0, 0.0] } else { [1.0, 1.0] },
            after_sleep: server.sleeps && number > 0,
            clients,
        }
    }
}

/// Gives each pair of clients its own conversation ids, and each of the two another API key: any change to a stream
/// that its client did not cause was caused by the other key. Mistakes become requests that are refused under an id.
fn divide_conversations(clients: &mut [Vec<Action>]) {
    for (number, actions) in clients.iter_mut().enumerate() {
        let offset = CONVERSATIONS * (1 + number / KEYS.len());
        for (index, action) in actions.iter_mut().enumerate() {
            action.key = Some(number % KEYS.len());
            if matches!(action.what, ActionKind::Mistake(..)) {
                let conversation = index % CONVERSATIONS;
                action.what =
                    ActionKind::Conversation(ConversationAction { conversation, order: Order::Refused });
            }
            match &mut action.what {
                ActionKind::Generate(generate) => {
                    generate.conversation = generate.conversation.map(|one| one + offset);
                }
                ActionKind::Conversation(conversation) => conversation.conversation += offset,
                _ => {}
            }
        }
    }
}

/// Keeps the client connected: after a disconnect the state that a single client leaves behind would be unknown.
fn stay(action: &mut Action) {
    if matches!(action.what, ActionKind::Generate(_)) {
        action.leave = espalier_core::http::Disconnect::Never;
    }
}

#[cfg(test)]
mod tests;
