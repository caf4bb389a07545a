//! The patches that a script applies: its commands are followed from the functions that the format runs, with the
//! values of variables as far as the script sets them.

use std::collections::{HashMap, HashSet};

use super::ApplyOptions;
use super::changes::{Phase, UNCLOSED, change_by};
use super::collected::Collected;
use super::pattern::{alternatives, element_in, last_component, patch_in, variable_in, without_variables};
use super::shell::{Command, Script, Statement};
use crate::read::apply_options::{Program, ReadOptions, read_options};

/// Maximum number of commands and words that are followed: functions may call each other many times.
const STEPS: usize = 200_000;

/// Maximum nesting of function calls.
const DEPTH: usize = 8;

/// Maximum number of arguments of a function.
const PARAMETERS: usize = 1_000;

/// Maximum number of options in one variable.
const OPTIONS: usize = 100;

/// Commands that only one format has.
pub(super) trait Builtins {
    /// Carries out `command` if it is one of them; returns whether it is.
    fn run(&self, command: &Command, run: &mut Run<'_>) -> bool;
}

/// A format without commands of its own.
pub(super) struct NoBuiltins;

impl Builtins for NoBuiltins {
    fn run(&self, _: &Command, _: &mut Run<'_>) -> bool {
        false
    }
}

/// A script while it is followed.
pub(super) struct Run<'s> {
    script: &'s Script,
    builtins: &'s dyn Builtins,
    /// The patches so far.
    pub collected: Collected,
    variables: HashMap<String, Vec<String>>,
    /// Arguments of the function that is followed.
    parameters: Vec<String>,
    /// The functions that are followed, outermost first.
    calls: Vec<&'s str>,
    /// The phase that is followed.
    phase: Phase,
    /// The phases that begin at these lines, where the format has them in one script.
    phases: Vec<(usize, Phase)>,
    depth: usize,
    steps: usize,
}

/// A command that applies patches.
struct Applier<'w> {
    program: Program,
    /// Whether its operands are patches.
    takes_patches: bool,
    usual_strip: Option<u32>,
    /// The words after its name.
    words: Vec<&'w str>,
    /// The folder that `git -C` names.
    folder: Option<&'w str>,
}

impl<'s> Run<'s> {
    /// Prepares to follow `script`. All patches that it names are added to `collected`.
    pub fn new(script: &'s Script, builtins: &'s dyn Builtins, mut collected: Collected) -> Run<'s> {
        script.named.iter().for_each(|word| collected.name(word));
        if script.unclosed.is_some() {
            collected.note(script.unclosed, UNCLOSED.to_owned());
        }
        Run {
            script,
            builtins,
            collected,
            variables: HashMap::new(),
            parameters: Vec::new(),
            calls: Vec::new(),
            phase: Phase::Other,
            phases: Vec::new(),
            depth: 0,
            steps: 0,
        }
    }

    /// Follows the statements outside of functions.
    pub fn top(&mut self) {
        let script = self.script;
        self.statements(&script.top);
    }

    /// As [`Run::top`], for a script whose phases begin at these lines. Of several that begin at one line, the one in
    /// which more counts is taken.
    pub fn top_with(&mut self, mut phases: Vec<(usize, Phase)>) {
        phases.sort_unstable();
        self.phases = phases;
        self.top();
    }

    /// Follows the function `name`, which the format runs in this phase; returns whether it is defined.
    pub fn function_in(&mut self, phase: Phase, name: &str) -> bool {
        self.phase = phase;
        self.function(name)
    }

    /// Follows the function `name`; returns whether it is defined.
    fn function(&mut self, name: &str) -> bool {
        let script = self.script;
        let Some((name, body)) = script.functions.get_key_value(name) else { return false };
        if !self.calls.contains(&name.as_str()) {
            self.calls.push(name);
            self.statements(body);
            self.calls.pop();
        }
        true
    }

    /// Returns whether the function that the format runs has a name that contains `part`.
    pub fn is_in(&self, part: &str) -> bool {
        self.calls.first().is_some_and(|name| name.contains(part))
    }

    /// Sets a variable.
    pub fn set(&mut self, name: &str, words: Vec<String>) {
        self.variables.insert(name.to_owned(), words);
    }

    /// Returns the names of the variables that begin with `prefix`, sorted.
    pub fn names_with(&self, prefix: &str) -> Vec<String> {
        let names = self.variables.keys().filter(|name| name.starts_with(prefix));
        let mut names: Vec<String> = names.cloned().collect();
        names.sort();
        names
    }

    /// Follows `statements` in order.
    pub fn statements(&mut self, statements: &[Statement]) {
        if self.depth >= DEPTH {
            let text = format!("commands that are nested more than {DEPTH} deep were not followed");
            return self.collected.note(None, text);
        }
        self.depth += 1;
        let mut before: Option<&Command> = None;
        for statement in statements {
            if !self.may_go_on(1) {
                break;
            }
            match statement {
                Statement::Assign { name, is_added, words } => self.assign(name, *is_added, words),
                Statement::Command(command) => {
                    self.command(command, before.filter(|_| command.is_piped));
                    before = Some(command);
                }
            }
        }
        self.depth -= 1;
    }

    /// Counts `steps`; returns whether their number is within the limit.
    fn may_go_on(&mut self, steps: usize) -> bool {
        self.steps += steps;
        if self.steps > STEPS {
            self.collected.wrong(None, format!("it has more than {STEPS} commands and names"));
        }
        self.steps <= STEPS
    }

    fn assign(&mut self, name: &str, is_added: bool, words: &[String]) {
        let is_itself = |word: &String| variable_in(word) == Some(name);
        let keeps = is_added || words.iter().any(is_itself);
        let others: Vec<String> = words.iter().filter(|word| !is_itself(word)).cloned().collect();
        let others = self.with_parameters(&others);
        if !self.may_go_on(others.len()) {
            return;
        }
        let values = self.variables.entry(name.to_owned()).or_default();
        if !keeps {
            values.clear();
        }
        values.extend(others);
    }

    /// Returns `words` with the arguments of the function in place of `$1` and `$@`.
    fn with_parameters(&self, words: &[String]) -> Vec<String> {
        let mut found = Vec::new();
        for word in words.iter().take(PARAMETERS) {
            match variable_in(word).and_then(|name| self.parameters_in(name)) {
                Some(parameters) => found.extend(parameters.iter().cloned()),
                None => found.push(word.clone()),
            }
            found.truncate(PARAMETERS);
        }
        found.extend(words.iter().skip(PARAMETERS).cloned());
        found
    }

    /// Returns the arguments that `$name` stands for, if it stands for some.
    fn parameters_in(&self, name: &str) -> Option<&[String]> {
        if self.calls.is_empty() {
            return None;
        }
        if name == "@" || name == "*" {
            return Some(&self.parameters);
        }
        let number = name.parse::<usize>().ok()?.checked_sub(1)?;
        Some(self.parameters.get(number..=number).unwrap_or_default())
    }

    fn value(&self, name: &str) -> Option<&[String]> {
        self.parameters_in(name).or_else(|| self.variables.get(name).map(Vec::as_slice))
    }

    /// Returns the words that `word` stands for: those of its braces, and those of the variable that it ends with.
    pub fn expanded(&mut self, word: &str) -> Vec<String> {
        let mut words = Vec::new();
        if self.may_go_on(1) {
            self.expand(word, 0, &mut HashSet::new(), &mut words);
            self.may_go_on(words.len());
        }
        words
    }

    /// Appends the words that `word` stands for to `words`. Each variable is expanded once.
    fn expand(&self, word: &str, depth: usize, seen: &mut HashSet<String>, words: &mut Vec<String>) {
        for word in alternatives(word) {
            let name = variable_in(&word).unwrap_or_default();
            let Some(values) = self.value(name).filter(|_| depth < DEPTH && !name.is_empty()) else {
                words.push(word);
                continue;
            };
            let element = element_in(&word).map(|at| values.get(at..=at).unwrap_or_default());
            if seen.insert(name.to_owned()) {
                element.unwrap_or(values).iter().for_each(|value| self.expand(value, depth + 1, seen, words));
            }
        }
    }

    /// Follows `command`; `before` is the command whose output it reads.
    pub fn command(&mut self, command: &Command, before: Option<&Command>) {
        let Some(name) = command.words.first() else { return };
        if self.script.functions.contains_key(name.as_str()) {
            return self.call(name, command);
        }
        if name == "shift" && !self.parameters.is_empty() {
            self.parameters.remove(0);
            return;
        }
        let builtins = self.builtins;
        if builtins.run(command, self) {
            return;
        }
        self.program(command, before);
    }

    /// Follows a command that runs a program.
    pub fn program(&mut self, command: &Command, before: Option<&Command>) {
        let words = self.with_options(&command.words);
        match applier_in(&words) {
            Some(applier) => self.apply(command, before, &applier),
            None => self.pass_over(command),
        }
    }

    fn call(&mut self, name: &str, command: &Command) {
        let mut parameters = self.with_parameters(command.words.get(1..).unwrap_or_default());
        parameters.truncate(PARAMETERS);
        if self.may_go_on(parameters.len()) {
            let outer = std::mem::replace(&mut self.parameters, parameters);
            self.function(name);
            self.parameters = outer;
        }
    }

    /// Returns `words` with the values of variables that hold options.
    fn with_options(&self, words: &[String]) -> Vec<String> {
        let mut found = Vec::new();
        for word in words {
            let value = variable_in(word).filter(|_| word.starts_with('$')).and_then(|name| self.value(name));
            match value.filter(|value| value.first().is_some_and(|first| first.starts_with('-'))) {
                Some(value) => found.extend(value.iter().take(OPTIONS).cloned()),
                None => found.push(word.clone()),
            }
        }
        found
    }

    /// Records the patches that a command applies.
    fn apply(&mut self, command: &Command, before: Option<&Command>, applier: &Applier<'_>) {
        let read = match read_options(applier.program, &applier.words) {
            Ok(read) => read,
            Err(why) => {
                return self.collected.wrong(Some(command.line), format!("`{}`: {why}", command.text()));
            }
        };
        if read.is_dry_run {
            return;
        }
        let sources = sources_of(command, before, applier, &read);
        self.note_what_is_not_followed(command, before, applier, &read, &sources);
        for source in sources {
            let words = self.expanded(source);
            // A list without elements applies nothing.
            let mut is_known = words.is_empty();
            for patch in words.iter().filter_map(|word| patch_in(word)) {
                is_known = true;
                self.collected.apply(patch, read.options, applier.usual_strip);
            }
            if !is_known {
                self.apply_other(command, &words, source, (read.options, applier.usual_strip));
            }
        }
    }

    /// Records the patches of a command that names them in no usual way; `words` is the expanded `source`.
    fn apply_other(
        &mut self,
        command: &Command,
        words: &[String],
        source: &str,
        (options, usual_strip): (ApplyOptions, Option<u32>),
    ) {
        let file = match words {
            [word] if word == source || variable_in(word).is_none() => without_variables(word),
            _ => without_variables(source),
        };
        if last_component(&file).chars().any(char::is_alphanumeric) {
            let named =
                super::RecipePatch { pattern: file, is_glob: false, options, usual_strip, left_out: None };
            return self.collected.apply_named(named);
        }
        let text = "which patches it applies is not known; it was read as applying all that no other command applies";
        self.collected.note(Some(command.line), format!("`{}`: {text}", command.text()));
        self.collected.apply_rest(options, usual_strip);
    }

    /// Adds notes on the parts of a command that applies `sources` that are not followed.
    fn note_what_is_not_followed(
        &mut self,
        command: &Command,
        before: Option<&Command>,
        applier: &Applier<'_>,
        read: &ReadOptions<'_>,
        sources: &[&str],
    ) {
        let (line, text) = (Some(command.line), command.text());
        let folder = applier.folder.map(|folder| format!("-C {folder}"));
        let file = read.operands.first().filter(|_| !applier.takes_patches).map(|file| (*file).to_owned());
        for part in folder.into_iter().chain(file).chain(read.not_followed.iter().cloned()) {
            self.collected.note(line, format!("`{part}` of `{text}` was not followed"));
        }
        let note = match before.filter(|before| !is_reader(before)) {
            _ if sources.is_empty() && command.has_text => {
                format!("`{text}` applies a patch in the recipe's own text, which was not read")
            }
            _ if sources.is_empty() => format!("`{text}` names no patch; what it applies was not read"),
            Some(before) => {
                format!("`{}` changes what `{text}` reads; the file itself was used", before.text())
            }
            None => return,
        };
        self.collected.note(line, note);
    }

    /// Records the patches of a variable that the format applies, of those that `is_applied` accepts.
    pub fn apply_variable(
        &mut self,
        name: &str,
        options: ApplyOptions,
        usual_strip: Option<u32>,
        is_applied: impl Fn(&str) -> bool,
    ) {
        let words = self.expanded(&format!("${{{name}}}"));
        for patch in words.iter().filter_map(|word| patch_in(word)).filter(|patch| is_applied(&patch.pattern))
        {
            self.collected.apply(patch, options, usual_strip);
        }
    }

    /// Leaves out the patches of a variable.
    pub fn leave_out_variable(&mut self, name: &str, why: &str) {
        let words = self.expanded(&format!("${{{name}}}"));
        for patch in words.iter().filter_map(|word| patch_in(word)) {
            self.collected.leave_out(patch, why);
        }
    }

    fn phase_of(&self, command: &Command) -> Phase {
        let begun = self.phases.partition_point(|(line, _)| *line <= command.line);
        self.phases.get(..begun).and_then(<[_]>::last).map_or(self.phase, |(_, phase)| *phase)
    }

    /// Notes a command that may change the sources and was not followed.
    fn pass_over(&mut self, command: &Command) {
        const SAYS: [&str; 8] = ["echo", "printf", "msg", "msg2", "plain", "einfo", "elog", "ewarn"];
        let Some((name, words)) = command.words.split_first() else { return };
        if applies_patches(last_component(name), words) {
            self.collected.note(Some(command.line), format!("`{}` was not followed", command.text()));
        } else if let Some(change) = change_by(command, self.phase_of(command)) {
            self.collected.change(Some(command.line), change);
        }
        if SAYS.contains(&name.as_str()) {
            return;
        }
        for patch in words.iter().filter_map(|word| patch_in(word)) {
            self.collected.name_in_command(patch, command.text());
        }
    }
}

/// Returns a remark on a command beside a queue of patches if it changes files, or applies another patch.
pub(super) fn remark_beside(command: &Command, phase: Phase) -> Option<String> {
    if applier_in(&command.words).is_none() {
        return change_by(command, phase);
    }
    let is_patch =
        |word: &String| patch_in(word).is_some_and(|patch| !last_component(&patch.pattern).contains('*'));
    let mut words = command.words.iter().chain(&command.input);
    words.any(is_patch).then(|| format!("`{}` applies a patch, and was not imported", command.text()))
}

/// Returns the strip count that a command states, if it applies patches.
pub(super) fn strip_of(command: &Command) -> Option<u32> {
    let applier = applier_in(&command.words)?;
    read_options(applier.program, &applier.words).ok()?.options.strip
}

/// Returns whether a command that is not followed applies patches or commits, as far as its name says.
fn applies_patches(name: &str, words: &[String]) -> bool {
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    match name {
        "quilt" | "dpatch" | "stg" => true,
        "git" => has("revert") || has("cherry-pick"),
        "find" | "xargs" | "parallel" | "sh" | "bash" | "eval" | "su" => {
            let is_patch = |word: &String| last_component(word) == "patch" || word.contains("patch -");
            words.iter().any(is_patch) || (has("git") && (has("apply") || has("am")))
        }
        _ => false,
    }
}

/// Returns whether a command only reads files.
fn is_reader(command: &Command) -> bool {
    const READERS: [&str; 9] = ["cat", "zcat", "xzcat", "bzcat", "zstdcat", "gzip", "gunzip", "xz", "bzip2"];
    command.words.first().is_some_and(|name| READERS.contains(&last_component(name)))
}

/// Returns the words that name the patches of a command.
fn sources_of<'w>(
    command: &'w Command,
    before: Option<&'w Command>,
    applier: &Applier<'w>,
    read: &ReadOptions<'w>,
) -> Vec<&'w str> {
    if applier.takes_patches && !read.operands.is_empty() {
        return read.operands.clone();
    }
    let input = read.input.filter(|input| *input != "-").or(command.input.as_deref());
    if let Some(source) = input.or(read.operands.get(1).copied()) {
        return vec![source];
    }
    let Some(before) = before else { return Vec::new() };
    let words = before.words.iter().skip(1).chain(&before.input).map(String::as_str);
    let words: Vec<&str> = words.filter(|word| !word.starts_with('-')).collect();
    let is_name = |word: &&str| patch_in(word).is_some() || variable_in(word).is_some();
    let names: Vec<&str> = words.iter().copied().filter(is_name).collect();
    if is_reader(before) { words } else { names }
}

/// Returns the command in `words`, if it applies patches.
fn applier_in(words: &[String]) -> Option<Applier<'_>> {
    const WRAPPERS: [&str; 6] = ["command", "sudo", "exec", "env", "nice", "busybox"];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let begin = words.iter().position(|word| !WRAPPERS.contains(word))?;
    let (name, words) = words.get(begin..)?.split_first()?;
    let applier = |program, takes_patches, usual_strip| Applier {
        program,
        takes_patches,
        usual_strip,
        words: words.to_vec(),
        folder: None,
    };
    match program_name(name) {
        "patch" | "gpatch" => Some(applier(Program::Patch, false, None)),
        // Its options are passed to patch(1), after `-p1`.
        "eapply" => Some(applier(Program::Patch, true, Some(1))),
        // It tries several strip counts.
        "epatch" => Some(applier(Program::Patch, true, None)),
        "git" => {
            let (folder, words) = after_git(words)?;
            Some(Applier { words: words.to_vec(), folder, ..applier(Program::Git, true, Some(1)) })
        }
        _ => None,
    }
}

/// Returns the program that a word runs: `%{__patch}`, `${PATCH}` and `/usr/bin/patch` are patch(1).
fn program_name(word: &str) -> &str {
    if !word.starts_with(['$', '%']) {
        return last_component(word);
    }
    match word.trim_start_matches(['$', '%', '{']).trim_end_matches('}') {
        "__patch" | "PATCH" | "PATCH_EXECUTABLE" => "patch",
        "__git" | "GIT" | "GIT_EXECUTABLE" => "git",
        other => other,
    }
}

/// Returns the folder and the words after the subcommand of a git command that applies patches.
fn after_git<'a, 'w>(words: &'a [&'w str]) -> Option<(Option<&'w str>, &'a [&'w str])> {
    let (mut folder, mut at) = (None, 0);
    loop {
        let word = *words.get(at)?;
        match word {
            "apply" | "am" => return Some((folder, words.get(at + 1..)?)),
            "-C" => folder = words.get(at + 1).copied(),
            "-c" | "--git-dir" | "--work-tree" => {}
            option if option.starts_with('-') => {
                at += 1;
                continue;
            }
            _ => return None,
        }
        at += 2;
    }
}
