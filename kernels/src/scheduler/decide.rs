//! The decision itself.

use super::{Action, Decision, Request, Room, Stage, Wait};

/// Returns the next action. `kept`: retained sequences of idle slots, in the order in which they are evicted.
/// `ask_waiting`: false if no block was freed and no request arrived since the waiting requests were last considered.
pub fn decide(room: &impl Room, requests: &[Request], kept: &[i32], ask_waiting: bool) -> Decision {
    let scene = Scene { room, requests, kept };
    let nobody = vec![None; requests.len()];
    let demand: u64 = scene.running().map(|(_, request)| scene.need(request)).sum();
    match room.free().checked_sub(demand) {
        None => Decision { action: scene.make_room(), waits: nobody },
        Some(left) if ask_waiting => scene.let_in(left),
        Some(_) => Decision { action: Action::Nothing, waits: nobody },
    }
}

struct Scene<'a, R> {
    room: &'a R,
    requests: &'a [Request],
    kept: &'a [i32],
}

enum Answer {
    Goes { tokens: u64 },
    Never,
    Waits(Wait),
}

impl<R: Room> Scene<'_, R> {
    fn running(&self) -> impl Iterator<Item = (usize, &Request)> {
        self.requests.iter().enumerate().filter(|(_, request)| request.stage == Stage::Runs)
    }

    /// Returns the number of blocks that a running request may allocate in this step, or has reserved for its prompt.
    fn need(&self, request: &Request) -> u64 {
        self.room.missing(request.sequence, request.first..request.end) + request.siblings
    }

    /// Returns the number of blocks that it needs when it is alone.
    fn whole(&self, request: &Request) -> u64 {
        request.end.div_ceil(self.room.block_size()) + request.siblings
    }

    fn kept_that_frees(&self) -> Option<Action> {
        let index = self.kept.iter().position(|sequence| self.room.held_alone(*sequence) > 0)?;
        Some(Action::Drop { index })
    }

    /// Returns the action if the running requests need more blocks than there are: evict a retained sequence, preempt
    /// the last request, or refuse it if it can never fit.
    fn make_room(&self) -> Action {
        let holders = || self.running().filter(|(_, request)| self.room.held(request.sequence) > 0);
        let last = |may_give_way: bool| {
            let alike = holders().filter(move |(_, request)| request.may_give_way == may_give_way);
            alike.max_by_key(|(_, request)| place(request))
        };
        let goes_on_alone = |request: &Request| self.whole(request) <= self.room.block_count();
        self.kept_that_frees().unwrap_or_else(|| match (last(true), last(false)) {
            (Some((index, request)), _) if holders().count() > 1 || goes_on_alone(request) => {
                Action::GiveWay { index }
            }
            (Some((index, _)), _) | (None, Some((index, _))) => Action::Refuse { index },
            (None, None) => Action::Nothing,
        })
    }

    /// Considers the waiting requests in their order, until one is admitted or does not fit.
    fn let_in(&self, left: u64) -> Decision {
        let mut waits = vec![None; self.requests.len()];
        let mut is_closed = false;
        for index in self.line() {
            let answer = match is_closed {
                true => Answer::Waits(Wait::Line),
                false => self.ask(&self.requests[index], left),
            };
            let reason = match answer {
                Answer::Goes { tokens } => {
                    return Decision { action: Action::Admit { index, tokens }, waits };
                }
                Answer::Never => return Decision { action: Action::Refuse { index }, waits },
                Answer::Waits(reason) => reason,
            };
            if reason == Wait::Room
                && let Some(action) = self.kept_that_frees()
            {
                return Decision { action, waits };
            }
            is_closed |= reason == Wait::Room;
            waits[index] = Some(reason);
        }
        Decision { action: Action::Nothing, waits }
    }

    fn line(&self) -> Vec<usize> {
        let waits = |index: &usize| self.requests[*index].stage == Stage::Waits;
        let mut line: Vec<usize> = (0..self.requests.len()).filter(waits).collect();
        line.sort_by_key(|index| place(&self.requests[*index]));
        line
    }

    fn ask(&self, request: &Request, left: u64) -> Answer {
        if self.whole(request) > self.room.block_count() {
            return Answer::Never;
        }
        let (tokens, blocks) = if request.first > 0 {
            (request.first, self.room.missing(request.sequence, request.first..request.end))
        } else {
            let offer = self.room.offer(request.sequence, request.end);
            let is_running = |sequence| self.running().any(|(_, other)| other.sequence == sequence);
            if offer.waits_for.is_some_and(is_running) {
                return Answer::Waits(Wait::Prefix);
            }
            (offer.tokens, offer.blocks)
        };
        match blocks + request.siblings <= left {
            true => Answer::Goes { tokens },
            false => Answer::Waits(Wait::Room),
        }
    }
}

/// Returns the sort key of the queue: smaller goes first.
fn place(request: &Request) -> (i32, u64, i32) {
    (request.priority, request.arrival, request.sequence)
}
