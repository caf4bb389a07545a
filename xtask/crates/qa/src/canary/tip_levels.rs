//! The implementation of the levels: upstream's tip, the series placed on it, a build of it, a gate.

use espalier_core::config::flavors::DEFAULT_FLAVOR;
use espalier_core::config::flavors::Flavors;
use espalier_core::config::name::Name;
use espalier_core::config::overlay::{Clash, in_the_way};
use espalier_core::config::pins::{Pin, Pins, Revision, Variant};
use espalier_core::error::{Error, Kind, Result};
use espalier_core::next_command::next_command;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::unverified::verification_of_pin;
use espalier_core::sys::upstream::tip::Tip;
use espalier_dist::build::{self, Build};
use espalier_patches::apply::{self, Applied};
use espalier_patches::overlays::{PinOverlays, UpstreamTree};
use espalier_patches::pinned_series::PinnedSeries;
use espalier_patches::rebase;
use espalier_patches::report::conflict::ConflictPackage;
use espalier_patches::report::status::{PatchStatus, ReportedTree, StatusReport, why_not_moved};
use espalier_patches::stack::Stack;
use espalier_patches::{newest, status};
use espalier_series::PatchClass;

use super::contract;
use super::on_pin::{JudgedSeries, OnPin, VariantClashes};
use super::walk::{Finding, Levels};
use super::{Context, Options};
use crate::gate;
use crate::report::canary::{CanaryReport, Level, LevelReport, TipCommit};

/// The state of one tip while it passes through the levels.
pub struct TipLevels<'a> {
    context: &'a Context,
    options: &'a Options,
    pins: &'a Pins,
    variant: &'a Variant,
    store: Store,
    stack: Stack,
    series: Option<PinnedSeries>,
    tip: Option<Tip>,
    status: Option<StatusReport>,
    /// Every series and overlay on the pin, after the level `status`.
    on_pin: Option<OnPin>,
    /// Newest commit that the pin can move to when the tip does not work for every series on the pin.
    reach: Option<String>,
    /// Whether a series or an overlay of another variant on the pin does not fit to the tip.
    is_held_by_others: bool,
    placed: Option<Applied>,
}

impl<'a> TipLevels<'a> {
    /// Reads the series; touches nothing.
    pub fn new(
        context: &'a Context,
        pins: &'a Pins,
        variant: &'a Variant,
        options: &'a Options,
    ) -> Result<TipLevels<'a>> {
        let store = Store::open(&context.layout.store())?;
        let stack = Stack::read(&context.layout, pins, variant)?;
        Ok(TipLevels {
            context,
            options,
            pins,
            variant,
            store,
            stack,
            series: None,
            tip: None,
            status: None,
            on_pin: None,
            reach: None,
            is_held_by_others: false,
            placed: None,
        })
    }

    /// Builds the report from what is known after the walk.
    pub fn report(&self, levels: Vec<LevelReport>) -> CanaryReport {
        let pin = self.pin();
        let mut report = CanaryReport {
            variant: self.variant.name.to_string(),
            upstream: pin.upstream.clone(),
            pin: ReportedTree::new(&pin.revision, pin.tree, verification_of_pin(&self.store, pin.tree)),
            tip: self.tip.as_ref().map(|tip| TipCommit {
                name: tip.name.clone(),
                commit: tip.commit.to_string(),
                tree: tip.tree.to_string(),
            }),
            levels,
            status: self.status.clone(),
            newest: None,
            next: None,
        };
        report.newest = self.newest(pin, report.is_good());
        report.next = report.newest.as_deref().map(|commit| self.sync_command(commit));
        report
    }

    /// Returns the commit that the pin can move to with all series on it: a good tip, or, when patches drifted, the
    /// last commit at which they apply.
    fn newest(&self, pin: &Pin, is_good: bool) -> Option<String> {
        let tip = self.tip.as_ref().filter(|tip| tip.tree != pin.tree && is_good && !self.is_held_by_others);
        tip.map(|tip| tip.commit.to_string()).or_else(|| self.reach.clone())
    }

    fn sync_command(&self, commit: &str) -> String {
        let Options { variant, from, .. } = self.options;
        let flags = [("--to", Some(commit)), ("--variant", variant.as_deref()), ("--from", from.as_deref())];
        next_command("sync", &flags)
    }

    /// Returns the command that moves the series of `variant` to the tip. It names the tip as this run does: the report
    /// on the next tip with the same drift is the same.
    fn rebase_command(&self, variant: &Name) -> String {
        let Options { tip, from, .. } = self.options;
        let variant = Some(variant.as_str());
        next_command("rebase", &[("--to", Some(tip)), ("--variant", variant), ("--from", from.as_deref())])
    }

    /// Returns everything on the pin, if the level `status` was reached.
    pub fn on_pin(&self) -> Option<&OnPin> {
        self.on_pin.as_ref()
    }

    /// Describes the patches of every series that have conflicts on the tip. A report has the conflicts in words, so a
    /// failure is only a warning.
    pub fn conflicts(&self) -> Vec<ConflictPackage> {
        let mut packages = Vec::new();
        for (stack, files) in self.on_pin.iter().flat_map(OnPin::in_conflict) {
            let conflicts = self
                .tip()
                .and_then(|tip| rebase::conflicts_on(self.context, self.pins, &self.store, stack, tip));
            let conflicts = conflicts.unwrap_or_else(|error| {
                let variant = &stack.variant.name;
                self.context
                    .ui
                    .warn(format!("the conflicts of {variant} cannot be described: {}", error.what));
                Vec::new()
            });
            let is_own = |package: &ConflictPackage| files.contains(&package.patch.file.as_str());
            packages.extend(conflicts.into_iter().filter(is_own));
        }
        packages
    }

    fn pin(&self) -> &'a Pin {
        self.pins.pin_of(self.variant)
    }

    fn tip(&self) -> Result<&Tip> {
        self.tip.as_ref().ok_or_else(|| Error::environment("the tip was not fetched"))
    }

    fn fetch(&mut self) -> Result<Finding> {
        let series =
            PinnedSeries::load(self.context, Some(&self.variant.name)).map_err(as_environment_error)?;
        let from = self.options.from.as_deref();
        let tip = series.tip(self.context, &self.options.tip, from).map_err(as_environment_error)?;
        self.series = Some(series);
        let says = format!("commit {}", tip.commit);
        self.tip = Some(tip);
        Ok(Finding { passed: true, says, details: String::new() })
    }

    fn status(&mut self) -> Result<Finding> {
        let tip = self.tip()?.clone();
        let Some(series) = &self.series else { return Err(Error::environment("no series was read")) };
        let report = status::report_at(series, &tip, &self.rebase_command(&self.variant.name))?;
        let (exact, all) = (report.exact(), report.patches.len());
        let applies = report.patches.iter().all(|patch| patch.class.applies());
        let fits = report.overlays.is_empty();
        let drifted = report.patches.iter().filter(|patch| patch.class != PatchClass::Exact);
        let mut lines: Vec<String> = drifted.map(describe).collect();
        let others = series.others_on_pin(self.context)?;
        lines.extend(report.overlays.iter().map(ToString::to_string));
        let (judged, clashes) = (self.judge(&others, &tip)?, self.clashes(series, &tip)?);
        let (held_by, stopped) = held_by_others((&judged, &clashes), &report.overlays);
        lines.extend(stopped);
        let named = JudgedSeries { stack: series.stack.clone(), report: report.clone() };
        let on_pin = OnPin::new(judged.into_iter().chain([named]).collect(), clashes, self.folders());
        let inexact = series.inexact_at_pin(&others)?;
        if inexact.is_empty() && (!applies || !fits || !held_by.is_empty()) {
            let commit = newest::reach(self.context, series, &others, &tip)?.and_then(|reach| reach.commit);
            self.reach = commit.map(|commit| commit.id);
        }
        let mut says = format!("{exact} of {all} patches are exact");
        if let Some(first) = inexact.first() {
            says = format!("{}; {says}", why_not_moved(&inexact, &report.pin));
            lines.insert(0, format!("next: {}", next_command("apply", &[("--variant", Some(first))])));
        }
        if applies && exact < all {
            says += ", the rest apply automatically";
        }
        if !fits {
            says += &format!("; {}", in_the_way(&report.overlays));
        }
        if !held_by.is_empty() {
            says += &format!("; the pin cannot move there yet because of {}", held_by.join(", "));
        }
        self.is_held_by_others = !held_by.is_empty();
        (self.status, self.on_pin) = (Some(report), Some(on_pin));
        let passed = applies && fits && inexact.is_empty();
        Ok(Finding { passed, says, details: lines.join("\n") })
    }

    /// Judges the other series on the pin.
    fn judge(&self, others: &[PinnedSeries], tip: &Tip) -> Result<Vec<JudgedSeries>> {
        let judged = others.iter().map(|other| {
            let report = status::report_at(other, tip, &self.rebase_command(&other.stack.variant.name))?;
            Ok(JudgedSeries { stack: other.stack.clone(), report })
        });
        judged.collect()
    }

    /// Returns the overlay files in the way of every variant on the pin, those of what a variant extends first.
    fn clashes(&self, series: &PinnedSeries, tip: &Tip) -> Result<Vec<VariantClashes>> {
        let pin = &series.stack.pin.name;
        let overlays = PinOverlays::read(self.context, self.pins, pin)?;
        let upstream = UpstreamTree { name: &tip.name, tree: tip.tree };
        let found = overlays.by_variant(&series.store, upstream)?;
        let mut variants: Vec<&Variant> = self.pins.variants_on(pin).collect();
        variants.sort_by_key(|variant| (self.pins.stack(variant).len(), &variant.name));
        let clashes = variants.into_iter().map(|variant| {
            let own = found.iter().filter(|(name, _)| **name == variant.name);
            let clashes = own.flat_map(|(_, clashes)| clashes.iter().cloned());
            VariantClashes { variant: variant.name.to_string(), clashes: clashes.collect() }
        });
        Ok(clashes.collect())
    }

    /// Returns the folders of patches of all variants on the pin.
    fn folders(&self) -> Vec<String> {
        let variants = self.pins.variants_on(&self.variant.pin);
        variants.filter_map(|variant| variant.patches.clone()).collect()
    }

    /// Places the series on the tip as a rebase would, in memory.
    fn place(&self, stack: &Stack) -> Result<Applied> {
        let tip = self.tip()?;
        let tree = rebase::tree_on(self.context, self.pins, &self.store, stack, tip)?;
        let pin = Pin { revision: Revision::Commit(tip.commit), tree: tip.tree, ..stack.pin.clone() };
        apply::overlay_onto(&self.store, &Stack { pin, ..stack.clone() }, tip.commit, tree)
    }

    fn contract(&mut self) -> Result<Finding> {
        let placed = self.place(&self.stack)?;
        let flavors = self.flavors()?;
        let found = self.with_build(self.variant, &flavors, |build| {
            contract::check(build, &self.store, &placed, &contract::touched(&self.stack))
        })?;
        self.placed = Some(placed);
        Ok(found)
    }

    fn build(&mut self) -> Result<Finding> {
        let Some(placed) = &self.placed else { return Err(Error::environment("nothing was placed")) };
        self.with_build(self.variant, &self.flavors()?, |build| build.build(&self.store, placed))?;
        let says = format!("{}-{DEFAULT_FLAVOR} is built and answers", name_beside(self.variant));
        Ok(Finding { passed: true, says, details: String::new() })
    }

    fn gate(&mut self) -> Result<Finding> {
        let reference = self.variant.gate.as_ref().and_then(|name| self.pins.variants.get(name));
        let Some(stock) = reference else {
            let says = format!("not gated: `[variants.{}]` has no `gate`", self.variant.name);
            return Ok(Finding { passed: true, says, details: String::new() });
        };
        let placed = self.place(&Stack::read(&self.context.layout, self.pins, stock)?)?;
        self.with_build(stock, &self.flavors()?, |build| build.build(&self.store, &placed))?;
        let claims = gate::claims(self.context, self.pins, self.variant)?;
        let (reference, variant) = (name_beside(stock), name_beside(self.variant));
        let (pin, claims, has_kernels) = (&self.variant.pin, &claims[..], self.variant.kernels);
        let sides = gate::Sides { reference: &reference, variant: &variant, pin, claims, has_kernels };
        let parts = gate::possible(self.variant, &gate::GatePart::OF_PACKAGES);
        let compared = gate::compare(self.context, &sides, &parts)?;
        Ok(Finding { passed: true, says: compared.text, details: String::new() })
    }

    /// Every level asks for the compile commands, because the build must not be reconfigured after this one.
    fn flavors(&self) -> Result<Flavors> {
        let mut flavors = self.context.flavors()?;
        flavors.cmake.insert("CMAKE_EXPORT_COMPILE_COMMANDS".to_string(), "ON".to_string());
        Ok(flavors)
    }

    fn with_build<T>(
        &self,
        variant: &Variant,
        flavors: &Flavors,
        work: impl FnOnce(&Build<'_>) -> Result<T>,
    ) -> Result<T> {
        let variant = Variant { name: name_beside(variant), ..variant.clone() };
        // The page is upstream's alone, and npm may not have its dependencies on that day.
        let options = build::Options { no_ui: true, ..build::Options::default() };
        let flavor = flavors.get(DEFAULT_FLAVOR)?;
        let (context, pins) = (self.context, self.pins);
        work(&Build { context, options: &options, pins, variant: &variant, flavors, flavor })
    }
}

impl Levels for TipLevels<'_> {
    fn reach(&mut self, level: Level) -> Result<Finding> {
        match level {
            Level::Fetch => self.fetch(),
            Level::Status => self.status(),
            Level::Contract => self.contract(),
            Level::Build => self.build(),
            Level::Gate => self.gate(),
        }
    }
}

fn describe(patch: &PatchStatus) -> String {
    format!("{}: {}", patch.file, patch.class.describe())
}

/// Returns the other variants on the pin that do not fit to the tip, and the reasons: patches of the other series, and
/// overlay files of any variant that are not among `own`.
fn held_by_others(
    (others, overlays): (&[JudgedSeries], &[VariantClashes]),
    own: &[Clash],
) -> (Vec<String>, Vec<String>) {
    let (mut held_by, mut lines) = stopped_in(others);
    for VariantClashes { variant, clashes } in overlays {
        let clashes = clashes.iter().filter(|clash| !own.contains(clash)).map(Clash::to_string);
        let clashes: Vec<String> = clashes.filter(|clash| !lines.contains(clash)).collect();
        if !clashes.is_empty() && !held_by.contains(variant) {
            held_by.push(variant.clone());
        }
        lines.extend(clashes);
    }
    (held_by, lines)
}

/// Returns, by name, the series among `others` that do not apply to the tip, and one line for each of their own patches
/// that does not.
fn stopped_in(others: &[JudgedSeries]) -> (Vec<String>, Vec<String>) {
    let (mut held_by, mut lines) = (Vec::new(), Vec::new());
    for JudgedSeries { stack, report } in others {
        let own = report.patches.iter().skip(stack.parents);
        let stopped: Vec<String> = own.filter(|patch| !patch.class.applies()).map(describe).collect();
        if !stopped.is_empty() {
            held_by.push(report.variant.clone());
            lines.extend(stopped);
        }
    }
    (held_by, lines)
}

/// Builds of a tip are kept beside those of the pin.
fn name_beside(variant: &Variant) -> Name {
    variant.name.beside("canary")
}

/// A source that serves wrong objects, or lacks the tip, says nothing about the series, so its failure is an
/// environment error.
fn as_environment_error(error: Error) -> Error {
    if error.kind == Kind::No { Error { kind: Kind::Environment, ..error } } else { error }
}
