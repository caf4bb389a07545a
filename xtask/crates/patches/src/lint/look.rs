//! Collects every finding, patch by patch, then for each variant's stack as a whole.

use std::collections::{BTreeMap, BTreeSet};

use espalier_core::config::attributes::{ATTRIBUTES_FILE, check_out_again};
use espalier_core::config::overlay::OverlayFile;
use espalier_core::config::pins::{Pins, Variant};
use espalier_core::context::Context;
use espalier_core::error::Result;
use espalier_core::next_command::quoted;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::inputs::{PatchFile, SeriesFiles, look_into, read_folder, read_overlays};
use espalier_series as series;
use espalier_series::{Finding, LintRule, LintRules, Patch, Refusal, RepoPath};

use super::reported::{Reported, plain, reported, rule_name};
use super::siblings;

/// A file, and its parsed form if it parses.
type Parsed = (PatchFile, Option<Patch>);

/// The patches of one folder, and their siblings.
#[derive(Default)]
struct Series {
    patches: Vec<Parsed>,
    siblings: Vec<Parsed>,
}

impl Series {
    fn all(&self) -> impl Iterator<Item = &PatchFile> {
        self.patches.iter().chain(&self.siblings).map(|(file, _)| file)
    }

    /// Returns the patches of a variant, with the siblings of its generation.
    fn readable<'a>(&'a self, generation: Option<&str>) -> impl Iterator<Item = (&'a str, &'a Patch)> {
        let in_generation = move |patch: &'a Parsed| {
            let path = generation.and_then(|generation| patch.0.sibling_in(generation));
            self.siblings.iter().find(|(file, _)| Some(&file.file) == path.as_ref()).unwrap_or(patch)
        };
        let chosen = self.patches.iter().map(in_generation);
        chosen.filter_map(|(file, patch)| Some((file.file.as_str(), patch.as_ref()?)))
    }
}

/// The contents of all series' folders, and the findings.
pub struct Seen {
    /// The patches.
    pub patches: Vec<String>,
    /// Files that are not patches; they are left alone.
    pub others: Vec<String>,
    /// Every finding once, even for a patch that is in several stacks.
    pub findings: Vec<Reported>,
}

/// Lints the series of every variant.
pub fn look(context: &Context, pins: &Pins) -> Result<Seen> {
    let rules = context.lint_rules()?;
    let mut found = BTreeSet::new();
    let mut folders = BTreeMap::new();
    let mut others = Vec::new();
    // On a generation, a variant has the patches of another one.
    for variant in pins.variants.values().filter(|variant| variant.like.is_none()) {
        let Some(folder) = variant.patches.as_deref() else { continue };
        if !folders.contains_key(folder) {
            let series = read(context, (pins, variant, folder), &rules, &mut found)?;
            folders.insert(folder, series);
            let found = look_into(&context.layout, folder)?;
            if found.missing {
                context.ui.status("Noting", format!("`{folder}` is not there: an empty series"));
            }
            others.extend(found.others.into_iter().map(|name| plain(&format!("{folder}/{name}"))));
        }
    }
    found.extend(converted(context, pins, folders.values())?);
    for variant in pins.variants.values() {
        look_at_stack(context, &pins.stack(variant), &folders, &mut found)?;
        found.extend(siblings::not_needed(context, pins, variant)?);
    }
    found.extend(siblings::behind(context, pins));
    let files = folders.values().flat_map(Series::all).map(|file| file.file.clone());
    Ok(Seen { patches: files.collect(), others, findings: found.into_iter().collect() })
}

fn read(
    context: &Context,
    (pins, variant, folder): (&Pins, &Variant, &str),
    rules: &LintRules,
    found: &mut BTreeSet<Reported>,
) -> Result<Series> {
    let files = read_folder(&context.layout, folder)?;
    let names: Vec<&str> = files.iter().map(PatchFile::name).collect();
    let findings = series::series_order(&names).err().unwrap_or_default();
    let path = |finding: &Finding| format!("{folder}/{}", finding.patch);
    found.extend(findings.into_iter().map(|finding| reported(&path(&finding), finding)));
    found.extend(files.iter().filter_map(|file| siblings::of_no_generation(pins, variant, file)));
    let mut parsed = |file: PatchFile| (parse(&file, (variant, folder), rules, found), file);
    let SeriesFiles { patches, siblings } = SeriesFiles::of(files);
    let [patches, siblings] = [patches, siblings].map(|files| {
        files.into_iter().map(&mut parsed).map(|(patch, file)| (file, patch)).collect::<Vec<Parsed>>()
    });
    Ok(Series { patches, siblings })
}

/// Parses one file, and adds its findings; `None` if it is not a patch.
fn parse(
    file: &PatchFile,
    (variant, folder): (&Variant, &str),
    rules: &LintRules,
    found: &mut BTreeSet<Reported>,
) -> Option<Patch> {
    match file.try_parse() {
        Ok(patch) => {
            let findings = series::lint_patch(&patch, &file.bytes, rules);
            let findings = findings.into_iter().map(|finding| with_bulk_hint(finding, &variant.name));
            found.extend(findings.map(|finding| reported(&file.file, finding)));
            Some(patch)
        }
        // Reported as one finding for all of them, with a different fix: see `converted`.
        Err(error) if error.refusal == Refusal::PatchFileHasCarriageReturns => None,
        Err(error) => {
            found.insert(unreadable(&file.file, &error, (&variant.name, folder)));
            None
        }
    }
}

/// After an import every patch has this finding, so the hint names the command that fixes all at once.
fn with_bulk_hint(finding: Finding, variant: &str) -> Finding {
    // `trailers` sets those of patches only.
    let is_sibling = series::series_entry(&finding.patch).is_some_and(|entry| entry.generation.is_some());
    if finding.rule != LintRule::TrailerPlaceholder || is_sibling {
        return finding;
    }
    let hint = format!("{}; in many patches at once: cargo xtask trailers {variant} --help", finding.hint);
    Finding { hint, ..finding }
}

fn unreadable(file: &str, error: &series::ParseError, (variant, folder): (&str, &str)) -> Reported {
    let [folder, before] = [folder.to_string(), format!("{folder}.before")].map(|path| quoted(&path));
    let message = format!("{}: found {}, expected {}", error.refusal.describe(), error.found, error.expected);
    Reported {
        file: plain(file),
        line: error.line,
        message: plain(&message),
        rule: rule_name(LintRule::NotAPatch),
        hint: format!(
            "re-import the folder: mv {folder} {before} && mkdir {folder} && cargo xtask import {before} \
             --variant {variant}"
        ),
    }
}

/// Builds one finding for all patches whose line endings git converted at checkout. They are correct as committed;
/// importing them again would rewrite every one.
fn converted<'a>(
    context: &Context,
    pins: &Pins,
    all: impl Iterator<Item = &'a Series>,
) -> Result<Option<Reported>> {
    let files: Vec<&PatchFile> = all.flat_map(Series::all).collect();
    let is_converted = |file: &&&PatchFile| {
        let error = file.try_parse().err();
        error.is_some_and(|error| error.refusal == Refusal::PatchFileHasCarriageReturns)
    };
    let converted: Vec<&&PatchFile> = files.iter().filter(is_converted).collect();
    let Some(first) = converted.first() else { return Ok(None) };
    let attributes = disk::read_if_there(&context.layout.root().join(ATTRIBUTES_FILE))?.unwrap_or_default();
    let commands = check_out_again(&espalier_series::lossy(&attributes), pins);
    Ok(Some(Reported {
        file: plain(&first.file),
        line: 1,
        message: format!(
            "{} of {} patches have CRLF line ends; git converts them at checkout (core.autocrlf) unless \
             `{ATTRIBUTES_FILE}` forbids it",
            converted.len(),
            files.len()
        ),
        rule: rule_name(LintRule::LineEnds),
        hint: format!("commit your own edits, then check the files out again: {commands}"),
    }))
}

fn look_at_stack(
    context: &Context,
    stack: &[&Variant],
    folders: &BTreeMap<&str, Series>,
    found: &mut BTreeSet<Reported>,
) -> Result<()> {
    let overlays = read_overlays(&context.layout, stack)?;
    let own = stack.iter().filter_map(|variant| folders.get(variant.patches.as_deref()?));
    let variant = stack.last().filter(|variant| variant.like.is_some());
    let generation = variant.map(|variant| variant.pin.as_str());
    let mut subjects: BTreeMap<&str, &str> = BTreeMap::new();
    for (file, patch) in own.flat_map(|series| series.readable(generation)) {
        let findings = series::lint_owners(patch, |path| owner_of(path, &overlays));
        found.extend(findings.into_iter().map(|finding| reported(file, finding)));
        if let Some(first) = subjects.insert(&patch.subject, file) {
            found.insert(reported(file, series::same_subject(patch, first)));
        }
    }
    Ok(())
}

/// Returns the overlay that owns `path`, ignoring case: some file systems cannot distinguish such paths.
fn owner_of(path: &RepoPath, overlays: &[OverlayFile]) -> Option<String> {
    let is_it = |file: &&OverlayFile| file.path.as_bytes().eq_ignore_ascii_case(path.as_bytes());
    overlays.iter().find(is_it).map(|file| format!("brought by the overlay file {}", file.from))
}
