//! The request of a sequence: the state that prefix caching needs.

use super::contents::{ContentId, Contents, SequenceId};
use super::extra_keys::{ExtraKeys, RequestKeys};
use super::layout::Layout;
use super::snapshots::SnapshotId;

/// A request: a prompt, and then the output that was accepted.
///
/// It references the content of every full block of the prompt from its beginning on, so that all hashing and comparing
/// is done once, when the request begins.
#[derive(Clone, Debug)]
pub struct Request {
    keys: RequestKeys,
    layout: Layout,
    /// The prompt, and the output as far as it fills cached blocks.
    tokens: Vec<i32>,
    prompt_length: usize,
    /// The contents of the full blocks of `tokens`.
    contents: Vec<ContentId>,
    /// Number of matched blocks at the beginning of the sequence's table.
    pub matched: usize,
    /// Blocks below this index are cached, matched, or can no longer be cached.
    pub settled: usize,
    /// Number of blocks at the beginning whose cells were cached when the sequence last matched its prefix. They can be
    /// more than it matched, if no snapshot of the state after them exists.
    pub cached: usize,
    /// Whether the sequence holds, or held since it was last empty, blocks that it did not match.
    pub has_begun_to_compute: bool,
    /// Whether the sequence holds tokens that the request continues from, and the request is still waiting: none of its
    /// blocks is in flight.
    pub waits_to_resume: bool,
    /// Whether the request may have blocks in flight.
    pub has_in_flight: bool,
    /// Number of tokens of the system prompt at the beginning; 0: unknown.
    pub system_length: usize,
    /// The snapshot that was matched last and is not restored yet. The request has a pin on it.
    pub restoring: Option<SnapshotId>,
    /// The snapshot that was restored last.
    pub restored: Option<SnapshotId>,
    /// The snapshot of its answer that was taken last.
    pub tail: Option<SnapshotId>,
}

impl Request {
    /// Creates a request for this prompt.
    pub fn new(prompt: &[i32], keys: RequestKeys, layout: Layout, contents: &mut Contents) -> Request {
        Request::resuming(0, prompt, keys, layout, contents)
    }

    /// The same for a sequence that has the first `held` tokens of the prompt already: it matches no blocks, and caches
    /// those that it computes from there on.
    pub fn resuming(
        held: usize,
        prompt: &[i32],
        keys: RequestKeys,
        layout: Layout,
        contents: &mut Contents,
    ) -> Request {
        let settled = layout.complete_blocks(held as u64);
        let mut request = Request {
            keys,
            layout,
            tokens: prompt.to_vec(),
            prompt_length: prompt.len(),
            contents: Vec::new(),
            matched: settled,
            settled,
            cached: 0,
            has_begun_to_compute: held > 0,
            waits_to_resume: held > 0,
            has_in_flight: false,
            system_length: 0,
            restoring: None,
            restored: None,
            tail: None,
        };
        request.refer_to_full_blocks(contents);
        request
    }

    fn refer_to_full_blocks(&mut self, contents: &mut Contents) {
        for index in self.contents.len()..self.layout.complete_blocks(self.tokens.len() as u64) {
            let (tokens, extra_keys) = self.full_block(&self.layout, index);
            let content = contents.refer(self.contents.last().copied(), tokens, extra_keys);
            self.contents.push(content);
        }
    }

    /// Returns the tokens and the extra keys of the full block at this index of a layout.
    fn full_block(&self, layout: &Layout, index: usize) -> (&[i32], ExtraKeys) {
        let (start, end) = (layout.first_token(index), layout.first_token(index + 1));
        let extra_keys = self.keys.of_block(start, (end - start) as u32);
        (&self.tokens[start as usize..end as usize], extra_keys)
    }

    /// Returns the contents of the full blocks that its tokens have in another layout, up to the first one that is not
    /// referenced: each references the one before it, so none behind that is referenced either.
    pub fn contents_in(&self, layout: &Layout, contents: &Contents) -> Vec<ContentId> {
        let mut last = None;
        let find_next = |index: usize| {
            let (tokens, extra_keys) = self.full_block(layout, index);
            last = contents.find(last, tokens, &extra_keys);
            last
        };
        (0..layout.complete_blocks(self.tokens.len() as u64)).map_while(find_next).collect()
    }

    /// Returns whether these tokens agree with the prompt and with cached output, as far as both go.
    pub fn agrees_with(&self, tokens: &[i32]) -> bool {
        let common = tokens.len().min(self.tokens.len());
        tokens[..common] == self.tokens[..common]
    }

    /// Appends the output in the full blocks of `tokens`, which agree with the known ones.
    pub fn learn(&mut self, tokens: &[i32], contents: &mut Contents) {
        let full = self.layout.last_boundary(tokens.len() as u64) as usize;
        if full > self.tokens.len() {
            self.tokens.extend_from_slice(&tokens[self.tokens.len()..full]);
            self.refer_to_full_blocks(contents);
        }
    }

    /// Returns the number of tokens of the prompt.
    pub fn prompt_length(&self) -> usize {
        self.prompt_length
    }

    /// Handles the removal of the positions from this block index on: matching and caching there start again, and the
    /// output there, if any, may differ.
    pub fn forget_from(&mut self, index: usize, contents: &mut Contents) {
        self.matched = self.matched.min(index);
        self.settled = self.settled.min(index);
        let known = self.prompt_length.max(self.layout.first_token(index) as usize);
        self.tokens.truncate(known);
        let full = self.layout.complete_blocks(self.tokens.len() as u64);
        while self.contents.len() > full {
            self.contents.pop().into_iter().for_each(|content| contents.release(content));
        }
    }

    /// Returns the content of the block at this index, if it is full.
    pub fn content(&self, index: usize) -> Option<ContentId> {
        self.contents.get(index).copied()
    }

    /// Returns the content of the next block to match. `None` if at most one block of the prompt is left to compute: at
    /// least one token has to be computed, to get its logits.
    pub fn next_to_match(&self) -> Option<ContentId> {
        self.matchable(self.matched)
    }

    /// Returns the content of the block at this index, if it may be matched.
    pub fn matchable(&self, index: usize) -> Option<ContentId> {
        if index < self.last_boundary() { self.content(index) } else { None }
    }

    /// Returns the last boundary of the prompt at which it can be matched, in blocks: at least one token is left to
    /// compute after it.
    pub fn last_boundary(&self) -> usize {
        self.layout.complete_blocks(self.prompt_length.saturating_sub(1) as u64)
    }

    /// Returns the number of full blocks of the prompt, with those that are closed.
    pub fn full_blocks(&self) -> usize {
        self.layout.complete_blocks(self.prompt_length as u64)
    }

    /// Returns the inputs besides the tokens.
    pub fn keys(&self) -> &RequestKeys {
        &self.keys
    }

    /// Returns the layout of the sequence, as far as its prompt is known.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the number of full blocks at the beginning that both requests have in common.
    pub fn common_blocks(&self, other: &Request) -> usize {
        // Contents are chains: if two are the same, so are all before them.
        let (mut same, mut end) = (0, self.contents.len().min(other.contents.len()));
        while same < end {
            let middle = same + (end - same) / 2;
            match self.contents[middle] == other.contents[middle] {
                true => same = middle + 1,
                false => end = middle,
            }
        }
        same
    }

    /// Returns the boundaries behind extras, in order, as the number of blocks before them: where a block was closed.
    pub fn boundaries_behind_extras(&self) -> impl Iterator<Item = usize> {
        let blocks = self.keys.extra_ends().map(move |end| (end, self.layout.complete_blocks(end)));
        blocks.filter(move |(end, blocks)| self.layout.first_token(*blocks) == *end).map(|(_, blocks)| blocks)
    }

    /// Returns whether the boundary after this number of blocks lies inside of an extra, such as an image.
    pub fn cuts_extra(&self, blocks: usize) -> bool {
        let tokens = self.layout.first_token(blocks);
        self.end_before_cut_extra(tokens) != tokens
    }

    /// Returns `tokens`, reduced to the start of an extra if the first `tokens` of the prompt end inside of one.
    pub fn end_before_cut_extra(&self, tokens: u64) -> u64 {
        self.keys.end_before_cut_extra(tokens)
    }

    /// Marks the full blocks of the prompt that are still to be computed as in flight, unless they are for another
    /// sequence.
    pub fn mark_rest_in_flight(&mut self, sequence: SequenceId, contents: &mut Contents) {
        let full = self.full_blocks();
        for content in &self.contents[self.matched.min(full)..full] {
            contents.mark_in_flight(*content, sequence);
        }
        self.has_in_flight = true;
    }

    /// Ends the in-flight state of one block, cached or cancelled.
    pub fn end_in_flight(&self, index: usize, sequence: SequenceId, contents: &mut Contents) {
        if let Some(content) = self.content(index) {
            contents.end_in_flight(content, sequence);
        }
    }

    /// Cancels all in-flight blocks.
    pub fn cancel_all_in_flight(&mut self, sequence: SequenceId, contents: &mut Contents) {
        if std::mem::take(&mut self.has_in_flight) {
            self.contents.iter().for_each(|content| contents.end_in_flight(*content, sequence));
        }
    }

    /// Ends the request and drops its references.
    pub fn end(mut self, sequence: SequenceId, contents: &mut Contents) {
        self.cancel_all_in_flight(sequence, contents);
        // From the end, so that the contents are freed one by one and not as a chain.
        self.contents.iter().rev().for_each(|content| contents.release(*content));
    }
}
