//! The scheduler's part of the C ABI: a pool and what the server knows of its requests in, one
//! action out.

use crate::pool_exports::{PoolStatus, SharedPool, room_is_there, slice, with_pool};
use crate::scheduler::{Action, Decision, Request, Stage, decide};

/// A request as the server knows it. The layout is `struct espalier_schedule_request`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ScheduleRequest {
    /// When it came.
    pub arrival: u64,
    /// The first position whose KV it has not.
    pub first: u64,
    /// One past the last position that it needs room for now.
    pub end: u64,
    /// Sequences that will go on where it ends.
    pub siblings: u64,
    /// Smaller goes first.
    pub priority: i32,
    /// Its sequence.
    pub sequence: i32,
    /// `enum espalier_schedule_stage`.
    pub stage: u32,
    /// 1 if what it holds can be computed again, else 0.
    pub may_give_way: u32,
}

/// What is to be done. The numbers are part of the C ABI (`enum espalier_schedule_action`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ScheduleAction {
    /// Nothing.
    Nothing = 0,
    /// The request is let in.
    Admit = 1,
    /// The request gives up what it holds.
    GiveWay = 2,
    /// The request can never have its room.
    Refuse = 3,
    /// The kept text is given up.
    Drop = 4,
}

/// One action. The layout is `struct espalier_schedule_step`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ScheduleStep {
    /// Positions of its prompt that an admitted request has then.
    pub tokens: u64,
    /// `enum espalier_schedule_action`.
    pub action: u32,
    /// Of the requests, or of what is kept.
    pub index: u32,
}

impl From<Action> for ScheduleStep {
    fn from(action: Action) -> ScheduleStep {
        let step = |action, index: usize, tokens| ScheduleStep {
            tokens,
            action: action as u32,
            index: index as u32,
        };
        match action {
            Action::Nothing => step(ScheduleAction::Nothing, 0, 0),
            Action::Admit { index, tokens } => step(ScheduleAction::Admit, index, tokens),
            Action::GiveWay { index } => step(ScheduleAction::GiveWay, index, 0),
            Action::Refuse { index } => step(ScheduleAction::Refuse, index, 0),
            Action::Drop { index } => step(ScheduleAction::Drop, index, 0),
        }
    }
}

/// See [`decide`].
///
/// # Safety
///
/// `pool` is null or lives. `requests` points to `request_count` requests, `kept` to `kept_count`
/// numbers; `waits` has room for `request_count` numbers, `step` for one step. Null is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_schedule(
    pool: *const SharedPool,
    requests: *const ScheduleRequest,
    request_count: usize,
    kept: *const i32,
    kept_count: usize,
    ask_waiting: i32,
    waits: *mut u32,
    step: *mut ScheduleStep,
) -> i32 {
    // SAFETY: the caller's promise; the pointers are compared with null before they are written.
    let answer = |_: &SharedPool, pool: &mut crate::pool::pool::Pool| unsafe {
        room_is_there(waits, request_count)?;
        room_is_there(step, 1)?;
        let requests = slice(requests, request_count)?.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let kept = slice(kept, kept_count)?;
        let mut sequences = requests.iter().map(|request| request.sequence).chain(kept.iter().copied());
        if !sequences.all(|sequence| pool.table(sequence).is_some()) {
            return Err(PoolStatus::Invalid);
        }
        let Decision { action, waits: reasons } = decide(pool, &requests, kept, ask_waiting != 0);
        for (index, reason) in reasons.iter().enumerate() {
            waits.add(index).write(reason.map_or(0, |reason| reason as u32));
        }
        step.write(action.into());
        Ok(PoolStatus::Ok)
    };
    // SAFETY: the caller's promise is the one needed here.
    unsafe { with_pool(pool, answer) }
}

fn read(request: &ScheduleRequest) -> Result<Request, PoolStatus> {
    let stage = match request.stage {
        0 => Stage::Waits,
        1 => Stage::Runs,
        _ => return Err(PoolStatus::Invalid),
    };
    // A position is an i32 of llama.cpp's: what is beyond is a mistake, and would take for ever to count.
    if request.end > i32::MAX as u64 || request.first > request.end {
        return Err(PoolStatus::Invalid);
    }
    Ok(Request {
        arrival: request.arrival,
        priority: request.priority,
        sequence: request.sequence,
        stage,
        may_give_way: request.may_give_way != 0,
        first: request.first,
        end: request.end,
        siblings: request.siblings,
    })
}

/// Blocks that the sequence holds; 0 also for a sequence that there is not, or no pool. Any thread
/// may ask while another one decodes.
///
/// # Safety
///
/// `pool` is null or lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_held(pool: *const SharedPool, sequence: i32) -> u64 {
    let mut held = 0;
    // SAFETY: the caller's promise is the one needed here.
    unsafe {
        with_pool(pool, |_, pool| {
            held = crate::scheduler::Room::held(pool, sequence);
            Ok(PoolStatus::Ok)
        });
    }
    held
}

/// Goes up whenever a request that waits may be able to go on; 0 if there is no pool.
///
/// # Safety
///
/// `pool` is null or lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_changes(pool: *const SharedPool) -> u64 {
    let mut changes = 0;
    // SAFETY: the caller's promise is the one needed here.
    unsafe {
        with_pool(pool, |_, pool| {
            changes = pool.changes();
            Ok(PoolStatus::Ok)
        });
    }
    changes
}
