//! The recurrence of some rows of one head's state, [`AT_ONCE`] rows at a time.
//!
//! A row `S` of the state, one value dimension, is a recurrence of its own. With the dot products of the old row
//!
//! ```text
//! a = (S * decay) . k      b = (S * decay) . q      c = k . q
//! ```
//!
//! the correction is `d = beta * (v - a)`, the new row `S * decay + d * k`, and its product with `q` is `b + d * c`. So
//! a token reads a row twice, the second time from the L1 cache, and writes it once. Upstream's operation passes over
//! the whole state of the head four times, and copies it.
//!
//! The arithmetic of a token is the same for each number of tokens, so a prompt has the same result in one batch and in
//! several. That excludes the chunked form of the delta rule, where the size of a chunk changes the rounding.

use std::ops::Range;

use super::StateOperation;
use super::batch::Batch;
use super::moves::{self, Move};
use super::problem::{Item, Problem, SIZE_LIMIT};
use crate::share::Share;
use crate::simd::{MAX_LANES, Simd};

/// Number of rows that are computed at once.
pub const AT_ONCE: usize = 4;

/// Number of tokens that pass by a block of rows before the next block is read.
const CHUNK: usize = 16;

impl StateOperation for Problem {
    fn batch(&self) -> &Batch {
        &self.batch
    }

    fn is_supported(&self) -> bool {
        self.heads > 0
            && self.key_heads > 0
            && self.heads.is_multiple_of(self.key_heads)
            && (1..=SIZE_LIMIT).contains(&self.size)
            && (self.size as usize).is_multiple_of(MAX_LANES)
            && (self.gate_size == 1 || self.gate_size == self.size)
            && self.batch.is_supported()
    }

    #[inline(always)]
    unsafe fn compute_share<S: Simd>(&self, share: Share, moves: &[Move]) {
        let mut scratch = Scratch::new(self);
        for item in share.of(self.items()).map(|number| self.item(number)) {
            // SAFETY: per this function's contract the processor has `S`, the sizes are supported, the pointers are
            // valid, and each place is a cell. Only this thread uses the item's rows, so threads do not wait for each
            // other.
            unsafe {
                moves::carry_out(moves, self.length(&item), |cell| self.rows(cell, &item));
                for seq in 0..self.batch.seqs as usize {
                    if self.decays_by_key() {
                        advance::<S, true>(self, &item, seq, &mut scratch);
                    } else {
                        advance::<S, false>(self, &item, seq, &mut scratch);
                    }
                }
            }
        }
    }
}

/// The inputs and outputs of one token and head.
#[derive(Clone, Copy, Debug)]
struct Token {
    q: *const f32,
    k: *const f32,
    v: *const f32,
    out: *mut f32,
    /// The decay of the state; 1 if each key dimension has its own.
    decay: f32,
    /// The decays of the key dimensions, if each has its own.
    decays: *const f32,
    beta: f32,
    /// `k . q`.
    kq: f32,
}

/// Scratch memory of one thread.
#[derive(Debug)]
pub struct Scratch {
    tokens: Vec<Token>,
    decays: Vec<f32>,
}

impl Scratch {
    /// Allocates it.
    #[must_use]
    pub fn new(problem: &Problem) -> Scratch {
        let decays = if problem.decays_by_key() { CHUNK * problem.size as usize } else { 0 };
        Scratch { tokens: Vec::with_capacity(CHUNK), decays: vec![0.0; decays] }
    }

    /// Prepares a chunk of tokens of one sequence and head.
    ///
    /// # Safety
    ///
    /// As [`advance`].
    #[inline(always)]
    unsafe fn prepare<S: Simd>(&mut self, problem: &Problem, head: usize, seq: usize, chunk: Range<usize>) {
        let size = problem.size as usize;
        self.tokens.clear();
        for (i, token) in chunk.enumerate() {
            // SAFETY: per this function's contract the processor has `S` and the problem's pointers are valid.
            unsafe {
                let mut prepared = token_of(problem, head, seq, token);
                let gate = problem.gate.add(problem.position(seq, token, head) * problem.gate_size as usize);
                if problem.decays_by_key() {
                    let decays = self.decays.as_mut_ptr().add(i * size);
                    (0..size).for_each(|at| *decays.add(at) = (*gate.add(at)).exp());
                    prepared.decays = decays;
                } else {
                    prepared.decay = (*gate).exp();
                }
                prepared.kq = dot::<S>(prepared.k, prepared.q, size);
                self.tokens.push(prepared);
            }
        }
    }
}

/// Returns the pointers of a token, without decay and dot product.
///
/// # Safety
///
/// The problem's pointers are valid for its sizes and strides.
unsafe fn token_of(problem: &Problem, head: usize, seq: usize, token: usize) -> Token {
    let at = |stride: [u64; 3], head: usize| {
        head * stride[0] as usize + token * stride[1] as usize + seq * stride[2] as usize
    };
    let key_head = head % problem.key_heads as usize;
    let position = problem.position(seq, token, head);
    // SAFETY: per this function's contract the rows exist.
    unsafe {
        Token {
            q: problem.q.byte_add(at([problem.q_head, problem.q_token, problem.q_seq], key_head)).cast(),
            k: problem.k.byte_add(at([problem.k_head, problem.k_token, problem.k_seq], key_head)).cast(),
            v: problem.v.byte_add(at([problem.v_head, problem.v_token, problem.v_seq], head)).cast(),
            out: problem.out.add(position * problem.size as usize),
            decay: 1.0,
            decays: std::ptr::null(),
            beta: *problem.beta.add(position),
            kq: 0.0,
        }
    }
}

/// Computes all tokens of a sequence on the rows of an item, in the sequence's cell, and writes their outputs.
/// `BY_KEY`: each key dimension has its own decay.
///
/// # Safety
///
/// The processor has the instruction set `S`. The problem is supported, and `BY_KEY` is as in it; its pointers are
/// valid for its sizes and strides. No other thread uses these rows.
#[inline(always)]
pub unsafe fn advance<S: Simd, const BY_KEY: bool>(
    problem: &Problem,
    item: &Item,
    seq: usize,
    scratch: &mut Scratch,
) {
    let tokens = problem.batch.tokens as usize;
    for start in (0..tokens).step_by(CHUNK) {
        let chunk = start..tokens.min(start + CHUNK);
        // SAFETY: as per this function's contract.
        unsafe { scratch.prepare::<S>(problem, item.head, seq, chunk.clone()) };
        for block in item.blocks() {
            for (token, number) in scratch.tokens.iter().copied().zip(chunk.clone()) {
                // SAFETY: per this function's contract the processor has `S`, the cell exists, and its rows are this
                // thread's.
                unsafe {
                    let rows = problem.rows(problem.batch.cell(seq, 0), &block);
                    take_token::<S, BY_KEY>(rows, &block, problem.size as usize, token);
                    if let Some(plane) = problem.batch.rollback_plane(number) {
                        let to = problem.rows(problem.batch.cell(seq, plane), &block);
                        to.copy_from_nonoverlapping(rows, problem.length(&block));
                    }
                }
            }
        }
    }
}

/// Computes one token on some rows, whose number is a multiple of [`AT_ONCE`].
///
/// # Safety
///
/// The processor has the instruction set `S`. There are `item.rows` rows of `size` values, a multiple of `LANES`, and
/// the token's rows have as many.
#[inline(always)]
unsafe fn take_token<S: Simd, const BY_KEY: bool>(rows: *mut f32, item: &Item, size: usize, token: Token) {
    let scale = 1.0 / (size as f32).sqrt();
    for at in (0..item.rows).step_by(AT_ONCE) {
        // SAFETY: per this function's contract the processor has `S` and there are these rows.
        unsafe {
            let rows = rows.add(at * size);
            let [with_k, with_q] = products::<S, BY_KEY>(rows, size, token);
            let mut corrections = [0.0; AT_ONCE];
            for (i, correction) in corrections.iter_mut().enumerate() {
                let row = item.row + at + i;
                *correction = token.beta * (*token.v.add(row) - token.decay * with_k[i]);
                *token.out.add(row) = scale * (token.decay * with_q[i] + *correction * token.kq);
            }
            update::<S, BY_KEY>(rows, size, token, corrections);
        }
    }
}

/// Returns the dot products of the rows with `k` and with `q`: of decayed rows if each key dimension has its own decay.
///
/// # Safety
///
/// As [`take_token`], for [`AT_ONCE`] rows.
#[inline(always)]
unsafe fn products<S: Simd, const BY_KEY: bool>(
    rows: *const f32,
    size: usize,
    token: Token,
) -> [[f32; AT_ONCE]; 2] {
    // SAFETY: per this function's contract the processor has `S` and all rows have `size` values.
    unsafe {
        let mut with_k = [S::splat(0.0); AT_ONCE];
        let mut with_q = [S::splat(0.0); AT_ONCE];
        for at in (0..size).step_by(S::LANES) {
            let (k, q) = (S::load(token.k.add(at)), S::load(token.q.add(at)));
            for i in 0..AT_ONCE {
                let mut row = S::load(rows.add(i * size + at));
                if BY_KEY {
                    row = S::mul(row, S::load(token.decays.add(at)));
                }
                with_k[i] = S::mul_add(row, k, with_k[i]);
                with_q[i] = S::mul_add(row, q, with_q[i]);
            }
        }
        [S::sums(with_k), S::sums(with_q)]
    }
}

/// Computes `row = row * decay + correction * k` for each row.
///
/// # Safety
///
/// As [`take_token`], for [`AT_ONCE`] rows.
#[inline(always)]
unsafe fn update<S: Simd, const BY_KEY: bool>(
    rows: *mut f32,
    size: usize,
    token: Token,
    corrections: [f32; AT_ONCE],
) {
    // SAFETY: per this function's contract the processor has `S` and all rows have `size` values.
    unsafe {
        let mut factors = [S::splat(0.0); AT_ONCE];
        for (factor, correction) in factors.iter_mut().zip(corrections) {
            *factor = S::splat(correction);
        }
        let mut decay = S::splat(token.decay);
        for at in (0..size).step_by(S::LANES) {
            let k = S::load(token.k.add(at));
            if BY_KEY {
                decay = S::load(token.decays.add(at));
            }
            for (i, factor) in factors.into_iter().enumerate() {
                let row = rows.add(i * size + at);
                S::store(row, S::mul_add(factor, k, S::mul(S::load(row), decay)));
            }
        }
    }
}

/// Returns the dot product of `size` floats, a multiple of `LANES`.
///
/// # Safety
///
/// The processor has the instruction set `S`, and both have as many floats.
#[inline(always)]
unsafe fn dot<S: Simd>(a: *const f32, b: *const f32, size: usize) -> f32 {
    // SAFETY: per this function's contract the processor has `S` and both have `size` floats.
    unsafe {
        let mut sum = S::splat(0.0);
        for at in (0..size).step_by(S::LANES) {
            sum = S::mul_add(S::load(a.add(at)), S::load(b.add(at)), sum);
        }
        S::sum(sum)
    }
}
