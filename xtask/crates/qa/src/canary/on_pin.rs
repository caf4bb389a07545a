//! Everything on the pin, judged on the tip: each patch and each overlay file once, with the variant that has it.

use std::collections::HashSet;

use espalier_core::config::overlay::Clash;
use espalier_core::config::paths::file_name;
use espalier_patches::report::status::{PatchStatus, StatusReport};
use espalier_patches::stack::Stack;

/// One series on the pin, judged on the tip.
pub struct JudgedSeries {
    /// The series.
    pub stack: Stack,
    /// Its report, with those of the series that it extends.
    pub report: StatusReport,
}

/// Overlay files of one variant that are in the way on the tip.
pub struct VariantClashes {
    /// The variant.
    pub variant: String,
    /// The files that no variant before it has.
    pub clashes: Vec<Clash>,
}

/// Every series and every overlay on the pin. It is the same whichever variant the run names, so that each break has
/// one issue.
pub struct OnPin {
    series: Vec<JudgedSeries>,
    overlays: Vec<VariantClashes>,
    folders: Vec<String>,
}

impl OnPin {
    /// Collects the results. `overlays` has every variant on the pin, what a variant extends before it; `folders` are
    /// those of their patches.
    pub fn new(mut series: Vec<JudgedSeries>, overlays: Vec<VariantClashes>, folders: Vec<String>) -> OnPin {
        // A series has more patches than one that it extends.
        series.sort_by_key(|series| (series.report.patches.len(), series.report.variant.clone()));
        let mut known: Vec<Clash> = Vec::new();
        let overlays = overlays.into_iter().map(|mut overlays| {
            overlays.clashes.retain(|clash| !known.contains(clash));
            known.extend(overlays.clashes.iter().cloned());
            overlays
        });
        OnPin { overlays: overlays.collect(), series, folders }
    }

    /// Returns every patch once, with the series that it belongs to.
    pub fn patches(&self) -> Vec<(&JudgedSeries, &PatchStatus)> {
        let mut known = HashSet::new();
        let all = self
            .series
            .iter()
            .flat_map(|series| series.report.patches.iter().map(move |patch| (series, patch)));
        all.filter(|(_, patch)| known.insert(patch.file.as_str())).collect()
    }

    /// Returns every series with patches of its own that have conflicts, and their files.
    pub fn in_conflict(&self) -> Vec<(&Stack, Vec<&str>)> {
        let mut found: Vec<(&Stack, Vec<&str>)> = Vec::new();
        for (series, patch) in self.patches().into_iter().filter(|(_, patch)| !patch.conflicts.is_empty()) {
            let variant = &series.stack.variant.name;
            match found.last_mut().filter(|(stack, _)| stack.variant.name == *variant) {
                Some((_, files)) => files.push(patch.file.as_str()),
                None => found.push((&series.stack, vec![patch.file.as_str()])),
            }
        }
        found
    }

    /// Returns the patches of every series that wait for `patch`.
    pub fn waiting_for(&self, patch: &PatchStatus) -> Vec<&str> {
        let mut waiting = Vec::new();
        let has_it =
            |series: &&JudgedSeries| series.report.patches.iter().any(|other| other.file == patch.file);
        for other in self.series.iter().filter(has_it).flat_map(|series| &series.report.patches) {
            let mut blockers = other.blocked_by.iter().map(|blocker| file_name(blocker));
            if blockers.any(|blocker| blocker == file_name(&patch.file))
                && !waiting.contains(&other.file.as_str())
            {
                waiting.push(other.file.as_str());
            }
        }
        waiting
    }

    /// Returns the variants with overlay files in the way, whose patches all apply.
    pub fn held_by_overlays(&self) -> impl Iterator<Item = &VariantClashes> {
        self.overlays.iter().filter(|of| !of.clashes.is_empty() && self.applies(&of.variant))
    }

    /// Whether `variant` is on the pin and has no overlay file in the way.
    pub fn has_clear_overlays(&self, variant: &str) -> bool {
        self.overlays.iter().any(|of| of.variant == variant && of.clashes.is_empty())
    }

    /// Whether `file` is in a folder of patches of a variant on the pin.
    pub fn has_folder_of(&self, file: &str) -> bool {
        let is_in =
            |folder: &String| file.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'));
        self.folders.iter().any(is_in)
    }

    /// Whether all patches of `variant` apply; so they do if it has none.
    fn applies(&self, variant: &str) -> bool {
        let of_variant = self.series.iter().filter(|series| series.report.variant == variant);
        of_variant.flat_map(|series| &series.report.patches).all(|patch| patch.class.applies())
    }
}
