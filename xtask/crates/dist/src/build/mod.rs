//! `cargo xtask build`: from the pin to a packaged server that has answered a prompt.

mod compile;
mod configure;
pub mod inputs;
mod prove;
mod twice;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use espalier_core::config::flavors::{Flavors, NamedFlavor};
use espalier_core::config::layout::Layout;
use espalier_core::config::name::Name;
use espalier_core::config::pins::{Pins, Tool, Variant};
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::plan::steps::Step;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::Run;
use espalier_core::sys::machine::threads::result_of;
use espalier_core::sys::machine::tools;
use espalier_core::sys::project::run_lock::Access;
use espalier_patches::apply::{self, Applied, Locking};
use serde_json::json;

use self::inputs::InputDigests;
use super::build_args::Which;
use super::equipment::{self, Equipment};
use super::shipped::BuildFacts;
use super::smoke;
use super::watched::Watched;
use super::web_page::{self, Choice, PageInclusion};
use crate::plan::manifest::{Manifest, portable_flags};
use crate::plan::reference;
use crate::plan::rust_library::RustLibrary;
use crate::plan::web_page::ManifestPage;
use crate::sys::compiler_cache::CompilerCache;
use crate::sys::compilers::{self, Compilers};
use crate::sys::package::{self, Contents};
use crate::sys::web_page as pages;

/// Options of `build`.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// The build.
    #[command(flatten)]
    pub which: Which,
    /// Number of parallel compile jobs.
    #[arg(long, short, value_name = "N")]
    pub jobs: Option<u32>,
    /// Skip the smoke test; the build then counts as unfinished.
    #[arg(long)]
    pub no_smoke: bool,
    /// Stop after CMake has configured the build and found the flavor's dependencies.
    #[arg(long, conflicts_with = "no_smoke")]
    pub configure_only: bool,
    /// Build from an empty folder without a compiler cache, and record the result in ci/proofs/.
    #[arg(long)]
    pub record: bool,
    /// Build a second time from scratch in another folder and compare the packages byte for byte.
    #[arg(long, conflicts_with_all = ["no_smoke", "configure_only", "record"])]
    pub twice: bool,
    /// Compile all but ggml at -O1: enough to compare answers, but neither for timing nor for shipping.
    #[arg(long, conflicts_with_all = ["record", "twice"])]
    pub reference: bool,
    /// Comma-separated GPU architectures to compile for, instead of the flavor's list.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub architectures: Vec<String>,
    /// Leave the web page out of the server.
    #[arg(long)]
    pub no_ui: bool,
    /// Print what would be done.
    #[arg(long)]
    pub dry_run: bool,
    /// Compile even files that a compiler cache has; no argument asks for it.
    #[arg(skip)]
    pub recompile: bool,
}

impl Options {
    fn page(&self) -> PageInclusion {
        if self.no_ui { PageInclusion::No } else { PageInclusion::IfPossible }
    }
}

/// Builds one variant in one flavor.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    if !options.dry_run {
        // Before the lock is taken: the cache's server outlives this run and would inherit the lock.
        compilers::start_launcher();
    }
    let flavors = context.flavors()?;
    let flavor = flavors.get(&options.which.flavor)?;
    check(context, &flavors, flavor, options)?;
    let (_lock, pins) = context.begin(options.dry_run, Access::Build)?;
    let variant = pins.variant(options.which.variant.as_deref())?;
    let build = Build { context, options, pins: &pins, variant, flavors: &flavors, flavor };
    if options.dry_run {
        let steps: Vec<String> = build.steps()?.iter().map(Step::to_string).collect();
        return Ok(Outcome::ok(steps.join("\n"), json!({ "steps": steps })));
    }
    build.run()
}

/// Returns the record of the last finished build of a package.
#[must_use]
pub fn stamp_file(layout: &Layout, variant: &Name, flavor: &str) -> PathBuf {
    layout.build(variant, flavor).join("espalier-stamp.json")
}

/// Checks everything that can be checked before a build starts.
fn check(context: &Context, flavors: &Flavors, flavor: NamedFlavor<'_>, options: &Options) -> Result<()> {
    flavors.cache_entries(flavor.entry, &options.architectures, &BTreeMap::new())?;
    equipment::demand_platform(context, flavors, flavor)
}

/// A build of one variant in one flavor. The canary builds a tip under a name that `pins.toml` does not have.
pub struct Build<'a> {
    /// The context of the command.
    pub context: &'a Context,
    /// Options of the build.
    pub options: &'a Options,
    /// The tools, and the stack of the variant.
    pub pins: &'a Pins,
    /// Variant to build; its name is the name of all folders.
    pub variant: &'a Variant,
    /// Source of CMake's arguments.
    pub flavors: &'a Flavors,
    /// Flavor to build, one of `flavors`.
    pub flavor: NamedFlavor<'a>,
}

/// A configured build folder; nothing is compiled yet.
pub struct Configured {
    /// The build folder.
    pub folder: PathBuf,
    /// The Ninja program.
    pub ninja: PathBuf,
}

/// The steps from a tree on disk to a finished package, in this order. A run carries them out, and `--dry-run` prints
/// them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Work {
    Page,
    Library(RustLibrary),
    Configure,
    Compile,
    Package,
    Smoke,
}

/// The folders and programs of one build.
struct Tools {
    cmake: PathBuf,
    ninja: PathBuf,
    compilers: Compilers,
    cache: Option<CompilerCache>,
    page: Choice,
}

impl Build<'_> {
    /// Checks that the project has the files of Espalier that the steps read, before minutes of compiling.
    fn find_files(&self) -> Result<()> {
        for work in self.work() {
            match work {
                Work::Library(library) => {
                    drop(self.context.file_of_espalier(&format!("{}/Cargo.toml", library.folder()))?);
                }
                Work::Smoke => drop(smoke::model(self.context)?),
                Work::Page | Work::Configure | Work::Compile | Work::Package => {}
            }
        }
        Ok(())
    }

    fn run(&self) -> Result<Outcome> {
        let store = Store::open(&self.context.layout.store())?;
        let applied = apply::apply(self.context, &store, self.pins, self.variant, Locking::Update)?;
        if self.options.record {
            return prove::run(self, &store, &applied);
        }
        if self.options.twice {
            return twice::run(self, &store, &applied);
        }
        if self.options.configure_only {
            self.prepare(&store, &applied)?;
            return Ok(Outcome::ok(String::new(), json!({ "configured": self.name() })));
        }
        self.build(&store, &applied)
    }

    /// Builds the applied variant. The caller holds the run lock.
    pub fn build(&self, store: &Store, applied: &Applied) -> Result<Outcome> {
        apply::materialise(self.context, store, self.pins, self.variant, applied)?;
        if let Some((flavor, options)) = self.host() {
            Build { options: &options, flavor, ..*self }.build(store, applied)?;
        }
        let compilers = self.compilers()?;
        let page = web_page::choose(self.context, self.variant, self.options.page())?;
        let inputs = self.inputs_digest(applied, &compilers, &page)?;
        if self.is_current(&inputs.all)? || self.has_full_build(applied, &compilers, &page)? {
            return Ok(self.outcome(applied, &page, true));
        }
        self.find_files()?;
        let tools = self.tools(compilers, page)?;
        self.carry_out_all(&self.work(), &tools, applied, &inputs)?;
        Ok(self.outcome(applied, &tools.page, false))
    }

    /// Returns the compilers, without their cache where the build time is recorded.
    fn compilers(&self) -> Result<Compilers> {
        let mut compilers = compilers::compilers()?;
        if self.options.record {
            compilers.c.launcher = None;
            compilers.cxx.launcher = None;
        }
        Ok(compilers)
    }

    /// Returns the entries of the toolchain, the flavor and the variant; later ones replace earlier ones.
    fn cache_entries(&self) -> Result<BTreeMap<String, String>> {
        let mut entries = self.equipment()?.cmake;
        entries.extend(self.declared_entries()?);
        if self.options.reference {
            let digest = disk::sha256(reference::CMAKE.as_bytes());
            entries.extend(reference::cache_entries(self.compared_file().display().to_string(), digest));
        }
        Ok(entries)
    }

    /// Returns the entries in `ci/flavors.toml` and `pins.toml`.
    fn declared_entries(&self) -> Result<BTreeMap<String, String>> {
        let variant = self.pins.cache_entries(self.variant);
        self.flavors.cache_entries(self.flavor.entry, &self.options.architectures, &variant)
    }

    /// Builds the page if it is not built yet, as far as this machine can. The tree is on disk.
    fn make_page(&self) -> Result<()> {
        let page = web_page::choose(self.context, self.variant, self.options.page())?;
        web_page::provide(self.context, self.variant, &page)
    }

    fn equipment(&self) -> Result<Equipment> {
        equipment::equipment(self.context, self.flavors, self.flavor)
    }

    /// Returns the host flavor whose programs this one uses, and the options of its build. It is smoke-tested by the
    /// flavors that use it.
    fn host(&self) -> Option<(NamedFlavor<'_>, Options)> {
        let host = self.flavors.host(self.flavor.entry)?;
        let options = Options { architectures: Vec::new(), record: false, ..self.options.clone() };
        Some((host, options))
    }

    /// Returns Ninja's targets: programs also build the modules of their own flavor.
    fn targets(&self) -> &[String] {
        let flavor = self.flavor.entry;
        if flavor.host.is_some() { &flavor.modules } else { &self.flavors.programs }
    }

    /// Prepares the build up to the point where a compiler can process single files. The caller holds the run lock.
    pub fn prepare(&self, store: &Store, applied: &Applied) -> Result<Configured> {
        apply::materialise(self.context, store, self.pins, self.variant, applied)?;
        let compilers = self.compilers()?;
        let page = web_page::choose(self.context, self.variant, self.options.page())?;
        let inputs = self.inputs_digest(applied, &compilers, &page)?;
        let tools = self.tools(compilers, page)?;
        let work: Vec<Work> = self.work().into_iter().take_while(|work| *work != Work::Compile).collect();
        self.carry_out_all(&work, &tools, applied, &inputs)?;
        Ok(Configured { folder: self.build_folder(), ninja: tools.ninja })
    }

    fn work(&self) -> Vec<Work> {
        let has_host = self.flavor.entry.host.is_some();
        // The page is embedded in the programs.
        let page = (!has_host).then_some(Work::Page);
        let libraries = RustLibrary::of(self.variant).map(Work::Library);
        let smoke = (!self.options.no_smoke).then_some(Work::Smoke);
        let always = [Work::Configure, Work::Compile, Work::Package];
        page.into_iter().chain(libraries).chain(always).chain(smoke).collect()
    }

    /// Carries out the steps in order. A page that is not built yet is built while everything is compiled without it:
    /// npm uses one core. Then the few objects that depend on it are compiled again.
    fn carry_out_all(
        &self,
        work: &[Work],
        tools: &Tools,
        applied: &Applied,
        inputs: &InputDigests,
    ) -> Result<()> {
        let one = |work: &Work| self.carry_out(*work, tools, applied, inputs);
        if !work.contains(&Work::Page) || !tools.page.is_due() {
            return work.iter().try_for_each(one);
        }
        let (meanwhile, afterwards): (Vec<Work>, Vec<Work>) =
            work.iter().filter(|work| **work != Work::Page).partition(|work| **work < Work::Package);
        std::thread::scope(|threads| {
            let page = threads.spawn(|| self.make_page_meanwhile(tools));
            let compiled = meanwhile.iter().try_for_each(one);
            let made = result_of(page);
            // If both failed, the page's was reported already.
            compiled.and(made)
        })?;
        self.embed_page(tools, meanwhile.contains(&Work::Compile))?;
        afterwards.iter().try_for_each(one)
    }

    /// Builds the page, and reports a failure at once: compilation can take minutes to end.
    fn make_page_meanwhile(&self, tools: &Tools) -> Result<()> {
        let made = web_page::provide(self.context, self.variant, &tools.page);
        made.inspect_err(|error| {
            let what = &error.what;
            self.context
                .ui
                .warn(format!("the web page was not built ({what}), and is reported again at the end"));
        })
    }

    fn place_page(&self, tools: &Tools) -> Result<()> {
        let page = tools.page.record(self.context)?;
        pages::place(&self.context.layout, page.as_ref(), &self.build_folder())
    }

    /// Places the page in the build folder; compiles it into the programs if they are compiled already. Upstream's
    /// CMake reads the placed page at every build.
    fn embed_page(&self, tools: &Tools, compiled: bool) -> Result<()> {
        self.place_page(tools)?;
        if compiled { self.compile_targets(tools, "embed") } else { Ok(()) }
    }

    fn carry_out(&self, work: Work, tools: &Tools, applied: &Applied, inputs: &InputDigests) -> Result<()> {
        match work {
            Work::Page => web_page::provide(self.context, self.variant, &tools.page),
            Work::Library(library) => {
                self.context.ui.status("Building", format!("the {} library", library.folder()));
                self.watched(self.library_run(library)?, library.folder(), |_| {})
            }
            Work::Configure => {
                self.write_identity(applied)?;
                self.place_page(tools)?;
                self.configure(tools, applied)
            }
            Work::Compile => self.compile_package(tools, &inputs.all),
            Work::Package => {
                let manifest = self.manifest(tools, applied, &inputs.all)?;
                let (origin, texts) = self.made(tools, applied, &manifest)?.gather(self.context)?;
                let contents = Contents { texts, ..self.contents(&manifest) };
                package::assemble(&contents, &self.package_folder(), manifest, &origin)
            }
            Work::Smoke => {
                self.smoke(applied)?;
                package::write_stamp(&self.package_folder(), &self.stamp_file(), &inputs.all, &inputs.sources)
            }
        }
    }

    fn step(&self, work: Work, tools: &Tools) -> Result<Option<Step>> {
        let layout = &self.context.layout;
        Ok(Some(match work {
            Work::Page => return Ok(web_page::step(self.context, &tools.page, self.options.page())),
            Work::Library(library) => {
                Step::Library { name: library.folder(), command: self.library_run(library)?.words() }
            }
            Work::Configure => {
                let arguments = self.configure_arguments(tools, &self.pins.pin_of(self.variant).revision)?;
                Step::Configure { command: Run::new(&tools.cmake).args(&arguments).words() }
            }
            Work::Compile => Step::Compile { command: self.compile_run(tools, self.targets()).words() },
            Work::Package => Step::Package { folder: layout.show(&self.package_folder()) },
            Work::Smoke => Step::Smoke { model: layout.show(&layout.smoke_model()) },
        }))
    }

    /// Returns the steps of a run; reads, and changes nothing.
    fn steps(&self) -> Result<Vec<Step>> {
        let layout = &self.context.layout;
        let (mut steps, applied) = apply::plan(self.context, self.pins, self.variant)?;
        if applied.map(|applied| self.would_stay(&applied)).transpose()?.unwrap_or(false) {
            steps.push(Step::Current { package: layout.show(&self.package_folder()) });
        } else {
            self.steps_to_package(&mut steps)?;
        }
        if self.options.twice {
            steps.push(Step::Again { folder: layout.show(&layout.second()) });
        }
        Ok(steps)
    }

    fn steps_to_package(&self, steps: &mut Vec<Step>) -> Result<()> {
        let layout = &self.context.layout;
        steps.push(Step::Materialise { folder: layout.show(&layout.tree(&self.variant.name)) });
        if let Some((flavor, options)) = self.host() {
            steps.extend(Build { options: &options, flavor, ..*self }.steps_of_tree()?);
        }
        steps.extend(self.steps_of_tree()?);
        Ok(())
    }

    /// Returns the steps after the tree is on disk.
    fn steps_of_tree(&self) -> Result<Vec<Step>> {
        let place = |name: &str| self.tool(name).map(|tool| tools::place(tool, &self.context.layout));
        let (cmake, ninja) = (place("cmake")?, place("ninja")?);
        let page = web_page::foresee(self.context, self.pins.pin_of(self.variant), self.options.page())?;
        let tools = Tools { cmake, ninja, compilers: compilers::compilers_or_names(), cache: None, page };
        let steps: Vec<Option<Step>> =
            self.work().into_iter().map(|work| self.step(work, &tools)).collect::<Result<_>>()?;
        Ok(steps.into_iter().flatten().collect())
    }

    fn contents(&self, manifest: &Manifest) -> Contents {
        let flavor = self.flavor.entry;
        let host = self.flavors.host(flavor);
        let notices =
            |page: &ManifestPage| (pages::notices(&self.context.layout, &page.tree), "licenses/web-page.txt");
        Contents {
            host: host.map(|host| self.context.layout.package(&self.variant.name, host.name)),
            built: self.build_folder().join("bin"),
            programs: if host.is_some() { Vec::new() } else { self.flavors.programs.clone() },
            modules: flavor.modules.clone(),
            // A host already contains its own.
            others: manifest.page.as_ref().filter(|_| host.is_none()).map(notices).into_iter().collect(),
            texts: BTreeMap::new(),
        }
    }

    /// Returns the sources of the package's documents.
    fn made<'a>(
        &'a self,
        tools: &'a Tools,
        applied: &'a Applied,
        manifest: &'a Manifest,
    ) -> Result<BuildFacts<'a>> {
        let equipment = self.equipment()?;
        let entries = format!("{:?}", self.declared_entries()?);
        let lock = applied.locked.to_text(&self.variant.name);
        let mut inputs = BTreeMap::from([
            ("espalier.lock".to_string(), disk::sha256(lock.as_bytes())),
            ("ci/flavors.toml".to_string(), disk::sha256(entries.as_bytes())),
        ]);
        for library in RustLibrary::of(self.variant) {
            let digest = disk::sha256(inputs::library_digest(&self.context.layout, library)?.as_bytes());
            inputs.insert(library.folder().to_string(), digest);
        }
        for (name, recipe) in equipment::recipes(self.context, self.flavors, self.flavor.entry)? {
            inputs.insert(format!("toolchain {name}"), disk::sha256(recipe.as_bytes()));
        }
        Ok(BuildFacts {
            pins: self.pins,
            variant: self.variant,
            applied,
            page: manifest.page.as_ref(),
            ninja: (&tools.ninja, self.build_folder()),
            targets: self.targets(),
            cargo: equipment.cargo,
            inputs,
        })
    }

    fn name(&self) -> String {
        format!("{}-{}", self.variant.name, self.flavor.name)
    }

    fn build_folder(&self) -> PathBuf {
        self.context.layout.build(&self.variant.name, self.flavor.name)
    }

    fn package_folder(&self) -> PathBuf {
        self.context.layout.package(&self.variant.name, self.flavor.name)
    }

    fn stamp_file(&self) -> PathBuf {
        stamp_file(&self.context.layout, &self.variant.name, self.flavor.name)
    }

    fn tools(&self, compilers: Compilers, page: Choice) -> Result<Tools> {
        let Context { layout, offline, ui, .. } = self.context;
        let provide = |name: &str| tools::provide(self.tool(name)?, layout, *offline, ui);
        let (cmake, ninja) = (provide("cmake")?, provide("ninja")?);
        let launcher = compilers.cxx.launcher.as_deref();
        let cache = launcher.map(|cache| CompilerCache::begin(cache, &self.build_folder())).transpose()?;
        Ok(Tools { cmake, ninja, compilers, cache, page })
    }

    fn tool(&self, name: &str) -> Result<&Tool> {
        let missing = || {
            Error::usage(format!("`pins.toml` has no `[tools.{name}]`, which a build needs"))
                .hint("copy the table from the `pins.toml` of a clone of Espalier")
        };
        self.pins.tools.get(name).ok_or_else(missing)
    }

    fn watched(&self, run: Run, log_name: &str, on_line: impl FnMut(&str)) -> Result<()> {
        let step = Watched { context: self.context, name: log_name.to_string(), folder: self.build_folder() };
        step.run(run, on_line)
    }

    fn manifest(&self, tools: &Tools, applied: &Applied, inputs: &str) -> Result<Manifest> {
        let base_tree = applied.pin.tree.to_string();
        let nowhere = Path::new("");
        let entries = self.configuration(tools, nowhere, nowhere, &applied.pin.revision)?.cache_entries();
        let patches = applied.locked.patches.iter().map(|patch| (patch.file.clone(), patch.sha256.clone()));
        Ok(Manifest {
            variant: self.variant.name.to_string(),
            flavor: self.flavor.name.to_string(),
            platform: self.flavor.entry.platform_here(),
            pin: applied.pin.revision.to_string(),
            patches: patches.collect(),
            tree: applied.tree.to_string(),
            base_tree,
            compiler: tools.compilers.version.clone(),
            flags: portable_flags(&entries),
            files: BTreeMap::new(),
            page: tools.page.record(self.context)?.as_ref().map(web_page::named),
            inputs: inputs.to_string(),
        })
    }

    fn smoke(&self, applied: &Applied) -> Result<()> {
        let subject = smoke::Subject {
            variant: &self.variant.name,
            flavor: self.flavor.name,
            identity: self.identity(applied),
            device: equipment::device(self.context, self.flavors, self.flavor.entry)?,
        };
        smoke::run(self.context, &subject).map(drop)
    }

    /// Returns the identity that the server must report; a stock build has none.
    fn identity(&self, applied: &Applied) -> Option<String> {
        let tree = applied.tree.to_string();
        self.variant
            .kernels
            .then(|| smoke::identity(&self.variant.name, &applied.pin.revision.to_string(), &tree))
    }

    fn outcome(&self, applied: &Applied, page: &Choice, current: bool) -> Outcome {
        let package = self.context.layout.show(&self.package_folder());
        let ui = &self.context.ui;
        let verb = if current { "Current" } else { "Finished" };
        ui.status(verb, format!("{} in {package}{}", self.name(), page.remark()));
        page.warn(ui);
        let json = json!({
            "variant": self.variant.name,
            "flavor": self.flavor.name,
            "tree": applied.tree.to_string(),
            "package": package,
            "page": page.to_json(),
            "current": current,
        });
        Outcome::ok(String::new(), json)
    }
}
