//! Search for all occurrences of a run of lines in a file.

use super::line_index::LineIndex;

/// A text in which runs of lines are looked up.
///
/// # Examples
///
/// ```
/// use espalier_series::LineSearch;
///
/// let search = LineSearch::new(b"a\nb\nc\na\nb\n");
/// assert_eq!(search.places_of(&[b"a\n", b"b\n"], 9), [0, 3]);
/// assert!(search.places_of(&[b"d\n"], 9).is_empty());
/// ```
pub struct LineSearch<'a>(LineIndex<'a>);

impl<'a> LineSearch<'a> {
    /// Prepares a text.
    pub fn new(text: &'a [u8]) -> LineSearch<'a> {
        LineSearch(LineIndex::new(text))
    }

    /// Returns the first line, from 0, of each place that has `lines`, at most `limit` of them. Lines have their line
    /// feeds.
    pub fn places_of(&self, lines: &[&[u8]], limit: usize) -> Vec<usize> {
        let needle = self.0.ids_of(lines.iter().copied());
        needle.map_or_else(Vec::new, |needle| find_all(&self.0.ids, &needle, limit))
    }
}

/// Returns the positions of `needle` in `haystack`, at most `limit`, including overlapping ones. An empty needle does
/// not occur.
///
/// Knuth-Morris-Pratt search: linear, whatever a hostile patch repeats.
pub(crate) fn find_all(haystack: &[u32], needle: &[u32], limit: usize) -> Vec<usize> {
    let mut places = Vec::new();
    if needle.is_empty() || needle.len() > haystack.len() {
        return places;
    }
    let fallback = fallback_table(needle);
    let mut matched = 0usize;
    for (at, id) in haystack.iter().enumerate() {
        matched = advance(needle, &fallback, matched, *id);
        if matched == needle.len() {
            places.push(at + 1 - needle.len());
            if places.len() == limit {
                break;
            }
            matched = fall_back(&fallback, matched);
        }
    }
    places
}

/// Returns the matched length of the needle after reading `id`, given the length matched before.
fn advance(needle: &[u32], fallback: &[usize], mut matched: usize, id: u32) -> usize {
    while matched > 0 && needle.get(matched) != Some(&id) {
        matched = fall_back(fallback, matched);
    }
    matched + usize::from(needle.get(matched) == Some(&id))
}

fn fall_back(fallback: &[usize], matched: usize) -> usize {
    matched.checked_sub(1).and_then(|last| fallback.get(last)).copied().unwrap_or(0)
}

/// Returns for each matched length the longest shorter prefix that is matched as well.
fn fallback_table(needle: &[u32]) -> Vec<usize> {
    let mut table = vec![0];
    let mut matched = 0usize;
    for id in needle.iter().skip(1) {
        matched = advance(needle, &table, matched, *id);
        table.push(matched);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::find_all;

    #[test]
    fn finds_every_place() {
        assert_eq!(find_all(&[1, 2, 1, 2, 1], &[1, 2, 1], 9), [0, 2]);
        assert_eq!(find_all(&[1, 1, 1, 1], &[1, 1], 9), [0, 1, 2]);
        assert_eq!(find_all(&[1, 1, 1, 1], &[1, 1], 2), [0, 1]);
        assert!(find_all(&[1, 2], &[], 9).is_empty());
        assert!(find_all(&[1], &[1, 1], 9).is_empty());
    }

    #[test]
    fn agrees_with_a_plain_search() {
        let mut state = 7u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % 2
        };
        for _ in 0..500 {
            let haystack: Vec<u32> = (0..40).map(|_| next()).collect();
            let needle: Vec<u32> = (0..4).map(|_| next()).collect();
            let windows = haystack.windows(4).enumerate();
            let plain: Vec<usize> = windows.filter(|(_, w)| *w == needle).map(|(at, _)| at).collect();
            assert_eq!(find_all(&haystack, &needle, 99), plain);
        }
    }

    #[test]
    fn stays_linear_on_repetition() {
        let haystack = vec![1; 1_000_000];
        let mut needle = vec![1; 500_000];
        needle.push(2);
        assert!(find_all(&haystack, &needle, 16).is_empty());
    }
}
