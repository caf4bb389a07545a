//! PURE: options that patches add to upstream's programs. A name that upstream uses too has two meanings, of which its
//! parser silently takes one (decision 0029).

use espalier_series::{Content, Hunk, HunkLine, LineKind, Patch, lossy};

/// The end of the line above the flags of an option, in `common/arg.cpp`.
const DECLARATION: &str = "common_arg(";

/// Returns the flags of the options that `patch` adds.
pub fn added(patch: &Patch) -> Vec<String> {
    let hunks = patch.files.iter().filter_map(|file| match &file.content {
        Content::Text(hunks) => Some(hunks),
        _ => None,
    });
    hunks.flatten().flat_map(added_by).collect()
}

fn added_by(hunk: &Hunk) -> Vec<String> {
    let removed = hunk.lines.iter().filter(|line| line.kind == LineKind::Delete);
    let removed: Vec<String> = removed.flat_map(|line| flags_in(&lossy(line.bytes))).collect();
    let new: Vec<HunkLine<'_>> = hunk.lines.iter().filter(|line| line.kind != LineKind::Delete).collect();
    let declared = new.windows(2).filter_map(|lines| match lines {
        [head, flags] if flags.kind == LineKind::Add && begins_declaration(head) => {
            Some(flags_in(&lossy(flags.bytes)))
        }
        _ => None,
    });
    declared.flatten().filter(|flag| !removed.contains(flag)).collect()
}

fn begins_declaration(line: &HunkLine<'_>) -> bool {
    lossy(line.bytes).trim_end().ends_with(DECLARATION)
}

/// Returns the long flags in a line such as `{"-c", "--ctx-size"}, "N",`.
fn flags_in(line: &str) -> Vec<String> {
    let list = line.trim_start().strip_prefix('{').and_then(|rest| rest.split('}').next());
    let words = list.unwrap_or_default().split('"').skip(1).step_by(2);
    words.filter(|word| word.starts_with("--")).map(str::to_string).collect()
}

/// Returns those of `options` that a program with this `--help` has.
pub fn known<'a>(options: &'a [String], help: &str) -> Vec<&'a str> {
    let entries = || help.lines().filter(|line| line.starts_with('-'));
    let has = |option: &&str| entries().any(|line| flags_of_entry(line).any(|flag| flag == *option));
    options.iter().map(String::as_str).filter(has).collect()
}

/// Returns the flags that a line of the help begins with. The description behind them may mention other options.
fn flags_of_entry(line: &str) -> impl Iterator<Item = &str> {
    line.split([' ', ',']).filter(|word| !word.is_empty()).take_while(|word| word.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use espalier_series::hunks_between;

    use super::*;

    #[test]
    fn the_flags_of_added_declarations_are_found() {
        let old = "add_opt(common_arg(\n    {\"-c\", \"--ctx-size\"}, \"N\",\n";
        let new = "add_opt(common_arg(\n    {\"-c\", \"--ctx-size\", \"--context\"}, \"N\",\n\
                   add_opt(common_arg(\n    { \"-kvp\", \"--kv-paged\" },\n    \"see {\\\"--parallel\\\"}\",\n\
                   parse(\n    {\"--model\", \"x\"});\n";
        let hunks = hunks_between(old.as_bytes(), new.as_bytes());
        let added: Vec<String> = hunks.iter().flat_map(added_by).collect();
        assert_eq!(added, ["--context", "--kv-paged"]);
    }

    #[test]
    fn a_flag_is_known_by_its_entry_in_the_help() {
        let help =
            "-c,    --ctx-size N          as --context\n                 --kv-paged\n-kvp, --kv-pages\n";
        let options = ["--ctx-size", "--context", "--kv-paged"].map(str::to_string);
        assert_eq!(known(&options, help), ["--ctx-size"]);
    }
}
