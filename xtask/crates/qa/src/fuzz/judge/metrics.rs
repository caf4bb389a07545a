//! Oracle for `/metrics`, parsed like Prometheus does: counters never decrease, histograms are consistent.

use std::collections::BTreeMap;

use super::Finding;

/// Values by name with labels.
pub(super) type Samples = BTreeMap<String, f64>;

/// Compares each scrape with the previous one.
pub fn judge(scrapes: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut before = Samples::new();
    for (number, text) in scrapes.iter().enumerate() {
        let found = |expected: &str, came: String| Finding {
            oracle: "metrics",
            asked: format!("/metrics, number {number}"),
            expected: expected.to_string(),
            came,
        };
        match read(text) {
            Err(line) => findings.push(found("a name, labels and a number in each line", line)),
            Ok(now) => {
                findings.extend(went_back(&before, &now).map(|came| found("counters that only grow", came)));
                findings.extend(broken_histogram(&now).map(|came| found("whole histograms", came)));
                before = now;
            }
        }
    }
    findings
}

/// Parses samples by name with labels; the error is the first line that is not a sample.
pub(super) fn read(text: &str) -> Result<Samples, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| read_line(line).ok_or_else(|| line.to_string())).collect()
}

fn read_line(line: &str) -> Option<(String, f64)> {
    let end = line.rfind('}').map_or_else(|| line.find(' '), |at| Some(at + 1))?;
    let (name, value) = line.split_at(end);
    let bare = name.split('{').next()?;
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "_:".contains(letter);
    let labels = &name[bare.len()..];
    let labels_are_right = labels.is_empty()
        || labels[1..labels.len() - 1].split(',').all(|label| {
            label.split_once('=').is_some_and(|(_, value)| value.starts_with('"') && value.ends_with('"'))
        });
    let is_named = bare.chars().all(is_letter) && bare.starts_with(|first: char| !first.is_ascii_digit());
    (is_named && labels_are_right).then_some(())?;
    Some((name.to_string(), value.trim().parse().ok()?))
}

fn is_counter(name: &str) -> bool {
    let bare = name.split('{').next().unwrap_or(name);
    ["_total", "_count", "_bucket", "_sum"].iter().any(|end| bare.ends_with(end))
}

fn went_back(before: &Samples, now: &Samples) -> Option<String> {
    before.iter().filter(|(name, _)| is_counter(name)).find_map(|(name, old)| match now.get(name) {
        Some(new) if new >= old => None,
        Some(new) => Some(format!("{name} went from {old} to {new}")),
        None => Some(format!("{name} is gone")),
    })
}

/// Returns a histogram whose buckets do not grow with their bounds, or whose last bucket is not the count.
fn broken_histogram(samples: &Samples) -> Option<String> {
    let mut histograms: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for (name, count) in samples {
        let Some((bare, labels)) = name.split_once("_bucket{") else { continue };
        let bound = labels.split("le=\"").nth(1).and_then(|rest| rest.split('"').next());
        let bound = bound.and_then(|bound| bound.replace("+Inf", "inf").parse().ok()).unwrap_or(f64::NAN);
        histograms.entry(bare).or_default().push((bound, *count));
    }
    histograms.into_iter().find_map(|(name, mut buckets)| {
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        let grows = buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1);
        let (bound, last) = *buckets.last()?;
        let count = samples.get(&format!("{name}_count")).copied();
        let is_whole = grows && bound.is_infinite() && count == Some(last);
        (!is_whole).then(|| format!("{name}: {buckets:?}, count {count:?}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(scrapes: &[&str]) -> usize {
        judge(&scrapes.iter().map(ToString::to_string).collect::<Vec<_>>()).len()
    }

    const HISTOGRAM: &str = "a_bucket{le=\"0.5\"} 1\na_bucket{le=\"+Inf\"} 2\na_sum 0.9\na_count 2\n";

    #[test]
    fn valid_metrics_are_accepted() {
        assert_eq!(
            judged(&["# HELP x y\nllamacpp:x_total 1\nllamacpp:y 3.5e2\n", "llamacpp:x_total 2\n"]),
            0
        );
        assert_eq!(judged(&[HISTOGRAM, HISTOGRAM]), 0);
        assert_eq!(judged(&["x_total one\n"]), 1);
        assert_eq!(judged(&["x{le=1} 1\n"]), 1);
    }

    #[test]
    fn a_counter_that_goes_back_is_found_and_a_gauge_may() {
        assert_eq!(judged(&["x_total 2\n", "x_total 1\n"]), 1);
        assert_eq!(judged(&["x_total 2\n", "\n"]), 1);
        assert_eq!(judged(&["x 2\n", "x 1\n"]), 0);
    }

    #[test]
    fn a_histogram_that_is_not_whole_is_found() {
        assert_eq!(judged(&[&HISTOGRAM.replace("a_count 2", "a_count 3")]), 1);
        assert_eq!(judged(&[&HISTOGRAM.replace("0.5\"} 1", "0.5\"} 9")]), 1);
    }
}
