//! The beginnings of mails in a file of several.

/// Length of the shortest line that git takes for a separator.
const SHORTEST: usize = 20;
/// git takes no earlier year for that of a mail.
const LAST_YEAR_BEFORE_MAIL: u32 = 90;

/// Returns whether git splits a file of mails before `line`: `From SENDER Mon Sep 17 00:00:00 2001`. git looks only at
/// the time and the year, and a message may quote such a line.
pub(crate) fn is_separator(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    let Some(rest) = line.strip_prefix(b"From ").filter(|_| line.len() + 1 >= SHORTEST) else { return false };
    let Some(colon) = rest.iter().rposition(|byte| *byte == b':') else { return false };
    let digits =
        [colon.checked_sub(4), colon.checked_sub(2), colon.checked_sub(1), Some(colon + 1), Some(colon + 2)];
    let is_digit = |at: Option<usize>| at.and_then(|at| rest.get(at)).is_some_and(u8::is_ascii_digit);
    let year = rest.get(colon + 3..).unwrap_or_default().trim_ascii_start();
    let end = year.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(year.len());
    let year = std::str::from_utf8(&year[..end]).ok().and_then(|year| year.parse::<u32>().ok());
    digits.into_iter().all(is_digit) && year.is_some_and(|year| year > LAST_YEAR_BEFORE_MAIL)
}

/// Returns whether `text` begins with a separator and the header of a mail: a field `From:` or `Subject:` above the
/// first blank line.
pub fn begins_with_mail(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n');
    let is_field = |line: &[u8]| {
        let keys: [&[u8]; 2] = [b"from:", b"subject:"];
        keys.iter().any(|key| line.get(..key.len()).is_some_and(|start| start.eq_ignore_ascii_case(key)))
    };
    lines.next().is_some_and(is_separator)
        && lines.take_while(|line| !line.trim_ascii().is_empty()).any(is_field)
}

/// Joins the parts into which git splits a file of mails: a part without the header of a mail continues the one before
/// it, whose message has a line like a separator.
pub fn whole_mails(parts: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut mails: Vec<Vec<u8>> = Vec::new();
    for part in parts {
        match mails.last_mut().filter(|_| !begins_with_mail(&part)) {
            Some(mail) => mail.extend(part),
            None => mails.push(part),
        }
    }
    mails
}

#[cfg(test)]
mod tests {
    use super::{begins_with_mail, is_separator, whole_mails};

    const LINE: &str = "From 0123 Mon Sep 17 00:00:00 2001\n";

    #[test]
    fn a_separator_is_what_git_takes_for_one() {
        for line in
            [LINE, "From a@b.org Mon Sep 17 00:00:00 2001\r\n", "From now on, as said at 00:00:00 2001"]
        {
            assert!(is_separator(line.as_bytes()), "{line}");
        }
        for line in [
            "From https://example.org/commit/1",
            "From: A <a@b>",
            "From someone 00:00 2001",
            "From 0123 Mon Sep 17 00:00:00 89",
            " From 0123 Mon Sep 17 00:00:00 2001",
            "From :",
            "",
        ] {
            assert!(!is_separator(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn a_mail_has_a_header() {
        assert!(begins_with_mail(format!("{LINE}Date: x\nSUBJECT: y\n").as_bytes()));
        assert!(!begins_with_mail(format!("{LINE}\nFrom: A <a@b>\n").as_bytes()));
        assert!(!begins_with_mail(b"From: A <a@b>\nSubject: y\n"));
    }

    #[test]
    fn a_quoted_separator_belongs_to_the_message() {
        let mail = |subject: &str| format!("{LINE}From: A <a@b>\nSubject: {subject}\n\nSee\n\n");
        let parts = [mail("a"), format!("{LINE}\nmore\n"), LINE.to_owned(), mail("b")];
        let mails = whole_mails(parts.iter().map(|part| part.clone().into_bytes()).collect());
        assert_eq!(mails, [parts[..3].concat().into_bytes(), parts[3].clone().into_bytes()]);
    }
}
