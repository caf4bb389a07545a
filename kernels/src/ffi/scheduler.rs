//! The C ABI of the scheduler: a pool and the server's requests in, one action out; and the order of requests.

use crate::ffi::guarded;
use crate::ffi::pool::{PoolStatus, SharedPool, check_output, slice, with_pool};
use crate::scheduler::{Action, Capacity, Decision, Group, QueuePosition, Request, Stage, decide, order};

/// A request as the server describes it. The layout is `struct espalier_schedule_request`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ScheduleRequest {
    /// Arrival time: see [`QueuePosition`].
    pub arrival: u64,
    /// The first position whose KV it does not have.
    pub first: u64,
    /// One past the last position that it needs blocks for now.
    pub end: u64,
    /// Number of further choices (`n`) that continue where its prompt ends.
    pub further_choices: u64,
    /// Priority: see [`QueuePosition`].
    pub priority: i32,
    /// Id of its sequence.
    pub sequence: i32,
    /// `enum espalier_schedule_stage`.
    pub stage: u32,
    /// 1 if it can be preempted (its KV can be recomputed), else 0.
    pub preemptible: u32,
}

/// The action to carry out. The values are part of the C ABI (`enum espalier_schedule_action`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ScheduleAction {
    /// Nothing.
    Nothing = 0,
    /// Admit the request.
    Admit = 1,
    /// Preempt the request.
    Preempt = 2,
    /// Refuse the request: the pool can never have its blocks.
    Refuse = 3,
    /// Evict the retained sequence.
    Evict = 4,
}

/// One action. The layout is `struct espalier_schedule_step`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ScheduleStep {
    /// Number of positions that an admitted request has afterwards.
    pub tokens: u64,
    /// Number of blocks that a refused request needs.
    pub blocks: u64,
    /// `enum espalier_schedule_action`.
    pub action: u32,
    /// Index of the request, or of the retained sequence.
    pub index: u32,
}

impl From<Action> for ScheduleStep {
    fn from(action: Action) -> ScheduleStep {
        let step = |action, index: usize| ScheduleStep {
            tokens: 0,
            blocks: 0,
            action: action as u32,
            index: index as u32,
        };
        match action {
            Action::Nothing => step(ScheduleAction::Nothing, 0),
            Action::Admit { index, tokens } => ScheduleStep { tokens, ..step(ScheduleAction::Admit, index) },
            Action::Preempt { index } => step(ScheduleAction::Preempt, index),
            Action::Refuse { index, blocks } => {
                ScheduleStep { blocks, ..step(ScheduleAction::Refuse, index) }
            }
            Action::Evict { index } => step(ScheduleAction::Evict, index),
        }
    }
}

/// See [`decide`].
///
/// # Safety
///
/// `pool` is null or points to a live pool. `requests` points to `request_count` requests, `retained` to
/// `retained_count` integers; `waits` points to space for `request_count` integers, `step` to space for one step. Null
/// is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_schedule(
    pool: *const SharedPool,
    requests: *const ScheduleRequest,
    request_count: usize,
    retained: *const i32,
    retained_count: usize,
    try_waiting: i32,
    waits: *mut u32,
    step: *mut ScheduleStep,
) -> i32 {
    // SAFETY: per this function's contract the pointers are valid for these lengths; they are checked for null before
    // they are written.
    let answer = |_: &SharedPool, pool: &mut crate::pool::pool::Pool| unsafe {
        check_output(waits, request_count)?;
        check_output(step, 1)?;
        let requests = slice(requests, request_count)?.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let retained = slice(retained, retained_count)?;
        let mut sequences = requests.iter().map(|request| request.sequence).chain(retained.iter().copied());
        if !sequences.all(|sequence| pool.table(sequence).is_some()) {
            return Err(PoolStatus::Invalid);
        }
        let Decision { action, waits: reasons } = decide(pool, &requests, retained, try_waiting != 0);
        for (index, reason) in reasons.iter().enumerate() {
            waits.add(index).write(reason.map_or(0, |reason| reason as u32));
        }
        step.write(action.into());
        Ok(PoolStatus::Ok)
    };
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe { with_pool(pool, answer) }
}

/// See [`order`].
///
/// # Safety
///
/// `places` points to `count` places, and `indexes` to space for `count` integers. Null is refused unless `count` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_schedule_order(
    places: *const QueuePosition,
    count: usize,
    indexes: *mut u32,
) -> i32 {
    let answer = guarded(Err(PoolStatus::Invalid), || {
        check_output(indexes, count)?;
        // SAFETY: per this function's contract `places` is null or points to `count` places.
        let places = unsafe { slice(places, count)? };
        for (rank, index) in order(places).into_iter().enumerate() {
            // SAFETY: `indexes` is not null and has space for `count` integers, and `rank < count`.
            unsafe { indexes.add(rank).write(index as u32) };
        }
        Ok(PoolStatus::Ok)
    });
    answer.unwrap_or_else(|status| status) as i32
}

fn read(request: &ScheduleRequest) -> Result<Request, PoolStatus> {
    let stage = match request.stage {
        0 => Stage::Waits,
        1 => Stage::Runs,
        _ => return Err(PoolStatus::Invalid),
    };
    // llama.cpp's positions are i32: anything larger is an error, and would take very long to count.
    if request.end > i32::MAX as u64 || request.first > request.end {
        return Err(PoolStatus::Invalid);
    }
    Ok(Request {
        arrival: request.arrival,
        priority: request.priority,
        sequence: request.sequence,
        stage,
        preemptible: request.preemptible != 0,
        first: request.first,
        end: request.end,
        further_choices: request.further_choices,
    })
}

/// Returns the number of blocks that the sequence holds; 0 for an unknown sequence or a null pool. May be called from
/// any thread while another one decodes.
///
/// # Safety
///
/// `pool` is null or points to a live pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_held(pool: *const SharedPool, sequence: i32) -> u64 {
    let mut held = 0;
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe {
        with_pool(pool, |_, pool| {
            held = pool.held(Group::Full, sequence);
            Ok(PoolStatus::Ok)
        });
    }
    held
}

/// Returns a counter that increases whenever a waiting request may be able to continue; 0 for a null pool.
///
/// # Safety
///
/// `pool` is null or points to a live pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn espalier_pool_changes(pool: *const SharedPool) -> u64 {
    let mut changes = 0;
    // SAFETY: per this function's contract `pool` is null or points to a live pool.
    unsafe {
        with_pool(pool, |_, pool| {
            changes = pool.changes();
            Ok(PoolStatus::Ok)
        });
    }
    changes
}
