//! The fairness bench: how a paged server shares a pool that is too small for all who come, in time. Who stands still
//! and for how long, who is overtaken by whom, and what those who wait cost those who run.

mod heard;
mod large;
mod overtaking;
mod report;
mod side;
mod streams;
mod token_times;
mod traffic;
mod waiting;
mod watched;

use std::path::PathBuf;

use report::{Found, Measured, Played};
use side::Side;

use super::history::History;
use super::record::record;
use crate::context::{Context, Outcome};
use crate::error::{Error, Result};
use crate::serving::Serving;
use crate::serving::arena::Arena;
use crate::serving::contestant::Contestant;
use crate::sys::machine::{disk, load};

/// Options of `bench fairness`.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long a scene takes, in seconds; one that has not seen everything by then takes longer.
    pub seconds: u32,
    /// Another server binary, to be compared with.
    pub program: Option<PathBuf>,
    /// Scenes; all of them when there are none.
    pub only: Vec<Scene>,
    /// Threads, and whether a busy machine will do.
    pub serving: Serving,
    /// Write the result to `docs/measurements/`.
    pub record: bool,
}

/// What happens to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// Endless requests, of which three fit at once: how long a stream says nothing.
    Streams,
    /// The same, and now and then a prompt that needs most of the pool: who overtakes it.
    Large,
    /// Prompts that cannot fit beside a long stream: what they cost it.
    Waiting,
}

impl Scene {
    /// Every scene, in the order of the reports.
    pub const ALL: [Scene; 3] = [Scene::Streams, Scene::Large, Scene::Waiting];

    /// As `--only` calls it.
    pub fn name(self) -> &'static str {
        match self {
            Scene::Streams => "streams",
            Scene::Large => "large",
            Scene::Waiting => "waiting",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Scene::Streams => {
                "requests of 5 blocks from 6 clients, -np 4 --kv-paged -c 1024, the trained model"
            }
            Scene::Large => "the same, and prompts of 11 blocks that ask for a slot in turn",
            Scene::Waiting => {
                "a stream of 8,000 tokens and more, prompts of 16,000 that wait, -np 33 --kv-paged -c 23808"
            }
        }
    }

    /// Shows it to a fresh server of this side.
    fn play(self, context: &Context, arena: &Arena<'_>, side: &Side, seconds: u32) -> Result<Measured> {
        let tiny = context.layout.smoke_model();
        let small = || side.server(arena, &tiny, traffic::SLOTS, traffic::CELLS, &[]);
        match self {
            Scene::Streams => streams::measure(&small()?, seconds),
            Scene::Large => large::measure(&small()?, seconds),
            Scene::Waiting => waiting::measure(arena, side, &tiny, seconds),
        }
    }
}

const HISTORY: History = History {
    bench: "fairness",
    identity: &["trees", "processor", "threads", "seconds", "contestants", "scenes"],
};

/// Plays the scenes, each to both binaries in turn, and prints tables; the exit code is 1 when anything is not good.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let mut arena = Arena::prepare(context, options.serving, &[Contestant::Paged], &waiting::spec())?;
    let sides = Side::all(&arena, options.program.as_deref())?;
    check_model(context)?;
    let mut played = Vec::new();
    for scene in chosen(&options.only) {
        let mut measured = Vec::new();
        for side in &sides {
            arena.before_round()?;
            context.ui.status("Measuring", format!("{}, {}", scene.name(), side.name));
            measured.push(scene.play(context, &arena, side, options.seconds)?);
        }
        played.push(Played { scene, measured });
    }
    let found = Found {
        builds: arena.builds.clone(),
        processor: load::processor(),
        threads: arena.threads,
        quiet: arena.quiet,
        options: options.clone(),
        sides,
        played,
    };
    if options.record {
        record(context, HISTORY, &found.builds.pin, report::json(&found))?;
    }
    let code = u8::from(!found.failures().is_empty());
    Ok(Outcome { code, ..Outcome::ok(report::text(&found), report::json(&found)) })
}

fn chosen(only: &[Scene]) -> Vec<Scene> {
    Scene::ALL.into_iter().filter(|one| only.is_empty() || only.contains(one)).collect()
}

fn check_model(context: &Context) -> Result<()> {
    let model = context.layout.smoke_model();
    if disk::exists(&model) {
        return Ok(());
    }
    let shown = context.layout.show(&model);
    Err(Error::usage(format!("there is no model `{shown}`")).hint(format!("git checkout {shown}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_scene_named_means_all() {
        assert_eq!(chosen(&[]), Scene::ALL);
        assert_eq!(chosen(&[Scene::Waiting, Scene::Large]), [Scene::Large, Scene::Waiting]);
    }
}
