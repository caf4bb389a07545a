//! Version ranges as in the `engines` of an npm package: `^20.19.0 || >=22.12.0`.
//!
//! Only used to report early what npm would report late: npm's own check (`engine-strict`) is authoritative, so a range
//! that cannot be parsed admits every version.

use espalier_core::config::pins::Version;

/// Whether `range` admits `version`.
pub fn admits(range: &str, version: Version) -> bool {
    range.split("||").any(|all| admits_all(all, version))
}

/// Space-separated comparisons, all of which have to hold; a space may follow the operator.
fn admits_all(comparisons: &str, version: Version) -> bool {
    let mut text = comparisons.trim().to_string();
    for sign in ["<=", ">=", "<", ">", "^", "~", "="] {
        text = text.replace(&format!("{sign} "), sign);
    }
    text.split_whitespace().all(|comparison| admits_one(comparison, version))
}

fn admits_one(comparison: &str, Version(version): Version) -> bool {
    let digits = comparison.trim_start_matches(['<', '>', '=', '^', '~', 'v']);
    let sign = comparison[..comparison.len() - digits.len()].trim_end_matches('v');
    let Some((numbers, named)) = numbers(digits) else { return true };
    match sign {
        ">=" => version >= numbers,
        ">" => version > numbers && !is_within(version, numbers, named),
        "<" => version < numbers,
        "<=" => version <= numbers || is_within(version, numbers, named),
        "^" => version >= numbers && is_within(version, numbers, first_that_counts(numbers).min(named)),
        "~" => version >= numbers && is_within(version, numbers, named.min(2)),
        "" | "=" => is_within(version, numbers, named),
        _ => true,
    }
}

/// Whether the first `count` numbers are equal.
fn is_within(version: [u32; 3], of: [u32; 3], count: usize) -> bool {
    version[..count] == of[..count]
}

/// Count of leading numbers that `^` fixes, up to the first that is not zero: `^0.2.3` stays below 0.3.
fn first_that_counts(numbers: [u32; 3]) -> usize {
    numbers.iter().position(|number| *number != 0).map_or(3, |at| at + 1)
}

/// Parses up to three numbers, and counts those that were given: `20`, `20.9`, `20.x`.
fn numbers(text: &str) -> Option<([u32; 3], usize)> {
    let text = text.split(['-', '+']).next().unwrap_or_default();
    let mut numbers = [0; 3];
    let mut named = 0;
    for part in text.split('.').take_while(|part| !["x", "X", "*"].contains(part)).take(3) {
        numbers[named] = part.parse().ok()?;
        named += 1;
    }
    Some((numbers, named))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(range: &str) -> Vec<&'static str> {
        let versions = ["18.0.0", "18.20.8", "20.8.1", "20.19.0", "21.0.0", "22.11.0", "22.12.0", "24.1.0"];
        let admits = |text: &&str| admits(range, Version::find_in(text).unwrap());
        versions.into_iter().filter(admits).collect()
    }

    #[test]
    fn ranges_of_packages() {
        assert_eq!(admitted("^20.19.0 || >=22.12.0"), ["20.19.0", "22.12.0", "24.1.0"]);
        assert_eq!(admitted("^18.18.0 || ^20.9.0 || >=21.1.0"), admitted("^18.18 || ^20.9 || >= 21.1"));
        assert_eq!(admitted("18 || 20.x || >=24"), ["18.0.0", "18.20.8", "20.8.1", "20.19.0", "24.1.0"]);
        assert_eq!(admitted(">=18.0.0 <20 || ~22.12"), ["18.0.0", "18.20.8", "22.12.0"]);
        assert_eq!(admitted(">20"), ["21.0.0", "22.11.0", "22.12.0", "24.1.0"]);
        assert_eq!(admitted("<=20"), ["18.0.0", "18.20.8", "20.8.1", "20.19.0"]);
        assert_eq!(admitted("=20.19.0"), ["20.19.0"]);
        assert_eq!(admitted("v20.19.0"), ["20.19.0"]);
    }

    #[test]
    fn an_unreadable_range_admits_every_version() {
        for range in ["*", "", "node-20", "latest"] {
            assert_eq!(admitted(range).len(), 8, "{range:?}");
        }
    }

    #[test]
    fn below_one_the_second_number_counts() {
        let admits = |text: &str| admits("^0.2.3", Version::find_in(text).unwrap());
        assert_eq!([admits("0.2.2"), admits("0.2.9"), admits("0.3.0")], [false, true, false]);
    }
}
