//! Gated delta nets on the CPU: the recurrence of a layer and the convolution before it, in place in their caches.
//!
//! Upstream's graph gathers the states of a batch, computes on a copy, and copies the results back. Here each state is
//! read from and written to its cell. The cells that a batch moves are part of the computation, because a cell is
//! overwritten while another sequence may begin with its state.
//!
//! * [`StateOperation`]: what the recurrence and the convolution have in common, and [`compute`], their entry.
//! * [`batch`]: the sequences of a batch and their cells. [`moves`]: the order of the copies between cells.
//! * [`problem`]: the inputs of the recurrence, and its division among threads. [`recurrence`]: its arithmetic.
//! * [`convolution`]: the convolution before it, with its activation.
//!
//! The server uses the recurrence, if `gdn-recurrence` is on and all devices are CPUs. **No graph uses the convolution
//! yet**: only tests call it. Missing are an operation of ggml that calls it and the call in the models' graphs, whose
//! `build_conv_state` is upstream's.
//!
//! Sums are in f32. The result depends neither on the number of threads, nor on the other sequences of a batch, nor on
//! the batches that the tokens of a sequence are divided into: prompts and drafts have the results of single tokens.

pub mod batch;
pub mod convolution;
pub mod moves;
pub mod problem;
pub mod recurrence;

use crate::share::Share;
use crate::simd::isa::Isa;
use crate::simd::{Simd, Work};
use batch::Batch;
use moves::Move;

/// An operation of a layer on the states of a batch, in place in their cache.
pub trait StateOperation {
    /// Returns the sequences, and their cells.
    fn batch(&self) -> &Batch;

    /// Returns whether the kernel supports the sizes.
    fn is_supported(&self) -> bool;

    /// Carries out the copies between cells that precede the first token, and computes all tokens: a thread's share.
    ///
    /// # Safety
    ///
    /// The processor has the instruction set `S`. The sizes are supported, and the pointers are valid for them; the
    /// output and the cache do not overlap the other tensors. Each place of a copy is a cell of the cache. No two
    /// threads have the same share.
    unsafe fn compute_share<S: Simd>(&self, share: Share, moves: &[Move]);
}

/// Computes a thread's share. Returns false, and writes nothing, if the sizes are not supported or a source is not a
/// cell of the cache; that is the same for all threads.
///
/// # Safety
///
/// The operation's pointers are valid for its sizes and strides; the output and the cache do not overlap the other
/// tensors. No two threads have the same share.
#[must_use]
pub unsafe fn compute<O: StateOperation>(operation: &O, share: Share) -> bool {
    // SAFETY: as per this function's contract.
    unsafe { compute_on(Isa::chosen(), operation, share) }
}

/// The same on an instruction set.
///
/// # Safety
///
/// As [`compute`].
unsafe fn compute_on<O: StateOperation>(isa: Isa, operation: &O, share: Share) -> bool {
    if !operation.is_supported() {
        return false;
    }
    // SAFETY: per this function's contract the sources are valid.
    let Some(moves) = (unsafe { operation.batch().moves() }) else { return false };
    isa.run(OneThread { operation, share, moves: &moves });
    true
}

/// The work of one thread. [`compute_on`] has checked the sizes and the sources.
struct OneThread<'a, O> {
    operation: &'a O,
    share: Share,
    moves: &'a [Move],
}

impl<O: StateOperation> Work for OneThread<'_, O> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: `Isa::run` has checked the instruction set, and `compute_on`, whose caller guarantees the rest, the
        // sizes and the sources.
        unsafe { self.operation.compute_share::<S>(self.share, self.moves) };
    }
}

#[cfg(test)]
mod oracle {
    use super::batch::Batch;

    /// Returns the cells that get the state of another, in any order: those of the sequences in the first plane, idle
    /// ones in each plane, as far as it has a source.
    pub fn copied_with_rollback_states(batch: &Batch, sources: &[i32]) -> Vec<(usize, usize)> {
        let (cells, planes) = (batch.cells as usize, batch.planes as usize);
        let mut copied = Vec::new();
        for (i, source) in sources.iter().map(|source| *source as usize).enumerate() {
            for plane in (0..planes).filter(|plane| *plane == 0 || i >= batch.seqs as usize) {
                let from = (source / cells + plane).min(planes - 1);
                copied.push((plane * cells + batch.first as usize + i, from * cells + source % cells));
            }
        }
        copied
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::oracle::copied_with_rollback_states;
    use super::problem::{Item, Problem};
    use super::*;
    use crate::attention::guarded::Guarded;
    use crate::attention::testing::{Random, cases};

    /// A problem with its memory. Q, K and V are parts of one row for each token, as in the models.
    struct Case {
        sizes: Problem,
        qkv: Vec<f32>,
        gate: Vec<f32>,
        beta: Vec<f32>,
        states: Vec<f32>,
        sources: Vec<i32>,
    }

    /// The output, and the cache afterwards.
    #[derive(Debug, PartialEq)]
    struct DeltaNetResult {
        out: Vec<f32>,
        states: Vec<f32>,
    }

    /// An expected value, computed in f64, and the allowed error.
    #[derive(Clone, Copy, Debug)]
    struct Expected {
        value: f64,
        bound: f64,
    }

    fn sizes(random: &mut Random) -> Problem {
        let key_heads = random.one_of(&[1, 2]);
        let seqs = random.one_of(&[1, 2, 3, 5]);
        let (first, moved) = (random.one_of(&[0, 2]), seqs + random.one_of(&[0, 0, 3]));
        let size = random.one_of(&[16, 16, 32, 48, 64, 128]);
        Problem {
            size,
            gate_size: random.one_of(&[1, 1, size]),
            heads: key_heads * random.one_of(&[1, 2]),
            key_heads,
            batch: Batch {
                tokens: random.one_of(&[1, 1, 2, 5, 16, 17, 40]),
                seqs,
                first,
                moved,
                cells: first + moved + random.one_of(&[0, 1]),
                planes: random.one_of(&[1, 1, 2, 4]),
                ..ONE
            },
            ..NONE
        }
    }

    /// A sequence of one token.
    const ONE: Batch =
        Batch { sources: std::ptr::null(), tokens: 1, seqs: 1, first: 0, moved: 1, cells: 1, planes: 1 };

    const NONE: Problem = Problem {
        q: std::ptr::null(),
        k: std::ptr::null(),
        v: std::ptr::null(),
        gate: std::ptr::null(),
        beta: std::ptr::null(),
        states: std::ptr::null_mut(),
        out: std::ptr::null_mut(),
        batch: ONE,
        q_head: 0,
        q_token: 0,
        q_seq: 0,
        k_head: 0,
        k_token: 0,
        k_seq: 0,
        v_head: 0,
        v_token: 0,
        v_seq: 0,
        size: 16,
        gate_size: 1,
        heads: 1,
        key_heads: 1,
    };

    impl Case {
        fn new(sizes: Problem, random: &mut Random) -> Case {
            let size = sizes.size as usize;
            let tokens = (sizes.batch.tokens * sizes.batch.seqs) as usize;
            let positions = tokens * sizes.heads as usize;
            let rows = (2 * sizes.key_heads + sizes.heads) as usize;
            let mut normal = |count: usize| (0..count).map(|_| random.normal()).collect::<Vec<f32>>();
            let mut qkv = normal(tokens * rows * size);
            for (i, row) in qkv.chunks_exact_mut(size).enumerate() {
                if i % rows < 2 * sizes.key_heads as usize {
                    normalize(row);
                }
            }
            let gate = normal(positions * sizes.gate_size as usize).iter().map(|x| -x.abs()).collect();
            let beta = normal(positions).iter().map(|x| 1.0 / (1.0 + (-x).exp())).collect();
            let cells = (sizes.batch.cells * sizes.batch.planes) as usize;
            let states = normal(cells * sizes.heads as usize * size * size);
            Case { sizes, qkv, gate, beta, states, sources: sources(&sizes, random) }
        }

        /// Returns the case of some sequences and tokens alone. The idle cells are left out.
        fn part(&self, seqs: Range<usize>, tokens: Range<usize>) -> Case {
            let sizes = self.sizes;
            let (of_seq, heads) = (sizes.batch.tokens as usize, sizes.heads as usize);
            let cut = |all: &[f32], width: usize| -> Vec<f32> {
                let rows = seqs.clone().flat_map(|seq| tokens.clone().map(move |token| seq * of_seq + token));
                rows.flat_map(|row| all[row * width..][..width].to_vec()).collect()
            };
            Case {
                qkv: cut(&self.qkv, self.row()),
                gate: cut(&self.gate, heads * sizes.gate_size as usize),
                beta: cut(&self.beta, heads),
                states: self.states.clone(),
                sources: self.sources[seqs.clone()].to_vec(),
                sizes: Problem {
                    batch: Batch {
                        tokens: tokens.len() as u32,
                        seqs: seqs.len() as u32,
                        first: sizes.batch.first + seqs.start as u32,
                        moved: seqs.len() as u32,
                        ..sizes.batch
                    },
                    ..sizes
                },
            }
        }

        /// Returns the number of values of Q, K and V of a token.
        fn row(&self) -> usize {
            ((2 * self.sizes.key_heads + self.sizes.heads) * self.sizes.size) as usize
        }

        fn rows_of_cell(&self) -> usize {
            self.sizes.heads as usize * (self.sizes.size as usize).pow(2)
        }

        fn run(&self, isa: Isa, threads: usize) -> DeltaNetResult {
            let (found, is_computed) = self.try_run(isa, threads);
            assert!(is_computed);
            found
        }

        fn try_run(&self, isa: Isa, threads: usize) -> (DeltaNetResult, bool) {
            let sizes = self.sizes;
            let outs = (sizes.batch.tokens * sizes.batch.seqs * sizes.heads * sizes.size) as usize;
            let mut out = Guarded::new(&vec![f32::NAN; outs]);
            let mut states = Guarded::new(&self.states);
            let [qkv, gate, beta] = [&self.qkv, &self.gate, &self.beta].map(|all| Guarded::new(all));
            let sources = Guarded::new(&self.sources);
            let (head, token) = (4 * u64::from(sizes.size), 4 * self.row() as u64);
            let (seq, keys) =
                (token * u64::from(sizes.batch.tokens), (sizes.key_heads * sizes.size) as usize);
            let problem = Problem {
                q: qkv.as_ptr().cast(),
                k: qkv[keys..].as_ptr().cast(),
                v: qkv[2 * keys..].as_ptr().cast(),
                gate: gate.as_ptr(),
                beta: beta.as_ptr(),
                states: states.as_mut_ptr(),
                out: out.as_mut_ptr(),
                batch: Batch { sources: pointer(&sources), ..sizes.batch },
                q_head: head,
                q_token: token,
                q_seq: seq,
                k_head: head,
                k_token: token,
                k_seq: seq,
                v_head: head,
                v_token: token,
                v_seq: seq,
                ..sizes
            };
            let is_computed = on_threads(&problem, isa, threads);
            (DeltaNetResult { out: out.to_vec(), states: states.to_vec() }, is_computed)
        }

        /// Computes the output and the cache in f64.
        fn reference(&self) -> [Vec<Expected>; 2] {
            let sizes = self.sizes;
            let exact = |value: &f32| Expected { value: f64::from(*value), bound: 0.0 };
            let before: Vec<Expected> = self.states.iter().map(exact).collect();
            let (mut states, length) = (before.clone(), self.rows_of_cell());
            for (cell, source) in copied_with_rollback_states(&sizes.batch, &self.sources) {
                states[cell * length..][..length].copy_from_slice(&before[source * length..][..length]);
            }
            let outs =
                sizes.batch.seqs as usize * sizes.batch.tokens as usize * (sizes.heads * sizes.size) as usize;
            let mut out = vec![Expected { value: f64::NAN, bound: 0.0 }; outs];
            for seq in 0..sizes.batch.seqs as usize {
                for head in 0..sizes.heads as usize {
                    for row in 0..sizes.size as usize {
                        self.reference_row([seq, head, row], &mut states, &mut out);
                    }
                }
            }
            [out, states]
        }

        fn reference_row(&self, [seq, head, row]: [usize; 3], states: &mut [Expected], out: &mut [Expected]) {
            let sizes = self.sizes;
            let (size, tokens, keys) =
                (sizes.size as usize, sizes.batch.tokens as usize, sizes.key_heads as usize);
            let place = |plane: usize| {
                sizes.batch.cell(seq, plane) * self.rows_of_cell() + (head * size + row) * size
            };
            let mut state: Vec<f64> = states[place(0)..][..size].iter().map(|one| one.value).collect();
            let mut largest = length(&state);
            for token in 0..tokens {
                let position = sizes.position(seq, token, head);
                let qkv = &self.qkv[(seq * tokens + token) * self.row()..][..self.row()];
                let [q, k] = [0, keys].map(|part| &qkv[(part + head % keys) * size..][..size]);
                let v = f64::from(qkv[(2 * keys + head) * size + row]);
                let gates = &self.gate[position * sizes.gate_size as usize..][..sizes.gate_size as usize];
                for (i, one) in state.iter_mut().enumerate() {
                    *one *= f64::from(gates[i % gates.len()]).exp();
                }
                let correction = f64::from(self.beta[position]) * (v - product(&state, k));
                state.iter_mut().zip(k).for_each(|(one, k)| *one += correction * f64::from(*k));
                largest = largest.max(length(&state)).max(v.abs());
                // Each token adds a rounding error to the state, which the next ones decay.
                let bound = 1e-6 * (token + 9) as f64 * largest;
                let scale = 1.0 / (size as f64).sqrt();
                out[position * size + row] =
                    Expected { value: scale * product(&state, q), bound: scale * bound };
                let back = tokens - 1 - token;
                if back < sizes.batch.planes as usize {
                    let to = &mut states[place(back)..][..size];
                    to.iter_mut().zip(&state).for_each(|(to, value)| *to = Expected { value: *value, bound });
                }
            }
        }
    }

    /// Returns null if there are none: all cells keep their states.
    fn pointer(sources: &[i32]) -> *const i32 {
        if sources.is_empty() { std::ptr::null() } else { sources.as_ptr() }
    }

    fn normalize(row: &mut [f32]) {
        let length = row.iter().map(|x| x * x).sum::<f32>().sqrt();
        row.iter_mut().for_each(|x| *x /= length);
    }

    fn length(row: &[f64]) -> f64 {
        row.iter().map(|x| x * x).sum::<f64>().sqrt()
    }

    fn product(state: &[f64], with: &[f32]) -> f64 {
        state.iter().zip(with).map(|(a, b)| a * f64::from(*b)).sum()
    }

    fn without_rollback_states(sizes: Problem) -> Problem {
        Problem { batch: Batch { planes: 1, ..sizes.batch }, ..sizes }
    }

    /// Returns the cells themselves, other ones of any plane, or an exchange of them.
    fn sources(sizes: &Problem, random: &mut Random) -> Vec<i32> {
        let (first, moved) = (sizes.batch.first as usize, sizes.batch.moved as usize);
        let (kind, turn) = (random.below(3), random.below(moved));
        let source = |i: usize| match kind {
            0 => first + i,
            1 => random.below((sizes.batch.cells * sizes.batch.planes) as usize),
            _ => first + (i + turn) % moved,
        };
        (0..moved).map(source).map(|cell| cell as i32).collect()
    }

    struct Shared<'a>(&'a Problem);

    // SAFETY: each thread writes to rows of its own, which is what these tests check.
    unsafe impl Sync for Shared<'_> {}

    impl Shared<'_> {
        fn compute(&self, isa: Isa, share: Share) -> bool {
            // SAFETY: the case's memory is as long as its sizes say.
            unsafe { compute_on(isa, self.0, share) }
        }
    }

    /// Runs a problem on threads, and returns whether all have computed it.
    fn on_threads(problem: &Problem, isa: Isa, threads: usize) -> bool {
        let shared = &Shared(problem);
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..threads)
                .map(|thread| scope.spawn(move || shared.compute(isa, Share { thread, threads })))
                .collect();
            all.into_iter().all(|thread| thread.join().expect("no thread panics"))
        })
    }

    fn close(found: &[f32], expected: &[Expected], what: &str) {
        assert_eq!(found.len(), expected.len());
        for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
            let distance = (f64::from(*found) - expected.value).abs();
            assert!(distance <= expected.bound, "{what}, {at}: {found} is not {expected:?}");
        }
    }

    /// A problem's number is its seed. States of cells that are not in the batch keep every bit: their bound is 0.
    #[test]
    fn random_problems_are_solved_on_each_instruction_set() {
        for seed in 0..cases(60) {
            let mut random = Random(seed);
            let case = Case::new(sizes(&mut random), &mut random);
            let [out, states] = case.reference();
            for isa in Isa::here() {
                let found = case.run(isa, 1 + seed as usize % 8);
                let what = format!("seed {seed}, {isa:?}, {:?} {:?}", case.sizes, case.sources);
                close(&found.out, &out, &format!("output of {what}"));
                close(&found.states, &states, &format!("states of {what}"));
            }
        }
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        for seed in 0..10 {
            let mut random = Random(1000 + seed);
            let case = Case::new(sizes(&mut random), &mut random);
            let one = case.run(Isa::chosen(), 1);
            for threads in 2..=8 {
                assert_eq!(case.run(Isa::chosen(), threads), one, "seed {seed}, {threads} threads");
            }
        }
    }

    #[test]
    fn a_sequence_has_the_same_bits_alone() {
        for seed in 0..20 {
            let mut random = Random(2000 + seed);
            let case = Case::new(without_rollback_states(sizes(&mut random)), &mut random);
            let (tokens, cell) = (case.sizes.batch.tokens as usize, case.rows_of_cell());
            for isa in Isa::here() {
                let all = case.run(isa, 2);
                let outs = all.out.len() / case.sizes.batch.seqs as usize;
                for seq in 0..case.sizes.batch.seqs as usize {
                    let alone = case.part(seq..seq + 1, 0..tokens).run(isa, 1);
                    let first = case.sizes.batch.cell(seq, 0) * cell;
                    assert_eq!(alone.out, all.out[seq * outs..][..outs], "{isa:?}, seed {seed}, {seq}");
                    assert_eq!(alone.states[first..][..cell], all.states[first..][..cell], "{isa:?}, {seed}");
                }
            }
        }
    }

    #[test]
    fn a_prompt_has_the_same_bits_token_by_token() {
        for seed in 0..20 {
            let mut random = Random(3000 + seed);
            let several = Case::new(without_rollback_states(sizes(&mut random)), &mut random);
            let case = several.part(0..1, 0..several.sizes.batch.tokens as usize);
            for isa in Isa::here() {
                let all = case.run(isa, 2);
                let (mut states, mut out) = (case.states.clone(), Vec::new());
                for token in 0..case.sizes.batch.tokens as usize {
                    let mut one = case.part(0..1, token..token + 1);
                    if token > 0 {
                        one.sources.clear();
                    }
                    one.states = states;
                    let found = one.run(isa, 1);
                    states = found.states;
                    out.extend(found.out);
                }
                assert_eq!(DeltaNetResult { out, states }, all, "{isa:?}, seed {seed}");
            }
        }
    }

    #[test]
    fn a_source_that_is_not_a_cell_is_refused_before_anything_is_written() {
        let mut random = Random(4);
        for source in [-1, 6] {
            let sizes = Problem { batch: Batch { cells: 3, planes: 2, ..ONE }, ..NONE };
            let case = Case { sources: vec![source], ..Case::new(sizes, &mut random) };
            let (found, is_computed) = case.try_run(Isa::chosen(), 2);
            assert!(!is_computed && found.states == case.states && found.out.iter().all(|one| one.is_nan()));
        }
    }

    #[test]
    fn sizes_that_do_not_fit_are_not_supported() {
        assert!(NONE.is_supported());
        let of = |batch| Problem { batch, ..NONE };
        let others = [
            Problem { size: 8, ..NONE },
            Problem { size: 512, ..NONE },
            Problem { gate_size: 2, ..NONE },
            Problem { heads: 3, key_heads: 2, ..NONE },
            Problem { heads: 0, ..NONE },
            Problem { key_heads: 0, ..NONE },
            of(Batch { tokens: 0, ..ONE }),
            of(Batch { seqs: 0, ..ONE }),
            of(Batch { seqs: 2, cells: 2, ..ONE }),
            of(Batch { first: 1, ..ONE }),
            of(Batch { planes: 0, ..ONE }),
        ];
        for other in others {
            assert!(!other.is_supported(), "{other:?}");
        }
    }

    #[test]
    fn every_row_is_in_one_item() {
        for (size, gate_size) in [(16, 1), (48, 1), (128, 1), (256, 1), (128, 128)] {
            let problem = Problem { size, gate_size, heads: 3, ..NONE };
            let items = (0..problem.items()).map(|number| problem.item(number));
            let blocks = items.flat_map(Item::blocks);
            let rows = |item: Item| (item.row..item.row + item.rows).map(move |row| (item.head, row));
            let found: Vec<(usize, usize)> = blocks.flat_map(rows).collect();
            let all = (0..3).flat_map(|head| (0..size as usize).map(move |row| (head, row)));
            assert_eq!(found, all.collect::<Vec<_>>(), "{size}");
        }
    }
}
