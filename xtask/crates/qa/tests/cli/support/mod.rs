//! Synthetic projects, and helpers to run the tool on them.

pub mod by_call;
pub mod editing;
pub mod files;
pub mod gating;
pub mod generations;
pub mod git;
pub mod github;
pub mod held_lock;
pub mod history;
pub mod history_files;
pub mod imaging;
pub mod importing;
pub mod kill;
pub mod llama_server;
pub mod made_up;
pub mod moving;
pub mod npm;
pub mod output;
pub mod own_copy;
pub mod program_path;
pub mod project;
pub mod random;
pub mod registries;
pub mod saved;
pub mod sdist;
pub mod sealing;
pub mod stacked;
pub mod suites;
pub mod syncing;
pub mod upstream;
pub mod watched;
pub mod wheels;

pub use output::Output;
pub use project::{Project, Source};

/// Returns the number in an environment variable, or `usual` where it is not set.
pub fn count(variable: &str, usual: usize) -> usize {
    std::env::var(variable).map_or(usual, |number| number.parse().expect(variable))
}
