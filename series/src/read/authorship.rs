//! Author and date of a patch, in the form of a git commit.

use jiff::fmt::rfc2822::DateTimeParser;
use jiff::fmt::strtime;
use jiff::{Timestamp, Zoned};

use crate::model::patch::Patch;

/// The author and the date of a patch, parsed as git parses a mail.
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
    /// Returns the line of a commit without its key: `Name <address> seconds zone`.
    pub fn ident(&self) -> String {
        format!("{} <{}> {} {}", self.name, self.address, self.seconds, self.zone)
    }
}

/// Reads `From:` and `Date:` of `patch`.
///
/// # Errors
///
/// A description of the invalid value.
pub fn authorship(patch: &Patch) -> Result<Authorship, String> {
    read_authorship(&patch.author, &patch.date)
}

/// Reads the values of a `From:` and a `Date:`, decoded.
///
/// # Errors
///
/// A description of the invalid value.
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

/// Removes the quotes that git adds to a name with characters that are special in mail.
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

/// Reads `Thu, 1 Jan 2026 00:00:00 +0100`, with or without the day of the week. Dates before 1970 are refused: git
/// commits cannot represent them.
pub(crate) fn read_date(date: &str) -> Option<(i64, String)> {
    let mut words: Vec<&str> = date.split_whitespace().collect();
    if words.first()?.ends_with(',') {
        words.remove(0);
    }
    let [_, _, year, clock, zone] = words[..] else { return None };
    // A mail may omit the seconds, name its zone, or have a leap second; git writes none of these.
    let is_gits = year.len() == 4 && clock.len() == 8 && zone.len() == 5 && !clock.ends_with(":60");
    let instant = DateTimeParser::new().parse_timestamp(words.join(" ")).ok()?;
    (is_gits && instant >= Timestamp::UNIX_EPOCH).then(|| (instant.as_second(), zone.to_owned()))
}

/// Finds the first author in free-form `text`, as `Name <address>`.
pub fn find_author(text: &str) -> Option<String> {
    let text = text.trim();
    if read_author(text).is_some() {
        return Some(text.to_owned());
    }
    let first = text.split_inclusive('>').next().unwrap_or(text).trim();
    if read_author(first).is_some() {
        return Some(first.to_owned());
    }
    let (address, name) = match (first.split_once('('), first.strip_prefix('<')) {
        (Some((address, name)), _) if address.contains('@') => {
            (address.trim(), name.trim_end_matches(')').trim())
        }
        (_, Some(address)) => (address.trim_end_matches('>'), ""),
        _ if first.contains('@') && !first.contains(char::is_whitespace) => (first, ""),
        // Without an address; git accepts an empty one.
        _ => ("", first),
    };
    let name = if name.is_empty() { address } else { name };
    let author = format!("{name} <{address}>");
    read_author(&author).is_some().then_some(author)
}

/// Finds a date in free-form `text`, in git's format. A date without a time means midnight.
pub fn find_date(text: &str) -> Option<String> {
    let text = text.trim();
    if read_date(text).is_some() {
        return Some(text.to_owned());
    }
    let without_day = text.split_once(", ").map_or(text, |(_, rest)| rest);
    let as_mail = DateTimeParser::new().parse_zoned(without_day).ok();
    let date = as_mail.or_else(|| find_zoned(text))?.strftime("%-d %b %Y %H:%M:%S %z").to_string();
    read_date(&date).is_some().then_some(date)
}

fn find_zoned(text: &str) -> Option<Zoned> {
    let with_zone =
        ["%Y-%m-%d %H:%M:%S %z", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%S%:z", "%a %b %d %H:%M:%S %Y %z"];
    let without = ["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S", "%a %b %d %H:%M:%S %Y", "%Y-%m-%d %H:%M"];
    let zoned = with_zone.iter().find_map(|form| strtime::parse(form, text).ok()?.to_zoned().ok());
    let plain = || {
        let times = without.iter().find_map(|form| strtime::parse(form, text).ok()?.to_datetime().ok());
        let day = || strtime::parse("%Y-%m-%d", text).ok()?.to_date().ok().map(|day| day.at(0, 0, 0, 0));
        times.or_else(day)?.to_zoned(jiff::tz::TimeZone::UTC).ok()
    };
    zoned.or_else(plain)
}

#[cfg(test)]
mod tests {
    use super::{find_author, find_date, read_author, read_date};

    #[test]
    fn finds_what_people_write() {
        for (text, wanted) in [
            ("Jane <j@x>", "Jane <j@x>"),
            ("Jane <j@x>, Joe <k@x>", "Jane <j@x>"),
            ("j@x (Jane Doe)", "Jane Doe <j@x>"),
            ("j@x", "j@x <j@x>"),
            ("<j@x>", "j@x <j@x>"),
            ("Jane Doe", "Jane Doe <>"),
        ] {
            assert_eq!(find_author(text).as_deref(), Some(wanted), "{text}");
        }
        assert_eq!(find_author(""), None);
        for (text, wanted) in [
            ("Thu, 1 Jan 2026 00:00:00 +0000", "Thu, 1 Jan 2026 00:00:00 +0000"),
            ("2024-05-01", "1 May 2024 00:00:00 +0000"),
            ("2024-05-01 12:00:00 +0200", "1 May 2024 12:00:00 +0200"),
            ("2024-05-01T12:00:00Z", "1 May 2024 12:00:00 +0000"),
            ("2024-05-01T12:00:00+02:00", "1 May 2024 12:00:00 +0200"),
            ("Wed May 1 12:00:00 2024 +0200", "1 May 2024 12:00:00 +0200"),
            ("Wed, 1 May 2024 12:00:00 GMT", "1 May 2024 12:00:00 +0000"),
            ("Wed, 1 May 2024 12:00 -0500", "1 May 2024 12:00:00 -0500"),
        ] {
            assert_eq!(find_date(text).as_deref(), Some(wanted), "{text}");
        }
        for bad in ["2024-13-01", "2024-02-30", "soon", ""] {
            assert_eq!(find_date(bad), None, "{bad}");
        }
    }

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
            "30 Feb 2026 00:00:00 +0000",
            "Sun, 29 Feb 2026 00:00:00 +0000",
            "31 Apr 2026 00:00:00 +0000",
            "29 Feb 2100 00:00:00 +0000",
            "1 Jan 2026 24:00:00 +0000",
            "1 Jan 2026 00:00:60 +0000",
            "1 Jan 26 00:00:00 +0000",
            "1 Jan 2026 00:00 +0000",
            "1 Jan 2026 00:00:00 GMT",
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
