//! `cargo xtask import`: a fork, or patches made elsewhere, as the series of a variant.
//!
//! Whatever it comes from becomes commits in a repository of its own ([`fork`]), then patches as `export`
//! writes them ([`patches`]), then a stage that is applied strictly before anything changes ([`write`]).

mod ground;
mod outcome;
mod write;

use std::path::PathBuf;

use self::ground::Onto;
use self::outcome::Imported;
use crate::context::{Context, Outcome};
use crate::error::{Error, Result};
use crate::series::ObjectId;
use crate::stack::import::left_out::LeftOut;
use crate::stack::import::line::Line;
use crate::stack::import::loose::Loose;
use crate::stack::import::{applying, fork, loose, patches};
use crate::sys::git::store::Store;
use crate::sys::project::run_lock::{self, Access};
use crate::sys::work_trees::fork::{ForkPlace, History};
use crate::sys::work_trees::fork_history::Fork;
use crate::sys::work_trees::import_repo::ImportRepo;

/// Options of `import`.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is imported.
    pub what: What,
    /// Variant name; the default one when none is given.
    pub variant: Option<String>,
    /// The upstream's name, for a variant that is new.
    pub upstream: Option<String>,
    /// Files and folders that stay as they are at the pin.
    pub leave_out: Vec<String>,
    /// Do everything but write.
    pub dry_run: bool,
}

/// What is imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Commits of a fork.
    Fork {
        /// Its repository, a bundle, or a URL.
        from: String,
        /// `BASE..TIP`: the commits that are in the second and not in the first.
        range: String,
        /// They were to come after the patches that the variant has, which only patches can.
        append: bool,
    },
    /// Patches made elsewhere.
    Patches {
        /// A folder, an mbox, a quilt series, a diff.
        path: PathBuf,
        /// Who made those that name nobody.
        author: Option<String>,
        /// How many parts are taken off the paths of diffs.
        strip: u32,
        /// They come after the patches that the variant has.
        append: bool,
    },
}

/// Imports, or says everything that stands in the way.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    if context.locked {
        return Err(Error::usage("`import` cannot be used with `--locked`: it changes `espalier.lock`")
            .hint("leave one of them out"));
    }
    if let What::Fork { from, range, append: true } = &options.what {
        let what = "`--append` takes patches, and `--from` a fork; nothing was written";
        let variant = options.variant.as_deref();
        return Err(ground::as_patches(Error::usage(what), from, range, variant));
    }
    let _lock = run_lock::take(&context.layout, &context.ui, Access::Change)?;
    let store = &Store::open(&context.layout.store())?;
    let repo = &ImportRepo::create(&context.layout.scratch(), store)?;
    let import = Import { context, options, store, repo };
    match &options.what {
        What::Fork { from, range, .. } => import.fork(from, range),
        What::Patches { path, author, strip, append } => {
            let loose = loose::read(repo, path, *strip)?;
            import.patches(loose, author.as_deref(), *append)
        }
    }
}

/// One import on its way.
#[derive(Clone, Copy)]
struct Import<'a> {
    context: &'a Context,
    options: &'a Options,
    /// The project's objects.
    store: &'a Store,
    /// Those of this import, and the project's.
    repo: &'a ImportRepo,
}

impl Import<'_> {
    fn patches(self, mut loose: Loose, author: Option<&str>, append: bool) -> Result<Outcome> {
        let mut onto = ground::for_patches(self, append)?;
        onto.notes.append(&mut loose.notes);
        let tree = self.repo.store.tree_of(onto.base)?;
        let mut left_out = LeftOut::new(&self.repo.store, tree, &self.options.leave_out)?;
        let line = applying::line_of(self.repo, loose, tree, &mut left_out, author, &self.context.ui)?;
        left_out.refuse_useless()?;
        self.finish(&onto, line, None)
    }

    fn fork(self, from: &str, range: &str) -> Result<Outcome> {
        let Import { context, repo, .. } = self;
        let (base, tip) = ends_of(range)?;
        let place = ForkPlace::look(context.layout.root(), from, context.offline, &context.ui)?;
        let (base, tip) = (place.find(base)?, place.find(tip)?);
        let ids = place.fetch(repo, &[&tip, &base], History::All, &context.ui)?;
        let fork = Fork::between(repo, ids[1], ids[0])?;
        let onto = ground::for_fork(self, &place, &fork, from)?;
        let pinned = fork.tree_of(fork.border)?;
        let mut left_out = LeftOut::new(&repo.store, pinned, &self.options.leave_out)?;
        let line = fork::straighten(&fork, &mut left_out, &context.ui)?;
        let goal = left_out.without(fork.tree_of(fork.tip)?)?;
        left_out.refuse_useless()?;
        self.finish(&onto, line, Some(goal))
    }

    /// From the line to the project. `goal` is the tree that it must end with.
    fn finish(self, onto: &Onto, mut line: Line, goal: Option<ObjectId>) -> Result<Outcome> {
        let Import { context, options, store, repo } = self;
        refuse_nothing(&line)?;
        let rules = context.lint_rules()?;
        let patches = patches::write_patches(repo, &mut line, &onto.ground(&rules))?;
        let variant = (&onto.variant, onto.folder.as_str());
        let stage = write::stage(context, store, &onto.pins_text, variant, (&line.commits, &patches))?;
        refuse_another_tree(&line, goal)?;
        if !options.dry_run {
            stage.commit(format!("the import into {}", onto.variant))?;
        }
        let (left_out, dry_run) = (options.leave_out.as_slice(), options.dry_run);
        let imported = Imported { onto, line: &line, patches: &patches, goal, left_out, dry_run };
        Ok(imported.outcome(&rules))
    }
}

fn refuse_nothing(line: &Line) -> Result<()> {
    if !line.commits.is_empty() {
        return Ok(());
    }
    let dropped = line.dropped.iter().map(|dropped| format!("{}: {}", dropped.origin, dropped.why));
    Err(Error::no("there is nothing to import").detail(dropped.collect::<Vec<_>>().join("\n")))
}

fn refuse_another_tree(line: &Line, goal: Option<ObjectId>) -> Result<()> {
    let tree = line.commits.last().map(|commit| commit.tree);
    match goal.zip(tree).filter(|(goal, tree)| goal != tree) {
        None => Ok(()),
        Some((goal, tree)) => {
            Err(Error::surroundings("the patches do not produce the fork's tree; nothing was written")
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
