//! Arguments of the commands that compare a series with upstream and move it.

use std::path::PathBuf;

use clap::Args;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_patches::rebase::{self, Action, Choices, Onto, Upstream};

use super::values::absolute;

/// The end of a range of upstream commits that begins at the pin.
#[derive(Debug, Args)]
struct RangeEnd {
    /// Variant of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Tag, branch or commit id, also `v1.0~3`; default: upstream's default branch.
    #[arg(long, value_name = "REF")]
    tip: Option<String>,
    /// Repository, bundle or URL to fetch it from, instead of the pin's sources.
    #[arg(long, value_name = "PATH|URL")]
    from: Option<String>,
}

#[derive(Debug, Args)]
pub struct Status {
    /// Variant of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Tag, branch or commit id, also `v1.0~3`; default: the pin.
    #[arg(long, value_name = "REF")]
    tip: Option<String>,
    /// Repository, bundle or URL to fetch it from, instead of the pin's sources.
    #[arg(long, value_name = "PATH|URL", requires = "tip")]
    from: Option<String>,
    /// Print full details of every patch that is not exact; with `--json`, also the text of the patches.
    #[arg(long)]
    long: bool,
    /// Print Markdown.
    #[arg(long, conflicts_with_all = ["json", "long"])]
    markdown: bool,
    /// Also write a self-contained HTML page.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also write a picture of the series (SVG).
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

impl Status {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Status { variant, tip, from, long, markdown, html, svg } = self;
        let from = from.map(absolute);
        let options = espalier_patches::status::Options { variant, tip, from, long, markdown, html, svg };
        espalier_patches::status::run(context, &options)
    }
}

#[derive(Debug, Args)]
pub struct Bisect {
    #[command(flatten)]
    end: RangeEnd,
    /// One patch, by file name, path or number (the variant's own before its parents'); default: all.
    #[arg(long, value_name = "NNNN")]
    patch: Option<String>,
    /// Print Markdown.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

impl Bisect {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Bisect { end: RangeEnd { variant, tip, from }, patch, markdown } = self;
        let from = from.map(absolute);
        espalier_patches::bisect::run(
            context,
            &espalier_patches::bisect::Options { variant, patch, tip, from, markdown },
        )
    }
}

#[derive(Debug, Args)]
pub struct Newest {
    #[command(flatten)]
    end: RangeEnd,
}

impl Newest {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Newest { end: RangeEnd { variant, tip, from } } = self;
        espalier_patches::newest::run(
            context,
            &espalier_patches::newest::Options { variant, tip, from: from.map(absolute) },
        )
    }
}

/// What happens to patches that upstream has.
#[derive(Debug, Args)]
pub struct Upstreamed {
    /// Drop patches that upstream has taken completely.
    #[arg(long)]
    drop_upstreamed: bool,
    /// Trim the parts of patches that upstream has taken.
    #[arg(long)]
    trim_upstreamed: bool,
    /// Stop at patches that upstream has taken in part, to edit them by hand as after a conflict.
    #[arg(long, conflicts_with = "trim_upstreamed")]
    edit_upstreamed: bool,
}

impl Upstreamed {
    /// Returns them as choices of a rebase.
    #[must_use]
    pub fn choices(&self) -> Choices {
        let Upstreamed { drop_upstreamed, trim_upstreamed, edit_upstreamed } = *self;
        Choices { drop_upstreamed, trim_upstreamed, edit_upstreamed, ..Choices::default() }
    }
}

#[derive(Debug, Args)]
pub struct Rebase {
    /// Target: tag, branch or commit id, also `v1.0~3`; default: the series that the variant extends, as it is now.
    #[arg(long, value_name = "REF")]
    to: Option<String>,
    /// Repository, bundle or URL to fetch it from, instead of the pin's sources.
    #[arg(long, value_name = "PATH|URL", requires = "to")]
    from: Option<String>,
    #[command(flatten)]
    step: RebaseStep,
    /// Variant of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    #[command(flatten)]
    upstreamed: Upstreamed,
    /// Fail if a patch would undo what upstream did since the old pin: lines that it added or deleted, or a
    /// binary file that it changed.
    #[arg(long, overrides_with = "no_strict")]
    strict: bool,
    /// Only warn, even if `--strict` was given before.
    #[arg(long)]
    no_strict: bool,
    /// Do not show how each patch changed.
    #[arg(long)]
    no_range_diff: bool,
    /// Do everything in memory, print what would happen, write nothing.
    #[arg(long, conflicts_with = "step")]
    dry_run: bool,
}

/// A rebase that waits.
#[derive(Debug, Args)]
#[group(id = "step", conflicts_with = "to", multiple = false)]
struct RebaseStep {
    /// Continue after conflicts were resolved and staged.
    #[arg(long = "continue")]
    go_on: bool,
    /// Drop the conflicting patch and continue.
    #[arg(long)]
    skip: bool,
    /// Abandon the rebase; nothing in the project has changed.
    #[arg(long)]
    abort: bool,
}

impl Rebase {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        rebase::run(context, &self.action())
    }

    fn action(self) -> Action {
        let choices = Choices {
            strict: (self.strict || self.no_strict).then_some(self.strict),
            no_range_diff: self.no_range_diff,
            ..self.upstreamed.choices()
        };
        let (variant, from) = (self.variant, self.from.map(absolute));
        match (self.step, self.to) {
            (RebaseStep { abort: true, .. }, _) => Action::Abort(variant),
            (RebaseStep { skip: true, .. }, _) => Action::Skip(variant, choices),
            (RebaseStep { go_on: true, .. }, _) => Action::Continue(variant, choices),
            (_, to) => {
                let onto = to.map_or(Onto::Parent, |to| Onto::Upstream(Upstream { to, from }));
                Action::Start(rebase::Options { variant, onto, dry_run: self.dry_run, choices })
            }
        }
    }
}
