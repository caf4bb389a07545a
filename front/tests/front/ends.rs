//! Listening, and the ways in which it ends.

use std::time::Duration;

use crate::support::{Client, Options, Server, request, timed};

#[test]
fn a_drain_ends_idle_connections_and_waits_for_requests() {
    let server = Server::new();
    let (mut idle, mut busy) = (server.client(), server.client());
    idle.send(&request("GET", "/health", "", ""));
    assert_eq!(idle.answer().status, 200);
    busy.send(&request("POST", "/hold", "", "{}"));
    let call = server.mock.call(0);
    std::thread::scope(|scope| {
        let drain = scope.spawn(|| timed(|| server.drain(8000)).1);
        assert_eq!(idle.until_closed(), "");
        // Connections that come meanwhile are answered, and closed.
        let late = server.get("/livez");
        assert_eq!((late.status, late.header("connection")), (200, Some("close")));
        std::thread::sleep(Duration::from_millis(200));
        assert!(!drain.is_finished());
        call.end();
        assert_eq!(busy.answer().status, 201);
        let time = drain.join().unwrap();
        assert!(time < Duration::from_secs(5), "{time:?}");
    });
    assert!(!call.is_cancelled());
}

#[test]
fn a_drain_has_a_deadline_and_stop_cancels_what_is_left() {
    let server = Server::new();
    let mut clients: Vec<Client> = (0..4).map(|_| server.client()).collect();
    for (number, path) in ["/hold", "/stream", "/blocking", "/hold"].into_iter().enumerate() {
        clients[number].send(&request("POST", path, "", "{}"));
        server.mock.call(number);
    }
    let ((), time) = timed(|| server.drain(200));
    assert!(time >= Duration::from_millis(200) && time < Duration::from_secs(2), "{time:?}");
    assert_eq!(server.open_connections(), 4);
    server.stop();
    for (number, client) in clients.iter_mut().enumerate() {
        client.until_closed();
        crate::core::wait_until("the call is cancelled", || server.mock.call(number).is_cancelled());
    }
    server.mock.wait_freed(4);
}

#[test]
fn closing_frees_every_call() {
    let server = Server::new();
    let mock = std::sync::Arc::clone(&server.mock);
    let mut clients: Vec<Client> = (0..20).map(|_| server.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(&request("POST", ["/hold", "/stream", "/blocking"][number % 3], "", "{}"));
        mock.call(number);
    }
    let ((), time) = timed(|| drop(server));
    assert!(time < Duration::from_secs(5), "{time:?}");
    assert_eq!(mock.freed.load(std::sync::atomic::Ordering::SeqCst), 20);
    assert!(mock.log().contains("transport closed"));
}

#[test]
fn an_address_in_use_is_reported_and_no_other_is_served() {
    let first = Server::new();
    let hosts = vec!["127.0.0.2".to_string(), "127.0.0.1".to_string()];
    let failed = Server::open(&Options { hosts, port: first.port, ..Options::default() }).unwrap_err();
    assert!(failed.contains(&format!("0 cannot listen on 127.0.0.1, port {}", first.port)), "{failed}");
    assert_eq!(
        std::net::TcpStream::connect(("127.0.0.2", first.port)).unwrap_err().kind(),
        std::io::ErrorKind::ConnectionRefused
    );
}

#[test]
fn several_addresses_share_a_port() {
    // A port that was free a moment ago.
    let port = Server::new().port;
    let hosts = vec!["127.0.0.1".to_string(), "127.0.0.2".to_string()];
    let server = Server::open(&Options { hosts, port, ..Options::default() }).unwrap();
    assert_eq!(server.port, port);
    assert_eq!(server.get("/health").status, 200);
    assert!(std::net::TcpStream::connect(("127.0.0.2", port)).is_ok());
}

#[test]
fn options_that_cannot_be_used_are_refused_with_the_reason() {
    let none = Server::open(&Options { hosts: Vec::new(), ..Options::default() }).unwrap_err();
    assert!(none.contains("there is no address to listen on"), "{none}");
    let hosts = vec!["127.0.0.1".to_string(), "127.0.0.2".to_string()];
    let any = Server::open(&Options { hosts, ..Options::default() }).unwrap_err();
    assert!(any.contains("port 0 is not supported with several TCP addresses"), "{any}");
    let unknown = Server::open(&Options { hosts: vec!["no.such.invalid".to_string()], ..Options::default() })
        .unwrap_err();
    assert!(unknown.contains("cannot listen on no.such.invalid"), "{unknown}");
}

#[test]
fn a_front_that_listens_has_all_its_routes() {
    let server = Server::new();
    assert_eq!(server.route_too_late(), u32::MAX);
    assert_eq!(server.get("/late").status, 404);
}

#[cfg(unix)]
#[test]
fn a_unix_socket_replaces_a_stale_file_and_is_removed_at_the_end() {
    use std::io::{Read, Write};
    use std::os::unix::net::{UnixListener, UnixStream};

    let path = std::env::temp_dir().join(format!("espalier-front-{}.sock", std::process::id()));
    let host = path.to_str().unwrap().to_string();
    let options = Options { hosts: vec![host.clone()], ..Options::default() };
    // Dropped without removing its file, as after a crash.
    drop(UnixListener::bind(&path).unwrap());
    let server = Server::open(&options).unwrap();
    let mut client = UnixStream::connect(&path).unwrap();
    client.write_all(b"GET /health HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.0 200 OK"), "{answer}");
    // Another server listens: its socket is not taken away.
    let second = Server::open(&options).unwrap_err();
    assert!(second.contains(&format!("cannot listen on {host}")), "{second}");
    drop(server);
    assert!(!path.exists());
}
