//! Groups of layers: the blocks of each are counted, and can be short, on their own.

/// A group of layers, which has blocks of its own. The values are part of the C ABI (`enum espalier_pool_group`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Group {
    /// Layers that attend to all tokens of a sequence. In a pool without windows it has all layers.
    Full = 0,
    /// Layers that attend to the last tokens of a sequence. Without windows it has no blocks.
    Window = 1,
}

impl Group {
    /// All groups, in the order of their values.
    pub const ALL: [Group; 2] = [Group::Full, Group::Window];

    /// Returns the group with this value.
    pub fn from_number(number: u32) -> Option<Group> {
        Group::ALL.get(number as usize).copied()
    }
}
