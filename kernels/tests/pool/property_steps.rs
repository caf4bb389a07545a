//! The operations that `properties.rs` draws.

use espalier_kernels::pool::snapshots::Reason;
use proptest::prelude::*;

use crate::properties::{BLOCK_SIZE, SEQUENCES};

#[derive(Clone, Debug)]
pub enum Step {
    /// A prompt of blocks that are much alike, and a tail. In the middle of the blocks is an image of this number of
    /// tokens; 0: there is none.
    Begin {
        sequence: i32,
        blocks: Vec<i32>,
        image: usize,
        tail: usize,
        salted: bool,
    },
    Match {
        sequence: i32,
    },
    /// Continues the sequence, with tokens like these.
    Compute {
        sequence: i32,
        count: usize,
        token: i32,
    },
    /// Any position, as a buggy caller might pass.
    Reserve {
        sequence: i32,
        position: i32,
        count: i32,
    },
    Cache {
        sequence: i32,
        count: usize,
    },
    Share {
        from: i32,
        to: i32,
        first: i32,
        end: i32,
    },
    Remove {
        sequence: i32,
        first: i32,
        end: i32,
    },
    RemoveAll {
        sequence: i32,
    },
    End {
        sequence: i32,
    },
    /// Ends the request, whose output is not finite.
    Distrust {
        sequence: i32,
    },
    /// Caches what was computed and saves the state after some blocks of it. `is_written`: saving it succeeds.
    Snapshot {
        sequence: i32,
        blocks: usize,
        bytes: u64,
        reason: usize,
        is_written: bool,
    },
    /// Restores the snapshot that was matched last, or fails to.
    Restore {
        sequence: i32,
        is_restored: bool,
    },
    /// Begins a snapshot of the size of the whole budget, and does not write it.
    EvictSnapshot {
        sequence: i32,
    },
    Clear,
}

pub fn any_step() -> impl Strategy<Value = Step> {
    let sequence = || 0..SEQUENCES;
    let position = || -1..24i32;
    prop_oneof![
        4 => (
            sequence(),
            prop::collection::vec(0..2i32, 0..5),
            prop_oneof![Just(0usize), 1..BLOCK_SIZE + 3],
            0..BLOCK_SIZE,
            prop::bool::weighted(0.2),
        )
            .prop_map(|(sequence, blocks, image, tail, salted)| {
                Step::Begin { sequence, blocks, image, tail, salted }
            }),
        6 => sequence().prop_map(|sequence| Step::Match { sequence }),
        6 => (sequence(), 1..12usize, 0..2i32)
            .prop_map(|(sequence, count, token)| Step::Compute { sequence, count, token }),
        1 => (sequence(), position(), 1..12i32)
            .prop_map(|(sequence, position, count)| Step::Reserve { sequence, position, count }),
        6 => (sequence(), 0..24usize).prop_map(|(sequence, count)| Step::Cache { sequence, count }),
        1 => (sequence(), sequence(), position(), position())
            .prop_map(|(from, to, first, end)| Step::Share { from, to, first, end }),
        2 => (sequence(), position(), position())
            .prop_map(|(sequence, first, end)| Step::Remove { sequence, first, end }),
        3 => sequence().prop_map(|sequence| Step::RemoveAll { sequence }),
        2 => sequence().prop_map(|sequence| Step::End { sequence }),
        1 => sequence().prop_map(|sequence| Step::Distrust { sequence }),
        5 => (sequence(), 0..6usize, 1..5u64, 0..Reason::ALL.len(), prop::bool::weighted(0.8)).prop_map(
            |(sequence, blocks, bytes, reason, is_written)| Step::Snapshot {
                sequence, blocks, bytes, reason, is_written,
            }
        ),
        3 => (sequence(), prop::bool::weighted(0.8))
            .prop_map(|(sequence, is_restored)| Step::Restore { sequence, is_restored }),
        1 => sequence().prop_map(|sequence| Step::EvictSnapshot { sequence }),
        // Rarely cleared, so that much is cached.
        1 => prop::bool::weighted(0.2)
            .prop_map(|clear| if clear { Step::Clear } else { Step::RemoveAll { sequence: 0 } }),
    ]
}
