//! The file names of a series: `NNNN-slug.patch`, from 0001, without gaps; and those of the siblings of its patches,
//! `NNNN-slug@GENERATION.patch`.

use super::finding::{Finding, LintRule};

const SLUG_LIMIT: usize = 52;

/// One patch of a series by its file name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesEntry {
    /// From 1.
    pub number: usize,
    /// The part between number and `.patch`, without the generation of a sibling.
    pub slug: String,
    /// The generation, if this is a sibling: it replaces the patch with the same number and slug there.
    pub generation: Option<String>,
    /// The whole file name.
    pub name: String,
}

impl SeriesEntry {
    /// Returns the file name of the sibling of this patch in `generation`.
    pub fn sibling_in(&self, generation: &str) -> String {
        file_name(self.number, &self.slug, Some(generation))
    }

    /// Returns whether it is a sibling of the patch `base`.
    pub fn is_sibling_of(&self, base: &SeriesEntry) -> bool {
        let place = |entry: &SeriesEntry| (entry.number, entry.slug.clone());
        self.generation.is_some() && base.generation.is_none() && place(self) == place(base)
    }
}

/// Returns the name of the file of a patch, or of its sibling in `generation`.
fn file_name(number: usize, slug: &str, generation: Option<&str>) -> String {
    match generation {
        Some(generation) => format!("{number:04}-{slug}@{generation}.patch"),
        None => format!("{number:04}-{slug}.patch"),
    }
}

/// Returns the patches in the order in which they are applied, from their names in any order. Siblings are checked, and
/// left out.
///
/// # Errors
///
/// Every malformed name, every duplicate number, every gap, and every sibling without its patch.
pub fn series_order(names: &[&str]) -> Result<Vec<SeriesEntry>, Vec<Finding>> {
    let mut entries = Vec::new();
    let mut findings = Vec::new();
    for name in names {
        match check_name(name) {
            Ok(entry) => entries.push(entry),
            Err(finding) => findings.push(*finding),
        }
    }
    let (siblings, mut entries): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|entry: &SeriesEntry| entry.generation.is_some());
    entries.sort_by(|a, b| (a.number, &a.name).cmp(&(b.number, &b.name)));
    findings.extend(check_numbers(&entries));
    findings.extend(siblings.iter().filter_map(|sibling| check_sibling(sibling, &entries)));
    if findings.is_empty() { Ok(entries) } else { Err(findings) }
}

/// Returns the finding for a sibling that is not one of a patch in `entries`.
fn check_sibling(sibling: &SeriesEntry, entries: &[SeriesEntry]) -> Option<Finding> {
    if entries.iter().any(|entry| sibling.is_sibling_of(entry)) {
        return None;
    }
    let wanted = file_name(sibling.number, &sibling.slug, None);
    let message = format!("it is a sibling of `{wanted}`, which the series does not have");
    let same_slug = entries.iter().find(|entry| entry.slug == sibling.slug);
    let same_number = || entries.iter().find(|entry| entry.number == sibling.number);
    let hint = match (same_slug.or_else(same_number), &sibling.generation) {
        (Some(entry), Some(generation)) => {
            format!("if it belongs to `{}`: name it `{}`", entry.name, entry.sibling_in(generation))
        }
        _ => "delete it: a patch that is gone needs no sibling".to_owned(),
    };
    Some(Finding::new(&sibling.name, None, LintRule::SiblingWithoutPatch, [&message, &hint]))
}

/// Returns the new name of the sibling `name` after the series `old` became `new`; `None` if its patch is gone. Patches
/// keep the words of their names when they are renumbered, and their places when they are renamed.
pub fn sibling_after(name: &str, old: &[&str], new: &[&str]) -> Option<String> {
    let sibling = read_name(name)?;
    let read = |names: &[&str]| names.iter().filter_map(|name| read_name(name)).collect::<Vec<_>>();
    let (old, new) = (read(old), read(new));
    let at = old.iter().position(|entry| sibling.is_sibling_of(entry))?;
    let in_place = || new.get(at).filter(|_| old.len() == new.len());
    let now = new.iter().find(|entry| entry.slug == sibling.slug).or_else(in_place)?;
    Some(now.sibling_in(sibling.generation.as_deref()?))
}

fn check_numbers(entries: &[SeriesEntry]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut above: Option<&SeriesEntry> = None;
    for entry in entries {
        let last = above.map_or(0, |above| above.number);
        match above {
            Some(above) if above.number == entry.number => {
                let message = format!("number {:04} is taken by {}", entry.number, above.name);
                findings.push(number_finding(entry, LintRule::NumberTwice, &message));
            }
            _ if entry.number != last + 1 => {
                let message = format!("number {:04} comes after {last:04}", entry.number);
                findings.push(number_finding(entry, LintRule::NumberGap, &message));
            }
            _ => {}
        }
        above = Some(entry);
    }
    findings
}

fn number_finding(entry: &SeriesEntry, rule: LintRule, message: &str) -> Finding {
    Finding::new(
        &entry.name,
        None,
        rule,
        [message, "number the series from 0001 without gaps: cargo xtask lint --fix"],
    )
}

/// Returns whether a file in the folder of a series, by its path in there, is intended as a patch. Hidden files, and
/// other files that an editor or a user leaves beside a patch (`x.patch~`, `x.patch.orig`, `series`, `README.md`), are
/// not.
pub fn looks_like_a_patch(path: &str) -> bool {
    let is_hidden = path.split('/').any(|part| part.starts_with('.'));
    let path = path.to_ascii_lowercase();
    !is_hidden && [".patch", ".diff", ".mbox", ".eml"].iter().any(|end| path.ends_with(end))
}

/// Parses number and slug of a file name; `None` if it is malformed.
pub fn series_entry(name: &str) -> Option<SeriesEntry> {
    read_name(name)
}

/// Returns whether the slug of a file name matches the subject.
pub fn slug_fits(name: &str, subject: &str) -> bool {
    read_name(name).is_some_and(|entry| check_slug(&entry, subject).is_none())
}

/// Reads a file name.
pub(crate) fn check_name(name: &str) -> Result<SeriesEntry, Box<Finding>> {
    read_name(name).ok_or_else(|| {
        let hint =
            "name it `NNNN-slug.patch`: four digits from 0001, then the words of the subject joined by `-`";
        let text = ["the file name is not that of a patch", hint];
        Box::new(Finding::new(name, None, LintRule::FileName, text))
    })
}

fn read_name(name: &str) -> Option<SeriesEntry> {
    let (digits, rest) = name.strip_suffix(".patch")?.split_once('-')?;
    let (slug, generation) = rest.split_once('@').map_or((rest, None), |(slug, name)| (slug, Some(name)));
    let is_number = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_word = |word: &str| {
        // The characters that `git format-patch` keeps of a subject.
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._".contains(&byte))
    };
    if !is_number || !slug.split('-').all(is_word) || !generation.is_none_or(is_generation) {
        return None;
    }
    let number = digits.parse().ok().filter(|number| *number > 0)?;
    let generation = generation.map(str::to_owned);
    Some(SeriesEntry { number, slug: slug.to_owned(), generation, name: name.to_owned() })
}

/// Returns whether `name` can be that of a generation, which is a pin.
fn is_generation(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    !name.is_empty() && !name.starts_with('-') && name.bytes().all(is_plain)
}

/// Checks a slug. It may omit words of the subject, but not add any. `git format-patch` cuts long slugs anywhere, so
/// the last word may be the start of one. The slug that [`slug_from_subject`] returns is always accepted, even if a
/// subject has no word that a file name can have. A sibling has the slug of its patch, and may do something else.
pub(crate) fn check_slug(entry: &SeriesEntry, subject: &str) -> Option<Finding> {
    let generated = slug_from_subject(subject);
    if entry.slug == generated || entry.generation.is_some() {
        return None;
    }
    let words = words_of(subject);
    let mut left = words.iter();
    let slug_words = words_of(&entry.slug);
    let is_made_from_subject = match slug_words.split_last() {
        Some((last, first)) => {
            first.iter().all(|word| left.any(|known| known == word))
                && left.any(|known| known.starts_with(last.as_str()))
        }
        None => false,
    };
    let name = file_name(entry.number, &generated, None);
    let hint = format!("name it `{name}`: cargo xtask lint --fix");
    let message = format!("the name does not go with the subject `{subject}`");
    let rule = LintRule::SlugUnlikeSubject;
    (!is_made_from_subject).then(|| Finding::new(&entry.name, None, rule, [&message, &hint]))
}

/// Returns the slug for a subject: its words in lower case, as many as fit in 52 characters; `patch` if there are none.
pub fn slug_from_subject(subject: &str) -> String {
    let mut slug = String::new();
    for word in words_of(subject) {
        let length = slug.len() + usize::from(!slug.is_empty()) + word.len();
        if length > SLUG_LIMIT {
            break;
        }
        if !slug.is_empty() {
            slug.push('-');
        }
        slug.push_str(&word);
    }
    if slug.is_empty() { "patch".to_owned() } else { slug }
}

fn words_of(subject: &str) -> Vec<String> {
    let words = subject.split(|character: char| !character.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::{
        LintRule, check_name, check_slug, series_entry, series_order, sibling_after, slug_from_subject,
    };

    fn rules(names: &[&str]) -> Vec<LintRule> {
        let findings = series_order(names).unwrap_err();
        findings.iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn orders_by_number() {
        let entries = series_order(&["0002-b.patch", "0001-a-1.patch"]).unwrap();
        assert_eq!(entries[0].name, "0001-a-1.patch");
        assert_eq!((entries[1].number, entries[1].slug.as_str()), (2, "b"));
        assert!(series_order(&[]).unwrap().is_empty());
    }

    #[test]
    fn finds_gaps_and_duplicates() {
        assert_eq!(rules(&["0002-a.patch"]), [LintRule::NumberGap]);
        assert_eq!(rules(&["0001-a.patch", "0003-b.patch"]), [LintRule::NumberGap]);
        assert_eq!(rules(&["0001-a.patch", "0001-b.patch"]), [LintRule::NumberTwice]);
    }

    #[test]
    fn refuses_bad_names() {
        for name in [
            "a.patch",
            "1-a.patch",
            "00001-a.patch",
            "0001-.patch",
            "0001-a--b.patch",
            "0001-a.diff",
            "0001a.patch",
            "0000-a.patch",
            "0001-ö.patch",
            "+001-a.patch",
            "0001-../a.patch",
        ] {
            assert_eq!(rules(&[name]), [LintRule::FileName], "{name}");
        }
    }

    #[test]
    fn siblings_are_no_part_of_the_order() {
        let entries = series_order(&["0001-a@b1.patch", "0001-a.patch", "0001-a@v0-9.patch"]).unwrap();
        assert_eq!((entries.len(), entries[0].name.as_str()), (1, "0001-a.patch"));
        let sibling = series_entry("0001-a@b1.patch").unwrap();
        assert_eq!((sibling.slug.as_str(), sibling.generation.as_deref()), ("a", Some("b1")));
        assert_eq!(entries[0].sibling_in("b1"), "0001-a@b1.patch");
        for name in
            ["0001-a@.patch", "0001-a@B1.patch", "0001-a@b.1.patch", "0001-a@b@c.patch", "0001-@b.patch"]
        {
            assert!(series_entry(name).is_none(), "{name}");
        }
    }

    #[test]
    fn a_sibling_has_the_number_and_the_slug_of_its_patch() {
        let findings = |names: &[&str]| series_order(names).unwrap_err();
        let moved = findings(&["0001-a.patch", "0002-b.patch", "0001-b@b1.patch"]);
        assert_eq!(moved[0].rule, LintRule::SiblingWithoutPatch);
        assert_eq!(moved[0].message, "it is a sibling of `0001-b.patch`, which the series does not have");
        assert_eq!(moved[0].hint, "if it belongs to `0002-b.patch`: name it `0002-b@b1.patch`");
        let renamed = findings(&["0001-a.patch", "0001-c@b1.patch"]);
        assert_eq!(renamed[0].hint, "if it belongs to `0001-a.patch`: name it `0001-a@b1.patch`");
        let gone = findings(&["0001-a.patch", "0009-c@b1.patch"]);
        assert_eq!(gone[0].hint, "delete it: a patch that is gone needs no sibling");
    }

    #[test]
    fn a_sibling_follows_its_patch() {
        let old = ["0001-a.patch", "0002-b.patch"];
        let after = |name: &str, new: &[&str]| sibling_after(name, &old, new);
        assert_eq!(after("0002-b@b1.patch", &["0001-b.patch"]).as_deref(), Some("0001-b@b1.patch"));
        let renamed = after("0002-b@b1.patch", &["0001-a.patch", "0002-c.patch"]);
        assert_eq!(renamed.as_deref(), Some("0002-c@b1.patch"));
        assert_eq!(after("0001-a@b1.patch", &["0001-b.patch"]), None);
        assert_eq!(after("0003-x@b1.patch", &old), None);
    }

    #[test]
    fn slugs_come_from_subjects() {
        assert_eq!(slug_from_subject("server: Add paged KV (v2)"), "server-add-paged-kv-v2");
        assert_eq!(slug_from_subject("ö"), "patch");
        assert!(slug_from_subject(&"word ".repeat(30)).len() <= 52);
        let entry = check_name("0003-paged-kv.patch").unwrap();
        assert_eq!(check_slug(&entry, "server: add paged KV cache"), None);
        let cut = check_name("0003-server-add-Paged-K.patch").unwrap();
        assert_eq!(check_slug(&cut, "server: add paged KV cache"), None);
        let finding = check_slug(&entry, "server: kv paged").unwrap();
        assert_eq!(finding.hint, "name it `0003-server-kv-paged.patch`: cargo xtask lint --fix");
        // What the patch does on that generation is not always what its name says.
        let sibling = check_name("0003-paged-kv@b1.patch").unwrap();
        assert_eq!(check_slug(&sibling, "server: do something else"), None);
    }
}
