//! The known name that a misspelt one resembles.

/// Returns the name in `known` that `name` most likely means: the nearest one, if at most a third of the letters of
/// `name` are wrong.
pub fn meant<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let (distance, nearest) = nearest(name, known)?;
    (distance <= name.len() / 3).then_some(nearest)
}

/// Returns the name in `known` with the smallest edit distance from `name`, after that distance; `None` if `known` is
/// empty.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<(usize, &'a str)> {
    let distances = known.into_iter().map(|known| (distance(name, known), known));
    distances.min_by_key(|(distance, _)| *distance)
}

/// Edit distance: the number of letters to insert, delete, substitute, or swap with their neighbour.
fn distance(left: &str, right: &str) -> usize {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, a) in left.iter().enumerate() {
        let mut line = vec![row + 1];
        for (column, b) in right.iter().enumerate() {
            let changed = last[column] + usize::from(a != b);
            let mut least = changed.min(last[column + 1] + 1).min(line[column] + 1);
            if row > 0 && column > 0 && *a == right[column - 1] && left[row - 1] == *b {
                least = least.min(before_last[column - 1] + 1);
            }
            line.push(least);
        }
        before_last = std::mem::replace(&mut last, line);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_that_are_swapped_are_one_mistake() {
        assert_eq!((distance("abc", "acb"), distance("abc", "abc"), distance("", "ab")), (1, 0, 2));
    }

    #[test]
    fn a_name_that_resembles_none_means_none() {
        let known = ["answers", "negative-scale"];
        assert_eq!(meant("answer", known), Some("answers"));
        assert_eq!(meant("negative_scael", known), Some("negative-scale"));
        assert_eq!(meant("images", known), None);
        assert_eq!(meant("", known), None);
        assert_eq!(nearest("answer", []), None);
    }
}
