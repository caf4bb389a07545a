//! HTTP/2 without TLS.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use crate::core::wait_until;
use crate::support::Server;

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime
        .block_on(async { tokio::time::timeout(Duration::from_secs(20), test).await.expect("20 s are over") })
}

async fn connect(server: &Server) -> SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(("127.0.0.1", server.port)).await.unwrap();
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn post(path: &str, body: &'static str) -> Request<Full<Bytes>> {
    Request::post(format!("http://x{path}")).body(Full::from(body)).unwrap()
}

#[test]
fn requests_are_answered_as_over_http1() {
    let server = Server::with(|options| options.keys = vec!["k"]);
    run(async {
        let mut client = connect(&server).await;
        let refused = client.send_request(post("/echo", "{}")).await.unwrap();
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
        let mut request = post("/echo?a=b", "{}");
        request.headers_mut().insert("x-api-key", "k".parse().unwrap());
        let answer = client.send_request(request).await.unwrap();
        assert_eq!((answer.status().as_u16(), &answer.headers()["x-mock"]), (201, &"yes".parse().unwrap()));
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8(body.to_vec()).unwrap();
        assert!(text.starts_with("path /echo\nkey k\nquery a=b\n") && text.ends_with("body {}\n"), "{text}");
    });
}

#[test]
fn streams_share_a_connection() {
    let server = Server::new();
    run(async {
        let mut client = connect(&server).await;
        let mut answers = Vec::new();
        for _ in 0..20 {
            answers.push(client.send_request(post("/quiet", "{}")).await.unwrap().into_body());
        }
        for (number, answer) in answers.iter_mut().enumerate().rev() {
            server.mock.call(number).feed(format!("chunk {number}").as_bytes());
            let frame = answer.frame().await.unwrap().unwrap().into_data().unwrap();
            assert_eq!(frame, format!("chunk {number}"));
        }
    });
}

#[test]
fn requests_of_one_connection_are_admitted_one_by_one() {
    let server = Server::with(|options| options.max_calls = 3);
    run(async {
        let client = connect(&server).await;
        let mut running = Vec::new();
        for number in 0..3 {
            let mut client = client.clone();
            running.push(tokio::spawn(async move { client.send_request(post("/hold", "{}")).await }));
            server.mock.call(number);
        }
        let refused = client.clone().send_request(post("/echo", "{}")).await.unwrap();
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(refused.headers()["retry-after"], "1");
        for (number, answer) in running.into_iter().enumerate() {
            server.mock.call(number).end();
            assert_eq!(answer.await.unwrap().unwrap().status().as_u16(), 201);
        }
    });
}

#[test]
fn a_stream_that_is_reset_is_cancelled_and_the_connection_goes_on() {
    let server = Server::new();
    run(async {
        let mut client = connect(&server).await;
        let answer = client.send_request(post("/stream", "{}")).await.unwrap();
        let call = server.mock.call(0);
        drop(answer);
        wait_until("the call is cancelled", || call.is_cancelled());
        server.mock.wait_freed(1);
        let answer = client.send_request(post("/echo", "{}")).await.unwrap();
        assert_eq!(answer.status().as_u16(), 201);
    });
}

#[test]
fn limits_hold_over_http2() {
    let server = Server::with(|options| options.max_body = 3);
    run(async {
        let mut client = connect(&server).await;
        let large = client.send_request(post("/echo", "1234")).await.unwrap();
        assert_eq!(large.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let answer = client.send_request(post("/echo", "123")).await.unwrap();
        assert_eq!(answer.status().as_u16(), 201);
    });
}

#[test]
fn head_has_no_body() {
    let server = Server::new();
    run(async {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).await.unwrap();
        let (mut client, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = Request::head("http://x/echo").body(Empty::<Bytes>::new()).unwrap();
        let answer = client.send_request(request).await.unwrap();
        assert_eq!(answer.status().as_u16(), 201);
        assert!(answer.into_body().collect().await.unwrap().to_bytes().is_empty());
    });
}

#[test]
fn closing_frees_the_calls_of_all_streams() {
    let server = Server::new();
    let mock = std::sync::Arc::clone(&server.mock);
    run(async {
        let client = connect(&server).await;
        let mut answers = Vec::new();
        for (number, path) in ["/hold", "/stream", "/blocking", "/hold"].into_iter().enumerate() {
            let mut client = client.clone();
            answers.push(tokio::spawn(async move { client.send_request(post(path, "{}")).await }));
            mock.call(number);
        }
        // On a thread of its own: the client has to go on meanwhile.
        tokio::task::spawn_blocking(move || drop(server)).await.unwrap();
        assert_eq!(mock.freed.load(std::sync::atomic::Ordering::SeqCst), 4);
        assert!(mock.call(0).is_cancelled() && mock.call(3).is_cancelled());
    });
}

#[test]
fn a_drain_lets_streams_finish_and_refuses_new_ones() {
    let server = Server::new();
    run(async {
        let client = connect(&server).await;
        let mut other = client.clone();
        let running = tokio::spawn(async move { other.send_request(post("/hold", "{}")).await });
        let call = server.mock.call(0);
        std::thread::scope(|scope| {
            let drain = scope.spawn(|| server.drain(8000));
            std::thread::sleep(Duration::from_millis(100));
            assert!(!drain.is_finished());
            call.end();
        });
        assert_eq!(running.await.unwrap().unwrap().status().as_u16(), 201);
        assert!(client.clone().send_request(post("/echo", "{}")).await.is_err(), "the connection is closed");
        assert!(!call.is_cancelled());
    });
}
