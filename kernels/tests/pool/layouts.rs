//! Blocks that are closed where an image ends.

use espalier_kernels::pool::extra_keys::{Extra, RequestKeys};
use espalier_kernels::pool::groups::Group;
use espalier_kernels::pool::layout::Layout;
use espalier_kernels::pool::pool::{Pool, PoolError, PoolOptions};
use espalier_kernels::pool::sequences::BlockSpan;
use espalier_kernels::pool::snapshots::Reason;
use espalier_kernels::scheduler::{Action, Capacity, Request, RequestSize, Stage, decide};
use proptest::prelude::*;

use crate::support::*;

fn closing(options: PoolOptions) -> Pool {
    Pool::new(PoolOptions { closes_blocks: 1, ..options }).expect("the options are in range")
}

/// An image of 20 tokens, which begins at the fifth one and ends in the second block.
fn with_image(name: &str) -> RequestKeys {
    with_extras(&[(5, 20, name)])
}

#[test]
fn a_block_ends_where_an_extra_ends() {
    let layout = Layout::closed(16, &with_extras(&[(5, 20, "a"), (25, 16, "b"), (50, 5, "c")]));
    // Blocks of 16, 9, 16, 14 and 16 tokens.
    assert_eq!([0, 1, 2, 3, 4, 5].map(|block| layout.first_token(block)), [0, 16, 25, 41, 55, 71]);
    let places = [0, 15, 16, 24, 25, 40, 41, 54, 55, 71].map(|token| layout.place(token));
    let expected = [(0, 0), (0, 15), (1, 0), (1, 8), (2, 0), (2, 15), (3, 0), (3, 13), (4, 0), (5, 0)];
    assert_eq!(places, expected);
    assert_eq!([0, 16, 24, 25, 26].map(|tokens| layout.complete_blocks(tokens)), [0, 1, 1, 2, 2]);
    assert_eq!([0, 16, 24, 25, 26].map(|tokens| layout.needed_blocks(tokens)), [0, 1, 2, 2, 3]);
    assert_eq!([24, 25, 54, 55].map(|tokens| layout.last_boundary(tokens)), [16, 25, 41, 55]);
    assert_eq!([0, 16, 24, 25].map(|token| layout.block_of(token)), [0..16, 16..25, 16..25, 25..41]);
    // Of the second block one token is left.
    assert_eq!(BlockSpan::of(17, 41, &layout), BlockSpan { touched: 1..3, whole: 2..3 });
    // A block that is full anyway needs not be closed.
    assert_eq!(Layout::closed(16, &with_extras(&[(5, 27, "a")])), Layout::plain(16));
}

#[test]
fn the_same_image_and_another_question_share_the_image() {
    for (closes_blocks, hits) in [(0, 1), (1, 2)] {
        let mut pool = Pool::new(PoolOptions { closes_blocks, ..options(20) }).expect("in range");
        let [one, other] = [2, 3].map(|kind| joined(&[&tokens(1, 25), &tokens(kind, 10)]));
        assert_eq!(prefill_with(&mut pool, 0, &one, with_image("a")).0, 0);
        begin(&mut pool, 1, &other, with_image("a"));
        let image_is_offered = closes_blocks == 1;
        // Without a boundary at its end, the image is computed again.
        assert_eq!(pool.offer(1, 36).tokens, if image_is_offered { 25 } else { 5 });
        assert_eq!(match_prefix(&mut pool, 1).blocks.len(), hits);
        begin(&mut pool, 2, &other, with_image("b"));
        assert_eq!(match_prefix(&mut pool, 2).blocks.len(), 0);
    }
}

#[test]
fn a_closed_block_is_not_written_behind_its_end() {
    let mut pool = closing(options(20));
    let prompt = tokens(1, 40);
    begin(&mut pool, 0, &prompt, with_image("a"));
    let positions: Vec<i32> = (0..40).collect();
    let cells = pool.reserve(&[0; 40], &positions).expect("there are enough blocks").cells.clone();
    assert_eq!((cells[24], cells[25], cells[39]), (24, 32, 46));
    assert_eq!(pool.statistics().blocks_used, 3);
    assert_eq!(numbers(&pool.cache(0, &prompt[..25]).expect("the tokens agree")), [1, 2]);
    let stored: Vec<(u32, u32)> =
        events(&mut pool).iter().map(|event| (event.block_index, event.token_count)).collect();
    assert_eq!(stored, [(0, 16), (1, 9)]);
    // Counted by the scheduler.
    let needed = |end| pool.needed(0, RequestSize { end, further_choices: 0 });
    assert_eq!((needed(25), needed(26), needed(42)), (2, 3, 4));
    assert_eq!(pool.needed(0, RequestSize { end: 42, further_choices: 2 }), 6);
    assert_eq!(pool.missing(0, 41..42), 1);
}

#[test]
fn a_state_can_be_saved_behind_an_image() {
    let mut pool = closing(options_with_states(20, 4));
    let prompt = joined(&[&tokens(1, 25), &tokens(2, 20)]);
    prefill_with(&mut pool, 0, &prompt, with_image("a"));
    let (snapshot, _) = save(&mut pool, 0, &prompt[..25], Reason::Branch);
    begin(&mut pool, 1, &joined(&[&tokens(1, 25), &tokens(3, 20)]), with_image("a"));
    assert_eq!(match_prefix(&mut pool, 1).snapshot, Some(snapshot));
    // Where prompts branch is a stop.
    begin(&mut pool, 2, &joined(&[&tokens(1, 25), &tokens(4, 20)]), with_image("b"));
    begin(&mut pool, 3, &joined(&[&tokens(1, 25), &tokens(5, 20)]), with_image("b"));
    assert_eq!(pool.next_stop(2, 0).map(|stop| stop.tokens), Some(25));
}

/// Another question about the same images is likely to begin there, so the first one saves the state.
#[test]
fn behind_the_last_image_is_a_stop() {
    let mut pool = closing(options_with_states(20, 4));
    let keys = with_extras(&[(2, 10, "a"), (20, 15, "b")]);
    begin(&mut pool, 0, &tokens(1, 45), keys.clone());
    let stop = pool.next_stop(0, 0).expect("there is a stop");
    assert_eq!((stop.tokens, stop.reason), (35, Reason::Branch));
    assert_eq!(pool.next_stop(0, 35), None);
    // Not behind an image with which the prompt ends: a token has to be computed.
    begin(&mut pool, 1, &tokens(1, 35), keys);
    assert_eq!(pool.next_stop(1, 0).map(|stop| stop.tokens), Some(12));
}

#[test]
fn further_choices_have_the_layout_of_the_first_one() {
    let mut pool = closing(options(20));
    begin(&mut pool, 0, &tokens(1, 30), with_image("a"));
    assert_eq!(reserve(&mut pool, 0, 0..30), Ok(vec![1, 2, 3]));
    assert_eq!(pool.share(0, 1, 0, -1), Ok(()));
    assert_eq!(held(&pool, 1), [1, 2, 3]);
    assert_eq!(pool.layout(1), pool.layout(0));
    // Its next token is the sixth one of the third block.
    assert_eq!(pool.reserve(&[1], &[30]).map(|reservation| reservation.cells.clone()), Ok(vec![3 * 16 + 5]));
    assert_eq!(pool.remove(1, 25, -1), Ok(()));
    assert_eq!(held(&pool, 1), [1, 2]);
    // A sequence with blocks in another layout cannot share them.
    assert_eq!(reserve(&mut pool, 2, 0..1).map(|fresh| fresh.len()), Ok(1));
    assert_eq!(pool.share(0, 2, 0, -1), Err(PoolError::Invalid));
    assert_eq!(pool.remove(1, 0, -1), Ok(()));
    assert_eq!(pool.layout(1), Some(&Layout::plain(16)));
}

/// A sequence that was restored from a file has its tokens in full blocks: it can go on, and no request matches its
/// blocks behind the image.
#[test]
fn a_sequence_in_another_layout_keeps_it() {
    let mut pool = closing(options(20));
    let prompt = tokens(1, 70);
    let keys = with_extras(&[(20, 20, "a")]);
    assert_eq!(reserve(&mut pool, 0, 0..50).map(|fresh| fresh.len()), Ok(4));
    assert_eq!(pool.resume(0, 50, &prompt, keys.clone()), Ok(()));
    assert_eq!(pool.layout(0), Some(&Layout::plain(16)));
    assert_eq!(reserve(&mut pool, 0, 50..70).map(|fresh| fresh.len()), Ok(1));
    assert!(pool.cache(0, &prompt).is_ok());
    begin(&mut pool, 1, &prompt, keys.clone());
    assert_eq!(match_prefix(&mut pool, 1).blocks, []);
    // One that computed its prompt itself goes on in the same layout.
    begin(&mut pool, 2, &prompt, keys.clone());
    assert_eq!(reserve(&mut pool, 2, 0..50).map(|fresh| fresh.len()), Ok(4));
    assert_eq!(pool.end(2), Ok(()));
    assert_eq!(pool.resume(2, 50, &prompt, keys.clone()), Ok(()));
    assert_eq!(pool.layout(2), Some(&Layout::closed(16, &keys)));
}

/// An image that ends with the ninth token of the second block: with a closed block 6 blocks have 89 tokens, else 96.
#[test]
fn a_request_that_does_not_fit_with_closed_blocks_gets_full_ones() {
    let closes = |end: u64, further_choices: u64| {
        let mut pool = closing(options(6));
        let size = RequestSize { end, further_choices };
        let prompt = tokens(1, end as usize - 1);
        assert_eq!(pool.begin_of_size(0, 0, &prompt, with_image("a"), size), Ok(()));
        // The scheduler counts in that layout, so it refuses only what does not fit in full blocks either.
        assert_eq!(pool.needed(0, size) <= 6, size.in_full_blocks(16) <= 6);
        pool.layout(0) == Some(&Layout::closed(16, &with_image("a")))
    };
    assert!(closes(89, 0) && closes(73, 1) && closes(41, 3));
    let larger = [(90, 0), (96, 0), (97, 0), (74, 1), (42, 3), (80, 6)];
    assert!(larger.into_iter().all(|(end, further_choices)| !closes(end, further_choices)));
}

/// It has grown since it began: it is preempted and continues in full blocks.
#[test]
fn a_request_that_outgrows_its_closed_blocks_goes_on_in_full_ones() {
    let mut pool = closing(options(6));
    let text = tokens(1, 96);
    begin(&mut pool, 0, &text[..60], with_image("a"));
    assert_eq!(match_prefix(&mut pool, 0).blocks, []);
    assert_eq!(reserve(&mut pool, 0, 0..89).map(|fresh| fresh.len()), Ok(6));
    assert!(pool.cache(0, &text[..89]).is_ok());
    let grown = Request { stage: Stage::Runs, ..waiting(89, 90) };
    assert_eq!(decide(&pool, &[grown], &[], true).action, Action::Preempt { index: 0 });
    finish(&mut pool, 0);
    assert_eq!(pool.begin_of_size(0, 0, &text[..89], with_image("a"), grown.size()), Ok(()));
    // The first block is the same in both layouts. But the image begins in it, so a seventh one would be needed.
    assert_eq!((pool.offer(0, 90).tokens, pool.offer(0, 90).blocks), (5, 7));
    let admitted = Action::Admit { index: 0, tokens: 0 };
    assert_eq!(decide(&pool, &[waiting(0, 90)], &[], true).action, admitted);
    assert_eq!(reserve(&mut pool, 0, 0..96).map(|fresh| fresh.len()), Ok(6));
}

/// Returns the waiting request of sequence 0, which holds this number of tokens.
fn waiting(first: u64, end: u64) -> Request {
    Request {
        arrival: 0,
        priority: 0,
        sequence: 0,
        stage: Stage::Waits,
        preemptible: true,
        first,
        end,
        further_choices: 0,
    }
}

/// The part that it retained lies in a closed block, with which the rest does not fit.
#[test]
fn a_retained_sequence_in_closed_blocks_is_evicted_for_a_request_that_fits_without_it() {
    let mut pool = closing(options(6));
    let prompt = tokens(1, 95);
    let size = waiting(60, 96).size();
    begin(&mut pool, 0, &prompt[..60], with_image("a"));
    assert_eq!(reserve(&mut pool, 0, 0..60).map(|fresh| fresh.len()), Ok(5));
    assert_eq!(pool.end(0), Ok(()));
    assert_eq!(pool.begin_of_size(0, 60, &prompt, with_image("a"), size), Ok(()));
    assert_eq!(pool.needed(0, size), 7);
    assert_eq!(decide(&pool, &[waiting(60, 96)], &[0], true).action, Action::Evict { index: 0 });
    assert_eq!(pool.remove(0, 0, -1), Ok(()));
    assert_eq!(pool.begin_of_size(0, 0, &prompt, with_image("a"), size), Ok(()));
    assert_eq!(pool.needed(0, size), 6);
}

#[test]
fn a_window_is_counted_in_closed_blocks() {
    let mut pool = closing(options_with_window(20, 20, 40));
    let prompt = tokens(1, 60);
    begin(&mut pool, 0, &prompt, with_image("a"));
    compute(&mut pool, 0, &prompt, 0..60);
    // The last boundary is after 57 tokens: the token there attends to tokens 38 to 57. Block 2 has 25 to 40.
    assert_eq!(pool.slide(0, 60), Ok(25));
    assert_eq!(window_indexes(&pool, 0), [2, 3, 4]);
    for group in Group::ALL {
        assert_eq!(pool.remove_in(group, 0, 57, -1), Ok(()));
    }
    assert_eq!(window_indexes(&pool, 0), [2, 3]);
}

/// Short media leave a few tokens in each closed block, so that a window takes many: 7 of the blocks before the last
/// ones of 15 images, and all 4 with a full one behind 3 images. A sequence has 3 blocks beside its window.
#[test]
fn a_request_whose_windows_do_not_fit_with_closed_blocks_gets_full_ones() {
    let closes = |window_block_count: u32, images: u32| {
        // A batch takes three blocks, and each of eight sequences an eighth of the others.
        let options = PoolOptions { batch_tokens: 40, ..options_with_window(100, 32, window_block_count) };
        let mut pool = closing(options);
        let images: Vec<(u32, u32, &str)> = (0..images).map(|image| (5 * image + 2, 1, "a")).collect();
        let keys = with_extras(&images);
        begin(&mut pool, 0, &tokens(1, 100), keys.clone());
        pool.layout(0) == Some(&Layout::closed(16, &keys))
    };
    assert!(closes(8 * 10 + 3, 15) && !closes(8 * 10 + 2, 15));
    assert!(closes(8 * 7 + 3, 3) && !closes(8 * 7 + 2, 3));
}

/// It can compute several images in one step, and hold its share of the blocks afterwards. The tokens of an image are
/// computed on their own, so that no block is closed among those that are computed at once.
#[test]
fn a_sequence_with_closed_blocks_needs_its_share() {
    let mut pool = closing(PoolOptions { batch_tokens: 40, ..options_with_window(100, 32, 8 * 10 + 3) });
    begin(&mut pool, 0, &tokens(1, 100), with_extras(&[(2, 1, "a"), (7, 1, "a"), (12, 30, "b")]));
    let windows = pool.windows().expect("the pool has windows");
    assert_eq!((windows.batch(), windows.needed(0, 0, 0), windows.needed(0, 0, 2)), (3, 10, 30));
    let keys = pool.request(0).expect("the sequence has a request").keys();
    assert_eq!([0, 2, 3, 7, 12, 20, 42].map(|first| keys.end_of_run(first)), [2, 3, 7, 8, 42, 42, u64::MAX]);
}

#[test]
fn options_of_closed_blocks_out_of_range_are_refused() {
    assert!(matches!(Pool::new(PoolOptions { closes_blocks: 2, ..options(10) }), Err(PoolError::Invalid)));
}

/// A part of a prompt.
#[derive(Clone, Debug)]
pub enum PromptPart {
    Text {
        token: i32,
        length: usize,
    },
    /// All images have the same placeholder tokens.
    Image {
        key: u8,
        length: usize,
    },
}

pub fn any_part() -> impl Strategy<Value = PromptPart> {
    prop_oneof![
        (0..2i32, 1..7usize).prop_map(|(token, length)| PromptPart::Text { token, length }),
        (0..2u8, 1..12usize).prop_map(|(key, length)| PromptPart::Image { key, length }),
    ]
}

/// A token, and for one of an image its key, its offset in the image, and the length of that.
pub type Label = (i32, Option<(u8, usize, usize)>);

pub fn labels(parts: &[PromptPart]) -> Vec<Label> {
    let labels_of = |part: &PromptPart| -> Vec<Label> {
        match *part {
            PromptPart::Text { token, length } => vec![(token, None); length],
            PromptPart::Image { key, length } => {
                (0..length).map(|offset| (7, Some((key, offset, length)))).collect()
            }
        }
    };
    parts.iter().flat_map(labels_of).collect()
}

pub fn keys(labels: &[Label]) -> RequestKeys {
    let extra = |(first, label): (usize, &Label)| match label.1 {
        Some((key, 0, length)) => Some(Extra { first: first as u32, length: length as u32, key: vec![key] }),
        _ => None,
    };
    RequestKeys { extras: labels.iter().enumerate().filter_map(extra).collect(), ..RequestKeys::default() }
}

/// Returns the number of labels at the beginning that both have.
pub fn common(one: &[Label], other: &[Label]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The layout is what one gets by placing the tokens one by one.
    #[test]
    fn a_layout_places_tokens_in_order(parts in prop::collection::vec(any_part(), 0..10)) {
        let labels = labels(&parts);
        let layout = Layout::closed(4, &keys(&labels));
        let (mut block, mut offset) = (0, 0);
        for (token, label) in (0u64..).zip(&labels) {
            prop_assert_eq!(layout.place(token), (block, offset));
            prop_assert_eq!(layout.first_token(block as usize), token - u64::from(offset));
            prop_assert_eq!(layout.last_boundary(token), token - u64::from(offset));
            prop_assert_eq!(layout.needed_blocks(token), block as usize + usize::from(offset > 0));
            offset += 1;
            let ends = label.1.is_some_and(|(_, at, length)| at + 1 == length);
            if offset == 4 || ends {
                (block, offset) = (block + 1, 0);
            }
        }
    }

    /// A prompt matches all blocks of its longest prefix that was computed, up to the end of an image in it, and their
    /// cells hold that very prefix.
    #[test]
    fn prompts_with_images_match_all_that_they_have_in_common(
        prompts in prop::collection::vec(prop::collection::vec(any_part(), 1..7), 1..8),
    ) {
        let options = PoolOptions {
            block_count: 1000, block_size: 4, sequence_count: 8, closes_blocks: 1, ..PoolOptions::default()
        };
        let mut pool = Pool::new(options).expect("the options are in range");
        let prompts: Vec<Vec<Label>> = prompts.iter().map(|parts| labels(parts)).collect();
        let mut origins = std::collections::BTreeMap::<u32, Vec<Label>>::new();
        for (sequence, prompt) in (0..).zip(&prompts) {
            let text: Vec<i32> = prompt.iter().map(|label| label.0).collect();
            begin(&mut pool, sequence, &text, keys(prompt));
            let layout = Layout::closed(4, &keys(prompt));
            let longest = prompts[..sequence as usize].iter().map(|other| common(prompt, other)).max();
            let expected = layout.complete_blocks(longest.unwrap_or(0).min(prompt.len() - 1) as u64);
            let blocks = match_prefix(&mut pool, sequence).blocks;
            prop_assert_eq!(blocks.len(), expected);
            let matched = layout.first_token(expected);
            for token in 0..matched {
                let (block, offset) = layout.place(token);
                let cell = blocks[block as usize].first_cell(4) + offset;
                prop_assert_eq!(origins[&cell].as_slice(), &prompt[..=token as usize]);
            }
            let positions: Vec<i32> = (matched as i32..prompt.len() as i32).collect();
            let sequences = vec![sequence; positions.len()];
            let cells = pool.reserve(&sequences, &positions).expect("there are enough blocks").cells.clone();
            for (position, cell) in positions.iter().zip(cells) {
                let before = origins.insert(cell, prompt[..=*position as usize].to_vec());
                prop_assert_eq!(before, None);
            }
            prop_assert!(pool.cache(sequence, &text).is_ok());
        }
    }
}
