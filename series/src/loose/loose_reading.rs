//! Options for applying a loose diff.

/// Options for applying a loose diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LooseReading {
    /// Number of leading path components to strip (`-p`).
    pub strip: u32,
    /// Whether it is applied in reverse.
    pub reverse: bool,
    /// Whether a hunk may be applied with less context, as git's `-C1` allows.
    pub may_fuzz: bool,
    /// Whether to look for hunks that may belong to another place
    /// ([`PlacedHunks::uncertain`](crate::PlacedHunks::uncertain)).
    pub finds_uncertain: bool,
}
