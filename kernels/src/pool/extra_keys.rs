//! What the KV of a block depends on besides its tokens.

/// Something that the KV of some positions depends on, such as the hash of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extra {
    /// The first position it covers.
    pub first: u32,
    /// How many positions it covers; at least 1.
    pub length: u32,
    /// What it is.
    pub key: Vec<u8>,
}

impl Extra {
    fn end(&self) -> u64 {
        u64::from(self.first) + u64::from(self.length)
    }
}

/// What a whole request brings besides its tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestKeys {
    /// Who may share. Enters the first block, and by the chain of hashes all others; empty: anyone.
    pub salt: Vec<u8>,
    /// Adapters with their scales. Enters every block; empty: none.
    pub adapters: Vec<u8>,
    /// Sorted by their first position, not overlapping, none of length 0.
    pub extras: Vec<Extra>,
}

/// The extra keys of one block, in an encoding that has one text for one meaning. Most blocks have
/// none, which is the empty text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtraKeys {
    /// The encoded keys.
    pub encoded: Box<[u8]>,
    /// Are adapters among them?
    pub has_adapters: bool,
}

const SALT: u8 = 1;
const ADAPTERS: u8 = 2;
const EXTRA: u8 = 3;

impl RequestKeys {
    /// Are the extras sorted, apart, and none of them empty?
    pub fn are_valid(&self) -> bool {
        let none_empty = self.extras.iter().all(|extra| extra.length > 0);
        none_empty && self.extras.windows(2).all(|pair| pair[0].end() <= u64::from(pair[1].first))
    }

    /// `positions`, or where the extra begins that goes on there.
    pub fn end_before_cut_extra(&self, positions: u64) -> u64 {
        let at = self.extras.partition_point(|extra| extra.end() <= positions);
        let cut = self.extras.get(at).filter(|extra| u64::from(extra.first) < positions);
        cut.map_or(positions, |extra| u64::from(extra.first))
    }

    /// The keys of the block whose first position is `start`.
    pub fn of_block(&self, start: u64, block_size: u32) -> ExtraKeys {
        let mut encoded = Vec::new();
        if start == 0 && !self.salt.is_empty() {
            push_key(&mut encoded, SALT, &self.salt);
        }
        if !self.adapters.is_empty() {
            push_key(&mut encoded, ADAPTERS, &self.adapters);
        }
        for extra in self.extras_between(start, start + u64::from(block_size)) {
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

/// The offset is relative to the block and negative when the extra began before it: two blocks
/// with the same placeholder tokens inside one image must not look alike.
fn push_extra(encoded: &mut Vec<u8>, extra: &Extra, start: u64) {
    let offset = i64::from(extra.first) - start.cast_signed();
    push_key(encoded, EXTRA, &extra.key);
    encoded.extend_from_slice(&offset.to_le_bytes());
    encoded.extend_from_slice(&extra.length.to_le_bytes());
}
