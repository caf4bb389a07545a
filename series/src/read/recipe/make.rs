//! Makefiles beside patches: `debian/rules`, ports of the BSDs, packages of buildroot and OpenWrt. They are read for what
//! their commands do to the sources before these are built.

use std::collections::HashMap;

use super::Remark;
use super::changes::{Phase, UNCLOSED, commands_in};
use super::collected::Collected;
use super::script::remark_beside;
use super::shell::{Command, Script};

/// Returns remarks on the commands that change the sources, in the order of the text.
pub fn read_makefile(text: &str) -> Vec<Remark> {
    let hooks = hooks_in(text);
    let mut collected = Collected::default();
    for Block { names, line, text, .. } in blocks_in(text) {
        let phases = names.split_whitespace().map(|name| phase_of(name, &hooks));
        let phase = phases.max().unwrap_or(Phase::Other);
        if phase == Phase::Other {
            continue;
        }
        let script = Script::parse(&text);
        for command in script.functions.values().chain([&script.top]).flat_map(|body| commands_in(body)) {
            if let Some(remark) = remark_beside(command, phase).filter(|_| !is_about_target(command)) {
                collected.change(Some(line + command.line), remark);
            }
        }
        if let Some(unclosed) = script.unclosed {
            collected.change(Some(line + unclosed), UNCLOSED.to_owned());
        }
    }
    let mut changes = collected.into_changes();
    changes.sort_by_key(|change| change.line.unwrap_or(usize::MAX));
    changes
}

/// Returns whether a command writes the target of its rule, or one that records that a rule was followed: `patch-stamp`.
fn is_about_target(command: &Command) -> bool {
    let is_stamp = |word: &String| {
        let endings = ["-stamp", "-stampT", ".stamp"];
        word == "$@" || endings.iter().any(|ending| word.ends_with(ending))
    };
    command.words.iter().chain(&command.output).any(is_stamp)
}

/// The commands of a rule, or of a `define`.
struct Block {
    /// The targets, or the name.
    names: String,
    /// The line above the first line of the commands.
    line: usize,
    text: String,
    /// Number of lines of the text.
    size: usize,
}

impl Block {
    fn new(names: &str, line: usize) -> Block {
        Block { names: names.to_owned(), line, text: String::new(), size: 0 }
    }

    /// Appends the line with this number.
    fn push(&mut self, number: usize, line: &str) {
        // Lines between commands are left out, and the others keep their numbers.
        let missing = number.saturating_sub(self.line + self.size + 1);
        self.text.extend(std::iter::repeat_n('\n', missing));
        self.text += line;
        self.text.push('\n');
        self.size += missing + 1;
    }
}

fn blocks_in(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut is_open, mut is_define, mut is_continued, mut is_command) = (false, false, false, false);
    for (number, line) in (1..).zip(text.lines()) {
        let continues = std::mem::replace(&mut is_continued, line.ends_with('\\'));
        if is_define && line.trim() == "endef" {
            (is_define, is_open, is_command) = (false, false, false);
        } else if is_define || (line.starts_with('\t') && !continues) || (continues && is_command) {
            is_command = true;
            if let Some(block) = blocks.last_mut().filter(|_| is_open) {
                block.push(number, &shell_line(line, continues));
            }
        } else if continues || is_between_commands(line) {
            // What continues belongs to a variable, or to the head of a rule.
            is_command = false;
        } else if let Some(name) = line.strip_prefix("define ") {
            (is_define, is_open) = (true, true);
            blocks.push(Block::new(name.trim_end_matches([' ', '=', ':']), number));
        } else if let Some((targets, command)) = rule_in(line) {
            (is_open, is_command) = (true, command.is_some());
            let mut block = Block::new(targets, number.saturating_sub(1));
            block.push(number, &shell_line(command.unwrap_or_default(), false));
            blocks.push(block);
        } else {
            (is_open, is_command) = (false, false);
        }
    }
    blocks
}

/// Returns a line of commands as the shell gets it: without the signs before it, and with one `$` for two.
fn shell_line(line: &str, continues: bool) -> String {
    let line = if continues { line } else { line.trim_start_matches(['\t', ' ', '@', '-', '+']) };
    line.replace("$$", "$")
}

/// Returns the targets of the rule that `line` begins, and the command after a `;`.
fn rule_in(line: &str) -> Option<(&str, Option<&str>)> {
    let (targets, rest) = line.split_once(':')?;
    let is_assignment = targets.contains('=') || rest.starts_with('=') || rest.starts_with(":=");
    let is_rule = !is_assignment && !targets.trim().is_empty() && !targets.starts_with([' ', '\t']);
    is_rule.then(|| (targets, rest.split_once(';').map(|(_, command)| command)))
}

/// Returns whether a line between commands does not end them: a blank one, a comment, a condition.
fn is_between_commands(line: &str) -> bool {
    const CONDITIONS: [&str; 6] = ["ifeq", "ifneq", "ifdef", "ifndef", "else", "endif"];
    let first = line.split_whitespace().next().unwrap_or_default();
    let first = first.split('(').next().unwrap_or_default();
    first.is_empty() || first.starts_with(['#', '.']) || CONDITIONS.contains(&first)
}

/// Returns the definitions that buildroot runs at its hooks: `NAME_POST_PATCH_HOOKS += DEFINITION`.
fn hooks_in(text: &str) -> HashMap<&str, Phase> {
    let assignments = text.lines().filter_map(|line| line.split_once('='));
    let of_hooks = assignments.filter(|(name, _)| name.contains("_HOOKS"));
    let phases = of_hooks.map(|(name, names)| {
        let has = |part: &&str| name.contains(*part);
        let phase = match () {
            () if ["EXTRACT", "PATCH", "RSYNC", "PRE_CONFIGURE"].iter().any(has) => Phase::Prepare,
            () if ["CONFIGURE", "BUILD"].iter().any(has) => Phase::Build,
            () => Phase::Other,
        };
        (names, phase)
    });
    phases.flat_map(|(names, phase)| names.split_whitespace().map(move |name| (name, phase))).collect()
}

/// Returns the phase of a target or a definition.
fn phase_of(name: &str, hooks: &HashMap<&str, Phase>) -> Phase {
    const PREPARES: [&str; 6] =
        ["patch", "extract", "unpack", "prepare", "pre-configure", "before_dh_auto_configure"];
    if let Some(phase) = hooks.get(name) {
        return *phase;
    }
    let name = name.to_ascii_lowercase();
    let has = |part: &&str| name.contains(*part);
    match () {
        () if ["clean", "unpatch", "reverse"].iter().any(has) => Phase::Other,
        () if PREPARES.iter().any(has) => Phase::Prepare,
        () if ["install", "binary", "package"].iter().any(has) => Phase::Other,
        () if ["config", "autoreconf", "build"].iter().any(has) => Phase::Build,
        () => Phase::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::read_makefile;

    fn changes(text: &str) -> Vec<String> {
        let changes = read_makefile(text).into_iter();
        changes.map(|change| format!("{}: {}", change.line.unwrap_or(0), change.text)).collect()
    }

    fn line(number: usize, command: &str) -> String {
        format!("{number}: `{command}` changes files, and was not imported")
    }

    #[test]
    fn rules_of_debian() {
        let text = "#!/usr/bin/make -f\nFLAGS := a:b \\\n\tsed -i x\n\n%:\n\tdh $@ --with quilt\n\noverride_dh_auto_patch:\n\
                    \tdh_quilt_patch\n\t@sed -i 's/a/b/' \\\n\t\tconfigure\n# why\n\tcp debian/x.h src/\n\
                    override_dh_auto_configure: x; perl -pi -e 1 y\n\tdh_auto_configure -- --prefix=/usr\n\trm -f z\n\
                    patch-stamp::\n\tfor i in a; do cat $$i | patch -p1; done\nifeq (a:b,$(X))\n\tpatch -p1 < $(CURDIR)/debian/other.patch\n\
                    endif\n\tdpatch cat-all > patch-stampT\n\ttouch $@\n\
                    override_dh_auto_install:\n\tsed -i s/a/b/ debian/tmp/x\nclean unpatch:\n\trm -f patch-stamp\n";
        assert_eq!(
            changes(text),
            [
                line(10, "sed -i s/a/b/ configure"),
                line(13, "cp debian/x.h src/"),
                line(14, "perl -pi -e 1 y"),
                "20: `patch -p1 < $(CURDIR)/debian/other.patch` applies a patch, and was not imported"
                    .to_owned(),
            ]
        );
    }

    #[test]
    fn ports_and_packages() {
        let text = "PORTNAME=\thello\n\npost-patch:\n.if ${OS} == x\n\t@${REINPLACE_CMD} -e 's|a|b|' \\\n\t\t${WRKSRC}/x\n.endif\n\
                    \t${SED} -e s/a/b/ < ${FILESDIR}/y.in > ${WRKSRC}/y\n\ndo-install:\n\t${CP} a b\n";
        assert_eq!(
            changes(text),
            [
                line(5, "${REINPLACE_CMD} -e s|a|b| ${WRKSRC}/x"),
                line(8, "${SED} -e s/a/b/ < ${FILESDIR}/y.in > ${WRKSRC}/y"),
            ]
        );
        let text = "define HELLO_FIX\n\t$(SED) 's/a/b/' $(@D)/x\nendef\nHELLO_POST_PATCH_HOOKS += HELLO_FIX\n\
                    define HELLO_INSTALL_TARGET_CMDS\n\trm -f $(TARGET_DIR)/x\nendef\ndefine Build/Prepare\n\
                    \t$(CP) ./src/* $(PKG_BUILD_DIR)/\nendef\n";
        assert_eq!(
            changes(text),
            [
                "2: `$(SED) s/a/b/ $(@D)/x` may change files, and was not imported".to_owned(),
                line(9, "$(CP) ./src/* $(PKG_BUILD_DIR)/"),
            ]
        );
        assert_eq!(
            changes("patch:\n\techo \"x\n"),
            ["2: a quote or bracket is not closed; the commands after it were not read"]
        );
    }
}
