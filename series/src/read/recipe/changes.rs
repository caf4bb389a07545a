//! Commands that change files of the sources by themselves: no patch has what they do.

use super::pattern::{assignment_in, last_component};
use super::shell::{Command, Script, Statement};

/// The part of a build that a command belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// It works on installed files, or is not run.
    Other,
    /// It builds: it writes files of its own, so only edits in place count.
    Build,
    /// It prepares the sources: what it does to files counts.
    Prepare,
}

/// The remark on a command that changes files.
pub(super) const CHANGES: &str = "changes files, and was not imported";

/// The remark on one of which that is not known.
pub(super) const MAY_CHANGE: &str = "may change files, and was not imported";

/// The remark on a script that ends before its text does.
pub(super) const UNCLOSED: &str = "a quote or bracket is not closed; the commands after it were not read";

/// Maximum number of words of a command that are tried as the beginning of another one.
const WORDS: usize = 50;

/// Maximum length of a script in a word of a command that is read.
const SCRIPT: usize = 2_000;

/// Commands that run the command in their words.
const WRAPPERS: [&str; 10] =
    ["command", "sudo", "exec", "env", "nice", "busybox", "time", "xargs", "parallel", "fakeroot"];

/// Commands that run a script in one of their words.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "eval", "su", "runuser"];

/// Commands that edit the files that they name.
const EDITORS: [&str; 19] = [
    "2to3",
    "dos2unix",
    "ed",
    "edos2unix",
    "eprefixify",
    "esed",
    "ex",
    "hprefixify",
    "patchShebangs",
    "pathfix.py",
    "py3_shebang_fix",
    "python_fix_shebang",
    "reinplace_cmd",
    "rpl",
    "substitute",
    "substituteAll",
    "substituteAllInPlace",
    "substituteInPlace",
    "unix2dos",
];

/// Commands that create, replace or delete files.
const FILES: [&str; 14] = [
    "chmod", "cp", "dd", "install", "ln", "mv", "rename", "rm", "rmdir", "rsync", "tee", "touch", "truncate",
    "unlink",
];

/// Interpreters, which may run a program in the script.
const INTERPRETERS: [&str; 7] = ["awk", "lua", "node", "perl", "php", "python", "ruby"];

/// The effect of a command on the files of the sources, as far as its words say.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    Nothing,
    MayChange,
    Changes,
}

/// Returns a remark if `command` changes files of the sources.
pub(super) fn change_by(command: &Command, phase: Phase) -> Option<String> {
    let remark = match of_command(command, Scope { phase, in_words: false, in_script: false }) {
        Effect::Nothing => return None,
        Effect::MayChange => MAY_CHANGE,
        Effect::Changes => CHANGES,
    };
    Some(format!("`{}` {remark}", command.whole_text()))
}

/// The place of a command: its phase, and the command or script that it is in.
#[derive(Clone, Copy)]
struct Scope {
    phase: Phase,
    /// Whether it is among the words of another command, each of which was tried as its beginning.
    in_words: bool,
    /// Whether it is in a script that is one word of another command.
    in_script: bool,
}

fn of_command(command: &Command, scope: Scope) -> Effect {
    let words = command.words.iter().map(String::as_str);
    let words: Vec<&str> = words.skip_while(|word| assignment_in(word).is_some()).collect();
    let is_prepared = scope.phase == Phase::Prepare;
    let own = match () {
        () if is_prepared && is_written(command) => Effect::Changes,
        () if is_prepared && command.has_text && is_interpreter(&words) => Effect::MayChange,
        () => Effect::Nothing,
    };
    if scope.phase == Phase::Other { Effect::Nothing } else { own.max(of_words(&words, scope)) }
}

fn of_words(words: &[&str], scope: Scope) -> Effect {
    let Some((name, arguments)) = words.split_first() else { return Effect::Nothing };
    let is_variable = name.starts_with('$');
    let name = program(name);
    let own = match scope.phase {
        _ if edits_in_place(&name, arguments) => Effect::Changes,
        Phase::Prepare if handles_files(&name, arguments) => Effect::Changes,
        // buildroot's `$(SED)` is `sed -i`.
        Phase::Prepare if name == "sed" && is_variable => Effect::MayChange,
        Phase::Prepare if is_interpreter(words) && has_program(arguments) => Effect::MayChange,
        _ => Effect::Nothing,
    };
    own.max(inner_effect(&name, arguments, scope))
}

/// Returns the program that a word runs: `%{__sed}` and `/bin/sed` are sed.
fn program(word: &str) -> String {
    if !word.starts_with(['$', '%']) {
        return last_component(word).to_owned();
    }
    let name = word.trim_matches(|letter: char| "$%{}()".contains(letter));
    name.trim_start_matches("__").to_ascii_lowercase()
}

/// Returns the effect of the commands in the words of another one.
fn inner_effect(name: &str, arguments: &[&str], scope: Scope) -> Effect {
    let inner = Scope { in_words: true, ..scope };
    let effects: Vec<Effect> = match name {
        "find" => {
            let is_exec = |word: &&str| ["-exec", "-execdir", "-ok", "-okdir"].contains(word);
            arguments.split(is_exec).skip(1).map(|words| of_words(words, inner)).collect()
        }
        _ if SHELLS.contains(&name) => {
            arguments.iter().filter(|word| word.contains(' ')).map(|text| of_script(text, scope)).collect()
        }
        // Which of the words is the command depends on the options.
        _ if WRAPPERS.contains(&name) && !scope.in_words => {
            let begins = 0..arguments.len().min(WORDS);
            begins.map(|at| of_words(arguments.get(at..).unwrap_or_default(), inner)).collect()
        }
        _ => Vec::new(),
    };
    effects.into_iter().max().unwrap_or(Effect::Nothing)
}

/// Returns the effect of a script in a word. One that is long, or in another script, may do anything.
fn of_script(text: &str, scope: Scope) -> Effect {
    if text.len() > SCRIPT || scope.in_script {
        return if scope.phase == Phase::Prepare { Effect::MayChange } else { Effect::Nothing };
    }
    let script = Script::parse(text);
    let scope = Scope { in_script: true, ..scope };
    let effects = commands_in(&script.top).map(|command| of_command(command, scope));
    effects.max().unwrap_or(Effect::Nothing)
}

/// Returns the commands of `statements`.
pub(super) fn commands_in(statements: &[Statement]) -> impl Iterator<Item = &Command> {
    statements.iter().filter_map(|statement| match statement {
        Statement::Command(command) => Some(command),
        Statement::Assign { .. } => None,
    })
}

fn edits_in_place(name: &str, arguments: &[&str]) -> bool {
    match name {
        "sed" | "gsed" => has_flag(arguments, "efl"),
        "perl" | "ruby" => has_flag(arguments, "eEmMIFxCdDTr"),
        "awk" | "gawk" => arguments.contains(&"inplace"),
        _ => EDITORS.contains(&name) || name.starts_with("cmake_comment_"),
    }
}

/// Returns whether `-i` is among the options, also as in `-ri.bak`. `with_value` are the options before which a cluster
/// ends, because the rest is their value.
fn has_flag(arguments: &[&str], with_value: &str) -> bool {
    arguments.iter().take_while(|word| **word != "--").any(|word| {
        let Some(cluster) = word.strip_prefix('-') else { return false };
        let mut letters = cluster.chars().take_while(|letter| !with_value.contains(*letter));
        word.starts_with("--in-place") || (!cluster.starts_with('-') && letters.any(|letter| letter == 'i'))
    })
}

/// Returns whether the output of a command is written to a file.
fn is_written(command: &Command) -> bool {
    let is_file = |output: &str| {
        !output.starts_with("/dev/") && output != "-" && output.parse::<u8>().is_err() && !output.is_empty()
    };
    command.output.as_deref().is_some_and(is_file)
}

fn handles_files(name: &str, arguments: &[&str]) -> bool {
    let is_of_git = name == "git" && arguments.first().is_some_and(|word| ["rm", "mv"].contains(word));
    let deletes = name == "find" && arguments.contains(&"-delete");
    FILES.contains(&name) || name.starts_with("install_") || is_of_git || deletes
}

fn is_interpreter(words: &[&str]) -> bool {
    let name = words.first().map(|name| program(name)).unwrap_or_default();
    INTERPRETERS.iter().any(|known| name.starts_with(known))
}

/// Returns whether the program of an interpreter is in its arguments.
fn has_program(arguments: &[&str]) -> bool {
    arguments.iter().any(|word| ["-c", "-e", "-E"].contains(word))
}

#[cfg(test)]
mod tests {
    use super::{Phase, change_by, commands_in};
    use crate::read::recipe::shell::Script;

    fn changes(text: &str, phase: Phase) -> Vec<String> {
        let script = Script::parse(text);
        commands_in(&script.top).filter_map(|command| change_by(command, phase)).collect()
    }

    #[test]
    fn commands_that_change_files_are_named() {
        for text in [
            "sed -i s/a/b/ x",
            "sed -e s/a/b/ -ri.bak x",
            "sed --in-place=.orig s/a/b/ x",
            "%{__sed} -i s/a/b/ x",
            "env A=1 perl -0pi -e s/a/b/ x",
            "ruby -i.bak -pe 1 x",
            "gawk -i inplace 1 x",
            "substituteInPlace x --replace-fail a b",
            "find . -name x -exec sed -i s/a/b/ {} +",
            "xargs -n 1 sed -i s/a/b/",
            "sh -c \"cd x && sed -i s/a/b/ y\"",
            "ed -s x",
        ] {
            let found = changes(text, Phase::Build);
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert!(found[0].contains("` changes files, and was not imported"), "{found:?}");
        }
        for text in
            ["cp ../a src/", "rm -rf bundled", "echo 1 > VERSION", "cat a >> b", "find . -name x -delete"]
        {
            assert_eq!(changes(text, Phase::Prepare).len(), 1, "{text}");
            assert_eq!(changes(text, Phase::Build), [""; 0], "{text}");
        }
        assert_eq!(
            changes("echo 1 > VERSION\npython3 - <<E\nx\nE\n", Phase::Prepare),
            [
                "`echo 1 > VERSION` changes files, and was not imported",
                "`python3 -` may change files, and was not imported"
            ]
        );
        assert_eq!(changes("sed -i s/a/b/ x", Phase::Other), [""; 0]);
    }

    #[test]
    fn commands_that_change_none_are_passed_over() {
        for text in [
            "sed -n 1p x",
            "sed -e 's/i/-i/' x 2>/dev/null",
            "perl -Mlib -e 1 < x | cat",
            "grep -i x y >&2",
            "echo sed -i x",
            "find . -name '*.c' -exec grep -l x {} ;",
            "cd x || exit 1",
            "xargs grep -i",
        ] {
            assert_eq!(changes(text, Phase::Build), [""; 0], "{text}");
        }
        for text in
            ["echo x >/dev/null", "grep x y 2>&1", "mkdir build", "sh configure.sh", "python3 setup.py"]
        {
            assert_eq!(changes(text, Phase::Prepare), [""; 0], "{text}");
        }
    }

    /// A command may have any number of words, and scripts in them.
    #[test]
    fn commands_in_commands_have_limits() {
        let many = format!("xargs {}", "xargs ".repeat(100_000));
        assert_eq!(changes(&many, Phase::Prepare), [""; 0]);
        let nested = "sh -c \"sh -c 'true x'\"".to_owned();
        let long = format!("sh -c \"{}\"", "true; ".repeat(1_000));
        for text in [nested, long] {
            assert!(changes(&text, Phase::Prepare)[0].contains("` may change files"), "{text}");
            assert_eq!(changes(&text, Phase::Build), [""; 0], "{text}");
        }
    }
}
