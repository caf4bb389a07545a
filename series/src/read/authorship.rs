//! Who wrote a patch and when, in the form in which a git commit holds it.

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

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

/// Reads `Thu, 1 Jan 2026 00:00:00 +0100`, with or without the day of the week. Dates before 1970 are
/// refused: a commit cannot have them.
pub(crate) fn read_date(date: &str) -> Option<(i64, String)> {
    let mut words: Vec<&str> = date.split_whitespace().collect();
    if words.first()?.ends_with(',') {
        words.remove(0);
    }
    let [_, _, year, clock, zone] = words[..] else { return None };
    // A mail may leave the seconds out, name its zone, or count a leap second; git writes none of these.
    let is_gits = year.len() == 4 && clock.len() == 8 && zone.len() == 5 && !clock.ends_with(":60");
    let instant = DateTimeParser::new().parse_timestamp(words.join(" ")).ok()?;
    (is_gits && instant >= Timestamp::UNIX_EPOCH).then(|| (instant.as_second(), zone.to_owned()))
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
