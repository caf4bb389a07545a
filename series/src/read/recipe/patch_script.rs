//! Scripts around a diff, such as the files of dpatch, which runs them: of their commands only those that apply the diff
//! are known to do what an import does.

use super::Remark;
use super::changes::{MAY_CHANGE, Phase, UNCLOSED, commands_in};
use super::collected::Collected;
use super::pattern::last_component;
use super::script::{remark_beside, strip_of};
use super::shell::{Command, Script};
use crate::model::printable::printable;

/// A script around a diff.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchScript {
    /// Number of leading path components that it strips from its diff, if it states one.
    pub strip: Option<u32>,
    /// Changes of the sources that its diff does not have.
    pub changes: Vec<Remark>,
}

/// The line of a file of dpatch that ends the script.
const END: &str = "\n@DPATCH@";

/// Commands and keywords that change no file unless their output is written to one.
const HARMLESS: [&str; 34] = [
    ".", ":", "[", "[[", "basename", "case", "cat", "cd", "cut", "diff", "dirname", "echo", "egrep", "exit",
    "false", "grep", "head", "patch", "popd", "printf", "pushd", "pwd", "read", "return", "sed", "set",
    "shift", "source", "tail", "test", "tr", "true", "umask", "unset",
];

/// Reads a script around a diff: `text` is the part of the file above the diff. A text without `#!` is not a script.
pub fn read_patch_script(text: &str) -> PatchScript {
    let Some(interpreter) = text.lines().next().and_then(|line| line.strip_prefix("#!")) else {
        return PatchScript::default();
    };
    if !is_shell(interpreter) {
        let interpreter = printable(interpreter.trim().as_bytes());
        let text = format!("it is a script for `{interpreter}`, which was not read, and may change files");
        return PatchScript { strip: None, changes: vec![Remark { line: Some(1), text }] };
    }
    let script = Script::parse(text.split(END).next().unwrap_or(text));
    let functions = script.functions.iter().filter(|(name, _)| !name.contains("unpatch"));
    let bodies = std::iter::once(&script.top).chain(functions.map(|(_, body)| body));
    let mut commands: Vec<&Command> = bodies.flat_map(|body| commands_in(body)).collect();
    commands.sort_by_key(|command| command.line);
    let mut collected = Collected::default();
    for command in &commands {
        if let Some(remark) = remark(command, &script) {
            collected.change(Some(command.line), remark);
        }
    }
    if script.unclosed.is_some() {
        collected.change(script.unclosed, UNCLOSED.to_owned());
    }
    let strip = commands.iter().filter(|command| reads_itself(command)).find_map(|command| strip_of(command));
    PatchScript { strip, changes: collected.into_changes() }
}

/// Returns whether a shell runs the script: `/bin/sh -e`, `/bin/sh /usr/share/dpatch/dpatch-run`.
fn is_shell(interpreter: &str) -> bool {
    let mut words = interpreter.split_whitespace().map(last_component);
    words.any(|word| ["sh", "bash", "dash", "ksh", "zsh", "dpatch-run"].contains(&word))
}

/// Returns whether a command reads the file of its script.
fn reads_itself(command: &Command) -> bool {
    let mut words = command.words.iter().chain(&command.input);
    words.any(|word| word == "$0" || word == "${0}")
}

/// Returns a remark on a command, unless it is known to change nothing but what the diff changes.
fn remark(command: &Command, script: &Script) -> Option<String> {
    let (name, arguments) = command.words.split_first()?;
    // As in `case $1 in -patch)`.
    let is_label = arguments.is_empty() && (name == "*" || name.starts_with('-') || name.ends_with("patch"));
    let is_known =
        is_label || HARMLESS.contains(&last_component(name)) || script.functions.contains_key(name);
    let other = || (!is_known).then(|| format!("`{}` {MAY_CHANGE}", command.whole_text()));
    remark_beside(command, Phase::Prepare).or_else(other)
}

#[cfg(test)]
mod tests {
    use super::read_patch_script;

    fn changes(text: &str) -> Vec<String> {
        let changes = read_patch_script(text).changes;
        changes.into_iter().map(|change| format!("{}: {}", change.line.unwrap_or(0), change.text)).collect()
    }

    const HEAD: &str = "#! /bin/sh -e\n## 01_x.dpatch by A <a@b>\n##\n## All lines beginning with `## DP:' are a \
                        description.\n## DP: x\n\nif [ $# -lt 1 ]; then\n    echo \"`basename $0`: script expects \
                        -patch|-unpatch as argument\" >&2\n    exit 1\nfi\n[ -f debian/patches/00patch-opts ] && . \
                        debian/patches/00patch-opts\npatch_opts=\"${patch_opts:--f --no-backup-if-mismatch} ${2:+-d \
                        $2}\"\n";

    #[test]
    fn the_script_of_dpatch_changes_nothing_else() {
        let case = "case \"$1\" in\n    -patch) patch -p1 ${patch_opts} < $0;;\n    -unpatch) patch -R -p1 \
                    ${patch_opts} < $0;;\n    *)\n        echo \"no\" >&2\n        exit 1;;\nesac\n\nexit 0\n\n@DPATCH@\n";
        let script = read_patch_script(&format!("{HEAD}{case}"));
        assert_eq!((script.strip, script.changes), (Some(1), Vec::new()));
        let run = "#! /bin/sh /usr/share/dpatch/dpatch-run\n## DP: it's x\n\n@DPATCH@\n";
        assert_eq!(changes(run), [""; 0]);
        assert_eq!(changes("words\nsed -i s/a/b/ x\n"), [""; 0]);
    }

    #[test]
    fn commands_beside_the_diff_are_named_with_their_lines() {
        let case = "case \"$1\" in\n    -patch)\n        patch -p0 < $0\n        sed -i s/a/b/ configure\n        (cd \
                    x && autoconf)\n        patch -p1 < debian/other.diff;;\n    -unpatch) patch -R -p0 < $0;;\nesac\n";
        assert_eq!(
            changes(&format!("{HEAD}{case}")),
            [
                "16: `sed -i s/a/b/ configure` changes files, and was not imported",
                "17: `autoconf` may change files, and was not imported",
                "18: `patch -p1 < debian/other.diff` applies a patch, and was not imported",
            ]
        );
        assert_eq!(read_patch_script(&format!("{HEAD}{case}")).strip, Some(0));
        assert_eq!(read_patch_script("#!/bin/sh\npatch -p0 < debian/other.diff\n").strip, None);
        let functions =
            "#!/bin/sh\ndpatch_patch ()\n{\n\trm -f x\n}\ndpatch_unpatch() {\n\ttouch x\n}\ndpatch_patch\n";
        assert_eq!(changes(functions), ["4: `rm -f x` changes files, and was not imported"]);
        assert_eq!(
            changes("#!/usr/bin/perl -w\nunlink 'x';\n"),
            ["1: it is a script for `/usr/bin/perl -w`, which was not read, and may change files"]
        );
        let open = "#!/bin/sh\npatch -p1 <<EOF\n";
        assert_eq!(
            changes(open),
            ["3: a quote or bracket is not closed; the commands after it were not read"]
        );
    }
}
