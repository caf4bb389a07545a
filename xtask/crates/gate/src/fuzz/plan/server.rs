//! How the server of a round is started.

use std::path::PathBuf;

use super::dice::Dice;
use crate::serving::cases::{self, BLOCK};

/// What a round is about: it decides which options are likely, and what clients like to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// More than there is room for, of everything.
    Pressure,
    /// Slots keep their text and are saved, restored and erased, by several tenants.
    Tenants,
    /// Slots keep their text; one tenant.
    Kept,
    /// LoRA adapters whose scales change.
    Adapters,
    /// Images.
    Images,
    /// A draft model, or drafts from the text itself.
    Drafts,
    /// Embeddings between completions.
    Embeddings,
    /// Several answers to one prompt.
    Choices,
    /// Prompts that end with a block, up to the whole pool.
    Boundaries,
    /// Every API, as a stream, with prompts that are preempted.
    Streams,
    /// How fast somebody else's prompt is answered.
    Clock,
    /// The server sleeps between acts.
    Sleep,
    /// Few slots, files and prompts, and two keys that save and restore them all the time.
    SlotFiles,
    /// Two keys use the same ids of conversations for their resumable streams.
    Conversations,
    /// One owner asks what another one has asked before: its drafts must be those of a server that was asked nothing.
    ForeignDrafts,
    /// `--kv-paged` with a model that cannot be paged.
    Unpaged,
}

impl Theme {
    /// Each in turn, by seed.
    pub const ALL: [Theme; 16] = [
        Theme::Pressure,
        Theme::Tenants,
        Theme::Kept,
        Theme::Adapters,
        Theme::Images,
        Theme::Drafts,
        Theme::Embeddings,
        Theme::Choices,
        Theme::Boundaries,
        Theme::Streams,
        Theme::Clock,
        Theme::Sleep,
        Theme::SlotFiles,
        Theme::Conversations,
        Theme::ForeignDrafts,
        Theme::Unpaged,
    ];

    /// Themes about what one tenant may see of another.
    fn needs_keys(self) -> bool {
        matches!(
            self,
            Theme::Tenants | Theme::SlotFiles | Theme::Conversations | Theme::ForeignDrafts | Theme::Unpaged
        )
    }
}

/// Where drafts come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drafts {
    /// Nothing is drafted.
    None,
    /// From the text itself: an n-gram that came before.
    NgramSimple,
    /// From the text itself: a map of n-grams that the slot keeps.
    NgramMapK,
    /// The same with several continuations for each n-gram.
    NgramMapK4v,
    /// From a table of n-grams for all slots of an owner.
    NgramMod,
    /// From counts of n-grams that the slot keeps.
    NgramCache,
    /// From a draft model.
    Model,
}

impl Drafts {
    /// Everything that drafts with the models here. Eagle, MTP, DFlash and DSpark need models that are trained for it.
    pub const KINDS: [Drafts; 6] = [
        Drafts::NgramSimple,
        Drafts::NgramMapK,
        Drafts::NgramMapK4v,
        Drafts::NgramMod,
        Drafts::NgramCache,
        Drafts::Model,
    ];

    /// The options of a server; n-grams are short, or a short answer would never repeat one.
    pub fn arguments(self, draft_model: &str) -> Vec<String> {
        let words = match self {
            Drafts::None => String::new(),
            Drafts::NgramSimple => {
                "ngram-simple --spec-ngram-simple-size-n 4 --spec-ngram-simple-size-m 8".to_string()
            }
            Drafts::NgramMapK => {
                "ngram-map-k --spec-ngram-map-k-size-n 4 --spec-ngram-map-k-size-m 8".to_string()
            }
            Drafts::NgramMapK4v => {
                "ngram-map-k4v --spec-ngram-map-k4v-size-n 4 --spec-ngram-map-k4v-size-m 8".to_string()
            }
            Drafts::NgramMod => "ngram-mod --spec-ngram-mod-n-match 4 --spec-ngram-mod-n-min 2 \
                                 --spec-ngram-mod-n-max 8"
                .to_string(),
            Drafts::NgramCache => "ngram-cache".to_string(),
            Drafts::Model => "draft-simple --spec-draft-n-max 8".to_string(),
        };
        let mut words: Vec<String> = words.split_whitespace().map(str::to_string).collect();
        if self != Drafts::None {
            words.insert(0, "--spec-type".to_string());
        }
        if self == Drafts::Model {
            words.extend(["-md".to_string(), draft_model.to_string()]);
        }
        words
    }
}

/// Why the memory of a model cannot be paged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unpageable {
    /// A sliding window.
    Window,
    /// A recurrent state.
    Recurrent,
}

/// The options of a server; the reference has those of them that change what is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerPlan {
    /// What the round is about.
    pub theme: Theme,
    /// Blocks of the pool.
    pub blocks: usize,
    /// Slots.
    pub slots: usize,
    /// `-b` and `-ub`, in tokens.
    pub batches: (usize, usize),
    /// `-ctk` and `-ctv`, or [`COPIES`].
    pub kv_type: &'static str,
    /// `-t`.
    pub threads: usize,
    /// `--prefill-budget`, in tokens.
    pub prefill_budget: Option<usize>,
    /// `--slot-save-path`: slots keep their text.
    pub keeps: bool,
    /// `--api-key`, with two of them.
    pub keys: bool,
    /// `--metrics`.
    pub metrics: bool,
    /// `--sleep-idle-seconds 1`.
    pub sleeps: bool,
    /// `--spec-type`.
    pub drafts: Drafts,
    /// `--embedding --pooling last`.
    pub embeddings: bool,
    /// Random weights with two adapters.
    pub adapters: bool,
    /// Random weights with a vision encoder.
    pub vision: bool,
    /// Random weights of a model that cannot be paged.
    pub unpageable: Option<Unpageable>,
}

/// A cache of two bits of which every cell has a copy in f16: answers are those of an f16 cache. Not where states are saved,
/// which have the cache alone.
pub const COPIES: &str = "copies";

/// The keys of the tenants, where there are any.
pub const KEYS: [&str; 2] = ["alice-key", "bob-key"];

/// How many adapters there are.
pub const ADAPTERS: usize = 2;

/// The files that servers load and write.
#[derive(Clone, Debug)]
pub struct Files {
    /// The trained model.
    pub trained: PathBuf,
    /// The model of random weights.
    pub random: PathBuf,
    /// Its adapters.
    pub adapters: [PathBuf; ADAPTERS],
    /// Its vision encoder.
    pub vision: PathBuf,
    /// The model of random weights with a sliding window.
    pub windowed: PathBuf,
    /// The model of random weights with a recurrent state.
    pub recurrent: PathBuf,
    /// Where slots are saved.
    pub slots: PathBuf,
}

impl ServerPlan {
    /// Draws one.
    pub fn draw(dice: &mut Dice, theme: Theme) -> ServerPlan {
        let adapters = theme == Theme::Adapters || theme == Theme::Images && dice.chance(50);
        let vision = theme == Theme::Images;
        let batch = dice.pick(&[16, 48, 64, 128, 512]);
        // A prompt in many parts is preempted more often.
        let batch = if theme == Theme::Streams { batch.min(48) } else { batch };
        let batches = (batch, dice.pick(&[batch, batch, batch / 2, 16]).min(batch));
        let mut plan = ServerPlan {
            theme,
            // A context is a multiple of 256 cells, whatever is asked for.
            blocks: dice.pick(&[16, 16, 20, 24, 32, 64]),
            slots: dice.pick(&[2, 3, 4, 6, 8]),
            batches: if vision { (512, 512) } else { batches },
            kv_type: dice.pick(&["f16", "q8_0", "q8_0", "turbo4", "tcq3", COPIES]),
            // Threads wait for each other without sleep: on a busy machine two are much slower than one.
            threads: if dice.chance(20) { 2 } else { 1 },
            // One token a step would make long prompts wait for all others, as it says.
            prefill_budget: Some(dice.pick(&[16, 32, 64, 2_147_483_647])).filter(|_| dice.chance(30)),
            keeps: match theme {
                Theme::Tenants | Theme::Kept | Theme::SlotFiles => true,
                Theme::Embeddings | Theme::Drafts | Theme::Unpaged => dice.chance(70),
                Theme::ForeignDrafts => dice.chance(40),
                _ => dice.chance(15),
            },
            keys: theme.needs_keys() || dice.chance(30),
            metrics: dice.chance(70),
            sleeps: theme == Theme::Sleep,
            drafts: match theme {
                Theme::Drafts | Theme::ForeignDrafts => dice.pick(&Drafts::KINDS),
                _ => Drafts::None,
            },
            embeddings: theme == Theme::Embeddings,
            adapters,
            vision,
            unpageable: (theme == Theme::Unpaged)
                .then(|| dice.pick(&[Unpageable::Window, Unpageable::Recurrent])),
        };
        plan.restrict();
        plan
    }

    /// What an option rules out.
    fn restrict(&mut self) {
        if self.keeps && self.kv_type == COPIES {
            self.kv_type = "f16";
        }
        if self.theme == Theme::SlotFiles {
            self.slots = 2;
        }
        // The draft model is the model: with a coarse cache nothing that it drafts would be accepted.
        // Two threads are slow on a busy machine, and an act ends after some seconds.
        if self.theme == Theme::ForeignDrafts {
            self.kv_type = "f16";
            self.threads = 1;
        }
        if self.unpageable.is_some() {
            self.kv_type = "f16";
            self.prefill_budget = None;
        }
    }

    /// Whether the KV cache is paged: the server is asked for it in any case.
    pub fn is_paged(&self) -> bool {
        self.unpageable.is_none()
    }

    /// Tokens that the server is started with: where nothing is paged, as many for each slot as a pool has for all.
    pub fn context(&self) -> usize {
        self.cells() * if self.is_paged() { 1 } else { self.slots }
    }

    /// Cells of the pool: the context of every request.
    pub fn cells(&self) -> usize {
        self.blocks * BLOCK
    }

    /// Whether the weights are random, and a token is a byte.
    pub fn is_random(&self) -> bool {
        self.adapters || self.vision || self.unpageable.is_some()
    }

    /// What the paged server is started with, besides what `reference_arguments` says.
    pub fn arguments(&self, files: &Files) -> Vec<String> {
        let mut words = self.common(files, "-c", self.context());
        let mut add = |more: &[&str]| words.extend(more.iter().map(ToString::to_string));
        add(&["--kv-paged", "-np", &self.slots.to_string(), "-t", &self.threads.to_string()]);
        add(&["-b", &self.batches.0.to_string(), "-ub", &self.batches.1.to_string()]);
        if self.kv_type == COPIES {
            add(&["-ctk", "turbo2", "-ctv", "turbo2", "--kv-recent", "65536"]);
        }
        if let Some(budget) = self.prefill_budget {
            add(&["--prefill-budget", &budget.to_string()]);
        }
        if self.keeps {
            add(&["--slot-save-path", &format!("{}/", files.slots.display())]);
        }
        if self.keys {
            add(&["--api-key", &KEYS.join(",")]);
        }
        if self.metrics {
            add(&["--metrics"]);
        }
        if self.sleeps {
            add(&["--sleep-idle-seconds", "1"]);
        }
        words.extend(self.drafts.arguments(&files.trained.display().to_string()));
        words
    }

    /// What the server that answers alone is started with: rounds for which it is the same share one.
    pub fn reference_arguments(&self, files: &Files) -> Vec<String> {
        let mut words = self.common(files, "-c", REFERENCE_CELLS);
        let alone = ["-np", "1", "-t", "1", "--cache-ram", "0", "--no-cache-prompt", "--kv-unified"];
        words.extend(alone.map(str::to_string));
        words
    }

    fn common(&self, files: &Files, context: &str, cells: usize) -> Vec<String> {
        let model = match self.unpageable {
            Some(Unpageable::Window) => &files.windowed,
            Some(Unpageable::Recurrent) => &files.recurrent,
            None if self.is_random() => &files.random,
            None => &files.trained,
        };
        let mut words = vec!["--model".to_string(), model.display().to_string()];
        words.extend([context.to_string(), cells.to_string()]);
        let kv_type = if self.kv_type == COPIES { "f16" } else { self.kv_type };
        words.extend(["-ctk", kv_type, "-ctv", kv_type].map(str::to_string));
        if self.is_random() {
            words.extend(cases::only_text_arguments());
        }
        if self.adapters {
            for adapter in &files.adapters {
                words.extend(["--lora".to_string(), adapter.display().to_string()]);
            }
        }
        if self.vision {
            words.extend(["--mmproj".to_string(), files.vision.display().to_string()]);
        }
        if self.embeddings {
            words.extend(["--embedding", "--pooling", "last"].map(str::to_string));
        }
        words
    }
}

/// Enough for the longest prompt of the largest pool and its answer.
const REFERENCE_CELLS: usize = 8192;
