//! The kernel against a reference in f64.

use super::guarded::Guarded;
use super::kv_type::{Floating, KvType};
use super::problem::{Cells, Problem, Types};
use super::testing::{Case, Expected, Random, cases, problem, problem_of};
use super::{Items, Memory, Share, merge, work_size};
use crate::simd::isa::Isa;

/// State shared by threads.
struct Shared<'a> {
    problem: &'a Problem,
    types: Types,
    work: *mut u8,
    threads: usize,
}

// SAFETY: each thread writes to its own part of the memory, or one of them does after the other, which is what these
// tests check.
unsafe impl Sync for Shared<'_> {}

impl Shared<'_> {
    /// Runs `work` on all threads at once.
    fn run(&self, work: impl Fn(&Problem, Share, &Memory) + Sync) {
        std::thread::scope(|scope| {
            for thread in 0..self.threads {
                let work = &work;
                scope.spawn(move || {
                    let share = Share { thread, threads: self.threads };
                    // SAFETY: the memory has `work_size` bytes.
                    work(self.problem, share, &unsafe { Memory::new(self.problem, share, self.work) });
                });
            }
        });
    }
}

/// Computes the result with `threads` threads.
fn computed(case: &Case, isa: Isa, threads: usize) -> Vec<f32> {
    let mut out = Guarded::new(&vec![f32::NAN; case.out_length()]);
    let problem = case.problem(&mut out);
    let mut work = Guarded::new(&vec![0xffu8; work_size(&problem, threads)]);
    let types = problem.types().expect("a case has types and shapes that fit");
    let shared = Shared { problem: &problem, types, work: work.as_mut_ptr(), threads };
    shared.run(|problem, share, memory| isa.run(Items { problem, types: shared.types, share, memory }));
    // SAFETY: the memory is as above; all threads have ended.
    shared.run(|problem, share, memory| unsafe { merge(problem, share, memory) });
    out.to_vec()
}

fn sizes(random: &mut Random) -> Problem {
    let kinds: Vec<KvType> = KvType::all().collect();
    let mut types = || (random.one_of(&kinds), random.one_of(&kinds));
    let types = [types(), types()];
    let size = |kinds: [KvType; 2], random: &mut Random| {
        let is_whole = |size: &u32| kinds.iter().all(|kind| kind.row_bytes(*size as usize).is_some());
        let sizes = [40, 64, 72, 80, 96, 112, 128, 192, 256, 576];
        let whole: Vec<u32> = sizes.into_iter().filter(is_whole).collect();
        random.one_of(&whole)
    };
    let [cache, residual] = types;
    let kv_heads = random.one_of(&[1, 2, 3]);
    let kv_streams = random.one_of(&[1, 1, 2]);
    let streams = kv_streams * random.one_of(&[1, 1, 2]);
    let counts = [random.one_of(&[1, 3, 31, 64, 65, 100, 300, 777]), random.one_of(&[0, 0, 1, 64, 130])];
    let cells = [0, 1].map(|at| Cells {
        key_type: types[at].0.number(),
        value_type: types[at].1.number(),
        count: counts[at],
        mask_streams: random.one_of(&[1, streams]),
        ..Cells::NONE
    });
    let sizes = Problem {
        cells,
        key_size: size([cache.0, residual.0], random),
        value_size: size([cache.1, residual.1], random),
        tokens: random.one_of(&[1, 1, 2, 3, 16, 33, 70]),
        heads: kv_heads * random.one_of(&[1, 2, 4, 5, 7]),
        kv_heads,
        streams,
        kv_streams,
        max_bias: random.one_of(&[0.0, 0.0, 8.0]),
        softcap: random.one_of(&[0.0, 0.0, 30.0]),
        ..problem()
    };
    Problem { scale: 1.0 / (sizes.key_size as f32).sqrt(), ..sizes }
}

fn close(found: &[f32], expected: &[Expected], what: &str) {
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let bound = 1e-4 * expected.value.abs().max(1.0) + expected.slack;
        let distance = (f64::from(*found) - expected.value).abs();
        assert!(distance <= bound, "{what}, {at}: {found} is not {expected:?}");
    }
}

/// Number of tests that share the random problems, so that they run in parallel.
const PARTS: u64 = 4;

/// Solves one of `PARTS` ranges of problems on each instruction set. A problem's number is its seed.
fn solve_random_problems(part: u64) {
    let problems = cases(200);
    for seed in problems * part / PARTS..problems * (part + 1) / PARTS {
        let mut random = Random(seed);
        let case = Case::new(sizes(&mut random), &mut random);
        let expected = case.reference();
        for isa in Isa::here() {
            let found = computed(&case, isa, 1 + seed as usize % 8);
            close(&found, &expected, &format!("seed {seed}, {isa:?}, {:?}", case.sizes));
        }
    }
}

#[test]
fn random_problems_are_solved_on_each_instruction_set_1_of_4() {
    solve_random_problems(0);
}

#[test]
fn random_problems_are_solved_on_each_instruction_set_2_of_4() {
    solve_random_problems(1);
}

#[test]
fn random_problems_are_solved_on_each_instruction_set_3_of_4() {
    solve_random_problems(2);
}

#[test]
fn random_problems_are_solved_on_each_instruction_set_4_of_4() {
    solve_random_problems(3);
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    for seed in 0..20 {
        let mut random = Random(1000 + seed);
        let case = Case::new(sizes(&mut random), &mut random);
        let one = computed(&case, Isa::chosen(), 1);
        for threads in 2..=8 {
            let bits = |all: Vec<f32>| all.into_iter().map(f32::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(computed(&case, Isa::chosen(), threads)), bits(one.clone()), "{seed}");
        }
    }
}

/// Returns a case whose first token may not attend to the cells `hidden`, while the others may.
fn hiding(kinds: [KvType; 2], tokens: u32, hidden: &[usize], random: &mut Random) -> Case {
    let mut sizes = Problem { tokens, key_size: 128, value_size: 128, ..problem() };
    let cells = &mut sizes.cells[0];
    (cells.key_type, cells.value_type) = (kinds[0].number(), kinds[1].number());
    let mut mask = vec![0; (tokens * cells.count) as usize];
    hidden.iter().for_each(|cell| mask[*cell] = crate::simd::half::NEGATIVE_INFINITY);
    let mut case = Case::new(sizes, random);
    case.sinks = None;
    (case.cells[0].mask, case.cells[0].blocks) = (Some(Guarded::new(&mask)), None);
    case
}

/// Another tenant's cell is such a cell. One is in a full tile, one in a partial one; few rows take another code path
/// than many.
#[test]
fn hidden_cells_of_any_content_change_no_bit() {
    const HIDDEN: [usize; 2] = [5, 70];
    /// NaN, and a large number, of each type.
    const NO_NUMBER: u8 = 0xff;
    const LARGE: u8 = 0x7b;
    let mut random = Random(7);
    let exact = KvType::Floating(Floating::F32);
    let kinds: Vec<[KvType; 2]> = KvType::all().flat_map(|kind| [[kind, kind], [exact, kind]]).collect();
    for (kinds, tokens) in kinds.into_iter().flat_map(|kinds| [(kinds, 2), (kinds, 16)]) {
        for byte in [NO_NUMBER, LARGE] {
            let mut case = hiding(kinds, tokens, &HIDDEN, &mut random);
            let clean: Vec<Vec<f32>> = Isa::here().map(|isa| computed(&case, isa, 2)).collect();
            let [k, v] = kinds.map(|kind| kind.row_bytes(128).unwrap() * case.sizes.kv_heads as usize);
            for cell in HIDDEN {
                case.cells[0].k[cell * k..][..k].fill(byte);
                case.cells[0].v[cell * v..][..v].fill(byte);
            }
            for (isa, clean) in Isa::here().zip(clean) {
                let found = computed(&case, isa, 2);
                let (of_first, of_others) = found.split_at(found.len() / tokens as usize);
                let what = format!("{isa:?} {kinds:?}, {tokens} tokens");
                assert_eq!(of_first, &clean[..of_first.len()], "{what}: the first one does not see it");
                let see_it = byte == LARGE || of_others.iter().all(|one| one.is_nan());
                assert!(see_it, "{what}: the others do");
            }
        }
    }
}

#[test]
fn rows_that_attend_to_no_cell_are_zero() {
    let mut random = Random(8);
    for cells in [0, 100] {
        let mut case = Case::new(problem_of(cells), &mut random);
        case.cells[0].mask = Some(Guarded::new(&vec![crate::simd::half::NEGATIVE_INFINITY; cells as usize]));
        for isa in Isa::here() {
            let found = computed(&case, isa, 3);
            assert!(found.iter().all(|one| *one == 0.0), "{isa:?}, {cells} cells: {found:?}");
        }
    }
}
