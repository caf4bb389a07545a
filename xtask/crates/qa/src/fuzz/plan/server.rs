//! Server configuration of a fuzz round.

use std::path::PathBuf;

use espalier_modelgen::DraftKind;

use super::dice::Dice;
use super::model::ModelKind;
use crate::serving::cases::{self, BLOCK};
use crate::serving::switches;

/// Subject of a round: decides which server options are likely and what clients tend to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// Oversubscription: more of everything than the pool has capacity for.
    Pressure,
    /// Slots retain their sequences and are saved, restored and erased, by several tenants.
    Tenants,
    /// Slots retain their sequences; one tenant.
    Kept,
    /// LoRA adapters whose scales change.
    Adapters,
    /// Images.
    Images,
    /// A draft model, or drafts from n-grams of the sequence itself.
    Drafts,
    /// Embeddings between completions.
    Embeddings,
    /// Several choices (`n`) for one prompt.
    Choices,
    /// Prompts that end at a block boundary, up to the size of the whole pool.
    Boundaries,
    /// Every API, streamed, with prompts that are preempted.
    Streams,
    /// Timing side channel: time to answer a prompt that another tenant sent before.
    Clock,
    /// The server goes to sleep between acts.
    Sleep,
    /// Few slots, files and prompts, and two API keys that save and restore them constantly.
    SlotFiles,
    /// Two API keys use the same conversation ids for their resumable streams.
    Conversations,
    /// One owner sends prompts that another one sent before: its drafts must match those of a server without earlier
    /// requests.
    ForeignDrafts,
    /// `--kv-paged` with a buffer for each sequence, which cannot be paged.
    Unpaged,
}

impl Theme {
    /// All themes; consecutive seeds cycle through them.
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

    /// Themes in which a request may be refused with 429. In the others the state of a stream, of a draft or of the
    /// cache has to follow from the requests alone.
    fn may_refuse(self) -> bool {
        !matches!(self, Theme::Conversations | Theme::ForeignDrafts | Theme::Clock)
    }

    /// Themes that test tenant isolation and so need several API keys.
    fn needs_keys(self) -> bool {
        matches!(
            self,
            Theme::Tenants | Theme::SlotFiles | Theme::Conversations | Theme::ForeignDrafts | Theme::Unpaged
        )
    }
}

/// Source of speculative drafts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drafts {
    /// No drafts.
    None,
    /// From the sequence itself: an earlier occurrence of the last n-gram.
    NgramSimple,
    /// From the sequence itself: a per-slot map of n-grams.
    NgramMapK,
    /// Like [`Drafts::NgramMapK`], with several continuations per n-gram.
    NgramMapK4v,
    /// From an n-gram table that all slots of an owner share.
    NgramMod,
    /// From per-slot n-gram counts.
    NgramCache,
    /// From a draft model.
    Model,
    /// From a draft model that reads the model's hidden states.
    Eagle3,
    /// The same, a block of tokens at a time.
    DFlash,
    /// From a block of the model itself that predicts the token after the next.
    Mtp,
}

impl Drafts {
    /// Sources that work with every model, if a model may draft for itself.
    pub const KINDS: [Drafts; 6] = [
        Drafts::NgramSimple,
        Drafts::NgramMapK,
        Drafts::NgramMapK4v,
        Drafts::NgramMod,
        Drafts::NgramCache,
        Drafts::Model,
    ];

    /// Sources that read hidden states, with a model that has them. Draft models are random as their targets, so hardly
    /// a draft is accepted. There is no DSpark model.
    pub const HIDDEN: [(Drafts, ModelKind); 4] = [
        (Drafts::Eagle3, ModelKind::Llama),
        (Drafts::Eagle3, ModelKind::Qwen35),
        (Drafts::DFlash, ModelKind::Llama),
        (Drafts::Mtp, ModelKind::Qwen35),
    ];

    /// Returns the source of hidden states that a round suggests to the themes of drafts, if it does: in every fourth
    /// pass over the themes.
    pub fn suggested(pass: usize) -> Option<(Drafts, ModelKind)> {
        (pass % 4 == 1).then(|| Drafts::HIDDEN[pass / 4 % Drafts::HIDDEN.len()])
    }

    /// Whether they are computed from hidden states of the model. Such drafts learn nothing from other requests, but
    /// depend on how sums are rounded.
    pub fn reads_hidden_states(self) -> bool {
        Drafts::HIDDEN.iter().any(|(drafts, _)| *drafts == self)
    }

    /// Returns the draft model, if it has a file of its own.
    pub fn draft_kind(self) -> Option<DraftKind> {
        match self {
            Drafts::Eagle3 => Some(DraftKind::Eagle3),
            Drafts::DFlash => Some(DraftKind::DFlash),
            _ => None,
        }
    }

    /// Server options. N-grams are short because a short answer would never repeat a long one.
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
            Drafts::Eagle3 => "draft-eagle3".to_string(),
            Drafts::DFlash => "draft-dflash".to_string(),
            Drafts::Mtp => "draft-mtp".to_string(),
        };
        let mut words: Vec<String> = words.split_whitespace().map(str::to_string).collect();
        if self != Drafts::None {
            words.insert(0, "--spec-type".to_string());
        }
        if self == Drafts::Model || self.draft_kind().is_some() {
            words.extend(["-md".to_string(), draft_model.to_string()]);
        }
        words
    }
}

/// Options of the server under test; the reference server gets those that change the result of the computation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerPlan {
    /// Subject of the round.
    pub theme: Theme,
    /// Number of blocks in the pool.
    pub blocks: usize,
    /// Number of slots.
    pub slots: usize,
    /// `-b` and `-ub`, in tokens.
    pub batches: (usize, usize),
    /// `-ctk` and `-ctv`, or [`COPIES`].
    pub kv_type: &'static str,
    /// `-t`.
    pub threads: usize,
    /// `--prefill-budget`, in tokens.
    pub prefill_budget: Option<usize>,
    /// `--max-queued`, in requests.
    pub max_queued: Option<usize>,
    /// `--slot-save-path`: slots retain their sequences.
    pub keeps: bool,
    /// `--api-key`, with two keys.
    pub keys: bool,
    /// `--metrics`.
    pub metrics: bool,
    /// `--sleep-idle-seconds 1`.
    pub sleeps: bool,
    /// `--spec-type`.
    pub drafts: Drafts,
    /// `--embedding --pooling last`.
    pub embeddings: bool,
    /// Two LoRA adapters.
    pub adapters: bool,
    /// A vision encoder.
    pub vision: bool,
    /// The model, of the reference server too.
    pub model: ModelKind,
    /// `--no-kv-unified`: a buffer for each sequence, which cannot be paged.
    pub is_split: bool,
    /// `--kv-snapshots`, in snapshots: it has enough bytes for this number; the server's default if `None`.
    pub snapshots: Option<u64>,
    /// Whether layers with a sliding window have cells of their own, for as few windows as the server allows.
    pub few_windows: bool,
    /// Whether the recurrent states are computed in their cache, those of the reference server too.
    pub in_place: bool,
}

/// A 2-bit cache whose residual window in f16 covers every token, so answers match those of an f16 cache. Not used with
/// saved states, which contain the 2-bit cache alone.
pub const COPIES: &str = "copies";

/// The tenants' API keys, if the server uses keys.
pub const KEYS: [&str; 2] = ["alice-key", "bob-key"];

/// Number of LoRA adapters.
pub const ADAPTERS: usize = 2;

/// Files that servers load and write.
#[derive(Clone, Debug)]
pub struct Files {
    /// The trained model.
    pub trained: PathBuf,
    /// Folder of the random models.
    pub random: PathBuf,
    /// LoRA adapters of [`ModelKind::Llama`].
    pub adapters: [PathBuf; ADAPTERS],
    /// Vision encoder of [`ModelKind::Llama`].
    pub vision: PathBuf,
    /// Vision encoder of the models with M-RoPE.
    pub vision_in_place: PathBuf,
    /// Folder of saved slots.
    pub slots: PathBuf,
}

impl Files {
    /// Returns the file of a model.
    pub fn model(&self, model: ModelKind) -> PathBuf {
        match model {
            ModelKind::Trained => self.trained.clone(),
            _ => self.random.join(format!("{}.gguf", model.name())),
        }
    }

    /// Returns the file of [`ModelKind::Qwen35`] with a block that drafts.
    pub fn predicting(&self) -> PathBuf {
        self.random.join("predicting.gguf")
    }

    /// Returns the file of a draft model for a model.
    pub fn draft_model(&self, kind: DraftKind, model: ModelKind) -> PathBuf {
        self.random.join(format!("{}-{}.gguf", kind.name(), model.name()))
    }
}

impl ServerPlan {
    /// Draws a configuration.
    pub fn draw(dice: &mut Dice, theme: Theme) -> ServerPlan {
        let adapters = theme == Theme::Adapters || theme == Theme::Images && dice.chance(50);
        let vision = theme == Theme::Images;
        let batch = dice.pick(&[16, 48, 64, 128, 512]);
        // A prompt that takes many batches is preempted more often.
        let batch = if theme == Theme::Streams { batch.min(48) } else { batch };
        let batches = (batch, dice.pick(&[batch, batch, batch / 2, 16]).min(batch));
        let mut plan = ServerPlan {
            theme,
            // The server rounds the context up to a multiple of 256 tokens.
            blocks: dice.pick(&[16, 16, 20, 24, 32, 64]),
            slots: dice.pick(&[2, 3, 4, 6, 8]),
            batches: if vision { (512, 512) } else { batches },
            kv_type: dice.pick(&["f16", "q8_0", "q8_0", "turbo4", "tcq3", COPIES]),
            // Threads spin while they wait for each other: on a busy machine two are much slower than one.
            threads: if dice.chance(20) { 2 } else { 1 },
            // A budget of one token per step is documented to delay long prompts behind all decoding requests.
            prefill_budget: Some(dice.pick(&[16, 32, 64, 2_147_483_647])).filter(|_| dice.chance(30)),
            max_queued: None,
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
            model: match theme {
                Theme::Adapters | Theme::Images => ModelKind::Llama,
                Theme::Unpaged => dice.pick(&[ModelKind::Gemma3, ModelKind::Qwen35]),
                _ => ModelKind::Trained,
            },
            is_split: theme == Theme::Unpaged,
            snapshots: None,
            few_windows: false,
            in_place: false,
        };
        plan.restrict();
        plan
    }

    /// Limits the queue in some rounds. `dice` has a stream of its own, so that everything else in the round of a seed
    /// stays as it was in recorded runs.
    pub fn limit_queue(&mut self, dice: &mut Dice) {
        let is_limited = dice.chance(30);
        let most = dice.pick(&[1, 1, 2, 4]);
        if is_limited && self.theme.may_refuse() {
            self.max_queued = Some(most);
            self.metrics = true;
        }
    }

    /// Sets the budget of snapshots in some rounds whose model has a state. `dice` has a stream of its own, as for
    /// [`ServerPlan::limit_queue`]. The metrics of such a server show whether snapshots were used.
    pub fn limit_snapshots(&mut self, dice: &mut Dice) {
        let budget = dice.pick(&[None, None, Some(1), Some(3), Some(0)]);
        if self.model.state_kib().is_some() && self.is_paged() {
            self.snapshots = budget;
            self.metrics = true;
        }
    }

    /// Gives windows cells of their own in some rounds whose model has any. They take at most half of the pool, so it is
    /// a large one, with few slots and small batches. `dice` has a stream of its own, as for [`ServerPlan::limit_queue`].
    pub fn limit_windows(&mut self, dice: &mut Dice) {
        let are_few = dice.chance(60);
        if are_few && self.model.has_window() && self.is_paged() {
            self.few_windows = true;
            // A window of this model takes more blocks.
            let most_slots = if self.model == ModelKind::GptOss { 2 } else { 3 };
            (self.blocks, self.slots) = (64, self.slots.min(most_slots));
            self.batches = (self.batches.0.min(64), self.batches.1.min(64));
        }
    }

    /// Computes the states of delta nets in their cache in some rounds whose model has any, also without paging. `dice`
    /// has a stream of its own, as for [`ServerPlan::limit_queue`].
    pub fn compute_in_place(&mut self, dice: &mut Dice) {
        let is_in_place = dice.chance(50);
        self.in_place = is_in_place && self.model == ModelKind::Qwen35;
    }

    /// Returns the features of the server under test and of the reference server. A paged cache implies our attention:
    /// an unpaged server has it too, or the kernels would differ.
    pub fn features(&self) -> String {
        let in_place = Some(switches::GDN_RECURRENCE).filter(|_| self.in_place);
        [switches::ATTENTION].into_iter().chain(in_place).collect::<Vec<_>>().join(",")
    }

    /// Returns the variables of the server under test.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let windows = Some((switches::WINDOWS, (2 * self.slots).to_string())).filter(|_| self.few_windows);
        windows.into_iter().collect()
    }

    /// Whether snapshots are taken.
    pub fn takes_snapshots(&self) -> bool {
        self.is_paged() && self.model.state_kib().is_some() && self.snapshots != Some(0)
    }

    /// Returns the events without which a round tests no paged cache, by the name of their tally, with the kind of the
    /// model's memory.
    pub fn expected_events(&self) -> Vec<(&'static str, &'static str)> {
        let memory = self.model.memory();
        let expected = [
            (
                "tokens found in a cache",
                self.is_paged() && (self.takes_snapshots() || !self.model.has_state()),
            ),
            ("snapshots restored", self.takes_snapshots()),
            ("tokens drafted", self.is_paged() && self.drafts != Drafts::None),
        ];
        expected.into_iter().filter(|(_, is_so)| *is_so).map(|(event, _)| (memory, event)).collect()
    }

    /// Uses drafts from hidden states of a model.
    #[must_use]
    pub fn with_hidden_drafts(mut self, (drafts, model): (Drafts, ModelKind)) -> ServerPlan {
        (self.drafts, self.model) = (drafts, model);
        self.restrict();
        self
    }

    /// Whether clients can use another model. Adapters are for one model, and encoders for some; the trained model
    /// drafts for itself, and draft models that read hidden states are for one model; the bounds on times and drafts
    /// were observed with the trained one. Requests to an unpaged server differ if the model has more than a KV cache.
    pub fn allows(&self, model: ModelKind) -> bool {
        match self.theme {
            Theme::Adapters => model == ModelKind::Llama,
            Theme::Images => model == ModelKind::Llama || ModelKind::SEEING.contains(&model),
            Theme::Drafts | Theme::ForeignDrafts if self.drafts.reads_hidden_states() => {
                Drafts::HIDDEN.contains(&(self.drafts, model))
            }
            Theme::Clock | Theme::ForeignDrafts => model == ModelKind::Trained,
            Theme::Drafts if self.drafts == Drafts::Model => model == ModelKind::Trained,
            Theme::Unpaged => model != ModelKind::Trained,
            _ => true,
        }
    }

    /// Returns the same plan with another model, if it allows that.
    #[must_use]
    pub fn with_model(mut self, model: ModelKind) -> ServerPlan {
        if self.allows(model) {
            self.model = model;
            self.restrict();
        }
        self
    }

    /// Returns the same plan with the model and the drafts that a round suggests: `pass` counts how often all themes
    /// have come before the theme with this index. `chosen`: this model instead, if the theme allows it.
    #[must_use]
    pub fn with_suggested(self, pass: usize, index: usize, chosen: Option<ModelKind>) -> ServerPlan {
        let hidden =
            Drafts::suggested(pass).filter(|(_, model)| chosen.is_none_or(|chosen| chosen == *model));
        let is_about_drafts = matches!(self.theme, Theme::Drafts | Theme::ForeignDrafts);
        if let Some(drafts) = hidden.filter(|_| is_about_drafts) {
            return self.with_hidden_drafts(drafts);
        }
        let suggested = match self.theme {
            Theme::Images => ModelKind::suggested_for_images(pass),
            _ => ModelKind::suggested(pass, index),
        };
        match chosen.or(suggested) {
            Some(model) => self.with_model(model),
            None => self,
        }
    }

    /// Removes combinations that an option rules out.
    fn restrict(&mut self) {
        if self.keeps && self.kv_type == COPIES {
            self.kv_type = "f16";
        }
        if self.theme == Theme::SlotFiles {
            self.slots = 2;
        }
        // The draft model is the model itself: with a coarse cache none of its drafts would be accepted. Two threads
        // are slow on a busy machine, and an act ends after a few seconds.
        if self.theme == Theme::ForeignDrafts {
            self.kv_type = "f16";
            self.threads = 1;
        }
        if !self.model.has_every_cache_type() || !self.is_paged() || self.drafts.reads_hidden_states() {
            self.kv_type = "f16";
        }
        if self.theme == Theme::Images && self.model != ModelKind::Llama {
            self.adapters = false;
        }
        if !self.is_paged() {
            self.prefill_budget = None;
        }
        if self.is_split {
            self.slots = self.slots.max(2); // one buffer can be paged
        }
    }

    /// Whether the KV cache is paged; the server is started with `--kv-paged` in any case.
    pub fn is_paged(&self) -> bool {
        !self.is_split && self.model.can_be_paged()
    }

    /// Context size (`-c`) in tokens; without paging each slot gets as many as a pool has for all slots.
    pub fn context(&self) -> usize {
        self.cells() * if self.is_paged() { 1 } else { self.slots }
    }

    /// Capacity of the pool in tokens, which is the context of every request.
    pub fn cells(&self) -> usize {
        self.blocks * BLOCK
    }

    /// Whether the model has random weights, in which case a token is a byte.
    pub fn is_random(&self) -> bool {
        self.model != ModelKind::Trained
    }

    /// Arguments of the paged server: those it shares with [`ServerPlan::reference_arguments`], and its own.
    pub fn arguments(&self, files: &Files) -> Vec<String> {
        let mut words = self.common(files, "-c", self.context());
        let mut add = |more: &[&str]| words.extend(more.iter().map(ToString::to_string));
        add(&["--kv-paged", "-np", &self.slots.to_string(), "-t", &self.threads.to_string()]);
        add(&["-b", &self.batches.0.to_string(), "-ub", &self.batches.1.to_string()]);
        if self.is_split {
            add(&["--no-kv-unified"]);
        }
        if self.kv_type == COPIES {
            add(&["-ctk", "turbo2", "-ctv", "turbo2", "--kv-recent", "65536"]);
        }
        if let Some(budget) = self.prefill_budget {
            add(&["--prefill-budget", &budget.to_string()]);
        }
        if let Some(most) = self.max_queued {
            add(&["--max-queued", &most.to_string()]);
        }
        if let Some(size) = self.snapshot_budget() {
            add(&["--kv-snapshots", &size]);
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
        let draft_model = match self.drafts.draft_kind() {
            Some(kind) => files.draft_model(kind, self.model),
            None => files.trained.clone(),
        };
        words.extend(self.drafts.arguments(&draft_model.display().to_string()));
        words
    }

    /// Returns a size that is enough for the number of snapshots, and for no further one.
    fn snapshot_budget(&self) -> Option<String> {
        let (count, state) = (self.snapshots?, self.model.state_kib()?);
        let kib = if count == 0 { 0 } else { count * state + state / 2 + 1 };
        Some(format!("{kib}K"))
    }

    /// Returns the file of the model.
    fn model_file(&self, files: &Files) -> PathBuf {
        if self.drafts == Drafts::Mtp { files.predicting() } else { files.model(self.model) }
    }

    /// Returns the file of the encoder for images.
    fn encoder<'a>(&self, files: &'a Files) -> &'a PathBuf {
        if self.model == ModelKind::Llama { &files.vision } else { &files.vision_in_place }
    }

    /// Arguments of the reference server, which answers one request at a time; rounds with equal arguments share one
    /// server.
    pub fn reference_arguments(&self, files: &Files) -> Vec<String> {
        let mut words = self.common(files, "-c", REFERENCE_CELLS);
        let alone = ["-np", "1", "-t", "1", "--cache-ram", "0", "--no-cache-prompt", "--kv-unified"];
        words.extend(alone.map(str::to_string));
        words
    }

    fn common(&self, files: &Files, context: &str, cells: usize) -> Vec<String> {
        let mut words = vec!["--model".to_string(), self.model_file(files).display().to_string()];
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
            words.extend(["--mmproj".to_string(), self.encoder(files).display().to_string()]);
        }
        if self.embeddings {
            words.extend(["--embedding", "--pooling", "last"].map(str::to_string));
        }
        words
    }
}

/// Context size of the reference server in tokens: enough for the longest prompt of the largest pool and its answer.
const REFERENCE_CELLS: usize = 8192;
