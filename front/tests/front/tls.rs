//! TLS: handshakes, and requests after them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use tokio_rustls::TlsConnector;

use crate::certificates::{Authority, Secured, connect, open, refusal, wait_for_failures};
use crate::core::wait_until;
use crate::support::{Client, File, request, timed};

#[test]
fn requests_are_answered_over_both_versions_of_tls() {
    let log = File::new("tls-log", "");
    let front = Secured::with("tls-versions", |options| options.access_log = log.path().to_string());
    for version in [&TLS12, &TLS13] {
        let config = front.authority.client_with(&[version], None);
        let mut client = connect(front.server.port, config).unwrap();
        // Several on one connection.
        for body in ["1", "22"] {
            client.send(&request("POST", "/echo", "", body));
            let answer = client.answer();
            assert_eq!(answer.status, 201);
            assert!(answer.body.ends_with(&format!("body {body}\n")), "{}", answer.body);
        }
    }
    wait_until("lines are written", || log.read().lines().count() == 4);
    assert_eq!(log.read().matches(r#""scheme":"https","protocol":"HTTP/1.1""#).count(), 4, "{}", log.read());
}

#[test]
fn the_client_chooses_the_protocol_and_http2_is_preferred() {
    let front = Secured::new("tls-alpn");
    let chosen = |offered: &[&[u8]]| {
        let mut config = front.authority.client();
        config.alpn_protocols = offered.iter().map(|protocol| protocol.to_vec()).collect();
        let stream = open(front.server.port, config).unwrap();
        stream.conn.alpn_protocol().map(<[u8]>::to_vec)
    };
    assert_eq!(chosen(&[]), None);
    assert_eq!(chosen(&[b"http/1.1"]).as_deref(), Some(&b"http/1.1"[..]));
    assert_eq!(chosen(&[b"http/1.1", b"h2"]).as_deref(), Some(&b"h2"[..]));
    let mut config = front.authority.client();
    config.alpn_protocols = vec![b"spdy/1".to_vec()];
    assert!(refusal(front.server.port, config).contains("NoApplicationProtocol"));
    wait_for_failures(&mut front.connect(), &[("incompatible", 1)]);
}

#[test]
fn http2_streams_share_a_connection() {
    let front = Secured::new("tls-h2");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let test = async {
        let mut config = front.authority.client();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let stream = tokio::net::TcpStream::connect(("127.0.0.1", front.server.port)).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        let (mut client, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut answers = Vec::new();
        for _ in 0..3 {
            let request = Request::post("https://localhost/quiet").body(Full::<Bytes>::default()).unwrap();
            answers.push(client.send_request(request).await.unwrap().into_body());
        }
        for (number, answer) in answers.iter_mut().enumerate().rev() {
            // Larger than a record.
            let chunk = number.to_string().repeat(40_000);
            front.server.mock.call(number).feed(chunk.as_bytes());
            front.server.mock.call(number).end();
            assert_eq!(answer.collect().await.unwrap().to_bytes(), chunk);
        }
    };
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(20), test).await }).unwrap();
}

#[test]
fn a_client_without_the_required_certificate_is_refused() {
    let (clients, others) = (Authority::new("clients"), Authority::new("others"));
    let file = File::new("tls-clients", &(others.pem() + &clients.pem()));
    let front = Secured::with("tls-required", |options| options.client_ca = file.path().to_string());
    let port = front.server.port;
    // Each of the issuers in the file is accepted.
    for issuer in [&clients, &others] {
        let mut client = connect(port, front.authority.client_as(&issuer.issue())).unwrap();
        client.send(&request("GET", "/health", "", ""));
        assert_eq!(client.answer().status, 200);
    }
    let mut accepted = connect(port, front.authority.client_as(&clients.issue())).unwrap();
    let none = refusal(port, front.authority.client());
    assert!(none.contains("CertificateRequired"), "{none}");
    wait_for_failures(&mut accepted, &[("client_certificate", 1)]);
    // The server's own issuer is not one of clients.
    let foreign = front.authority.client_as(&front.authority.issue());
    let foreign = refusal(port, foreign);
    assert!(foreign.contains("UnknownCA"), "{foreign}");
    wait_for_failures(&mut accepted, &[("client_certificate", 2)]);
    let before = front.authority.client_with(&[&TLS12], None);
    refusal(port, before);
    wait_for_failures(&mut accepted, &[("client_certificate", 3)]);
}

#[test]
fn a_client_that_does_not_trust_the_certificate_leaves() {
    let front = Secured::new("tls-untrusted");
    let error = refusal(front.server.port, Authority::new("other").client());
    assert!(error.contains("UnknownIssuer"), "{error}");
    wait_for_failures(&mut front.connect(), &[("client_alert", 1)]);
    let mut stream = TcpStream::connect(("127.0.0.1", front.server.port)).unwrap();
    stream.write_all(&[22, 3, 1]).unwrap();
    drop(stream);
    wait_for_failures(&mut front.connect(), &[("client_alert", 1), ("client_left", 1)]);
}

#[test]
fn handshakes_have_a_deadline_and_hold_up_nothing() {
    let front = Secured::with("tls-slow", |options| options.header_ms = 2000);
    let mut slow: Vec<Client> = (0..40).map(|_| front.server.client()).collect();
    for client in &mut slow[..20] {
        client.send("\x16\x03\x01");
    }
    let (status, time) = timed(|| front.status());
    assert_eq!(status, 201);
    assert!(time < Duration::from_millis(1500), "{time:?}");
    let ((), time) = timed(|| slow.iter_mut().for_each(|client| assert_eq!(client.until_closed(), "")));
    assert!(time < Duration::from_secs(8), "{time:?}");
    wait_for_failures(&mut front.connect(), &[("timeout", 40)]);
}

#[test]
fn the_head_of_a_request_has_its_deadline_after_the_handshake() {
    let front = Secured::with("tls-head", |options| options.header_ms = 300);
    let mut stream = open(front.server.port, front.authority.client()).unwrap();
    stream.write_all(b"GET /ec").unwrap();
    let mut answer = Vec::new();
    // That the connection ends without a close_notify is an error, and no more is expected of it.
    let (_, time) = timed(|| stream.read_to_end(&mut answer));
    assert!(!answer.windows(2).any(|two| two == b"OK"), "{answer:?}");
    assert!(time > Duration::from_millis(200) && time < Duration::from_secs(5), "{time:?}");
    assert_eq!(front.server.mock.made(), 0);
}

#[test]
fn http_without_tls_is_answered_400() {
    let front = Secured::new("tls-plain");
    let body = "x".repeat(40_000);
    let texts = [request("GET", "/health", "", ""), request("POST", "/echo", "", &body), "x".to_string()];
    for text in texts {
        let mut client = front.server.client();
        client.send(&text);
        let answer = client.until_closed();
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert!(body["error"]["message"].as_str().unwrap().contains("https://"), "{body}");
    }
    assert_eq!(front.server.mock.made(), 0);
    wait_for_failures(&mut front.connect(), &[("not_tls", 3)]);
}

#[test]
fn a_malformed_handshake_ends_its_connection_alone() {
    let front = Secured::new("tls-malformed");
    let mut stream = TcpStream::connect(("127.0.0.1", front.server.port)).unwrap();
    stream.write_all(&[22, 3, 1, 0, 5, 1, 0, 0, 1, 5]).unwrap();
    wait_for_failures(&mut front.connect(), &[("malformed", 1)]);
    assert_eq!(front.status(), 201);
}

#[test]
fn a_client_that_takes_nothing_of_its_answer_is_stalled() {
    let log = File::new("tls-stalled-log", "");
    let front = Secured::with("tls-stalled", |options| {
        (options.access_log, options.write_ms) = (log.path().to_string(), 300);
    });
    let mut client = front.connect();
    client.send(&request("GET", "/endless", "", ""));
    wait_until("the line is written", || log.read().contains(r#""end":"client_stalled""#));
    front.server.mock.wait_freed(1);
}

#[test]
fn a_client_that_leaves_cancels_its_request() {
    let front = Secured::new("tls-leaves");
    let mut client = front.connect();
    client.send(&request("POST", "/hold", "", "{}"));
    let call = front.server.mock.call(0);
    drop(client);
    wait_until("the call is cancelled", || call.is_cancelled());
}

#[test]
fn a_drain_ends_connections_as_tls_requires() {
    let front = Secured::new("tls-drain");
    let mut idle = front.connect();
    idle.send(&request("GET", "/health", "", ""));
    assert_eq!(idle.answer().status, 200);
    std::thread::scope(|scope| {
        let drain = scope.spawn(|| timed(|| front.server.drain(8000)).1);
        // Without its close_notify the end would be an error.
        assert_eq!(idle.until_closed(), "");
        assert!(drain.join().unwrap() < Duration::from_secs(5));
    });
}

#[cfg(unix)]
#[test]
fn unix_sockets_have_no_tls() {
    use std::os::unix::net::UnixStream;

    let path = std::env::temp_dir().join(format!("espalier-front-tls-{}.sock", std::process::id()));
    let log = File::new("tls-unix-log", "");
    let front = Secured::with("tls-unix", |options| {
        options.hosts.push(path.to_str().unwrap().to_string());
        options.access_log = log.path().to_string();
    });
    let mut client = Client::over(UnixStream::connect(&path).unwrap());
    client.send(&request("GET", "/health", "", ""));
    assert_eq!(client.answer().status, 200);
    wait_until("the line is written", || log.read().contains(r#""scheme":"http","#));
    assert_eq!(front.status(), 201);
}
