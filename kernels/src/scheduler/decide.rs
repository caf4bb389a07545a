//! The decision itself.

use super::{Action, Capacity, Decision, Group, QueuePosition, Request, Stage, Wait, WindowNeeds, order};

/// Returns the next action. `retained`: retained sequences of idle slots, in the order in which they are evicted.
/// `try_waiting`: false if no block was freed and no request arrived since the waiting requests were last considered.
pub fn decide(pool: &impl Capacity, requests: &[Request], retained: &[i32], try_waiting: bool) -> Decision {
    let state = SchedulerState { pool, requests, retained };
    let action = match state.left() {
        Err(action) => action,
        Ok(left) if try_waiting => return state.admit_next(left),
        Ok(_) => Action::Nothing,
    };
    Decision { action, waits: vec![None; requests.len()] }
}

struct SchedulerState<'a, R> {
    pool: &'a R,
    requests: &'a [Request],
    retained: &'a [i32],
}

/// Free blocks that no running request needs.
#[derive(Clone, Copy)]
struct Left {
    blocks: u64,
    /// Those of the layers with a window; `u64::MAX` if these have no blocks of their own.
    window_blocks: u64,
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

    /// Returns the blocks that are left for other requests. `Err`: the running requests need more than there are, and
    /// this is the action.
    fn left(&self) -> Result<Left, Action> {
        let demand: u64 = self.running().map(|(_, request)| self.need(request)).sum();
        let blocks =
            self.pool.free(Group::Full).checked_sub(demand).ok_or_else(|| self.reclaim(Group::Full))?;
        let window_blocks = match self.pool.windows() {
            None => u64::MAX,
            Some(windows) => self.window_blocks_left(windows).ok_or_else(|| self.reclaim(Group::Window))?,
        };
        Ok(Left { blocks, window_blocks })
    }

    fn window_blocks_left(&self, windows: &dyn WindowNeeds) -> Option<u64> {
        let demand: u64 = self.running().map(|(_, request)| window_need(windows, request)).sum();
        let left = self.pool.free(Group::Window).checked_sub(demand + windows.batch());
        // If no request runs, there is no batch, and nothing is short.
        left.or_else(|| self.running().next().is_none().then_some(0))
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

    /// Returns the eviction of the first retained sequence that frees blocks, which `held_alone` counts: those of the
    /// group that is short.
    fn evict_retained(&self, held_alone: impl Fn(i32) -> u64) -> Option<Action> {
        let index = self.retained.iter().position(|sequence| held_alone(*sequence) > 0)?;
        Some(Action::Evict { index })
    }

    /// Returns the eviction of the first retained sequence that holds blocks: two of them can hold the same ones, so
    /// that neither frees one before the other is evicted.
    fn evict_any_retained(&self) -> Option<Action> {
        self.evict_retained(|sequence| self.pool.held(Group::Full, sequence))
    }

    /// Returns the eviction of a retained sequence for a request that waits, which may need blocks of either group. If
    /// no request runs, any of them is evicted before that request is kept waiting.
    fn evict_for_waiting(&self) -> Option<Action> {
        let held_alone = |sequence: i32| {
            Group::ALL.into_iter().map(|group| self.pool.held_alone(group, sequence)).sum::<u64>()
        };
        let is_idle = self.running().next().is_none();
        self.evict_retained(held_alone).or_else(|| self.evict_any_retained().filter(|_| is_idle))
    }

    /// Returns the running requests that hold blocks of the group.
    fn holders(&self, group: Group) -> impl Iterator<Item = (usize, &Request)> {
        self.running().filter(move |(_, request)| self.pool.held(group, request.sequence) > 0)
    }

    /// Returns the action if the running requests need more blocks of the group than there are: evict a retained
    /// sequence, preempt the last request, or refuse it if it can never fit. A request that begins again has one block
    /// of [`Group::Window`] at each index, so for those it is preempted even if it is alone.
    fn reclaim(&self, group: Group) -> Action {
        let last = |preemptible: bool| {
            let alike = self.holders(group).filter(|(_, request)| request.preemptible == preemptible);
            alike.max_by_key(|(_, request)| QueuePosition::from(*request))
        };
        let may_fit = |request: &Request| {
            group == Group::Window || self.holders(group).count() > 1 || self.fits_in_full_blocks(request)
        };
        let freeing = self.evict_retained(|sequence| self.pool.held_alone(group, sequence));
        freeing.unwrap_or_else(|| match (last(true), last(false)) {
            (Some((index, request)), _) if may_fit(request) => Action::Preempt { index },
            (Some((index, request)), _) | (None, Some((index, request))) => {
                self.refuse_running(index, request)
            }
            (None, None) => Action::Nothing,
        })
    }

    /// Refuses a running request, once no retained sequence is left that could share the blocks which it lacks.
    fn refuse_running(&self, index: usize, request: &Request) -> Action {
        self.evict_any_retained().unwrap_or_else(|| self.refuse(index, request))
    }

    fn refuse(&self, index: usize, request: &Request) -> Action {
        Action::Refuse { index, blocks: self.whole(request) }
    }

    /// Considers the waiting requests in their order, until one is admitted or does not fit.
    fn admit_next(&self, left: Left) -> Decision {
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
                && let Some(action) = self.evict_for_waiting()
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
        let places: Vec<QueuePosition> = self.requests.iter().map(QueuePosition::from).collect();
        order(&places).into_iter().filter(waits).collect()
    }

    fn consider(&self, request: &Request, left: Left) -> Answer {
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
        let window_blocks = self.pool.windows().map_or(0, |windows| window_need(windows, request));
        match blocks <= left.blocks && window_blocks <= left.window_blocks {
            true => Answer::Fits { tokens },
            false => Answer::Waits(Wait::Blocks),
        }
    }
}

/// Returns the number of blocks of the layers with a window that a request needs, once it runs.
fn window_need(windows: &dyn WindowNeeds, request: &Request) -> u64 {
    windows.needed(request.sequence, request.first, request.further_choices)
}
