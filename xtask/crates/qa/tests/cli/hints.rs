//! Every command in the tool's hints is run, to check that it works.
//!
//! A scenario runs one command. Each command among its hints is run by a shell, unchanged, in its own copy of the
//! scenario: in a fresh clone if the hint is for anyone, in the same folder, as the scenario left it, if it is about the
//! files there.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, OnceLock};

use makers::{ABOUT, GREETING_GOES, project_by_git};

use super::support::saved::Saved;
use super::support::upstream::{TAG, Upstream, made_once};
use super::support::{Output, Project, files, git, program_path};

mod generation_cases;
mod import_cases;
mod lint_cases;
mod makers;
mod pin_cases;
mod rebase_cases;
mod series_cases;
mod sources_covered;

/// The place where a hint is run.
#[derive(Clone, Copy, PartialEq)]
enum HintPlace {
    /// In a clone, with only the committed project.
    Clone,
    /// In the folder where it was printed.
    Here,
}

struct HintCase {
    name: &'static str,
    make: fn() -> Project,
    /// Arguments after `cargo xtask`, as shell words.
    command: &'static str,
    place: HintPlace,
    /// Prefixes of the commands among its hints, each with the expected exit code.
    hints: &'static [(&'static str, i32)],
}

fn cases() -> impl Iterator<Item = &'static HintCase> {
    [
        pin_cases::CASES,
        rebase_cases::CASES,
        series_cases::CASES,
        lint_cases::CASES,
        import_cases::CASES,
        generation_cases::CASES,
    ]
    .into_iter()
    .flatten()
}

/// Returns the commands that a user would type after reading `output`: the whole hint, or the part after its colon. A
/// command after `then` is run after the previous one; a flag is appended to the command that printed it. None of them
/// changes the current folder: the others, and the paths in them, are for the folder in which they were printed.
fn commands(case: &str, output: &Output) -> Vec<String> {
    let both = format!("{}\n{}", output.stdout, output.stderr);
    let mut found: Vec<String> = Vec::new();
    for hint in both.lines().map(str::trim).filter(|line| line.starts_with("next: ")) {
        assert!(!hint.contains(": cd "), "{case}: {hint}");
        let Some(command) = command_in(case, hint) else { continue };
        let before = found.last().filter(|_| hint.starts_with("next: then"));
        found.push(before.map_or(String::new(), |before| format!("{before}\n")) + &command);
    }
    found
}

fn command_in(case: &str, hint: &str) -> Option<String> {
    let starts = ["cargo xtask ", "git ", "mkdir ", "mv ", "rm "].map(|program| format!(": {program}"));
    if let Some(first) = starts.iter().filter_map(|start| hint.find(start)).min() {
        return hint.get(first + 2..).map(str::to_string);
    }
    let (_, flags) = hint.split_once(": --").or_else(|| hint.split_once("the same command with --"))?;
    let flag = format!(" --{} ", flags.split(' ').next()?);
    let begin = case.split(&flag).next()?;
    Some(format!("cargo xtask {begin} --{flags}"))
}

/// Returns the folder of a `cargo` that runs the tool, and of an editor, written once for all tests.
fn shims() -> PathBuf {
    let cargo = format!("shift\nexec '{}' \"$@\"", env!("CARGO_BIN_EXE_espalier-qa"));
    let scripts = [("cargo", cargo.as_str()), ("editor", "echo More > \"$1\"")];
    made_once("shims", &scripts.map(|(_, commands)| commands), |folder| {
        scripts.iter().for_each(|(name, commands)| files::write_script(&folder.join(name), commands));
    })
}

fn shell(folder: &Path, project: &Project, command: &str) -> Output {
    let shims = shims();
    let editor = shims.join("editor");
    let path = program_path::with_build_tools();
    let folders = std::iter::once(shims).chain(std::env::split_paths(&path));
    let mut shell = Command::new("bash");
    shell.args(["-c", command]).current_dir(folder).env_clear().env("HOME", project.beside("home"));
    shell
        .env("PATH", std::env::join_paths(folders).unwrap())
        .env("GIT_EDITOR", editor)
        .env("GIT_SEQUENCE_EDITOR", "true");
    for role in ["AUTHOR", "COMMITTER"] {
        shell.env(format!("GIT_{role}_NAME"), "A").env(format!("GIT_{role}_EMAIL"), "a@espalier.invalid");
    }
    // Paths are not normalised: the printed text is what is typed.
    Output::new(&shell.output().unwrap(), &[])
}

fn run(case: &HintCase, project: &Project) -> Output {
    shell(project.root(), project, &format!("cargo xtask {}", case.command))
}

fn run_with_root(case: &HintCase, project: &Project) -> Output {
    shell(project.root(), project, &format!("cargo xtask --root . {}", case.command))
}

/// Fills in a source that has the pin, and replaces a check that takes hours by its dry run.
fn filled_in(command: &str) -> String {
    let upstream = Upstream::shared().repository();
    let fills = [
        ("PATH", upstream.to_str().unwrap()),
        ("PATCHES", "../patches"),
        ("--edit NNNN", "--edit 0001"),
        ("--source=COMMIT", "--source=HEAD~1"),
        ("--to REF", "--to v1.0"),
        ("UPSTREAM", upstream.to_str().unwrap()),
        ("--at TAG", "--at v1.0"),
        ("--variant NEW", "--variant new"),
        ("edit VARIANT", "edit paged"),
        ("SOMEWHERE", "../saved"),
        (
            "git -C target/espalier/edit/paged add --all &&",
            "echo 'int more;' > target/espalier/edit/paged/src/more.c && git -C target/espalier/edit/paged add --all &&",
        ),
        ("REPO", "'../the fork'"),
        ("--root DIR …", "--root DIR --from ../upstream --at v1.0 --variant my"),
        ("DIR", "../another"),
        ("BASE..TIP", "upstream/main..main --leave-out docs/shortcut --leave-out 'a\tb.txt'"),
        ("FIRST", "HEAD"),
        ("LAST_IMPORTED..TIP", "main~1..main"),
    ];
    let command = fills.iter().fold(command.to_string(), |text, (from, to)| text.replace(from, to));
    if command.starts_with("cargo xtask sync") { command + " --dry-run" } else { command }
}

/// Returns a project after the scenario's command, and its output. First the command is run with `--root .`, for the test
/// that reads the output of that, and the project is put back: most projects take longer to make than to copy.
fn played(case: &HintCase) -> (Project, Output) {
    let project = (case.make)();
    if WITH_ROOT[place_of(case)].get().is_none() {
        let made = Saved::of(&project);
        output_with_root(case, || run_with_root(case, &project));
        made.restore();
    }
    let output = run(case, &project);
    (project, output)
}

/// One output for each scenario.
type Outputs = LazyLock<Vec<OnceLock<Output>>>;

static PLAIN: Outputs = LazyLock::new(|| cases().map(|_| OnceLock::new()).collect());
static WITH_ROOT: Outputs = LazyLock::new(|| cases().map(|_| OnceLock::new()).collect());

fn place_of(case: &HintCase) -> usize {
    cases().position(|other| other.name == case.name).unwrap()
}

/// Returns the output of a scenario, cached for both tests that use it. Tests start in the order of their names:
/// `sources_covered` comes after those that play the scenarios to follow their hints.
fn output_of(case: &HintCase, play: impl FnOnce() -> Output) -> &'static Output {
    PLAIN[place_of(case)].get_or_init(play)
}

/// Returns its output with `--root .`, cached in the same way.
fn output_with_root(case: &HintCase, play: impl FnOnce() -> Output) -> &'static Output {
    WITH_ROOT[place_of(case)].get_or_init(play)
}

/// Runs the commands of `case`; returns each with its output.
fn followed(case: &HintCase) -> Vec<(String, Output)> {
    let (project, output) = played(case);
    let count = commands(case.command, output_of(case, || output.clone())).len();
    // A hint that is run in the same folder may change it, so the others find it as it was.
    let as_left = (count > 1 && case.place == HintPlace::Here).then(|| Saved::of(&project));
    let follow = |number: usize| {
        as_left.iter().filter(|_| number > 0).for_each(Saved::restore);
        let command = commands(case.command, &output).swap_remove(number);
        let folder: PathBuf = match case.place {
            _ if command.starts_with("git rev-parse") => Upstream::shared().repository(),
            HintPlace::Here => project.root().to_path_buf(),
            HintPlace::Clone => project.fresh_clone(&format!("clone {number}")).root().to_path_buf(),
        };
        let followed = shell(&folder, &project, &filled_in(&command));
        (command, followed)
    };
    (0..count).map(follow).collect()
}

/// Returns every hint of a scenario whose command ends otherwise than expected.
fn dead_ends(case: &HintCase) -> Vec<String> {
    let followed = followed(case);
    if followed.len() != case.hints.len() {
        let printed: Vec<&String> = followed.iter().map(|(command, _)| command).collect();
        let output = output_of(case, || played(case).1);
        return vec![format!("{}: {printed:#?}\n{output}", case.name)];
    }
    let leads_on = |((command, output), (begins, code)): (&(String, Output), &(&str, i32))| {
        let last = command.lines().last().unwrap_or_default();
        let is_right = last.starts_with(begins) && output.code == Some(*code);
        (!is_right).then(|| format!("{}: {command}, not {begins}, {code}\n{output}", case.name))
    };
    followed.iter().zip(case.hints).filter_map(leads_on).collect()
}

fn assert_none_is_a_dead_end(cases: &[HintCase]) {
    let dead: Vec<String> = cases.iter().flat_map(dead_ends).collect();
    assert!(dead.is_empty(), "{}", dead.join("\n\n"));
}

#[test]
fn every_command_about_a_pin_leads_on() {
    assert_none_is_a_dead_end(pin_cases::CASES);
}

#[test]
fn every_command_about_a_rebase_leads_on() {
    assert_none_is_a_dead_end(rebase_cases::CASES);
}

#[test]
fn every_command_about_a_generation_leads_on() {
    assert_none_is_a_dead_end(generation_cases::CASES);
}

#[test]
fn every_command_about_a_series_leads_on() {
    assert_none_is_a_dead_end(series_cases::CASES);
}

#[test]
fn every_command_of_lint_leads_on() {
    assert_none_is_a_dead_end(lint_cases::CASES);
}

#[test]
fn every_command_about_an_import_leads_on() {
    assert_none_is_a_dead_end(import_cases::CASES);
}

/// The pin that a hint suggests can be fetched in a clone.
#[test]
fn newest_offers_a_pin_that_every_clone_can_fetch() {
    let project = project_by_git(&[ABOUT, GREETING_GOES]);
    let output = shell(project.root(), &project, "cargo xtask newest");
    shell(project.root(), &project, &commands("newest", &output)[0]).success();
    assert!(project.read("pins.toml").contains("commit = "), "{TAG} is behind");
    let clone = project.fresh_clone("clone");
    clone.run(&["--locked", "apply"]).success();
    clone.run(&["--locked", "status"]).success();
}

/// If `--root` or `--variant` was given, the printed commands contain it too.
#[test]
fn every_printed_command_keeps_the_root_that_was_named() {
    let mut lost = Vec::new();
    let mut seen = 0;
    for case in cases() {
        let output = output_with_root(case, || run_with_root(case, &(case.make)()));
        for line in format!("{}\n{}", output.stdout, output.stderr).lines() {
            for part in line.split("cargo xtask ").skip(1) {
                let command = part.split(['`', '#']).next().unwrap_or_default();
                seen += 1;
                if !command.contains("--root ") {
                    lost.push(format!("{}: {line}", case.name));
                }
            }
        }
    }
    assert!(seen > 50, "{seen}");
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}

/// The same in JSON, in which findings and checks have commands too.
#[test]
fn every_command_in_json_keeps_the_root_that_was_named() {
    let mut lost = Vec::new();
    let mut seen = 0;
    for case in lint_cases::CASES.iter().chain(import_cases::CASES) {
        let project = (case.make)();
        let output =
            shell(project.root(), &project, &format!("cargo xtask --root . --json {}", case.command));
        for part in output.stdout.split("cargo xtask ").skip(1) {
            let command = part.split(['`', '#', '"', '\\']).next().unwrap_or_default();
            seen += 1;
            if !command.contains("--root ") {
                lost.push(format!("{}: {command}", case.name));
            }
        }
    }
    assert!(seen > 10, "{seen}");
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}

/// With a relative root, the printed commands work one after the other, in the folder where they were printed.
#[test]
fn a_printed_sequence_is_for_one_folder() {
    let project = Project::new();
    let here = project.beside("");
    let output = shell(&here, &project, "cargo xtask --root project edit").success();
    let sequence = commands("edit", &output).join("\n");
    assert!(sequence.contains("git -C project/target/espalier/edit/paged rebase -i"), "{output}");
    shell(&here, &project, &format!("set -e\n{sequence}")).success();
}

/// A subject that looks like a command is content, in text and in JSON.
#[test]
fn content_that_looks_like_a_command_is_not_completed() {
    const SUBJECT: &str = "doc: run cargo xtask lint && cargo xtask apply";
    let project = Project::new();
    shell(project.root(), &project, "cargo xtask edit").success();
    let folder = project.path("target/espalier/edit/paged");
    git::git(&folder, &["commit", "--quiet", "--allow-empty", "--message", SUBJECT]);
    for (command, code) in
        [(format!("new '{SUBJECT}' --dry-run"), 0), ("edit".to_string(), 4), ("export".to_string(), 4)]
    {
        for json in ["", "--json "] {
            let output = shell(project.root(), &project, &format!("cargo xtask {json}--root . {command}"));
            let both = format!("{}{}", output.stdout, output.stderr);
            assert_eq!(output.code, Some(code), "{output}");
            assert!(!both.contains("cargo xtask lint --root"), "{output}");
            assert!(command == "edit" || both.contains(SUBJECT), "{output}");
        }
    }
}

/// The hints of a page are for the user who has it written.
#[test]
fn the_commands_of_a_page_keep_the_root_that_was_named() {
    let project = makers::elsewhere(&[GREETING_GOES]);
    let status = "cargo xtask --root . status --tip main --from \"../it's elsewhere\" --html page.html";
    let output = shell(project.root(), &project, status);
    assert_eq!(output.code, Some(1), "{output}");
    let page = project.read("page.html");
    assert!(page.contains("`cargo xtask rebase --root . --to main --from '"), "{page}");
    assert!(page.contains("elsewhere'` stops there"), "{page}");
}

/// `edit` takes the variant by position.
#[test]
fn a_printed_edit_names_the_variant() {
    let project = makers::started();
    std::fs::remove_file(project.beside("patches/0001-Greet-more-warmly.patch")).unwrap();
    for json in ["", "--json "] {
        let command = format!("cargo xtask {json}--root . import ../patches --variant my");
        let output = shell(project.root(), &project, &command).code(4);
        let edit = "make them by hand: cargo xtask edit --root . my";
        assert!(output.stdout.contains(edit) || output.stderr.contains(edit), "{output}");
        assert_eq!(output.stdout.contains(edit), !json.is_empty(), "{output}");
    }
}
