//! The canary's issues on GitHub: the wanted ones, from the report, and the changes made, for the report.

use espalier_core::config::pins::short_name;
use espalier_core::error::Result;
use espalier_core::next_command::next_command;
use espalier_core::plan::issues::{self, Action, BODY_LIMIT, Known, LABEL, Subject, Wanted};
use espalier_core::sys::github::Client;
use espalier_core::ui;
use espalier_patches::report::conflict::ConflictPackage;
use espalier_patches::report::status::{PatchStatus, StatusReport};
use espalier_patches::report::status_text;
use espalier_series::PatchClass;
use serde_json::{Value, json};

use super::{Context, Options};
use crate::report::canary::{CanaryReport, Level, LevelVerdict, indented};

/// Maximum length of the description of a conflict in an issue, in characters.
const CONFLICT_LIMIT: usize = 30_000;

/// The results of a run.
#[derive(Clone, Copy)]
pub struct Found<'r> {
    /// The report.
    pub report: &'r CanaryReport,
    /// Descriptions of the patches that have conflicts on the tip.
    pub conflicts: &'r [ConflictPackage],
}

/// Opens, updates and closes issues. `folders` are the folders of the variant's series.
pub fn keep(
    context: &Context,
    client: &Client,
    found: Found<'_>,
    options: &Options,
    folders: &[String],
) -> Result<Vec<Value>> {
    let report = found.report;
    let mut listed = client.issues(LABEL, "open")?;
    listed.extend(client.issues(LABEL, "closed")?);
    let actions = issues::decide(&wanted(found, options), &listed, |subject| known(report, folders, subject));
    actions.iter().map(|action| carry_out(context, client, report, action)).collect()
}

/// The comment is sent before the change that it explains: if a run fails in between, the issue is as it was, and the
/// next run sends both. In the other order nothing would be left to do, and an issue could be closed without a reason.
fn carry_out(context: &Context, client: &Client, report: &CanaryReport, action: &Action) -> Result<Value> {
    let (done, number) = match action {
        Action::Keep { number } => ("kept", *number),
        Action::Create { title, body } => ("created", client.create_issue(title, body, LABEL)?),
        Action::Update { number, title, body, reopen } => {
            let what = if *reopen { "It is back" } else { "What is wrong changed" };
            client.comment(*number, &format!("{what} at {}.", tip_words(report)))?;
            let fields = json!({ "title": title, "body": body, "state": "open" });
            client.edit_issue(*number, &fields)?;
            (if *reopen { "reopened" } else { "updated" }, *number)
        }
        Action::Close { number, why } => {
            client.comment(*number, why)?;
            client.edit_issue(*number, &json!({ "state": "closed", "state_reason": "completed" }))?;
            ("closed", *number)
        }
    };
    context.ui.status("Issue", format!("#{number} {done}"));
    Ok(json!({ "issue": number, "done": done }))
}

fn tip_words(report: &CanaryReport) -> String {
    let commit = report.tip.as_ref().map_or("the tip", |tip| tip.commit.as_str());
    format!("{} `{commit}`", report.upstream)
}

/// Returns one issue for each patch that an upstream change broke, and one for each level that fails although every
/// patch applies. A patch that is only blocked by another one is listed in that patch's issue.
fn wanted(Found { report, conflicts }: Found<'_>, options: &Options) -> Vec<Wanted> {
    let patches = report.status.iter().flat_map(|found| {
        let broken = found.patches.iter().filter(|patch| is_broken(patch));
        broken.map(|patch| {
            let conflict = conflicts.iter().find(|conflict| conflict.patch.file == patch.file);
            wanted_for_patch(report, options, (found, patch), conflict)
        })
    });
    let levels = [Level::Contract, Level::Build, Level::Gate];
    let levels = is_only_overlays(report).then_some(Level::Status).into_iter().chain(levels);
    let levels = levels.filter(|level| report.verdict(*level) == LevelVerdict::Failed);
    patches.chain(levels.map(|level| wanted_for_level(report, options, level))).collect()
}

/// Whether nothing but overlay files is in the way of the series.
fn is_only_overlays(report: &CanaryReport) -> bool {
    let is_it = |found: &StatusReport| {
        !found.overlays.is_empty() && found.patches.iter().all(|patch| patch.class.applies())
    };
    report.status.as_ref().is_some_and(is_it)
}

fn is_broken(patch: &PatchStatus) -> bool {
    !patch.class.applies() && patch.class != PatchClass::Blocked
}

/// Returns the commit that gave the patch its present class; otherwise the newest commit that changed its files;
/// otherwise, when no history is available, the tip itself.
fn culprit(report: &CanaryReport, found: &StatusReport, patch: &PatchStatus) -> String {
    let commit = found.cause_of(patch).or_else(|| found.commits_of(patch).last());
    commit
        .map(|commit| commit.id.clone())
        .or_else(|| Some(report.tip.as_ref()?.commit.clone()))
        .unwrap_or_default()
}

/// Returns the flags that make a reader's command look for the tip in the same place.
fn same_tip<'a>(report: &'a CanaryReport, options: &'a Options) -> [(&'static str, Option<&'a str>); 3] {
    let Options { tip, from, .. } = options;
    [("--variant", Some(&report.variant)), ("--tip", Some(tip)), ("--from", from.as_deref())]
}

fn wanted_for_patch(
    report: &CanaryReport,
    options: &Options,
    (found, patch): (&StatusReport, &PatchStatus),
    conflict: Option<&ConflictPackage>,
) -> Wanted {
    let culprit = culprit(report, found, patch);
    let name = file_name(&patch.file);
    let mut text = format!(
        "`{}` no longer applies to {}: **{}**.\n\n",
        patch.file,
        report.upstream,
        patch.class.describe()
    );
    // Indented, so that neither a patch nor a commit's subject can mention a user or close an issue.
    text += &indented(&status_text::details(found, patch), "    ");
    let waiting: Vec<&str> = found
        .patches
        .iter()
        .filter(|other| other.blocked_by.iter().any(|blocker| file_name(blocker) == name))
        .map(|other| other.file.as_str())
        .collect();
    if !waiting.is_empty() {
        text += &format!("\nWaiting for it: `{}`.\n", waiting.join("`, `"));
    }
    let look = ui::named_hint(&next_command("status", &same_tip(report, options)));
    text +=
        &format!("\nSee it here with `{look}`. This issue is closed when upstream's tip is good again.\n");
    text = ui::named(&text);
    // After the hints: it is content only.
    let length = text.chars().count();
    text += &conflict.map(|conflict| described(conflict, length)).unwrap_or_default();
    let title = format!("{name}: {} since upstream {}", patch.class.describe(), short_name(&culprit));
    Wanted { subject: Subject::Patch { file: patch.file.clone(), culprit }, title, text }
}

/// Returns the description of a conflict as data, for an issue that has `length` characters already. It does not name
/// the tip, so that a tip with the same conflict leaves the issue as it is.
fn described(conflict: &ConflictPackage, length: usize) -> String {
    // Below the limit by the marker in the first line, and by the indentation.
    let limit = CONFLICT_LIMIT.min((BODY_LIMIT * 9 / 10).saturating_sub(length));
    let fits = |indented: &String| indented.chars().count() <= limit;
    let excerpts = [limit, limit / 2, limit / 4].into_iter().filter_map(|limit| conflict.excerpt(limit));
    let indented = excerpts.map(|excerpt| indented(&excerpt, "    ")).find(fits);
    indented
        .map(|text| format!("\nThe conflict as data, in the format of `conflict.json`:\n\n{text}"))
        .unwrap_or_default()
}

fn wanted_for_level(report: &CanaryReport, options: &Options, level: Level) -> Wanted {
    let CanaryReport { variant, upstream, levels, .. } = report;
    let found = levels.iter().find(|found| found.level == level);
    let (says, details) = found.map_or(("", ""), |found| (found.says.as_str(), found.details.as_str()));
    let name = level.name();
    let look = ui::named_hint(&next_command(&format!("canary --until {name}"), &same_tip(report, options)));
    let text = format!(
        "Every patch of `{variant}` applies to {upstream}'s tip, and the level `{name}` does not pass.\n\n{}\n\
         See it here with `{look}`. This issue is closed when \
         upstream's tip is good again.\n",
        indented(&format!("{says}\n{details}"), "    ")
    );
    let subject = Subject::Level { level: name.to_string(), variant: variant.clone() };
    let title = format!("{variant}: {name} fails on {upstream}'s tip");
    Wanted { subject, title, text: ui::named(&text) }
}

/// Returns why an issue is resolved, if this run shows that its subject is not, or no longer, broken.
fn known(report: &CanaryReport, folders: &[String], subject: &Subject) -> Known {
    match subject {
        Subject::Patch { file, .. } => known_patch(report, folders, file),
        Subject::Level { level, variant } => {
            let found = report.levels.iter().find(|found| found.level.name() == level);
            let passed = found.is_some_and(|found| found.verdict == LevelVerdict::Passed);
            if passed && *variant == report.variant { good_again(report) } else { Known::Nothing }
        }
    }
}

fn known_patch(report: &CanaryReport, folders: &[String], file: &str) -> Known {
    let Some(found) = &report.status else { return Known::Nothing };
    let is_of_this_series =
        |folder: &String| file.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'));
    match found.patches.iter().find(|patch| patch.file == file) {
        Some(patch) if patch.class.applies() => good_again(report),
        Some(patch) if is_broken(patch) => Known::Over(format!(
            "It is {} now, since `{}`: that has an issue of its own.",
            patch.class.describe(),
            culprit(report, found, patch)
        )),
        Some(_) => Known::Nothing,
        None if folders.iter().any(is_of_this_series) => {
            Known::Over(format!("`{file}` is no longer in the series."))
        }
        None => Known::Nothing,
    }
}

fn good_again(report: &CanaryReport) -> Known {
    Known::Over(format!("Good again at {}.", tip_words(report)))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
