//! A run of a bench: its head, its result, and the files that it is written to.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use espalier_core::context::{Context, Outcome};
use espalier_core::day::day;
use espalier_core::error::Result;
use espalier_core::next_command::quoted;
use espalier_core::sys::machine::{clock, disk, load};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::history::History;
use crate::serving::bench_fixture::{BenchFixture, Builds};

/// The files to write.
#[derive(Clone, Debug, Default, Args)]
pub struct Keep {
    /// Write the result and its plot to `docs/measurements/`.
    #[arg(long)]
    pub record: bool,
    /// Write the plot to this file (SVG).
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

impl Keep {
    /// The files of a bench without a plot.
    pub(super) fn without_plot(record: bool) -> Keep {
        Keep { record, plot: None }
    }
}

/// The head of every record: the build, the hardware, and the command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Head {
    /// Tag or commit of the pin.
    pub pin: String,
    /// Variant under test; `None` if it is the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Tree ids of the builds under test, by variant.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub trees: BTreeMap<String, String>,
    /// Model name of the processor; `None` where the system does not report it.
    pub processor: Option<String>,
    /// Vector instruction sets: machines with the same processor name may differ in features that decide the speed.
    pub processor_flags: Vec<String>,
    /// Threads of each program under test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// Whether no other process used the machine; `None` where nothing is timed, or where a busy machine is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet: Option<bool>,
    /// Day of the run.
    pub date: String,
    /// Command line of the run; empty if a run of other checks included it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
}

impl Head {
    /// Returns the head of a run that measures this process or programs that it compiled, at the pin of the default
    /// variant.
    pub(super) fn at_pin(context: &Context) -> Result<Head> {
        let pins = context.pins()?;
        let pin = pins.pin_of(pins.variant(None)?).revision.to_string();
        Ok(Head {
            pin,
            processor: load::processor(),
            processor_flags: load::processor_flags(),
            date: day(clock::now().cast_signed()),
            command: command(std::env::args_os().map(|word| word.to_string_lossy().into_owned())),
            ..Head::default()
        })
    }

    /// Returns the head of a run that measured servers.
    pub(super) fn of_servers(context: &Context, fixture: &BenchFixture<'_>) -> Result<Head> {
        let (Builds { pin, trees }, threads) = (fixture.builds.clone(), Some(fixture.threads));
        let (variant, quiet) = (fixture.variants.named(), fixture.is_quiet());
        Ok(Head { pin, variant, trees, threads, quiet, ..Head::at_pin(context)? })
    }

    /// Returns the number of threads, 0 if unknown.
    pub(super) fn threads(&self) -> usize {
        self.threads.unwrap_or_default()
    }

    /// Returns the name of the processor.
    pub(super) fn machine(&self) -> &str {
        self.processor.as_deref().unwrap_or("this machine")
    }
}

/// Returns the command to type for a run with these arguments, in whichever folder the project is.
fn command(words: impl Iterator<Item = String>) -> String {
    const ROOT: &str = "--root";
    let (mut typed, mut words) = (Vec::new(), words.skip_while(|word| word != "bench"));
    while let Some(word) = words.next() {
        match word.strip_prefix(ROOT) {
            // Its value is the next word.
            Some("") => drop(words.next()),
            Some(value) if value.starts_with('=') => {}
            _ => typed.push(quoted(&word)),
        }
    }
    if typed.is_empty() { String::new() } else { format!("cargo xtask {}", typed.join(" ")) }
}

/// The result of a bench.
pub(super) trait BenchResult: Serialize {
    /// The bench, and the keys that identify a run.
    const HISTORY: History;

    /// Renders the tables.
    fn tables(&self, head: &Head) -> String;

    /// Draws the plot, if there is one.
    fn plot(&self, _head: &Head) -> Option<Plot> {
        None
    }

    /// Returns one line for every violation; none if the run passed.
    fn failures(&self) -> &[String] {
        &[]
    }
}

/// A plot of a result.
pub(super) struct Plot {
    /// Name of the file, without the pin.
    pub(super) name: String,
    pub(super) svg: String,
}

/// One run of a bench.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record<T> {
    #[serde(flatten)]
    pub(super) head: Head,
    #[serde(flatten)]
    pub(super) result: T,
}

/// Heading of a report whose figures are not meaningful as measurements.
const NOT_QUIET: &str =
    "THE MACHINE WAS NOT QUIET: these figures show that the bench works and nothing else.";

impl<T: BenchResult> Record<T> {
    /// Renders the tables, and the violations.
    pub(super) fn text(&self) -> String {
        let warning = if self.head.quiet == Some(false) { format!("{NOT_QUIET}\n\n") } else { String::new() };
        let failures = self.result.failures().iter();
        let failures: String = failures.map(|failure| format!("\nnot good: {failure}")).collect();
        format!("{warning}{}{failures}", self.result.tables(&self.head))
    }

    /// Writes the files that `keep` requests; the exit code is 1 on any violation.
    pub(super) fn finish(&self, context: &Context, keep: &Keep) -> Result<Outcome> {
        let run = json!(self);
        let plot = self.result.plot(&self.head);
        if let (Some(path), Some(plot)) = (&keep.plot, &plot) {
            disk::write_atomically(path, plot.svg.as_bytes())?;
        }
        if keep.record {
            self.record(context, run.clone(), plot)?;
        }
        let code = u8::from(!self.result.failures().is_empty());
        Ok(Outcome { code, ..Outcome::ok(self.text(), run) })
    }

    /// Adds the run to the history of its pin, and writes its plot.
    fn record(&self, context: &Context, run: Value, plot: Option<Plot>) -> Result<()> {
        let pin = &self.head.pin;
        let file = context.layout.measurements(T::HISTORY.bench, pin, "json");
        let before = disk::read_if_there(&file)?;
        let after = T::HISTORY.with(before.as_deref(), pin, run)?;
        disk::write_atomically(&file, after.as_bytes())?;
        context.ui.status("Recorded", context.layout.show(&file));
        match plot {
            Some(Plot { name, svg }) => {
                disk::write_atomically(&context.layout.measurements(&name, pin, "svg"), svg.as_bytes())
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The head of a quiet run on two threads.
    pub(in crate::bench) fn head() -> Head {
        Head {
            pin: "v1".to_string(),
            trees: BTreeMap::from([("stock".to_string(), "a1".to_string())]),
            processor: Some("Some CPU".to_string()),
            threads: Some(2),
            quiet: Some(true),
            ..Head::default()
        }
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Counted {
        failures: Vec<String>,
    }

    impl BenchResult for Counted {
        const HISTORY: History = History { bench: "counted", identity: "" };

        fn tables(&self, head: &Head) -> String {
            format!("at {}\n", head.pin)
        }

        fn failures(&self) -> &[String] {
            &self.failures
        }
    }

    fn record(quiet: bool, failures: &[&str]) -> Record<Counted> {
        let failures = failures.iter().map(ToString::to_string).collect();
        Record { head: Head { quiet: Some(quiet), ..head() }, result: Counted { failures } }
    }

    #[test]
    fn a_busy_machine_and_violations_are_named() {
        assert_eq!(record(true, &[]).text(), "at v1\n");
        assert_eq!(record(false, &["one"]).text(), format!("{NOT_QUIET}\n\nat v1\n\nnot good: one"));
    }

    #[test]
    fn head_and_result_are_one_object_and_read_back() {
        let record = record(false, &["one"]);
        let run = json!(record);
        assert_eq!(
            (&run["pin"], &run["quiet"], &run["failures"][0]),
            (&json!("v1"), &json!(false), &json!("one"))
        );
        let read = Record::<Counted>::deserialize(&run).unwrap();
        assert_eq!((read.head, read.result), (record.head, record.result));
        // Older records have shorter heads.
        assert_eq!(Record::<Counted>::deserialize(&json!({ "failures": [] })).unwrap().head, Head::default());
    }

    #[test]
    fn the_command_is_what_was_typed() {
        let words = |words: &str| command(words.split(' ').map(String::from));
        assert_eq!(words("espalier-qa --root x bench burst --record"), "cargo xtask bench burst --record");
        let moved = words("espalier-qa bench burst --root /x --rounds 3 --root=/x");
        assert_eq!(moved, "cargo xtask bench burst --rounds 3", "the folder of one machine is not recorded");
        assert_eq!(words("espalier-qa test"), "");
    }
}
