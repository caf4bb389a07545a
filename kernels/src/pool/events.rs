//! Events of cached blocks, for external observers such as a KV-aware router.

use std::collections::VecDeque;

use super::groups::Group;
use super::hash::BlockHash;

/// Kind of an event. The values are part of the C ABI (`enum espalier_pool_event_kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum EventKind {
    /// A block was cached.
    Stored = 0,
    /// A cached block was evicted.
    Removed = 1,
    /// All cached blocks were dropped.
    Cleared = 2,
}

/// One event. The layout is `struct espalier_pool_event` of the C header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Event {
    /// Sequence number, counted from 0: a gap means that events were dropped unread.
    pub number: u64,
    /// The [`EventKind`] as an integer.
    pub kind: u32,
    /// The first cell of the block; 0 for `Cleared`.
    pub block: u32,
    /// `Stored`: index of the block in its prompt, from 0. Else 0.
    pub block_index: u32,
    /// `Stored`: number of tokens in the block. Else 0.
    pub token_count: u32,
    /// `Stored`: 1 if a block precedes it in its prompt. Else 0.
    pub has_parent: u32,
    /// `Stored`: 1 if the KV depends on adapters. Else 0.
    pub has_adapters: u32,
    /// `Stored`, `Removed`: the [`Group`] of the block as an integer. Else 0.
    pub group: u32,
    /// The hash of the block and all before it; zeros for `Cleared`.
    pub hash: BlockHash,
    /// The hash of the block before it, zeros if there is none.
    pub parent: BlockHash,
}

impl Event {
    /// Creates an event of this kind with all other fields 0. [`Events::record`] sets its number.
    pub fn of_kind(kind: EventKind) -> Event {
        Event {
            number: 0,
            kind: kind as u32,
            block: 0,
            block_index: 0,
            token_count: 0,
            has_parent: 0,
            has_adapters: 0,
            group: Group::Full as u32,
            hash: BlockHash::default(),
            parent: BlockHash::default(),
        }
    }
}

/// Queue of unread events.
#[derive(Clone, Debug)]
pub struct Events {
    unread: VecDeque<Event>,
    capacity: usize,
    next_number: u64,
}

impl Events {
    /// Creates a queue of up to `capacity` unread events; 0 records none.
    pub fn new(capacity: u32) -> Events {
        Events { unread: VecDeque::new(), capacity: capacity as usize, next_number: 0 }
    }

    /// Records an event; if the queue is full, drops the oldest.
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

    /// Removes and returns the oldest unread event.
    pub fn take(&mut self) -> Option<Event> {
        self.unread.pop_front()
    }

    /// Returns an empty queue that continues the numbering, for a pool that is reset.
    pub fn restarted(&self) -> Events {
        Events { unread: VecDeque::new(), capacity: self.capacity, next_number: self.next_number }
    }
}
