//! The author of a patch as a git commit names it.

use super::model::Patch;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `Name <address> SECONDS +HHMM`; nothing when the date or the author is not as git writes it.
pub fn git_author(patch: &Patch) -> Option<String> {
    let (name, address) = patch.author.strip_suffix('>')?.rsplit_once('<')?;
    let (name, address) = (name.trim(), address.trim());
    let is_plain = |text: &str| !text.contains(['<', '>', '\n', '\0']);
    let (seconds, zone) = read_date(&patch.date)?;
    (is_plain(name) && is_plain(address)).then(|| format!("{name} <{address}> {seconds} {zone}"))
}

/// `Thu, 1 Jan 2026 00:00:00 +0000` as seconds since 1970 and the zone.
fn read_date(text: &str) -> Option<(i64, &str)> {
    let text = text.split_once(", ").map_or(text, |(_, rest)| rest);
    let words: Vec<&str> = text.split_whitespace().collect();
    let [day, month, year, time, zone] = words[..] else { return None };
    let month = 1 + i64::try_from(MONTHS.iter().position(|name| *name == month)?).ok()?;
    let days = days_since_1970(number(year, 4)?, month, number(day, 2)?);
    let clock: Vec<i64> = time.split(':').map(|part| number(part, 2)).collect::<Option<_>>()?;
    let [hours, minutes, seconds] = clock[..] else { return None };
    let offset = zone_seconds(zone)?;
    Some((days * 86_400 + hours * 3_600 + minutes * 60 + seconds - offset, zone))
}

fn number(text: &str, most_digits: usize) -> Option<i64> {
    let is_number = text.len() <= most_digits && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

fn zone_seconds(zone: &str) -> Option<i64> {
    let sign = match zone.get(..1)? {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let digits = zone.get(1..).filter(|digits| digits.len() == 4)?;
    Some(sign * (number(digits.get(..2)?, 2)? * 3_600 + number(digits.get(2..)?, 2)? * 60))
}

/// Days in the proleptic Gregorian calendar; years are counted from March, so that the leap day is last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::read_date;

    #[test]
    fn dates_are_read_as_git_writes_them() {
        assert_eq!(read_date("Thu, 1 Jan 1970 00:00:00 +0000"), Some((0, "+0000")));
        assert_eq!(read_date("Thu, 29 Feb 2024 12:34:56 +0200"), Some((1_709_202_896, "+0200")));
        assert_eq!(read_date("Wed, 1 Mar 2000 00:00:00 -0530"), Some((951_888_600, "-0530")));
        for bad in ["", "1 Jan", "Thu, 1 Foo 1970 00:00:00 +0000", "Thu, 1 Jan 1970 00:00 +0000"] {
            assert_eq!(read_date(bad), None, "{bad}");
        }
    }
}
