//! Requests as the core gets them, its answers as clients get them, and answers of the front itself.

use std::sync::atomic::Ordering;

use espalier_front::abi::{LOADING, STOPPING};

use crate::support::{Server, request};

#[test]
fn the_core_gets_all_parts_of_a_request() {
    let server = Server::new();
    let answer = server.ask(
        "POST",
        "/slots/a%20b%25c?x=1&y=%26+z&x=2",
        "X-Tool-Runtime: R\r\nCookie: c\r\nX-Request-Id: i\r\n",
        "{\"a\":1}",
    );
    assert_eq!(
        answer.body,
        "path /slots/a b%c\nquery x=1\nquery y=& z\nquery x=2\nparam id_slot=a b%c\nheader host=x\nheader x-tool-runtime=R\n\
               header cookie=c\nheader x-request-id=i\nheader content-length=7\nform 0\nbody {\"a\":1}\n"
    );
}

#[test]
fn the_answer_has_the_status_the_type_and_the_headers_of_the_core() {
    let server = Server::new();
    let answer = server.get("/echo");
    assert_eq!((answer.status, answer.header("content-type")), (201, Some("text/plain")));
    assert_eq!((answer.header("x-mock"), answer.header("server")), (Some("yes"), Some("llama.cpp")));
    // The length is that of the body, and invalid headers are left out.
    assert_eq!(answer.header("content-length"), Some(answer.body.len().to_string().as_str()));
    assert_eq!(answer.header("x-line"), None);
}

#[test]
fn a_form_reaches_the_core_in_parts() {
    let server = Server::new();
    let body = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nw\r\n--b\r\nContent-Disposition: form-data; \
                name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\nRIFF\r\n--b--\r\n";
    let answer = server.ask("POST", "/echo", "Content-Type: multipart/form-data; boundary=b\r\n", body);
    assert!(
        answer.body.contains("field model [] []=w\nfile file [a.wav] [audio/wav]=RIFF\nform 1\n"),
        "{}",
        answer.body
    );
    let broken = server.ask("POST", "/echo", "Content-Type: multipart/form-data; boundary=b\r\n", "--b\r\nx");
    assert_eq!(broken.status, 400);
    assert!(broken.body.contains("the form is incomplete"), "{}", broken.body);
    assert_eq!(server.mock.made(), 1);
}

#[test]
fn head_is_get_without_the_body() {
    let server = Server::new();
    let mut client = server.client();
    client.send(&request("HEAD", "/echo", "", ""));
    let answer = client.head().unwrap();
    assert_eq!(answer.status, 201);
    let length = server.get("/echo").header("content-length").map(str::to_string);
    assert_eq!(answer.header("content-length").map(str::to_string), length);
    // Nothing precedes the next answer on the connection.
    client.send(&request("GET", "/health", "", ""));
    assert_eq!(client.answer().body, r#"{"status":"ok"}"#);
}

#[test]
fn unknown_paths_and_methods_are_not_found() {
    let server = Server::new();
    for (method, path) in
        [("GET", "/nowhere"), ("POST", "/health"), ("DELETE", "/echo"), ("GET", "/echo/"), ("BREW", "/echo")]
    {
        let answer = server.ask(method, path, "", "");
        assert_eq!(answer.status, 404, "{method} {path}");
        assert_eq!(
            answer.body,
            r#"{"error":{"message":"File Not Found","type":"not_found_error","code":404}}"#
        );
    }
    assert_eq!(server.mock.made(), 0);
}

#[test]
fn a_prefix_is_part_of_every_path() {
    let server = Server::with(|options| options.prefix = "/api");
    for path in ["/api/echo", "/api/health", "/api/livez", "/api/readyz"] {
        assert!(server.get(path).status < 300, "{path}");
    }
    for path in ["/echo", "/health", "/livez", "/apiecho", "/api"] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
}

#[test]
fn health_is_answered_without_the_core() {
    let server = Server::new();
    let answer = server.get("/health");
    assert_eq!((answer.status, answer.body.as_str()), (200, r#"{"status":"ok"}"#));
    assert_eq!(server.mock.made(), 0);
}

#[test]
fn while_loading_every_path_answers_503_and_only_livez_is_well() {
    let server = Server::new();
    server.mock.state.store(LOADING, Ordering::SeqCst);
    for path in ["/health", "/echo", "/nowhere"] {
        let answer = server.get(path);
        assert_eq!(answer.status, 503, "{path}");
        assert_eq!(
            answer.body,
            r#"{"error":{"message":"Loading model","type":"unavailable_error","code":503}}"#
        );
    }
    assert_eq!(server.get("/livez").status, 200);
    let ready = server.get("/readyz");
    assert_eq!((ready.status, ready.body.as_str()), (503, r#"{"status":"loading"}"#));
}

#[test]
fn while_stopping_requests_are_refused() {
    let server = Server::new();
    server.mock.state.store(STOPPING, Ordering::SeqCst);
    let answer = server.get("/echo");
    assert_eq!(answer.status, 503);
    assert!(answer.body.contains("The server is shutting down"), "{}", answer.body);
    assert_eq!(server.get("/readyz").body, r#"{"status":"stopping"}"#);
    assert_eq!(server.mock.made(), 0);
}

#[test]
fn a_key_is_required_everywhere_but_for_probes() {
    let server = Server::with(|options| options.keys = vec!["one", "two"]);
    for path in ["/health", "/livez", "/readyz"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    for path in ["/echo", "/metrics", "/nowhere"] {
        let answer = server.get(path);
        assert_eq!(answer.status, 401, "{path}");
        assert_eq!(
            answer.body,
            r#"{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}"#
        );
    }
    assert_eq!(server.ask("GET", "/echo", "Authorization: Bearer two\r\n", "").status, 201);
    assert_eq!(server.ask("GET", "/echo", "X-Api-Key: one\r\n", "").status, 201);
    let several = "Authorization: Bearer one\r\nAuthorization: Bearer two\r\n";
    assert_eq!(server.ask("GET", "/echo", several, "").status, 400);
    assert_eq!(server.mock.made(), 2);
}

#[test]
fn the_core_gets_the_key_that_was_found() {
    let found = |server: &Server, headers: &str| {
        let answer = server.ask("GET", "/echo", headers, "");
        let mut lines = answer.body.lines();
        lines.find_map(|line| line.strip_prefix("key ")).map(str::to_string)
    };
    let locked = Server::with(|options| options.keys = vec!["one"]);
    let open = Server::new();
    for server in [&locked, &open] {
        assert_eq!(found(server, "Authorization: Bearer one\r\n").as_deref(), Some("one"));
        assert_eq!(found(server, "X-Api-Key: one\r\n").as_deref(), Some("one"));
    }
    assert_eq!(found(&open, "Authorization: Bearer x\r\nX-Api-Key: y\r\n").as_deref(), Some("x"));
    assert_eq!(found(&open, ""), None);
}

#[test]
fn errors_of_the_messages_api_have_its_format() {
    let server = Server::with(|options| options.keys = vec!["k"]);
    let answer = server.ask("POST", "/v1/messages", "", "{}");
    let expected =
        r#"{"type":"error","error":{"message":"Invalid API Key","type":"authentication_error","code":401}}"#;
    assert_eq!((answer.status, answer.body.as_str()), (401, expected));
}

#[test]
fn a_preflight_request_needs_no_key_and_no_route() {
    let server = Server::with(|options| options.keys = vec!["k"]);
    let answer = server.ask("OPTIONS", "/anything", "Origin: https://a.example\r\n", "");
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://a.example"));
    assert_eq!(answer.header("access-control-allow-methods"), Some("GET, POST"));
    assert_eq!(answer.header("access-control-allow-credentials"), Some("true"));
    // Errors are readable for browsers as well.
    let refused = server.ask("GET", "/echo", "Origin: https://a.example\r\n", "");
    assert_eq!(
        (refused.status, refused.header("access-control-allow-origin")),
        (401, Some("https://a.example"))
    );
}

#[test]
fn a_call_that_cannot_be_made_is_an_error_of_the_server() {
    let server = Server::new();
    assert_eq!(server.get("/failing").status, 500);
    assert_eq!(server.live_calls(), 0);
}
