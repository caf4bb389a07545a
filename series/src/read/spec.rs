//! The patches that an RPM spec file applies: declared by `PatchN:`, applied by `%patch`, `%autopatch` or `%autosetup`.
//!
//! Macros are not expanded: in a name they match anything. Conditions are not evaluated.

use super::recipe::{Named, without_variables};

/// A patch that the spec declares.
struct Declared {
    number: u32,
    /// Its file name, with `*` for each macro.
    file: String,
}

/// Options of a directive that applies patches.
#[derive(Default)]
struct Options {
    strip: Option<u32>,
    reverse: bool,
    /// All of the context has to match: `%patch -F 0`.
    is_strict: bool,
    /// Apply no patch: `%autosetup -N`.
    none: bool,
    lowest: Option<u32>,
    highest: Option<u32>,
    numbers: Vec<u32>,
}

/// Returns the patches that the spec file `text` applies, in order, then those that it only declares.
pub fn read_spec(text: &str) -> Vec<Named> {
    let mut declared: Vec<Declared> = Vec::new();
    let (mut applied, mut has_directive): (Vec<Named>, bool) = (Vec::new(), false);
    let mut is_list = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        is_list = line == "%patchlist" || (is_list && !line.starts_with('%'));
        if is_list && !line.starts_with('%') {
            let number = declared.last().map_or(0, |last| last.number + 1);
            declared.push(Declared { number, file: file_of(line) });
        } else if let Some((number, value)) = declaration(line) {
            let number = number.unwrap_or_else(|| declared.last().map_or(0, |last| last.number + 1));
            declared.push(Declared { number, file: file_of(value) });
        } else if let Some((name, options)) = directive(line) {
            has_directive = true;
            let chosen = declared.iter().filter(|patch| options.chooses(name, patch.number));
            let mut chosen: Vec<&Declared> = chosen.collect();
            // `%patch` applies them in the order of its arguments, the others by number.
            if name == "patch" {
                chosen.sort_by_key(|patch| options.numbers.iter().position(|number| *number == patch.number));
            } else {
                chosen.sort_by_key(|patch| patch.number);
            }
            for patch in chosen {
                let Options { strip, reverse, is_strict, .. } = options;
                let named = Named { strip, reverse, is_strict, ..plain(patch) };
                if !applied.iter().any(|other| other.pattern == named.pattern) {
                    applied.push(named);
                }
            }
        }
    }
    // `git am %{patches}` and `patch < %{PATCH7}` cannot be interpreted here.
    let is_by_hand = text.contains("%{patches}") || text.contains("%{PATCH") || text.contains("%PATCH");
    for patch in &declared {
        if !applied.iter().any(|other| other.pattern == patch.file) {
            let left_out = (has_directive && !is_by_hand).then_some("the spec file does not apply it");
            applied.push(Named { left_out, ..plain(patch) });
        }
    }
    applied
}

fn plain(patch: &Declared) -> Named {
    Named { pattern: patch.file.clone(), strip: None, reverse: false, is_strict: false, left_out: None }
}

/// Parses `Patch12: value`; the number may be missing.
fn declaration(line: &str) -> Option<(Option<u32>, &str)> {
    let (key, value) = line.split_once(':')?;
    let number = key
        .trim_end()
        .get(..5)
        .filter(|tag| tag.eq_ignore_ascii_case("patch"))
        .map(|_| &key.trim_end()[5..])?;
    let number = if number.is_empty() { None } else { Some(number.parse().ok()?) };
    Some((number, value.trim()))
}

/// Returns the file beside the spec: a URL refers to the same file elsewhere.
fn file_of(value: &str) -> String {
    let value = value.split_whitespace().next().unwrap_or_default();
    without_variables(value.rsplit('/').next().unwrap_or(value))
}

/// Parses `%patch -P 12 -p1`, `%patch12 -p1`, `%{patch12}`, `%autopatch -p1 -m 100`, `%autosetup -p1`.
fn directive(line: &str) -> Option<(&'static str, Options)> {
    let rest = line.strip_prefix('%')?;
    let rest = rest.strip_prefix('{').unwrap_or(rest);
    let name = ["autopatch", "autosetup", "patch"].into_iter().find(|name| rest.starts_with(name))?;
    let rest = rest[name.len()..].replace('}', " ");
    let mut options = Options::default();
    let digits = rest.len() - rest.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    options.numbers.extend(rest[..digits].parse::<u32>().ok());
    let rest = &rest[digits..];
    if rest.starts_with(|letter: char| !letter.is_whitespace()) {
        return None;
    }
    let mut words = rest.split_whitespace();
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix('-') else {
            options.numbers.extend(word.parse::<u32>().ok());
            continue;
        };
        let Some(letter) = option.chars().next() else { continue };
        match letter {
            'R' => options.reverse = true,
            'N' if name == "autosetup" => options.none = true,
            'p' | 'P' | 'm' | 'M' | 'b' | 'z' | 'F' | 'n' | 'S' | 'a' | 'd' | 'o' => {
                let value = option.get(1..).filter(|value| !value.is_empty()).or_else(|| words.next());
                let number = value.and_then(|value| value.parse::<u32>().ok());
                match letter {
                    'p' => options.strip = number,
                    'F' => options.is_strict = number == Some(0),
                    'P' if name == "patch" => options.numbers.extend(number),
                    'm' => options.lowest = number,
                    'M' => options.highest = number,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    // `%patch` without a number means the first one.
    if name == "patch" && options.numbers.is_empty() {
        options.numbers.push(0);
    }
    Some((name, options))
}

impl Options {
    fn chooses(&self, name: &str, number: u32) -> bool {
        if self.none {
            return false;
        }
        let is_in_range = self.lowest.is_none_or(|lowest| lowest <= number)
            && self.highest.is_none_or(|highest| number <= highest);
        match name {
            "patch" => self.numbers.contains(&number),
            "autopatch" if !self.numbers.is_empty() => self.numbers.contains(&number),
            _ => is_in_range,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::read_spec;

    fn read(text: &str) -> Vec<String> {
        let said = |named: super::Named| {
            let strip = named.strip.map(|strip| format!(" -p{strip}")).unwrap_or_default();
            let reverse = if named.reverse { " -R" } else { "" };
            let strict = if named.is_strict { " -F0" } else { "" };
            format!("{}{strip}{reverse}{strict}{}", named.pattern, named.left_out.map_or("", |_| " (no)"))
        };
        read_spec(text).into_iter().map(said).collect()
    }

    const DECLARED: &str = "Patch1: a.patch\nPatch2:\t%{name}-b.patch\n#Patch3: gone.patch\nPatch300: c.diff\n\
                            Patch: https://example.org/x/d.patch\n";

    #[test]
    fn the_order_and_the_options_are_those_of_the_directives() {
        let directives = "%setup -q -a 3\n%patch -P 300 -p2 -F 0 -b .old\n%patch2 -p1 -R -F1\n# %patch 301\n%patch 1 -p 0\n";
        assert_eq!(
            read(&format!("{DECLARED}{directives}")),
            ["c.diff -p2 -F0", "*-b.patch -p1 -R", "a.patch -p0", "d.patch (no)"]
        );
    }

    #[test]
    fn all_at_once_and_by_range() {
        let all = ["a.patch -p1", "*-b.patch -p1", "c.diff -p1", "d.patch -p1"];
        assert_eq!(read(&format!("{DECLARED}%autosetup -p1 -n x-%{{version}}\n")), all);
        assert_eq!(
            read(&format!("{DECLARED}%autosetup -N\n%autopatch -p1 -M 99\n%autopatch -p2 -m 301\n")),
            ["a.patch -p1", "*-b.patch -p1", "d.patch -p2", "c.diff (no)"]
        );
        assert_eq!(read(&format!("{DECLARED}%autopatch -p1 300 2\n"))[..2], ["*-b.patch -p1", "c.diff -p1"]);
    }

    #[test]
    fn where_nothing_says_what_is_applied_all_are() {
        let plain = ["a.patch", "*-b.patch", "c.diff", "d.patch"];
        assert_eq!(read(DECLARED), plain);
        assert_eq!(read("%patchlist\na.patch\n\nb.patch\n%description\nx.patch\n"), ["a.patch", "b.patch"]);
        assert_eq!(read(&format!("{DECLARED}%setup -q\ngit am %{{patches}}\n%patches_are_none\n")), plain);
    }
}
