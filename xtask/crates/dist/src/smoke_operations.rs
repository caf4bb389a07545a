//! `cargo xtask smoke --operations`: compares every operation of the smoke test's model on the accelerator with the
//! processor, using upstream's own tests. A correct answer alone may have been computed by the wrong device.

use std::path::{Path, PathBuf};

use espalier_core::config::flavors::Flavor;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::Run;
use espalier_core::sys::project::run_lock::{self, Access};
use serde_json::json;

use super::build::{self, Build};
use super::build_args::Which;
use super::equipment::{self, Device};
use super::smoke;
use super::watched::Watched;
use crate::plan::operations::{self, Tested};
use crate::sys::package;

/// Writes the operations of a model to a file.
const WRITER: &str = "test-export-graph-ops";

/// Computes them on every device and compares the results with the processor's.
const COMPARER: &str = "test-backend-ops";

/// Names a module that ggml loads besides those beside the program.
const ONE_MORE_MODULE: &str = "GGML_BACKEND_PATH";

/// Compiles both programs in the build folder of the flavor, or of its host, and runs them.
pub fn command(context: &Context, which: &Which) -> Result<Outcome> {
    let (pins, flavors) = (context.pins()?, context.flavors()?);
    let variant = pins.variant(which.variant.as_deref())?;
    let own = flavors.get(&which.flavor)?;
    let server = smoke::server_of(context, &variant.name, own.name)?;
    let flavor = flavors.host(own.entry).unwrap_or(own);
    let options = build::Options::default();
    let build = Build { context, options: &options, pins: &pins, variant, flavors: &flavors, flavor };
    let _lock = run_lock::take(&context.layout, &context.ui, Access::Build)?;
    let programs = build.compile_tests(&[WRITER, COMPARER].map(String::from))?;
    let name = format!("{}-{}", variant.name, own.name);
    let comparison = Comparison {
        context,
        programs,
        model: smoke::model(context)?,
        module: module(own.entry, server.parent())?,
        device: equipment::device(context, &flavors, own.entry)?,
        list: context.layout.log(&format!("operations-list-{name}")),
        name: &name,
    };
    let tested = comparison.run()?;
    for Tested { device, all, unsupported, .. } in &tested {
        let says =
            format!("{name}: {all} operations on {device} as on the processor, {unsupported} left to it");
        context.ui.status("Tested", says);
    }
    let devices = tested
        .iter()
        .map(|one| json!({ "device": one.device, "operations": one.all, "unsupported": one.unsupported }));
    Ok(Outcome::ok("", devices.collect()))
}

/// Returns the accelerator's module in the package; `None` if the accelerator is linked into the programs.
fn module(flavor: &Flavor, folder: Option<&Path>) -> Result<Option<PathBuf>> {
    let (Some(folder), true) = (folder, flavor.host.is_some()) else { return Ok(None) };
    let files = disk::files_below(folder)?;
    Ok(files.iter().find(|file| package::is_one_of(file, &flavor.modules)).map(|file| folder.join(file)))
}

/// Makes glibc return zeroed memory. Upstream's program compares all of a tensor's memory, including padding between
/// rows that was never written: left-over bytes may be NaN, which counts as a difference (seen at v0.5.0).
const MEMORY_OF_ZEROS: (&str, &str) = ("MALLOC_PERTURB_", "255");

struct Comparison<'a> {
    context: &'a Context,
    programs: PathBuf,
    model: PathBuf,
    module: Option<PathBuf>,
    device: Device,
    list: PathBuf,
    name: &'a str,
}

impl Comparison<'_> {
    fn run(&self) -> Result<Vec<Tested>> {
        let write = self.program(WRITER).arg("--model").arg(&self.model).arg("--output").arg(&self.list);
        self.watch(write, "written", &mut String::new())?;
        let mut output = String::new();
        let compare = self.program(COMPARER).args(["test", "--test-file"]).arg(&self.list);
        let compare = compare.env(MEMORY_OF_ZEROS.0, MEMORY_OF_ZEROS.1);
        let ended = self.watch(compare, "compared", &mut output);
        let tested = operations::read(&output);
        if let Some(wrong) = tested.iter().find(|one| one.passed < one.all) {
            return Err(self.explain(wrong, &output));
        }
        ended?;
        if tested.iter().all(|one| one.all == 0) {
            return Err(Error::no(format!("{COMPARER} found no device but the processor"))
                .hint("see what is there and what is not: cargo xtask doctor"));
        }
        Ok(tested)
    }

    fn program(&self, name: &str) -> Run {
        let run = self.device.run(&self.programs.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)));
        self.module.iter().fold(run, |run, module| run.env(ONE_MORE_MODULE, module))
    }

    fn explain(&self, wrong: &Tested, output: &str) -> Error {
        let Tested { device, passed, all, .. } = wrong;
        let what =
            format!("{device} computes {} of {all} operations otherwise than the processor", all - passed);
        let log = self.context.layout.log(&self.log("compared"));
        let named = operations::failed(output).take(5).fold(Error::no(what), Error::detail);
        named.hint(format!("the whole output: {}", self.context.layout.show(&log)))
    }

    fn log(&self, step: &str) -> String {
        format!("operations-{step}-{}", self.name)
    }

    fn watch(&self, run: Run, step: &str, output: &mut String) -> Result<()> {
        let step = Watched { context: self.context, name: self.log(step), folder: self.programs.clone() };
        step.run(run, |line| {
            output.push_str(line);
            output.push('\n');
        })
    }
}
