//! The report of an import.

use espalier_core::context::Outcome;
use espalier_series::ObjectId;
use espalier_series::{LintRules, PLACEHOLDER, printable};
use serde_json::json;

use super::base::Onto;
use crate::import::patches::{NewPatch, STATUS};
use crate::import::sequence::PatchSequence;

/// A finished import, or a dry run of one.
pub struct Imported<'a> {
    /// The variant and folder that it went to.
    pub onto: &'a Onto,
    /// The result of each commit.
    pub sequence: &'a PatchSequence,
    /// The patches.
    pub patches: &'a [NewPatch],
    /// The tree that the last patch had to produce, if the source defines one.
    pub goal: Option<ObjectId>,
    /// Paths that stay as they are at the pin.
    pub left_out: &'a [String],
    /// Whether nothing was written.
    pub dry_run: bool,
}

impl Imported<'_> {
    /// Builds the text and the JSON. `rules` tell which trailers are still to be filled in.
    pub fn outcome(&self, rules: &LintRules) -> Outcome {
        let Onto { variant, folder, pin, is_new, notes, changes, .. } = self.onto;
        let verb = if self.dry_run { "would be" } else { "are" };
        let count = self.patches.len();
        let mut lines = vec![format!("{folder}: {count} patches {verb} new, on {pin}")];
        for (patch, commit) in self.patches.iter().zip(&self.sequence.commits) {
            // The old name comes first because users look for it.
            lines.push(format!("  new      {} -> {}", commit.origin, patch.name));
            lines.extend(commit.notes.iter().map(|note| format!("           {note}")));
        }
        let dropped = &self.sequence.dropped;
        lines.extend(dropped.iter().map(|dropped| format!("  dropped  {}: {}", dropped.origin, dropped.why)));
        if !self.sequence.merges.is_empty() {
            lines.push(format!(
                "  merges   {}: the line of commits contains their changes",
                self.sequence.merges.len()
            ));
        }
        lines.extend(notes.iter().map(|note| format!("  note     {note}")));
        lines.extend(changes.iter().map(|change| format!("  missing  {change}")));
        let tree = self.sequence.commits.last().map(|commit| commit.tree.to_string()).unwrap_or_default();
        lines.push(format!("  tree     {tree}{}", self.whose_tree()));
        if !self.dry_run {
            if !changes.is_empty() {
                lines.push(format!("  next: cargo xtask edit {variant}    # {MAKE_THEM}"));
            }
            lines.extend(next_steps(variant, rules));
        }
        let json = json!({
            "variant": variant.as_str(),
            "folder": folder,
            "pin": pin,
            "new_variant": is_new,
            "patches": self.patches_json(),
            "dropped": dropped.iter().map(|it| json!({ "what": it.origin, "why": it.why })).collect::<Vec<_>>(),
            "merges": self.sequence.merges,
            "notes": notes,
            "missing": changes,
            "left_out": self.left_out,
            "tree": tree,
            "dry_run": self.dry_run,
        });
        Outcome::ok(lines.join("\n"), json)
    }

    fn whose_tree(&self) -> String {
        match (self.goal, self.left_out) {
            (None, _) => String::new(),
            (Some(_), []) => ", the fork's".to_string(),
            (Some(_), paths) => {
                let paths: Vec<String> = paths.iter().map(|path| printable(path.as_bytes())).collect();
                format!(", the fork's but for {}", paths.join(", "))
            }
        }
    }

    fn patches_json(&self) -> Vec<serde_json::Value> {
        let both = self.patches.iter().zip(&self.sequence.commits);
        both.map(|(patch, commit)| {
            json!({
                "file": format!("{}/{}", self.onto.folder, patch.name),
                "from": commit.origin,
                "tree": commit.tree.to_string(),
                "notes": commit.notes,
            })
        })
        .collect()
    }
}

/// The next step for changes that no patch has.
const MAKE_THEM: &str =
    "make there by hand what is missing, commit it, and export it: it is not part of the series yet";

fn next_steps(variant: &str, rules: &LintRules) -> Vec<String> {
    let mut steps = vec!["  next: cargo xtask lint    # what each patch still has to say".to_string()];
    if rules.required().contains(&STATUS) {
        let fill = format!("cargo xtask trailers {variant} --set '{STATUS}: Pending'");
        steps.push(format!("  next: {fill}    # for instance, where it still says {PLACEHOLDER}"));
    }
    steps.push(format!("  next: cargo xtask status --variant {variant}"));
    steps
}
