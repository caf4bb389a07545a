//! The level `contract`: a syntax check of the files that the series touches, against upstream's interfaces; takes a
//! minute.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use espalier_core::error::{Error, Result};
use espalier_core::sys::git::store::Store;
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::Run;
use espalier_core::ui::Unit;
use espalier_dist::build::{Build, Configured};
use espalier_dist::plan::compile_commands::{self, CompileCommand};
use espalier_dist::plan::ninja;
use espalier_patches::apply::Applied;
use espalier_patches::stack::Stack;

use super::walk::Finding;

/// Returns every path that the series or an overlay touches.
pub fn touched(stack: &Stack) -> BTreeSet<String> {
    let of_patches = stack
        .patches
        .iter()
        .flat_map(|patch| &patch.files)
        .flat_map(|file| file.paths())
        .map(|path| espalier_series::lossy(path.as_bytes()).into_owned());
    of_patches.chain(stack.overlays.iter().map(|file| file.path.clone())).collect()
}

/// Configures the placed tree and checks every touched file that it compiles.
pub fn check(
    build: &Build<'_>,
    store: &Store,
    placed: &Applied,
    touched: &BTreeSet<String>,
) -> Result<Finding> {
    let configured = build.prepare(store, placed)?;
    let tree = build.context.layout.tree(&build.variant.name);
    let commands = read_commands(&configured)?;
    let there = |path: &&String| disk::exists(&tree.join(path));
    let touched: BTreeSet<String> = touched.iter().filter(there).cloned().collect();
    let root = tree.display().to_string();
    let mut code = read_code(&tree)?;
    code.extend(read_generated(&commands, &root)?);
    let chosen = compile_commands::choose(&commands, &root, &touched, &code);
    let commands: Vec<&CompileCommand> = chosen.commands.iter().filter_map(|at| commands.get(*at)).collect();
    make_generated_headers(&configured, &commands)?;
    let mut errors = Vec::new();
    let mut progress =
        build.context.ui.progress("looking at", u64::try_from(commands.len()).ok(), Unit::Steps);
    for (done, command) in (1u64..).zip(&commands) {
        errors.extend(first_error(command, &root)?);
        progress.set(done);
    }
    drop(progress);
    Ok(finding(commands.len(), &errors, &chosen.not_compiled))
}

fn finding(looked_at: usize, errors: &[String], not_compiled: &[String]) -> Finding {
    let mut says = if errors.is_empty() {
        format!("{looked_at} files compile, syntax only")
    } else {
        format!("{} of {looked_at} files do not compile, syntax only", errors.len())
    };
    if !not_compiled.is_empty() {
        says += &format!("; in no build of this flavor: {}", not_compiled.join(", "));
    }
    Finding { passed: errors.is_empty(), says, details: errors.join("\n") }
}

fn read_commands(configured: &Configured) -> Result<Vec<CompileCommand>> {
    let path = configured.folder.join("compile_commands.json");
    compile_commands::parse(&disk::read_text(&path)?)
        .ok_or_else(|| Error::environment(format!("`{}` is not what CMake writes", path.display())))
}

/// Reads all code in the tree, by path.
fn read_code(tree: &Path) -> Result<BTreeMap<String, String>> {
    let mut texts = BTreeMap::new();
    for path in disk::files_below(tree)? {
        let name = path.to_string_lossy().into_owned();
        if compile_commands::is_code(&name) {
            let text = disk::read(&tree.join(&path))?;
            texts.insert(name, espalier_series::lossy(&text).into_owned());
        }
    }
    Ok(texts)
}

/// Reads the generated sources that CMake wrote: such a file includes several files of the tree at once.
fn read_generated(commands: &[CompileCommand], tree: &str) -> Result<BTreeMap<String, String>> {
    let mut texts = BTreeMap::new();
    for command in commands.iter().filter(|command| !command.file.starts_with(tree)) {
        if let Some(text) = disk::read_if_there(Path::new(&command.file))? {
            let text = espalier_series::lossy(&text).replace(&format!("{tree}/"), "");
            texts.insert(command.file.clone(), text);
        }
    }
    Ok(texts)
}

/// Builds the generated headers that a file may include; `build.ninja` lists them.
fn make_generated_headers(configured: &Configured, commands: &[&CompileCommand]) -> Result<()> {
    let known = disk::read_text(&configured.folder.join("build.ninja"))?;
    let targets: BTreeSet<String> = commands
        .iter()
        .filter_map(|command| compile_commands::generated_headers_target(&command.output))
        .filter(|target| known.contains(&format!("build {target}:")))
        .collect();
    if targets.is_empty() {
        return Ok(());
    }
    let made = Run::new(&configured.ninja).arg("-C").arg(&configured.folder).args(&targets).finish()?;
    if made.status.success() {
        return Ok(());
    }
    let output = espalier_series::lossy(&made.stdout);
    Err(Error::no("the generated headers could not be made").detail(ninja::first_error(&output).excerpt))
}

/// Returns the compiler's first error about one file, if any.
fn first_error(command: &CompileCommand, tree: &str) -> Result<Option<String>> {
    let mut words = compile_commands::syntax_only(&command.command).into_iter().flatten();
    let Some(compiler) = words.next() else {
        return Err(Error::environment(format!("CMake's command for {} cannot be read", command.file)));
    };
    let folder = Path::new(&command.directory);
    let finished = Run::new(compiler).args(words).current_folder(folder).finish()?;
    if finished.status.success() {
        return Ok(None);
    }
    if finished.status.code().is_none() || disk::is_full(folder) {
        return Err(
            Error::environment("the compiler was killed, or the disk is full").detail(finished.stderr)
        );
    }
    let file = command.file.replace(&format!("{tree}/"), "");
    let excerpt = ninja::first_error(&finished.stderr).excerpt.replace(&format!("{tree}/"), "");
    Ok(Some(format!("{file}\n{excerpt}")))
}
