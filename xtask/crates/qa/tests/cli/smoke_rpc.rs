//! A server whose model is on a second process must answer as it does alone; otherwise the smoke test reports the
//! difference. The programs are this test binary: a package's are scripts that run its ignored test `serve`.

use std::net::{TcpListener, TcpStream};

use serde_json::json;

use super::support::llama_server::http;
use super::support::{Output, Project, files};

/// Returns the output of `smoke --rpc` with programs that have the fault `broken`.
fn smoked(broken: &str) -> Output {
    let project = Project::new();
    for role in ["llama-server", "ggml-rpc-server"] {
        let command = format!(
            "FAKE_ROLE={role} FAKE_WORDS=\"$*\" FAKE_BROKEN='{broken}' exec '{}' \
             cli::smoke_rpc::serve --exact --ignored --nocapture",
            std::env::current_exe().unwrap().display()
        );
        let program = format!("target/espalier/dist/stock-cpu-native/bin/{role}");
        files::write_script(&project.path(&program), &command);
    }
    project.run(&["smoke", "--rpc", "--variant", "stock"])
}

#[test]
#[ignore = "the fake programs themselves"]
fn serve() {
    let Ok(role) = std::env::var("FAKE_ROLE") else { return };
    let (words, broken) = (std::env::var("FAKE_WORDS").unwrap(), std::env::var("FAKE_BROKEN").unwrap());
    let words: Vec<&str> = words.split(' ').collect();
    let value = |key: &str| words.iter().position(|word| *word == key).map(|at| words[at + 1]);
    if role == "ggml-rpc-server" && broken == "worker dies" {
        eprintln!("no device");
        std::process::exit(3);
    }
    let listener =
        TcpListener::bind(("127.0.0.1", value("--port").unwrap().parse::<u16>().unwrap())).unwrap();
    // The worker only has to accept connections.
    for mut stream in listener.incoming().flatten().filter(|_| role == "llama-server") {
        let Some(asked) = http::read(&stream) else { continue };
        let mut last = 3;
        if let Some(worker) = value("--rpc").filter(|_| asked.path == "/completion" && broken != "ignores it")
        {
            if TcpStream::connect(worker).is_err() {
                std::process::exit(134);
            }
            last += i32::from(broken == "another token");
        }
        http::reply(&mut stream, 200, &json!({ "tokens": [1, 2, last] }));
    }
}

#[test]
fn the_same_tokens_from_two_processes() {
    smoked("")
        .success()
        .says(&["Tested stock-cpu-native: the same 3 tokens with its model in another process"]);
}

#[test]
fn failures_of_the_smoke_test_are_reported() {
    smoked("another token").code(1).says(&[
        "error: with --rpc the server answers differently",
        "alone: [1,2,3]",
        "found: [1,2,4]",
        "next: the whole logs: target/espalier/logs/smoke-rpc-server-stock-cpu-native.log",
    ]);
    smoked("ignores it").code(1).says(&["error: with --rpc the server computed the answer itself"]);
    smoked("worker dies")
        .code(1)
        .says(&["error: `ggml-rpc-server` ended before it listened: exit code 3", "no device"]);
}

#[test]
fn a_package_without_the_worker() {
    let project = Project::new();
    files::write_script(&project.path("target/espalier/dist/stock-cpu-native/bin/llama-server"), "exit 1");
    project.run(&["smoke", "--rpc", "--variant", "stock"]).code(2).says(&[
        "error: stock-cpu-native was built without `ggml-rpc-server`",
        "next: name it under `programs` in ci/flavors.toml, then build again",
    ]);
    project.run(&["smoke", "--rpc"]).code(2).says(&["error: paged-cpu-native is not built"]);
}
