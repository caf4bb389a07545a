//! Commands take plain option structs, so that tests and other commands can construct them.

use std::path::{Path, PathBuf};

use super::support::files;

#[test]
fn only_the_command_line_sees_clap() {
    let names = ["clap::", "clap_complete::", "clap_mangen::"];
    let sees_clap = |folder: &Path, file: &String| {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        names.iter().any(|name| text.contains(name))
    };
    let seeing_in = |folder: &PathBuf| {
        let mut seeing = files::list(folder);
        seeing.retain(|file| sees_clap(folder, file));
        seeing
    };
    let seeing: Vec<String> = files::sources_of_the_tool().iter().flat_map(seeing_in).collect();
    assert!(seeing.contains(&"cli.rs".to_string()), "{seeing:?}");
    let is_command_line =
        |file: &&String| ["main.rs", "cli.rs"].contains(&file.as_str()) || file.starts_with("cli/");
    let others: Vec<&String> = seeing.iter().filter(|file| !is_command_line(file)).collect();
    assert!(others.is_empty(), "{others:?}");
}
