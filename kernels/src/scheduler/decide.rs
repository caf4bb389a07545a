//! The decision itself.

use super::{Action, Capacity, Decision, Place, Request, Stage, Wait, order};

/// Returns the next action. `retained`: retained sequences of idle slots, in the order in which they are evicted.
/// `try_waiting`: false if no block was freed and no request arrived since the waiting requests were last considered.
pub fn decide(pool: &impl Capacity, requests: &[Request], retained: &[i32], try_waiting: bool) -> Decision {
    let state = SchedulerState { pool, requests, retained };
    let no_waits = vec![None; requests.len()];
    let demand: u64 = state.running().map(|(_, request)| state.need(request)).sum();
    match pool.free().checked_sub(demand) {
        None => Decision { action: state.reclaim_blocks(), waits: no_waits },
        Some(left) if try_waiting => state.admit_next(left),
        Some(_) => Decision { action: Action::Nothing, waits: no_waits },
    }
}

struct SchedulerState<'a, R> {
    pool: &'a R,
    requests: &'a [Request],
    retained: &'a [i32],
}

enum Answer {
    Fits { tokens: u64 },
    FitsWithoutRetained { index: usize },
    Never,
    Waits(Wait),
}

impl<R: Capacity> SchedulerState<'_, R> {
    fn running(&self) -> impl Iterator<Item = (usize, &Request)> {
        self.requests.iter().enumerate().filter(|(_, request)| request.stage == Stage::Runs)
    }

    /// Returns the number of blocks that a running request may allocate in this step, or has reserved for its prompt.
    fn need(&self, request: &Request) -> u64 {
        self.pool.missing(request.sequence, request.first..request.end) + request.further_choices
    }

    /// Returns the number of blocks that it needs when it is alone.
    fn whole(&self, request: &Request) -> u64 {
        self.pool.needed(request.sequence, request.size())
    }

    /// Returns whether it fits alone once it begins again, whatever its layout is now.
    fn fits_in_full_blocks(&self, request: &Request) -> bool {
        request.size().in_full_blocks(self.pool.block_size()) <= self.pool.block_count()
    }

    fn evict_retained(&self) -> Option<Action> {
        let index = self.retained.iter().position(|sequence| self.pool.held_alone(*sequence) > 0)?;
        Some(Action::Evict { index })
    }

    /// Returns the action if the running requests need more blocks than there are: evict a retained sequence, preempt
    /// the last request, or refuse it if it can never fit.
    fn reclaim_blocks(&self) -> Action {
        let holders = || self.running().filter(|(_, request)| self.pool.held(request.sequence) > 0);
        let last = |preemptible: bool| {
            let alike = holders().filter(move |(_, request)| request.preemptible == preemptible);
            alike.max_by_key(|(_, request)| Place::from(*request))
        };
        self.evict_retained().unwrap_or_else(|| match (last(true), last(false)) {
            (Some((index, request)), _) if holders().count() > 1 || self.fits_in_full_blocks(request) => {
                Action::Preempt { index }
            }
            (Some((index, request)), _) | (None, Some((index, request))) => self.refuse(index, request),
            (None, None) => Action::Nothing,
        })
    }

    fn refuse(&self, index: usize, request: &Request) -> Action {
        Action::Refuse { index, blocks: self.whole(request) }
    }

    /// Considers the waiting requests in their order, until one is admitted or does not fit.
    fn admit_next(&self, left: u64) -> Decision {
        let mut waits = vec![None; self.requests.len()];
        let mut is_closed = false;
        for index in self.queue() {
            let answer = match is_closed {
                true => Answer::Waits(Wait::Queue),
                false => self.consider(&self.requests[index], left),
            };
            let reason = match answer {
                Answer::Fits { tokens } => {
                    return Decision { action: Action::Admit { index, tokens }, waits };
                }
                Answer::FitsWithoutRetained { index } => {
                    return Decision { action: Action::Evict { index }, waits };
                }
                Answer::Never => {
                    return Decision { action: self.refuse(index, &self.requests[index]), waits };
                }
                Answer::Waits(reason) => reason,
            };
            if reason == Wait::Blocks
                && let Some(action) = self.evict_retained()
            {
                return Decision { action, waits };
            }
            is_closed |= reason == Wait::Blocks;
            waits[index] = Some(reason);
        }
        Decision { action: Action::Nothing, waits }
    }

    fn queue(&self) -> Vec<usize> {
        let waits = |index: &usize| self.requests[*index].stage == Stage::Waits;
        let places: Vec<Place> = self.requests.iter().map(Place::from).collect();
        order(&places).into_iter().filter(waits).collect()
    }

    fn consider(&self, request: &Request, left: u64) -> Answer {
        let whole = self.whole(request);
        if whole > self.pool.block_count() {
            // What it retained may lie in blocks that are not full.
            let own = self.retained.iter().position(|sequence| *sequence == request.sequence);
            return own.map_or(Answer::Never, |index| Answer::FitsWithoutRetained { index });
        }
        let (tokens, blocks) = if request.first > 0 {
            let missing = self.pool.missing(request.sequence, request.first..request.end);
            (request.first, request.size().with_positions_in(missing))
        } else {
            let offer = self.pool.offer(request.sequence, request.end);
            let is_running = |sequence| self.running().any(|(_, other)| other.sequence == sequence);
            if offer.waits_for.is_some_and(is_running) {
                return Answer::Waits(Wait::Prefix);
            }
            // A match can take more blocks than the pool has: then nothing is matched.
            let blocks = request.size().with_positions_in(offer.blocks);
            if blocks <= self.pool.block_count() { (offer.tokens, blocks) } else { (0, whole) }
        };
        match blocks <= left {
            true => Answer::Fits { tokens },
            false => Answer::Waits(Wait::Blocks),
        }
    }
}
