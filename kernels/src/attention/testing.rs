//! Problems for tests: their memory, and what they should give.

use std::ffi::c_void;

use super::division::padded;
use super::guarded::Guarded;
use super::half;
use super::isa::{Isa, Work};
use super::kv_type::KvType;
use super::problem::{Problem, TILE};
use super::simd::Simd;
use super::tile::Tile;

/// A small problem, for its sizes only: its pointers are null.
pub fn problem() -> Problem {
    let null = std::ptr::null();
    Problem {
        q: null,
        k: null,
        v: null,
        mask: null,
        sinks: std::ptr::null(),
        tiles: std::ptr::null(),
        out: std::ptr::null_mut(),
        q_token: 0,
        q_head: 0,
        q_stream: 0,
        k_cell: 0,
        k_head: 0,
        k_stream: 0,
        v_cell: 0,
        v_head: 0,
        v_stream: 0,
        mask_token: 0,
        mask_stream: 0,
        tiles_token: 0,
        key_type: KvType::F16.number(),
        value_type: KvType::F16.number(),
        key_size: 64,
        value_size: 64,
        tokens: 1,
        heads: 4,
        kv_heads: 2,
        streams: 1,
        kv_streams: 1,
        cells: 100,
        mask_streams: 1,
        scale: 0.125,
        max_bias: 0.0,
        softcap: 0.0,
    }
}

/// Numbers that are the same in every run: SplitMix64.
pub struct Random(pub u64);

impl Random {
    /// Any number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A whole number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// One of them.
    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Normal: Box and Muller.
    pub fn gaussian(&mut self) -> f32 {
        let mut uniform = || (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        let (radius, angle) = (1.0 - uniform(), uniform());
        ((-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()) as f32
    }

    /// Nearly normal, around 0.
    pub fn normal(&mut self) -> f32 {
        let sum: f64 = (0..12).map(|_| self.next() as f64 / u64::MAX as f64).sum();
        (sum - 6.0) as f32
    }
}

/// A problem with its memory.
pub struct Case {
    /// Sizes; the pointers are put in by [`Case::problem`].
    pub sizes: Problem,
    pub q: Guarded<f32>,
    pub k: Guarded<u8>,
    pub v: Guarded<u8>,
    pub mask: Option<Guarded<u16>>,
    pub sinks: Option<Guarded<f32>>,
    pub tiles: Option<Guarded<u32>>,
}

impl Case {
    /// Random contents for `sizes`: a mask in half the cases, which hides some runs of cells and some cells.
    pub fn new(sizes: Problem, random: &mut Random) -> Case {
        let (tokens, cells) = (sizes.tokens as usize, sizes.cells as usize);
        let rows = tokens * (sizes.heads * sizes.streams) as usize;
        let q: Vec<f32> = (0..rows * sizes.key_size as usize).map(|_| random.normal()).collect();
        let kv_rows = cells * (sizes.kv_heads * sizes.kv_streams) as usize;
        let kind = |number| KvType::from_number(number).unwrap();
        let k = encoded(kind(sizes.key_type), kv_rows * sizes.key_size as usize, random);
        let v = encoded(kind(sizes.value_type), kv_rows * sizes.value_size as usize, random);
        let words = cells.div_ceil(32 * TILE);
        let tiles = (random.below(2) == 0)
            .then(|| (0..tokens * words).map(|_| random.next() as u32).collect::<Vec<u32>>());
        let mask = (random.below(2) == 0).then(|| {
            let rows = tokens * sizes.mask_streams as usize;
            (0..rows).flat_map(|_| mask_row(cells, random)).collect::<Vec<u16>>()
        });
        let sinks =
            (random.below(3) == 0).then(|| (0..sizes.heads).map(|_| random.normal()).collect::<Vec<f32>>());
        Case {
            sizes,
            q: Guarded::new(&q),
            k: Guarded::new(&k),
            v: Guarded::new(&v),
            mask: mask.map(|all| Guarded::new(&all)),
            sinks: sinks.map(|all| Guarded::new(&all)),
            tiles: tiles.map(|all| Guarded::new(&all)),
        }
    }

    /// The problem, whose result goes to `out`.
    pub fn problem(&self, out: &mut [f32]) -> Problem {
        let sizes = self.sizes;
        let of = |number: i32, size: u32| {
            KvType::from_number(number).unwrap().row_bytes(size as usize).unwrap() as u64
        };
        let (key, value) = (of(sizes.key_type, sizes.key_size), of(sizes.value_type, sizes.value_size));
        let (cells, heads, tokens) =
            (u64::from(sizes.cells), u64::from(sizes.kv_heads), u64::from(sizes.tokens));
        let q_row = 4 * u64::from(sizes.key_size);
        fn of_option<T: Copy>(all: Option<&Guarded<T>>) -> *const T {
            all.map_or(std::ptr::null(), |all| all.as_ptr())
        }
        Problem {
            q: self.q.as_ptr().cast::<c_void>(),
            k: self.k.as_ptr().cast::<c_void>(),
            v: self.v.as_ptr().cast::<c_void>(),
            mask: of_option(self.mask.as_ref()).cast(),
            sinks: of_option(self.sinks.as_ref()),
            tiles: of_option(self.tiles.as_ref()),
            out: out.as_mut_ptr(),
            q_token: q_row,
            q_head: q_row * tokens,
            q_stream: q_row * tokens * u64::from(sizes.heads),
            k_cell: key * heads,
            k_head: key,
            k_stream: key * heads * cells,
            v_cell: value * heads,
            v_head: value,
            v_stream: value * heads * cells,
            mask_token: 2 * cells,
            mask_stream: 2 * cells * tokens,
            tiles_token: 4 * cells.div_ceil(32 * TILE as u64),
            ..sizes
        }
    }

    /// Numbers in the result.
    pub fn out_length(&self) -> usize {
        super::division::out_rows(&self.sizes) * self.sizes.value_size as usize
    }

    /// The result, in double precision.
    pub fn reference(&self) -> Vec<f64> {
        let sizes = self.sizes;
        let of = |number: i32| KvType::from_number(number).unwrap();
        let k = decoded(of(sizes.key_type), &self.k, sizes.key_size as usize);
        let v = decoded(of(sizes.value_type), &self.v, sizes.value_size as usize);
        let mut out = Vec::new();
        for stream in 0..sizes.streams as usize {
            for token in 0..sizes.tokens as usize {
                for head in 0..sizes.heads as usize {
                    out.extend(self.reference_row(&k, &v, stream, token, head));
                }
            }
        }
        out
    }

    fn reference_row(&self, k: &[f32], v: &[f32], stream: usize, token: usize, head: usize) -> Vec<f64> {
        let sizes = self.sizes;
        let (key, value, cells) = (sizes.key_size as usize, sizes.value_size as usize, sizes.cells as usize);
        let at = (stream * sizes.heads as usize + head) * sizes.tokens as usize + token;
        let q = &self.q[at * key..][..key];
        let kv_stream = stream / (sizes.streams / sizes.kv_streams) as usize;
        let kv_head = head / sizes.group();
        let row = |cell: usize| (kv_stream * cells + cell) * sizes.kv_heads as usize + kv_head;
        let mut scores = Vec::new();
        for cell in (0..cells).filter(|cell| self.sees(stream, token, *cell)) {
            let dot: f64 =
                q.iter().zip(&k[row(cell) * key..]).map(|(q, k)| f64::from(*q) * f64::from(*k)).sum();
            let mut score = dot * f64::from(sizes.scale);
            if sizes.softcap != 0.0 {
                let cap = f64::from(sizes.softcap);
                score = cap * (score / cap).tanh();
            }
            let mask = self.mask_of(stream, token, cell) * sizes.slope(head);
            scores.push((cell, score + f64::from(mask)));
        }
        let sink = self.sinks.as_ref().map_or(f64::NEG_INFINITY, |sinks| f64::from(sinks[head]));
        let largest = scores.iter().map(|(_, score)| *score).fold(sink, f64::max);
        let mut sum = if sink == f64::NEG_INFINITY { 0.0 } else { (sink - largest).exp() };
        let mut out = vec![0.0; value];
        for (cell, score) in scores {
            let weight = (score - largest).exp();
            sum += weight;
            let v = &v[row(cell) * value..];
            out.iter_mut().zip(v).for_each(|(out, v)| *out += weight * f64::from(*v));
        }
        out.iter().map(|out| if sum == 0.0 { 0.0 } else { out / sum }).collect()
    }

    fn mask_of(&self, stream: usize, token: usize, cell: usize) -> f32 {
        let Some(mask) = &self.mask else { return 0.0 };
        let stream = stream % self.sizes.mask_streams as usize;
        let row = stream * self.sizes.tokens as usize + token;
        half::to_f32(mask[row * self.sizes.cells as usize + cell])
    }

    fn sees(&self, stream: usize, token: usize, cell: usize) -> bool {
        let words = (self.sizes.cells as usize).div_ceil(32 * TILE);
        let tile = cell / TILE;
        let has =
            self.tiles.as_ref().is_none_or(|tiles| tiles[token * words + tile / 32] >> (tile % 32) & 1 == 1);
        has && self.mask_of(stream, token, cell) != f32::NEG_INFINITY
    }
}

/// Random values of a type, in a moderate range.
pub fn encoded(kind: KvType, values: usize, random: &mut Random) -> Vec<u8> {
    let (block, bytes) = kind.block();
    let mut all = Vec::with_capacity(values / block * bytes);
    for _ in 0..values / block {
        match kind {
            KvType::F32 => all.extend(random.normal().to_le_bytes()),
            KvType::Bf16 => all.extend(((random.normal().to_bits() >> 16) as u16).to_le_bytes()),
            KvType::F16 => all.extend(small_half(random, 15).to_le_bytes()),
            _ => {
                let exponent = if matches!(kind, KvType::Dense(_)) { 14 } else { 11 };
                all.extend(small_half(random, exponent).to_le_bytes());
                let has_least = matches!(kind, KvType::Q4_1 | KvType::Q5_1);
                if has_least {
                    all.extend(small_half(random, 14).to_le_bytes());
                }
                let rest = bytes - if has_least { 4 } else { 2 };
                all.extend((0..rest).map(|_| random.next() as u8));
            }
        }
    }
    all
}

/// A number in half precision, below two to the power of `exponent - 14`.
fn small_half(random: &mut Random, exponent: usize) -> u16 {
    let sign = (random.next() & 0x8000) as u16;
    sign | ((exponent - random.below(4)) << 10) as u16 | (random.next() & 1023) as u16
}

fn mask_row(cells: usize, random: &mut Random) -> Vec<u16> {
    let (from, to) = (random.below(cells + 1), random.below(cells + 1));
    let hidden = from.min(to)..from.max(to);
    let value = |cell: usize, random: &mut Random| match random.below(8) {
        _ if hidden.contains(&cell) => half::NEGATIVE_INFINITY,
        0 => half::NEGATIVE_INFINITY,
        1 => small_half(random, 15) | 0x8000,
        _ => 0,
    };
    (0..cells).map(|cell| value(cell, random)).collect()
}

/// Rows of `size` values.
pub fn decoded(kind: KvType, bytes: &[u8], size: usize) -> Vec<f32> {
    decoded_on(Isa::Scalar, kind, bytes, size)
}

/// The same on an instruction set that this processor has.
pub fn decoded_on(isa: Isa, kind: KvType, bytes: &[u8], size: usize) -> Vec<f32> {
    isa.run(Decode { kind, bytes, size })
}

struct Decode<'a> {
    kind: KvType,
    bytes: &'a [u8],
    size: usize,
}

impl Work for Decode<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Vec<f32> {
        let Decode { kind, bytes, size } = self;
        let stride = kind.row_bytes(size).unwrap();
        let cells = bytes.len() / stride;
        let padded = padded(size as u32);
        let mut to = vec![f32::NAN; cells * padded];
        let tile = Tile { first: bytes.as_ptr(), stride, cells, size, kind, ahead: 0 };
        // SAFETY: there is room for each padded row.
        unsafe { tile.decode::<S>(to.as_mut_ptr()) };
        assert!(to.chunks_exact(padded).all(|row| row[size..].iter().all(|one| *one == 0.0)));
        to.chunks_exact(padded).flat_map(|row| &row[..size]).copied().collect()
    }
}
