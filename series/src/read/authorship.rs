//! Who wrote a patch and when, in the form in which a git commit holds it.

use crate::model::patch::Patch;

/// The author and the date of a patch, read as git reads a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorship {
    /// The author's name without quotes.
    pub name: String,
    /// The address between `<` and `>`.
    pub address: String,
    /// Seconds since 1970, UTC.
    pub seconds: i64,
    /// The author's time zone, such as `+0100`.
    pub zone: String,
}

impl Authorship {
    /// The line of a commit without its key: `Name <address> seconds zone`.
    pub fn ident(&self) -> String {
        format!("{} <{}> {} {}", self.name, self.address, self.seconds, self.zone)
    }
}

/// Reads `From:` and `Date:` of `patch`.
///
/// # Errors
///
/// What is wrong with them, in words.
pub fn authorship(patch: &Patch) -> Result<Authorship, String> {
    read_authorship(&patch.author, &patch.date)
}

/// Reads the values of a `From:` and a `Date:`, decoded.
///
/// # Errors
///
/// What is wrong with them, in words.
pub fn read_authorship(author: &str, date: &str) -> Result<Authorship, String> {
    let (name, address) = read_author(author)
        .ok_or_else(|| format!("its author is `{author}`, which is not `Name <address>`"))?;
    let (seconds, zone) = read_date(date)
        .ok_or_else(|| format!("its date is `{date}`, which is not like `Thu, 1 Jan 2026 00:00:00 +0000`"))?;
    Ok(Authorship { name, address, seconds, zone })
}

pub(crate) fn read_author(author: &str) -> Option<(String, String)> {
    let (name, address) = author.strip_suffix('>')?.rsplit_once('<')?;
    let name = unquoted(name.trim());
    let is_plain = |text: &str| !text.contains(['<', '>']) && !text.chars().any(char::is_control);
    (!name.is_empty() && is_plain(&name) && is_plain(address)).then(|| (name, address.trim().to_owned()))
}

/// git puts a name into quotes when it has a character that mail gives a meaning.
fn unquoted(name: &str) -> String {
    let Some(inner) = name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return name.to_owned();
    };
    let mut plain = String::new();
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        plain.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    plain
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Reads `Thu, 1 Jan 2026 00:00:00 +0100`, with or without the day of the week. Dates before 1970 are
/// refused: a commit cannot have them.
pub(crate) fn read_date(date: &str) -> Option<(i64, String)> {
    let mut words: Vec<&str> = date.split_whitespace().collect();
    if words.first()?.ends_with(',') {
        words.remove(0);
    }
    let [day, month, year, clock, zone] = words[..] else { return None };
    let day = number(day, 1, 31)?;
    let month = 1 + i64::try_from(MONTHS.iter().position(|name| *name == month)?).ok()?;
    let year = number(year, 1970, 9999)?;
    let [hour, minute, second] = clock.split(':').collect::<Vec<_>>()[..] else { return None };
    let of_day = number(hour, 0, 23)? * 3600 + number(minute, 0, 59)? * 60 + number(second, 0, 60)?;
    let seconds = days_since_1970(year, month, day) * 86_400 + of_day - zone_seconds(zone)?;
    (seconds >= 0).then(|| (seconds, zone.to_owned()))
}

fn number(text: &str, least: i64, most: i64) -> Option<i64> {
    let is_short = text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_short && (least..=most).contains(number))
}

fn zone_seconds(zone: &str) -> Option<i64> {
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = digits.split_at_checked(2).filter(|_| digits.len() == 4)?;
    Some(sign * (number(hours, 0, 23)? * 3600 + number(minutes, 0, 59)? * 60))
}

/// Days of the Gregorian calendar. A year is counted from March, so that the leap day is its last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::{read_author, read_date};

    #[test]
    fn reads_the_dates_that_git_writes() {
        let seconds = |date: &str| read_date(date).map(|(seconds, _)| seconds);
        assert_eq!(seconds("Thu, 1 Jan 1970 00:00:00 +0000"), Some(0));
        assert_eq!(seconds("Thu, 1 Jan 2026 00:00:00 +0000"), Some(1_767_225_600));
        assert_eq!(seconds("29 Feb 2024 23:59:59 -0130"), Some(1_709_256_599));
        assert_eq!(read_date("Tue, 14 Nov 2023 23:13:20 +0100").unwrap(), (1_700_000_000, "+0100".into()));
        for bad in [
            "",
            "x",
            "Thu, 32 Jan 2026 00:00:00 +0000",
            "1 Jan 2026 00:00:00 0000",
            "1 Jan 1969 00:00:00 +0000",
        ] {
            assert_eq!(read_date(bad), None, "{bad}");
        }
    }

    #[test]
    fn reads_the_authors_that_git_writes() {
        let read = |author: &str| read_author(author).map(|(name, address)| format!("{name}|{address}"));
        assert_eq!(read("Jörg <j@x>").as_deref(), Some("Jörg|j@x"));
        assert_eq!(read(r#""J. \"Q\" Public" <j@x>"#).as_deref(), Some(r#"J. "Q" Public|j@x"#));
        for bad in ["", "name", "<a@b>", "a <b> <c@d>", "a <b@c> d"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
