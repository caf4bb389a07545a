//! The free blocks, in the order in which they are allocated.
//!
//! A doubly linked list whose links are stored in two arrays: a block that is matched leaves the middle of the list in
//! constant time, and no operation allocates memory.

use super::block::BlockId;

/// Index of the sentinel: its links are the two ends of the list, which makes a ring of it, so that no operation has a
/// special case.
const ENDS: usize = 0;

/// Free blocks; the front is allocated first.
#[derive(Clone, Debug)]
pub struct FreeQueue {
    /// Links towards the front. A block that is not in the list is linked to itself.
    previous: Vec<u32>,
    /// Links towards the tail.
    next: Vec<u32>,
    length: u32,
}

impl FreeQueue {
    /// Creates a queue of all blocks `1..=block_count`, the first one in front. `None`: not enough memory.
    pub fn full(block_count: u32) -> Option<FreeQueue> {
        let mut queue = FreeQueue::empty(block_count)?;
        queue.refill();
        Some(queue)
    }

    /// Creates an empty queue with capacity for the blocks `1..=block_count`. `None`: not enough memory.
    pub fn empty(block_count: u32) -> Option<FreeQueue> {
        let links = || {
            let mut links = Vec::new();
            links.try_reserve_exact(block_count as usize + 1).ok()?;
            links.extend(0..=block_count);
            Some(links)
        };
        Some(FreeQueue { previous: links()?, next: links()?, length: 0 })
    }

    /// Frees all blocks, the first one in front, whatever the current state.
    pub fn refill(&mut self) {
        for links in [&mut self.previous, &mut self.next] {
            links.iter_mut().zip(0..).for_each(|(link, number)| *link = number);
        }
        self.length = 0;
        (1..self.next.len() as u32).for_each(|number| self.push_back(BlockId(number)));
    }

    /// Returns the number of free blocks.
    pub fn len(&self) -> u32 {
        self.length
    }

    /// Returns whether no block is free.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns whether this block is in the list.
    pub fn contains(&self, block: BlockId) -> bool {
        self.next[block.0 as usize] != block.0
    }

    /// Removes and returns the block in front.
    pub fn pop_front(&mut self) -> Option<BlockId> {
        let front = BlockId(self.next[ENDS]);
        self.remove(front).then_some(front)
    }

    /// Inserts a block at the front, so that it is allocated next. Does nothing if it is in the list.
    pub fn push_front(&mut self, block: BlockId) {
        self.insert_after(ENDS, block);
    }

    /// Inserts a block at the back. Does nothing if it is in the list.
    pub fn push_back(&mut self, block: BlockId) {
        self.insert_after(self.previous[ENDS] as usize, block);
    }

    /// Inserts several blocks at the front; the first of them is allocated next.
    pub fn push_front_all(&mut self, blocks: &[BlockId]) {
        blocks.iter().rev().for_each(|block| self.push_front(*block));
    }

    /// Removes a block from the list, wherever it is. Returns false if it was not in the list.
    pub fn remove(&mut self, block: BlockId) -> bool {
        if block.0 as usize == ENDS || !self.contains(block) {
            return false;
        }
        let here = block.0 as usize;
        let (previous, next) = (self.previous[here], self.next[here]);
        self.next[previous as usize] = next;
        self.previous[next as usize] = previous;
        (self.previous[here], self.next[here]) = (block.0, block.0);
        self.length -= 1;
        true
    }

    /// Returns the blocks, from the front to the back.
    pub fn iter(&self) -> impl Iterator<Item = BlockId> {
        let follow = |number: &u32| Some(self.next[*number as usize]);
        let numbers = std::iter::successors(Some(self.next[ENDS]), follow);
        numbers.take_while(|number| *number as usize != ENDS).map(BlockId)
    }

    fn insert_after(&mut self, place: usize, block: BlockId) {
        if block.0 as usize == ENDS || self.contains(block) {
            return;
        }
        let (here, next) = (block.0 as usize, self.next[place]);
        (self.previous[here], self.next[here]) = (place as u32, next);
        self.next[place] = block.0;
        self.previous[next as usize] = block.0;
        self.length += 1;
    }
}
