//! PURE: plans, as data. Parses text that the caller has loaded; does no I/O.
//!
//! `pins` and `flavors` are written by people, `lock` is generated, `layout` defines the paths, `steps` is the list of
//! steps that both a run and `--dry-run` follow, `line` is upstream's line of commits.

pub mod attributes;
pub mod called;
pub mod commit_property;
pub mod flavors;
pub mod gc;
pub mod github_reply;
pub mod issues;
pub mod layout;
pub mod lint_file;
pub mod lock;
pub mod matrix;
pub mod models;
pub mod name;
pub mod next_command;
pub mod overlay;
pub mod pending;
pub mod pins;
pub mod proof;
pub mod random;
pub mod rebase_state;
pub mod reference;
pub mod region;
pub mod snippet;
pub mod steps;
pub mod suites;
pub mod tested;
pub mod toolchains;
pub mod variables;
pub mod words;
pub mod workflow_rules;
