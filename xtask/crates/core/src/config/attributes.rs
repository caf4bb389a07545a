//! `.gitattributes` of a project: the files that git must check out without converting line endings.
//!
//! Git for Windows sets `core.autocrlf` by default, which converts line endings at checkout. Patches, overlays and the
//! lock are compared byte by byte, so every comparison fails in a converted checkout.

use std::collections::BTreeSet;

use espalier_series::lossy;

use super::pins::Pins;
use crate::next_command::quoted;

/// The name of the file, relative to the root.
pub const ATTRIBUTES_FILE: &str = ".gitattributes";

const COMMENT: &str = "# Compared byte by byte: git must not convert line ends (core.autocrlf).";

/// Shell command for a checkout in which git has converted line endings: completes `text`, the project's
/// `.gitattributes`, and checks out again all files that are compared byte by byte. Untracked files are kept.
pub fn check_out_again(text: &str, pins: &Pins) -> String {
    let present = lines_of(text);
    let missing = wanted(pins).into_iter().filter(|line| !present.contains(line.as_str()));
    let missing: Vec<String> = missing.map(|line| quoted(&line)).collect();
    let complete = match missing.is_empty() {
        true => String::new(),
        false => format!("printf '%s\\n' {} >>{ATTRIBUTES_FILE} && ", missing.join(" ")),
    };
    let folders: BTreeSet<&str> = folders(pins).map(top_folder).collect();
    let folders = folders.into_iter().map(quoted).collect::<Vec<_>>().join(" ");
    format!("{complete}git rm -r --cached --quiet -- {folders} && git checkout HEAD -- {folders}")
}

/// Appends the missing lines to `text`, the `.gitattributes` of a project with these pins; at the end of the file they
/// override earlier lines. Returns `None` when no line is missing.
pub fn completed(text: &[u8], pins: &Pins) -> Option<Vec<u8>> {
    let shown = lossy(text);
    let present = lines_of(&shown);
    let missing: Vec<String> =
        wanted(pins).into_iter().filter(|line| !present.contains(line.as_str())).collect();
    if missing.is_empty() {
        return None;
    }
    let (before, gap) = match text.trim_ascii_end() {
        b"" => (&b""[..], ""),
        text => (text, "\n\n"),
    };
    let added = format!("{gap}{COMMENT}\n{}\n", missing.join("\n"));
    Some([before, added.as_bytes()].concat())
}

fn wanted(pins: &Pins) -> BTreeSet<String> {
    let folders = folders(pins).map(|folder| line_of(&format!("{}/**", top_folder(folder))));
    folders.chain(["espalier.lock", "pins.toml"].map(line_of)).collect()
}

fn folders(pins: &Pins) -> impl Iterator<Item = &str> {
    let overlays = pins.variants.values().flat_map(|variant| &variant.overlays).map(String::as_str);
    pins.series_folders().chain(overlays)
}

fn lines_of(text: &str) -> BTreeSet<&str> {
    text.lines().map(str::trim).collect()
}

/// Returns the first folder of the path: one line for `patches/` covers every variant, including those added later.
fn top_folder(folder: &str) -> &str {
    folder.split_once('/').map_or(folder, |(top, _)| top)
}

/// Returns the line for `path`, anchored to the root. Git requires C-style quotes around a pattern that contains a
/// space.
fn line_of(path: &str) -> String {
    if path.contains([' ', '"', '\\', '\t']) {
        return format!("\"/{}\" -text", path.replace('\\', "\\\\").replace('"', "\\\""));
    }
    format!("/{path} -text")
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test reads the files of this repository")]
mod tests {
    use super::{check_out_again, completed};
    use crate::config::pins::Pins;
    use crate::config::snippet::SourceText;

    fn pins(more: &str) -> Pins {
        let text = format!(
            "default-variant = \"a\"\n[pins.a]\nupstream = \"x\"\ntag = \"v1\"\ntree = \"{}\"\n\
             sources = [{{ path = \"../x\" }}]\n[variants.a]\npin = \"a\"\npatches = \"patches/a\"\n{more}",
            "1".repeat(40)
        );
        Pins::parse(SourceText { name: "pins.toml", text: &text }).unwrap()
    }

    #[test]
    fn missing_lines_are_added_at_the_end() {
        let completed = |text: &str, pins: &Pins| {
            completed(text.as_bytes(), pins).map(|bytes| String::from_utf8(bytes).unwrap())
        };
        let whole = completed("", &pins("")).unwrap();
        assert!(whole.starts_with("# "), "{whole}");
        for line in ["/patches/** -text", "/espalier.lock -text", "/pins.toml -text"] {
            assert!(whole.lines().any(|found| found == line), "{line}\n{whole}");
        }
        assert_eq!(completed(&whole, &pins("")), None);
        assert_eq!(completed(&whole.replace('\n', "\r\n"), &pins("")), None, "a converted file has them too");
        let grown = completed(&whole, &pins("overlays = [\"my overlay/x\"]\n")).unwrap();
        assert!(
            grown.starts_with(whole.trim_end()) && grown.ends_with("\n\"/my overlay/**\" -text\n"),
            "{grown}"
        );
        let theirs = completed("* text=auto\n", &pins("")).unwrap();
        assert!(theirs.starts_with("* text=auto\n\n# "), "{theirs}");
    }

    #[test]
    fn a_converted_checkout_has_a_way_back() {
        let whole = String::from_utf8(completed(b"", &pins("")).unwrap()).unwrap();
        let again = "git rm -r --cached --quiet -- patches && git checkout HEAD -- patches";
        assert_eq!(check_out_again(&whole, &pins("")), again);
        let first = check_out_again("", &pins(""));
        assert_eq!(
            first,
            format!(
                "printf '%s\\n' '/espalier.lock -text' '/patches/** -text' '/pins.toml -text' >>.gitattributes && {again}"
            )
        );
    }

    #[test]
    fn this_repository_has_them() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");
        let read = |name: &str| std::fs::read_to_string(format!("{root}/{name}")).unwrap();
        let pins = read("pins.toml");
        let pins = Pins::parse(SourceText { name: "pins.toml", text: &pins }).unwrap();
        assert_eq!(completed(read(".gitattributes").as_bytes(), &pins), None);
    }
}
