//! Number of occurrences of each line before and after a patch, on both bases.

use std::collections::HashMap;

/// The four versions of a text as lines.
pub(super) struct LineTexts<'a> {
    /// Before the patch, on its old base.
    pub old_before: Vec<&'a [u8]>,
    /// After it.
    pub old_after: Vec<&'a [u8]>,
    /// Before the patch, on its new base.
    pub new_before: Vec<&'a [u8]>,
    /// After it.
    pub new_after: Vec<&'a [u8]>,
}

/// Lines with the number of times; negative if they are missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Bag<'a>(HashMap<&'a [u8], i64>);

impl<'a> Bag<'a> {
    pub fn of(lines: &[&'a [u8]]) -> Bag<'a> {
        let mut bag = Bag::default();
        bag.add(lines, 1);
        bag
    }

    /// Adds each of `lines` this many times.
    pub fn add(&mut self, lines: &[&'a [u8]], times: i64) {
        lines.iter().for_each(|line| *self.0.entry(*line).or_default() += times);
    }

    pub fn count(&self, line: &[u8]) -> i64 {
        self.0.get(line).copied().unwrap_or_default()
    }

    /// Removes one of `line`; returns false if there is none.
    pub fn take(&mut self, line: &[u8]) -> bool {
        match self.0.get_mut(line).filter(|count| **count > 0) {
            Some(count) => {
                *count -= 1;
                true
            }
            None => false,
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], i64)> {
        self.0.iter().map(|(line, count)| (*line, *count))
    }

    /// Returns the lines that are there, or missing, at least once.
    pub fn without_zeros(mut self) -> Bag<'a> {
        self.0.retain(|_, count| *count != 0);
        self
    }

    /// Returns the number of times each line is in this bag and not in `other`; negative the other way round.
    pub fn minus(&self, other: &Bag<'a>) -> Bag<'a> {
        let mut difference = self.clone();
        other.iter().for_each(|(line, count)| *difference.0.entry(line).or_default() -= count);
        difference
    }
}

/// The occurrences of one line.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Account {
    pub old_before: i64,
    pub old_after: i64,
    pub new_before: i64,
    pub new_after: i64,
    /// Part of the difference that comes from changes that upstream and the patch both made.
    pub shared: i64,
    /// Part of the difference that comes from rewritten lines in which both changes are complete.
    pub rewritten: i64,
}

impl Account {
    /// Returns how many the patch adds on its old base; negative if it deletes them.
    pub fn old_net(&self) -> i64 {
        self.old_after - self.old_before
    }

    /// Returns how many the patch adds on its new base.
    pub fn new_net(&self) -> i64 {
        self.new_after - self.new_before
    }

    /// Returns how many the patch adds more on its new base than on the old one, less what is explained.
    ///
    /// A change that upstream made too may be smaller, down to nothing; it can never be larger, or the opposite. A
    /// line that a patch deleted and that is gone needs no patch to delete it.
    pub fn unexplained(&self) -> i64 {
        let left = self.new_net() - self.old_net() - self.rewritten;
        let (old, new) = (self.old_net(), self.new_net());
        if new < old.min(0) || new > old.max(0) {
            return left;
        }
        let left = match left.signum() == self.shared.signum() {
            true => left - left.signum() * left.abs().min(self.shared.abs()),
            false => left,
        };
        if left > 0 { left.min(self.new_after) } else { left }
    }
}

/// The accounts of all lines of a file.
pub(super) struct Accounts<'a>(HashMap<&'a [u8], Account>);

impl<'a> Accounts<'a> {
    pub fn of(texts: &LineTexts<'a>) -> Accounts<'a> {
        let mut accounts = Accounts(HashMap::with_capacity(texts.new_after.len()));
        accounts.count(&texts.old_before, |account| &mut account.old_before);
        accounts.count(&texts.old_after, |account| &mut account.old_after);
        accounts.count(&texts.new_before, |account| &mut account.new_before);
        accounts.count(&texts.new_after, |account| &mut account.new_after);
        accounts
    }

    fn count(&mut self, lines: &[&'a [u8]], side: impl Fn(&mut Account) -> &mut i64) {
        for line in lines.iter().copied() {
            *side(self.entry(line)) += 1;
        }
    }

    pub fn entry(&mut self, line: &'a [u8]) -> &mut Account {
        self.0.entry(line).or_default()
    }

    pub fn get(&self, line: &[u8]) -> Account {
        self.0.get(line).copied().unwrap_or_default()
    }

    /// Returns the accounts that do not balance, with what is unexplained, in the order of their lines.
    pub fn unbalanced(&self) -> Vec<(&'a [u8], Account, i64)> {
        let open = self.0.iter().map(|(line, account)| (*line, *account, account.unexplained()));
        let mut open: Vec<_> = open.filter(|(_, _, unexplained)| *unexplained != 0).collect();
        open.sort_unstable_by_key(|(line, _, _)| *line);
        open
    }

    /// Returns the number of lines that the patch changes on its old base, and on the new one.
    pub fn sizes(&self) -> (usize, usize) {
        let size = |net: fn(&Account) -> i64| {
            let sizes =
                self.0.values().map(|account| usize::try_from(net(account).abs()).unwrap_or_default());
            sizes.sum::<usize>()
        };
        (size(Account::old_net), size(Account::new_net))
    }
}

#[cfg(test)]
mod tests {
    use super::Account;

    fn account(counts: [i64; 4], shared: i64) -> Account {
        let [old_before, old_after, new_before, new_after] = counts;
        Account { old_before, old_after, new_before, new_after, shared, ..Account::default() }
    }

    #[test]
    fn a_patch_does_the_same_or_what_is_left_of_it() {
        // The same: adds one, deletes one, does nothing.
        for counts in [[0, 1, 0, 1], [1, 0, 1, 0], [2, 2, 5, 5], [1, 2, 3, 4]] {
            assert_eq!(account(counts, 0).unexplained(), 0, "{counts:?}");
        }
        // Upstream has the added line, or deleted the deleted one.
        assert_eq!(account([0, 1, 1, 1], -1).unexplained(), 0);
        assert_eq!(account([1, 0, 0, 0], 1).unexplained(), 0);
        // It has such a line elsewhere, so the patch's own is lost.
        assert_eq!(account([0, 1, 1, 1], 0).unexplained(), -1);
    }

    #[test]
    fn a_shared_change_explains_no_line_too_many() {
        // Both moved the line, to different places: the merge deletes it once and adds it twice.
        assert_eq!(account([1, 1, 1, 2], 1).unexplained(), 1);
        // Both moved one of two to the same place: the merge adds it once and deletes both.
        assert_eq!(account([2, 2, 2, 1], -1).unexplained(), -1);
    }

    #[test]
    fn a_line_that_is_gone_need_not_be_deleted() {
        assert_eq!(account([1, 0, 0, 0], 0).unexplained(), 0);
        assert_eq!(account([1, 0, 1, 1], 0).unexplained(), 1);
    }
}
