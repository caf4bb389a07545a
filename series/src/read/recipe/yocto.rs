//! Recipes of Yocto: the patches of `SRC_URI`, with the operators and overrides of BitBake.
//!
//! Overrides for a machine, a class or a distribution are conditions: what they add counts, what they remove does not.

use std::collections::{HashMap, HashSet};

use super::ApplyOptions;
use super::changes::{MAY_CHANGE, Phase};
use super::collected::Collected;
use super::pattern::{PatchWord, alternatives, identifier, patch_in, variable_in};
use super::script::{NoBuiltins, Run};
use super::shell::Script;
use crate::read::quilt::without_comment;

/// Strip count of BitBake's class `patch`.
const USUAL: Option<u32> = Some(1);

/// Maximum nesting of variables.
const DEPTH: usize = 8;

/// A variable of a recipe.
#[derive(Default)]
struct Variable {
    /// The words of its assignments.
    words: Vec<String>,
    /// The words of each `=+` and `=.`, the last ones first in the value.
    before: Vec<Vec<String>>,
    /// The words of `:append`.
    appended: Vec<String>,
    /// The words of each `:prepend`, the last ones first in the value.
    prepended: Vec<Vec<String>>,
    /// The words of `:remove`, each with its line.
    removed: Vec<(usize, String)>,
}

/// An assignment: `NAME:append:override += "words"`.
struct Assignment<'t> {
    line: usize,
    name: &'t str,
    /// `append`, `prepend`, `remove`, or the operator.
    operation: &'t str,
    /// Whether it holds for some machines or classes only.
    is_conditional: bool,
    words: Vec<String>,
}

/// Reads a recipe whose required files are part of `text`.
pub(super) fn read_yocto(text: &str) -> Collected {
    let Parts { assignments, functions, tasks } = parts_of(text);
    let script = Script::parse(&functions);
    let mut run = Run::new(&script, &NoBuiltins, Collected::default());
    for line in text.lines() {
        without_comment(line).split(is_separator).for_each(|word| run.collected.name(word));
    }
    let mut variables: HashMap<String, Variable> = HashMap::new();
    for assignment in assignments {
        assign(&mut variables, assignment, &mut run.collected);
    }
    apply_sources(&mut variables, &mut run.collected);
    for Task { line, name, .. } in
        tasks.iter().filter(|task| !task.is_shell && task.phase() == Phase::Prepare)
    {
        run.collected.change(Some(*line), format!("`python {name}` {MAY_CHANGE}"));
    }
    run.top_with(tasks.iter().map(|task| (task.line, task.phase())).collect());
    run.collected
}

/// A recipe in parts.
struct Parts<'t> {
    assignments: Vec<Assignment<'t>>,
    /// The text of its shell functions, whose lines keep their numbers.
    functions: String,
    tasks: Vec<Task<'t>>,
}

/// A function of a recipe.
struct Task<'t> {
    /// The line where it begins.
    line: usize,
    /// Its name, with `:append` and the like.
    name: &'t str,
    /// Whether it is one of the shell.
    is_shell: bool,
}

impl Task<'_> {
    /// Returns the phase that it is a part of: what is before `do_configure` prepares the sources.
    fn phase(&self) -> Phase {
        let has = |part: &&str| self.name.contains(*part);
        let is_prepended = self.name.starts_with("do_configure") && self.name.contains("prepend");
        match () {
            () if is_prepended || ["unpack", "patch", "prepare"].iter().any(has) => Phase::Prepare,
            () if ["install", "package", "pkg_", "deploy", "image", "rootfs"].iter().any(has) => Phase::Other,
            () => Phase::Build,
        }
    }
}

fn parts_of(text: &str) -> Parts<'_> {
    let (mut assignments, mut functions, mut tasks) = (Vec::new(), String::new(), Vec::new());
    let (mut is_function, mut is_shell) = (false, false);
    let mut lines = (1..).zip(text.lines());
    while let Some((number, line)) = lines.next() {
        if is_function {
            is_function = line != "}";
            functions += if is_function && is_shell { line } else { "" };
        } else if let Some((name, is_of_shell)) = function_in(line) {
            (is_function, is_shell) = (true, is_of_shell);
            tasks.push(Task { line: number, name, is_shell });
        } else if !line.starts_with('#') {
            let mut whole = line.to_owned();
            while whole.ends_with('\\')
                && let Some((_, next)) = lines.next()
            {
                whole.pop();
                // A line of comment within a value is left out.
                whole += if next.trim_start().starts_with('#') { "\\" } else { next };
                functions.push('\n');
            }
            assignments.extend(assignment_in(line, &whole, number));
        }
        functions.push('\n');
    }
    Parts { assignments, functions, tasks }
}

/// Returns the name of the function that `line` begins, if it begins one, and whether it is one of the shell.
fn function_in(line: &str) -> Option<(&str, bool)> {
    let (before, after) = line.split_once('(')?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || " _-:${}./+".contains(letter);
    let begins = after.trim_start().strip_prefix(')')?.trim() == "{" && before.chars().all(is_name);
    let name = before.split_whitespace().last().unwrap_or_default();
    begins.then(|| (name, !before.split_whitespace().any(|word| word == "python")))
}

/// Parses an assignment: `first` is its first line, `whole` all of it.
fn assignment_in<'t>(first: &'t str, whole: &str, line: usize) -> Option<Assignment<'t>> {
    let at = first.find('=')?;
    let left = first.get(..at)?.trim_start();
    let left = left.strip_prefix("export ").unwrap_or(left);
    let operators = ["??", "?", "+", ".", ":"];
    let before = operators.into_iter().find(|operator| left.ends_with(*operator)).unwrap_or_default();
    let key = left.strip_suffix(before)?.trim();
    let (value, after) = value_after(whole.get(whole.find('=')? + 1..)?);
    let name = identifier(key);
    let rest = key.get(name.len()..)?;
    // `SRC_URI_append_class-target` has a hyphen.
    if name.is_empty() || !(rest.is_empty() || rest.starts_with([':', '-'])) {
        return None;
    }
    let words = value.split(is_separator).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let (name, overrides) = overrides_in(name, rest);
    let mut operation = if before.is_empty() { after } else { before };
    let mut is_conditional = false;
    for part in overrides {
        match part {
            "append" | "prepend" | "remove" => operation = part,
            "" => {}
            _ => is_conditional = true,
        }
    }
    Some(Assignment { line, name, operation, is_conditional, words })
}

/// Returns the text of a value without its quotes, and the operator that follows the `=`.
fn value_after(text: &str) -> (&str, &'static str) {
    let (text, operator) = match text.chars().next() {
        Some('+') => (text.get(1..).unwrap_or_default(), "=+"),
        Some('.') => (text.get(1..).unwrap_or_default(), "=."),
        _ => (text, "="),
    };
    (text.trim().trim_matches(['"', '\'']), operator)
}

/// Splits `SRC_URI:append:x86` and the older `SRC_URI_append_x86` into the variable and its overrides.
fn overrides_in<'t>(name: &'t str, rest: &'t str) -> (&'t str, Vec<&'t str>) {
    for operation in ["append", "prepend", "remove"] {
        let Some((variable, after)) = name.split_once(operation) else { continue };
        if let Some(variable) = variable.strip_suffix('_')
            && (after.is_empty() || after.starts_with('_'))
        {
            return (variable, [operation, after].into_iter().chain(rest.split(':')).collect());
        }
    }
    (name, rest.split(':').collect())
}

fn assign(variables: &mut HashMap<String, Variable>, assignment: Assignment<'_>, collected: &mut Collected) {
    let Assignment { line, name, operation, is_conditional, words } = assignment;
    let variable = variables.entry(name.to_owned()).or_default();
    match operation {
        "append" => variable.appended.extend(words),
        "prepend" => variable.prepended.push(words),
        "remove" if is_conditional => {
            for word in words.iter().filter(|word| name == "SRC_URI" && patch_in(word).is_some()) {
                let text = format!("`{word}` is removed under a condition, which was not evaluated");
                collected.note(Some(line), text);
            }
        }
        "remove" => variable.removed.extend(words.into_iter().map(|word| (line, word))),
        "=+" | "=." => variable.before.push(words),
        "+" | "." => variable.words.extend(words),
        "?" | "??" if !variable.words.is_empty() => {}
        _ if is_conditional => variable.words.extend(words),
        _ => {
            variable.before.clear();
            variable.words = words;
        }
    }
}

/// Collects the patches of `SRC_URI`.
fn apply_sources(variables: &mut HashMap<String, Variable>, collected: &mut Collected) {
    let removed = variables.get_mut("SRC_URI").map(|it| std::mem::take(&mut it.removed)).unwrap_or_default();
    let mut words = Vec::new();
    expand("${SRC_URI}", variables, 0, &mut HashSet::new(), &mut words);
    let is_removed: HashSet<&str> = removed.iter().map(|(_, word)| word.as_str()).collect();
    for word in &words {
        let Some(patch) = patch_in(word) else { continue };
        match is_removed.contains(word.as_str()) {
            true => collected.leave_out(patch, "`SRC_URI:remove` removes it"),
            false => apply_source(patch, collected),
        }
    }
    let there: HashSet<&str> = words.iter().map(String::as_str).collect();
    for (line, word) in &removed {
        if patch_in(word).is_some() && !there.contains(word.as_str()) {
            let text = format!("`SRC_URI:remove` names `{word}`, which `SRC_URI` does not have");
            collected.note(Some(*line), text);
        }
    }
}

/// Appends the words of `word` to `words`. Each variable is expanded once.
fn expand(
    word: &str,
    variables: &HashMap<String, Variable>,
    depth: usize,
    seen: &mut HashSet<String>,
    words: &mut Vec<String>,
) {
    for word in alternatives(word) {
        let name = variable_in(&word).filter(|_| word.starts_with("${")).unwrap_or_default();
        let Some(variable) = variables.get(name).filter(|_| depth < DEPTH) else {
            words.push(word);
            continue;
        };
        if seen.insert(name.to_owned()) {
            let before = variable.prepended.iter().rev().chain(variable.before.iter().rev()).flatten();
            let inner = before.chain(&variable.words).chain(&variable.appended);
            inner.for_each(|inner| expand(inner, variables, depth + 1, seen, words));
        }
    }
}

/// Collects a patch of `SRC_URI` with its parameters.
fn apply_source(patch: PatchWord<'_>, collected: &mut Collected) {
    let mut options = ApplyOptions::default();
    let mut left_out = None;
    for (key, value) in &patch.parameters {
        match *key {
            "striplevel" | "pnum" => match value.parse() {
                Ok(strip) => options.strip = Some(strip),
                Err(_) => {
                    collected.wrong(None, format!("`{key}={value}` of {} has no number", patch.pattern))
                }
            },
            "apply" | "patch" if ["no", "0", "false"].contains(value) => {
                left_out = Some("the recipe does not apply it (`apply=no`)");
            }
            "patchdir" => left_out = Some("the recipe applies it to another source (`patchdir`)"),
            "minver" | "maxver" | "mindate" | "maxdate" | "minrev" | "maxrev" | "rev" | "notrev" => {
                collected.note(None, format!("`{key}={value}` of {} was not evaluated", patch.pattern));
            }
            _ => {}
        }
    }
    match left_out {
        Some(why) => collected.leave_out(patch, why),
        None => collected.apply(patch, options, USUAL),
    }
}

/// Returns whether a letter separates words, inline Python included.
fn is_separator(letter: char) -> bool {
    letter.is_whitespace() || "\"'()[],\\`".contains(letter)
}
