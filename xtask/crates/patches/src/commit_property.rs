//! Upstream's commits from the pin to the tip, and the commits at which a property begins to hold.
//!
//! Only descendants of the pin count: a branch that forked before the pin may lack what the pin has, so its commits say
//! nothing about a patch. Its changes are attributed to the merge that brings them in.

/// A direct predecessor of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// The pin.
    Pin,
    /// Another commit, by its index in the history.
    Commit(usize),
}

/// Returns, for each commit, its direct predecessors that descend from the pin, or the pin itself. The input states for
/// each commit whether it directly follows the pin, and the indices of its parents; parents come before children.
pub fn before_each(commits: &[(bool, &[usize])]) -> Vec<Vec<Before>> {
    let mut predecessors: Vec<Vec<Before>> = Vec::with_capacity(commits.len());
    for (follows_pin, parents) in commits {
        let has_pin = |at: &&usize| predecessors.get(**at).is_some_and(|before| !before.is_empty());
        let parents = parents.iter().filter(has_pin).map(|at| Before::Commit(*at));
        let before = follows_pin.then_some(Before::Pin).into_iter().chain(parents).collect();
        predecessors.push(before);
    }
    predecessors
}

/// A yes/no property of the pin and of each commit.
pub struct CommitProperty<'a> {
    /// Direct predecessors of each commit.
    pub before: &'a [Vec<Before>],
    /// Whether the property holds at the pin.
    pub at_pin: bool,
    /// Whether the property holds at each commit.
    pub at: &'a [bool],
}

impl CommitProperty<'_> {
    fn is_so(&self, place: Before) -> bool {
        match place {
            Before::Pin => self.at_pin,
            Before::Commit(at) => self.at.get(at).copied().unwrap_or_default(),
        }
    }

    fn before(&self, at: usize) -> &[Before] {
        self.before.get(at).map_or(&[], Vec::as_slice)
    }

    /// Commits at which the property begins: it holds there and at none of the direct predecessors.
    pub fn beginnings(&self) -> Vec<usize> {
        let begins = |at: &usize| {
            let before = self.before(*at);
            !before.is_empty() && self.is_so(Before::Commit(*at)) && !before.iter().any(|p| self.is_so(*p))
        };
        (0..self.at.len()).filter(begins).collect()
    }

    /// Beginnings from which the property holds without interruption along some path to the last commit.
    pub fn lasting_beginnings(&self) -> Vec<usize> {
        let mut lasting = vec![false; self.at.len()];
        if let Some(last) = lasting.last_mut() {
            *last = self.at.last().copied().unwrap_or_default();
        }
        // Parents come before children, so one backward pass covers every path.
        for at in (0..self.at.len()).rev() {
            if !lasting.get(at).copied().unwrap_or_default() {
                continue;
            }
            for before in self.before(at).iter().filter(|before| self.is_so(**before)) {
                if let Before::Commit(parent) = before
                    && let Some(lasts) = lasting.get_mut(*parent)
                {
                    *lasts = true;
                }
            }
        }
        let is_lasting = |at: &usize| lasting.get(*at).copied().unwrap_or_default();
        self.beginnings().into_iter().filter(is_lasting).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Before, CommitProperty, before_each};

    #[test]
    fn a_branch_from_before_the_pin_does_not_count() {
        // 0 follows the pin, 1 forked before it, 2 merges both, 3 descends from the branch only.
        let commits: [(bool, &[usize]); 4] = [(true, &[]), (false, &[]), (false, &[0, 1]), (false, &[1])];
        let predecessors = before_each(&commits);
        assert_eq!(predecessors, [vec![Before::Pin], vec![], vec![Before::Commit(0)], vec![]]);
        let found = CommitProperty { before: &predecessors, at_pin: false, at: &[false, true, true, true] };
        assert_eq!(found.beginnings(), [2]);
    }

    #[test]
    fn broken_fixed_and_broken_again() {
        let commits: [(bool, &[usize]); 4] = [(true, &[]), (false, &[0]), (false, &[1]), (false, &[2])];
        let predecessors = before_each(&commits);
        let broken = CommitProperty { before: &predecessors, at_pin: false, at: &[true, false, true, true] };
        assert_eq!(broken.beginnings(), [0, 2]);
        assert_eq!(broken.lasting_beginnings(), [2]);
        let from_the_start = CommitProperty { before: &predecessors, at_pin: true, at: &[true; 4] };
        assert!(from_the_start.beginnings().is_empty());
    }

    #[test]
    fn a_merge_carries_on_what_one_side_broke() {
        // 0 -> 1 broken, 0 -> 2 fine, 3 merges as broken; then 4 merges a fixed 2 and stays broken.
        let commits: [(bool, &[usize]); 5] =
            [(true, &[]), (false, &[0]), (false, &[0]), (false, &[2, 1]), (false, &[3, 2])];
        let predecessors = before_each(&commits);
        let broken =
            CommitProperty { before: &predecessors, at_pin: false, at: &[false, true, false, true, true] };
        assert_eq!((broken.beginnings(), broken.lasting_beginnings()), (vec![1], vec![1]));
        let by_the_merge =
            CommitProperty { before: &predecessors, at_pin: false, at: &[false, false, false, true, true] };
        assert_eq!(by_the_merge.lasting_beginnings(), [3]);
    }
}
