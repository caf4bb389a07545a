//! Nix expressions: the patches of the attribute `patches`, with `patchFlags`, and those that the phases apply.
//!
//! An expression is not evaluated: a name stands for everything that the file binds to it.

use std::collections::BTreeMap;

use super::ApplyOptions;
use super::changes::Phase;
use super::collected::Collected;
use super::nix_tokens::{Kind, Token, tokens_of};
use super::pattern::patch_in;
use super::script::{Builtins, Run};
use super::shell::{Command, Script, Statement};
use crate::model::printable::printable;
use crate::read::apply_options::{Program, read_options};

/// Strip count of the default phase, whose `patchFlags` are `-p1`.
const USUAL: Option<u32> = Some(1);

/// Attributes, for instance of `fetchpatch`, whose values are not patches of the package.
const OTHERS: [&str; 7] =
    ["name", "pname", "excludes", "includes", "extraPrefix", "postFetch", "description"];

/// Phases before the patches are applied.
const BEFORE: [&str; 4] = ["preUnpack", "unpackPhase", "postUnpack", "prePatch"];

/// The phase that applies the patches.
const PATCH_PHASE: &str = "patchPhase";

/// Reads a Nix expression.
pub(super) fn read_nix(text: &str) -> Collected {
    let (tokens, unclosed) = tokens_of(text);
    let bindings = bindings_in(&tokens);
    let mut collected = Collected::default();
    find_placeholders(&tokens, &mut collected);
    let (options, usual_strip) = patch_flags(&bindings, &mut collected);
    let mut script = script_of(&bindings);
    script.unclosed = unclosed.or(script.unclosed);
    for binding in bindings.iter().filter(|it| !is_phase(&it.name) && !OTHERS.contains(&it.name.as_str())) {
        script.named.extend(binding.words.iter().map(|(_, word)| word.clone()));
    }
    let nix = Nix { options, usual_strip };
    let mut run = Run::new(&script, &nix, collected);
    let mut by_name: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    // The first one is the file itself.
    for (at, binding) in bindings.iter().enumerate().skip(1).filter(|(_, it)| !is_phase(&it.name)) {
        by_name.entry(&binding.name).or_default().push(reference(&variable(at)));
        run.set(&variable(at), binding.words.iter().map(|(_, word)| word.clone()).collect());
    }
    for (name, words) in by_name {
        run.set(name, words);
    }
    run.top_with(phases_of(&bindings));
    run.collected
}

/// Returns the name of the variable for the binding with this index: a file may bind a name several times.
fn variable(at: usize) -> String {
    format!("__{at}")
}

fn reference(name: &str) -> String {
    format!("${{{name}}}")
}

/// Returns whether an attribute has the commands of a phase.
fn is_phase(name: &str) -> bool {
    let hook = name.strip_prefix("pre").or_else(|| name.strip_prefix("post"));
    let is_hook = hook.is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_uppercase()));
    is_hook || name.ends_with("Phase") || name == "buildCommand"
}

/// `name = words;`.
struct Binding {
    /// The last part of its name.
    name: String,
    /// Its paths, strings and names, each with its line; for an inner binding, a reference.
    words: Vec<(usize, String)>,
}

/// The bindings of a file, while it is read.
struct Bindings {
    /// The bindings in the order in which they begin. The first one is the file itself.
    found: Vec<Binding>,
    /// The open bindings and brackets, innermost last.
    open: Vec<Open>,
    /// The indexes of the open bindings, innermost last.
    owners: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Binding,
    Bracket,
    /// `with NAME;`.
    With,
}

fn bindings_in(tokens: &[Token]) -> Vec<Binding> {
    let file = Binding { name: String::new(), words: Vec::new() };
    let mut bindings = Bindings { found: vec![file], open: Vec::new(), owners: vec![0] };
    let mut tokens = tokens.iter().peekable();
    while let Some(Token { line, kind }) = tokens.next() {
        let is_bound = tokens.peek().is_some_and(|next| next.kind == Kind::Sign('='));
        match kind {
            Kind::Word(name) if is_bound => bindings.begin(*line, last_part(name)),
            Kind::Word(word) if word == "with" || word == "assert" => bindings.open.push(Open::With),
            Kind::Word(path) if path.contains('/') => bindings.add(*line, path.clone()),
            Kind::Word(name) => bindings.add(*line, reference(last_part(name))),
            Kind::Text(text) => bindings.add(*line, text.clone()),
            Kind::Sign('(' | '[' | '{') => bindings.open.push(Open::Bracket),
            Kind::Sign(')' | ']' | '}') => while !matches!(bindings.close(), None | Some(Open::Bracket)) {},
            Kind::Sign(';') if bindings.open.last().is_some_and(|open| *open != Open::Bracket) => {
                bindings.close();
            }
            Kind::Sign(_) => {}
        }
    }
    bindings.found
}

/// Returns the last part of an attribute path: `patches` of `old.patches`.
fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

impl Bindings {
    fn begin(&mut self, line: usize, name: &str) {
        let at = self.found.len();
        if !OTHERS.contains(&name) && !is_phase(name) {
            self.add(line, reference(&variable(at)));
        }
        self.found.push(Binding { name: name.to_owned(), words: Vec::new() });
        self.owners.push(at);
        self.open.push(Open::Binding);
    }

    fn close(&mut self) -> Option<Open> {
        let open = self.open.pop();
        if open == Some(Open::Binding) {
            self.owners.pop();
        }
        open
    }

    fn add(&mut self, line: usize, word: String) {
        if let Some(owner) = self.owners.last().and_then(|at| self.found.get_mut(*at)) {
            owner.words.push((line, word));
        }
    }
}

/// Functions that replace placeholders such as `@git@` in a file.
const REPLACERS: [&str; 4] = ["replaceVars", "replaceVarsWith", "substituteAll", "substituteAllFiles"];

/// Adds a remark on each patch in which the build replaces placeholders: the import has them as they are.
fn find_placeholders(tokens: &[Token], collected: &mut Collected) {
    for (at, Token { line, kind }) in tokens.iter().enumerate() {
        let Kind::Word(name) = kind else { continue };
        let name = last_part(name);
        if !REPLACERS.contains(&name) {
            continue;
        }
        for path in patches_in_argument(tokens.get(at + 1..).unwrap_or_default()) {
            let path = printable(path.as_bytes());
            let text = format!("`{name} {path}` was not followed: the placeholders of the patch stay");
            collected.change(Some(*line), text);
        }
    }
}

/// Returns the patches in the first argument of a function, whose tokens these begin with: a path, or a set with one.
fn patches_in_argument(tokens: &[Token]) -> Vec<&str> {
    let (mut found, mut depth) = (Vec::new(), 0usize);
    for Token { kind, .. } in tokens {
        match kind {
            Kind::Word(word) if patch_in(word).is_some() => found.push(word.as_str()),
            Kind::Sign('(' | '[' | '{') => depth += 1,
            Kind::Sign(')' | ']' | '}') => depth = depth.saturating_sub(1),
            Kind::Word(word) if word == "rec" => continue,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    found
}

/// Returns the lines where the commands of the phases begin.
fn phases_of(bindings: &[Binding]) -> Vec<(usize, Phase)> {
    let phases = bindings.iter().filter(|binding| is_phase(&binding.name));
    let lines = phases.flat_map(|binding| {
        let phase = phase_of(&binding.name);
        binding.words.iter().map(move |(line, _)| (*line, phase))
    });
    lines.collect()
}

/// Returns the phase of an attribute with commands: what is before `configurePhase` prepares the sources.
fn phase_of(name: &str) -> Phase {
    let name = name.to_ascii_lowercase();
    let has = |part: &&str| name.contains(*part);
    match () {
        () if ["unpack", "patch", "preconfigure"].iter().any(has) => Phase::Prepare,
        () if ["install", "fixup", "dist"].iter().any(has) => Phase::Other,
        () => Phase::Build,
    }
}

/// Returns the settings of `patchFlags`, and the strip count where they have none.
fn patch_flags(bindings: &[Binding], collected: &mut Collected) -> (ApplyOptions, Option<u32>) {
    let flags = bindings.iter().filter(|binding| binding.name == "patchFlags");
    let words = flags.flat_map(|binding| &binding.words).filter(|(_, word)| !word.starts_with("${"));
    let words: Vec<&(usize, String)> = words.collect();
    let Some((line, _)) = words.first() else { return (ApplyOptions::default(), USUAL) };
    let flags: Vec<&str> = words.iter().flat_map(|(_, word)| word.split_whitespace()).collect();
    match read_options(Program::Patch, &flags) {
        Ok(read) => {
            for option in &read.not_followed {
                collected.note(Some(*line), format!("`{option}` of `patchFlags` was not followed"));
            }
            (read.options, None)
        }
        Err(why) => {
            collected.wrong(Some(*line), format!("`patchFlags`: {why}"));
            (ApplyOptions::default(), None)
        }
    }
}

/// Returns the commands of all phases in their order. A phase without commands of its own is a command with its name.
fn script_of(bindings: &[Binding]) -> Script {
    let phases = bindings.iter().filter(|binding| is_phase(&binding.name));
    let (before, others): (Vec<&Binding>, Vec<&Binding>) =
        phases.partition(|binding| BEFORE.contains(&binding.name.as_str()));
    let (own, after): (Vec<&Binding>, Vec<&Binding>) =
        others.into_iter().partition(|binding| binding.name == PATCH_PHASE);
    let mut script = Script::default();
    before.into_iter().for_each(|binding| add_commands(binding, &mut script));
    if own.is_empty() {
        let words = vec![PATCH_PHASE.to_owned()];
        script.push(None, Statement::Command(Command { words, ..Command::default() }));
    }
    own.into_iter().chain(after).for_each(|binding| add_commands(binding, &mut script));
    script
}

fn add_commands(binding: &Binding, script: &mut Script) {
    for (line, text) in &binding.words {
        script.append(Script::parse(&with_plain_paths(text)), line.saturating_sub(1));
    }
}

/// Replaces `${./a.patch}` by its path. Other expressions are variables of the shell's form already.
fn with_plain_paths(text: &str) -> String {
    let mut parts = text.split("${");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('}') {
            Some((path, rest)) if path.starts_with(['.', '/']) && !path.contains(char::is_whitespace) => {
                plain += path;
                plain += rest;
            }
            _ => {
                plain += "${";
                plain += part;
            }
        }
    }
    plain
}

struct Nix {
    options: ApplyOptions,
    usual_strip: Option<u32>,
}

impl Builtins for Nix {
    fn run(&self, command: &Command, run: &mut Run<'_>) -> bool {
        let is_default = command.words.first().is_some_and(|name| name == PATCH_PHASE);
        if is_default {
            run.apply_variable("patches", self.options, self.usual_strip, |_| true);
        }
        is_default
    }
}
