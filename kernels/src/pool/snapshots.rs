//! Snapshots of the states of sequences: their budget, the order in which they are evicted, and their stages.
//!
//! This is bookkeeping only: the caller holds the bytes, by [`SnapshotId`]. A snapshot is the state of a sequence after
//! a verified [`ContentId`], so it belongs to every prompt that contains that content.
//!
//! The order of eviction is a segmented LRU. A new snapshot is on probation; its first hit protects it. That of a tail
//! does not: it is the next turn of the conversation, and once that turn has a tail of its own, the one before it is
//! superseded and evicted first. Else the past turns of a few conversations would evict their last ones. The ends of
//! prompts are evicted before places where prompts branch, which two prompts have shown to be used. Protected
//! snapshots are evicted last, but take at most 4/5 of the budget: beyond that, the one whose last hit is the oldest
//! goes back to probation, and so does one without a hit while four times as many were used as there are. So a run of
//! prompts that are never used again does not evict what is used, and what was used once does not stay for ever, also
//! if nothing is hit any more. Snapshots that cannot be matched because their cells are gone are removed with the next
//! one that is taken: each keeps the contents of a whole prompt alive, which the budget does not count. So there are
//! about as many contents as the pool has blocks.

use std::collections::{BTreeMap, BTreeSet};

use super::contents::ContentId;
pub use super::contents::SnapshotId;

/// A snapshot is protected until this number of others, for each snapshot that exists, was taken or hit after it.
const PATIENCE: u64 = 4;

/// Reason for a snapshot. The values are part of the C ABI (`enum espalier_pool_reason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Reason {
    /// A request that has not begun to compute can match there.
    Awaited = 0,
    /// Prompts branch there.
    Branch = 1,
    /// The system prompt ends there.
    SystemPrompt = 2,
    /// The last boundary of a long prompt.
    PromptEnd = 3,
    /// The last boundary of an answer.
    Tail = 4,
    /// One of the boundaries at regular intervals. Evicted before all others that were never hit, and evicts only
    /// snapshots at intervals of other prompts.
    Interval = 5,
}

impl Reason {
    /// All reasons, in the order of their values.
    pub const ALL: [Reason; 6] = [
        Reason::Awaited,
        Reason::Branch,
        Reason::SystemPrompt,
        Reason::PromptEnd,
        Reason::Tail,
        Reason::Interval,
    ];

    /// Returns the reason with this value.
    pub fn from_number(number: u32) -> Option<Reason> {
        Reason::ALL.get(number as usize).copied()
    }
}

/// Permission to write a snapshot.
#[must_use = "the caller frees the bytes of the evicted snapshots, and ends this one"]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The snapshot to write. It is not matched before it has ended.
    pub id: SnapshotId,
    /// Snapshots that were removed for it: the caller frees their bytes first.
    pub evicted: Vec<SnapshotId>,
}

/// A snapshot that is to be taken.
#[derive(Clone, Debug)]
pub struct Demand {
    /// Its size in bytes.
    pub bytes: u64,
    /// The reason for it.
    pub reason: Reason,
    /// A snapshot that it replaces, which is in no use.
    pub replaced: Option<SnapshotId>,
    /// Snapshots that are not evicted for it.
    pub kept: BTreeSet<SnapshotId>,
}

/// Reason why no snapshot is taken. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSnapshot {
    /// There is one of this content, or it is being written.
    Exists,
    /// The budget is smaller, or the snapshots that would have to be evicted are in use.
    Short,
    /// The tokens do not end at a boundary: between two blocks, and not inside of an image.
    NotAtBoundary,
    /// The pool has no state, the sequence no such request, or the blocks of the tokens are not cached yet.
    Invalid,
}

/// Segments in the order in which they are evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Segment {
    /// A tail of an earlier turn of a conversation.
    Superseded,
    /// Taken at an interval, never hit.
    Interval,
    /// Taken at the end of a prompt, never hit: most prompts are sent once.
    PromptEnd,
    /// New, or no longer protected.
    Probation,
    /// Hit.
    Protected,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Writing,
    /// It can be matched. `pins`: number of requests that are restoring it; it is evicted only without any.
    Ready {
        pins: u32,
    },
}

#[derive(Clone, Debug)]
struct Snapshot {
    content: ContentId,
    bytes: u64,
    reason: Reason,
    stage: Stage,
    hits: u64,
    /// Segment and time of the last use; the key in `order` once it is ready.
    place: (Segment, u64),
}

/// All snapshots of a pool.
#[derive(Clone, Debug)]
pub struct Snapshots {
    budget: u64,
    used: u64,
    protected: u64,
    /// Size of the snapshot that was begun last, which the others have about too; 0: none was.
    last_bytes: u64,
    all: BTreeMap<SnapshotId, Snapshot>,
    /// Ready snapshots in the order in which they are evicted.
    order: BTreeMap<(Segment, u64), SnapshotId>,
    last_id: u32,
    /// Number of uses so far: the clock of the order.
    uses: u64,
    /// Counters.
    pub counters: Counters,
}

/// Counters of snapshots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Number of snapshots that were written.
    pub written: u64,
    /// Number of snapshots that were restored.
    pub hits: u64,
    /// Number of snapshots that were evicted when another one was taken, without replaced tails.
    pub evicted: u64,
    /// Number of snapshots that did not get the bytes they need.
    pub refused: u64,
}

impl Snapshots {
    /// Creates an empty set with a budget in bytes.
    pub fn new(budget: u64) -> Snapshots {
        Snapshots {
            budget,
            used: 0,
            protected: 0,
            last_bytes: 0,
            all: BTreeMap::new(),
            order: BTreeMap::new(),
            last_id: 0,
            uses: 0,
            counters: Counters::default(),
        }
    }

    /// Returns an empty set with the same budget that continues ids and counters, for a pool that is reset.
    pub fn restarted(&self) -> Snapshots {
        let Snapshots { budget, last_bytes, last_id, counters, .. } = *self;
        Snapshots { last_bytes, last_id, counters, ..Snapshots::new(budget) }
    }

    /// Returns the budget in bytes.
    pub fn budget(&self) -> u64 {
        self.budget
    }

    /// Returns the bytes of all snapshots, also of those that are being written. At most the budget.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Returns the number of snapshots, also of those that are being written.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns whether there is no snapshot.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the ids of all snapshots.
    pub fn ids(&self) -> impl Iterator<Item = SnapshotId> {
        self.all.keys().copied()
    }

    /// Returns the content after which the state was saved; `None` for an unknown id.
    pub fn content(&self, id: SnapshotId) -> Option<ContentId> {
        self.all.get(&id).map(|snapshot| snapshot.content)
    }

    /// Returns whether the snapshot can be matched.
    pub fn is_ready(&self, id: SnapshotId) -> bool {
        self.all.get(&id).is_some_and(|snapshot| matches!(snapshot.stage, Stage::Ready { .. }))
    }

    /// Returns the number of requests that are restoring the snapshot.
    pub fn pins(&self, id: SnapshotId) -> u32 {
        match self.all.get(&id).map(|snapshot| snapshot.stage) {
            Some(Stage::Ready { pins }) => pins,
            _ => 0,
        }
    }

    /// Returns the expected size of a snapshot in bytes: that of the last one. 0: none was taken yet.
    pub fn expected_bytes(&self) -> u64 {
        self.last_bytes
    }

    /// Returns the number of snapshots of the expected size that the budget is for; without a known size all are.
    pub fn capacity(&self) -> usize {
        let count = self.budget.checked_div(self.last_bytes);
        count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Returns whether a snapshot of this size needs no other one to be evicted.
    pub fn has_space_for(&self, bytes: u64) -> bool {
        bytes <= self.budget - self.used
    }

    /// Returns whether the snapshot is the tail of an answer that was never hit and is not in use: a later tail of the
    /// same answer replaces it.
    pub fn is_unused_tail(&self, id: SnapshotId) -> bool {
        self.all.get(&id).is_some_and(|snapshot| {
            snapshot.reason == Reason::Tail
                && snapshot.hits == 0
                && snapshot.stage == Stage::Ready { pins: 0 }
        })
    }

    /// Returns the snapshots to remove for a new one: the one that it replaces, all for whose content `can_be_matched`
    /// is false, and as many others as necessary, in the order of eviction. `None`: there are not enough that are not
    /// in use.
    pub fn find_victims(
        &self,
        demand: &Demand,
        can_be_matched: impl Fn(ContentId) -> bool,
    ) -> Option<Vec<SnapshotId>> {
        let bytes_of = |id: &SnapshotId| self.all.get(id).map_or(0, |snapshot| snapshot.bytes);
        if demand.bytes > self.budget {
            return None;
        }
        let is_usable = |id: &SnapshotId| self.content(*id).is_some_and(&can_be_matched);
        let unusable = self.candidates(demand).filter(|id| !is_usable(id));
        let mut victims: Vec<SnapshotId> = demand.replaced.into_iter().chain(unusable).collect();
        let mut missing = demand.bytes.saturating_sub(self.budget - self.used);
        missing = missing.saturating_sub(victims.iter().map(bytes_of).sum());
        for id in
            self.candidates(demand).filter(is_usable).filter(|id| self.is_worth_less(*id, demand.reason))
        {
            if missing == 0 {
                break;
            }
            victims.push(id);
            missing = missing.saturating_sub(bytes_of(&id));
        }
        (missing == 0).then_some(victims)
    }

    /// Returns the snapshots that may be evicted for another one, in the order of eviction.
    fn candidates(&self, demand: &Demand) -> impl Iterator<Item = SnapshotId> {
        let is_free = move |id: &SnapshotId| self.pins(*id) == 0 && !demand.kept.contains(id);
        self.order.values().copied().filter(move |id| Some(*id) != demand.replaced && is_free(id))
    }

    /// Returns whether the snapshot may be evicted for one with this reason: what is taken at an interval is a guess,
    /// and evicts only other guesses.
    fn is_worth_less(&self, id: SnapshotId, reason: Reason) -> bool {
        let segment = self.all.get(&id).map(|snapshot| snapshot.place.0);
        reason != Reason::Interval || segment.is_some_and(|segment| segment <= Segment::Interval)
    }

    /// Begins to write a snapshot for which the victims were removed.
    pub fn begin(&mut self, content: ContentId, bytes: u64, reason: Reason) -> SnapshotId {
        let segment = match reason {
            Reason::Interval => Segment::Interval,
            Reason::PromptEnd => Segment::PromptEnd,
            _ => Segment::Probation,
        };
        self.release_unused();
        let id = self.next_id();
        let place = (segment, self.next_use());
        (self.used, self.last_bytes) = (self.used + bytes, bytes);
        self.all.insert(id, Snapshot { content, bytes, reason, stage: Stage::Writing, hits: 0, place });
        id
    }

    /// Ends the protection of snapshots that were not hit for long: without this, snapshots of prompts that are no
    /// longer sent would leave the others a fifth of the budget for ever.
    fn release_unused(&mut self) {
        // With the one that is taken now.
        let patience = PATIENCE * (self.all.len() as u64 + 1);
        while let Some((oldest, last_use)) = self.oldest_protected()
            && self.uses - last_use > patience
        {
            self.move_to(oldest, Segment::Probation);
        }
    }

    /// Returns the protected snapshot whose last hit is the oldest, and the time of that hit.
    fn oldest_protected(&self) -> Option<(SnapshotId, u64)> {
        let mut protected = self.order.range((Segment::Protected, 0)..);
        protected.next().map(|((_, last_use), id)| (*id, *last_use))
    }

    fn next_id(&mut self) -> SnapshotId {
        loop {
            self.last_id = self.last_id.wrapping_add(1);
            let id = SnapshotId(self.last_id);
            if id.0 != 0 && !self.all.contains_key(&id) {
                return id;
            }
        }
    }

    fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    /// Makes a snapshot that was written ready. Does nothing if it is not being written.
    pub fn complete(&mut self, id: SnapshotId) {
        let written = self.all.get_mut(&id).filter(|snapshot| snapshot.stage == Stage::Writing);
        if let Some(snapshot) = written {
            snapshot.stage = Stage::Ready { pins: 0 };
            self.order.insert(snapshot.place, id);
            self.counters.written += 1;
        }
    }

    /// Returns whether the snapshot has begun and not ended.
    pub fn is_being_written(&self, id: SnapshotId) -> bool {
        self.all.get(&id).is_some_and(|snapshot| snapshot.stage == Stage::Writing)
    }

    /// Removes a snapshot, whatever its stage. Returns its content; `None` for an unknown id.
    pub fn remove(&mut self, id: SnapshotId) -> Option<ContentId> {
        let snapshot = self.all.remove(&id)?;
        self.order.remove(&snapshot.place);
        self.used -= snapshot.bytes;
        if snapshot.place.0 == Segment::Protected {
            self.protected -= snapshot.bytes;
        }
        Some(snapshot.content)
    }

    /// Keeps a ready snapshot from being evicted, until [`Snapshots::unpin`].
    pub fn pin(&mut self, id: SnapshotId) {
        if let Some(Stage::Ready { pins }) = self.stage_mut(id) {
            *pins += 1;
        }
    }

    /// Drops one pin. Does nothing if the snapshot is gone.
    pub fn unpin(&mut self, id: SnapshotId) {
        if let Some(Stage::Ready { pins }) = self.stage_mut(id) {
            *pins = pins.saturating_sub(1);
        }
    }

    fn stage_mut(&mut self, id: SnapshotId) -> Option<&mut Stage> {
        self.all.get_mut(&id).map(|snapshot| &mut snapshot.stage)
    }

    /// Records that a ready snapshot was restored: it is protected from here on, but for the first hit of a tail. Does
    /// nothing if it is gone.
    pub fn record_hit(&mut self, id: SnapshotId) {
        let Some(snapshot) = self.all.get_mut(&id) else { return };
        snapshot.hits += 1;
        self.counters.hits += 1;
        let segment = match self.is_tail_of_one(id) {
            true => Segment::Probation,
            false => Segment::Protected,
        };
        self.move_to(id, segment);
        while u128::from(self.protected) * 5 > u128::from(self.budget) * 4 {
            let Some((oldest, _)) = self.oldest_protected() else { return };
            self.move_to(oldest, Segment::Probation);
        }
    }

    /// Records that the conversation that continued from this tail has a later one: if nothing else did, it is evicted
    /// first.
    pub fn supersede(&mut self, id: SnapshotId) {
        if self.is_ready(id) && self.is_tail_of_one(id) {
            self.move_to(id, Segment::Superseded);
        }
    }

    /// Returns whether the snapshot is the tail of an answer from which one request has continued. A request that was
    /// preempted and continues from it again counts as two.
    fn is_tail_of_one(&self, id: SnapshotId) -> bool {
        self.all.get(&id).is_some_and(|snapshot| snapshot.reason == Reason::Tail && snapshot.hits == 1)
    }

    /// Moves a ready snapshot to the end of a segment.
    fn move_to(&mut self, id: SnapshotId, segment: Segment) {
        let place = (segment, self.next_use());
        let Some(snapshot) = self.all.get_mut(&id) else { return };
        let before = std::mem::replace(&mut snapshot.place, place);
        self.order.remove(&before);
        self.order.insert(place, id);
        if before.0 == Segment::Protected {
            self.protected -= snapshot.bytes;
        }
        if segment == Segment::Protected {
            self.protected += snapshot.bytes;
        }
    }
}
