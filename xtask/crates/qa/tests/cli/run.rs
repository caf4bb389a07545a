//! `run` and `smoke`: not built yet, port in use, the server's own arguments and exit code.

use std::net::TcpListener;

use super::support::wheels::Wheels;
use super::support::{Project, files};

/// Creates a project with a package whose server is a shell script.
fn with_server(commands: &str) -> Project {
    let project = Project::new();
    files::write_script(&project.path("target/espalier/dist/paged-cpu-native/bin/llama-server"), commands);
    project
}

#[test]
fn not_built_yet() {
    let project = Project::new();
    insta::assert_snapshot!(project.run(&["run"]), @r"
    exit: 2
    -- stdout --

    -- stderr --
    error: paged-cpu-native is not built
      next: cargo xtask build --variant paged --flavor cpu-native
    ");
    insta::assert_snapshot!(project.run(&["smoke", "--variant", "stock"]), @r"
    exit: 2
    -- stdout --

    -- stderr --
    error: stock-cpu-native is not built
      next: cargo xtask build --variant stock --flavor cpu-native
    ");
    assert!(!project.path("target").exists());
}

#[test]
fn the_arguments_and_the_exit_code_are_the_servers() {
    let project = with_server("echo \"got: $*\"; exit 7");
    insta::assert_snapshot!(project.run(&["run", "--", "-m", "a model.gguf", "--port", "0"]), @r"
    exit: 7
    -- stdout --
    got: -m a model.gguf --port 0
    -- stderr --
    ");
}

/// It is the user's server; those that checks start do not read it.
#[test]
fn the_users_config_is_read() {
    let project = with_server("echo \"config: $XDG_CONFIG_HOME\"");
    let mut run = project.command(&["run"]);
    run.env("XDG_CONFIG_HOME", "/of/the/user");
    let output = project.finish(run).success();
    assert!(output.stdout.contains("config: /of/the/user"), "{output}");
}

/// The demo model is pinned by its name, and pip is faked.
#[test]
fn the_demo_serves_the_pinned_model_and_what_the_caller_adds_wins() {
    let wheels = Wheels::new(Project::new(), "smollm2-135m-instruct");
    let server = |variant: &str| format!("target/espalier/dist/{variant}-cpu-native/bin/llama-server");
    wheels.run(&["run", "--demo"]).code(2).says(&["paged-cpu-native is not built"]);
    assert_eq!(wheels.asked(), "", "downloaded a model for a server that is not built");
    wheels.project.edit("pins.toml", "[variants.paged]\n", "[variants.paged]\nkernels = true\n");
    for variant in ["paged", "stock"] {
        files::write_script(&wheels.project.path(&server(variant)), "echo \"got: $*\"");
    }
    let output = wheels.run(&["run", "--demo", "--", "--port", "0", "-c", "512"]).success();
    let model = wheels.file().display().to_string();
    let model = model.replace(&wheels.project.root().display().to_string(), "[ROOT]");
    assert_eq!(output.stdout.trim(), format!("got: -m {model} --kv-paged -c 16384 --port 0 -c 512"));
    output.says(&["Licence smollm2-135m-instruct: Whatever-1.0", "the chat page: http://127.0.0.1:0/"]);
    let stock = wheels.run(&["--offline", "run", "--demo", "--variant", "stock"]).success();
    assert_eq!(stock.stdout.trim(), format!("got: --port 8080 -m {model}"), "stock has no paged KV cache");
}

#[test]
fn a_port_that_is_taken() {
    let project = with_server("echo started");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let output = project.run(&["run", "--", "--port", &port]).code(3);
    assert_eq!(output.stdout, "");
    let shown = output.to_string().replace(&port, "[PORT]");
    let next = (port.parse::<u32>().unwrap() + 1).to_string();
    insta::assert_snapshot!(shown.replace(&next, "[NEXT]"), @r"
    exit: 3
    -- stdout --

    -- stderr --
    error: port [PORT] on 127.0.0.1 is in use
      next: use another one: cargo xtask run -- --port [NEXT]
      next: or find out what uses it: ss -ltnp 'sport = :[PORT]'
    ");
    drop(listener);
    // A process that another test starts inherits the socket until it executes its program.
    let is_free = || TcpListener::bind(format!("127.0.0.1:{port}")).is_ok();
    assert!((0..500).any(|_| is_free() || {
        std::thread::sleep(std::time::Duration::from_millis(10));
        false
    }));
    project.run(&["run", "--", "--port", &port]).success();
}

#[test]
fn smoke_without_a_model() {
    let project = with_server("exit 0");
    std::fs::remove_dir_all(project.path("ci/models")).unwrap();
    insta::assert_snapshot!(project.run(&["smoke"]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: there is no `ci/models/espalier-draft.gguf`, a file of Espalier's repository that this command reads
      next: copy it from a clone of Espalier: mkdir -p ci/models && cp -R ESPALIER/ci/models/espalier-draft.gguf ci/models/
      next: or run this in a clone of Espalier that has your variant
    ");
}

#[test]
fn smoke_of_a_server_that_ends_at_once() {
    let project = with_server("echo 'no such accelerator' >&2; exit 9");
    insta::assert_snapshot!(project.run(&["smoke"]), @r"
    exit: 1
    -- stdout --

    -- stderr --
    error: the server ended before it was ready: exit code 9
      no such accelerator
      next: the server's whole log: target/espalier/logs/smoke-paged-cpu-native.log
    ");
}
