//! The steps of the fake server: in each of them every request computes a token or a part of its prompt, and the most
//! recent request is preempted when the pool is full.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use super::config::Config;
use super::pool::{BLOCK, Held, Pool};
use super::request::{Event, Request, RequestParameters};
use super::text::{Text, choose};

/// The slots, the queue and the pool.
pub struct Engine {
    config: Arc<Config>,
    pub pool: Pool,
    slots: Vec<Slot>,
    waiting: VecDeque<Request>,
    arrived: usize,
    /// Number of prompt tokens that were looked up, and of those found in the cache.
    pub queried: usize,
    pub hits: usize,
    /// Number of requests that found a prefix, each by a snapshot if the model has recurrent states.
    pub snapshot_hits: usize,
    /// Blocks that are never released.
    leaked: Held,
}

#[derive(Default)]
pub struct Slot {
    pub request: Option<Request>,
    /// The retained sequence of the last request, if slots keep them.
    pub retained: Option<RetainedSequence>,
}

/// A computed sequence.
pub struct RetainedSequence {
    pub owner: String,
    pub text: Text,
}

/// More blocks than any request needs.
const UNLIMITED: usize = 1 << 40;

impl Engine {
    pub fn new(config: Arc<Config>) -> Engine {
        let is_bounded = config.is_paged()
            && !config.is_broken("evicts nothing")
            && !config.is_broken("shifts the context");
        let pool = Pool::new(if is_bounded { config.cells() / BLOCK } else { UNLIMITED });
        Engine {
            slots: (0..config.slots()).map(|_| Slot::default()).collect(),
            config,
            pool,
            waiting: VecDeque::new(),
            arrived: 0,
            queried: 0,
            hits: 0,
            snapshot_hits: 0,
            leaked: Held::default(),
        }
    }

    pub fn slots(&mut self) -> &mut [Slot] {
        &mut self.slots
    }

    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.slots.iter().all(|slot| slot.request.is_none())
    }

    /// Whether the request can ever be admitted: it needs the full blocks of the prompt, and one block for each answer.
    pub fn fits(&self, wanted: &RequestParameters) -> bool {
        let spare = usize::from(self.config.is_broken("wants a spare block"));
        wanted.text.complete_blocks(wanted.text.len()) + wanted.tell.len() + spare <= self.pool.count
    }

    pub fn ask(&mut self, wanted: RequestParameters) {
        self.arrived += 1;
        self.waiting.push_back(Request::new(wanted, self.arrived));
    }

    /// Runs one step.
    pub fn step(&mut self) {
        self.admit();
        let is_answering = |slot: &Slot| slot.request.as_ref().is_some_and(Request::is_answering);
        let computes = |slot: &Slot| slot.request.as_ref().is_some_and(|request| !request.is_answering());
        let beside = self.slots.iter().any(is_answering);
        let stands_still = self.config.is_broken("computes alone") && self.slots.iter().any(computes);
        for at in 0..self.slots.len() {
            if stands_still && is_answering(&self.slots[at]) {
                continue;
            }
            if let Some(request) = self.slots[at].request.take() {
                self.slots[at].request = self.advance(request, at, beside);
            }
        }
    }

    /// Admits requests in the order of arrival; a queue head without a free slot or enough free blocks blocks the
    /// others.
    fn admit(&mut self) {
        while let Some(first) = self.waiting.front() {
            let free = |at: &usize| self.slots[*at].request.is_none();
            let slot = match first.slot {
                Some(slot) => Some(slot).filter(free),
                None => (0..self.slots.len()).find(free),
            };
            let Some(slot) = slot.filter(|_| self.has_capacity(first)) else { break };
            self.slots[slot].request = self.waiting.pop_front();
        }
    }

    fn has_capacity(&self, request: &Request) -> bool {
        let wanted = request.text.needed_blocks(request.text.len() + 1) + request.others.len();
        let shared = request.known(|key| self.pool.is_used(key)).len();
        wanted.min(self.pool.count) - shared <= self.pool.count - self.pool.used()
    }

    /// Computes the tokens that are due; returns the request if it has more to do.
    fn advance(&mut self, mut request: Request, slot: usize, beside: bool) -> Option<Request> {
        if request.cells.is_empty() {
            self.look_up(&mut request, slot);
        }
        let due = self.due(&request, beside);
        for _ in 0..due {
            if request.lacks_a_block() && !self.allocate_block(&mut request) {
                self.preempt(request);
                return None;
            }
            request.compute();
        }
        if !self.config.is_broken("publishes late") {
            self.cache(&mut request);
        }
        let is_there = request.generated > 0 || request.tell(Event::Progress(request.cells.len()));
        if is_there && (!request.is_computed() || self.say_next(&mut request, slot)) {
            return Some(request);
        }
        self.end(request, slot);
        None
    }

    fn cache(&mut self, request: &mut Request) {
        if request.shares && self.config.is_paged() {
            request.cache(&mut self.pool);
        }
    }

    /// Returns the number of tokens that a request computes in this step.
    fn due(&self, request: &Request, beside: bool) -> usize {
        let left = request.text.len() - request.cells.len();
        let budget = self.config.number("--prefill-budget").filter(|budget| *budget > 0 && beside);
        let batch = self.config.number("-b").unwrap_or(2048);
        let most = match budget.filter(|_| !self.config.is_broken("forgets the budget")) {
            Some(budget) => budget.min(batch),
            None if self.config.is_broken("always computes in steps") => 16,
            None => batch,
        };
        left.min(most)
    }

    /// Reuses the sequence that the slot retains, or cached blocks, for a request that starts.
    fn look_up(&mut self, request: &mut Request, slot: usize) {
        if self.config.is_broken("wants blocks in a row") && request.text.len() > 16 * BLOCK {
            while self.pool.evict() {}
        }
        if let Some(retained) =
            self.slots[slot].retained.as_ref().filter(|retained| retained.owner == request.owner)
        {
            request.go_on_from(&retained.text, &mut self.pool);
        }
        let finds = self.config.is_paged()
            && self.config.takes_snapshots()
            && !self.config.is_broken("finds nothing");
        if request.cells.is_empty() && finds {
            self.match_blocks(request);
        }
        if request.found.is_none() {
            let found = match self.config.is_broken("finds what was evicted") {
                true => {
                    let known = request.known(|key| self.pool.was_cached(key)).len();
                    request.text.block(known).start
                }
                false => request.cells.len(),
            };
            self.queried += request.text.len();
            self.hits += found;
            self.snapshot_hits += usize::from(found > 0);
            request.found = Some(found);
        }
    }

    fn match_blocks(&mut self, request: &mut Request) {
        let known = request.known(|key| self.pool.cells(key).is_some());
        let found = request.text.without_half_an_image(request.text.block(known.len()).start);
        request.match_blocks(&mut self.pool, &known, found);
    }

    /// Allocates a block for `request`, preempting the most recent request if needed. Returns false if that is
    /// `request` itself.
    fn allocate_block(&mut self, request: &mut Request) -> bool {
        while !self.pool.take(&mut request.held) {
            let never = self.config.is_broken("preempts no request");
            if never || self.config.is_broken("preempts no prompt") && self.computes_a_prompt(request) {
                self.pool.count += 1;
                continue;
            }
            let running = |at: &usize| self.slots[*at].request.as_ref().map(|other| other.arrived);
            let last = (0..self.slots.len()).filter(|at| running(at).is_some()).max_by_key(running);
            let Some(last) = last.filter(|at| running(at) > Some(request.arrived)) else { return false };
            let other = self.slots[last].request.take().unwrap();
            self.preempt(other);
        }
        true
    }

    fn computes_a_prompt(&self, request: &Request) -> bool {
        let mut others = self.slots.iter().filter_map(|slot| slot.request.as_ref());
        !request.is_answering() || others.any(|other| !other.is_answering())
    }

    /// Releases the request's blocks and puts it at the head of the queue.
    fn preempt(&mut self, mut request: Request) {
        let is_prompt = request.generated == 0;
        let (tokens, prompt) = (request.cells.len(), if is_prompt { "prompt " } else { "" });
        let (used, count) = (self.pool.used(), self.pool.count);
        eprintln!("preempted with {tokens} {prompt}tokens: {used} of {count} KV blocks are in use");
        if is_prompt && self.config.is_broken("keeps the clock") {
            eprintln!("GGML_ASSERT(t_start == 0) failed");
            std::process::exit(7);
        }
        request.seed ^= u64::from(self.config.is_broken("resumes otherwise"));
        request.leave_blocks(&mut self.pool);
        if self.config.is_broken("refuses who outgrows") {
            request.tell(Event::Refused(500, "the KV cache is full"));
        } else {
            self.waiting.push_front(request);
        }
    }

    /// Sends the next token of an answer. Returns false if it was the last one, or if the client has disconnected.
    fn say_next(&mut self, request: &mut Request, slot: usize) -> bool {
        if self.config.has("-md") && self.pool.evicted > 0 && self.config.is_broken("keeps drafts") {
            request.refusal = Some("failed to process speculative batch");
        }
        if let Some(refusal) = request.refusal {
            request.tell(Event::Refused(500, refusal));
            return false;
        }
        for other in std::mem::take(&mut request.others) {
            self.answer_again(request, slot, other);
        }
        let mut choice = choose(request.hash, request.generated, &self.config);
        let is_one_of_drafts = request.predict == 200 && request.shares && request.generated == 1;
        if is_one_of_drafts && self.config.breaks("rounds in drafts", false) {
            choice.likeliest[0].1 -= 0.1;
        }
        let is_there = request.say(choice);
        let goes_on = request.text.len() < self.config.cells() || self.config.is_broken("shifts the context");
        if request.generated < request.predict && goes_on {
            return is_there;
        }
        request.tell_the_end(&self.config);
        false
    }

    /// Starts another answer to the prompt that `first` has computed.
    fn answer_again(&mut self, first: &Request, its_slot: usize, tell: Sender<Event>) {
        self.arrived += 1;
        let mut other = Request::again(first, tell, self.arrived);
        let free = (0..self.slots.len()).find(|at| *at != its_slot && self.slots[*at].request.is_none());
        if self.config.is_broken("computes each choice") {
            other.shares = false;
        } else if free.is_some() {
            other.share(first, &mut self.pool);
        }
        other.hash ^= u64::from(self.config.is_broken("chooses in one block"));
        match free {
            Some(slot) => self.slots[slot].request = Some(other),
            None => self.waiting.push_back(other),
        }
    }

    fn end(&mut self, mut request: Request, slot: usize) {
        self.cache(&mut request);
        if self.config.retains_sequences() && request.shares {
            let text = request.computed();
            self.slots[slot].retained = Some(RetainedSequence { owner: request.owner.clone(), text });
        }
        request.leave_blocks(&mut self.pool);
        if !request.is_whole && self.config.is_broken("holds what who left had") && self.leaked.count() == 0 {
            self.pool.take(&mut self.leaked);
        }
    }
}
