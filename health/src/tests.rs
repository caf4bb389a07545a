use std::net::{TcpListener, TcpStream};

use super::*;

fn question(set: &[(&str, &str)]) -> Result<Question, String> {
    let set: Vec<(String, String)> =
        set.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    Question::new(|name| set.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone()))
}

/// Checks a server that responds with `parts`, a moment between each. Returns the result, and the request it received.
fn check_server(parts: &'static [&'static [u8]], patience: Duration) -> (Result<u16, String>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 512];
        let count = stream.read(&mut request).unwrap();
        for part in parts {
            let _ = stream.write_all(part);
            std::thread::sleep(Duration::from_millis(60));
        }
        String::from_utf8_lossy(&request[..count]).into_owned()
    });
    let result = question(&[("LLAMA_ARG_PORT", &port)]).unwrap().ask(patience);
    (result, server.join().unwrap())
}

#[test]
fn it_asks_where_the_server_listens() {
    let asked = |set: &[(&str, &str)]| question(set).unwrap();
    let plain = Question { host: "127.0.0.1".into(), port: 8080, path: "/health".into() };
    assert_eq!(asked(&[]), plain);
    assert_eq!(asked(&[("LLAMA_ARG_HOST", "0.0.0.0"), ("LLAMA_ARG_PORT", "")]), plain);
    assert_eq!(asked(&[("LLAMA_ARG_HOST", "::")]).host, "::1");
    let set = [("LLAMA_ARG_HOST", "10.0.0.7"), ("LLAMA_ARG_PORT", "9000"), ("LLAMA_ARG_API_PREFIX", "/llm")];
    assert_eq!(asked(&set), Question { host: "10.0.0.7".into(), port: 9000, path: "/llm/health".into() });
    assert!(question(&[("LLAMA_ARG_PORT", "http")]).unwrap_err().contains("`http`"));
    assert!(question(&[("LLAMA_ARG_API_PREFIX", "/a\r\nX: y")]).is_err());
}

#[test]
fn the_status_of_an_answer_is_reported() {
    let (result, request) = check_server(&[b"HTTP/1.1 200 OK\r\n\r\n{}"], PATIENCE);
    assert_eq!((result, request.lines().next()), (Ok(200), Some("GET /health HTTP/1.0")));
    assert_eq!(check_server(&[b"HTTP/1.1 50", b"3 Service Unavailable\r\n"], PATIENCE).0, Ok(503));
    assert_eq!(check_server(&[b"SSH-2.0-OpenSSH\r\n"], PATIENCE).0, Err("its answer is not HTTP".into()));
    assert_eq!(check_server(&[], PATIENCE).0, Err("its answer is not HTTP".into()));
}

#[test]
fn a_server_that_does_not_answer_is_not_waited_for() {
    let begin = Instant::now();
    let (result, _) = check_server(&[b"H", b"T", b"T", b"P", b"/", b"1"], Duration::from_millis(150));
    assert!(result.is_err() && begin.elapsed() < Duration::from_secs(2), "{result:?}");
    // The client's end of a connection keeps its port from every other program, and nothing listens on it.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let closed = client.local_addr().unwrap().port().to_string();
    assert!(question(&[("LLAMA_ARG_PORT", &closed)]).unwrap().ask(PATIENCE).is_err());
}
