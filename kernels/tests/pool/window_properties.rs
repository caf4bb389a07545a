//! No token reads a cell outside its window's content, whatever happens in between.
//!
//! A model of a server runs on the pool: it records what the KV in every cell of each group was computed from, and
//! which cells each sequence reads. Before a token is computed, every cell that it attends to has to hold the KV of its
//! own prefix: all of them in the layers without a window, those of the window in the others.

use std::collections::{BTreeMap, BTreeSet};

use espalier_kernels::pool::block::BlockId;
use espalier_kernels::pool::extra_keys::RequestKeys;
use espalier_kernels::pool::groups::{Group, Groups};
use espalier_kernels::pool::pool::{Next, Pool, PoolError, PoolOptions};
use proptest::prelude::*;

const BLOCK_SIZE: usize = 4;
const BLOCK_COUNT: u32 = 14;
const SEQUENCES: i32 = 3;
/// Blocks for one batch.
const BATCH_BLOCKS: u32 = 3;

#[derive(Clone, Debug)]
enum Step {
    /// A prompt of blocks that are much alike, and a tail.
    Begin {
        sequence: i32,
        blocks: Vec<i32>,
        tail: usize,
    },
    Match {
        sequence: i32,
    },
    /// Continues the sequence in one batch, with tokens like these.
    Compute {
        sequence: i32,
        count: usize,
        token: i32,
    },
    /// Between two batches: caches what was computed, and slides.
    Rest {
        sequence: i32,
    },
    /// Removes the last tokens, as a server does with rejected drafts: at most those since it was at rest.
    Reject {
        sequence: i32,
        count: usize,
    },
    /// Another sequence, which holds nothing, continues where this one is: a further choice.
    Share {
        from: i32,
        to: i32,
    },
    /// Ends the request and removes all. `is_cached`: what was computed is cached before.
    Finish {
        sequence: i32,
        is_cached: bool,
    },
    Clear,
}

fn any_step() -> impl Strategy<Value = Step> {
    let sequence = || 0..SEQUENCES;
    prop_oneof![
        6 => (sequence(), prop::collection::vec(0..2i32, 0..7), 0..BLOCK_SIZE)
            .prop_map(|(sequence, blocks, tail)| Step::Begin { sequence, blocks, tail }),
        6 => sequence().prop_map(|sequence| Step::Match { sequence }),
        12 => (sequence(), 1..=BATCH_BLOCKS as usize * BLOCK_SIZE, 0..2i32)
            .prop_map(|(sequence, count, token)| Step::Compute { sequence, count, token }),
        8 => sequence().prop_map(|sequence| Step::Rest { sequence }),
        2 => (sequence(), 1..8usize).prop_map(|(sequence, count)| Step::Reject { sequence, count }),
        1 => (sequence(), sequence()).prop_map(|(from, to)| Step::Share { from, to }),
        4 => (sequence(), any::<bool>())
            .prop_map(|(sequence, is_cached)| Step::Finish { sequence, is_cached }),
        // Rarely cleared, so that much is cached.
        1 => prop::bool::weighted(0.2)
            .prop_map(|clear| if clear { Step::Clear } else { Step::Rest { sequence: 0 } }),
    ]
}

#[derive(Clone, Default)]
struct Sequence {
    has_request: bool,
    waits: bool,
    /// Prompt and output.
    text: Vec<i32>,
    prompt_length: usize,
    computed: usize,
    /// Number of tokens when it was at rest last.
    rest: usize,
    /// The cell that it reads at each position, in each group.
    cells: Groups<BTreeMap<usize, u32>>,
}

struct Model {
    pool: Pool,
    options: PoolOptions,
    sequences: Vec<Sequence>,
    /// The tokens up to the one whose KV is in each cell.
    origins: Groups<BTreeMap<u32, Vec<i32>>>,
}

impl Model {
    fn new(window: u32, spare_blocks: u32) -> Model {
        let batch_tokens = BATCH_BLOCKS * BLOCK_SIZE as u32;
        let window_block_count =
            PoolOptions::blocks_of_windows(window, BLOCK_SIZE as u32, SEQUENCES as u32, batch_tokens);
        let options = PoolOptions {
            block_count: BLOCK_COUNT,
            block_size: BLOCK_SIZE as u32,
            sequence_count: SEQUENCES as u32,
            parts: PoolOptions::CELLS | PoolOptions::WINDOW,
            snapshot_interval: 2 * BLOCK_SIZE as u32,
            window,
            window_block_count: window_block_count as u32 + spare_blocks,
            batch_tokens,
            ..PoolOptions::default()
        };
        Model {
            pool: Pool::new(options).expect("the options are in range"),
            options,
            sequences: vec![Sequence::default(); SEQUENCES as usize],
            origins: Groups::default(),
        }
    }

    fn sequence(&mut self, sequence: i32) -> &mut Sequence {
        &mut self.sequences[sequence as usize]
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Begin { sequence, blocks, tail } => self.begin(*sequence, blocks, *tail),
            Step::Match { sequence } => self.match_prefix(*sequence),
            Step::Compute { sequence, count, token } => self.compute(*sequence, *count, *token),
            Step::Rest { sequence } => self.rest(*sequence),
            Step::Reject { sequence, count } => self.reject(*sequence, *count),
            Step::Share { from, to } => self.share(*from, *to),
            Step::Finish { sequence, is_cached } => self.finish(*sequence, *is_cached),
            Step::Clear => {
                self.pool.clear();
                self.sequences.fill(Sequence::default());
            }
        }
        self.check();
    }

    fn begin(&mut self, sequence: i32, blocks: &[i32], tail: usize) {
        if self.sequence(sequence).has_request || self.sequence(sequence).computed > 0 {
            return;
        }
        let mut text: Vec<i32> = blocks.iter().flat_map(|token| [*token; BLOCK_SIZE]).collect();
        text.extend(vec![0; tail]);
        assert_eq!(self.pool.begin(sequence, &text, RequestKeys::default()), Ok(()));
        let prompt_length = text.len();
        *self.sequence(sequence) = Sequence { has_request: true, text, prompt_length, ..Sequence::default() };
    }

    /// The matched blocks hold the KV of the very prompt that they are added to, and they are all that it reads.
    fn match_prefix(&mut self, sequence: i32) {
        let known = self.sequences[sequence as usize].clone();
        if !known.has_request || known.computed > known.rest || self.has_computed(sequence) {
            return;
        }
        let prefix_match = self.pool.match_prefix(sequence).expect("it has only matched blocks");
        let tokens = known.computed + prefix_match.blocks.len() * BLOCK_SIZE;
        assert!(tokens == 0 || tokens < known.prompt_length, "no token is left to be computed");
        for group in Group::ALL {
            let cells = self.cells_of_table(group, sequence);
            self.sequence(sequence).cells[group] = cells;
        }
        let state = self.sequence(sequence);
        (state.computed, state.rest, state.waits) = (tokens, tokens, prefix_match.next == Next::Wait);
        self.check_reads(sequence, tokens, tokens);
    }

    fn has_computed(&self, sequence: i32) -> bool {
        self.pool.request(sequence).is_some_and(|request| request.has_begun_to_compute)
    }

    /// Returns the cells of a sequence that has matched blocks only.
    fn cells_of_table(&self, group: Group, sequence: i32) -> BTreeMap<usize, u32> {
        let table = self.pool.table_in(group, sequence).expect("the sequence is known");
        assert!(table.is_read_only());
        let cells_of = |index: u32, block: BlockId| {
            let first_cell = block.first_cell(BLOCK_SIZE as u32);
            (0..BLOCK_SIZE)
                .map(move |offset| (index as usize * BLOCK_SIZE + offset, first_cell + offset as u32))
        };
        table.entries().flat_map(|(index, entry)| cells_of(index, entry.last)).collect()
    }

    fn compute(&mut self, sequence: i32, count: usize, token: i32) {
        let known = self.sequence(sequence);
        let (first, end) = (known.computed, known.computed + count);
        if known.waits || (!known.has_request && first == 0) {
            return;
        }
        let missing = end.saturating_sub(known.text.len());
        known.text.extend(vec![token; missing]);
        for group in Group::ALL {
            if self.place(group, sequence, first..end).is_err() {
                return self.remove_from(sequence, first);
            }
        }
        self.sequence(sequence).computed = end;
        (first..end).for_each(|position| self.check_reads(sequence, position, position + 1));
    }

    fn place(
        &mut self,
        group: Group,
        sequence: i32,
        positions: std::ops::Range<usize>,
    ) -> Result<(), PoolError> {
        let sequences = vec![sequence; positions.len()];
        let numbers: Vec<i32> = positions.clone().map(|position| position as i32).collect();
        let cells = self.pool.reserve_in(group, &sequences, &numbers)?.cells.clone();
        for (position, cell) in positions.zip(cells) {
            assert_eq!(cell as usize % BLOCK_SIZE, position % BLOCK_SIZE);
            let reads = |other: &Sequence| other.cells[group].values().any(|read| *read == cell);
            assert!(!self.sequences.iter().any(reads), "cell {cell} of {group:?} is read and written");
            let known = &mut self.sequences[sequence as usize];
            known.cells[group].insert(position, cell);
            self.origins[group].insert(cell, known.text[..=position].to_vec());
        }
        Ok(())
    }

    /// Checks the cells before `end` that the token at this position attends to.
    fn check_reads(&self, sequence: i32, token: usize, end: usize) {
        let known = &self.sequences[sequence as usize];
        let window = (token + 1).saturating_sub(self.options.window as usize);
        for (group, first) in [(Group::Full, 0), (Group::Window, window)] {
            for position in first..end {
                let cell = known.cells[group].get(&position);
                let cell = cell.unwrap_or_else(|| panic!("{sequence} has no cell {position} in {group:?}"));
                let origin = &self.origins[group][cell];
                assert_eq!(*origin, known.text[..=position], "{sequence} reads {position} in {group:?}");
            }
        }
    }

    fn rest(&mut self, sequence: i32) {
        self.cache(sequence);
        let computed = self.sequences[sequence as usize].computed;
        let first = self.pool.slide(sequence, computed as u64).expect("the sequence is known");
        let known = self.sequence(sequence);
        known.cells[Group::Window].retain(|position, _| *position as u64 >= first);
        known.rest = computed;
        let table = self.pool.table_in(Group::Window, sequence).expect("the sequence is known");
        let held: usize = table.entries().map(|(_, entry)| entry.blocks().count()).sum();
        // One more is for the next token.
        assert!((held as u64) < self.options.window_blocks(), "{sequence} holds more than its window");
    }

    fn cache(&mut self, sequence: i32) {
        let known = &self.sequences[sequence as usize];
        let cached = self.pool.cache_in_groups(sequence, &known.text[..known.computed]);
        assert_eq!(cached.is_ok(), known.has_request);
    }

    fn reject(&mut self, sequence: i32, count: usize) {
        let known = self.sequence(sequence);
        let first = known.computed.saturating_sub(count).max(known.rest);
        if first < known.computed {
            self.remove_from(sequence, first);
        }
    }

    /// Removes the tokens from this one on. The output there will be another one.
    fn remove_from(&mut self, sequence: i32, first: usize) {
        for group in Group::ALL {
            assert_eq!(self.pool.remove_in(group, sequence, first as i32, -1), Ok(()));
            self.sequence(sequence).cells[group].retain(|position, _| *position < first);
        }
        let known = self.sequence(sequence);
        known.computed = first;
        known.rest = known.rest.min(first);
        known.text.truncate(first.max(known.prompt_length));
    }

    fn share(&mut self, from: i32, to: i32) {
        let target = &self.sequences[to as usize];
        let is_unused = !target.has_request && target.computed == 0;
        // A choice has no further choices, nor has one that went on beside others.
        if from == to || !is_unused || self.sequences[from as usize].computed == 0 || !self.is_plain(from) {
            return;
        }
        for group in Group::ALL {
            assert_eq!(self.pool.share_in(group, from, to, 0, -1), Ok(()));
        }
        let known = &self.sequences[from as usize];
        let (computed, cells) = (known.computed, known.cells.clone());
        let text = known.text[..computed].to_vec();
        let prompt_length = computed;
        *self.sequence(to) =
            Sequence { text, prompt_length, computed, rest: computed, cells, ..Sequence::default() };
    }

    /// Whether the sequence has one block at each index.
    fn is_plain(&self, sequence: i32) -> bool {
        Group::ALL.into_iter().all(|group| {
            let table = self.pool.table_in(group, sequence).expect("the sequence is known");
            table.entries().all(|(_, entry)| entry.earlier.is_empty())
        })
    }

    fn finish(&mut self, sequence: i32, is_cached: bool) {
        if is_cached {
            self.cache(sequence);
        }
        assert_eq!(self.pool.end(sequence), Ok(()));
        for group in Group::ALL {
            assert_eq!(self.pool.remove_in(group, sequence, 0, -1), Ok(()));
        }
        *self.sequence(sequence) = Sequence::default();
    }

    fn check(&self) {
        for group in Group::ALL {
            self.check_blocks(group);
        }
    }

    /// Checks that each block is either free or held, and that contents and blocks agree.
    fn check_blocks(&self, group: Group) {
        let blocks = self.pool.blocks();
        let free: BTreeSet<BlockId> = blocks.free_blocks(group).collect();
        for block in (1..=blocks.block_count(group)).map(BlockId) {
            let holders = (0..SEQUENCES).filter(|sequence| self.holds(group, *sequence, block)).count();
            assert_eq!(blocks.holders(group, block) as usize, holders, "{block:?} of {group:?}");
            assert_eq!(free.contains(&block), holders == 0, "{block:?} of {group:?}");
            if let Some(content) = blocks.content(group, block) {
                assert!(blocks.contents.blocks(group, content).contains(&block));
            }
        }
        for (sequence, known) in (0..).zip(&self.sequences) {
            for cell in known.cells[group].values() {
                let block = BlockId(cell / BLOCK_SIZE as u32 + 1);
                assert!(self.holds(group, sequence, block), "{sequence} reads {block:?} of {group:?}");
            }
        }
    }

    fn holds(&self, group: Group, sequence: i32, block: BlockId) -> bool {
        let table = self.pool.table_in(group, sequence).expect("the sequence is known");
        table.entries().any(|(_, entry)| entry.blocks().any(|held| held == block))
    }

    /// Checks that without sequences no block is held, and without cached blocks no content is left.
    fn check_that_nothing_is_left(&mut self) {
        (0..SEQUENCES).for_each(|sequence| self.finish(sequence, false));
        let statistics = self.pool.statistics();
        assert_eq!((statistics.blocks_used, statistics.window_blocks_used), (0, 0));
        for group in Group::ALL {
            let count = self.pool.blocks().block_count(group) as usize * BLOCK_SIZE;
            let positions: Vec<i32> = (0..count as i32).collect();
            assert!(self.pool.reserve_in(group, &vec![0; count], &positions).is_ok());
            assert_eq!(self.pool.remove_in(group, 0, 0, -1), Ok(()));
        }
        assert!(self.pool.blocks().contents.is_empty(), "a content is kept for ever");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_token_reads_a_cell_outside_its_windows_content(
        steps in prop::collection::vec(any_step(), 1..100),
        window in 1..14u32,
        spare_blocks in 0..6u32,
    ) {
        let mut model = Model::new(window, spare_blocks);
        steps.iter().for_each(|step| model.run(step));
        model.check_that_nothing_is_left();
    }
}
