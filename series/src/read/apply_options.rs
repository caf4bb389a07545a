//! Options of patch(1), of git's commands that apply patches and of rpm's directives, as order files and recipes write
//! them: short options alone or combined, long ones in full or abbreviated, values attached or as the next word.

/// Settings for applying a patch, as far as they are stated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ApplyOptions {
    /// Number of leading path components to strip (`-p`), if it is stated.
    pub strip: Option<u32>,
    /// Whether the patch is applied in reverse.
    pub reverse: bool,
    /// Whether all of the context has to match, as `-F0` requests.
    pub is_strict: bool,
}

/// A program or directive that applies patches. Each has its own options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// patch(1).
    Patch,
    /// `git apply` and `git am`.
    Git,
    /// `%patch` of a spec file.
    RpmPatch,
    /// `%autosetup` and `%autopatch` of a spec file.
    RpmAuto,
}

/// The options of one command, as far as they decide which patches are applied, and the settings for them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadOptions<'w> {
    /// Settings for applying the patches.
    pub options: ApplyOptions,
    /// The file that the patch is read from (`-i`).
    pub input: Option<&'w str>,
    /// Words that are not options.
    pub operands: Vec<&'w str>,
    /// Whether the command changes no file.
    pub is_dry_run: bool,
    /// Options that `import` does not follow: they accept more than what matches, or name the folder of the sources.
    pub not_followed: Vec<String>,
    /// Numbers of the patches of a spec file (`-P`).
    pub numbers: Vec<u32>,
    /// Lowest number of a range of patches (`-m`).
    pub lowest: Option<u32>,
    /// Highest number of a range of patches (`-M`).
    pub highest: Option<u32>,
}

/// Effect of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Strip,
    Fuzz,
    Reverse,
    Input,
    /// It does not change the result.
    None,
    /// No file is changed.
    DryRun,
    /// It accepts more than what matches, or names the folder of the sources.
    NotFollowed,
    /// It changes the result in a way that `import` does not carry out.
    Other,
    /// It changes the result unless its value is one of git's reports about white space.
    WhiteSpace,
    Number,
    Lowest,
    Highest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    /// A value, attached or as the next word.
    Value,
    /// A value only if it is attached.
    Attached,
}

#[derive(Debug, PartialEq, Eq)]
struct OptionSpec {
    /// The short form; NUL if there is none.
    letter: char,
    /// The long form; empty if there is none.
    name: &'static str,
    takes: Takes,
    effect: Effect,
}

const NO_LETTER: char = '\0';

const fn flag(letter: char, name: &'static str, effect: Effect) -> OptionSpec {
    OptionSpec { letter, name, takes: Takes::Nothing, effect }
}

const fn value(letter: char, name: &'static str, effect: Effect) -> OptionSpec {
    OptionSpec { letter, name, takes: Takes::Value, effect }
}

const fn attached(letter: char, name: &'static str, effect: Effect) -> OptionSpec {
    OptionSpec { letter, name, takes: Takes::Attached, effect }
}

const PATCH: &[OptionSpec] = &[
    value('p', "strip", Effect::Strip),
    value('F', "fuzz", Effect::Fuzz),
    flag('R', "reverse", Effect::Reverse),
    value('i', "input", Effect::Input),
    flag('b', "backup", Effect::None),
    value('B', "prefix", Effect::None),
    flag('E', "remove-empty-files", Effect::None),
    flag('f', "force", Effect::None),
    value('g', "get", Effect::None),
    flag('N', "forward", Effect::None),
    value('r', "reject-file", Effect::None),
    flag('s', "quiet", Effect::None),
    flag(NO_LETTER, "silent", Effect::None),
    flag('t', "batch", Effect::None),
    flag('T', "set-time", Effect::None),
    flag('u', "unified", Effect::None),
    value('V', "version-control", Effect::None),
    value('x', "debug", Effect::None),
    value('Y', "basename-prefix", Effect::None),
    value('z', "suffix", Effect::None),
    flag('Z', "set-utc", Effect::None),
    flag(NO_LETTER, "backup-if-mismatch", Effect::None),
    flag(NO_LETTER, "binary", Effect::None),
    flag(NO_LETTER, "follow-symlinks", Effect::None),
    flag(NO_LETTER, "no-backup-if-mismatch", Effect::None),
    flag(NO_LETTER, "posix", Effect::None),
    value(NO_LETTER, "quoting-style", Effect::None),
    value(NO_LETTER, "read-only", Effect::None),
    value(NO_LETTER, "reject-format", Effect::None),
    flag(NO_LETTER, "verbose", Effect::None),
    flag(NO_LETTER, "dry-run", Effect::DryRun),
    flag(NO_LETTER, "help", Effect::DryRun),
    flag('v', "version", Effect::DryRun),
    flag('l', "ignore-whitespace", Effect::NotFollowed),
    value('d', "directory", Effect::NotFollowed),
    flag('c', "context", Effect::Other),
    value('D', "ifdef", Effect::Other),
    flag('e', "ed", Effect::Other),
    attached('m', "merge", Effect::Other),
    flag('n', "normal", Effect::Other),
    value('o', "output", Effect::Other),
];

const GIT: &[OptionSpec] = &[
    value('p', "", Effect::Strip),
    flag('R', "reverse", Effect::Reverse),
    value('C', "", Effect::NotFollowed),
    value(NO_LETTER, "whitespace", Effect::WhiteSpace),
    flag(NO_LETTER, "ignore-whitespace", Effect::NotFollowed),
    flag(NO_LETTER, "ignore-space-change", Effect::NotFollowed),
    flag(NO_LETTER, "recount", Effect::NotFollowed),
    flag(NO_LETTER, "inaccurate-eof", Effect::NotFollowed),
    flag(NO_LETTER, "unidiff-zero", Effect::NotFollowed),
    flag(NO_LETTER, "check", Effect::DryRun),
    flag(NO_LETTER, "stat", Effect::DryRun),
    flag(NO_LETTER, "numstat", Effect::DryRun),
    flag(NO_LETTER, "summary", Effect::DryRun),
    flag(NO_LETTER, "abort", Effect::DryRun),
    flag(NO_LETTER, "continue", Effect::DryRun),
    flag(NO_LETTER, "skip", Effect::DryRun),
    flag(NO_LETTER, "quit", Effect::DryRun),
    flag('r', "resolved", Effect::DryRun),
    value(NO_LETTER, "directory", Effect::Other),
    value(NO_LETTER, "exclude", Effect::Other),
    value(NO_LETTER, "include", Effect::Other),
    flag(NO_LETTER, "no-add", Effect::Other),
    flag('c', "scissors", Effect::None),
    flag('3', "3way", Effect::None),
    flag('N', "intent-to-add", Effect::None),
    flag('b', "keep-non-patch", Effect::None),
    flag('i', "interactive", Effect::None),
    flag('k', "keep", Effect::None),
    flag('m', "message-id", Effect::None),
    flag('q', "quiet", Effect::None),
    flag('s', "signoff", Effect::None),
    flag('u', "utf8", Effect::None),
    flag('v', "verbose", Effect::None),
    flag('z', "", Effect::None),
    attached('S', "gpg-sign", Effect::None),
    flag(NO_LETTER, "allow-binary-replacement", Effect::None),
    flag(NO_LETTER, "allow-empty", Effect::None),
    flag(NO_LETTER, "allow-overlap", Effect::None),
    flag(NO_LETTER, "apply", Effect::None),
    flag(NO_LETTER, "binary", Effect::None),
    value(NO_LETTER, "build-fake-ancestor", Effect::None),
    flag(NO_LETTER, "cached", Effect::None),
    flag(NO_LETTER, "committer-date-is-author-date", Effect::None),
    value(NO_LETTER, "empty", Effect::None),
    flag(NO_LETTER, "ignore-date", Effect::None),
    flag(NO_LETTER, "index", Effect::None),
    flag(NO_LETTER, "keep-cr", Effect::None),
    flag(NO_LETTER, "no-3way", Effect::None),
    flag(NO_LETTER, "no-gpg-sign", Effect::None),
    flag(NO_LETTER, "no-keep-cr", Effect::None),
    flag(NO_LETTER, "no-message-id", Effect::None),
    flag(NO_LETTER, "no-scissors", Effect::None),
    flag(NO_LETTER, "no-signoff", Effect::None),
    flag(NO_LETTER, "no-utf8", Effect::None),
    flag(NO_LETTER, "no-verify", Effect::None),
    value(NO_LETTER, "patch-format", Effect::None),
    value(NO_LETTER, "quoted-cr", Effect::None),
    flag(NO_LETTER, "reject", Effect::None),
    flag(NO_LETTER, "rerere-autoupdate", Effect::None),
    value(NO_LETTER, "resolvemsg", Effect::None),
    flag(NO_LETTER, "unsafe-paths", Effect::None),
];

const RPM_PATCH: &[OptionSpec] = &[
    value('p', "strip", Effect::Strip),
    value('F', "fuzz", Effect::Fuzz),
    flag('R', "reverse", Effect::Reverse),
    value('P', "", Effect::Number),
    value('b', "", Effect::None),
    flag('E', "", Effect::None),
    value('z', "", Effect::None),
    flag('Z', "", Effect::None),
    value('d', "", Effect::NotFollowed),
    value('o', "", Effect::Other),
];

const RPM_AUTO: &[OptionSpec] = &[
    value('p', "", Effect::Strip),
    value('m', "", Effect::Lowest),
    value('M', "", Effect::Highest),
    flag('N', "", Effect::DryRun),
    value('a', "", Effect::None),
    value('b', "", Effect::None),
    flag('c', "", Effect::None),
    flag('D', "", Effect::None),
    value('n', "", Effect::None),
    flag('q', "", Effect::None),
    value('S', "", Effect::None),
    flag('T', "", Effect::None),
    flag('v', "", Effect::None),
];

impl Program {
    fn known(self) -> &'static [OptionSpec] {
        match self {
            Program::Patch => PATCH,
            Program::Git => GIT,
            Program::RpmPatch => RPM_PATCH,
            Program::RpmAuto => RPM_AUTO,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Program::Patch => "patch(1)",
            Program::Git => "git",
            Program::RpmPatch => "`%patch`",
            Program::RpmAuto => "`%autosetup` and `%autopatch`",
        }
    }

    fn short(self, letter: char) -> Result<&'static OptionSpec, String> {
        let found = self.known().iter().find(|known| known.letter == letter && letter != NO_LETTER);
        found.ok_or_else(|| self.unknown(&format!("-{letter}")))
    }

    /// Returns the option with this long name, or with the only one that begins so.
    fn long(self, name: &str) -> Result<&'static OptionSpec, String> {
        let exact = self.known().iter().find(|known| known.name == name);
        let begun: Vec<&OptionSpec> =
            self.known().iter().filter(|known| known.name.starts_with(name)).collect();
        let only = if begun.len() == 1 { begun.first().copied() } else { None };
        let found = exact.or(only).filter(|_| !name.is_empty());
        found.ok_or_else(|| self.unknown(&format!("--{name}")))
    }

    fn unknown(self, written: &str) -> String {
        format!("`{written}` is not a known option of {}", self.name())
    }
}

/// Reads the words after the name of `program`.
///
/// # Errors
///
/// The first option that is unknown, that lacks its value, or that changes the result in an unsupported way.
pub(crate) fn read_options<'w>(program: Program, words: &[&'w str]) -> Result<ReadOptions<'w>, String> {
    let mut read = ReadOptions::default();
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        if word == "--" {
            read.operands.extend(words.by_ref());
        } else if let Some(long) = word.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            let known = program.long(name)?;
            let value = match known.takes {
                Takes::Nothing => None,
                Takes::Value => value.or_else(|| words.next()),
                Takes::Attached => value,
            };
            read.take(known, &format!("--{name}"), value)?;
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            read.take_letters(program, letters, &mut words)?;
        } else {
            read.operands.push(word);
        }
    }
    Ok(read)
}

impl<'w> ReadOptions<'w> {
    /// Reads short options that were written together: `-Rp1`, `-p 1`, `-ER`.
    fn take_letters(
        &mut self,
        program: Program,
        letters: &'w str,
        words: &mut impl Iterator<Item = &'w str>,
    ) -> Result<(), String> {
        for (at, letter) in letters.char_indices() {
            let known = program.short(letter)?;
            let written = format!("-{letter}");
            if known.takes == Takes::Nothing {
                self.take(known, &written, None)?;
                continue;
            }
            // The rest of the word is the value.
            let rest = letters.get(at + letter.len_utf8()..).filter(|rest| !rest.is_empty());
            let value = if known.takes == Takes::Value { rest.or_else(|| words.next()) } else { rest };
            return self.take(known, &written, value);
        }
        Ok(())
    }

    fn take(&mut self, known: &OptionSpec, written: &str, value: Option<&'w str>) -> Result<(), String> {
        if known.takes == Takes::Value && value.is_none() {
            return Err(format!("`{written}` has no value"));
        }
        match known.effect {
            Effect::Strip => self.options.strip = Some(strip_in(written, value)?),
            Effect::Fuzz => self.options.is_strict = number_in(written, value)? == 0,
            Effect::Reverse => self.options.reverse = true,
            Effect::Input => self.input = value,
            Effect::None => {}
            Effect::DryRun => self.is_dry_run = true,
            Effect::NotFollowed => self.not_followed.push(joined(written, value)),
            Effect::WhiteSpace if value.is_none_or(|value| !["fix", "strip"].contains(&value)) => {}
            Effect::Other | Effect::WhiteSpace => return Err(not_carried_out(&joined(written, value))),
            Effect::Number => self.numbers.push(number_in(written, value)?),
            Effect::Lowest => self.lowest = Some(number_in(written, value)?),
            Effect::Highest => self.highest = Some(number_in(written, value)?),
        }
        Ok(())
    }
}

/// Returns the message about an option whose effect `import` does not carry out.
pub(crate) fn not_carried_out(written: &str) -> String {
    format!("`{written}` changes what the patch does, which `import` does not carry out")
}

/// Returns an option with its value as it is usually written.
fn joined(written: &str, value: Option<&str>) -> String {
    match value {
        Some(value) if written.starts_with("--") => format!("{written}={value}"),
        Some(value) => format!("{written}{value}"),
        None => written.to_owned(),
    }
}

fn number_in(written: &str, value: Option<&str>) -> Result<u32, String> {
    let number = value.and_then(|value| value.parse().ok());
    number.ok_or_else(|| format!("`{}` has no number", joined(written, value)))
}

/// Maximum number of path components to strip.
const STRIP_LIMIT: u32 = 99;

/// Reads the value of `-p`. quilt has `-pab` for `-p1`.
fn strip_in(written: &str, value: Option<&str>) -> Result<u32, String> {
    if value == Some("ab") {
        return Ok(1);
    }
    let count = number_in(written, value)?;
    if count > STRIP_LIMIT {
        return Err(format!("`{}` strips more than {STRIP_LIMIT} components", joined(written, value)));
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::{ApplyOptions, Program, ReadOptions, read_options};

    fn read(program: Program, line: &str) -> Result<ReadOptions<'_>, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        read_options(program, &words)
    }

    fn options(program: Program, line: &str) -> (Option<u32>, bool, bool) {
        let ApplyOptions { strip, reverse, is_strict } = read(program, line).unwrap().options;
        (strip, reverse, is_strict)
    }

    #[test]
    fn options_are_read_in_all_their_forms() {
        for (line, wanted) in [
            ("-p1", (Some(1), false, false)),
            ("-p 2 -R", (Some(2), true, false)),
            ("-Rp1", (Some(1), true, false)),
            ("-Np0", (Some(0), false, false)),
            ("-ER", (None, true, false)),
            ("-RNp 3", (Some(3), true, false)),
            ("--strip=1 --reverse", (Some(1), true, false)),
            ("--strip 1 --rev --fuzz=0", (Some(1), true, true)),
            ("-F0", (None, false, true)),
            ("-F 3 --forward -s -g0", (None, false, false)),
            ("-z .orig -bp1", (Some(1), false, false)),
            ("-pab", (Some(1), false, false)),
            ("-- -R", (None, false, false)),
        ] {
            assert_eq!(options(Program::Patch, line), wanted, "{line}");
        }
        for (line, wanted) in [
            ("-R x.patch", (None, true, false)),
            ("--reverse -p0 --3way", (Some(0), true, false)),
            ("--whitespace=nowarn -v --ignore-whitespace -p 2", (Some(2), false, false)),
            ("-3qk", (None, false, false)),
        ] {
            assert_eq!(options(Program::Git, line), wanted, "{line}");
        }
        assert_eq!(options(Program::RpmPatch, "-P 1 -p1 --reverse"), (Some(1), true, false));
        assert_eq!(options(Program::RpmPatch, "-p1 -b .x -ER -F 0"), (Some(1), true, true));
    }

    #[test]
    fn files_numbers_and_folders_are_told_apart() {
        let patch = read(Program::Patch, "-d src -l -p1 -i ../a.patch --dry-run x.c").unwrap();
        assert_eq!((patch.input, patch.operands.as_slice()), (Some("../a.patch"), ["x.c"].as_slice()));
        assert_eq!(patch.not_followed, ["-dsrc", "-l"]);
        assert!(patch.is_dry_run);
        let git = read(Program::Git, "-p1 a.patch b.patch").unwrap();
        assert_eq!(git.operands, ["a.patch", "b.patch"]);
        let rpm = read(Program::RpmPatch, "-P1 -P 2 3").unwrap();
        assert_eq!((rpm.numbers.as_slice(), rpm.operands.as_slice()), ([1, 2].as_slice(), ["3"].as_slice()));
        let auto = read(Program::RpmAuto, "-p1 -m 100 -M 200 -n x-1").unwrap();
        assert_eq!((auto.lowest, auto.highest, auto.is_dry_run), (Some(100), Some(200), false));
        assert!(read(Program::RpmAuto, "-N -n x").unwrap().is_dry_run);
    }

    #[test]
    fn an_option_that_cannot_be_followed_is_named() {
        for (program, line, wanted) in [
            (Program::Patch, "-q", "`-q` is not a known option of patch(1)"),
            (Program::Patch, "--re", "`--re` is not a known option of patch(1)"),
            (Program::Patch, "-Rp", "`-p` has no value"),
            (Program::Patch, "-p1R", "`-p1R` has no number"),
            (Program::Patch, "-p1000", "`-p1000` strips more than 99 components"),
            (Program::Patch, "--fuzz=x", "`--fuzz=x` has no number"),
            (Program::Patch, "--ifdef=X", "`--ifdef=X` changes what the patch does"),
            (Program::Git, "--directory=src a.patch", "`--directory=src` changes what the patch does"),
            (Program::Git, "--whitespace=fix", "`--whitespace=fix` changes what the patch does"),
            (Program::RpmPatch, "-x", "`-x` is not a known option of `%patch`"),
        ] {
            let why = read(program, line).unwrap_err();
            assert!(why.starts_with(wanted), "{line}: {why}");
        }
    }
}
