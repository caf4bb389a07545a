//! PURE: parser for the probe's progress lines.

/// Returns the fraction that is done, from 0 to 1, if `line` is `progress DONE TOTAL`.
pub(super) fn part(line: &str) -> Option<f64> {
    let (done, total) = line.strip_prefix("progress ")?.split_once(' ')?;
    let (done, total) = (done.parse::<u64>().ok()?, total.parse::<u64>().ok()?);
    (total > 0).then(|| (done as f64 / total as f64).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_progress_is_progress() {
        assert_eq!(part("progress 512 2048"), Some(0.25));
        assert_eq!(part("progress 4096 2048"), Some(1.0));
        for line in ["progress 1 0", "progress 1", "progress a b", "progress", "warning: progress 1 2", "{}"]
        {
            assert_eq!(part(line), None, "{line}");
        }
    }
}
