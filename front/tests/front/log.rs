//! The access log: a line for each request, and why it ended. Ids of requests, and trace context.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::core::wait_until;
use crate::support::{File, Options, Server, request};

fn logged(file: &File) -> Server {
    Server::with(|options| (options.access_log, options.write_ms) = (file.path().to_string(), 400))
}

/// The lines of a log, once there are so many.
fn lines(file: &File, count: usize) -> Vec<Value> {
    wait_until("lines are written", || file.read().lines().count() >= count);
    let lines: Vec<Value> = file.read().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), count);
    lines
}

#[test]
fn a_line_has_what_is_known_of_a_request() {
    let file = File::new("log-line", "");
    let server = logged(&file);
    let trace = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n";
    let answer = server.ask("POST", "/slots/3?key=secret", &format!("X-Request-Id: r1\r\n{trace}"), "{}");
    let line = &lines(&file, 1)[0];
    let expected = serde_json::json!({
        "id": "r1", "trace": "4bf92f3577b34da6a3ce929d0e0e4736", "parent": "00f067aa0ba902b7",
        "scheme": "http", "protocol": "HTTP/1.1", "method": "POST", "path": "/slots/3", "route": "/slots/:id_slot",
        "status": 201, "end": "complete", "received_bytes": 2, "sent_bytes": answer.body.len(),
        "prompt_tokens": 10,
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&line[name], value, "{name}: {line}");
    }
    assert!(line["client"].as_str().unwrap().starts_with("127.0.0.1:"), "{line}");
    let ms = |name: &str| line[name].as_f64().unwrap();
    assert!(
        0.0 < ms("head_ms") && ms("head_ms") <= ms("first_byte_ms") && ms("first_byte_ms") <= ms("total_ms")
    );
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64;
    assert!(now - line["unix_ms"].as_u64().unwrap() < 60_000, "{line}");
    assert!(!file.read().contains("secret") && line.get("key").is_none(), "{line}");
}

#[test]
fn an_id_is_made_unless_the_client_sends_one_and_reaches_both_sides() {
    let file = File::new("log-id", "");
    let server = logged(&file);
    for headers in ["X-Request-Id: mine\r\n", "", "X-Request-Id: not one\r\n"] {
        let answer = server.ask("GET", "/echo", headers, "");
        let id = answer.header("x-request-id").unwrap();
        assert!(answer.body.contains(&format!("header x-request-id={id}\n")), "{}", answer.body);
        assert!(id == "mine" || id.len() == 32, "{id}");
    }
    let answer = server.get("/nowhere");
    let ids: Vec<Value> = lines(&file, 4).iter().map(|line| line["id"].clone()).collect();
    assert_eq!((&ids[0], &ids[3]), (&"mine".into(), &answer.header("x-request-id").unwrap().into()));
    assert!(ids[1] != ids[2] && ids[2] != ids[3]);
}

#[test]
fn the_end_of_each_request_is_named() {
    let file = File::new("log-ends", "");
    let server = logged(&file);
    let end = |count: usize| {
        let line = lines(&file, count).pop().unwrap();
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_string();
        (text("end"), text("refusal"), line["status"].as_u64().unwrap())
    };
    let named = |end: &str, refusal: &str, status| (end.to_string(), refusal.to_string(), status);
    server.get("/nowhere");
    assert_eq!(end(1), named("refused", "not_found", 404));
    server.get("/failing");
    assert_eq!(end(2), named("refused", "internal", 500));
    // During the handler there is no answer yet.
    let mut client = server.client();
    client.send(&request("POST", "/hold", "", "{}"));
    server.mock.call(0);
    drop(client);
    assert_eq!(end(3), named("client_left", "", 499));
    let mut client = server.client();
    client.send(&request("POST", "/stream", "", "{}"));
    client.head();
    drop(client);
    assert_eq!(end(4), named("client_left", "", 200));
    let mut stalled = server.client();
    stalled.send(&request("GET", "/endless", "", ""));
    assert_eq!(end(5), named("client_stalled", "", 200));
    let mut stopped = server.client();
    stopped.send(&request("POST", "/stream", "", "{}"));
    stopped.head();
    server.stop();
    assert_eq!(end(6), named("server_stopped", "", 200));
}

#[test]
fn answers_without_a_body_are_complete() {
    let file = File::new("log-empty", "");
    let server = logged(&file);
    let mut client = server.client();
    client.send(&request("HEAD", "/echo", "", ""));
    client.head();
    client.send(&request("OPTIONS", "/echo", "", ""));
    assert_eq!(client.answer().status, 200);
    for line in lines(&file, 2) {
        assert_eq!((&line["end"], &line["sent_bytes"]), (&"complete".into(), &0.into()), "{line}");
        assert!(line.get("first_byte_ms").is_none(), "{line}");
    }
}

#[test]
fn a_stream_is_logged_when_it_ends_with_its_tokens() {
    let file = File::new("log-stream", "");
    let server = logged(&file);
    let mut client = server.client();
    client.send(&request("POST", "/stream", "", "{}"));
    client.head();
    server.mock.call(0).feed(b"data: 1\n\n");
    assert_eq!(client.chunk().as_deref(), Some("data: 1\n\n"));
    assert_eq!(file.read(), "");
    server.mock.call(0).end();
    assert_eq!(client.chunk(), None);
    let line = &lines(&file, 1)[0];
    assert_eq!((&line["end"], &line["sent_bytes"]), (&"complete".into(), &9.into()), "{line}");
    assert_eq!(line["prompt_tokens"], 10);
}

#[test]
fn the_name_of_a_key_is_logged_and_the_key_is_not() {
    let digest: String = Sha256::digest(b"sesame").iter().map(|byte| format!("{byte:02x}")).collect();
    let keys = File::new("log-keys", &format!("[ci]\nsha256 = \"{digest}\"\ntenant = \"team\"\n"));
    let file = File::new("log-key", "");
    let server = Server::with(|options| {
        options.access_log = file.path().to_string();
        options.key_file = keys.path().to_string();
    });
    for key in ["sesame", "wrong"] {
        server.ask("GET", "/echo", &format!("Authorization: Bearer {key}\r\n"), "");
    }
    let lines = lines(&file, 2);
    assert_eq!((&lines[0]["key"], &lines[0]["tenant"]), (&"ci".into(), &"team".into()));
    assert_eq!((&lines[1]["refusal"], lines[1].get("key")), (&"key".into(), None));
    let text = file.read();
    assert!(!text.contains("sesame") && !text.contains("wrong") && !text.contains(&digest[..8]), "{text}");
}

#[test]
fn the_log_is_opened_again_after_it_was_renamed() {
    let (file, renamed) = (File::new("log-rotated", ""), File::new("log-rotated-1", ""));
    let server = logged(&file);
    server.get("/echo");
    lines(&file, 1);
    std::fs::rename(file.path(), renamed.path()).unwrap();
    server.get("/echo");
    lines(&renamed, 2);
    server.reload();
    wait_until("the file is there", || std::path::Path::new(file.path()).exists());
    server.get("/echo");
    lines(&file, 1);
    assert_eq!(renamed.read().lines().count(), 2);
}

#[test]
fn long_methods_and_paths_are_cut() {
    let file = File::new("log-long", "");
    let server = logged(&file);
    let path = format!("/{}", "p".repeat(600));
    assert_eq!(server.ask(&"M".repeat(600), &path, "", "").status, 404);
    let line = &lines(&file, 1)[0];
    assert_eq!((&line["method"], &line["path"]), (&"M".repeat(512).into(), &path[..512].into()));
}

#[test]
fn keys_are_read_before_the_log_is_opened_which_may_wait() {
    let digest = "0f".repeat(32);
    let keys = File::new("log-order-keys", &format!("[ci]\nsha256 = \"{digest}\"\n"));
    let folder = std::env::temp_dir().join(format!("espalier-front-log-order-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let server = Server::with(|options| {
        options.access_log = folder.join("log").to_str().unwrap().to_string();
        options.key_file = keys.path().to_string();
    });
    std::fs::remove_dir_all(&folder).unwrap();
    server.reload();
    wait_until("the log is opened", || server.mock.log().contains("cannot open the access log again"));
    let log = server.mock.log();
    assert!(log.find("1 API keys are accepted") < log.find("cannot open the access log again"), "{log}");
    assert!(log.contains("1 API keys are accepted"), "{log}");
}

#[test]
fn closing_writes_all_lines() {
    let file = File::new("log-closing", "");
    let server = logged(&file);
    for _ in 0..200 {
        server.get("/health");
    }
    drop(server);
    assert_eq!(file.read().lines().count(), 200);
}

#[test]
fn a_log_that_cannot_be_opened_opens_no_front() {
    let options = Options { access_log: "/no/such/folder/log".to_string(), ..Options::default() };
    let log = Server::open(&options).unwrap_err();
    assert!(log.contains("cannot initialize the transport: /no/such/folder/log: "), "{log}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_once_and_ends_nothing() {
    let server = Server::with(|options| options.access_log = "/dev/full".to_string());
    for _ in 0..3 {
        assert_eq!(server.get("/echo").status, 201);
        wait_until("it is reported", || server.mock.log().contains("0 cannot write /dev/full: "));
    }
    assert_eq!(server.mock.log().matches("cannot write").count(), 1, "{}", server.mock.log());
}

/// A pipe without a reader fails like a full disk, and can be written again later.
#[cfg(target_os = "linux")]
#[test]
fn after_a_failed_write_a_line_begins_on_its_own() {
    use std::io::{BufRead, BufReader};

    let pipe = File::new("log-pipe", "");
    std::fs::remove_file(pipe.path()).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(pipe.path()).status().unwrap().success());
    // Opened for both, it waits for no other side.
    let reader = || {
        let file = std::fs::OpenOptions::new().read(true).write(true).open(pipe.path()).unwrap();
        BufReader::new(file)
    };
    let next = |reader: &mut BufReader<std::fs::File>| {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        line
    };
    let mut first = reader();
    let server = logged(&pipe);
    server.get("/echo");
    assert!(next(&mut first).starts_with('{'));
    drop(first);
    server.get("/echo");
    wait_until("the write fails", || server.mock.log().contains("cannot write"));
    let mut second = reader();
    for start in ["\n", "{"] {
        server.get("/echo");
        assert!(next(&mut second).starts_with(start), "{start}");
    }
    assert!(next(&mut second).starts_with('{'));
}
