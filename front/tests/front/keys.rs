//! Keys from a file: tenants, models, limits, and the file read again.

use sha2::{Digest, Sha256};

use crate::core::wait_until;
use crate::support::{Answer, File, Options, Server, request};

/// A front with the keys of a file.
fn server(file: &File) -> Server {
    Server::with(|options| options.key_file = file.path().to_string())
}

/// The table of a key that has the text of its name.
fn key(name: &str, fields: &str) -> String {
    let digest = Sha256::digest(name.as_bytes());
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("[{name}]\nsha256 = \"{digest}\"\n{fields}\n")
}

fn ask(server: &Server, key: &str) -> Answer {
    server.ask("GET", "/echo", &format!("Authorization: Bearer {key}\r\n"), "")
}

#[test]
fn a_key_of_the_file_is_accepted_with_its_tenant_and_its_models() {
    let text = key("one", "tenant = \"team\"\nmodels = [\"a\", \"b\"]") + &key("two", "");
    let file = File::new("accepted", &text);
    let server = server(&file);
    let answer = ask(&server, "one");
    assert!(answer.body.contains("key one\ntenant team\nmodel a\nmodel b\n"), "{}", answer.body);
    let answer = ask(&server, "two");
    assert!(answer.body.contains("key two\ntenant two\nheader"), "{}", answer.body);
    for other in ["", "team", "three"] {
        assert_eq!(ask(&server, other).status, 401, "{other}");
    }
    assert_eq!(server.get("/health").status, 200);
}

#[test]
fn a_file_that_cannot_be_used_opens_no_front() {
    let file = File::new("unusable", "[a]\nsha256 = \"12\"\n");
    for (key_file, reason) in
        [(file.path(), "`a`: sha256 has to be 64 hexadecimal digits"), ("/no/such/file", "/no/such/file: ")]
    {
        let options = Options { key_file: key_file.to_string(), ..Options::default() };
        let log = Server::open(&options).unwrap_err();
        assert!(log.contains("cannot initialize the transport") && log.contains(reason), "{log}");
    }
}

#[test]
fn requests_beyond_the_limit_of_a_key_are_answered_429_and_other_keys_are_not() {
    let text = key("one", "requests-per-minute = 2") + &key("two", "");
    let server = server(&File::new("requests", &text));
    for status in [201, 201, 429] {
        assert_eq!(ask(&server, "one").status, status);
    }
    let refused = ask(&server, "one");
    let wait: u32 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=30).contains(&wait), "{wait}");
    let expected = r#"{"error":{"code":429,"message":"The API key has used up its requests per minute, try again later","type":"rate_limit_error"}}"#;
    assert_eq!(refused.body, expected);
    // The server can still be watched, and there are other keys.
    assert_eq!(server.ask("GET", "/metrics", "X-Api-Key: one\r\n", "").status, 201);
    assert_eq!(ask(&server, "two").status, 201);
    assert_eq!(server.mock.made(), 4);
}

#[test]
fn a_route_that_runs_other_routes_is_refused_to_keys_with_limits_or_models() {
    let restrictions = ["requests-per-minute = 9", "tokens-per-minute = 9", "models = [\"a\"]"];
    let keys = ["one", "two", "three"];
    let text: String = keys.into_iter().zip(restrictions).map(|(name, fields)| key(name, fields)).collect();
    let server = server(&File::new("restricted", &(text + &key("free", ""))));
    let predict = |key: &str| server.ask("POST", "/predict", &format!("X-Api-Key: {key}\r\n"), "{}");
    for key in keys {
        let refused = predict(key);
        let expected = r#"{"error":{"code":403,"message":"An API key with limits or models may not use this route","type":"permission_error"}}"#;
        assert_eq!((refused.status, refused.body.as_str()), (403, expected), "{key}");
        assert_eq!(ask(&server, key).status, 201, "{key}");
    }
    assert_eq!((predict("free").status, predict("other").status), (201, 401));
}

#[test]
fn limits_of_tokens_are_refused_where_tokens_are_not_counted() {
    let (plain, limited) = (key("one", "requests-per-minute = 9"), key("one", "tokens-per-minute = 9"));
    let file = File::new("uncounted", &limited);
    let options = Options { key_file: file.path().to_string(), counts_tokens: false, ..Options::default() };
    let reason = format!("{}: `one`: tokens-per-minute is not supported at a router", file.path());
    let log = Server::open(&options).unwrap_err();
    assert!(log.contains(&format!("cannot initialize the transport: {reason}")), "{log}");
    file.write(&plain);
    let server = Server::open(&options).unwrap();
    file.write(&(limited + &key("two", "")));
    server.reload();
    assert_eq!((ask(&server, "one").status, ask(&server, "two").status), (201, 401));
    let log = server.mock.log();
    assert!(
        log.contains(&format!("0 cannot reload the API keys, keeping the current ones: {reason}")),
        "{log}"
    );
}

#[test]
fn tokens_of_a_key_are_counted_when_its_calls_are_freed() {
    let text = key("one", "tokens-per-minute = 20") + &key("two", "");
    let server = server(&File::new("tokens", &text));
    // 15 tokens each: 5 are left after the first, none after the second.
    for count in 1..=2 {
        assert_eq!(ask(&server, "one").status, 201);
        server.mock.wait_freed(count);
        wait_until("the tokens are counted", || server.live_calls() == 0);
    }
    let refused = ask(&server, "one");
    let wait: u32 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!(refused.status == 429 && (30..=33).contains(&wait), "{refused:?}");
    assert!(refused.body.contains("has used up its tokens per minute"), "{}", refused.body);
    assert_eq!(ask(&server, "two").status, 201);
}

#[test]
fn a_refused_request_keeps_its_connection_and_frees_its_place() {
    let server = server(&File::new("place", &key("one", "requests-per-minute = 1")));
    let mut client = server.client();
    for status in [201, 429, 429] {
        client.send(&request("POST", "/echo", "X-Api-Key: one\r\n", "{}"));
        assert_eq!(client.answer().status, status);
    }
    wait_until("calls are freed", || server.live_calls() == 0);
}

#[test]
fn the_file_is_read_again_and_used_limits_stay_used() {
    let file = File::new("reload", &(key("old", "") + &key("limited", "requests-per-minute = 1")));
    let server = server(&file);
    assert_eq!((ask(&server, "limited").status, ask(&server, "limited").status), (201, 429));
    file.write(&(key("new", "") + &key("limited", "requests-per-minute = 1")));
    assert_eq!(ask(&server, "new").status, 401, "nothing is read before the signal");
    server.reload();
    assert_eq!((ask(&server, "old").status, ask(&server, "new").status), (401, 201));
    assert_eq!(ask(&server, "limited").status, 429, "what was used stays used");
    file.write(&(key("new", "") + &key("limited", "requests-per-minute = 3")));
    server.reload();
    assert_eq!(ask(&server, "limited").status, 201, "a new limit starts full");
    assert!(server.mock.log().contains("2 2 API keys are accepted"), "{}", server.mock.log());
}

#[test]
fn a_file_that_became_invalid_leaves_the_keys_as_they_are() {
    let file = File::new("invalid", &key("old", ""));
    let server = server(&file);
    for broken in ["", "[new]\n", "not toml"] {
        file.write(broken);
        server.reload();
        assert_eq!(ask(&server, "old").status, 201, "{broken}");
    }
    let log = server.mock.log();
    assert_eq!(log.matches("0 cannot reload the API keys, keeping the current ones: ").count(), 3, "{log}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_hangup_reads_the_file_again() {
    use crate::support::{hang_up, is_alone};

    if !is_alone("keys::a_hangup_reads_the_file_again") {
        return;
    }
    let file = File::new("hangup", &key("old", ""));
    let server = server(&file);
    file.write(&key("new", ""));
    hang_up();
    wait_until("the new key is accepted", || ask(&server, "new").status == 201);
    assert_eq!(ask(&server, "old").status, 401);
}
