//! Sizes, deadlines and numbers that no client exceeds.

use std::time::Duration;

use crate::core::wait_until;
use crate::support::{Server, request, timed};

fn small() -> Server {
    Server::with(|options| options.max_body = 1000)
}

#[test]
fn a_body_of_the_limit_is_accepted_and_a_larger_one_is_answered_413() {
    let server = small();
    assert_eq!(server.ask("POST", "/echo", "", &"x".repeat(1000)).status, 201);
    let answer = server.ask("POST", "/echo", "", &"x".repeat(1001));
    assert_eq!((answer.status, answer.header("connection")), (413, Some("close")));
    let expected = r#"{"error":{"code":413,"message":"the body of the request is larger than 1000 bytes","type":"invalid_request_error"}}"#;
    assert_eq!(answer.body, expected);
    assert_eq!(server.mock.made(), 1);
}

#[test]
fn a_chunked_body_is_limited_too() {
    let server = small();
    let mut client = server.client();
    client.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    for _ in 0..3 {
        client.send_if_possible(&format!("190\r\n{}\r\n", "x".repeat(400)));
    }
    client.send_if_possible("0\r\n\r\n");
    assert_eq!(client.answer().status, 413);
    assert_eq!(server.mock.made(), 0);
}

#[test]
fn a_client_that_sends_all_of_a_large_body_first_sees_the_answer() {
    let server = small();
    let mut client = server.client();
    client.send_if_possible(&request("POST", "/echo", "", &"x".repeat(8 << 20)));
    assert_eq!(client.answer().status, 413);
}

#[test]
fn a_client_that_asks_first_is_refused_before_it_sends() {
    let server = small();
    let head = |length: usize| {
        format!("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n")
    };
    let mut client = server.client();
    client.send(&head(2000));
    let (answer, time) = timed(|| client.answer());
    assert_eq!(answer.status, 413);
    assert!(time < Duration::from_millis(1800), "it waits for the body: {time:?}");
    let mut client = server.client();
    client.send(&head(3));
    assert_eq!(client.head().unwrap().status, 100);
    client.send("abc");
    assert_eq!(client.answer().status, 201);
}

#[test]
fn a_body_that_does_not_arrive_in_time_is_answered_408() {
    let server = Server::with(|options| (options.body_ms, options.max_calls) = (200, 1));
    let mut client = server.client();
    client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
    let (answer, time) = timed(|| client.answer());
    assert_eq!((answer.status, answer.header("connection")), (408, Some("close")));
    assert!(time < Duration::from_secs(5), "{time:?}");
    assert_eq!(client.until_closed(), "");
    // It had the only place.
    assert_eq!(server.get("/echo").status, 201);
}

#[test]
fn a_body_that_arrives_byte_by_byte_has_one_deadline() {
    let server = Server::with(|options| options.body_ms = 300);
    let mut client = server.client();
    client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
    let (answer, _) = timed(|| {
        for _ in 0..8 {
            client.send_if_possible("x");
            std::thread::sleep(Duration::from_millis(50));
        }
        client.answer()
    });
    assert_eq!(answer.status, 408);
}

#[test]
fn slow_headers_close_the_connection_and_hold_up_no_other() {
    let server = Server::with(|options| options.header_ms = 1000);
    let mut slow: Vec<_> = (0..100).map(|_| server.client()).collect();
    for (number, client) in slow.iter_mut().enumerate() {
        // Without a byte, within the first line, and within the headers.
        let sent = ["", "GET /ec", "GET /echo HTTP/1.1\r\nHost: x\r\nX-A: "];
        client.send(sent[number % sent.len()]);
    }
    assert_eq!(server.get("/health").status, 200);
    assert!(server.open_connections() >= 100, "the answer came after the deadline of the others");
    wait_until("slow connections are closed", || server.open_connections() == 0);
    assert_eq!(server.mock.made(), 0);
}

#[test]
fn one_request_more_than_the_limit_is_answered_429() {
    let server = Server::with(|options| options.max_calls = 2);
    let mut running: Vec<_> = (0..2).map(|_| server.client()).collect();
    for (number, client) in running.iter_mut().enumerate() {
        client.send(&request("POST", "/hold", "", "{}"));
        server.mock.call(number);
    }
    let answer = server.ask("POST", "/echo", "", "{}");
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")));
    let expected = r#"{"error":{"code":429,"message":"Too many requests are being processed, try again later","type":"rate_limit_error"}}"#;
    assert_eq!(answer.body, expected);
    // The server can still be watched.
    assert_eq!(server.get("/health").status, 200);
    assert_eq!(server.get("/metrics").status, 201);
    let ready = server.get("/readyz");
    assert_eq!((ready.status, ready.body.as_str()), (503, r#"{"status":"busy"}"#));
    // A place is free as soon as a call is freed.
    server.mock.call(0).end();
    assert_eq!(running[0].answer().status, 201);
    wait_until("a place is free", || server.ask("POST", "/echo", "", "{}").status == 201);
    server.mock.call(1).end();
    assert_eq!(running[1].answer().status, 201);
}

#[test]
fn a_refused_request_keeps_its_connection() {
    let server = Server::with(|options| options.max_calls = 1);
    let mut running = server.client();
    running.send(&request("POST", "/hold", "", "{}"));
    server.mock.call(0);
    let mut client = server.client();
    client.send(&request("POST", "/echo", "", &"x".repeat(100_000)));
    assert_eq!(client.answer().status, 429);
    server.mock.call(0).end();
    assert_eq!(running.answer().status, 201);
    server.mock.wait_freed(1);
    client.send(&request("POST", "/echo", "", "{}"));
    assert_eq!(client.answer().status, 201);
}

#[test]
fn connections_beyond_the_limit_wait_for_one_that_closes() {
    let server = Server::with(|options| options.max_connections = 2);
    let mut first = server.client();
    let mut second = server.client();
    for client in [&mut first, &mut second] {
        client.send(&request("GET", "/health", "", ""));
        assert_eq!(client.answer().status, 200);
    }
    let mut third = server.client();
    third.send(&request("GET", "/health", "", ""));
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(server.open_connections(), 2);
    drop(first);
    assert_eq!(third.answer().status, 200);
}

#[test]
fn headers_are_limited_in_size_and_number() {
    let server = Server::new();
    let large = server.ask("GET", "/echo", &format!("X-A: {}\r\n", "a".repeat(100_000)), "");
    assert_eq!(large.status, 431);
    let many: String = (0..200).map(|number| format!("X-{number}: a\r\n")).collect();
    assert_eq!(server.ask("GET", "/echo", &many, "").status, 431);
    assert_eq!(server.mock.made(), 0);
}
