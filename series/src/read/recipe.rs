//! The patches that a package's recipe names, in order: a vcpkg port, a Yocto, Gentoo or Haiku recipe, a Nix
//! expression. Spec files are read by [`super::spec`].
//!
//! A recipe is a program, but is not executed: the text is searched for names, variables in them match anything, and
//! conditions are not evaluated.

use std::collections::HashSet;

use super::quilt::without_comment;

/// One patch that a recipe names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The path as written, with `*` for each variable.
    pub pattern: String,
    /// Number of leading path components to strip (`-p`), if the recipe specifies it.
    pub strip: Option<u32>,
    /// Whether it is applied in reverse.
    pub reverse: bool,
    /// Whether all of its context has to match, as `-F0` requests.
    pub is_strict: bool,
    /// The reason why the recipe does not apply it to the source, if it does not.
    pub left_out: Option<&'static str>,
}

/// Returns the patches that `text` names, each once, in the order of their first occurrence.
pub fn read_recipe(text: &str) -> Vec<Named> {
    let mut seen: HashSet<String> = HashSet::new();
    let words = text.lines().map(without_comment).flat_map(|line| line.split(is_separator));
    words.filter_map(read_word).filter(|named| seen.insert(named.pattern.clone())).collect()
}

fn is_separator(letter: char) -> bool {
    letter.is_whitespace() || "\"'()[],\\`".contains(letter)
}

/// Reads a word as a patch: `file://0001-a.patch;striplevel=2`, `./a.patch`, or `${P}-fix.diff`.
fn read_word(word: &str) -> Option<Named> {
    let mut parts = word.split(';');
    let path = parts.next()?;
    let path = path.rsplit_once('=').map_or(path, |(_, path)| path);
    let (path, is_remote) = match path.split_once("://") {
        Some(("file", path)) => (path, false),
        Some(_) => (path, true),
        None => (path, false),
    };
    let path = path.trim_start_matches("./");
    if ![".patch", ".diff", ".patchset"].iter().any(|ending| path.ends_with(ending)) {
        return None;
    }
    let pattern = if is_remote { path.to_owned() } else { without_variables(path) };
    let mut named = Named {
        pattern,
        strip: None,
        reverse: false,
        is_strict: false,
        left_out: is_remote.then_some("the recipe downloads it"),
    };
    for (key, value) in parts.filter_map(|part| part.split_once('=')) {
        match key {
            "striplevel" | "pnum" => named.strip = value.parse().ok(),
            "apply" if ["no", "0", "false"].contains(&value) => {
                named.left_out = Some("the recipe does not apply it (`apply=no`)");
            }
            "patchdir" => named.left_out = Some("the recipe applies it to another source (`patchdir`)"),
            _ => {}
        }
    }
    Some(named)
}

/// Replaces `${NAME}`, `%{name}`, `$NAME` by `*`.
pub(super) fn without_variables(path: &str) -> String {
    let mut plain = String::new();
    let mut letters = path.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_braced = (letter == '$' || letter == '%') && letters.peek() == Some(&'{');
        if is_braced {
            letters.by_ref().take_while(|letter| *letter != '}').for_each(drop);
        } else if letter == '$' {
            while letters.next_if(|letter| letter.is_ascii_alphanumeric() || *letter == '_').is_some() {}
        }
        plain.push(if is_braced || letter == '$' { '*' } else { letter });
    }
    plain
}

/// Returns whether `name` matches `pattern`, in which each `*` matches any characters.
pub fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut is_literal = true;
    for part in parts {
        is_literal = false;
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    // The last part has to match at the end.
    let last = pattern.rsplit('*').next().unwrap_or_default();
    if is_literal { rest.is_empty() } else { name.ends_with(last) }
}

#[cfg(test)]
mod tests {
    use super::{Named, fits, read_recipe};

    fn plain(pattern: &str) -> Named {
        Named { pattern: pattern.to_owned(), strip: None, reverse: false, is_strict: false, left_out: None }
    }

    fn patterns(text: &str) -> Vec<String> {
        read_recipe(text).into_iter().map(|named| named.pattern).collect()
    }

    #[test]
    fn a_vcpkg_port() {
        let text = "vcpkg_from_github(\n  REPO a/b\n  PATCHES\n    z.patch\n    a.patch # why\n    # no.patch\n\
                    fix-${PORT}.patch)\n";
        assert_eq!(patterns(text), ["z.patch", "a.patch", "fix-*.patch"]);
    }

    #[test]
    fn a_yocto_recipe() {
        let text = "SRC_URI = \"https://x.org/a-${PV}.tar.gz \\\n   file://0002-b.patch \\\n   file://a.diff;striplevel=2 \\\n\
                    file://no.patch;apply=no \\\n   https://x.org/c.patch;name=c \\\n\"\nSRC_URI:append = \" file://d.patch\"\n";
        let mut a = plain("a.diff");
        a.strip = Some(2);
        let no = Named { left_out: Some("the recipe does not apply it (`apply=no`)"), ..plain("no.patch") };
        let c = Named { left_out: Some("the recipe downloads it"), ..plain("https://x.org/c.patch") };
        assert_eq!(read_recipe(text), [plain("0002-b.patch"), a, no, c, plain("d.patch")]);
    }

    #[test]
    fn other_recipes() {
        assert_eq!(patterns("patches = [ ./b.patch ./sub/a.patch ];"), ["b.patch", "sub/a.patch"]);
        assert_eq!(patterns("patches=[./b.patch];"), ["b.patch"]);
        assert_eq!(
            patterns("PATCHES=(\n\"${FILESDIR}\"/${P}-x.patch\n\"${FILESDIR}/y.patch\" )"),
            ["/*-x.patch", "*/y.patch"]
        );
        assert_eq!(patterns("PATCHES=\"\n\ta-$portVersion.patchset\n\"\n"), ["a-*.patchset"]);
        assert_eq!(patterns("source=\"x.tar.gz\n\tb.patch\n\ta-$pkgver.patch\n\""), ["b.patch", "a-*.patch"]);
        assert_eq!(patterns("no patches here\n"), [""; 0]);
    }

    #[test]
    fn a_variable_stands_for_anything() {
        for (pattern, name, wanted) in [
            ("a.patch", "a.patch", true),
            ("a.patch", "ba.patch", false),
            ("*-x.patch", "p-1.2-x.patch", true),
            ("a-*.patch", "a-1.patch", true),
            ("a-*.patch", "b-1.patch", false),
            ("*-x.patch", "x.patch", false),
            ("*.patch", "a.patch.diff", false),
        ] {
            assert_eq!(fits(pattern, name), wanted, "{pattern} {name}");
        }
    }
}
