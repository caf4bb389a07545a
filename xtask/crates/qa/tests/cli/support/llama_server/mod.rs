//! A fake `llama-server` for the gate: a small, correct paged server that has one fault on request. Its answers are a
//! function of all previous tokens as they were computed: a request that gets another one's blocks gives another
//! answer. The test binary itself is the program: a package's `llama-server` is a script that runs its ignored test
//! `serve`.

mod config;
mod engine;
pub mod http;
mod pool;
mod request;
mod server;
mod slots;
mod text;

use std::net::TcpListener;

use self::config::Config;
pub use self::config::FAULTS;
use self::server::Fake;
use super::{Project, files};

/// Installs the fake into the package of `variant`. `broken` lists its faults, separated by commas; empty for a correct
/// fake.
pub fn package(project: &Project, variant: &str, broken: &str) {
    for fault in broken.split(", ").filter(|fault| !fault.is_empty()) {
        assert!(FAULTS.contains(&fault), "the fake has no fault `{fault}`");
    }
    let command = format!(
        "FAKE_ARGUMENTS=\"$*\" FAKE_BROKEN='{broken}' exec '{}' \
         cli::support::llama_server::serve --exact --ignored --nocapture",
        std::env::current_exe().unwrap().display()
    );
    let path = format!("target/espalier/dist/{variant}-cpu-native/bin/llama-server");
    files::write_script(&project.path(&path), &command);
}

#[test]
fn every_fault_that_the_fake_looks_for_is_listed() {
    let sources = [
        include_str!("config.rs"),
        include_str!("engine.rs"),
        include_str!("mod.rs"),
        include_str!("request.rs"),
        include_str!("server.rs"),
        include_str!("slots.rs"),
        include_str!("text.rs"),
    ];
    let calls = |call: &'static str| sources.iter().flat_map(move |source| source.split(call).skip(1));
    let asked = calls(".is_broken(\"").chain(calls(".breaks(\"")).filter_map(|rest| rest.split('"').next());
    let asked: Vec<&str> = asked.collect();
    assert!(asked.len() > 40, "the sources are not read as they are written: {asked:?}");
    let unknown: Vec<&&str> = asked.iter().filter(|fault| !FAULTS.contains(fault)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
#[ignore = "the fake server itself, which the gate starts"]
fn serve() {
    let Ok(arguments) = std::env::var("FAKE_ARGUMENTS") else { return };
    // A fake with a bug of its own must not answer any request.
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("the fake server: {panic}");
        std::process::exit(101);
    }));
    if arguments == "--help" {
        return print_help();
    }
    let fake = Fake::new(configure(&arguments));
    let port = fake.config.value("--port").unwrap();
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    std::thread::scope(|threads| {
        threads.spawn(|| fake.compute());
        for stream in listener.incoming().flatten() {
            threads.spawn(|| fake.reply(stream));
        }
    });
}

/// Prints two options, below the name of the test, which the test binary prints before.
fn print_help() {
    let has_paged = std::env::var("FAKE_BROKEN")
        .is_ok_and(|broken| broken.split(", ").any(|fault| fault == "has our option"));
    println!("\n-m,   --model FNAME\n{}", if has_paged { "-kvp, --kv-paged" } else { "" });
}

/// Parses the arguments, and prints which requested features are not supported.
fn configure(arguments: &str) -> Config {
    let broken = std::env::var("FAKE_BROKEN").unwrap();
    let mut config = Config {
        arguments: arguments.split(' ').map(str::to_string).collect(),
        broken: broken.split(", ").filter(|fault| !fault.is_empty()).map(str::to_string).collect(),
        cannot_be_paged: false,
        enabled: std::env::var("ESPALIER_ENABLE").unwrap_or_default(),
        own_windows: std::env::var("ESPALIER_KV_WINDOWS").is_ok_and(|windows| windows != "0"),
    };
    config.cannot_be_paged = config.has("--no-kv-unified") || config.is_broken("runs unpaged");
    if config.has("--kv-paged") && !config.is_broken("keeps silent") {
        let messages = [
            ("the KV cache runs unpaged, because of its buffers", config.cannot_be_paged),
            ("--context-shift is not supported by a paged KV cache", config.has("--context-shift")),
            ("cache reuse is not supported", config.has("--cache-reuse")),
        ];
        messages.iter().filter(|(_, is_so)| *is_so).for_each(|(words, _)| eprintln!("{words}"));
    }
    config
}
