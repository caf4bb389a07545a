//! `README.md` beside `conflict.json`: a summary of a stopped patch for a person.

use espalier_series::{ConflictKind, lossy, printable};

use super::conflict::{
    ChangeSince, ConflictPackage, FoundText, Occurrence, OtherPatch, PackagedHunk, PackagedPatch,
    PackagedSibling, PackagedSide, PatchHunk, RelatedChange, StopKind,
};
use super::replay::by_earlier;

/// Reason of a file that merges, and that is handed over because both sides made the same change.
const SHARED_CHANGES: &str = "shared-changes";
/// Maximum number of patches that are named beside a hunk.
const OTHERS_SHOWN: usize = 8;
/// Maximum number of other places of the new tree that are named beside a hunk.
const PLACES_SHOWN: usize = 4;
/// Number of lines from which on a side is so large that it does not show the change of the patch.
const MANY: usize = 100;
/// Factor by which a side is smaller if upstream has emptied the file.
const EMPTIED: usize = 10;
/// Maximum number of lines of a diff that are shown for a hunk.
const DIFF_SHOWN: usize = 60;
/// The same for each file with a related change.
const RELATED_SHOWN: usize = 20;
/// Maximum number of identifiers that are named for such a file.
const IDENTIFIERS_SHOWN: usize = 6;

/// Returns the text; empty for a report, which has no work tree.
pub fn readme(package: &ConflictPackage) -> String {
    let ConflictPackage { patch, sibling, hunks, .. } = package;
    let Some(rebase) = &package.rebase else { return String::new() };
    let mut text = format!("{}\n\n", reason(package));
    text += &files(package);
    text += &sibling.as_ref().map(|sibling| change_since(sibling, &patch.file)).unwrap_or_default();
    text += &purpose(patch);
    text += &format!("Work tree: {}\n", rebase.work);
    text += "All of it as data: conflict.json; docs/reference/conflict-json.md of Espalier has every key\n";
    let ours = match sibling {
        Some(sibling) if sibling.outdated => "the present tree",
        Some(_) => "the sibling",
        None => "upstream",
    };
    for (at, hunk) in hunks.iter().enumerate() {
        text += &describe(hunk, ours);
        text += &upstream_change(hunk, hunks.get(..at).unwrap_or_default());
    }
    text += &match sibling {
        Some(_) if hunks.is_empty() => String::new(),
        Some(sibling) if sibling.outdated => LEGEND_OF_OUTDATED.to_string(),
        Some(_) => LEGEND_OF_SIBLING.to_string(),
        None => legend(hunks),
    };
    text += &related(&package.related);
    text += &format!("\n{}\nThen: {}\n", rules(package), rebase.next.go_on);
    text += &format!("Or without this patch: {}\nOr not at all: {}\n", rebase.next.skip, rebase.next.abort);
    text += &format!("The rebase compiles and tests nothing. After its end: {}\n", rebase.next.check);
    text
}

/// The reason for the stop.
fn reason(package: &ConflictPackage) -> String {
    let ConflictPackage { patch, upstream, .. } = package;
    let to = package.to.as_ref().map(|to| to.name.as_str()).unwrap_or_default();
    match (&package.sibling, package.kind) {
        (Some(sibling), StopKind::Conflict) if sibling.outdated => {
            format!("{} does not merge with the earlier patches as they are now.", sibling.file)
        }
        (Some(sibling), StopKind::Conflict) => {
            format!("The change of {} does not merge with {} automatically.", patch.file, sibling.file)
        }
        (Some(sibling), StopKind::Edit) => format!("{} waits to be edited.", sibling.file),
        (None, StopKind::Conflict) if shares_changes(package) => {
            format!("{} is to be edited: {upstream} {to} has a part of it.", patch.file)
        }
        (None, StopKind::Conflict) => {
            format!("{} does not apply to {upstream} {to} automatically.", patch.file)
        }
        (None, StopKind::Edit) => {
            format!("{} applies to {upstream} {to}, and waits to be edited.", patch.file)
        }
    }
}

/// Whether the patch merges, and a person asked to edit what upstream has of it.
fn shares_changes(package: &ConflictPackage) -> bool {
    !package.files.is_empty() && package.files.iter().all(|file| file.reason == SHARED_CHANGES)
}

/// The content of the work tree, and the change that the patch has got since its sibling was made for it.
fn change_since(sibling: &PackagedSibling, patch: &str) -> String {
    let mut text = format!("{}.\n\n", sibling.describe(patch));
    match &sibling.difference {
        Some(difference) => {
            text +=
                "The difference of the two versions of the patch (a text of the patch, no instruction):\n\n";
            text += &indented(difference);
            text += "\n";
        }
        None if sibling.change == ChangeSince::None => {}
        None => {
            text +=
                "The difference of the two versions is not known: compare the patch with the sibling.\n\n";
        }
    }
    text
}

/// Returns the lines as a block of code.
fn indented(lines: &str) -> String {
    let line = |line: &str| format!("{}\n", format!("    {line}").trim_end());
    lines.lines().map(line).collect()
}

/// The sides of a conflict with a sibling.
const LEGEND_OF_SIBLING: &str = "  base: the patch as it was when the sibling was made for it; ours: the sibling;\n  \
     theirs: the patch as it is; function-*: the function around each\n";

/// The same if the sibling itself is merged.
const LEGEND_OF_OUTDATED: &str = "  base: the tree that the sibling was made for; ours: the present tree;\n  \
     theirs: the sibling; function-*: the function around each\n";

/// Every file with a conflict, and whether it is resolved already.
fn files(package: &ConflictPackage) -> String {
    let mut text = String::new();
    for file in &package.files {
        text += &format!("* {}\n", file.description.replace('\n', "\n  "));
        if let Some(origin) = &file.recorded {
            text += &format!(
                "  it is resolved in the work tree already, as when {origin}; it has no markers: review it\n"
            );
        }
    }
    if text.is_empty() { text } else { text + "\n" }
}

/// The message of the patch, which says what it is for, the condition under which it can go, and its tests.
fn purpose(patch: &PackagedPatch) -> String {
    let mut text = "Its message (a text of the patch, no instruction):\n\n".to_string();
    text += &indented(patch.message.trim_end());
    let mut facts = String::new();
    let is_condition = |key: &str| key.eq_ignore_ascii_case("Drop-when");
    for trailer in patch.trailers.iter().filter(|trailer| is_condition(&trailer.key)) {
        facts += &format!("It can be dropped when: {}\n", trailer.text);
    }
    for test in &patch.verified_by {
        facts += &format!("Its test, from {}: {}\n", test.source, test.text);
    }
    if facts.is_empty() { text + "\n" } else { format!("{text}\n{facts}\n") }
}

/// One place with a conflict; `ours` names the side that the patch meets.
fn describe(hunk: &PackagedHunk, ours: &str) -> String {
    let function = hunk.function.as_ref().map(|name| format!(", in `{name}`")).unwrap_or_default();
    let marked = hunk.marked.as_ref();
    let lines = marked.map(|span| format!(":{}-{}", span.start, span.start + span.lines.saturating_sub(1)));
    let mut text =
        format!("{}/: {}{}{function}\n", hunk.folder, hunk.path.as_str(), lines.unwrap_or_default());
    match (&hunk.changed_by, hunk.kind) {
        (Some(patches), _) => text += &format!("  {}\n", printable(by_earlier(patches).as_bytes())),
        (None, Some(kind)) => text += &format!("  {}\n", describe_kind(kind, hunk, ours)),
        (None, None) => {}
    }
    if let Some(likeness) = likeness(hunk, ours) {
        text += &format!("  {likeness}\n");
    }
    text + &elsewhere(&hunk.elsewhere) + &others(&hunk.other_patches)
}

fn describe_kind(kind: ConflictKind, hunk: &PackagedHunk, name: &str) -> String {
    let count = |side: &Option<PackagedSide>| match side.as_ref().map_or(0, |side| side.span.lines) {
        1 => "1 line".to_string(),
        lines => format!("{lines} lines"),
    };
    let (base, ours, theirs) = (count(&hunk.base), count(&hunk.ours), count(&hunk.theirs));
    match kind {
        ConflictKind::BothChanged => emptied(hunk, name).unwrap_or_else(|| {
            format!("both change the same {base}: {name} to {ours}, the patch to {theirs}")
        }),
        ConflictKind::BothAdded => {
            format!("both add lines at one place, and change none: {name} {ours}, the patch {theirs}")
        }
        ConflictKind::OursHasTheirs => {
            format!("{name} adds the lines of the patch too, and {ours} more: nothing is left to add")
        }
        ConflictKind::TheirsHasOurs => {
            format!("the patch adds the lines of {name} too, and {theirs} more: take theirs")
        }
    }
}

/// Describes a conflict with a file that has lost nearly all of its lines: the number of lines of the patch's side says
/// nothing about the patch then.
fn emptied(hunk: &PackagedHunk, name: &str) -> Option<String> {
    let [base, ours] = [&hunk.base, &hunk.ours].map(|side| side.as_ref().map(|side| side.span.lines));
    let (base, ours) = base.zip(ours).filter(|(base, ours)| *base >= MANY && ours * EMPTIED <= *base)?;
    let first = hunk.patch_hunks.first()?;
    let sum = |of: fn(&PatchHunk) -> usize| hunk.patch_hunks.iter().map(of).sum::<usize>();
    let changes = [("adds", sum(|hunk| hunk.added)), ("deletes", sum(|hunk| hunk.deleted))];
    let lines = |count: usize| if count == 1 { "1 line".to_string() } else { format!("{count} lines") };
    let changes = changes.iter().filter(|(_, count)| *count > 0);
    let changes: Vec<String> = changes.map(|(verb, count)| format!("{verb} {}", lines(*count))).collect();
    let place = match hunk.patch_hunks.len() {
        1 => format!("after line {} of the base", first.after),
        places => format!("in {places} places, the first after line {} of the base", first.after),
    };
    Some(format!("{name} reduced these {base} lines to {ours}; the patch {} {place}", changes.join(" and ")))
}

/// Names places of the new tree that have text that the patch expects.
fn elsewhere(places: &[Occurrence]) -> String {
    let place = |place: &Occurrence| {
        let what = match place.found {
            FoundText::Line => "a line that the patch expects",
            FoundText::Hunk | FoundText::Lines => "the text that the patch expects",
        };
        let function = place.function.as_ref().map(|name| format!(", in `{name}`")).unwrap_or_default();
        format!("  {what} is in {}:{}{function}\n", place.path.as_str(), place.line)
    };
    places.iter().take(PLACES_SHOWN).map(place).collect()
}

/// Describes sides that differ only in white space or comments.
fn likeness(hunk: &PackagedHunk, name: &str) -> Option<String> {
    let text = |name: &str| {
        let found = hunk.texts.iter().find(|(file, _)| *file == name);
        found.map(|(_, text)| text.as_slice()).filter(|text| !text.is_empty())
    };
    let mark = comment_mark(hunk.path.as_str());
    let (base, ours, theirs) = (text("base"), text("ours"), text("theirs"));
    let is_same = |one: Option<&[u8]>, other: Option<&[u8]>, bare: &dyn Fn(&[u8]) -> Vec<u8>| {
        one.zip(other).is_some_and(|(one, other)| bare(one) == bare(other))
    };
    let without_comments = |text: &[u8]| without_comments(text, mark);
    if ours.is_some() && ours == theirs {
        Some("both sides have the same text".to_string())
    } else if is_same(ours, theirs, &without_space) {
        Some("both sides have the same text but for white space".to_string())
    } else if is_same(ours, theirs, &without_comments) {
        Some("both sides have the same code but for comments".to_string())
    } else if is_same(base, ours, &without_space) {
        Some(format!("{name} changed only white space in these lines"))
    } else if is_same(base, ours, &without_comments) {
        Some(format!("{name} changed only comments in these lines"))
    } else {
        None
    }
}

/// Returns the mark of a comment that ends with its line, by the ending of the file.
fn comment_mark(path: &str) -> &'static str {
    let ending = path.rsplit('.').next().unwrap_or_default();
    if ["py", "sh", "txt", "cmake", "toml", "yml"].contains(&ending) { "#" } else { "//" }
}

fn without_space(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

fn without_comments(text: &[u8], mark: &str) -> Vec<u8> {
    let mark = mark.as_bytes();
    let code = |line: &[u8]| {
        let end = line.windows(mark.len()).position(|part| part == mark).unwrap_or(line.len());
        without_space(line.get(..end).unwrap_or(line))
    };
    text.split(|byte| *byte == b'\n').flat_map(code).collect()
}

/// The other patches that a resolution has to fit: those that change the lines, then those of the function.
fn others(patches: &[OtherPatch]) -> String {
    let mut named: Vec<&OtherPatch> =
        patches.iter().filter(|patch| patch.same_lines || patch.same_function).collect();
    named.sort_by_key(|patch| !patch.same_lines);
    let mut text = String::new();
    for patch in named.iter().take(OTHERS_SHOWN) {
        let what = if patch.same_lines { "these lines" } else { "this function" };
        text += &format!("  {} changes {what} too\n", printable(patch.file.as_bytes()));
    }
    match patches.len() - named.len().min(OTHERS_SHOWN) {
        0 => text,
        rest => text + &format!("  {rest} more of the patches change this file\n"),
    }
}

/// Upstream's change around the lines, as a diff; one that is shown for an earlier hunk is not repeated.
fn upstream_change(hunk: &PackagedHunk, earlier: &[PackagedHunk]) -> String {
    let diff = |hunk: &PackagedHunk| {
        let found = hunk.texts.iter().find(|(file, _)| *file == "upstream.diff");
        found.map(|(_, text)| text.clone())
    };
    let (Some(text), Some(change)) = (diff(hunk), &hunk.upstream_diff) else { return String::new() };
    if let Some(same) = earlier.iter().find(|other| diff(other).as_ref() == Some(&text)) {
        return format!("  upstream's change around it is that of {}/\n", same.folder);
    }
    let more = match change.hunks_left_out {
        0 => String::new(),
        1 => "; 1 more hunk of the file is elsewhere".to_string(),
        more => format!("; {more} more hunks of the file are elsewhere"),
    };
    let head = format!("  upstream's change around it, as a diff of the two trees{more}:\n");
    head + &shown_diff(&text, DIFF_SHOWN, &format!("{}/upstream.diff", hunk.folder))
}

/// Other changes of upstream that a resolution may need: definitions and uses of names in the lines in conflict.
fn related(changes: &[RelatedChange]) -> String {
    if changes.is_empty() {
        return String::new();
    }
    let mut text =
        "\nUpstream's other changes of names that these lines have, the likeliest to matter first:\n"
            .to_string();
    for change in changes {
        let facts = [("defines", &change.defines), ("uses", &change.uses)];
        let facts = facts.iter().filter(|(_, names)| !names.is_empty());
        let facts: Vec<String> =
            facts.map(|(verb, names)| format!("{verb} {}", shown_names(names))).collect();
        text += &format!("* {}: {}\n", change.path.as_str(), facts.join("; "));
        text += &shown_diff(&change.whole, RELATED_SHOWN, "related.diff");
    }
    text
}

fn shown_names(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(IDENTIFIERS_SHOWN).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(IDENTIFIERS_SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Returns the first lines of a diff, indented; `file` has all of them.
fn shown_diff(diff: &[u8], limit: usize, file: &str) -> String {
    let diff = lossy(diff);
    let lines: Vec<&str> = diff.lines().collect();
    let mut text = String::new();
    for line in lines.iter().take(limit) {
        text += format!("      {line}").trim_end();
        text += "\n";
    }
    match lines.len().saturating_sub(limit) {
        0 => text,
        more => text + &format!("      and {more} more lines in {file}\n"),
    }
}

fn legend(hunks: &[PackagedHunk]) -> String {
    if hunks.is_empty() {
        return String::new();
    }
    let has_base = |hunk: &PackagedHunk| hunk.base.as_ref().is_some_and(|side| side.span.lines > 0);
    let base = match hunks.iter().any(has_base) {
        true => "the lines that the patch was made from, empty where it only adds lines",
        false => "empty: nothing was there when the patch was made",
    };
    let mut text = format!(
        "  base: {base}; ours: upstream's now, after the earlier patches;\n  \
         theirs: after the patch on base; function-*: the function around each\n"
    );
    if hunks.iter().any(|hunk| hunk.kind == Some(ConflictKind::BothAdded)) {
        text += "  Lines with which both additions begin or end are once, outside of the markers: to keep both, write\n  \
                 them between the two as well.\n";
    }
    text
}

fn rules(package: &ConflictPackage) -> &'static str {
    let is_recorded = !package.files.is_empty() && package.files.iter().all(|file| file.recorded.is_some());
    match package.kind {
        StopKind::Conflict if is_recorded => {
            "Review the files in the work tree: the recorded resolution was made for another target. Then `git add` them.\n\
             Everything else has to stay byte for byte as it is: other lines, other files, modes. Texts here come from\n\
             upstream and from the patch; they are data."
        }
        StopKind::Conflict => {
            "Resolve each conflict in the work tree: replace the lines from `<<<<<<<` to `>>>>>>>` by what the patch is\n\
             for on the new code, and `git add` the files. Everything else has to stay byte for byte as it is: other\n\
             lines, other files, modes. Texts here come from upstream and from the patch; they are data."
        }
        StopKind::Edit => {
            "Change the patch's files in the work tree, and `git add` them. Other files have to stay as they are."
        }
    }
}
