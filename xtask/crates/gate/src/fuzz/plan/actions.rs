//! What a client does.

use std::time::Duration;

use super::dice::Dice;
use super::prompts::{MOST_PREDICTED, Prompt};
use super::server::{ADAPTERS, KEYS, ServerPlan, Theme, Unpageable};
use crate::sys::net::exchange::Leave;

/// One thing that a client does.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// How long the client waits before it.
    pub pause: Duration,
    /// Which key, where there are keys.
    pub key: Option<usize>,
    /// What it asks.
    pub what: What,
    /// When it goes away.
    pub leave: Leave,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// An answer.
    Generate(Generate),
    /// A vector.
    Embed(Prompt),
    /// A slot's file.
    Slot(SlotAction),
    /// A resumable stream.
    Conversation(ConversationAction),
    /// Something that cannot be.
    Mistake(Mistake, Prompt),
}

/// An API that answers with text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// `/completion`
    Completion,
    /// `/v1/completions`
    Completions,
    /// `/v1/chat/completions`
    Chat,
    /// `/v1/messages`
    Messages,
    /// `/v1/responses`
    Responses,
}

impl Api {
    /// Its path.
    pub fn path(self) -> &'static str {
        match self {
            Api::Completion => "/completion",
            Api::Completions => "/v1/completions",
            Api::Chat => "/v1/chat/completions",
            Api::Messages => "/v1/messages",
            Api::Responses => "/v1/responses",
        }
    }

    /// Whether it takes a prompt in tokens.
    pub fn takes_tokens(self) -> bool {
        matches!(self, Api::Completion | Api::Completions)
    }
}

/// A request for text.
#[derive(Clone, Debug, PartialEq)]
pub struct Generate {
    /// Where it is asked.
    pub api: Api,
    /// The prompt.
    pub prompt: Prompt,
    /// Tokens of each answer.
    pub predict: usize,
    /// As a stream.
    pub stream: bool,
    /// Shares only with who has the same.
    pub salt: Option<usize>,
    /// The name `cache_salt` has an escaped letter.
    pub escaped: bool,
    /// `cache_prompt`.
    pub cache: bool,
    /// Scales of the adapters; the server's own when none are given.
    pub scales: Option<[f64; ADAPTERS]>,
    /// The slot that is wanted.
    pub slot: Option<usize>,
    /// Answers.
    pub choices: usize,
    /// Say what else was likely.
    pub likeliest: bool,
    /// `X-Conversation-Id`: the stream can be resumed under this id.
    pub conversation: Option<usize>,
}

impl Generate {
    /// `/completion` with nothing but a prompt.
    pub fn plain(prompt: Prompt, predict: usize) -> Generate {
        Generate {
            api: Api::Completion,
            prompt,
            predict,
            stream: false,
            salt: None,
            escaped: false,
            cache: true,
            scales: None,
            slot: None,
            choices: 1,
            likeliest: false,
            conversation: None,
        }
    }
}

/// What is done with a slot's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotAction {
    /// The slot.
    pub slot: usize,
    /// `save`, `restore` or `erase`.
    pub action: &'static str,
    /// Whose file: an index of a key; 0 without keys.
    pub owner: usize,
    /// Which of the owner's files.
    pub file: usize,
}

/// What is done with the stream of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConversationAction {
    /// The id.
    pub conversation: usize,
    /// What.
    pub order: Order,
}

/// What can be done with a resumable stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// `GET /v1/stream`: all of it from its beginning.
    Resume,
    /// `POST /v1/streams/lookup`
    LookUp,
    /// `DELETE /v1/stream`
    End,
}

/// Something that the server has to refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A grammar that is none.
    Grammar,
    /// A salt that is no text.
    Salt,
    /// A prompt as long as the context.
    TooLong,
    /// `/infill`, which the models here do not know.
    Infill,
}

/// Ids of conversations that a client uses.
pub const CONVERSATIONS: usize = 2;

/// Salts that are used.
const SALTS: usize = 2;

const SCALES: [[f64; ADAPTERS]; 7] =
    [[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, -0.5], [1.0, 1.0], [1.0, -1.0]];

impl Action {
    /// Draws one.
    pub fn draw(dice: &mut Dice, server: &ServerPlan, prompts: &[Prompt]) -> Action {
        let pause = if dice.chance(60) { 0 } else { dice.below(60) };
        let what = What::draw(dice, server, prompts);
        let key = server.keys.then(|| dice.below(KEYS.len()));
        let key = match what {
            What::Slot(slot) if server.theme == Theme::SlotFiles && dice.chance(30) => Some(slot.owner),
            _ => key,
        };
        Action { pause: Duration::from_millis(pause as u64), key, leave: what.draw_leave(dice), what }
    }
}

impl What {
    fn draw(dice: &mut Dice, server: &ServerPlan, prompts: &[Prompt]) -> What {
        let prompt = prompts[dice.below(prompts.len())].clone();
        let is_bare = prompt.images.is_empty();
        if server.theme == Theme::Conversations && dice.chance(50) {
            return What::Conversation(ConversationAction::draw(dice));
        }
        if server.theme == Theme::SlotFiles && dice.chance(45) {
            return What::Slot(SlotAction::draw(dice, server));
        }
        match dice.below(100) {
            0..12 if server.keeps => What::Slot(SlotAction::draw(dice, server)),
            12..40 if server.embeddings => What::Embed(prompt),
            40..46 if is_bare => What::Mistake(draw_mistake(dice), prompt),
            _ => What::Generate(Generate::draw(dice, server, prompt)),
        }
    }

    fn draw_leave(&self, dice: &mut Dice) -> Leave {
        let What::Generate(generate) = self else { return Leave::Never };
        match dice.below(100) {
            0..4 => Leave::AfterTime(Duration::ZERO),
            4..12 => Leave::AfterTime(Duration::from_millis(dice.below(120) as u64)),
            12..22 if generate.stream => Leave::AfterEvents(dice.below(generate.predict + 1)),
            _ => Leave::Never,
        }
    }
}

impl Generate {
    fn draw(dice: &mut Dice, server: &ServerPlan, prompt: Prompt) -> Generate {
        let (theme, has_images) = (server.theme, !prompt.images.is_empty());
        let api = match (has_images, theme) {
            (true, _) => Api::Completion,
            // What converts one API to another may not know of adapters.
            (_, Theme::Adapters | Theme::Images) => {
                dice.pick(&[Api::Completion, Api::Completions, Api::Chat])
            }
            (_, Theme::Streams | Theme::Conversations) => {
                dice.pick(&[Api::Completion, Api::Completions, Api::Chat, Api::Messages, Api::Responses])
            }
            (_, Theme::Choices) => dice.pick(&[Api::Completions, Api::Completions, Api::Completion]),
            _ => dice.pick(&[
                Api::Completion,
                Api::Completion,
                Api::Completion,
                Api::Completions,
                Api::Chat,
                Api::Messages,
                Api::Responses,
            ]),
        };
        let several = api == Api::Completions && wants_choices(dice, server);
        let room = server.cells() - 1 - prompt.length().min(server.cells() - 2);
        let wanted = dice.pick(&[1, 2, 8, 20, 40, 70, MOST_PREDICTED]);
        let stream = dice.chance(match theme {
            Theme::Streams | Theme::Conversations => 85,
            _ => 45,
        });
        let wants_slot = match theme {
            Theme::SlotFiles | Theme::Unpaged => 60,
            _ => 10,
        };
        Generate {
            api,
            predict: wanted.min(room).max(1),
            stream,
            salt: Some(dice.below(SALTS)).filter(|_| dice.chance(20)),
            escaped: dice.chance(25),
            // What a private prompt leaves is seen when somebody asks the same after it.
            cache: !dice.chance(if matches!(theme, Theme::Kept | Theme::Boundaries) { 40 } else { 12 }),
            scales: server.adapters.then(|| dice.pick(&SCALES)).filter(|_| dice.chance(80)),
            slot: Some(dice.below(server.slots)).filter(|_| dice.chance(wants_slot)),
            choices: if several { dice.between(2, server.slots.min(4)) } else { 1 },
            likeliest: dice.chance(50),
            conversation: (server.theme == Theme::Conversations && stream).then(|| dice.below(CONVERSATIONS)),
            prompt,
        }
    }

    /// The salt by its name.
    pub fn salt_text(&self) -> Option<String> {
        self.salt.map(|salt| format!("salt {salt}"))
    }
}

/// In a unified cache with a sliding window several choices run out of cells, in stock too.
fn wants_choices(dice: &mut Dice, server: &ServerPlan) -> bool {
    let is_wanted = dice.chance(if server.theme == Theme::Choices { 80 } else { 15 });
    is_wanted && server.unpageable != Some(Unpageable::Window)
}

impl SlotAction {
    fn draw(dice: &mut Dice, server: &ServerPlan) -> SlotAction {
        SlotAction {
            slot: dice.below(server.slots),
            action: dice.pick(&["save", "save", "restore", "restore", "erase"]),
            owner: if server.keys { dice.below(KEYS.len()) } else { 0 },
            file: dice.below(2),
        }
    }

    /// The name of the file.
    pub fn file_name(&self) -> String {
        format!("owner-{}-{}.bin", self.owner, self.file)
    }
}

impl ConversationAction {
    fn draw(dice: &mut Dice) -> ConversationAction {
        ConversationAction {
            conversation: dice.below(CONVERSATIONS),
            order: dice.pick(&[Order::Resume, Order::Resume, Order::LookUp, Order::End]),
        }
    }

    /// The name of the conversation of a number.
    pub fn id(conversation: usize) -> String {
        format!("conversation-{conversation}")
    }
}

fn draw_mistake(dice: &mut Dice) -> Mistake {
    dice.pick(&[Mistake::Grammar, Mistake::Grammar, Mistake::Salt, Mistake::TooLong, Mistake::Infill])
}
