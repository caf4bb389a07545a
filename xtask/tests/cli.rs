//! The tool, end to end: the real binary on small synthetic projects, as a new user meets it.
//!
//! Every run has an empty environment and a home of its own; standard output, standard error and
//! the exit code are looked at together, with paths and times made equal.
#![allow(clippy::disallowed_methods, reason = "tests set up and look at real files and processes")]
#![allow(clippy::too_many_lines, reason = "a scene is told in one piece")]

mod cli {
    mod apply;
    mod bench;
    mod bisect;
    mod bisect_histories;
    mod build;
    mod build_fails;
    mod canary;
    mod compiler_cache;
    mod disk_full;
    mod docs;
    mod doctor;
    mod documented_commands;
    mod drift;
    mod edit;
    mod edited_tree;
    mod encodings;
    mod export;
    mod fetch;
    mod fetch_fails;
    mod fetch_npm;
    mod flavors;
    mod gate_attention;
    mod gate_features;
    mod gate_logits;
    mod gate_promises;
    mod gate_servers;
    mod gate_suites;
    mod gate_weights;
    mod gc;
    mod git_defaults;
    mod github;
    mod hints;
    mod history_oracle;
    mod hostile;
    mod image;
    mod import_fork;
    mod import_layouts;
    mod import_patches;
    mod killed;
    mod killed_by_call;
    mod killed_edit;
    mod killed_import;
    mod killed_rebase;
    mod killed_sync;
    mod killed_writers;
    mod line_ends;
    mod lint;
    mod lock;
    mod long;
    mod matrix;
    mod model;
    mod names;
    mod newest;
    mod no_file_forgotten;
    mod no_flavors;
    mod ours;
    mod overlay;
    mod page;
    mod pin_by_commit;
    mod pins;
    mod pipes;
    mod rebase;
    mod rebase_conflicts;
    mod rebase_lookalikes;
    mod rebase_odd;
    mod rebase_taken;
    mod rebase_together;
    mod references;
    mod release;
    mod report_sizes;
    mod rooms;
    mod run;
    mod series_oracle;
    mod smoke_operations;
    mod smoke_rpc;
    mod status;
    mod support;
    mod sync;
    mod terminal;
    mod test_changed;
    mod together;
    mod toolchain;
    mod toolchain_fails;
    mod trailers;
    mod twice;
    mod verify;
    mod web_page;
    mod who_sees_clap;
    mod workflows;
}
