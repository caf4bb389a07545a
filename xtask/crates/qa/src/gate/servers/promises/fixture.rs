//! Fixture of the promise checks: servers of the program under test, and the violations found.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use espalier_core::config::name::Name;
use espalier_core::config::pins::Pins;
use espalier_core::context::Context;
use espalier_core::error::Result;
use espalier_core::sys::machine::process::Run;
use espalier_core::sys::machine::{disk, owned};
use espalier_core::sys::net::server::{Server, help_of};
use espalier_modelgen::{
    AdapterSpec, Architecture, DraftKind, DraftSpec, ModelSpec, SlidingWindow, VisionSpec, WeightType,
};
use serde_json::Value;

use super::Checked;
use crate::gate::servers::{ALONE, Compared};
use crate::serving::adapter;
use crate::serving::kv_pool;
use crate::serving::reference::Reference;
use crate::serving::switches;
use crate::serving::verdict::{self, Answer};
use crate::sys::models;

/// The program, its models, and the results so far.
pub struct PromiseFixture<'a> {
    context: &'a Context,
    checked: Checked<'a>,
    folder: PathBuf,
    compared: Compared,
    not_reproduced: Vec<String>,
}

/// Model and adapters of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// The trained model.
    Trained,
    /// Random weights: slower, and its tokens are bytes.
    Random,
    /// Random weights, with an adapter.
    Adapted,
    /// Random weights, with two adapters.
    AdaptedTwice,
    /// Random weights with an adapter whose product overflows at scale 1000.
    Overflowing,
    /// The weights of `Random`, and another RoPE base in the metadata.
    OtherBase,
    /// Random weights with a head size of 80, which no cache type with blocks of 32 or 64 fits.
    OddHeads,
    /// Random weights with an encoder for images, and an adapter.
    Seeing,
    /// Random weights; half of the layers have a sliding window.
    Windowed,
    /// The same with a window of more than two blocks, which does not end where a block ends.
    WidelyWindowed,
    /// The same with a window of eight blocks.
    LongWindowed,
    /// Random weights of another architecture, one of [`OTHER_ARCHITECTURES`].
    Small(Architecture),
    /// Random weights; most layers have a recurrent state, so blocks are shared where a snapshot of it exists.
    Recurrent,
    /// The same with an adapter whose product overflows at scale 1000.
    RecurrentOverflowing,
    /// Random weights with an encoder for images, whose tokens share a position (M-RoPE).
    SeeingInPlace,
    /// The same; most layers have a recurrent state.
    SeeingRecurrent,
    /// The model of `Windowed` with an encoder for images.
    SeeingWindowed,
    /// Random weights; most layers have a recurrent state, and a block of its own predicts the token after the next.
    Predicting,
}

/// Architectures that only [`Model::Small`] has: other states, windows with attention sinks, latent attention, experts.
pub const OTHER_ARCHITECTURES: [Architecture; 7] = [
    Architecture::GptOss,
    Architecture::Lfm2,
    Architecture::GraniteHybrid,
    Architecture::Jamba,
    Architecture::DeepSeek2,
    Architecture::Qwen2Vl,
    Architecture::Qwen3Next,
];

/// Environment variables of a server.
pub type Variables = &'static [(&'static str, &'static str)];

/// Features are off.
pub const PLAIN: Variables = &[];

/// The states of gated delta nets are computed in their cache.
pub const IN_PLACE: Variables = &[(switches::ENABLE, switches::GDN_RECURRENCE)];

/// A draft model with random weights that reads hidden states of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drafting {
    /// The target.
    pub model: Model,
    /// The value of `--spec-type`.
    pub kind: &'static str,
    /// File of the draft model; `None`: it is a part of the target.
    file: Option<&'static str>,
}

impl Drafting {
    /// One of each kind, and one more whose target has a recurrent state.
    pub const ALL: [Drafting; 4] = [
        Drafting { model: Model::Random, kind: "draft-eagle3", file: Some("eagle3.gguf") },
        Drafting { model: Model::Recurrent, kind: "draft-eagle3", file: Some("recurrent-eagle3.gguf") },
        Drafting { model: Model::Random, kind: "draft-dflash", file: Some("dflash.gguf") },
        Drafting::PREDICTING,
    ];

    /// One that is a part of its target, which has a recurrent state.
    pub const PREDICTING: Drafting = Drafting { model: Model::Predicting, kind: "draft-mtp", file: None };

    /// A draft model that reads no hidden states: the target itself.
    pub const SIMPLE: Drafting =
        Drafting { model: Model::Random, kind: "draft-simple", file: Some("model.gguf") };

    /// One with an encoder for images, which the draft model cannot follow.
    pub const SEEING: Drafting =
        Drafting { model: Model::Seeing, kind: "draft-eagle3", file: Some("eagle3.gguf") };

    /// One with a recurrent state of the draft model, which is not rolled back beside a target without one.
    pub const fn with_a_state(model: Model) -> Drafting {
        Drafting { model, kind: "draft-simple", file: Some("recurrent.gguf") }
    }
}

/// Result of checking one promise.
pub struct Ended {
    /// Violations, one line each.
    pub broken: Vec<String>,
    /// Situations that did not arise, one line each: nothing was learned about the promise there.
    pub not_reproduced: Vec<String>,
    /// Duration in seconds.
    pub seconds: f64,
}

impl<'a> PromiseFixture<'a> {
    /// Writes the models and opens the fixture.
    pub fn open(context: &'a Context, checked: Checked<'a>) -> Result<PromiseFixture<'a>> {
        owned::claim(&context.layout)?;
        let folder = context.layout.generated().join("gate/promises");
        disk::create_folder(&folder)?;
        let (compared, not_reproduced) = (Compared::default(), Vec::new());
        let fixture = PromiseFixture { context, checked, folder, compared, not_reproduced };
        let model = ModelSpec::small(Architecture::Llama, WeightType::F16);
        models::write(&fixture.file("model.gguf"), &model)?;
        models::write(&fixture.file("odd-heads.gguf"), &ModelSpec { head_dim: 80, ..model.clone() })?;
        models::write(&fixture.file("other-base.gguf"), &ModelSpec { rope_base: 1000, ..model.clone() })?;
        for (file, architecture) in
            [("windowed.gguf", Architecture::Gemma3), ("recurrent.gguf", Architecture::Qwen35)]
        {
            models::write(&fixture.file(file), &ModelSpec::small(architecture, WeightType::F16))?;
        }
        fixture.write_others()?;
        models::write_vision(&fixture.file("vision.gguf"), &VisionSpec::small(model.n_embd))?;
        fixture.write_adapters()?;
        fixture.write_seeing()?;
        fixture.write_drafting(&model)?;
        Ok(fixture)
    }

    fn write_others(&self) -> Result<()> {
        let windowed = ModelSpec::small(Architecture::Gemma3, WeightType::F16);
        for (file, tokens) in [("widely-windowed.gguf", 150), ("long-windowed.gguf", 512)] {
            let sliding_window = SlidingWindow { tokens, ..windowed.sliding_window.clone() };
            models::write(&self.file(file), &ModelSpec { sliding_window, ..windowed.clone() })?;
        }
        OTHER_ARCHITECTURES.into_iter().try_for_each(|architecture| {
            let spec = ModelSpec::small(architecture, WeightType::F16);
            models::write(&self.file(&format!("{}.gguf", architecture.name())), &spec)
        })
    }

    /// Writes the models whose images have two dimensions, and their encoder.
    fn write_seeing(&self) -> Result<()> {
        let model = ModelSpec::small(Architecture::Qwen2Vl, WeightType::F16);
        models::write(&self.file("in-place.gguf"), &model)?;
        models::write_vision(&self.file("vision-in-place.gguf"), &VisionSpec::small_qwen2vl(model.n_embd))
    }

    fn write_drafting(&self, model: &ModelSpec) -> Result<()> {
        let recurrent = ModelSpec::small(Architecture::Qwen35, WeightType::F16);
        models::write(&self.file("predicting.gguf"), &ModelSpec::small_with_nextn(WeightType::F16))?;
        for (file, kind, target) in [
            ("eagle3.gguf", DraftKind::Eagle3, model),
            ("recurrent-eagle3.gguf", DraftKind::Eagle3, &recurrent),
            ("dflash.gguf", DraftKind::DFlash, model),
        ] {
            models::write_draft(&self.file(file), &DraftSpec { kind, target: target.clone(), seed: 1 })?;
        }
        Ok(())
    }

    fn write_adapters(&self) -> Result<()> {
        let recurrent = ModelSpec::small(Architecture::Qwen35, WeightType::F16);
        let overflowing = AdapterSpec { alpha: f32::MAX, ..adapter::spec() };
        for (file, spec) in [
            ("adapter.gguf", adapter::spec()),
            ("other-adapter.gguf", AdapterSpec { seed: 2, ..adapter::spec() }),
            ("overflowing-adapter.gguf", overflowing.clone()),
            ("recurrent-overflowing-adapter.gguf", AdapterSpec { model: recurrent, ..overflowing }),
        ] {
            models::write_adapter(&self.file(file), &spec)?;
        }
        Ok(())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Checks one promise; errors of `run` count as violations.
    pub fn begin(&mut self, name: &str, run: impl FnOnce(&mut PromiseFixture<'a>) -> Result<()>) -> Ended {
        self.context.ui.status("Checking", format!("promise {name}"));
        let begin = Instant::now();
        let ended = run(self);
        let mut broken = std::mem::take(&mut self.compared).failures;
        broken.extend(ended.err().map(|error| error.to_string()));
        let short = |lines: &[String]| lines.iter().map(|line| shorten(line)).collect();
        let not_reproduced = std::mem::take(&mut self.not_reproduced);
        let (broken, not_reproduced) = (short(&broken), short(&not_reproduced));
        Ended { broken, not_reproduced, seconds: begin.elapsed().as_secs_f64() }
    }

    /// Starts a server with these arguments.
    ///
    /// # Errors
    ///
    /// It does not start, or it should page its cache and runs unpaged: what is checked then proves nothing.
    pub fn serve(&self, model: Model, arguments: &[&str]) -> Result<Server> {
        self.serve_with(model, arguments, &[])
    }

    /// Starts a server with drafts and these arguments. Errors as for [`PromiseFixture::serve`].
    pub fn serve_drafting(&self, drafting: Drafting, arguments: &[&str]) -> Result<Server> {
        self.serve_drafting_with(drafting, arguments, &[])
    }

    /// Like [`PromiseFixture::serve_drafting`], with additional environment variables.
    pub fn serve_drafting_with(
        &self,
        drafting: Drafting,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Server> {
        let words = self.arguments_of_drafts(drafting);
        let words: Vec<&str> = words.iter().map(String::as_str).chain(arguments.iter().copied()).collect();
        self.serve_with(drafting.model, &words, variables)
    }

    /// Starts a server with drafts which runs unpaged whatever its arguments say.
    pub fn serve_drafting_unpaged(&self, drafting: Drafting, arguments: &[&str]) -> Result<Server> {
        let words = self.arguments_of_drafts(drafting);
        let words: Vec<&str> = words.iter().map(String::as_str).chain(arguments.iter().copied()).collect();
        self.start(drafting.model, &words, &[])
    }

    fn arguments_of_drafts(&self, drafting: Drafting) -> Vec<String> {
        let kind = ["--spec-type".to_string(), drafting.kind.to_string()];
        let file = drafting.file.map(|name| ["-md".to_string(), self.file(name).display().to_string()]);
        kind.into_iter().chain(file.into_iter().flatten()).collect()
    }

    /// Like [`PromiseFixture::serve`], with additional environment variables.
    pub fn serve_with(&self, model: Model, arguments: &[&str], variables: &[(&str, &str)]) -> Result<Server> {
        let server = self.start(model, arguments, variables)?;
        if kv_pool::should_be_paged(arguments) {
            kv_pool::must_be_paged(&server)?;
        }
        Ok(server)
    }

    fn start(&self, model: Model, arguments: &[&str], variables: &[(&str, &str)]) -> Result<Server> {
        self.start_run(self.run(), model, arguments, variables)
    }

    /// Starts a server none of whose files, its log included, can grow beyond a limit in units of 512
    /// bytes; of 1,024 in some shells. A write beyond it fails as on a full disk. Needs a shell.
    pub fn serve_with_file_limit(&self, model: Model, arguments: &[&str], limit: usize) -> Result<Server> {
        let shell = Run::new("sh").args(["-c", FILE_LIMIT, "sh", &limit.to_string()]);
        self.start_run(with_one_thread(shell.arg(self.checked.program)), model, arguments, &[])
    }

    fn start_run(
        &self,
        run: Run,
        model: Model,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Server> {
        let run = run.args(self.arguments_of(model)).args(arguments);
        self.start_with(run, variables)
    }

    /// Returns the log of the last server that this fixture started.
    pub fn log_text(&self) -> Result<String> {
        disk::read_text(&self.context.layout.log("gate-promise"))
    }

    /// Returns the log once it has `text`, and after three seconds as it is: a server writes its log on a thread of its
    /// own, on a busy machine after its first answer.
    pub fn log_with(&self, text: &str) -> Result<String> {
        for _ in 0..30 {
            let log = self.log_text()?;
            if log.contains(text) {
                return Ok(log);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        self.log_text()
    }

    /// Starts a server with these arguments alone, without a model.
    pub fn serve_nothing(&self, arguments: &[&str]) -> Result<Server> {
        self.serve_nothing_with(arguments, &[])
    }

    /// As [`PromiseFixture::serve_nothing`], with environment variables.
    pub fn serve_nothing_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Result<Server> {
        self.start_with(self.run().args(arguments), variables)
    }

    fn start_with(&self, run: Run, variables: &[(&str, &str)]) -> Result<Server> {
        let run = variables.iter().fold(run, |run, (name, value)| run.env(name, value));
        Server::start(run, &self.context.layout.log("gate-promise"))
    }

    /// Returns the program's `--help` output.
    pub fn help(&self) -> Result<String> {
        help_of(self.checked.program)
    }

    fn run(&self) -> Run {
        with_one_thread(Run::new(self.checked.program))
    }

    /// Starts the reference: the same program, unpaged, one request at a time.
    pub fn reference(&self, model: Model, arguments: &[&str]) -> Result<Reference> {
        let run = self.run().args(self.arguments_of(model)).args(ALONE).arg("--kv-unified").args(arguments);
        let stock = Server::start(run, &self.context.layout.log("gate-reference"))?;
        Ok(Reference { stock, tolerance: verdict::tolerance(&[]) })
    }

    fn arguments_of(&self, model: Model) -> Vec<String> {
        let file = |name: &str| self.file(name).display().to_string();
        let plain = |name: &str| vec!["--model".to_string(), file(name)];
        let adapted =
            |name: &str, adapter: String| [plain(name), vec!["--lora".to_string(), adapter]].concat();
        match model {
            Model::Trained => vec!["--model".to_string(), self.trained_model()],
            Model::Random => plain("model.gguf"),
            Model::OtherBase => plain("other-base.gguf"),
            Model::OddHeads => plain("odd-heads.gguf"),
            Model::Windowed => plain("windowed.gguf"),
            Model::WidelyWindowed => plain("widely-windowed.gguf"),
            Model::LongWindowed => plain("long-windowed.gguf"),
            Model::Small(architecture) => plain(&format!("{}.gguf", architecture.name())),
            Model::Recurrent => plain("recurrent.gguf"),
            Model::Adapted => adapted("model.gguf", file("adapter.gguf")),
            Model::AdaptedTwice => {
                adapted("model.gguf", format!("{},{}", file("adapter.gguf"), file("other-adapter.gguf")))
            }
            Model::Overflowing => adapted("model.gguf", file("overflowing-adapter.gguf")),
            Model::RecurrentOverflowing => {
                adapted("recurrent.gguf", file("recurrent-overflowing-adapter.gguf"))
            }
            Model::Predicting => plain("predicting.gguf"),
            Model::Seeing => self.seeing(Model::Adapted, "vision.gguf"),
            Model::SeeingInPlace => [plain("in-place.gguf"), self.encoder("vision-in-place.gguf")].concat(),
            Model::SeeingRecurrent => self.seeing(Model::Recurrent, "vision-in-place.gguf"),
            Model::SeeingWindowed => self.seeing(Model::Windowed, "vision.gguf"),
        }
    }

    fn seeing(&self, model: Model, encoder: &str) -> Vec<String> {
        [self.arguments_of(model), self.encoder(encoder)].concat()
    }

    fn encoder(&self, name: &str) -> Vec<String> {
        vec!["--mmproj".to_string(), self.file(name).display().to_string()]
    }

    /// Returns the path of a file of this repository.
    pub fn document(&self, name: &str) -> Result<PathBuf> {
        self.context.file_of_espalier(name)
    }

    /// Returns the path of a file of the sources that the program was built from.
    pub fn source(&self, path: &str) -> PathBuf {
        self.checked.tree.join(path)
    }

    /// Returns the name of the pin of those sources.
    pub fn pin(&self) -> &'a Name {
        self.checked.pin
    }

    /// Returns `pins.toml`.
    pub fn pins(&self) -> Result<Pins> {
        self.context.pins()
    }

    /// Returns the path of the trained model.
    pub fn trained_model(&self) -> String {
        self.context.layout.smoke_model().display().to_string()
    }

    /// Creates an empty folder for files of a server.
    pub fn empty_folder(&self, name: &str) -> Result<String> {
        let folder = self.folder.join(name);
        owned::remove_folder(&folder)?;
        disk::create_folder(&folder)?;
        Ok(folder.display().to_string())
    }

    /// Copies the trained model into an empty folder, for a server that looks for its models there.
    pub fn folder_of_models(&self, file: &str) -> Result<String> {
        let folder = self.empty_folder("models")?;
        let bytes = disk::read(&self.context.layout.smoke_model())?;
        disk::write_atomically(&Path::new(&folder).join(file), &bytes)?;
        Ok(folder)
    }

    /// Records a violation unless `holds`.
    pub fn must(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.compared.failures.push(otherwise());
        }
    }

    /// Records that the situation which the promise is about did not arise, unless `arose`; a fast machine may be the
    /// reason. That is not a violation, and nothing that depends on the situation may be checked then. Returns `arose`.
    pub fn arose(&mut self, arose: bool, otherwise: impl FnOnce() -> String) -> bool {
        if !arose {
            self.not_reproduced.push(otherwise());
        }
        arose
    }

    /// Whether no violation was found so far.
    pub fn holds_so_far(&self) -> bool {
        self.compared.failures.is_empty()
    }

    /// Checks that an answer to `/completion` matches the reference's.
    pub fn hold(&mut self, what: &str, expected: &Answer, tolerance: f64, answer: (u16, &Value)) {
        self.compared.hold(what, expected, tolerance, answer);
    }

    /// Checks that tokens match the reference's.
    pub fn hold_tokens(&mut self, what: &str, expected: &Answer, tolerance: f64, tokens: &[i64]) {
        self.compared.hold_tokens(what, expected, tolerance, tokens);
    }

    /// Checks the status of an answer.
    pub fn must_return(&mut self, what: &str, (status, body): &(u16, Value), expected: u16) {
        self.must(*status == expected, || format!("{what}: returned {status} instead of {expected}: {body}"));
    }

    /// Checks the number of prompt tokens that an answer found in the cache.
    pub fn must_have_found(&mut self, what: &str, (status, body): &(u16, Value), tokens: usize) {
        let found = body["timings"]["cache_n"].as_u64();
        self.must(found == u64::try_from(tokens).ok(), || {
            let found = found.map_or_else(|| body.to_string(), |found| found.to_string());
            format!("{what}: found {found} tokens instead of {tokens}, status {status}")
        });
    }
}

/// Limits the size of each file that the program writes, in blocks of 512 or 1,024 bytes.
const FILE_LIMIT: &str = r#"ulimit -f "$1" && shift && exec "$@""#;

/// One thread, and none of the user's features.
fn with_one_thread(run: Run) -> Run {
    switches::without_features(run).args(["-t", "1"])
}

/// Cuts a long line: an answer may be very long.
fn shorten(line: &str) -> String {
    match line.char_indices().nth(400) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None => line.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_between_letters() {
        assert_eq!(shorten("short"), "short");
        assert_eq!(shorten(&"ü".repeat(500)), format!("{} ...", "ü".repeat(400)));
    }
}
