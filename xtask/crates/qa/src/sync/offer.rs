//! The move as a pull request: a commit on the branch `pin-sync/UPSTREAM`, created or recreated.

use espalier_core::config::pins::short_name;
use espalier_core::context::Context;
use espalier_core::error::Result;
use espalier_core::plan::pending::Pending;
use espalier_core::sys::git::command;
use espalier_core::sys::github::{Client, WantedCommit, WantedPullRequest};
use espalier_core::sys::machine::disk;
use espalier_core::ui;

use crate::report::sync::SyncReport;

/// Opens or updates the one pull request of this pin; returns its number. The files are those that the move has just
/// written here.
pub fn offer(context: &Context, client: &Client, moved: &Pending, report: &SyncReport) -> Result<u64> {
    let checkout = command::checkout_of(context.layout.root())?;
    let files = moved.changes().map(|file| {
        let bytes = file.new.as_ref().map(|_| disk::read(&context.layout.root().join(&file.path)));
        Ok((file.path.clone(), bytes.transpose()?))
    });
    let files: Vec<(String, Option<Vec<u8>>)> = files.collect::<Result<_>>()?;
    let branch = format!("pin-sync/{}", report.upstream);
    let (old, new) = (short_name(&report.old.name), short_name(&report.new.name));
    let title = format!("Move {} from {old} to {new}", report.upstream);
    let commit = WantedCommit { branch: &branch, parent: &checkout.commit, message: &title, files: &files };
    client.keep_commit(&commit)?;
    let body = ui::named(&report.markdown());
    let pull = WantedPullRequest { head: &branch, base: &checkout.branch, title: &title, body: &body };
    client.keep_pull_request(&pull)
}
