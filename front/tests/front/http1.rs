//! HTTP/1.1 as it is, and as it must not be.

use crate::support::{Server, request};

/// Sends bytes on a connection of their own, then the end; returns everything that comes back.
fn exchange(server: &Server, text: &str) -> String {
    let mut client = server.client();
    client.send_if_possible(text);
    client.half_close();
    client.until_closed()
}

fn statuses(answers: &str) -> Vec<&str> {
    answers.split("HTTP/1.").skip(1).map(|answer| &answer[2..5]).collect()
}

#[test]
fn requests_share_a_connection_until_one_of_them_closes_it() {
    let server = Server::new();
    let mut client = server.client();
    for _ in 0..3 {
        client.send(&request("POST", "/echo", "", "{}"));
        assert_eq!(client.answer().status, 201);
    }
    client.send(&request("GET", "/echo", "Connection: close\r\n", ""));
    assert_eq!(client.answer().header("connection"), Some("close"));
    assert_eq!(client.until_closed(), "");
}

#[test]
fn an_http_1_0_client_gets_its_answer_and_the_end() {
    let server = Server::new();
    let mut client = server.client();
    client.send("GET /health HTTP/1.0\r\n\r\n");
    let text = client.until_closed();
    assert!(text.starts_with("HTTP/1.0 200 OK\r\n") && text.ends_with(r#"{"status":"ok"}"#), "{text}");
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = Server::new();
    let mut client = server.client();
    let paths = ["/echo?a", "/health", "/nowhere", "/echo?b"];
    client.send(&paths.map(|path| request("GET", path, "", "")).concat());
    let answers = paths.map(|_| client.answer());
    assert_eq!(answers.each_ref().map(|answer| answer.status), [201, 200, 404, 201]);
    assert!(answers[0].body.contains("query a=\n") && answers[3].body.contains("query b=\n"));
}

#[test]
fn malformed_requests_are_answered_400_and_closed() {
    let server = Server::new();
    let malformed = [
        "GARBAGE\r\n\r\n",
        "GET\r\n\r\n",
        "GET /echo\r\n\r\n",
        "GET /echo HTTP/9.9\r\n\r\n",
        "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /echo HTTP/1.1\r\nHost x\r\n\r\n",
        "GET /echo HTTP/1.1\r\nX-A : x\r\n\r\n",
        "GET /echo HTTP/1.1\r\nX-A: a\0b\r\n\r\n",
        "GET /echo HTTP/1.1\r\nX-A: a\r\n b\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\u{fc}\x03\x03",
    ];
    for text in malformed {
        let answers = exchange(&server, text);
        // TLS and other protocols may be closed without an answer.
        assert!(
            ["400", ""].contains(&statuses(&answers).first().copied().unwrap_or("")),
            "{text:?}: {answers}"
        );
        assert!(statuses(&answers).len() < 2, "{text:?}: {answers}");
    }
    assert_eq!(server.mock.made(), 0);
    assert_eq!(server.get("/health").status, 200);
}

#[test]
fn bodies_of_unclear_length_smuggle_no_second_request() {
    let server = Server::new();
    let smuggled = "GET /echo?smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
    let framings = [
        // Both kinds, in both orders; several lengths; lengths that are not numbers.
        format!(
            "Content-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}",
            5 + smuggled.len()
        ),
        format!(
            "Transfer-Encoding: chunked\r\nContent-Length: {}\r\n\r\n0\r\n\r\n{smuggled}",
            5 + smuggled.len()
        ),
        format!("Content-Length: 0\r\nContent-Length: {}\r\n\r\n{smuggled}", smuggled.len()),
        format!("Content-Length: {}\r\nContent-Length: 0\r\n\r\n{smuggled}", smuggled.len()),
        format!("Content-Length: +0\r\n\r\n{smuggled}"),
        format!("Content-Length: 0x0\r\n\r\n{smuggled}"),
        format!("Content-Length: 0, 0\r\n\r\n{smuggled}"),
        format!("Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{smuggled}"),
        format!("Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{smuggled}"),
        format!("Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n{smuggled}"),
        format!("Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n{smuggled}"),
    ];
    for framing in framings {
        let answers = exchange(&server, &format!("POST /echo HTTP/1.1\r\nHost: x\r\n{framing}"));
        assert!(!answers.contains("smuggled"), "{framing:?}: {answers}");
        assert!(statuses(&answers).len() <= 1, "{framing:?}: {answers}");
    }
}

#[test]
fn a_broken_chunk_ends_the_connection_before_the_core_is_called() {
    let server = Server::new();
    for chunks in [
        "zz\r\nabc\r\n0\r\n\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "fffffffffffffffff\r\na\r\n",
        "3\r\nab",
        "-1\r\na\r\n",
    ] {
        let answers = exchange(
            &server,
            &format!("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"),
        );
        assert!(
            ["400", ""].contains(&statuses(&answers).first().copied().unwrap_or("")),
            "{chunks:?}: {answers}"
        );
    }
    assert_eq!(server.mock.made(), 0);
}

#[test]
fn a_chunked_body_is_put_together() {
    let server = Server::new();
    let mut client = server.client();
    client.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send("3;extension=1\r\nabc\r\n");
    client.send("a\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n");
    let body = client.answer().body;
    assert!(body.ends_with("body abc0123456789\n"), "{body}");
}

#[test]
fn a_target_in_absolute_form_is_its_path() {
    let server = Server::new();
    let mut client = server.client();
    client.send("GET http://elsewhere.example/echo?q HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(client.answer().body.starts_with("path /echo\nquery q=\n"));
    client.send("CONNECT elsewhere.example:443 HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(client.answer().status, 404);
}
