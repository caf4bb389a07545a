//! Formatting of dates.

use jiff::Timestamp;

/// Formats a date as `2026-01-31`, in UTC. A commit's time can be any integer: one outside the calendar's range is
/// shown as it is.
pub fn day(seconds: i64) -> String {
    match Timestamp::from_second(seconds) {
        Ok(time) => time.strftime("%Y-%m-%d").to_string(),
        Err(_) => seconds.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::day;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(951_782_400), "2000-02-29");
        assert_eq!(day(1_795_219_200), "2026-11-21");
        assert_eq!(day(-1), "1969-12-31");
        assert_eq!(day(i64::MAX), "9223372036854775807");
    }
}
