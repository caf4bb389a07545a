//! Every command and flag, those of `bench` in a room of their own. The commands themselves never see clap.

mod bench;
mod reference;
mod values;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use self::bench::Bench;
use self::values::{Part, Until, each};
use crate::cmd::rebase::{Action, Choices};
use crate::context::{Context, Outcome};
use crate::error::Result;
use crate::plan::layout::Layout;
use crate::plan::name::Name;
use crate::sys::{door, project};
use crate::ui::{Talk, Ui};
use crate::{cmd, fuzz, gate, stack};

/// What the exit codes mean, below `--help`.
const EXIT_CODES: &str = "\
Exit codes:
  0  yes
  1  the answer is no: drift, a failed gate
  2  usage
  3  the surroundings failed: network, disk, a missing tool
  4  something waits for a person";

/// Espalier: fetch the pinned upstream, apply the series strictly, build, prove.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
#[command(after_help = EXIT_CODES)]
pub struct Cli {
    /// Folder with `pins.toml`.
    #[arg(long, global = true, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Print one JSON value on stdout instead of text.
    #[arg(long, global = true)]
    json: bool,
    /// Print errors only.
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Do not use the network; say what is missing instead.
    #[arg(long, global = true)]
    offline: bool,
    /// Stop if `espalier.lock` is stale.
    #[arg(long, global = true)]
    locked: bool,
    #[command(subcommand)]
    command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
enum Command {
    /// Fetch the pinned objects into the store; the tree id decides, whatever the source.
    Fetch(Fetch),
    /// Apply a variant's series to its pin, exactly or not at all, and write the tree to disk.
    Apply(Apply),
    /// Regenerate `espalier.lock`, or check it.
    Lock(Lock),
    /// Check the form of every patch: numbers, name, subject, trailers, which files it touches.
    Lint(Lint),
    /// Compare every patch with the pin, or with any other upstream commit.
    Status(Status),
    /// Turn a variant's series into commits, to be edited with any git tool.
    Edit(Edit),
    /// Write the commits of the edit repository back as patches; untouched ones keep their bytes.
    Export(Export),
    /// Start a project: write a `pins.toml` with a pin and a variant.
    Init(Init),
    /// Import a fork, or existing patches, as the series of a variant.
    Import(Import),
    /// Fill in a trailer in many patches at once.
    Trailers(Trailers),
    /// Start a patch: `git commit` in the edit repository offers its message.
    New(New),
    /// Find the upstream commits at which patches stop being exact, or stop applying.
    Bisect(Bisect),
    /// Find the furthest upstream commit at which the whole series still applies.
    Newest(Newest),
    /// Move a variant's series to another upstream commit.
    Rebase(Rebase),
    /// Move pin, series, lock and report together, once everything builds and passes; else nothing.
    Sync(Sync),
    /// Try the series on upstream's tip: fetch, status, contract, build, gate.
    Canary(Canary),
    /// Build a variant: from the pin to a packaged server that has answered a prompt.
    Build(Build),
    /// Start the built server on the loopback, send it requests, stop it.
    Smoke(Which),
    /// Run the built server with your own arguments.
    Run(Run),
    /// Run everything that CI checks, step by step.
    Test(Test),
    /// Compare stock and a variant: logits, the servers' answers, how upstream's own tests end.
    Gate(Gate),
    /// Fuzz the paged server with random options and clients.
    Fuzz(Fuzz),
    /// Measure; needs a quiet machine.
    Bench(Bench),
    /// Regenerate docs/commands.md from the command line itself, or check it.
    Docs(Docs),
    /// Write the manual pages.
    Man(Man),
    /// Print the completions of a shell for `xtask`, a function that calls `cargo xtask`.
    Completions(Completions),
}

/// Which build.
#[derive(Debug, Args)]
struct Which {
    /// Variant of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Flavor of `ci/flavors.toml`.
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    flavor: Name,
}

#[derive(Debug, Args)]
struct Fetch {
    /// Local repository or bundle, tried before all other sources.
    #[arg(long, value_name = "PATH")]
    from: Option<String>,
    /// Print what would be done.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
struct Apply {
    /// Variant of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Only check whether everything applies; write no tree to disk.
    #[arg(long)]
    check: bool,
    /// Discard manual edits in the tree on disk.
    #[arg(long, conflicts_with = "check")]
    discard_edits: bool,
    /// Print what would be done.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
struct Lock {
    /// Write nothing; a stale lock is an error.
    #[arg(long)]
    check: bool,
}

#[derive(Debug, Args)]
struct Lint {
    /// Fix what can be fixed automatically: numbers, names, missing final newlines.
    #[arg(long)]
    fix: bool,
    /// Print what would be fixed.
    #[arg(long, requires = "fix")]
    dry_run: bool,
    /// Print every finding, however many there are.
    #[arg(long)]
    long: bool,
}

#[derive(Debug, Args)]
struct Status {
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
struct Bisect {
    #[command(flatten)]
    end: RangeEnd,
    /// One patch, by number, file name or path; default: all.
    #[arg(long, value_name = "NNNN")]
    patch: Option<String>,
    /// Print Markdown.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

#[derive(Debug, Args)]
struct Newest {
    #[command(flatten)]
    end: RangeEnd,
}

#[derive(Debug, Args)]
struct Edit {
    /// Variant of `pins.toml`.
    variant: Option<String>,
    /// Discard what is in the repository but in no patch.
    #[arg(long)]
    discard: bool,
    /// Print what would be done.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
struct Export {
    /// Variant of `pins.toml`.
    variant: Option<String>,
    /// Print what would be written.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
struct Init {
    /// Upstream: repository, bundle or URL.
    #[arg(long, value_name = "PATH|URL")]
    from: String,
    /// Tag, branch or full commit id to pin.
    #[arg(long, value_name = "REF")]
    at: String,
    /// Name of the first variant.
    #[arg(long, value_name = "NAME")]
    variant: String,
    /// Name of upstream, such as `llama.cpp`.
    #[arg(long, value_name = "NAME")]
    upstream: Option<String>,
    /// Print the file that would be written.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
struct Import {
    /// Folder of patches, mbox, quilt series or diff; with `--from`, a range of commits: `BASE..TIP`.
    #[arg(value_name = "PATCHES|BASE..TIP")]
    what: String,
    /// Fork to import: repository, bundle or URL.
    #[arg(long, value_name = "PATH|URL")]
    from: Option<String>,
    /// Variant of `pins.toml`, or name of a new one.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Name of a new variant's upstream, such as `llama.cpp`.
    #[arg(long, value_name = "NAME")]
    upstream: Option<String>,
    /// File or folder to leave as it is at the pin; repeatable.
    #[arg(long, value_name = "PATH")]
    leave_out: Vec<String>,
    /// Author of patches that name none, `Name <address>`; default: you, from git's configuration.
    #[arg(long, value_name = "AUTHOR", conflicts_with = "from")]
    author: Option<String>,
    /// Number of leading path components to strip from a diff that no `series` file lists.
    #[arg(long, short = 'p', value_name = "N", default_value_t = 1, conflicts_with = "from")]
    strip: u32,
    /// Append them to the variant's patches.
    #[arg(long, conflicts_with = "from")]
    append: bool,
    /// Do everything except write.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
struct Trailers {
    /// Variant of `pins.toml`.
    variant: Option<String>,
    /// Trailer to set, `'Key: value'`; repeatable.
    #[arg(long, value_name = "TRAILER", required = true)]
    set: Vec<String>,
    /// Only this patch, by number, file name or path; repeatable.
    #[arg(long = "patch", value_name = "NNNN")]
    patches: Vec<String>,
    /// Replace values that are already filled in.
    #[arg(long)]
    overwrite: bool,
    /// Print what would change.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
struct New {
    /// First line of its message, at most 72 characters.
    subject: String,
    /// Variant of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Print the message and write nothing.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
struct Rebase {
    /// Target: tag, branch or commit id, also `v1.0~3`.
    #[arg(long, value_name = "REF", required_unless_present = "step")]
    to: Option<String>,
    /// Repository, bundle or URL to fetch it from, instead of the pin's sources.
    #[arg(long, value_name = "PATH|URL", requires = "to")]
    from: Option<String>,
    #[command(flatten)]
    step: RebaseStep,
    /// Variant of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Drop patches that upstream has taken completely.
    #[arg(long)]
    drop_upstreamed: bool,
    /// Trim the parts of patches that upstream has taken.
    #[arg(long)]
    trim_upstreamed: bool,
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

#[derive(Debug, Args)]
struct Sync {
    /// Target: tag, branch or commit id, also `v1.0~3`.
    #[arg(long, value_name = "REF")]
    to: String,
    /// Repository, bundle or URL to fetch it from, instead of the pin's sources.
    #[arg(long, value_name = "PATH|URL")]
    from: Option<String>,
    /// Variant of `pins.toml` whose pin moves.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Drop patches that upstream has taken completely.
    #[arg(long)]
    drop_upstreamed: bool,
    /// Trim the parts of patches that upstream has taken.
    #[arg(long)]
    trim_upstreamed: bool,
    /// Open or update this pin's pull request.
    #[arg(long)]
    github: bool,
    /// Print what would become of each patch; check and write nothing.
    #[arg(long, conflicts_with = "github")]
    dry_run: bool,
}

#[derive(Debug, Args)]
struct Canary {
    /// Variant of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Tag, branch or commit id, also `v1.0~3`; default: upstream's default branch.
    #[arg(long, value_name = "REF", default_value = "HEAD")]
    tip: String,
    /// Repository, bundle or URL to fetch it from, instead of the pin's sources.
    #[arg(long, value_name = "PATH|URL")]
    from: Option<String>,
    /// Last level to run.
    #[arg(long, value_enum, default_value_t = Until::Gate)]
    until: Until,
    /// Write the report as Markdown.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Also write the page of `status --html`.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Maintain one issue for each broken patch, about upstream's default branch (so not with `--tip`).
    #[arg(long, conflicts_with = "tip")]
    github: bool,
    /// Print what would be done.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
struct Build {
    #[command(flatten)]
    which: Which,
    /// Number of parallel compile jobs.
    #[arg(long, short, value_name = "N")]
    jobs: Option<u32>,
    /// Skip the smoke test; the build then counts as unfinished.
    #[arg(long)]
    no_smoke: bool,
    /// Print what would be done.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
struct Run {
    #[command(flatten)]
    which: Which,
    /// Arguments of the server: `cargo xtask run -- -m model.gguf --port 8080`.
    #[arg(last = true)]
    arguments: Vec<String>,
}

#[derive(Debug, Args)]
struct Test {
    /// Run only this step; repeatable.
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// List the steps.
    #[arg(long)]
    list: bool,
}

#[derive(Debug, Args)]
struct Gate {
    /// Variant of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Compare only this part; repeatable.
    #[arg(long, value_enum, value_name = "PART")]
    only: Vec<Part>,
    /// Compare only this model, such as `qwen35`; with `--only logits` or `--only servers`; repeatable.
    #[arg(long = "model", value_name = "NAME")]
    models: Vec<String>,
    /// Run only this check of the servers, such as `answers`; with `--only servers`; repeatable.
    #[arg(long = "check", value_name = "NAME")]
    checks: Vec<String>,
    /// Check only this promise, by name or item; with `--only promises`; repeatable.
    #[arg(long = "promise", value_name = "NAME")]
    promises: Vec<String>,
    /// Check this server instead of the packaged one; with `--only promises`.
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Docs {
    /// Write nothing; a stale file is an error.
    #[arg(long, conflicts_with = "dry_run")]
    check: bool,
    /// Print what would be written.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
struct Man {
    /// Output folder; created if missing.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

#[derive(Debug, Args)]
struct Completions {
    /// Shell to generate for.
    #[arg(value_enum, value_name = "SHELL")]
    shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
struct Fuzz {
    #[command(subcommand)]
    what: FuzzWhat,
}

/// What can be fuzzed.
#[derive(Debug, Subcommand)]
enum FuzzWhat {
    /// Compare the paged server with the same one unpaged: random options, random clients, every answer judged.
    Servers(FuzzServers),
}

#[derive(Debug, Args)]
struct FuzzServers {
    /// Start no new round after N minutes.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
    /// Seed of the first round; each round after it adds 1.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Maximum number of rounds.
    #[arg(long, value_name = "N")]
    rounds: Option<u64>,
    /// `llama-server` to test; default: the packaged one.
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Seconds that a client waits in silence if no request is ahead of it.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    patience: u32,
}

impl From<FuzzServers> for fuzz::Options {
    fn from(FuzzServers { minutes, seed, rounds, program, patience }: FuzzServers) -> Self {
        Self { minutes, seed, rounds, program, patience }
    }
}

impl Cli {
    /// Whether data is wanted as JSON.
    pub fn wants_json(&self) -> bool {
        self.json
    }

    /// Runs the command that was asked for.
    pub fn run(self) -> Result<Outcome> {
        let mut context = self.context()?;
        // Lives as long as the command.
        let elsewhere = self
            .writes_nothing()
            .then(|| project::generated_elsewhere(&context.layout))
            .transpose()?
            .flatten();
        if let Some(folder) = &elsewhere {
            context.ui.status("Working", "in a folder that vanishes: nothing can be written in the project");
            context.layout = context.layout.generating_in(folder.path().join("espalier"));
        }
        self.dispatch(&context).map_err(|error| context.layout.show_in(error))
    }

    /// Whether the answer is all that is wanted: nothing of the project is written, and what is generated on the way
    /// may vanish.
    fn writes_nothing(&self) -> bool {
        matches!(
            self.command,
            Command::Status(_)
                | Command::Bisect(_)
                | Command::Newest(_)
                | Command::Lock(Lock { check: true })
                | Command::Apply(Apply { check: true, .. })
        )
    }

    fn dispatch(self, context: &Context) -> Result<Outcome> {
        match self.command {
            Command::Fetch(Fetch { from, dry_run }) => {
                cmd::fetch::run(context, &cmd::fetch::Options { from: from.map(absolute), dry_run })
            }
            Command::Status(Status { variant, tip, from, long, markdown, html, svg }) => {
                let from = from.map(absolute);
                cmd::status::run(
                    context,
                    &cmd::status::Options { variant, tip, from, long, markdown, html, svg },
                )
            }
            Command::Bisect(Bisect { end, patch, markdown }) => {
                let RangeEnd { variant, tip, from } = end;
                let from = from.map(absolute);
                cmd::bisect::run(context, &cmd::bisect::Options { variant, patch, tip, from, markdown })
            }
            Command::Newest(Newest { end: RangeEnd { variant, tip, from } }) => {
                let from = from.map(absolute);
                cmd::newest::run(context, &cmd::newest::Options { variant, tip, from })
            }
            Command::Rebase(rebase) => cmd::rebase::run(context, &rebase.action()),
            Command::Sync(Sync { to, from, variant, drop_upstreamed, trim_upstreamed, github, dry_run }) => {
                let choices = Choices { drop_upstreamed, trim_upstreamed, ..Choices::default() };
                let from = from.map(absolute);
                cmd::sync::run(context, &cmd::sync::Options { variant, to, from, dry_run, choices, github })
            }
            Command::Canary(Canary { variant, tip, from, until, report, html, github, dry_run }) => {
                let (from, until) = (from.map(absolute), until.into());
                let options =
                    cmd::canary::Options { variant, tip, from, until, report, html, github, dry_run };
                cmd::canary::run(context, &options)
            }
            Command::Apply(Apply { variant, check, discard_edits, dry_run }) => {
                stack::apply::run(context, &stack::apply::Options { variant, check, discard_edits, dry_run })
            }
            Command::Lock(Lock { check }) => stack::lock::run(context, &stack::lock::Options { check }),
            Command::Lint(Lint { fix, dry_run, long }) => {
                cmd::lint::run(context, &cmd::lint::Options { fix, dry_run, long })
            }
            Command::Edit(Edit { variant, discard, dry_run }) => {
                cmd::edit::run(context, &cmd::edit::Options { variant, discard, dry_run })
            }
            Command::Export(Export { variant, dry_run }) => {
                cmd::export::run(context, &cmd::export::Options { variant, dry_run })
            }
            Command::Init(Init { from, at, variant, upstream, dry_run }) => {
                let from = absolute(from);
                cmd::init::run(context, &cmd::init::Options { from, at, upstream, variant, dry_run })
            }
            Command::Import(import) => cmd::import::run(context, &import.options()),
            Command::Trailers(Trailers { variant, set, patches, overwrite, dry_run }) => cmd::trailers::run(
                context,
                &cmd::trailers::Options { variant, set, patches, overwrite, dry_run },
            ),
            Command::New(New { subject, variant, dry_run }) => {
                cmd::new::run(context, &cmd::new::Options { subject, variant, dry_run })
            }
            Command::Build(Build { which, jobs, no_smoke, dry_run }) => {
                let Which { variant, flavor } = which;
                let flavor = flavor.to_string();
                stack::build::run(
                    context,
                    &stack::build::Options { variant, flavor, dry_run, jobs, no_smoke },
                )
            }
            Command::Smoke(Which { variant, flavor }) => {
                stack::smoke::command(context, variant.as_deref(), flavor.to_string())
            }
            Command::Run(Run { which, arguments }) => {
                cmd::run::command(context, which.variant.as_deref(), which.flavor.to_string(), arguments)
            }
            Command::Test(Test { only, list }) => {
                let commands = reference::markdown();
                cmd::test::run(context, &cmd::test::Options { only, list, commands })
            }
            Command::Gate(Gate { variant, only, models, checks, promises, program }) => gate::run(
                context,
                &gate::Options { variant, only: each(only), models, checks, promises, program },
            ),
            Command::Fuzz(Fuzz { what: FuzzWhat::Servers(servers) }) => fuzz::run(context, &servers.into()),
            Command::Bench(bench) => crate::bench::run(context, &bench.into()),
            Command::Docs(Docs { check, dry_run }) => {
                let commands = reference::markdown();
                cmd::docs::run(context, &cmd::docs::Options { commands, check, dry_run })
            }
            Command::Man(Man { folder }) => {
                cmd::man::run(&cmd::man::Options { folder, pages: reference::pages() })
            }
            Command::Completions(Completions { shell }) => {
                Ok(cmd::completions::run(&reference::completions(shell)))
            }
        }
    }

    fn context(&self) -> Result<Context> {
        let root = project::project_root(self.root.as_deref())?;
        let talk = if self.quiet { Talk::Quiet } else { Talk::Normal };
        let layout = Layout::new(root).seen_from(&project::here()?);
        let ui = Ui::new(talk);
        let settled = door::settle(&layout, &ui).map_err(|error| layout.show_in(error))?;
        Ok(Context { layout, ui, offline: self.offline, locked: self.locked, settled })
    }
}

impl Import {
    fn options(self) -> cmd::import::Options {
        let Import { what, from, variant, upstream, leave_out, author, strip, append, dry_run } = self;
        let what = match from {
            Some(from) => cmd::import::What::Fork { from: absolute(from), range: what },
            None => cmd::import::What::Patches { path: absolute(what).into(), author, strip, append },
        };
        cmd::import::Options { what, variant, upstream, leave_out, dry_run }
    }
}

impl Rebase {
    fn action(self) -> Action {
        let choices = Choices {
            drop_upstreamed: self.drop_upstreamed,
            trim_upstreamed: self.trim_upstreamed,
            strict: (self.strict || self.no_strict).then_some(self.strict),
            no_range_diff: self.no_range_diff,
        };
        let (variant, from) = (self.variant, self.from.map(absolute));
        match (self.step, self.to) {
            (RebaseStep { abort: true, .. }, _) => Action::Abort(variant),
            (RebaseStep { skip: true, .. }, _) => Action::Skip(variant, choices),
            (RebaseStep { go_on: false, .. }, Some(to)) => {
                let dry_run = self.dry_run;
                Action::Start(cmd::rebase::Options { variant, to, from, dry_run, choices })
            }
            _ => Action::Continue(variant, choices),
        }
    }
}

/// A path that a person typed is relative to where the person is, not to the root; a URL stays as it is.
fn absolute(path: String) -> String {
    if path.contains("://") || path.starts_with("git@") {
        return path;
    }
    std::path::absolute(&path).map_or(path, |path| path.display().to_string())
}
