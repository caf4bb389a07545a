//! The header that Mercurial writes above an exported changeset.

use jiff::Timestamp;
use jiff::tz::Offset;

pub(crate) const FIRST_LINE: &str = "# HG changeset patch";

/// Author and date of a changeset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HgHeader {
    /// `Name <address>`.
    pub author: Option<String>,
    /// The date in mail format.
    pub date: Option<String>,
}

/// Splits `text` into its header, if there is one, and the rest. `hg email` puts it below the headers of a mail.
pub fn read_hg_header(text: &str) -> (Option<HgHeader>, String) {
    let mut lines = text.lines();
    let mut before: Vec<&str> = lines.by_ref().take_while(|line| line.trim_end() != FIRST_LINE).collect();
    if before.len() == text.lines().count() {
        return (None, text.to_owned());
    }
    let mut header = HgHeader::default();
    let mut lines = lines.peekable();
    // The message may begin with `#123`.
    while let Some(line) = lines.next_if(|line| line.starts_with("# ") || *line == "#") {
        if let Some(user) = line.strip_prefix("# User ") {
            header.author = Some(user.trim().to_owned());
        } else if let Some(date) = line.strip_prefix("# Date ") {
            header.date = mail_date(date);
        }
    }
    before.extend(lines);
    let mut rest = before.join("\n");
    rest.push('\n');
    (Some(header), rest)
}

/// Converts a `Date:` field to mail format: in the plain header of a patch queue it has Mercurial's format. git's raw
/// format, `SECONDS +HHMM`, has another offset and is kept.
pub(super) fn date_of_field(value: String) -> String {
    let offset = value.split_once(' ').map_or("", |(_, offset)| offset.trim());
    let digits = offset.strip_prefix('-').unwrap_or(offset);
    let is_hg = digits == "0" || !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    let read = if is_hg { mail_date(&value) } else { None };
    read.unwrap_or(value)
}

/// Parses `SECONDS OFFSET`, where the offset counts seconds west of Greenwich.
fn mail_date(date: &str) -> Option<String> {
    let (seconds, west) = date.trim().split_once(' ')?;
    let seconds = seconds.split('.').next()?.parse().ok()?;
    let offset = Offset::from_seconds(-west.trim().parse::<i32>().ok()?).ok()?;
    let time = Timestamp::from_second(seconds).ok()?.to_zoned(offset.to_time_zone());
    Some(time.strftime("%-d %b %Y %H:%M:%S %z").to_string())
}

#[cfg(test)]
mod tests {
    use super::{HgHeader, date_of_field, mail_date, read_hg_header};

    #[test]
    fn a_plain_field_may_have_the_form_of_mercurial() {
        let read = |value: &str| date_of_field(value.to_owned());
        assert_eq!(read("1700000000 -7200"), "15 Nov 2023 00:13:20 +0200");
        assert_eq!(read("1700000000 0"), "14 Nov 2023 22:13:20 +0000");
        for other in
            ["1700000000 +0200", "1700000000 -0700", "2023-11-14", "Tue, 14 Nov 2023 22:13:20 +0000", ""]
        {
            assert_eq!(read(other), other);
        }
    }

    #[test]
    fn the_offset_counts_west() {
        assert_eq!(mail_date("0 0").as_deref(), Some("1 Jan 1970 00:00:00 +0000"));
        assert_eq!(mail_date("1136214245 25200").as_deref(), Some("2 Jan 2006 08:04:05 -0700"));
        assert_eq!(mail_date("1136214245 -19800").as_deref(), Some("2 Jan 2006 20:34:05 +0530"));
        for bad in ["", "x 0", "1", "1 x", "99999999999999999 0"] {
            assert_eq!(mail_date(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_rest_of_the_text_stays() {
        let text =
            "above\n\n# HG changeset patch\n# User A <a@b>\n# Branch default\n#7: subject\n# not a header\n";
        let author = Some("A <a@b>".to_owned());
        let rest = "above\n\n#7: subject\n# not a header\n".to_owned();
        assert_eq!(read_hg_header(text), (Some(HgHeader { author, date: None }), rest));
        assert_eq!(read_hg_header("# User A\n"), (None, "# User A\n".to_owned()));
    }
}
