//! `cargo xtask import`: a fork, or patches made elsewhere, as the series of a variant.
//!
//! Every source is converted to commits in a separate repository ([`fork`]), then to patches in the form that `export`
//! writes ([`patches`]), then staged and applied strictly before anything changes (`write`).

pub mod applying;
mod base;
pub mod fork;
pub mod left_out;
pub mod line_ends;
pub mod loose;
mod lost;
pub mod new_pin;
mod outcome;
pub mod patches;
pub mod sequence;
pub mod strip_count;
mod write;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::Args;
use espalier_core::config::name::Name;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::git::store::Store;
use espalier_core::sys::machine::native_path::to_bytes;
use espalier_core::sys::project::root::{absolute, absolute_path};
use espalier_core::sys::project::run_lock::{self, Access};
use espalier_core::sys::work_trees::fork::{ForkPlace, History};
use espalier_core::sys::work_trees::fork_history::Fork;
use espalier_core::sys::work_trees::import_repo::ImportRepo;
use espalier_series::{ObjectId, printable};

use self::base::Onto;
use self::outcome::Imported;
use crate::import::left_out::LeftOut;
use crate::import::loose::Loose;
use crate::import::sequence::PatchSequence;

/// Options of `import`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Folder of patches, mbox, quilt series or diff; with `--from`, a range of commits: `BASE..TIP`.
    #[arg(value_name = "PATCHES|BASE..TIP")]
    pub what: String,
    /// Fork to import: repository, bundle or URL.
    #[arg(long, value_name = "PATH|URL", value_parser = absolute)]
    pub from: Option<String>,
    /// Variant of `pins.toml`, or name of a new one.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<Name>,
    /// Name of a new variant's upstream, such as `llama.cpp`.
    #[arg(long, value_name = "NAME")]
    pub upstream: Option<String>,
    /// File or folder to leave as it is at the pin; repeatable.
    #[arg(long, value_name = "PATH")]
    pub leave_out: Vec<OsString>,
    /// Author of patches that name none, `Name <address>`; default: you, from git's configuration.
    #[arg(long, value_name = "AUTHOR", conflicts_with = "from")]
    pub author: Option<String>,
    /// Leading path components to strip, as `patch -p`, unless a series file sets it; default: the format's, or
    /// detected.
    #[arg(long, short = 'p', value_name = "N", conflicts_with = "from")]
    pub strip: Option<u32>,
    /// Patch to leave out, as the report names it; repeatable.
    #[arg(long, value_name = "PATCH", conflicts_with = "from")]
    pub skip: Vec<String>,
    /// Append the imported patches to those of the variant.
    #[arg(long)]
    pub append: bool,
    /// Do everything except write.
    #[arg(long)]
    pub dry_run: bool,
}

/// Imports, or reports everything that prevents it.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    if context.locked {
        return Err(Error::usage("`import` cannot be used with `--locked`: it changes `espalier.lock`")
            .hint("run it without `--locked`"));
    }
    if let Options { from: Some(from), append: true, .. } = options {
        let what = "`--append` takes patches, and `--from` a fork; nothing was written";
        let variant = options.variant.as_deref();
        return Err(base::as_patches(Error::usage(what), from, &options.what, variant));
    }
    let _lock = run_lock::take(&context.layout, &context.ui, Access::Change)?;
    let store = &Store::open(&context.layout.store())?;
    let repo = &ImportRepo::create(&context.layout.scratch(), store)?;
    let import = Import { context, options, store, repo };
    match &options.from {
        Some(from) => import.fork(from, &options.what),
        None => {
            let Ok(path) = absolute_path(&options.what);
            let mut loose = loose::read(repo, &path, options.strip)?;
            loose.skip(&options.skip)?;
            import.patches(loose)
        }
    }
}

/// The state of one import.
#[derive(Clone, Copy)]
struct Import<'a> {
    context: &'a Context,
    options: &'a Options,
    /// The project's objects.
    store: &'a Store,
    /// The objects of this import, with access to the project's.
    repo: &'a ImportRepo,
}

impl Import<'_> {
    fn patches(self, mut loose: Loose) -> Result<Outcome> {
        let Options { author, append, .. } = self.options;
        let mut onto = base::for_patches(self, *append)?;
        onto.notes.append(&mut loose.notes);
        onto.changes.append(&mut loose.changes);
        let tree = self.repo.store.tree_of(onto.base)?;
        let mut left_out = LeftOut::new(&self.repo.store, tree, &self.options.leave_out)?;
        let sequence = applying::sequence_of(
            self.repo,
            loose,
            tree,
            &mut left_out,
            author.as_deref(),
            &self.context.ui,
        )?;
        left_out.refuse_useless()?;
        self.finish(&onto, sequence, None)
    }

    fn fork(self, from: &str, range: &str) -> Result<Outcome> {
        let Import { context, repo, .. } = self;
        let (base, tip) = ends_of(range)?;
        let place = ForkPlace::look(context.layout.root(), from, context.offline, &context.ui)?;
        let (base, tip) = (place.find(base)?, place.find(tip)?);
        let ids = place.fetch(repo, &[&tip, &base], History::All, &context.ui)?;
        let fork = Fork::between(repo, ids[1], ids[0])?;
        let onto = base::for_fork(self, &place, &fork, from)?;
        let pinned = fork.tree_of(fork.merge_base)?;
        let mut left_out = LeftOut::new(&repo.store, pinned, &self.options.leave_out)?;
        let sequence = fork::linearize(&fork, &mut left_out, &context.ui)?;
        let goal = left_out.without(fork.tree_of(fork.tip)?)?;
        left_out.refuse_useless()?;
        self.finish(&onto, sequence, Some(goal))
    }

    /// Writes the linear history into the project. `goal` is the tree that it must end with.
    fn finish(self, onto: &Onto, mut sequence: PatchSequence, goal: Option<ObjectId>) -> Result<Outcome> {
        let Import { context, options, store, repo } = self;
        refuse_nothing(&sequence)?;
        let rules = context.lint_rules()?;
        let patches = patches::write_patches(repo, &mut sequence, &onto.import_base(&rules))?;
        let variant = (&onto.variant, onto.folder.as_str());
        let stage = write::stage(context, store, &onto.pins_text, variant, (&sequence.commits, &patches))?;
        refuse_another_tree(&sequence, goal)?;
        if !options.dry_run {
            stage.commit(format!("the import into {}", onto.variant))?;
        }
        let left_out: Vec<String> = options.leave_out.iter().map(|path| shown(path)).collect();
        let (left_out, dry_run) = (left_out.as_slice(), options.dry_run);
        let imported = Imported { onto, sequence: &sequence, patches: &patches, goal, left_out, dry_run };
        Ok(imported.outcome(&rules))
    }
}

/// Returns a path for the report; bytes that are not UTF-8 are escaped.
fn shown(path: &OsStr) -> String {
    path.to_str().map_or_else(|| printable(&to_bytes(Path::new(path))), str::to_string)
}

fn refuse_nothing(sequence: &PatchSequence) -> Result<()> {
    if !sequence.commits.is_empty() {
        return Ok(());
    }
    let dropped = sequence.dropped.iter().map(|dropped| format!("{}: {}", dropped.origin, dropped.why));
    Err(Error::no("there is nothing to import")
        .detail(dropped.collect::<Vec<_>>().join("\n"))
        .hint("name a range that has commits, or other patches: cargo xtask import --help"))
}

fn refuse_another_tree(sequence: &PatchSequence, goal: Option<ObjectId>) -> Result<()> {
    let tree = sequence.commits.last().map(|commit| commit.tree);
    match goal.zip(tree).filter(|(goal, tree)| goal != tree) {
        None => Ok(()),
        Some((goal, tree)) => {
            Err(Error::environment("the patches do not produce the fork's tree; nothing was written")
                .detail(format!("fork    {goal}\npatches {tree}")))
        }
    }
}

/// `BASE..TIP`; `BASE..` ends at HEAD.
fn ends_of(range: &str) -> Result<(&str, &str)> {
    let ends = range.split_once("..").filter(|(base, tip)| !base.is_empty() && !tip.starts_with('.'));
    let (base, tip) = ends.ok_or_else(|| {
        Error::usage(format!("`{range}` is not a range of commits"))
            .hint("name upstream as your fork knows it, and your branch: --from REPO upstream/master..main")
    })?;
    Ok((base, if tip.is_empty() { "HEAD" } else { tip }))
}
