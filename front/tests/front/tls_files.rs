//! The files of TLS: what is refused at start, and reading them again.

use crate::certificates::{Authority, Secured, connect, refusal, wait_for_failures};
use crate::core::wait_until;
use crate::support::{File, Options, Server, request};

/// The reason why no front is opened with these files.
fn reason(certificate: &str, private_key: &str, client_ca: &str) -> String {
    let options = Options {
        certificate: certificate.to_string(),
        private_key: private_key.to_string(),
        client_ca: client_ca.to_string(),
        ..Options::default()
    };
    let log = Server::open(&options).expect_err("a front is opened");
    log.strip_prefix("0 cannot initialize the transport: ").unwrap_or_else(|| panic!("{log}")).to_string()
}

#[test]
fn options_need_each_other() {
    let (certificate, key) = ("/certificate", "/key");
    let needed = "--ssl-cert-file and --ssl-key-file must be given together";
    for (certificate, key) in [(certificate, ""), ("", key)] {
        assert_eq!(reason(certificate, key, ""), needed);
        assert_eq!(reason(certificate, key, "/ca"), needed);
    }
    assert_eq!(reason("", "", "/ca"), "--front-client-ca needs --ssl-cert-file and --ssl-key-file");
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_the_remedy() {
    let pair = Authority::new("authority").issue();
    let file = |name: &str, text: &str| File::new(&format!("tls-files-{name}"), text);
    let (certificate, key) = (file("certificate", &pair.certificate), file("key", &pair.key));
    let none = "/no/such/file";
    let empty = file("empty", "");
    let cut = file("cut", &pair.certificate[..pair.certificate.len() / 2]);
    let malformed = file("malformed", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let garbage = file("garbage", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    let encrypted = file(
        "encrypted",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
    );
    let is_named = |reason: String, named: &str, remedy: &str| {
        assert!(reason.starts_with(&format!("{named}: ")) && reason.contains(remedy), "{reason}");
    };
    for (path, remedy) in [
        (none, "the server cannot read it"),
        (empty.path(), "it has to be PEM"),
        (cut.path(), "an incomplete one"),
        (key.path(), "no certificate"),
        (malformed.path(), "malformed"),
    ] {
        is_named(reason(path, key.path(), ""), path, remedy);
        is_named(reason(certificate.path(), key.path(), path), path, remedy);
    }
    for (path, remedy) in [
        (none, "the server cannot read it"),
        (empty.path(), "it has to be PEM"),
        (certificate.path(), "no private key"),
        (encrypted.path(), "openssl pkey -in KEY"),
        (garbage.path(), "not a supported key"),
    ] {
        is_named(reason(certificate.path(), path, ""), path, remedy);
    }
    let other = file("other", &Authority::new("other").issue().key);
    let mismatch = reason(certificate.path(), other.path(), "");
    is_named(mismatch.clone(), certificate.path(), "its first certificate does not belong to the key in");
    assert!(mismatch.contains(other.path()), "{mismatch}");
}

#[test]
fn a_chain_in_the_wrong_order_is_named() {
    let authority = Authority::new("authority");
    let pair = authority.issue();
    let chain = File::new("tls-order", &(authority.pem() + &pair.certificate));
    let key = File::new("tls-order-key", &pair.key);
    let reason = reason(chain.path(), key.path(), "");
    assert!(reason.contains("the server's certificate before those of its issuers"), "{reason}");
}

/// A parser that quotes the line that it cannot read would quote all of the key.
#[test]
fn no_message_quotes_a_key() {
    let pair = Authority::new("authority").issue();
    let secret = pair.key.lines().nth(1).unwrap();
    let certificate = File::new("tls-quotes-certificate", &pair.certificate);
    let key = File::new("tls-quotes-key", "");
    for text in [pair.key.replace('\n', ""), pair.key.replace("-----END", "----END"), secret.to_string()] {
        key.write(&text);
        for reason in [reason(certificate.path(), key.path(), ""), reason(key.path(), key.path(), "")] {
            assert!(!reason.contains(&secret[..10]), "{reason}");
        }
    }
    let front = Secured::new("tls-quotes");
    front.key.write(&pair.key.replace('\n', ""));
    front.server.reload();
    let log = front.server.mock.log();
    assert!(
        log.contains("cannot reload the TLS files, keeping the current ones") && !log.contains(&secret[..10]),
        "{log}"
    );
}

#[cfg(unix)]
#[test]
fn a_key_that_other_users_can_read_is_reported() {
    use std::os::unix::fs::PermissionsExt;

    let pair = Authority::new("authority").issue();
    let certificate = File::new("tls-mode-certificate", &pair.certificate);
    let key = File::new("tls-mode-key", &pair.key);
    for (mode, is_reported) in [(0o600, false), (0o400, false), (0o640, true), (0o604, true), (0o602, true)] {
        std::fs::set_permissions(key.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        let server = Server::with(|options| {
            options.certificate = certificate.path().to_string();
            options.private_key = key.path().to_string();
        });
        let warning =
            format!("1 {}: other users can read or write the private key (mode {mode:03o})", key.path());
        assert_eq!(server.mock.log().contains(&warning), is_reported, "{}", server.mock.log());
    }
}

#[test]
fn new_files_are_used_for_new_connections_and_old_ones_go_on() {
    let front = Secured::new("tls-reload");
    let port = front.server.port;
    let mut old = front.connect();
    old.send(&request("POST", "/quiet", "", "{}"));
    assert_eq!(old.head().unwrap().status, 200);
    let successor = Authority::new("successor");
    front.write(&successor.issue());
    assert_eq!(front.status(), 201, "nothing is read before the signal");
    front.server.reload();
    let refused = refusal(port, front.authority.client());
    assert!(refused.contains("UnknownIssuer"), "{refused}");
    let mut new = connect(port, successor.client()).unwrap();
    new.send(&request("GET", "/health", "", ""));
    assert_eq!(new.answer().status, 200);
    let call = front.server.mock.call(0);
    call.feed(b"data: 1\n\n");
    assert_eq!(old.chunk().as_deref(), Some("data: 1\n\n"));
    call.end();
    assert_eq!(old.chunk(), None);
    old.send(&request("GET", "/health", "", ""));
    assert_eq!(old.answer().status, 200);
    assert!(front.server.mock.log().contains("2 new connections use the TLS files"));
}

#[test]
fn files_that_became_invalid_leave_everything_as_it_is() {
    let front = Secured::new("tls-broken");
    let good = (front.certificate.read(), front.key.read());
    let other = Authority::new("other").issue();
    let broken = [
        (other.certificate.as_str(), good.1.as_str(), front.certificate.path(), "does not belong to the key"),
        (&good.0, "", front.key.path(), "no private key"),
        ("", &good.1, front.certificate.path(), "no certificate"),
    ];
    for (count, (certificate, key, path, reason)) in broken.into_iter().enumerate() {
        front.certificate.write(certificate);
        front.key.write(key);
        front.server.reload();
        assert_eq!(front.status(), 201, "{reason}");
        let log = front.server.mock.log();
        let message = format!("0 cannot reload the TLS files, keeping the current ones: {path}: ");
        assert!(log.contains(&message) && log.contains(reason), "{log}");
        assert_eq!(log.matches("keeping the current ones").count(), count + 1, "{log}");
    }
    front.certificate.write(&good.0);
    front.server.reload();
    assert_eq!(front.status(), 201);
}

#[test]
fn the_issuers_of_clients_are_read_again() {
    let (first, second) = (Authority::new("first"), Authority::new("second"));
    let file = File::new("tls-issuers", &first.pem());
    let front = Secured::with("tls-issuers-front", |options| options.client_ca = file.path().to_string());
    let port = front.server.port;
    let as_client = |issuer: &Authority| front.authority.client_as(&issuer.issue());
    let mut old = connect(port, as_client(&first)).unwrap();
    file.write(&second.pem());
    front.server.reload();
    assert!(refusal(port, as_client(&first)).contains("UnknownCA"));
    wait_for_failures(&mut connect(port, as_client(&second)).unwrap(), &[("client_certificate", 1)]);
    file.write("");
    front.server.reload();
    assert!(
        refusal(port, front.authority.client()).contains("CertificateRequired"),
        "they are still required"
    );
    wait_for_failures(&mut old, &[("client_certificate", 2)]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_hangup_reads_the_files_again() {
    use crate::support::{hang_up, is_alone};

    if !is_alone("tls_files::a_hangup_reads_the_files_again") {
        return;
    }
    let front = Secured::new("tls-hangup");
    let successor = Authority::new("successor");
    front.write(&successor.issue());
    hang_up();
    wait_until("the new certificate is used", || connect(front.server.port, successor.client()).is_ok());
}
