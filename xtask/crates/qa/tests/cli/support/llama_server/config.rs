//! The arguments of the fake server, and its faults.

/// All faults that the fake can have. docs/design/gate.md lists the check that detects each.
pub const FAULTS: &[&str] = &[
    // Answers.
    "a wrong token",
    "attends otherwise",
    "another token",
    "moves",
    "rounds otherwise",
    "rounds in drafts",
    "ties",
    "refuses",
    "stock refuses",
    "dies",
    "keeps silent",
    "publishes late",
    "says no prompt_n",
    "shares nothing",
    "holds a block",
    "renames a count",
    "runs unpaged",
    "keeps one size",
    // Prefix caching.
    "finds nothing",
    "forgets the key",
    "forgets the salt",
    "forgets cache_prompt",
    "forgets the key of a slot",
    "takes all",
    "ends after refusing",
    // Steps.
    "forgets the budget",
    "computes alone",
    "always computes in steps",
    "refuses streams",
    "refuses long prompts",
    // The pool.
    "wants blocks in a row",
    "wants a spare block",
    "finds what was evicted",
    "evicts nothing",
    "preempts no request",
    "preempts no prompt",
    "refuses who outgrows",
    "resumes otherwise",
    "keeps the clock",
    "holds what who left had",
    // Choices, slots, drafts, the end of the context.
    "answers once",
    "computes each choice",
    "chooses in one block",
    "saves nothing",
    "erases nothing",
    "restores nothing",
    "restores another text",
    "drafts nothing",
    "accepts all",
    "accepts less",
    "accepts wrong drafts",
    "keeps drafts",
    "shifts the context",
    "ends otherwise",
    // Residual windows in f16.
    "reads the quantized cache",
    "recycles a row too early",
    // Adapters and images.
    "forgets the adapter",
    "forgets the own scale",
    "ignores adapters",
    "forgets the image",
    "closes no block",
    // Options.
    "has our option",
];

/// Arguments, environment and faults of one fake server.
pub struct Config {
    pub arguments: Vec<String>,
    pub broken: Vec<String>,
    /// Whether each sequence has a buffer of its own, which cannot be paged.
    pub cannot_be_paged: bool,
    /// Value of `ESPALIER_ENABLE`; the feature `gdn-flat-output` changes every answer of the paged server.
    pub enabled: String,
    /// Whether layers with a sliding window are asked to have cells of their own.
    pub own_windows: bool,
}

impl Config {
    pub fn has(&self, argument: &str) -> bool {
        self.arguments.iter().any(|one| one == argument)
    }

    pub fn value(&self, argument: &str) -> Option<&str> {
        let at = self.arguments.iter().position(|one| one == argument)?;
        self.arguments.get(at + 1).map(String::as_str)
    }

    pub fn number(&self, argument: &str) -> Option<usize> {
        self.value(argument)?.parse().ok()
    }

    pub fn slots(&self) -> usize {
        self.number("-np").unwrap_or(1)
    }

    /// Returns the context size of one request, in cells.
    pub fn cells(&self) -> usize {
        self.number("-c").unwrap_or(4096)
    }

    /// Whether our attention computes the answers, with a plain cache.
    pub fn attends(&self) -> bool {
        self.enabled == "attention" && !self.is_paged()
    }

    pub fn is_paged(&self) -> bool {
        self.has("--kv-paged") && !self.cannot_be_paged
    }

    /// Whether it has memory for snapshots; without them a model with recurrent states finds no prefix.
    pub fn takes_snapshots(&self) -> bool {
        self.value("--kv-snapshots") != Some("0")
    }

    pub fn retains_sequences(&self) -> bool {
        self.has("--slot-save-path")
    }

    /// Whether the server has this fault. It is asked for several with each token, so that `what` is one of [`FAULTS`] is
    /// checked by a test.
    pub fn is_broken(&self, what: &str) -> bool {
        self.broken.iter().any(|broken| broken == what)
    }

    /// Whether the server has this fault, and is paged or not as given.
    pub fn breaks(&self, what: &str, paged: bool) -> bool {
        self.is_broken(what) && self.is_paged() == paged
    }
}
