//! `cargo xtask image`: a package as an image, on a base of pinned packages.

use std::fmt;
use std::path::PathBuf;

use clap::Args;
use espalier_core::config::flavors::base::{Base, Runtime};
use espalier_core::config::flavors::{Flavors, NamedFlavor};
use espalier_core::config::name::Name;
use espalier_core::config::toolchains::{Toolchain, Toolchains};
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::run_lock::Access;
use serde_json::{Value, json};

use crate::build_args::Which;
use crate::health::Health;
use crate::packaged::not_built;
use crate::plan::image::documents::{Naming, Sealed, licences, tag};
use crate::plan::image::{Layer, accounts};
use crate::plan::manifest::{Manifest, build_command};
use crate::plan::shipped::{MANIFEST, SBOM};
use crate::sys::archive;
use crate::sys::image_files as image;
use crate::sys::image_files::{Layers, Written};
use crate::sys::toolchain;
use crate::verify::package as verify;

/// Options of `image`.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// The build.
    #[command(flatten)]
    pub which: Which,
    /// Print what would be done.
    #[arg(long)]
    pub dry_run: bool,
}

/// The steps, in this order.
#[derive(Clone, Debug)]
enum Step {
    /// Verify the package.
    Check { package: String },
    /// Assemble a toolchain of the base; `steps` is empty if it already exists.
    Base { name: String, folder: String, steps: Vec<String> },
    /// Build the program for health checks.
    Health { command: String },
    /// Check that every linked library is in the image.
    Link,
    /// Write the layers and the documents.
    Write { folder: String },
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Check { package } => {
                write!(out, "check        {package}: files, manifest, SBOM, provenance and lock")
            }
            Step::Base { name, folder, steps } if steps.is_empty() => {
                write!(out, "base         {name}, already there: {folder}")
            }
            Step::Base { name, folder, steps } => {
                write!(out, "base         {name}: {folder}\n  {}", steps.join("\n  "))
            }
            Step::Health { command } => write!(out, "health       {command}"),
            Step::Link => write!(out, "link         check that every library that is linked is in the image"),
            Step::Write { folder } => write!(out, "write        {folder}"),
        }
    }
}

/// Writes the image completely or not at all.
///
/// # Errors
///
/// The flavor has no base yet; the package does not exist or does not match its manifest; the base cannot be
/// obtained; a program links a library that is not in the image.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let (_lock, pins) = context.begin(options.dry_run, Access::Build)?;
    let variant = pins.variant(options.which.variant.as_deref())?;
    let (flavors, toolchains) = (context.flavors()?, context.toolchains()?);
    let flavor = flavors.get(&options.which.flavor)?;
    let image = Image::new(context, &flavors, &toolchains, (&variant.name, flavor))?;
    let steps = image.steps();
    if options.dry_run {
        let lines: Vec<String> = steps.iter().map(ToString::to_string).collect();
        return Ok(Outcome::ok(lines.join("\n"), json!({ "steps": lines })));
    }
    let setup = toolchain::SetupContext::of(context, &pins);
    let mut written = None;
    for step in steps {
        written = image.carry_out(&step, setup)?.or(written);
    }
    written.map(|written| image.outcome(&written)).ok_or_else(|| Error::no("nothing was written"))
}

type Named<'a> = (&'a Name, &'a Toolchain);

/// An image to be written.
struct Image<'a> {
    context: &'a Context,
    flavor: &'a Name,
    folder: PathBuf,
    package: PathBuf,
    manifest: Manifest,
    base: &'a Base,
    packages: Named<'a>,
    runtime: Option<(&'a Runtime, Named<'a>)>,
    health: Health<'a>,
}

impl<'a> Image<'a> {
    fn new(
        context: &'a Context,
        flavors: &'a Flavors,
        toolchains: &'a Toolchains,
        (variant, flavor): (&Name, NamedFlavor<'a>),
    ) -> Result<Image<'a>> {
        let (name, base) = flavors.base(flavor)?;
        let packages = base.packages_for(name, &flavor.entry.platform_here())?;
        let named = |name: &'a Name| Ok::<_, Error>((name, toolchains.get(name)?));
        let runtime = base.runtime.as_ref();
        let runtime = runtime.map(|runtime| Ok::<_, Error>((runtime, named(&runtime.toolchain)?)));
        let package = context.layout.package(variant, flavor.name);
        let not_built = || not_built(variant, flavor.name);
        let text = disk::read_if_there(&package.join(MANIFEST))?.ok_or_else(not_built)?;
        let manifest = serde_json::from_slice(&text).map_err(|error| {
            not_built().detail(format!("`{}`: {error}", context.layout.show(&package.join(MANIFEST))))
        })?;
        Ok(Image {
            context,
            flavor: flavor.name,
            folder: context.layout.image(variant, flavor.name),
            package,
            manifest,
            base,
            packages: named(packages)?,
            runtime: runtime.transpose()?,
            health: Health::new(context, flavors, flavor)?,
        })
    }

    /// Returns the toolchains that it needs.
    fn toolchains(&self) -> impl Iterator<Item = Named<'a>> {
        std::iter::once(self.packages).chain(self.runtime.map(|(_, toolchain)| toolchain))
    }

    fn folder_of(&self, (name, entry): Named<'_>) -> PathBuf {
        toolchain::place(name, entry, &self.context.layout)
    }

    fn steps(&self) -> Vec<Step> {
        let layout = &self.context.layout;
        let mut steps = vec![Step::Check { package: layout.show(&self.package) }];
        steps.extend(self.toolchains().map(|one| self.step_of(one)));
        steps.extend([
            Step::Health { command: self.health.command() },
            Step::Link,
            Step::Write { folder: layout.show(&self.folder) },
        ]);
        steps
    }

    fn step_of(&self, (name, entry): Named<'_>) -> Step {
        let layout = &self.context.layout;
        let is_there = toolchain::is_there(name, entry, layout);
        let steps = if is_there { vec![] } else { entry.steps().iter().map(ToString::to_string).collect() };
        Step::Base { name: name.to_string(), folder: layout.show(&self.folder_of((name, entry))), steps }
    }

    fn carry_out(&self, step: &Step, setup: toolchain::SetupContext<'_>) -> Result<Option<Written>> {
        let status = |verb: &str, what: &str| self.context.ui.status(verb, what);
        match step {
            Step::Check { package } => {
                status("Checking", package);
                self.check()?;
            }
            Step::Base { name, .. } => {
                for (name, entry) in self.toolchains().filter(|(one, _)| one.as_str() == name) {
                    toolchain::provide(name, entry, setup)?;
                }
            }
            Step::Health { .. } => {
                status("Building", "the program of the health check");
                self.health.build()?;
            }
            Step::Link => self.demand_linked()?,
            Step::Write { folder } => {
                status("Writing", folder);
                return self.write().map(Some);
            }
        }
        Ok(None)
    }

    fn check(&self) -> Result<()> {
        let (shown, known) = (self.context.layout.show(&self.package), verify::known(self.context)?);
        let checked = verify::demand(&shown, &archive::read_folder(&self.package)?, &known);
        checked.map(drop).map_err(|error| error.hint(self.build_again()))
    }

    fn build_again(&self) -> String {
        build_command(&self.manifest.variant, self.flavor)
    }

    fn layers(&self) -> Result<Layers> {
        let runtime = match self.runtime {
            Some((runtime, toolchain)) => image::runtime(&self.folder_of(toolchain), &runtime.files)?,
            None => Layer::new(),
        };
        let base = self.folder_of(self.packages);
        Layers::new((&base, accounts()), runtime, &self.health.program(), &self.package)
    }

    fn demand_linked(&self) -> Result<()> {
        let missing = self.layers()?.unanswered()?;
        if missing.is_empty() {
            return Ok(());
        }
        let name = format!("{}-{}", self.manifest.variant, self.flavor);
        Err(Error::no(format!("the programs of {name} would not start in its image"))
            .detail(missing.join("\n"))
            .detail(format!("the base is {}", self.base.about))
            .hint(format!("build it where nothing is newer than in the base: {}", self.build_again()))
            .hint(format!("or add the package that has it to `{}` of ci/toolchains.toml", self.packages.0)))
    }

    fn write(&self) -> Result<Written> {
        let bom = disk::read_if_there(&self.package.join(SBOM))?.unwrap_or_default();
        let bom: Value = serde_json::from_slice(&bom).unwrap_or_default();
        let licences = licences(&bom, &self.base.licences);
        let naming = Naming {
            version: env!("CARGO_PKG_VERSION"),
            licences: &licences,
            environment: &self.base.environment,
        };
        let scratch = self.context.layout.scratch();
        let written = self.layers()?.write(&self.manifest, naming, &scratch, &self.folder);
        written.map_err(|error| disk::blame_full_disk(&scratch, error))
    }

    fn outcome(&self, written: &Written) -> Outcome {
        let (folder, tag) = (self.context.layout.show(&self.folder), tag(&self.manifest));
        let packed: u64 = written.layers.iter().map(|layer| layer.blob.bytes).sum();
        let unpacked: u64 = written.layers.iter().map(|layer| layer.tar_bytes).sum();
        let text = format!(
            "{tag} sha256:{}\n{folder}: {} layers, {:.1} MB, {:.1} MB unpacked\n\
             podman tag \"$(podman pull --quiet oci:{folder}:{tag})\" espalier:{tag}\n\
             podman run --rm -p 8080:8080 -v /path/to/models:/models:ro espalier:{tag} -m /models/model.gguf",
            written.sha256,
            written.layers.len(),
            packed as f64 / 1e6,
            unpacked as f64 / 1e6,
        );
        let layer = |layer: &Sealed| {
            let digest = format!("sha256:{}", layer.blob.sha256);
            json!({ "digest": digest, "bytes": layer.blob.bytes, "unpacked": layer.tar_bytes })
        };
        let layers: Vec<Value> = written.layers.iter().map(layer).collect();
        let digest = format!("sha256:{}", written.sha256);
        Outcome::ok(text, json!({ "folder": folder, "tag": tag, "digest": digest, "layers": layers }))
    }
}
