//! Client actions.

use std::time::Duration;

use espalier_core::http::Disconnect;

use super::dice::Dice;
use super::prompts::{MAX_PREDICTED, Prompt};
use super::server::{ADAPTERS, KEYS, ServerPlan, Theme};

/// One action of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// Pause before the action.
    pub pause: Duration,
    /// Index of the API key, if the server uses keys.
    pub key: Option<usize>,
    /// The request.
    pub what: ActionKind,
    /// Condition on which the client disconnects.
    pub leave: Disconnect,
}

/// A request of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionKind {
    /// Text generation.
    Generate(Generate),
    /// An embedding.
    Embed(Prompt),
    /// Save, restore or erase of a slot.
    Slot(SlotAction),
    /// An operation on a resumable stream.
    Conversation(ConversationAction),
    /// An invalid request.
    Mistake(Mistake, Prompt),
}

/// A text-generation API.
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

/// Most tokens that the chat template of a model adds to a prompt.
const CHAT_TOKENS: usize = 16;

impl Api {
    fn draw(dice: &mut Dice, theme: Theme) -> Api {
        use Api::{Chat, Completion, Completions, Messages, Responses};
        match theme {
            // The conversion from one API to another may drop the adapters.
            Theme::Adapters | Theme::Images => dice.pick(&[Completion, Completions, Chat]),
            Theme::Streams | Theme::Conversations => {
                dice.pick(&[Completion, Completions, Chat, Messages, Responses])
            }
            Theme::Choices => dice.pick(&[Completions, Completions, Completion]),
            _ => dice.pick(&[Completion, Completion, Completion, Completions, Chat, Messages, Responses]),
        }
    }

    /// Returns its path.
    pub fn path(self) -> &'static str {
        match self {
            Api::Completion => "/completion",
            Api::Completions => "/v1/completions",
            Api::Chat => "/v1/chat/completions",
            Api::Messages => "/v1/messages",
            Api::Responses => "/v1/responses",
        }
    }

    /// Whether it accepts a prompt as token ids.
    pub fn takes_tokens(self) -> bool {
        matches!(self, Api::Completion | Api::Completions)
    }
}

/// A text-generation request.
#[derive(Clone, Debug, PartialEq)]
pub struct Generate {
    /// The API.
    pub api: Api,
    /// The prompt.
    pub prompt: Prompt,
    /// Number of tokens of each choice.
    pub predict: usize,
    /// `stream`.
    pub stream: bool,
    /// Index of the `cache_salt`: prefixes are shared only between requests with the same salt.
    pub salt: Option<usize>,
    /// Whether the name `cache_salt` has an escaped letter in the JSON body.
    pub escaped: bool,
    /// `cache_prompt`.
    pub cache: bool,
    /// Scales of the LoRA adapters; the server's own if `None`.
    pub scales: Option<[f64; ADAPTERS]>,
    /// `id_slot`: the requested slot.
    pub slot: Option<usize>,
    /// `n`: number of choices.
    pub choices: usize,
    /// Whether to request the probabilities of the likeliest tokens.
    pub likeliest: bool,
    /// `X-Conversation-Id`: the id under which the stream can be resumed.
    pub conversation: Option<usize>,
}

impl Generate {
    /// Builds a `/completion` request with nothing but a prompt.
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

/// An operation on a slot and its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotAction {
    /// The slot.
    pub slot: usize,
    /// `save`, `restore` or `erase`.
    pub action: &'static str,
    /// Owner of the file: index of its API key; 0 without keys.
    pub owner: usize,
    /// Index among the owner's files.
    pub file: usize,
}

/// An operation on the resumable stream of a conversation id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConversationAction {
    /// Index of the conversation id.
    pub conversation: usize,
    /// The operation.
    pub order: Order,
}

/// Operations on a resumable stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// `GET /v1/stream`: the whole stream from its beginning.
    Resume,
    /// `POST /v1/streams/lookup`
    LookUp,
    /// `DELETE /v1/stream`
    End,
    /// A request for another stream, which is refused and so replaces none.
    Refused,
}

/// A request that the server must refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A grammar that does not parse.
    Grammar,
    /// A salt that is not a string.
    Salt,
    /// A prompt as long as the context.
    TooLong,
    /// `/infill`, which the models here do not support.
    Infill,
}

/// Number of conversation ids that a client uses.
pub const CONVERSATIONS: usize = 2;

/// Number of distinct salts.
const SALTS: usize = 2;

const SCALES: [[f64; ADAPTERS]; 7] =
    [[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, -0.5], [1.0, 1.0], [1.0, -1.0]];

impl Action {
    /// Draws an action.
    pub fn draw(dice: &mut Dice, server: &ServerPlan, prompts: &[Prompt]) -> Action {
        let pause = if dice.chance(60) { 0 } else { dice.below(60) };
        let what = ActionKind::draw(dice, server, prompts);
        let key = server.keys.then(|| dice.below(KEYS.len()));
        let key = match what {
            ActionKind::Slot(slot) if server.theme == Theme::SlotFiles && dice.chance(30) => Some(slot.owner),
            _ => key,
        };
        Action { pause: Duration::from_millis(pause as u64), key, leave: what.draw_leave(dice), what }
    }
}

impl ActionKind {
    fn draw(dice: &mut Dice, server: &ServerPlan, prompts: &[Prompt]) -> ActionKind {
        let prompt = prompts[dice.below(prompts.len())].clone();
        let is_bare = prompt.images.is_empty();
        if server.theme == Theme::Conversations && dice.chance(50) {
            return ActionKind::Conversation(ConversationAction::draw(dice));
        }
        if server.theme == Theme::SlotFiles && dice.chance(45) {
            return ActionKind::Slot(SlotAction::draw(dice, server));
        }
        match dice.below(100) {
            0..12 if server.keeps => ActionKind::Slot(SlotAction::draw(dice, server)),
            12..40 if server.embeddings => ActionKind::Embed(prompt),
            40..46 if is_bare => ActionKind::Mistake(draw_mistake(dice), prompt),
            _ => ActionKind::Generate(Generate::draw(dice, server, prompt)),
        }
    }

    fn draw_leave(&self, dice: &mut Dice) -> Disconnect {
        let ActionKind::Generate(generate) = self else { return Disconnect::Never };
        match dice.below(100) {
            0..4 => Disconnect::AfterTime(Duration::ZERO),
            4..12 => Disconnect::AfterTime(Duration::from_millis(dice.below(120) as u64)),
            12..22 if generate.stream => Disconnect::AfterEvents(dice.below(generate.predict + 1)),
            _ => Disconnect::Never,
        }
    }
}

impl Generate {
    fn draw(dice: &mut Dice, server: &ServerPlan, prompt: Prompt) -> Generate {
        let theme = server.theme;
        let api = if prompt.images.is_empty() { Api::draw(dice, theme) } else { Api::Completion };
        let several = api == Api::Completions && wants_choices(dice, server);
        let longest_prompt = prompt.length() + if api.takes_tokens() { 0 } else { CHAT_TOKENS };
        let longest_answer = server.cells() - 1 - longest_prompt.min(server.cells() - 2);
        let wanted = dice.pick(&[1, 2, 8, 20, 40, 70, MAX_PREDICTED]);
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
            predict: wanted.min(longest_answer).max(1),
            stream,
            salt: Some(dice.below(SALTS)).filter(|_| dice.chance(20)),
            escaped: dice.chance(25),
            // Entries that a request with `cache_prompt: false` leaves behind show when the same prompt is sent after
            // it.
            cache: !dice.chance(if matches!(theme, Theme::Kept | Theme::Boundaries) { 40 } else { 12 }),
            scales: server.adapters.then(|| dice.pick(&SCALES)).filter(|_| dice.chance(80)),
            slot: Some(dice.below(server.slots)).filter(|_| dice.chance(wants_slot)),
            choices: if several { dice.between(2, server.slots.min(4)) } else { 1 },
            likeliest: dice.chance(50),
            conversation: (server.theme == Theme::Conversations && stream).then(|| dice.below(CONVERSATIONS)),
            prompt,
        }
    }

    /// The text of the salt.
    pub fn salt_text(&self) -> Option<String> {
        self.salt.map(|salt| format!("salt {salt}"))
    }
}

/// Decides whether to request several choices. In an unpaged cache with a sliding window they run out of KV cache, in
/// stock as well.
fn wants_choices(dice: &mut Dice, server: &ServerPlan) -> bool {
    let is_wanted = dice.chance(if server.theme == Theme::Choices { 80 } else { 15 });
    is_wanted && (server.is_paged() || !server.model.has_window())
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

    /// The file name.
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

    /// The conversation id for an index.
    pub fn id(conversation: usize) -> String {
        format!("conversation-{conversation}")
    }
}

fn draw_mistake(dice: &mut Dice) -> Mistake {
    dice.pick(&[Mistake::Grammar, Mistake::Grammar, Mistake::Salt, Mistake::TooLong, Mistake::Infill])
}
