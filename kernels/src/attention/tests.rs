//! The kernel against a reference in double precision.

use super::guarded::Guarded;
use super::isa::Isa;
use super::kv_type::KvType;
use super::problem::{Cells, Problem};
use super::testing::{Case, Expected, Random, problem, problem_of};
use super::{Items, Memory, Share, merge, work_bytes};

/// The result with `threads` threads, one after the other.
fn computed(case: &Case, isa: Isa, threads: usize) -> Vec<f32> {
    let mut out = Guarded::new(&vec![f32::NAN; case.out_length()]);
    let problem = case.problem(&mut out);
    let mut work = Guarded::new(&vec![0xffu8; work_bytes(&problem, threads)]);
    let types = problem.types().expect("a case has types and shapes that fit");
    let shares = || (0..threads).map(|thread| Share { thread, threads });
    for share in shares() {
        // SAFETY: the memory is as long as it has to be.
        let memory = unsafe { Memory::new(&problem, share, work.as_mut_ptr()) };
        isa.run(Items { problem: &problem, types, share, memory: &memory });
    }
    for share in shares() {
        // SAFETY: as above; all threads have ended.
        unsafe { merge(&problem, share, &Memory::new(&problem, share, work.as_mut_ptr())) };
    }
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
    let [cache, copies] = types;
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
        key_size: size([cache.0, copies.0], random),
        value_size: size([cache.1, copies.1], random),
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

/// How many random problems; `ESPALIER_CASES` names another number.
fn cases() -> u64 {
    const CASES: u64 = 500;
    std::env::var("ESPALIER_CASES")
        .map_or(CASES, |number| number.parse().expect("ESPALIER_CASES is a number"))
}

#[test]
fn random_problems_are_solved_on_each_instruction_set() {
    for seed in 0..cases() {
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

/// Another tenant's cell is such a cell.
#[test]
fn whatever_a_hidden_cell_has_it_changes_no_bit() {
    const HIDDEN: usize = 70;
    /// No number, and a large one, of each type.
    const NO_NUMBER: u8 = 0xff;
    const LARGE: u8 = 0x7b;
    let mut random = Random(7);
    for (kind, byte) in KvType::all().flat_map(|kind| [(kind, NO_NUMBER), (kind, LARGE)]) {
        let mut sizes = Problem { tokens: 2, key_size: 128, value_size: 128, ..problem() };
        let cells = &mut sizes.cells[0];
        (cells.key_type, cells.value_type) = (kind.number(), kind.number());
        let mut mask = vec![0; 2 * cells.count as usize];
        mask[HIDDEN] = super::half::NEGATIVE_INFINITY;
        let mut case = Case::new(sizes, &mut random);
        case.sinks = None;
        (case.cells[0].mask, case.cells[0].tiles) = (Some(Guarded::new(&mask)), None);
        let clean: Vec<Vec<f32>> = Isa::here().map(|isa| computed(&case, isa, 2)).collect();
        let row = kind.row_bytes(sizes.key_size as usize).unwrap() * sizes.kv_heads as usize;
        case.cells[0].k[HIDDEN * row..][..row].fill(byte);
        case.cells[0].v[HIDDEN * row..][..row].fill(byte);
        for (isa, clean) in Isa::here().zip(clean) {
            let found = computed(&case, isa, 2);
            let (of_first, of_second) = found.split_at(found.len() / 2);
            assert_eq!(
                of_first,
                &clean[..of_first.len()],
                "{isa:?} {kind:?}: the first token does not see it"
            );
            let sees_it = byte == LARGE || of_second.iter().all(|one| one.is_nan());
            assert!(sees_it, "{isa:?} {kind:?}: the second one does");
        }
    }
}

#[test]
fn where_nothing_is_seen_the_result_is_zero() {
    let mut random = Random(8);
    for cells in [0, 100] {
        let mut case = Case::new(problem_of(cells), &mut random);
        case.cells[0].mask = Some(Guarded::new(&vec![super::half::NEGATIVE_INFINITY; cells as usize]));
        for isa in Isa::here() {
            let found = computed(&case, isa, 3);
            assert!(found.iter().all(|one| *one == 0.0), "{isa:?}, {cells} cells: {found:?}");
        }
    }
}
