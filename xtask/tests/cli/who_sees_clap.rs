//! A command gets plain options, so that tests and other commands can give it some too.

use std::path::Path;

use super::support::files;

#[test]
fn only_the_command_line_sees_clap() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let names = ["clap::", "clap_complete::", "clap_mangen::"];
    let sees_clap = |file: &String| {
        let text = std::fs::read_to_string(sources.join(file)).unwrap();
        names.iter().any(|name| text.contains(name))
    };
    let seeing: Vec<String> = files::list(&sources).into_iter().filter(sees_clap).collect();
    assert!(seeing.contains(&"cli.rs".to_string()), "{seeing:?}");
    let is_command_line =
        |file: &String| ["main.rs", "cli.rs"].contains(&&**file) || file.starts_with("cli/");
    let others: Vec<&String> = seeing.iter().filter(|file| !is_command_line(file)).collect();
    assert!(others.is_empty(), "{others:?}");
}
