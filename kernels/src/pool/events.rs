//! What happened to published blocks, for whoever keeps track of them from outside.

use std::collections::VecDeque;

use super::hash::BlockHash;

/// What happened. The numbers are part of the C ABI (`enum espalier_pool_event_kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum EventKind {
    /// A block was published.
    Stored = 0,
    /// A published block was taken for something else.
    Removed = 1,
    /// No block is published any more.
    Cleared = 2,
}

/// One event. The layout is `struct espalier_pool_event` of the C header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Event {
    /// Counts all events of the pool from 0: a gap means that events were dropped unread.
    pub number: u64,
    /// An [`EventKind`] as its number.
    pub kind: u32,
    /// The first cell of the block; 0 for `Cleared`.
    pub block: u32,
    /// `Stored`: the place of the block in its prompt, in blocks from 0. Else 0.
    pub block_index: u32,
    /// `Stored`: tokens in the block. Else 0.
    pub token_count: u32,
    /// `Stored`: 1 if another block comes before it in its prompt. Else 0.
    pub has_parent: u32,
    /// `Stored`: 1 if the KV depends on adapters. Else 0.
    pub has_adapters: u32,
    /// The hash of the block and all before it; zeros for `Cleared`.
    pub hash: BlockHash,
    /// The hash of the block before it, zeros if there is none.
    pub parent: BlockHash,
}

impl Event {
    /// An event of this kind that says nothing more. [`Events::record`] gives it its number.
    pub fn of_kind(kind: EventKind) -> Event {
        Event {
            number: 0,
            kind: kind as u32,
            block: 0,
            block_index: 0,
            token_count: 0,
            has_parent: 0,
            has_adapters: 0,
            hash: BlockHash::default(),
            parent: BlockHash::default(),
        }
    }
}

/// The events that nobody has read yet.
#[derive(Clone, Debug)]
pub struct Events {
    unread: VecDeque<Event>,
    capacity: usize,
    next_number: u64,
}

impl Events {
    /// Keeps up to `capacity` unread events; 0 records none.
    pub fn new(capacity: u32) -> Events {
        Events { unread: VecDeque::new(), capacity: capacity as usize, next_number: 0 }
    }

    /// Records an event; the oldest unread one makes room.
    pub fn record(&mut self, event: Event) {
        if self.capacity == 0 {
            return;
        }
        if self.unread.len() == self.capacity {
            self.unread.pop_front();
        }
        self.unread.push_back(Event { number: self.next_number, ..event });
        self.next_number += 1;
    }

    /// The oldest event that was not read yet.
    pub fn take(&mut self) -> Option<Event> {
        self.unread.pop_front()
    }

    /// The same count, and nothing to read: what is left of a pool that has to be built anew.
    pub fn restarted(&self) -> Events {
        Events { unread: VecDeque::new(), capacity: self.capacity, next_number: self.next_number }
    }
}
