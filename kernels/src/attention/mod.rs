//! Flash attention on the processor.
//!
//! All heads that share a head of K and V, of all tokens that see a tile of cells, are the rows of one small matrix: a tile is
//! read and converted once for all of them, whatever the type of the cache. So a prefix that many sequences share costs what it
//! costs one of them, and decoding, drafts and prompts are one code path.
//!
//! * [`problem`]: what is asked for. [`division`]: how it is divided among threads.
//! * [`item`]: one part of it, out of [`tile`]s of K and V ([`kv_type`]), products and [`softmax`].
//! * [`encoding`] and [`matrix`]: types of floating-point numbers. [`blocks`] and [`whole`]: types of whole numbers with a scale.
//! * [`isa`]: the instruction set, chosen once; [`simd`]: what a vector can do on each.
//!
//! Sums are in single precision, or exact in 32 bits. The result does not depend on the number of threads.

pub mod blocks;
pub mod division;
pub mod encoding;
#[cfg(test)]
mod guarded;
pub mod half;
pub mod isa;
pub mod item;
pub mod kv_type;
pub mod matrix;
pub mod problem;
pub mod scratch;
pub mod sight;
pub mod simd;
pub mod softmax;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub mod tile;
pub mod whole;

use division::{Division, out_rows, partial_length};
use isa::Isa;
use item::{Found, Task};
use problem::{Problem, Types};
use scratch::Scratch;
use simd::{Simd, Work};
use softmax::{State, factor};

/// What one of several threads does of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The thread's number.
    pub thread: usize,
    /// How many threads there are.
    pub threads: usize,
}

impl Share {
    fn of(self, all: usize) -> impl Iterator<Item = usize> {
        (self.thread..all).step_by(self.threads)
    }
}

/// What each part of the memory is aligned to, in bytes.
const ALIGNMENT: usize = 64;

/// Bytes of memory that `threads` threads need together, with room to align it.
#[must_use]
pub fn work_bytes(problem: &Problem, threads: usize) -> usize {
    let division = Division::new(problem);
    let own = Scratch::length(problem, &division) + ALIGNMENT / size_of::<f32>();
    let numbers = division::partials(problem, &division) + threads * own;
    size_of::<f32>() * numbers + ALIGNMENT
}

/// Memory that all threads of a problem share, and what each of them has for itself.
pub struct Memory {
    partials: *mut f32,
    scratch: *mut f32,
    scratch_length: usize,
}

impl Memory {
    /// Takes [`work_bytes`] bytes apart for one thread.
    ///
    /// # Safety
    ///
    /// `memory` leads to that many bytes.
    #[must_use]
    pub unsafe fn new(problem: &Problem, share: Share, memory: *mut u8) -> Memory {
        let division = Division::new(problem);
        let partials = division::partials(problem, &division);
        let scratch_length = Scratch::length(problem, &division);
        let stride = scratch_length + ALIGNMENT / size_of::<f32>();
        // SAFETY: the caller's promise: there is room for all of it, and to align each.
        unsafe {
            let first = memory.add(memory.align_offset(ALIGNMENT)).cast::<f32>();
            let own = first.add(partials + share.thread * stride);
            let own = own.add(own.align_offset(ALIGNMENT));
            Memory { partials: first, scratch: own, scratch_length }
        }
    }
}

/// The first half: every item that is this thread's. Where cells are divided, [`merge`] follows once all threads are here.
///
/// # Safety
///
/// The problem's pointers lead to what they say; no two threads have the same share, and all have one `memory`.
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
        // SAFETY: nobody else has this thread's memory.
        let scratch = unsafe { std::slice::from_raw_parts_mut(memory.scratch, memory.scratch_length) };
        let mut scratch = Scratch::new(problem, &division, scratch);
        for item in share.of(division.items()).map(|number| division.item(number)) {
            let task = Task { problem, types, item };
            let take = |mut found: Found<'_>| {
                let row = out_row(problem, item.stream, found.token, found.head);
                // SAFETY: the row is of this item, and so of this thread.
                unsafe {
                    if division.chunks == 1 {
                        finish(problem, row, &mut found.state, found.sums);
                    } else {
                        put_aside(problem, memory, row * division.chunks + item.chunk, &found);
                    }
                }
            };
            // SAFETY: the caller's promises.
            unsafe { task.run::<S>(&mut scratch, take) };
        }
    }
}

fn out_row(problem: &Problem, stream: usize, token: usize, head: usize) -> usize {
    (stream * problem.tokens as usize + token) * problem.heads as usize + head
}

/// # Safety
///
/// The partial result with this number is this thread's.
unsafe fn put_aside(problem: &Problem, memory: &Memory, number: usize, found: &Found<'_>) {
    let length = partial_length(problem);
    // SAFETY: the caller's promise.
    let to = unsafe { std::slice::from_raw_parts_mut(memory.partials.add(number * length), length) };
    to[0] = found.state.maximum;
    to[1] = found.state.sum;
    to[2..].copy_from_slice(found.sums);
}

/// Divides by the sum of the weights and writes the row.
///
/// # Safety
///
/// The row is this thread's.
unsafe fn finish(problem: &Problem, row: usize, state: &mut State, sums: &mut [f32]) {
    let mut scale = 1.0;
    if !problem.sinks.is_null() {
        // SAFETY: there is one for each head.
        let sink = unsafe { *problem.sinks.add(row % problem.heads as usize) };
        scale = state.take_sink(sink);
    }
    // Of no cell nothing is read.
    let scale = if state.sum == 0.0 { 0.0 } else { scale / state.sum };
    // SAFETY: the caller's promise.
    let to = unsafe { std::slice::from_raw_parts_mut(problem.out.add(row * sums.len()), sums.len()) };
    to.iter_mut().zip(sums).for_each(|(to, sum)| *to = *sum * scale);
}

/// The second half: puts the parts of this thread's rows together. There is nothing to do where cells are not divided.
///
/// # Safety
///
/// As [`compute`], which all threads have ended.
pub unsafe fn merge(problem: &Problem, share: Share, memory: &Memory) {
    let division = Division::new(problem);
    if division.chunks == 1 || problem.types().is_none() {
        return;
    }
    let length = partial_length(problem);
    // SAFETY: nobody else has this thread's memory, and it is longer than a row.
    let sums = unsafe { std::slice::from_raw_parts_mut(memory.scratch, length - 2) };
    for row in share.of(out_rows(problem)) {
        let mut state = State::EMPTY;
        sums.fill(0.0);
        for chunk in 0..division.chunks {
            let number = row * division.chunks + chunk;
            // SAFETY: all threads have written theirs.
            let part = unsafe { std::slice::from_raw_parts(memory.partials.add(number * length), length) };
            add_part(&mut state, sums, part);
        }
        // SAFETY: the row is of this thread's share.
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
