//! Metrics of the transport, appended to those of the core.

use crate::core::wait_until;
use crate::support::{File, Server, request};

/// The value of a metric, with its labels.
fn value(server: &Server, name: &str) -> Option<f64> {
    let answer = server.get("/totals");
    let mut lines = answer.body.lines();
    lines.find_map(|line| line.strip_prefix(&format!("llamacpp:{name} "))?.parse().ok())
}

fn wait_for(server: &Server, name: &str, expected: f64) {
    wait_until(&format!("{name} is {expected}"), || value(server, name) == Some(expected));
}

#[test]
fn they_follow_those_of_the_core() {
    let server = Server::new();
    let answer = server.get("/totals");
    assert_eq!(answer.status, 200);
    assert!(
        answer.body.starts_with("llamacpp:core 1\n# HELP llamacpp:http_requests_total "),
        "{}",
        answer.body
    );
    assert!(answer.body.ends_with('\n'), "{}", answer.body);
    // Nothing is appended to other routes, and to other answers of this one.
    assert!(!server.get("/metrics").body.contains("http_requests_total"));
    let head = {
        let mut client = server.client();
        client.send(&request("HEAD", "/totals", "", ""));
        client.head().unwrap()
    };
    let length: usize = head.header("content-length").unwrap().parse().unwrap();
    assert!(length > 1000, "{head:?}");
}

#[test]
fn requests_are_counted_by_route_and_code_once_they_end() {
    let server = Server::with(|options| options.prefix = "/api");
    let totals = || {
        let body = server.get("/api/totals").body;
        let lines = body.lines().filter(|line| line.starts_with("llamacpp:http_requests_total"));
        lines.map(str::to_string).collect::<Vec<String>>()
    };
    for path in ["/api/echo", "/api/echo", "/api/nowhere", "/api/livez", "/other", "/api/slots/9"] {
        server.ask("POST", path, "", "{}");
    }
    server.get("/api/livez");
    let expected = [
        "llamacpp:http_requests_total{route=\"/echo\",code=\"201\"} 2",
        "llamacpp:http_requests_total{route=\"/livez\",code=\"200\"} 1",
        "llamacpp:http_requests_total{route=\"/slots/:id_slot\",code=\"201\"} 1",
        "llamacpp:http_requests_total{route=\"other\",code=\"404\"} 3",
    ];
    wait_until("all are counted", || {
        let mut lines = totals();
        lines.retain(|line| !line.contains("/totals"));
        lines == expected
    });
}

#[test]
fn refused_and_aborted_requests_are_counted_by_reason() {
    let server = Server::with(|options| options.max_calls = 1);
    let mut client = server.client();
    client.send(&request("POST", "/hold", "", "{}"));
    server.mock.call(0);
    assert_eq!(value(&server, "http_requests_running"), Some(2.0), "with the one that asks");
    assert_eq!(server.get("/echo").status, 429);
    wait_for(&server, "http_requests_refused_total{reason=\"busy\"}", 1.0);
    assert_eq!(value(&server, "http_requests_aborted_total{reason=\"client_left\"}"), None);
    drop(client);
    wait_for(&server, "http_requests_aborted_total{reason=\"client_left\"}", 1.0);
    wait_for(&server, "http_requests_total{route=\"/hold\",code=\"499\"}", 1.0);
    wait_for(&server, "http_requests_running", 1.0);
}

#[test]
fn bodies_times_and_connections_are_counted() {
    let server = Server::new();
    let mut client = server.client();
    client.send(&request("POST", "/stream", "", "12345"));
    client.head();
    server.mock.call(0).feed(b"data: 1\n\n");
    assert_eq!(client.chunk().as_deref(), Some("data: 1\n\n"));
    assert_eq!(value(&server, "http_connections"), Some(2.0));
    let before = value(&server, "http_response_body_bytes_total").unwrap();
    assert_eq!(value(&server, "http_request_body_bytes_total"), Some(0.0), "it has not ended");
    server.mock.call(0).end();
    assert_eq!(client.chunk(), None);
    wait_for(&server, "http_request_body_bytes_total", 5.0);
    assert!(value(&server, "http_response_body_bytes_total").unwrap() >= before + 9.0);
    let count = |name: &str| value(&server, name).unwrap();
    assert!(count("http_time_to_first_byte_seconds_count") >= 5.0);
    assert!(count("http_request_duration_seconds_sum") > 0.0);
}

#[test]
fn lost_lines_are_counted_if_there_is_a_log() {
    assert_eq!(value(&Server::new(), "http_access_log_lost_lines_total"), None);
    let file = File::new("metrics-log", "");
    let server = Server::with(|options| options.access_log = file.path().to_string());
    assert_eq!(value(&server, "http_access_log_lost_lines_total"), Some(0.0));
    #[cfg(target_os = "linux")]
    {
        let full = Server::with(|options| options.access_log = "/dev/full".to_string());
        full.get("/echo");
        wait_until("a line is lost", || value(&full, "http_access_log_lost_lines_total") >= Some(1.0));
    }
}
