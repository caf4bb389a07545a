//! A request of the fake server: its sequence, the computed part of it, and the blocks that it occupies.

use std::sync::mpsc::Sender;

use super::config::Config;
use super::pool::{Held, Key, Pool};
use super::text::{Choice, Text, mixed};

/// The parameters of a request.
pub struct RequestParameters {
    pub text: Text,
    /// Owner of the request: it shares blocks only with requests of the same owner.
    pub owner: String,
    /// Number of tokens of an answer.
    pub predict: usize,
    /// Whether it uses the prefix cache.
    pub shares: bool,
    /// The requested slot.
    pub slot: Option<usize>,
    /// One event channel for each answer.
    pub tell: Vec<Sender<Event>>,
}

/// An event for the client.
pub enum Event {
    /// Number of prompt tokens that are computed.
    Progress(usize),
    Token(Choice),
    End(End),
    Refused(u16, &'static str),
}

/// The final event of a complete answer.
pub struct End {
    pub found: usize,
    pub computed: usize,
    pub stop_type: &'static str,
    /// Numbers of drafted and accepted tokens.
    pub drafts: Option<(usize, usize)>,
}

pub struct Request {
    pub owner: String,
    pub shares: bool,
    pub slot: Option<usize>,
    pub predict: usize,
    pub arrived: usize,
    /// The prompt, and the answer so far.
    pub text: Text,
    prompt: usize,
    /// Number of tokens of the answer.
    pub generated: usize,
    /// The computed cells of the sequence.
    pub cells: Vec<u64>,
    keys: Vec<Key>,
    pub held: Held,
    /// Hash of the computed cells, and its initial value.
    pub hash: u64,
    pub seed: u64,
    /// Number of prompt tokens that were cached when it first started.
    pub found: Option<usize>,
    /// The error to send instead of an answer.
    pub refusal: Option<&'static str>,
    pub is_whole: bool,
    tell: Sender<Event>,
    /// Event channels of the other answers to the same prompt.
    pub others: Vec<Sender<Event>>,
}

impl Request {
    pub fn new(mut wanted: RequestParameters, arrived: usize) -> Request {
        let mut others = std::mem::take(&mut wanted.tell);
        let tell = others.remove(0);
        Request { others, ..Request::one(wanted, tell, arrived) }
    }

    fn one(wanted: RequestParameters, tell: Sender<Event>, arrived: usize) -> Request {
        let RequestParameters { text, owner, predict, shares, slot, .. } = wanted;
        Request {
            prompt: text.len(),
            owner,
            shares,
            slot,
            predict,
            arrived,
            text,
            generated: 0,
            cells: Vec::new(),
            keys: Vec::new(),
            held: Held::default(),
            hash: 7,
            seed: 7,
            found: None,
            refusal: None,
            is_whole: false,
            tell,
            others: Vec::new(),
        }
    }

    /// Creates another answer to the prompt of `first`, which has no answer tokens yet.
    pub fn again(first: &Request, tell: Sender<Event>, arrived: usize) -> Request {
        let (text, owner) = (first.text.clone(), first.owner.clone());
        let wanted = RequestParameters {
            text,
            owner,
            predict: first.predict,
            shares: first.shares,
            slot: None,
            tell: Vec::new(),
        };
        Request::one(wanted, tell, arrived)
    }

    /// Reuses everything that `first` has computed, in the same blocks except for a partial last one, which is copied.
    pub fn share(&mut self, first: &Request, pool: &mut Pool) {
        let known = first.keys.clone();
        self.match_blocks(pool, &known, self.text.block(known.len()).start);
        while self.cells.len() < first.cells.len() && (!self.lacks_a_block() || pool.take(&mut self.held)) {
            self.compute();
        }
        self.found = Some(self.cells.len());
    }

    pub fn is_computed(&self) -> bool {
        self.cells.len() == self.text.len()
    }

    pub fn is_answering(&self) -> bool {
        self.generated > 0 && self.cells.len() + 1 >= self.text.len()
    }

    /// Returns the keys of the leading blocks that are cached. At least one token is always computed.
    pub fn known(&self, is_known: impl Fn(Key) -> bool) -> Vec<Key> {
        let mut known = Vec::new();
        let complete = self.text.complete_blocks(self.text.len().saturating_sub(1));
        for at in (0..complete).filter(|_| self.shares) {
            let key = self.key(&known, at);
            if !is_known(key) {
                break;
            }
            known.push(key);
        }
        known
    }

    fn key(&self, before: &[Key], at: usize) -> Key {
        let of_owner = || self.owner.bytes().fold(3, |hash, byte| mixed(hash ^ u64::from(byte)));
        self.text.key(before.last().copied().unwrap_or_else(of_owner), at)
    }

    /// Reuses the first `found` tokens of these blocks; the last block may be used in part.
    pub fn match_blocks(&mut self, pool: &mut Pool, known: &[Key], found: usize) {
        for (at, key) in known.iter().take(self.text.needed_blocks(found)).enumerate() {
            let cells = pool.cells(*key).unwrap().to_vec();
            let block = self.text.block(at);
            if block.end <= found {
                pool.match_blocks(&mut self.held, *key);
                self.keys.push(*key);
            } else if !pool.take(&mut self.held) {
                return;
            }
            cells.iter().take(found - block.start).for_each(|cell| self.compute_as(*cell));
        }
    }

    /// Continues from the slot's retained sequence, if it covers at least half of this one.
    pub fn go_on_from(&mut self, retained: &Text, pool: &mut Pool) {
        let common = retained.common(&self.text).min(self.text.len() - 1);
        if !self.shares || 2 * common < self.text.len() {
            return;
        }
        while self.cells.len() < common && (!self.lacks_a_block() || pool.take(&mut self.held)) {
            self.compute_as(retained.cells[self.cells.len()]);
        }
    }

    pub fn lacks_a_block(&self) -> bool {
        self.held.count() <= self.text.complete_blocks(self.cells.len())
    }

    pub fn compute(&mut self) {
        self.compute_as(self.text.cells[self.cells.len()]);
    }

    pub fn compute_as(&mut self, cell: u64) {
        self.hash = mixed(self.hash ^ cell);
        self.cells.push(cell);
    }

    /// Caches the full blocks.
    pub fn cache(&mut self, pool: &mut Pool) {
        for at in self.keys.len()..self.text.complete_blocks(self.cells.len()) {
            let key = self.key(&self.keys, at);
            pool.cache(&mut self.held, key, &self.cells[self.text.block(at)]);
            self.keys.push(key);
        }
    }

    /// Releases all blocks; everything has to be recomputed.
    pub fn leave_blocks(&mut self, pool: &mut Pool) {
        pool.release(std::mem::take(&mut self.held));
        self.cells.clear();
        self.keys.clear();
        self.hash = self.seed;
    }

    /// Returns the computed part of the sequence.
    pub fn computed(&self) -> Text {
        Text::computed(self.text.tokens[..self.cells.len()].to_vec(), self.cells.clone())
    }

    /// Sends an event. Returns false if the client has disconnected.
    pub fn tell(&self, event: Event) -> bool {
        self.tell.send(event).is_ok()
    }

    /// Appends a token to the answer. Returns false if the client has disconnected.
    pub fn say(&mut self, choice: Choice) -> bool {
        self.text.push(choice.token);
        self.generated += 1;
        self.tell(Event::Token(choice))
    }

    pub fn tell_the_end(&mut self, config: &Config) {
        self.is_whole = true;
        let found = self.found.unwrap_or_default();
        let stop_type = if config.is_broken("ends otherwise") { "eos" } else { "limit" };
        let drafts = config.has("--spec-type").then(|| drafts(self.generated, config));
        self.tell(Event::End(End { found, computed: self.prompt - found, stop_type, drafts }));
    }
}

/// Returns the numbers of drafted and accepted tokens of an answer.
fn drafts(generated: usize, config: &Config) -> (usize, usize) {
    let drafted = generated / 3;
    match () {
        () if config.is_broken("drafts nothing") => (0, 0),
        () if config.is_broken("accepts all") => (drafted, drafted),
        () if config.breaks("accepts less", true) => (drafted, 1),
        () => (drafted, generated / 8),
    }
}
