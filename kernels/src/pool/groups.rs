//! Groups of layers, and a value for each of them.
//!
//! The caches of the layers of a group are placed alike: a token has the same cell in each of them. Each group has
//! cells, blocks, a free list and block tables of its own. Contents and requests belong to all groups: the tokens of a
//! sequence do not depend on the layer.
//!
//! Most models have one group, [`Group::Full`]: see [`crate::pool::windows`].

use std::ops::{Index, IndexMut};

pub use crate::scheduler::Group;

/// One value for each group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Groups<T>([T; 2]);

impl<T> Groups<T> {
    /// Creates the values of both groups.
    pub const fn new(full: T, window: T) -> Groups<T> {
        Groups([full, window])
    }
}

impl<T> Index<Group> for Groups<T> {
    type Output = T;

    fn index(&self, group: Group) -> &T {
        &self.0[group as usize]
    }
}

impl<T> IndexMut<Group> for Groups<T> {
    fn index_mut(&mut self, group: Group) -> &mut T {
        &mut self.0[group as usize]
    }
}
