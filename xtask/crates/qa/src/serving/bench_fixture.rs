//! The benchmark fixture: one model, the built servers under test, the same threads for all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use espalier_core::config::flavors::DEFAULT_FLAVOR;
use espalier_core::config::name::Name;
use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::load::{self, Load};
use espalier_core::sys::machine::process::Run;
use espalier_core::sys::net::server::{self, Server};
use espalier_core::ui;
use espalier_dist::checked_packages::CheckedPackages;
use espalier_dist::packaged;
use espalier_dist::plan::manifest::{Manifest, build_command};
use espalier_dist::plan::reference;
use espalier_modelgen::ModelSpec;

use super::cache::Cache;
use super::kv_pool;
use super::probe::{self, Probe};
use super::switches;
use super::test_server::TestServer;
use super::{Serving, WhenBusy};
use crate::sys::models;

/// State shared by all rounds.
pub struct BenchFixture<'a> {
    context: &'a Context,
    serving: Serving,
    /// The variants under test.
    pub variants: Variants,
    folder: tempfile::TempDir,
    /// Model that every server loads.
    pub model: PathBuf,
    /// Number of threads of every server.
    pub threads: usize,
    is_quiet: bool,
    /// Sources of the builds under test.
    pub builds: Builds,
}

/// The variants whose builds are measured, both on one pin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variants {
    /// The variant with our patches.
    pub ours: String,
    /// The variant without them: the one that ours is gated against.
    pub stock: String,
    is_default: bool,
}

impl Variants {
    /// Returns the variant `name`, or the default one, and the one that it is compared with.
    ///
    /// # Errors
    ///
    /// There is no such variant.
    pub fn of(context: &Context, name: Option<&Name>) -> Result<Variants> {
        let pins = context.pins()?;
        let ours = pins.variant(name.map(Name::as_str))?;
        let stock = ours.gate.as_ref().map_or("stock", Name::as_str).to_string();
        let is_default = ours.name == pins.default_variant;
        Ok(Variants { ours: ours.name.to_string(), stock, is_default })
    }

    /// Returns ours for the head of a record, unless it is the default variant.
    pub fn named(&self) -> Option<String> {
        (!self.is_default).then(|| self.ours.clone())
    }

    fn of_server(&self, test_server: TestServer) -> &str {
        if test_server.is_ours() { &self.ours } else { &self.stock }
    }
}

/// The pin that all servers under test are built from, and the tree of each variant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Builds {
    /// Tag or commit of the pin.
    pub pin: String,
    /// Tree ids by variant.
    pub trees: BTreeMap<String, String>,
}

impl<'a> BenchFixture<'a> {
    /// As [`BenchFixture::prepare_of`], with the default variant.
    pub fn prepare(
        context: &'a Context,
        serving: Serving,
        test_servers: &[TestServer],
        spec: &ModelSpec,
    ) -> Result<BenchFixture<'a>> {
        BenchFixture::prepare_of(context, Variants::of(context, None)?, serving, test_servers, spec)
    }

    /// Checks that every server is built and that the machine is idle; then writes the model of `spec`.
    pub fn prepare_of(
        context: &'a Context,
        variants: Variants,
        serving: Serving,
        test_servers: &[TestServer],
        spec: &ModelSpec,
    ) -> Result<BenchFixture<'a>> {
        let builds = check_test_servers(context, &variants, test_servers)?;
        let load = look_around(context, serving)?;
        let folder = disk::scratch_folder(&context.layout.generated().join("bench"), "serving")?;
        let model = folder.path().join("model.gguf");
        context.ui.status("Writing", "the model");
        models::write(&model, spec)?;
        let threads = serving.threads.unwrap_or_else(|| load.free_cores());
        let is_quiet = load.is_quiet();
        Ok(BenchFixture { context, serving, variants, folder, model, threads, is_quiet, builds })
    }

    /// Checks the load; call it while none of our programs runs: another user's program may have started since the
    /// last round.
    pub fn before_round(&mut self) -> Result<()> {
        self.is_quiet &= look_around(self.context, self.serving)?.is_quiet();
        Ok(())
    }

    /// Returns whether the machine was idle in all rounds so far; `None` if nothing is timed.
    pub fn is_quiet(&self) -> Option<bool> {
        (self.serving.when_busy != WhenBusy::Ignore).then_some(self.is_quiet)
    }

    /// Measures `count` rounds, each after [`BenchFixture::before_round`].
    pub fn rounds(
        &mut self,
        count: u32,
        mut measure: impl FnMut(&BenchFixture<'_>) -> Result<()>,
    ) -> Result<()> {
        for round in 1..=count {
            self.before_round()?;
            self.context.ui.status("Measuring", format!("round {round} of {count}"));
            measure(&*self)?;
        }
        Ok(())
    }

    /// Starts a server that has loaded the model, with `slots` slots unless the server under test sets another
    /// number, and a context of `cells` tokens.
    pub fn server(&self, test_server: TestServer, slots: usize, cells: usize) -> Result<Server> {
        self.server_with(test_server, slots, cells, &[])
    }

    /// As [`BenchFixture::server`], with more arguments.
    ///
    /// # Errors
    ///
    /// It does not start, or it is ours and runs unpaged.
    pub fn server_with(
        &self,
        test_server: TestServer,
        slots: usize,
        cells: usize,
        more: &[&str],
    ) -> Result<Server> {
        let mut arguments = vec!["--ctx-size".to_string(), cells.to_string()];
        arguments.extend(test_server.arguments(slots));
        arguments.extend(more.iter().map(ToString::to_string));
        let program = self.program(test_server);
        let switched_off = test_server.switched_off();
        let server = self.start(&program, test_server.name(), &self.model, &arguments, switched_off)?;
        if test_server.is_ours() {
            kv_pool::must_be_paged(&server)?;
        }
        Ok(server)
    }

    /// Starts a server of any program and model; `name` is that of its log.
    pub fn server_of(
        &self,
        program: &Path,
        name: &str,
        model: &Path,
        arguments: &[String],
    ) -> Result<Server> {
        self.start(program, name, model, arguments, None)
    }

    fn start(
        &self,
        program: &Path,
        name: &str,
        model: &Path,
        arguments: &[String],
        switched_off: Option<&str>,
    ) -> Result<Server> {
        let log = self.context.layout.log(&format!("bench-{name}"));
        let run = Run::new(program)
            .args(["--seed", "1", "--threads", &self.threads.to_string()])
            .args(arguments)
            .arg("--model")
            .arg(model);
        let run = switches::without_features(run);
        let run = switched_off.into_iter().fold(run, |run, feature| run.env(switches::DISABLE, feature));
        Server::start(run, &log).map_err(|error| {
            error
                .detail(format!("server under test `{name}`"))
                .hint(format!("the server's whole log: {}", self.context.layout.show(&log)))
        })
    }

    /// Returns the packaged server of a server under test.
    pub fn program(&self, test_server: TestServer) -> PathBuf {
        program(self.context, &self.variants, test_server)
    }

    /// Returns the probe, built against a variant.
    pub fn probe(&self, variant: &str) -> Result<PathBuf> {
        probe::build(self.context, Probe::Logits, variant, self.folder.path())
    }
}

/// Returns a server's arguments for a cache, or for one type as both of K and V.
///
/// # Errors
///
/// `cache` is not a valid cache.
pub fn cache_types(cache: &str) -> Result<Vec<String>> {
    Ok(Cache::read(cache).map_err(Error::usage)?.arguments())
}

/// Samples the load of the machine.
///
/// # Errors
///
/// It is busy, and `serving` refuses that.
pub fn look_around(context: &Context, serving: Serving) -> Result<Load> {
    if serving.when_busy == WhenBusy::Refuse {
        return load::refuse_busy();
    }
    let load = load::measure();
    if serving.when_busy == WhenBusy::Say && !load.is_quiet() {
        context.ui.warn("the machine is busy: measurements taken now are unreliable");
    }
    Ok(load)
}

fn program(context: &Context, variants: &Variants, test_server: TestServer) -> PathBuf {
    context.layout.server(variants.of_server(test_server), DEFAULT_FLAVOR)
}

fn check_test_servers(context: &Context, variants: &Variants, test_servers: &[TestServer]) -> Result<Builds> {
    for test_server in test_servers {
        if !disk::is_program(&program(context, variants, *test_server)) {
            return Err(not_built(variants.of_server(*test_server), *test_server));
        }
        check_flag(context, variants, *test_server)?;
    }
    let names: Vec<&str> = test_servers.iter().map(|test_server| variants.of_server(*test_server)).collect();
    timed_builds(context, &names)
}

/// Returns the builds of these variants.
///
/// # Errors
///
/// One of them does not exist, is of earlier sources or may not be timed, or they are not of one pin.
pub fn timed_builds(context: &Context, variants: &[&str]) -> Result<Builds> {
    let pins = context.pins()?;
    let built = variants.iter().map(|name| pins.variant(Some(name))).collect::<Result<Vec<_>>>()?;
    CheckedPackages::begin(context, &pins, &built)?;
    let manifest = |name: &&str| manifest(context, name).and_then(timed);
    builds(&variants.iter().map(manifest).collect::<Result<Vec<_>>>()?)
}

fn not_built(variant: &str, test_server: TestServer) -> Error {
    Error::usage(format!(
        "{variant}-{DEFAULT_FLAVOR} is not built, and the server under test `{}` needs it",
        test_server.name()
    ))
    .hint(build_command(variant, DEFAULT_FLAVOR))
}

/// Reports a missing flag: the server itself would exit with its whole help text.
fn check_flag(context: &Context, variants: &Variants, test_server: TestServer) -> Result<()> {
    let Some(flag) = test_server.needed_flag() else { return Ok(()) };
    if server::help_of(&program(context, variants, test_server))?.contains(flag) {
        return Ok(());
    }
    let ours = &variants.ours;
    let others: Vec<String> = TestServer::ALL
        .iter()
        .filter(|one| !one.is_ours())
        .map(|one| format!("--only {}", one.name()))
        .collect();
    Err(Error::usage(format!(
        "server under test `{}` cannot take part: the server of {ours}-{DEFAULT_FLAVOR} does not know `{flag}`",
        test_server.name()
    ))
    .hint(format!("build one that does: {}", build_command(ours, DEFAULT_FLAVOR)))
    .hint(format!("or leave it out where the bench allows it: {}", others.join(" "))))
}

fn manifest(context: &Context, variant: &str) -> Result<Manifest> {
    let manifest = packaged::manifest(context, variant, DEFAULT_FLAVOR)?;
    manifest.ok_or_else(|| packaged::not_built(variant, DEFAULT_FLAVOR))
}

/// The manifest of a build that may be timed.
fn timed(manifest: Manifest) -> Result<Manifest> {
    let Manifest { variant, flavor, flags, .. } = &manifest;
    if !reference::is_reference(flags) {
        return Ok(manifest);
    }
    let built = ui::named_hint("`cargo xtask test` built");
    let what = format!("{variant}-{flavor} is a reference that {built}: its server is compiled at -O1");
    Err(Error::usage(what).hint(build_command(variant, flavor)))
}

fn builds(manifests: &[Manifest]) -> Result<Builds> {
    let trees = manifests.iter().map(|one| (one.variant.clone(), one.tree.clone())).collect();
    let Some(first) = manifests.first() else { return Ok(Builds::default()) };
    match manifests.iter().find(|one| one.base_tree != first.base_tree) {
        None => Ok(Builds { pin: first.pin.clone(), trees }),
        Some(other) => Err(Error::usage(format!(
            "{} is built from {} and {} from {}: their times cannot be compared",
            first.variant, first.pin, other.variant, other.pin
        ))
        .hint([first, other].map(|one| build_command(&one.variant, &one.flavor)).join(" && "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(variant: &str, pin: &str) -> Manifest {
        Manifest {
            variant: variant.to_string(),
            flavor: DEFAULT_FLAVOR.to_string(),
            platform: "linux-x86_64".to_string(),
            pin: pin.to_string(),
            base_tree: format!("tree of {pin}"),
            tree: format!("tree of {variant}"),
            patches: BTreeMap::new(),
            compiler: String::new(),
            flags: BTreeMap::new(),
            files: BTreeMap::new(),
            page: None,
            inputs: String::new(),
        }
    }

    #[test]
    fn a_reference_is_not_timed() {
        assert!(timed(made("stock", "v1")).is_ok());
        let reference = Manifest {
            flags: reference::cache_entries("/f".to_string(), String::new()),
            ..made("stock", "v1")
        };
        let error = timed(reference).unwrap_err();
        assert!(error.what.contains("stock-cpu-native is a reference"), "{error}");
    }

    #[test]
    fn builds_of_one_pin_are_compared() {
        let found = builds(&[made("stock", "v1"), made("paged", "v1"), made("stock", "v1")]).unwrap();
        assert_eq!(found.pin, "v1");
        assert_eq!(found.trees.len(), 2);
        let error = builds(&[made("stock", "v1"), made("paged", "v2")]).unwrap_err();
        assert!(error.what.contains("stock is built from v1 and paged from v2"), "{error}");
    }
}
