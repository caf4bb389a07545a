//! RPM spec files: patches are declared by `PatchN:`, and applied by `%patch`, `%autopatch`, `%autosetup`, or by
//! programs in the scripts.

use super::changes::Phase;
use super::collected::Collected;
use super::pattern::{last_component, without_variables};
use super::script::{Builtins, Run};
use super::shell::{Command, Script};
use super::{ApplyOptions, RecipePatch};
use crate::read::apply_options::{Program, ReadOptions, read_options};

/// Strip count of `%patch` without `-p`. `%autosetup` and `%autopatch` without `-p` leave the choice to patch(1).
const OF_PATCH: Option<u32> = Some(0);

/// A file that the spec declares.
struct Declared {
    number: u32,
    /// Its file name.
    file: String,
}

/// The parts of a spec file.
#[derive(Default)]
struct Spec {
    patches: Vec<Declared>,
    sources: Vec<Declared>,
    /// Its scripts; the lines keep their numbers.
    scripts: String,
    has_scripts: bool,
    /// The lines where scripts begin.
    phases: Vec<(usize, Phase)>,
}

/// Reads a spec file.
pub(super) fn read_spec(text: &str) -> Collected {
    let spec = Spec::parse(text);
    let script = Script::parse(&spec.scripts);
    let mut run = Run::new(&script, &spec, Collected::default());
    let mut by_number: Vec<&Declared> = spec.patches.iter().collect();
    by_number.sort_by_key(|patch| patch.number);
    run.set("patches", by_number.iter().map(|patch| patch.file.clone()).collect());
    for patch in &spec.patches {
        run.set(&format!("PATCH{}", patch.number), vec![patch.file.clone()]);
        run.collected.name_pattern(without_variables(&patch.file), false);
    }
    for source in &spec.sources {
        run.set(&format!("SOURCE{}", source.number), vec![source.file.clone()]);
        run.collected.name(&source.file);
    }
    run.top_with(spec.phases.clone());
    if !spec.has_scripts && !spec.patches.is_empty() {
        run.collected.note(None, "it has no `%prep`; all patches that it declares were taken".to_owned());
        for patch in &spec.patches {
            run.collected.apply_named(patch.named(ApplyOptions::default(), None));
        }
    }
    run.collected
}

/// A part of a spec file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Tags such as `Patch1:`.
    Tags,
    /// `%patchlist`.
    PatchList,
    /// `%prep`, `%build` and others whose commands change the sources.
    Script,
    /// Texts, lists of files, and scripts for the installed package.
    Other,
}

const SCRIPTS: [&str; 7] =
    ["%prep", "%generate_buildrequires", "%conf", "%build", "%install", "%check", "%clean"];

const OTHERS: [&str; 18] = [
    "%changelog",
    "%description",
    "%files",
    "%filetriggerin",
    "%filetriggerun",
    "%post",
    "%posttrans",
    "%postun",
    "%pre",
    "%pretrans",
    "%preun",
    "%sourcelist",
    "%transfiletriggerin",
    "%transfiletriggerun",
    "%trigger",
    "%triggerin",
    "%triggerun",
    "%verifyscript",
];

/// Directives that are not shell commands: their text may have any quotes.
const DEFINITIONS: [&str; 13] = [
    "%bcond",
    "%bcond_with",
    "%bcond_without",
    "%define",
    "%dnl",
    "%elif",
    "%else",
    "%endif",
    "%global",
    "%if",
    "%ifarch",
    "%ifnarch",
    "%undefine",
];

/// Returns the phase of the script that a word begins.
fn phase_of(script: &str) -> Phase {
    match script {
        "%prep" => Phase::Prepare,
        "%install" | "%clean" => Phase::Other,
        _ => Phase::Build,
    }
}

fn section_in(word: &str) -> Option<Section> {
    match word {
        "%package" => Some(Section::Tags),
        "%patchlist" => Some(Section::PatchList),
        word if SCRIPTS.contains(&word) => Some(Section::Script),
        word if OTHERS.contains(&word) => Some(Section::Other),
        _ => None,
    }
}

impl Spec {
    fn parse(text: &str) -> Spec {
        let mut spec = Spec::default();
        let mut section = Section::Tags;
        for (number, line) in (1..).zip(text.lines()) {
            let first = line.split_whitespace().next().unwrap_or_default();
            if let Some(next) = section_in(first) {
                section = next;
                if section == Section::Script {
                    spec.has_scripts = true;
                    spec.phases.push((number, phase_of(first)));
                }
            } else {
                if section == Section::Tags && (first == "%setup" || directive_in(first).is_some()) {
                    // A part of a spec file, without the line `%prep`.
                    section = Section::Script;
                    spec.has_scripts = true;
                    spec.phases.push((number, Phase::Prepare));
                }
                spec.take(section, first, line);
            }
            spec.scripts.push('\n');
        }
        spec
    }

    fn take(&mut self, section: Section, first: &str, line: &str) {
        let is_text = !first.is_empty() && !first.starts_with(['#', '%']);
        match section {
            Section::Tags => {
                if let Some((number, value)) = tag("patch", line.trim()) {
                    declare(&mut self.patches, number, value);
                } else if let Some((number, value)) = tag("source", line.trim()) {
                    declare(&mut self.sources, number, value);
                }
            }
            Section::PatchList if is_text => declare(&mut self.patches, None, first),
            Section::Script if !DEFINITIONS.contains(&first) => self.scripts += line,
            _ => {}
        }
    }
}

/// Parses `Patch12: value`; the number may be missing.
fn tag<'t>(name: &str, line: &'t str) -> Option<(Option<u32>, &'t str)> {
    let (key, value) = line.split_once(':')?;
    let (tag, number) = key.trim_end().split_at_checked(name.len())?;
    let number = if number.is_empty() { None } else { Some(number.parse().ok()?) };
    tag.eq_ignore_ascii_case(name).then_some((number, value.trim()))
}

/// Adds a file; without a number it has the one after the last.
fn declare(declared: &mut Vec<Declared>, number: Option<u32>, value: &str) {
    let next = declared.last().map_or(0, |last| last.number.saturating_add(1));
    // The file is beside the spec: a URL refers to the same file elsewhere.
    let value = value.split_whitespace().next().unwrap_or_default();
    let file = last_component(value).to_owned();
    declared.push(Declared { number: number.unwrap_or(next), file });
}

impl Declared {
    fn named(&self, options: ApplyOptions, usual_strip: Option<u32>) -> RecipePatch {
        let pattern = without_variables(&self.file);
        RecipePatch { pattern, is_glob: false, options, usual_strip, left_out: None }
    }
}

/// A directive that applies patches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Directive {
    /// `%patch`, and the number in its name.
    Patch(Option<u32>),
    AutoPatch,
    AutoSetup,
}

/// Parses the name of a directive: `%patch`, `%patch12`, `%autosetup`.
fn directive_in(word: &str) -> Option<Directive> {
    let name = word.strip_prefix('%')?;
    match name {
        "autopatch" => Some(Directive::AutoPatch),
        "autosetup" => Some(Directive::AutoSetup),
        "patch" => Some(Directive::Patch(None)),
        name => Some(Directive::Patch(Some(name.strip_prefix("patch")?.parse().ok()?))),
    }
}

/// Returns the commands in `%{?condition: commands}`, which may be nested.
fn conditional(word: &str) -> Option<&str> {
    let mut commands = None;
    let mut rest = word;
    while let Some(inner) = rest.strip_prefix("%{?").or_else(|| rest.strip_prefix("%{!?")) {
        rest = inner.strip_suffix('}')?.split_once(':')?.1.trim();
        commands = Some(rest);
    }
    commands
}

impl Builtins for Spec {
    fn run(&self, command: &Command, run: &mut Run<'_>) -> bool {
        let Some((first, rest)) = command.words.split_first() else { return false };
        if let Some(commands) = conditional(first) {
            let mut script = Script::default();
            script.append(Script::parse(commands), command.line.saturating_sub(1));
            run.statements(&script.top);
            return true;
        }
        // `%{patch12 -p1}`.
        let inner = first.strip_prefix("%{").and_then(|inner| inner.strip_suffix('}'));
        let first = inner.map_or_else(|| first.clone(), |inner| format!("%{inner}"));
        let words: Vec<&str> = first.split_whitespace().chain(rest.iter().map(String::as_str)).collect();
        let Some((name, words)) = words.split_first() else { return false };
        let Some(directive) = directive_in(name) else { return false };
        let program = match directive {
            Directive::Patch(_) => Program::RpmPatch,
            Directive::AutoPatch | Directive::AutoSetup => Program::RpmAuto,
        };
        let chosen = read_options(program, words).and_then(|read| {
            let numbers = numbers_of(directive, &read)?;
            Ok((read, numbers))
        });
        match chosen {
            Ok((read, numbers)) => self.apply(directive, &read, &numbers, command, run),
            Err(why) => run.collected.wrong(Some(command.line), format!("`{}`: {why}", command.text())),
        }
        true
    }
}

/// Returns the numbers of the patches that a directive names.
fn numbers_of(directive: Directive, read: &ReadOptions<'_>) -> Result<Vec<u32>, String> {
    let mut numbers = read.numbers.clone();
    for operand in &read.operands {
        numbers.push(operand.parse().map_err(|_| format!("`{operand}` is not the number of a patch"))?);
    }
    match directive {
        Directive::Patch(Some(number)) => numbers.insert(0, number),
        // `%patch` without a number is the first one.
        Directive::Patch(None) if numbers.is_empty() => numbers.push(0),
        _ => {}
    }
    Ok(numbers)
}

impl Spec {
    /// Collects the patches that a directive applies: `%patch` in the order of its arguments, the others by number.
    fn apply(
        &self,
        directive: Directive,
        read: &ReadOptions<'_>,
        numbers: &[u32],
        command: &Command,
        run: &mut Run<'_>,
    ) {
        for option in &read.not_followed {
            let text = format!("`{option}` of `{}` was not followed", command.text());
            run.collected.note(Some(command.line), text);
        }
        let is_patch = matches!(directive, Directive::Patch(_));
        let by_number = is_patch || (directive == Directive::AutoPatch && !numbers.is_empty());
        let mut chosen: Vec<&Declared> = Vec::new();
        if by_number {
            for number in numbers {
                let found = self.patches.iter().find(|patch| patch.number == *number);
                if found.is_none() {
                    let text = format!("`{}`: there is no `Patch{number}`", command.text());
                    run.collected.note(Some(command.line), text);
                }
                chosen.extend(found);
            }
        } else if !read.is_dry_run {
            let (lowest, highest) = (read.lowest.unwrap_or(0), read.highest.unwrap_or(u32::MAX));
            let is_in_range = |patch: &&Declared| (lowest..=highest).contains(&patch.number);
            chosen.extend(self.patches.iter().filter(is_in_range));
        }
        if !is_patch {
            chosen.sort_by_key(|patch| patch.number);
        }
        let usual_strip = if is_patch { OF_PATCH } else { None };
        for patch in chosen {
            run.collected.apply_named(patch.named(read.options, usual_strip));
        }
    }
}
