//! Inputs besides its tokens that the KV of a block depends on.

/// An input that the KV of some positions depends on, such as the hash of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extra {
    /// The first position it covers.
    pub first: u32,
    /// Number of positions it covers; at least 1.
    pub length: u32,
    /// Its key.
    pub key: Vec<u8>,
}

impl Extra {
    fn end(&self) -> u64 {
        u64::from(self.first) + u64::from(self.length)
    }
}

/// All inputs of a request besides its tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestKeys {
    /// Cache salt: only requests with the same salt share blocks. It enters the first block, and by the chain of hashes
    /// all others; empty: shared with all.
    pub salt: Vec<u8>,
    /// Adapters with their scales. They enter every block; empty: none.
    pub adapters: Vec<u8>,
    /// Sorted by their first position, not overlapping, none of length 0.
    pub extras: Vec<Extra>,
}

/// The extra keys of one block, in a canonical encoding. Most blocks have none, which is the empty encoding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtraKeys {
    /// The encoded keys.
    pub encoded: Box<[u8]>,
    /// Whether they include adapters.
    pub has_adapters: bool,
}

const SALT: u8 = 1;
const ADAPTERS: u8 = 2;
const EXTRA: u8 = 3;

impl RequestKeys {
    /// Returns whether the extras are sorted, disjoint and not empty.
    pub fn are_valid(&self) -> bool {
        let none_empty = self.extras.iter().all(|extra| extra.length > 0);
        none_empty && self.extras.windows(2).all(|pair| pair[0].end() <= u64::from(pair[1].first))
    }

    /// Returns the end of each extra, in order.
    pub fn extra_ends(&self) -> impl Iterator<Item = u64> {
        self.extras.iter().map(Extra::end)
    }

    /// Returns `positions`, or the start of the extra that continues across it.
    pub fn end_before_cut_extra(&self, positions: u64) -> u64 {
        let at = self.extras.partition_point(|extra| extra.end() <= positions);
        let cut = self.extras.get(at).filter(|extra| u64::from(extra.first) < positions);
        cut.map_or(positions, |extra| u64::from(extra.first))
    }

    /// Returns the end of the positions from `first` on that are computed at once. Those of an extra are computed on
    /// their own, so that is the end of the extra that covers `first`, or the start of the next one.
    pub fn end_of_run(&self, first: u64) -> u64 {
        let at = self.extras.partition_point(|extra| extra.end() <= first);
        self.extras.get(at).map_or(u64::MAX, |extra| {
            let start = u64::from(extra.first);
            if start > first { start } else { extra.end() }
        })
    }

    /// Returns the keys of the block whose first position is `start` and that has `length` tokens.
    pub fn of_block(&self, start: u64, length: u32) -> ExtraKeys {
        let mut encoded = Vec::new();
        if start == 0 && !self.salt.is_empty() {
            push_key(&mut encoded, SALT, &self.salt);
        }
        if !self.adapters.is_empty() {
            push_key(&mut encoded, ADAPTERS, &self.adapters);
        }
        for extra in self.extras_between(start, start + u64::from(length)) {
            push_extra(&mut encoded, extra, start);
        }
        ExtraKeys { encoded: encoded.into(), has_adapters: !self.adapters.is_empty() }
    }

    fn extras_between(&self, start: u64, end: u64) -> impl Iterator<Item = &Extra> {
        let first = self.extras.partition_point(|extra| extra.end() <= start);
        self.extras[first..].iter().take_while(move |extra| u64::from(extra.first) < end)
    }
}

fn push_key(encoded: &mut Vec<u8>, tag: u8, key: &[u8]) {
    encoded.push(tag);
    encoded.extend_from_slice(&(key.len() as u64).to_le_bytes());
    encoded.extend_from_slice(key);
}

/// Encodes an extra. The offset is relative to the block, and negative if the extra began before it: two blocks with
/// the same placeholder tokens inside one image must have different keys.
fn push_extra(encoded: &mut Vec<u8>, extra: &Extra, start: u64) {
    let offset = i64::from(extra.first) - start.cast_signed();
    push_key(encoded, EXTRA, &extra.key);
    encoded.extend_from_slice(&offset.to_le_bytes());
    encoded.extend_from_slice(&extra.length.to_le_bytes());
}
