//! Recipes that are shell scripts: those of Alpine, Arch, Gentoo and Haiku.

use super::ApplyOptions;
use super::changes::Phase;
use super::collected::{Collected, Downloads};
use super::script::{Builtins, NoBuiltins, Run};
use super::shell::{Command, Script};
use crate::read::apply_options::{Program, read_options};

/// Strip count of abuild, `eapply` and haikuporter.
const USUAL: Option<u32> = Some(1);

/// Reads a `PKGBUILD`: `prepare()` and the functions after it apply patches, each with its own command.
pub(super) fn read_arch(text: &str) -> Collected {
    let script = Script::parse(text);
    let mut run = Run::new(&script, &NoBuiltins, Collected::with(Downloads::UrlsWithoutName));
    run.top();
    let mut packages: Vec<&str> = script.functions.keys().map(String::as_str).collect();
    packages.retain(|name| name.starts_with("package"));
    packages.sort_unstable();
    run.function_in(Phase::Prepare, "prepare");
    for function in ["build", "check"] {
        run.function_in(Phase::Build, function);
    }
    for function in packages {
        run.function_in(Phase::Other, function);
    }
    run.collected
}

/// Reads an `APKBUILD`. Without a `prepare()` of its own, abuild applies the patches of `source`.
pub(super) fn read_alpine(text: &str) -> Collected {
    let script = Script::parse(text);
    let mut run = Run::new(&script, &Alpine, Collected::with(Downloads::UrlsAndTheirNames));
    run.top();
    run.function_in(Phase::Prepare, "unpack");
    if !run.function_in(Phase::Prepare, "prepare") {
        default_prepare(&mut run);
    }
    for (phase, function) in [(Phase::Build, "build"), (Phase::Build, "check"), (Phase::Other, "package")] {
        run.function_in(phase, function);
    }
    run.collected
}

struct Alpine;

impl Builtins for Alpine {
    fn run(&self, command: &Command, run: &mut Run<'_>) -> bool {
        let is_default = command.words.first().is_some_and(|name| name == "default_prepare");
        if is_default {
            default_prepare(run);
        }
        is_default
    }
}

/// Applies the files of `source` that end in `.patch`, with the options of `patch_args`, as abuild does.
fn default_prepare(run: &mut Run<'_>) {
    let words = run.expanded("$patch_args");
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    if !words.first().is_some_and(|word| word.starts_with('-')) {
        words.clear();
    }
    match read_options(Program::Patch, &words) {
        Ok(read) => {
            for option in read.not_followed {
                run.collected.note(None, format!("`{option}` of `patch_args` was not followed"));
            }
            run.apply_variable("source", read.options, USUAL, |name| name.ends_with(".patch"));
        }
        Err(why) => run.collected.wrong(None, format!("`patch_args`: {why}")),
    }
}

/// Reads an ebuild. Without a `src_prepare()` of its own, the patches of `PATCHES` are applied.
pub(super) fn read_gentoo(text: &str) -> Collected {
    let script = Script::parse(text);
    let mut run = Run::new(&script, &Gentoo, Collected::with(Downloads::UrlsAndTheirNames));
    run.set("PATCHES", Vec::new());
    run.top();
    run.function_in(Phase::Prepare, "src_unpack");
    if !run.function_in(Phase::Prepare, "src_prepare") {
        // The functions that eclasses call before they apply `PATCHES`.
        for function in ["python_prepare_all", "python_prepare", "multilib_src_prepare"] {
            run.function_in(Phase::Prepare, function);
        }
        apply_patches(&mut run);
    }
    for function in ["src_configure", "src_compile", "src_test"] {
        run.function_in(Phase::Build, function);
    }
    run.function_in(Phase::Other, "src_install");
    run.collected
}

struct Gentoo;

impl Builtins for Gentoo {
    /// Handles the functions of Gentoo and its eclasses that apply `PATCHES`.
    fn run(&self, command: &Command, run: &mut Run<'_>) -> bool {
        let Some(name) = command.words.first() else { return false };
        let is_default = name == "default" || name == "default_src_prepare";
        let is_of_eclass = name.ends_with("_src_prepare") || name.ends_with("_prepare_all");
        let applies = run.is_in("prepare") && (is_default || is_of_eclass);
        if applies {
            apply_patches(run);
        }
        applies
    }
}

fn apply_patches(run: &mut Run<'_>) {
    run.apply_variable("PATCHES", ApplyOptions::default(), USUAL, |_| true);
}

/// Reads a recipe of Haiku: the patches of `PATCHES`, then what its functions apply. `PATCHES_2` is for another source.
pub(super) fn read_haiku(text: &str) -> Collected {
    let script = Script::parse(text);
    let mut run = Run::new(&script, &NoBuiltins, Collected::with(Downloads::UrlsAndTheirNames));
    run.top();
    run.apply_variable("PATCHES", ApplyOptions::default(), USUAL, |_| true);
    for (phase, function) in [
        (Phase::Prepare, "PATCH"),
        (Phase::Build, "BUILD"),
        (Phase::Other, "INSTALL"),
        (Phase::Build, "TEST"),
    ] {
        run.function_in(phase, function);
    }
    for name in run.names_with("PATCHES_") {
        let is_numbered = name.rsplit('_').next().is_some_and(|end| end.parse::<u32>().is_ok());
        if is_numbered {
            let why = format!("the recipe applies it to another source (`{name}`)");
            run.leave_out_variable(&name, &why);
        }
    }
    run.collected
}
