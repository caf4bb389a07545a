//! The move as a pull request: a commit on the branch `pin-sync/UPSTREAM`, created or recreated.

use std::collections::{BTreeMap, BTreeSet};

use espalier_core::config::pins::{Pins, short_name};
use espalier_core::config::snippet::SourceText;
use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::next_command::next_command;
use espalier_core::plan::issues::BODY_LIMIT;
use espalier_core::plan::pending::Pending;
use espalier_core::sys::git::at_commit::{changed_since, commit_of, files_at, untracked_in};
use espalier_core::sys::git::command;
use espalier_core::sys::github::{Client, WantedCommit, WantedPullRequest};
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::inputs::read_folder;
use espalier_core::ui;

use crate::report::sync::SyncReport;

/// Maximum number of files that an error names.
const FILES_SHOWN: usize = 10;

/// The change that a pull request proposes.
pub struct Change {
    /// Full id of the commit that it starts from.
    parent: String,
    /// The branch that it goes into.
    base: String,
    /// Every file that differs, by its path, with its bytes; `None` for one that is deleted.
    files: Vec<(String, Option<Vec<u8>>)>,
}

/// Returns the change that `moved` has just made to the commit that is checked out.
pub fn written(context: &Context, moved: &Pending) -> Result<Change> {
    let checkout = command::checkout_of(context.layout.root())?;
    let files = moved.changes().map(|file| {
        let bytes = file.new.as_ref().map(|_| disk::read(&context.layout.root().join(&file.path)));
        Ok((file.path.clone(), bytes.transpose()?))
    });
    Ok(Change { parent: checkout.commit, base: checkout.branch, files: files.collect::<Result<_>>()? })
}

/// Returns the change from the commit `since` to the files on disk of a move whose report is `page`. It starts from
/// that commit: the ones since then may be on this machine only.
pub fn since(context: &Context, since: &str, page: &str) -> Result<Change> {
    let root = context.layout.root();
    let parent = commit_of(root, since)?;
    let scope = Scope::of(context, &parent, page)?;
    let mut paths: BTreeSet<String> = scope.before.keys().cloned().chain(scope.files.clone()).collect();
    for folder in &scope.folders {
        paths.extend(read_folder(&context.layout, folder)?.into_iter().map(|patch| patch.file));
    }
    let mut files = Vec::new();
    for path in paths {
        let now = disk::read_if_there(&root.join(&path))?;
        if now.as_ref() != scope.before.get(&path) {
            files.push((path, now));
        }
    }
    Ok(Change { parent, base: command::checkout_of(root)?.branch, files })
}

/// Refuses a pull request that would lack a part of what is checked: files beside those of the move differ from the
/// commit `since`.
///
/// # Errors
///
/// There is such a file.
pub fn refuse_more_than_move(context: &Context, since: &str, page: &str) -> Result<()> {
    let root = context.layout.root();
    let parent = commit_of(root, since)?;
    let scope = Scope::of(context, &parent, page)?;
    let pins = context.pins()?;
    let overlays: BTreeSet<&str> =
        pins.variants.values().flat_map(|variant| &variant.overlays).map(String::as_str).collect();
    let overlays: Vec<&str> =
        overlays.into_iter().filter(|folder| disk::exists(&root.join(folder))).collect();
    let mut beside = changed_since(root, &parent)?;
    beside.extend(untracked_in(root, &overlays)?);
    beside.retain(|path| !scope.has(path));
    if beside.is_empty() {
        return Ok(());
    }
    let what =
        format!("other files than those of the move differ from {since}: the pull request would lack them");
    let more = match beside.len().saturating_sub(FILES_SHOWN) {
        0 => String::new(),
        more => format!("and {more} more"),
    };
    let shown: Vec<String> = beside.into_iter().take(FILES_SHOWN).collect();
    let again = next_command("sync", &[("--since", Some("COMMIT"))]);
    Err(Error::usage(what)
        .detail(shown.join("\n"))
        .detail(more)
        .hint(format!("commit them without the move, push that commit, then: {again} --github"))
        .hint("or commit and push all of it, and open the pull request by hand"))
}

/// The files of a move.
struct Scope {
    /// `pins.toml`, the lock, the report and the reasons beside it.
    files: [String; 4],
    /// The folders of series, before the move and after it.
    folders: BTreeSet<String>,
    /// Those of the files that the commit has, by path.
    before: BTreeMap<String, Vec<u8>>,
}

impl Scope {
    fn of(context: &Context, commit: &str, page: &str) -> Result<Scope> {
        let root = context.layout.root();
        let reasons =
            page.strip_suffix(".md").map_or_else(|| page.to_string(), |page| format!("{page}.toml"));
        let files = ["pins.toml".to_string(), "espalier.lock".to_string(), page.to_string(), reasons];
        let text = files_at(root, commit, &["pins.toml"])?.remove("pins.toml").unwrap_or_default();
        let text = espalier_series::lossy(&text).into_owned();
        let old = Pins::parse(SourceText { name: "pins.toml", text: &text })?;
        let now = context.pins()?;
        let folders = now.series_folders().chain(old.series_folders()).map(str::to_string).collect();
        let mut scope = Scope { files, folders, before: BTreeMap::new() };
        let paths: Vec<&str> = scope.files.iter().chain(&scope.folders).map(String::as_str).collect();
        scope.before = files_at(root, commit, &paths)?;
        Ok(scope)
    }

    fn has(&self, path: &str) -> bool {
        let is_below =
            |folder: &String| path.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'));
        self.files.iter().any(|file| file == path) || self.folders.iter().any(is_below)
    }
}

/// Opens or updates the one pull request of this pin; returns its number. `page` is the path of the report.
pub fn offer(client: &Client, change: &Change, (report, page): (&SyncReport, &str)) -> Result<u64> {
    let (old, new) = (short_name(&report.old.name), short_name(&report.new.name));
    let upstream = &report.upstream;
    let (branch, title) = match &report.generation {
        None => (format!("pin-sync/{upstream}"), format!("Move {upstream} from {old} to {new}")),
        Some(generation) => (
            format!("pin-sync/{upstream}-{}", generation.name),
            format!("Use the patches of {upstream} {old} on {new}"),
        ),
    };
    let commit =
        WantedCommit { branch: &branch, parent: &change.parent, message: &title, files: &change.files };
    client.keep_commit(&commit)?;
    let body = ui::named(&report.excerpt(BODY_LIMIT, page));
    let pull = WantedPullRequest { head: &branch, base: &change.base, title: &title, body: &body };
    client.keep_pull_request(&pull)
}
