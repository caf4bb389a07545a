//! Flash attention on the CPU.
//!
//! The rows of one small matrix are all heads that share a KV head, of all tokens that attend to a tile of cells: a
//! tile is read and converted once for all of them, whatever the type of the cache. So a prefix that many sequences
//! share costs as much as one of them, and decoding, drafts and prompts are one code path.
//!
//! * [`problem`]: the inputs of the computation. [`division`]: its division among threads.
//! * [`item`]: one work item: [`tile`]s of K and V ([`kv_type`]), products and [`softmax`].
//! * [`encoding`] and [`matrix`]: floating-point types. [`blocks`] and [`int16`]: quantized types.
//! * [`decoder`]: rows of [`crate::kv_quant`] that ggml reads outside of attention.
//! * [`crate::simd`]: the instruction set, chosen once, and vector operations on each.
//!
//! Sums are in f32, or exact in int32. The result does not depend on the number of threads.

pub mod active_rows;
pub mod blocks;
pub mod decoder;
pub mod division;
pub mod encoding;
#[cfg(test)]
pub(crate) mod guarded;
pub mod int16;
pub mod item;
pub mod kv_type;
pub mod matrix;
pub mod problem;
pub mod scratch;
pub mod softmax;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub mod tile;

pub use crate::share::Share;
use crate::simd::isa::Isa;
use crate::simd::{Simd, Work};
use division::{Division, out_rows, partial_length};
use item::{RowResult, Task};
use problem::{Problem, Types};
use scratch::Scratch;
use softmax::{State, factor};

/// Alignment of each part of the memory, in bytes.
const ALIGNMENT: usize = 64;

/// Returns the bytes of memory that `threads` threads need together, including space for alignment.
#[must_use]
pub fn work_size(problem: &Problem, threads: usize) -> usize {
    let division = Division::new(problem);
    let own = Scratch::length(problem, &division) + ALIGNMENT / size_of::<f32>();
    let numbers = division::partials(problem, &division) + threads * own;
    size_of::<f32>() * numbers + ALIGNMENT
}

/// Memory that all threads of a problem share, and each thread's scratch memory.
pub struct Memory {
    partials: *mut f32,
    scratch: *mut f32,
    scratch_length: usize,
}

impl Memory {
    /// Splits [`work_size`] bytes for one thread.
    ///
    /// # Safety
    ///
    /// `memory` points to that many bytes.
    #[must_use]
    pub unsafe fn new(problem: &Problem, share: Share, memory: *mut u8) -> Memory {
        let division = Division::new(problem);
        let partials = division::partials(problem, &division);
        let scratch_length = Scratch::length(problem, &division);
        let stride = scratch_length + ALIGNMENT / size_of::<f32>();
        // SAFETY: per this function's contract there is space for all parts and their alignment.
        unsafe {
            let first = memory.add(memory.align_offset(ALIGNMENT)).cast::<f32>();
            let own = first.add(partials + share.thread * stride);
            let own = own.add(own.align_offset(ALIGNMENT));
            Memory { partials: first, scratch: own, scratch_length }
        }
    }
}

/// First phase: computes all items of this thread. If the cells are divided into chunks, [`merge`] follows once all
/// threads are done.
///
/// # Safety
///
/// The problem's pointers are valid for its sizes and strides; no two threads have the same share, and all have the
/// same `memory`.
pub unsafe fn compute(problem: &Problem, share: Share, memory: &Memory) {
    let Some(types) = problem.types() else { return };
    Isa::chosen().run(Items { problem, types, share, memory });
}

struct Items<'a> {
    problem: &'a Problem,
    types: Types,
    share: Share,
    memory: &'a Memory,
}

impl Work for Items<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Items { problem, types, share, memory } = self;
        let division = Division::new(problem);
        // SAFETY: no other thread uses this thread's scratch memory.
        let scratch = unsafe { std::slice::from_raw_parts_mut(memory.scratch, memory.scratch_length) };
        let mut scratch = Scratch::new(problem, &division, scratch);
        for item in share.of(division.items()).map(|number| division.item(number)) {
            let task = Task { problem, types, item };
            let take = |mut found: RowResult<'_>| {
                let row = out_row(problem, item.stream, found.token, found.head);
                // SAFETY: the row belongs to this item, and so to this thread.
                unsafe {
                    if division.chunks == 1 {
                        finish(problem, row, &mut found.state, found.sums);
                    } else {
                        put_aside(problem, memory, row * division.chunks + item.chunk, &found);
                    }
                }
            };
            // SAFETY: per this function's contract the problem's pointers are valid, and `Isa::run` has checked the
            // instruction set.
            unsafe { task.run::<S>(&mut scratch, take) };
        }
    }
}

fn out_row(problem: &Problem, stream: usize, token: usize, head: usize) -> usize {
    (stream * problem.tokens as usize + token) * problem.heads as usize + head
}

/// # Safety
///
/// The partial result with this index belongs to this thread.
unsafe fn put_aside(problem: &Problem, memory: &Memory, number: usize, found: &RowResult<'_>) {
    let length = partial_length(problem);
    // SAFETY: per this function's contract no other thread writes this partial result.
    let to = unsafe { std::slice::from_raw_parts_mut(memory.partials.add(number * length), length) };
    to[0] = found.state.maximum;
    to[1] = found.state.sum;
    to[2..].copy_from_slice(found.sums);
}

/// Divides by the sum of the weights and writes the row.
///
/// # Safety
///
/// The row belongs to this thread.
unsafe fn finish(problem: &Problem, row: usize, state: &mut State, sums: &mut [f32]) {
    let mut scale = 1.0;
    if !problem.sinks.is_null() {
        // SAFETY: there is one sink for each head.
        let sink = unsafe { *problem.sinks.add(row % problem.heads as usize) };
        scale = state.take_sink(sink);
    }
    // Rows that attend to no cell produce zeros.
    let scale = if state.sum == 0.0 { 0.0 } else { scale / state.sum };
    // SAFETY: per this function's contract no other thread writes this row.
    let to = unsafe { std::slice::from_raw_parts_mut(problem.out.add(row * sums.len()), sums.len()) };
    to.iter_mut().zip(sums).for_each(|(to, sum)| *to = *sum * scale);
}

/// Second phase: merges the partial results of this thread's rows. Does nothing if the cells are not divided.
///
/// # Safety
///
/// As [`compute`], which has returned on all threads.
pub unsafe fn merge(problem: &Problem, share: Share, memory: &Memory) {
    let division = Division::new(problem);
    if division.chunks == 1 || problem.types().is_none() {
        return;
    }
    let length = partial_length(problem);
    // SAFETY: no other thread uses this thread's scratch memory, and it is longer than a row.
    let sums = unsafe { std::slice::from_raw_parts_mut(memory.scratch, length - 2) };
    for row in share.of(out_rows(problem)) {
        let mut state = State::EMPTY;
        sums.fill(0.0);
        for chunk in 0..division.chunks {
            let number = row * division.chunks + chunk;
            // SAFETY: all threads have written their partial results.
            let part = unsafe { std::slice::from_raw_parts(memory.partials.add(number * length), length) };
            add_part(&mut state, sums, part);
        }
        // SAFETY: the row belongs to this thread's share.
        unsafe { finish(problem, row, &mut state, sums) };
    }
}

fn add_part(state: &mut State, sums: &mut [f32], part: &[f32]) {
    let found = State { maximum: part[0], sum: part[1] };
    if found == State::EMPTY {
        return;
    }
    let maximum = state.maximum.max(found.maximum);
    let (old, new) = (factor(state.maximum, maximum), factor(found.maximum, maximum));
    *state = State { maximum, sum: state.sum * old + found.sum * new };
    for (sum, part) in sums.iter_mut().zip(&part[2..]) {
        *sum = *sum * old + part * new;
    }
}
