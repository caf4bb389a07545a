//! The convolution of a gated delta net's inputs over the last tokens, with its activation: in place in the cache,
//! which keeps the inputs of the tokens before a batch.
//!
//! Upstream's graph gathers the states, concatenates them with the transposed inputs, copies the end of that back, and
//! passes over the result for the convolution and again for the activation. The server still does that: only tests call
//! this kernel.

use std::ffi::c_void;

use super::StateOperation;
use super::batch::Batch;
use super::moves::{self, Move};
use crate::share::Share;
use crate::simd::exp::sigmoid;
use crate::simd::{MAX_LANES, Simd};

/// The convolution of one layer: `out[t] = silu(sum(kernel[i] * x[t - taps + 1 + i]))` for each channel, where `x` has
/// the inputs of the batch and before them those in the sequence's cell.
///
/// The layout is `struct espalier_gdn_convolution` of the C header. All values are f32. Strides are in bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Convolution {
    /// Inputs: for each token a row of `channels` values.
    pub x: *const c_void,
    /// For each channel `taps` values, that of the oldest token first; contiguous.
    pub kernel: *const f32,
    /// The cache: for each cell and channel the last `taps - 1` inputs, the oldest first; contiguous.
    pub states: *mut f32,
    /// The output: rows of `channels` values by token, then by sequence, contiguous.
    pub out: *mut f32,
    /// The sequences, and their cells. Here each plane gets a state: that before the first token, if the sequence has
    /// fewer tokens.
    pub batch: Batch,
    /// Stride between tokens.
    pub x_token: u64,
    /// Stride between sequences.
    pub x_seq: u64,
    /// Number of channels.
    pub channels: u32,
    /// Number of tokens that an output depends on.
    pub taps: u32,
}

/// Largest number of taps.
const MAX_TAPS: usize = 8;

/// Number of channels that a thread computes at once, for all sequences.
const CHANNELS: usize = 64;

/// Rows of these channels.
type Rows<const COUNT: usize> = [[f32; CHANNELS]; COUNT];

impl Convolution {
    /// Returns the number of inputs that a cell has for each channel.
    fn kept(&self) -> usize {
        self.taps as usize - 1
    }

    /// Returns the inputs that a cell has, from a channel on.
    ///
    /// # Safety
    ///
    /// The cache has the cell.
    unsafe fn state(&self, cell: usize, channel: usize) -> *mut f32 {
        // SAFETY: per this function's contract the cache has the cell.
        unsafe { self.states.add((cell * self.channels as usize + channel) * self.kept()) }
    }

    /// Returns the inputs of a token, from a channel on.
    ///
    /// # Safety
    ///
    /// The batch has the token.
    unsafe fn input(&self, seq: usize, token: usize, channel: usize) -> *const f32 {
        let row = token * self.x_token as usize + seq * self.x_seq as usize;
        // SAFETY: per this function's contract the row exists.
        unsafe { self.x.byte_add(row).cast::<f32>().add(channel) }
    }
}

impl StateOperation for Convolution {
    fn batch(&self) -> &Batch {
        &self.batch
    }

    fn is_supported(&self) -> bool {
        self.channels > 0
            && (self.channels as usize).is_multiple_of(MAX_LANES)
            && (2..=MAX_TAPS).contains(&(self.taps as usize))
            && self.batch.is_supported()
    }

    #[inline(always)]
    unsafe fn compute_share<S: Simd>(&self, share: Share, moves: &[Move]) {
        let all = self.channels as usize;
        for number in share.of(all.div_ceil(CHANNELS)) {
            let first = number * CHANNELS;
            let channels = CHANNELS.min(all - first);
            // SAFETY: per this function's contract the processor has `S`, the sizes are supported, the pointers are
            // valid, and each place is a cell. The channels belong to this thread.
            unsafe {
                moves::carry_out(moves, channels * self.kept(), |cell| self.state(cell, first));
                let mut part = ChannelGroup::new(self, first, channels);
                for seq in 0..self.batch.seqs as usize {
                    part.take_sequence::<S>(seq);
                }
            }
        }
    }
}

/// A group of channels.
struct ChannelGroup<'a> {
    problem: &'a Convolution,
    first: usize,
    channels: usize,
    kernel: Rows<MAX_TAPS>,
    /// The inputs that the cell of a sequence has before the batch.
    before: Rows<MAX_TAPS>,
}

impl ChannelGroup<'_> {
    /// # Safety
    ///
    /// The problem's pointers are valid, and it has these channels.
    unsafe fn new(problem: &Convolution, first: usize, channels: usize) -> ChannelGroup<'_> {
        let taps = problem.taps as usize;
        let mut kernel = [[0.0; CHANNELS]; MAX_TAPS];
        // SAFETY: per this function's contract the kernel has these channels.
        unsafe { by_rows(problem.kernel.add(first * taps), taps, channels, &mut kernel) };
        ChannelGroup { problem, first, channels, kernel, before: [[0.0; CHANNELS]; MAX_TAPS] }
    }

    /// Computes all tokens of a sequence, and updates its cell.
    ///
    /// # Safety
    ///
    /// The processor has the instruction set `S`, the problem's pointers are valid, and no other thread uses these
    /// channels.
    #[inline(always)]
    unsafe fn take_sequence<S: Simd>(&mut self, seq: usize) {
        let problem = self.problem;
        let batch = &problem.batch;
        let tokens = batch.tokens as usize;
        // SAFETY: per this function's contract the processor has `S`, and tokens and cells exist.
        unsafe {
            let state = problem.state(batch.cell(seq, 0), self.first);
            by_rows(state, problem.kept(), self.channels, &mut self.before);
            for token in 0..tokens {
                self.take_token::<S>(seq, token);
            }
            for plane in 0..batch.planes as usize {
                self.keep(seq, tokens.saturating_sub(plane), batch.cell(seq, plane));
            }
        }
    }

    /// Returns the inputs at a position: positions begin with those that the cell has.
    ///
    /// # Safety
    ///
    /// As [`ChannelGroup::take_sequence`]; the position is before the end of the batch.
    #[inline(always)]
    unsafe fn inputs(&self, seq: usize, position: usize) -> *const f32 {
        match position.checked_sub(self.problem.kept()) {
            None => self.before[position].as_ptr(),
            // SAFETY: per this function's contract the token exists.
            Some(token) => unsafe { self.problem.input(seq, token, self.first) },
        }
    }

    /// # Safety
    ///
    /// As [`ChannelGroup::take_sequence`].
    #[inline(always)]
    unsafe fn take_token<S: Simd>(&self, seq: usize, token: usize) {
        let (taps, row) = (self.problem.taps as usize, seq * self.problem.batch.tokens as usize + token);
        // SAFETY: per this function's contract the processor has `S` and the rows exist; the number of channels is a
        // multiple of `LANES`.
        unsafe {
            let out = self.problem.out.add(row * self.problem.channels as usize + self.first);
            for at in (0..self.channels).step_by(S::LANES) {
                let mut sum = S::splat(0.0);
                for (tap, kernel) in self.kernel[..taps].iter().enumerate() {
                    let x = S::load(self.inputs(seq, token + tap).add(at));
                    sum = S::mul_add(x, S::load(kernel.as_ptr().add(at)), sum);
                }
                S::store(out.add(at), S::mul(sum, sigmoid::<S>(sum)));
            }
        }
    }

    /// Writes the inputs before the position `position` of the tokens to a cell.
    ///
    /// # Safety
    ///
    /// As [`ChannelGroup::take_sequence`]; the cache has the cell.
    unsafe fn keep(&self, seq: usize, position: usize, cell: usize) {
        let kept = self.problem.kept();
        // SAFETY: per this function's contract the cell and the inputs exist.
        unsafe {
            let to = self.problem.state(cell, self.first);
            for i in 0..kept {
                let from = self.inputs(seq, position + i);
                for channel in 0..self.channels {
                    *to.add(channel * kept + i) = *from.add(channel);
                }
            }
        }
    }
}

/// Transposes `count` values of each channel to rows.
///
/// # Safety
///
/// There are `channels * count` values.
unsafe fn by_rows(from: *const f32, count: usize, channels: usize, to: &mut Rows<MAX_TAPS>) {
    for (i, row) in to[..count].iter_mut().enumerate() {
        for (channel, to) in row[..channels].iter_mut().enumerate() {
            // SAFETY: per this function's contract there are as many values.
            *to = unsafe { *from.add(channel * count + i) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::compute_on;
    use super::super::oracle::copied_with_rollback_states;
    use super::*;
    use crate::attention::guarded::Guarded;
    use crate::attention::testing::{Random, cases};
    use crate::simd::isa::Isa;

    /// A problem with its memory.
    struct Case {
        sizes: Convolution,
        x: Vec<f32>,
        kernel: Vec<f32>,
        states: Vec<f32>,
        sources: Vec<i32>,
    }

    /// The output, and the cache afterwards.
    #[derive(Debug, PartialEq)]
    struct ConvolutionResult {
        out: Vec<f32>,
        states: Vec<f32>,
    }

    const ONE: Batch =
        Batch { sources: std::ptr::null(), tokens: 1, seqs: 1, first: 0, moved: 1, cells: 1, planes: 1 };

    const NONE: Convolution = Convolution {
        x: std::ptr::null(),
        kernel: std::ptr::null(),
        states: std::ptr::null_mut(),
        out: std::ptr::null_mut(),
        batch: ONE,
        x_token: 0,
        x_seq: 0,
        channels: 16,
        taps: 4,
    };

    fn sizes(random: &mut Random) -> Convolution {
        let (seqs, first) = (random.one_of(&[1, 2, 3, 5]), random.one_of(&[0, 2]));
        let moved = seqs + random.one_of(&[0, 0, 3]);
        let batch = Batch {
            tokens: random.one_of(&[1, 1, 2, 3, 4, 9]),
            seqs,
            first,
            moved,
            cells: first + moved + random.one_of(&[0, 1]),
            planes: random.one_of(&[1, 1, 2, 4]),
            ..ONE
        };
        Convolution {
            batch,
            channels: random.one_of(&[16, 48, 64, 80, 192]),
            taps: random.one_of(&[2, 4, 4, 8]),
            ..NONE
        }
    }

    impl Case {
        fn new(sizes: Convolution, random: &mut Random) -> Case {
            let (batch, channels) = (sizes.batch, sizes.channels as usize);
            let cells = (batch.cells * batch.planes) as usize;
            let sources = (0..batch.moved).map(|_| random.below(cells) as i32).collect();
            let mut normal = |count: usize| (0..count).map(|_| random.normal()).collect::<Vec<f32>>();
            Case {
                x: normal((batch.seqs * batch.tokens) as usize * channels),
                kernel: normal(channels * sizes.taps as usize),
                states: normal(cells * channels * sizes.kept()),
                sources,
                sizes,
            }
        }

        fn run(&self, isa: Isa, threads: usize) -> ConvolutionResult {
            let (found, is_computed) = self.try_run(isa, threads);
            assert!(is_computed);
            found
        }

        fn try_run(&self, isa: Isa, threads: usize) -> (ConvolutionResult, bool) {
            let sizes = self.sizes;
            let mut out = Guarded::new(&vec![f32::NAN; self.x.len()]);
            let mut states = Guarded::new(&self.states);
            let [x, kernel] = [&self.x, &self.kernel].map(|all| Guarded::new(all));
            let sources = Guarded::new(&self.sources);
            let row = 4 * u64::from(sizes.channels);
            let has_none = sources.is_empty();
            let problem = Convolution {
                x: x.as_ptr().cast(),
                kernel: kernel.as_ptr(),
                states: states.as_mut_ptr(),
                out: out.as_mut_ptr(),
                batch: Batch {
                    sources: if has_none { std::ptr::null() } else { sources.as_ptr() },
                    ..sizes.batch
                },
                x_token: row,
                x_seq: row * u64::from(sizes.batch.tokens),
                ..sizes
            };
            // SAFETY: the memory is as long as the sizes say.
            let compute = |thread| unsafe { compute_on(isa, &problem, Share { thread, threads }) };
            // One after the other: threads share no channel.
            let is_computed = (0..threads).all(compute);
            (ConvolutionResult { out: out.to_vec(), states: states.to_vec() }, is_computed)
        }

        /// Returns the inputs of a sequence and channel, with those that its source has before them.
        fn inputs(&self, seq: usize, channel: usize) -> Vec<f32> {
            let (sizes, channels) = (self.sizes, self.sizes.channels as usize);
            let source = self.sources[seq] as usize * channels + channel;
            let before = &self.states[source * sizes.kept()..][..sizes.kept()];
            let tokens = sizes.batch.tokens as usize;
            let row = |token: usize| (seq * tokens + token) * channels + channel;
            before.iter().copied().chain((0..tokens).map(|token| self.x[row(token)])).collect()
        }

        /// Returns the cache afterwards.
        fn expected_states(&self) -> Vec<f32> {
            let (sizes, batch, kept) = (self.sizes, self.sizes.batch, self.sizes.kept());
            let (channels, tokens) = (sizes.channels as usize, batch.tokens as usize);
            let (mut states, cell) = (self.states.clone(), channels * kept);
            for (to, source) in copied_with_rollback_states(&batch, &self.sources) {
                states[to * cell..][..cell].copy_from_slice(&self.states[source * cell..][..cell]);
            }
            for (seq, channel) in self.all_channels() {
                let inputs = self.inputs(seq, channel);
                for plane in 0..batch.planes as usize {
                    let to = (batch.cell(seq, plane) * channels + channel) * kept;
                    let from = &inputs[tokens.saturating_sub(plane)..][..kept];
                    states[to..][..kept].copy_from_slice(from);
                }
            }
            states
        }

        fn all_channels(&self) -> impl Iterator<Item = (usize, usize)> {
            let (seqs, channels) = (self.sizes.batch.seqs as usize, self.sizes.channels as usize);
            (0..seqs * channels).map(move |i| (i / channels, i % channels))
        }

        /// Compares the output with a convolution in f64.
        fn compare_output(&self, found: &[f32], what: &str) {
            let (taps, channels) = (self.sizes.taps as usize, self.sizes.channels as usize);
            let tokens = self.sizes.batch.tokens as usize;
            for (seq, channel) in self.all_channels() {
                let (inputs, kernel) = (self.inputs(seq, channel), &self.kernel[channel * taps..][..taps]);
                for (token, inputs) in inputs.windows(taps).enumerate() {
                    let products = inputs.iter().zip(kernel).map(|(x, w)| f64::from(*x) * f64::from(*w));
                    let (sum, size) =
                        products.fold((0.0f64, 0.0f64), |(sum, size), x| (sum + x, size + x.abs()));
                    let expected = sum / (1.0 + (-sum).exp());
                    let found = f64::from(found[(seq * tokens + token) * channels + channel]);
                    let is_close = (found - expected).abs() <= 2e-6 * (size + expected.abs());
                    assert!(is_close, "{what}, {seq} {token} {channel}: {found} is not {expected}");
                }
            }
        }
    }

    #[test]
    fn random_convolutions_are_right_on_each_instruction_set() {
        for seed in 0..cases(100) {
            let mut random = Random(seed);
            let case = Case::new(sizes(&mut random), &mut random);
            for isa in Isa::here() {
                let found = case.run(isa, 1 + seed as usize % 4);
                let what = format!("seed {seed}, {isa:?}, {:?} {:?}", case.sizes, case.sources);
                assert_eq!(found.states, case.expected_states(), "{what}");
                case.compare_output(&found.out, &what);
            }
        }
    }

    #[test]
    fn a_prompt_has_the_same_bits_token_by_token() {
        for seed in 0..20 {
            let mut random = Random(1000 + seed);
            let drawn = sizes(&mut random);
            let one = |tokens| Batch { tokens, cells: 3, ..ONE };
            let case = Case::new(Convolution { batch: one(drawn.batch.tokens), ..drawn }, &mut random);
            let channels = case.sizes.channels as usize;
            for isa in Isa::here() {
                let (mut states, mut out, mut sources) =
                    (case.states.clone(), Vec::new(), case.sources.clone());
                for x in case.x.chunks_exact(channels) {
                    let (x, kernel) = (x.to_vec(), case.kernel.clone());
                    let sizes = Convolution { batch: one(1), ..case.sizes };
                    let found = Case { sizes, x, kernel, states, sources }.run(isa, 1);
                    (states, sources) = (found.states, Vec::new());
                    out.extend(found.out);
                }
                assert_eq!(ConvolutionResult { out, states }, case.run(isa, 2), "{isa:?}, seed {seed}");
            }
        }
    }

    #[test]
    fn a_source_that_is_not_a_cell_is_refused_before_anything_is_written() {
        let mut random = Random(4);
        for source in [-1, 1] {
            let case = Case { sources: vec![source], ..Case::new(NONE, &mut random) };
            let (found, is_computed) = case.try_run(Isa::chosen(), 2);
            assert!(!is_computed && found.states == case.states && found.out.iter().all(|one| one.is_nan()));
        }
    }

    #[test]
    fn sizes_that_do_not_fit_are_not_supported() {
        assert!(NONE.is_supported());
        let others = [
            Convolution { channels: 0, ..NONE },
            Convolution { channels: 24, ..NONE },
            Convolution { taps: 1, ..NONE },
            Convolution { taps: 9, ..NONE },
            Convolution { batch: Batch { seqs: 2, ..ONE }, ..NONE },
        ];
        for other in others {
            assert!(!other.is_supported(), "{other:?}");
        }
    }
}
