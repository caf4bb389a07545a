//! The canary's issues on GitHub: the wanted ones, from the report, and the changes made, for the report.

use espalier_core::config::overlay::in_the_way;
use espalier_core::config::paths::file_name;
use espalier_core::config::pins::short_name;
use espalier_core::error::Result;
use espalier_core::next_command::next_command;
use espalier_core::plan::issues::{self, Action, BODY_LIMIT, DesiredIssue, LABEL, Subject, SubjectState};
use espalier_core::sys::github::Client;
use espalier_core::ui;
use espalier_patches::report::conflict::ConflictPackage;
use espalier_patches::report::status::{PatchStatus, StatusReport};
use espalier_patches::report::status_text;
use espalier_series::PatchClass;
use serde_json::{Value, json};

use super::on_pin::{JudgedSeries, OnPin, VariantClashes};
use super::{Context, Options};
use crate::report::canary::{CanaryReport, Level, LevelReport, LevelVerdict, indented};

/// Maximum length of the description of a conflict in an issue, in characters.
const CONFLICT_LIMIT: usize = 30_000;

/// In the marker of an issue, where upstream's commits are not available. Not the tip: the same break would have
/// another issue on each.
const NO_CULPRIT: &str = "unknown";

/// The results of a run.
#[derive(Clone, Copy)]
pub struct CanaryResults<'r> {
    /// The report.
    pub report: &'r CanaryReport,
    /// Everything on the pin; `None` if the level `status` gave no result.
    pub on_pin: Option<&'r OnPin>,
    /// Descriptions of the patches that have conflicts on the tip.
    pub conflicts: &'r [ConflictPackage],
}

/// Opens, updates and closes issues.
pub fn keep(
    context: &Context,
    client: &Client,
    found: CanaryResults<'_>,
    options: &Options,
) -> Result<Vec<Value>> {
    let mut listed = client.issues(LABEL, "open")?;
    listed.extend(client.issues(LABEL, "closed")?);
    let actions = issues::decide(&wanted(found, options), &listed, |subject| known(found, subject));
    actions.iter().map(|action| carry_out(context, client, found.report, action)).collect()
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

/// Returns one issue for each patch of any series on the pin that an upstream change broke, and one for each level that
/// fails although every patch applies. A patch that is only blocked by another one is listed in that patch's issue.
fn wanted(found: CanaryResults<'_>, options: &Options) -> Vec<DesiredIssue> {
    let CanaryResults { report, on_pin, conflicts } = found;
    let patches = on_pin.into_iter().flat_map(|on_pin| {
        let broken = on_pin.patches().into_iter().filter(|(_, patch)| is_broken(patch));
        broken.map(move |(series, patch)| {
            let conflict = conflicts.iter().find(|conflict| conflict.patch.file == patch.file);
            wanted_for_patch(options, (&series.report, patch), &on_pin.waiting_for(patch), conflict)
        })
    });
    let overlays = on_pin.into_iter().flat_map(|on_pin| {
        on_pin.held_by_overlays().map(move |clashes| wanted_for_overlays(&report.upstream, options, clashes))
    });
    let levels = [Level::Contract, Level::Build, Level::Gate].into_iter();
    let levels = levels.filter(|level| report.verdict(*level) == LevelVerdict::Failed);
    let levels = levels.map(|level| wanted_for_level(report, options, level));
    patches.chain(overlays).chain(levels).collect()
}

fn is_broken(patch: &PatchStatus) -> bool {
    !patch.class.applies() && patch.class != PatchClass::Blocked
}

/// Returns the commit that gave the patch its present class, if upstream's commits are available.
fn culprit<'f>(found: &'f StatusReport, patch: &PatchStatus) -> Option<&'f str> {
    found.cause_of(patch).map(|commit| commit.id.as_str())
}

/// Returns the flags that make a reader's command look for the tip in the same place.
fn same_tip<'a>(
    flag: &'static str,
    variant: &'a str,
    options: &'a Options,
) -> [(&'static str, Option<&'a str>); 3] {
    let Options { tip, from, .. } = options;
    [("--variant", Some(variant)), (flag, Some(tip)), ("--from", from.as_deref())]
}

fn wanted_for_patch(
    options: &Options,
    (found, patch): (&StatusReport, &PatchStatus),
    waiting: &[&str],
    conflict: Option<&ConflictPackage>,
) -> DesiredIssue {
    let StatusReport { variant, upstream, .. } = found;
    let class = patch.class.describe();
    let mut text = format!("`{}` no longer applies to {upstream}: **{class}**.\n\n", patch.file);
    // Indented, so that neither a patch nor a commit's subject can mention a user or close an issue.
    text += &indented(&status_text::details_of_break(found, patch), "    ");
    if !waiting.is_empty() {
        text += &format!("\nWaiting for it: `{}`.\n", waiting.join("`, `"));
    }
    let look = ui::named_hint(&next_command("status", &same_tip("--tip", variant, options)));
    text +=
        &format!("\nSee it here with `{look}`. This issue is closed when upstream's tip is good again.\n");
    text = ui::named(&text);
    if !patch.conflicts.is_empty() {
        // After the hints: it is content only.
        let length = text.chars().count();
        let described = conflict.ok_or(Missing::Failed).and_then(|conflict| described(conflict, length));
        text += &described.unwrap_or_else(|missing| instead(missing, variant, options));
    }
    let culprit = culprit(found, patch);
    let since = culprit
        .map_or("at upstream's tip".to_string(), |culprit| format!("since upstream {}", short_name(culprit)));
    let title = format!("{}: {class} {since}", file_name(&patch.file));
    let culprit = culprit.unwrap_or(NO_CULPRIT).to_string();
    DesiredIssue { subject: Subject::Patch { file: patch.file.clone(), culprit }, title, text }
}

/// The reason why an issue has no description of its conflict.
#[derive(Clone, Copy)]
enum Missing {
    /// It does not fit into an issue.
    TooLong,
    /// It could not be made.
    Failed,
}

/// Returns the description of a conflict as data, for an issue that has `length` characters already. It does not name
/// the tip, so that a tip with the same conflict leaves the issue as it is.
fn described(conflict: &ConflictPackage, length: usize) -> std::result::Result<String, Missing> {
    // Below the limit by the marker in the first line, and by the indentation.
    let limit = CONFLICT_LIMIT.min((BODY_LIMIT * 9 / 10).saturating_sub(length));
    let fits = |indented: &String| indented.chars().count() <= limit;
    let excerpts = [limit, limit / 2, limit / 4].into_iter().filter_map(|limit| conflict.excerpt(limit));
    let indented = excerpts.map(|excerpt| indented(&excerpt, "    ")).find(fits).ok_or(Missing::TooLong)?;
    Ok(format!("\nThe conflict as data, in the format of `conflict.json`:\n\n{indented}"))
}

/// Returns the sentence in place of a description, with the command that writes one.
fn instead(missing: Missing, variant: &str, options: &Options) -> String {
    let why = match missing {
        Missing::TooLong => "does not fit into an issue",
        Missing::Failed => "could not be made by this run",
    };
    let rebase = ui::named_hint(&next_command("rebase", &same_tip("--to", variant, options)));
    let abort = ui::named_hint(&next_command("rebase --abort", &[("--variant", Some(variant))]));
    format!(
        "\nThe description of the conflict {why}. `{rebase}` stops there and writes it; `{abort}` ends that rebase.\n"
    )
}

/// Returns the issue of a variant that only overlay files keep from upstream's tip.
fn wanted_for_overlays(upstream: &str, options: &Options, found: &VariantClashes) -> DesiredIssue {
    let VariantClashes { variant, clashes } = found;
    let lines: Vec<String> = clashes.iter().map(ToString::to_string).collect();
    let says = format!("{}\n{}", in_the_way(clashes), lines.join("\n"));
    wanted_for_failure((variant, upstream), options, Level::Status, &says)
}

fn wanted_for_level(report: &CanaryReport, options: &Options, level: Level) -> DesiredIssue {
    let found = report.levels.iter().find(|found| found.level == level);
    let says = found.map(|found| format!("{}\n{}", found.says, found.details)).unwrap_or_default();
    wanted_for_failure((&report.variant, &report.upstream), options, level, &says)
}

fn wanted_for_failure(
    (variant, upstream): (&str, &str),
    options: &Options,
    level: Level,
    says: &str,
) -> DesiredIssue {
    let name = level.name();
    let command = next_command(&format!("canary --until {name}"), &same_tip("--tip", variant, options));
    let look = ui::named_hint(&command);
    let text = format!(
        "Every patch of `{variant}` applies to {upstream}'s tip, and the level `{name}` does not pass.\n\n{}\n\
         See it here with `{look}`. This issue is closed when \
         upstream's tip is good again.\n",
        indented(says, "    ")
    );
    let subject = Subject::Level { level: name.to_string(), variant: variant.to_string() };
    let title = format!("{variant}: {name} fails on {upstream}'s tip");
    DesiredIssue { subject, title, text: ui::named(&text) }
}

/// Returns why an issue is resolved, if this run shows that its subject is not, or no longer, broken.
fn known(CanaryResults { report, on_pin, .. }: CanaryResults<'_>, subject: &Subject) -> SubjectState {
    match subject {
        Subject::Patch { file, .. } => {
            on_pin.map_or(SubjectState::Nothing, |on_pin| known_patch(report, on_pin, file))
        }
        Subject::Level { level, variant } => {
            let is_level = |found: &&LevelReport| found.level.name() == level;
            let passed = match level == Level::Status.name() {
                true => on_pin.is_some_and(|on_pin| on_pin.has_clear_overlays(variant)),
                false => {
                    let found = report.levels.iter().find(is_level);
                    *variant == report.variant
                        && found.is_some_and(|found| found.verdict == LevelVerdict::Passed)
                }
            };
            if passed { good_again(report) } else { SubjectState::Nothing }
        }
    }
}

fn known_patch(report: &CanaryReport, on_pin: &OnPin, file: &str) -> SubjectState {
    match on_pin.patches().into_iter().find(|(_, patch)| patch.file == file) {
        Some((_, patch)) if patch.class.applies() => good_again(report),
        Some((JudgedSeries { report: found, .. }, patch)) if is_broken(patch) => {
            let since = culprit(found, patch).map(|culprit| format!(", since `{culprit}`"));
            let (class, since) = (patch.class.describe(), since.unwrap_or_default());
            SubjectState::Over(format!("It is {class} now{since}: that has an issue of its own."))
        }
        Some(_) => SubjectState::Nothing,
        None if on_pin.has_folder_of(file) => {
            SubjectState::Over(format!("`{file}` is no longer in the series."))
        }
        None => SubjectState::Nothing,
    }
}

fn good_again(report: &CanaryReport) -> SubjectState {
    SubjectState::Over(format!("Good again at {}.", tip_words(report)))
}
