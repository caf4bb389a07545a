//! Certificates, made when a test runs, and TLS clients that check them.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion};

use crate::support::{Client, File, Options, Server, request};

/// A certificate with its key, in PEM.
#[derive(Clone, Debug)]
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

/// An issuer of certificates.
pub struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

/// In PEM. rcgen's feature for it brings a second version of base64.
fn pem(kind: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = text.as_bytes().chunks(64).map(|line| str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", lines.join("\n"))
}

fn params(name: &str, hosts: &[&str]) -> CertificateParams {
    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

impl Authority {
    pub fn new(name: &str) -> Authority {
        let (mut params, key) = (params(name, &[]), KeyPair::generate().unwrap());
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate = params.self_signed(&key).unwrap();
        Authority { certificate, issuer: Issuer::new(params, key) }
    }

    pub fn pem(&self) -> String {
        pem("CERTIFICATE", self.certificate.der())
    }

    /// A certificate for `localhost`, or for a client.
    pub fn issue(&self) -> Pair {
        let key = KeyPair::generate().unwrap();
        let certificate = params("pair", &["localhost"]).signed_by(&key, &self.issuer).unwrap();
        Pair {
            certificate: pem("CERTIFICATE", certificate.der()),
            key: pem("PRIVATE KEY", key.serialized_der()),
        }
    }

    /// A client that trusts this issuer.
    pub fn client(&self) -> ClientConfig {
        self.client_with(rustls::ALL_VERSIONS, None)
    }

    /// The same with a certificate of its own.
    pub fn client_as(&self, pair: &Pair) -> ClientConfig {
        self.client_with(rustls::ALL_VERSIONS, Some(pair))
    }

    pub fn client_with(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        pair: Option<&Pair>,
    ) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.der().clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots);
        let Some(pair) = pair else { return builder.with_no_client_auth() };
        let certificate = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
        builder.with_client_auth_cert(vec![certificate], key).unwrap()
    }
}

/// A front with TLS, and its files.
pub struct Secured {
    pub server: Server,
    pub authority: Authority,
    pub certificate: File,
    pub key: File,
}

impl Secured {
    pub fn new(test: &str) -> Secured {
        Secured::with(test, |_| {})
    }

    pub fn with(test: &str, change: impl Fn(&mut Options)) -> Secured {
        let authority = Authority::new("authority");
        let pair = authority.issue();
        let certificate = File::new(&format!("{test}-certificate"), &pair.certificate);
        let key = File::new(&format!("{test}-key"), &pair.key);
        let server = Server::with(|options| {
            options.certificate = certificate.path().to_string();
            options.private_key = key.path().to_string();
            change(options);
        });
        Secured { server, authority, certificate, key }
    }

    /// Replaces certificate and key.
    pub fn write(&self, pair: &Pair) {
        self.certificate.write(&pair.certificate);
        self.key.write(&pair.key);
    }

    pub fn connect(&self) -> TlsClient {
        connect(self.server.port, self.authority.client()).unwrap()
    }

    pub fn status(&self) -> u16 {
        let mut client = self.connect();
        client.send(&request("GET", "/echo", "", ""));
        client.answer().status
    }
}

pub type TlsClient = Client<StreamOwned<ClientConnection, TcpStream>>;

/// Connects to a front, and does the handshake.
pub fn open(port: u16, config: ClientConfig) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let name = ServerName::try_from("localhost").unwrap();
    let mut session = ClientConnection::new(Arc::new(config), name).unwrap();
    session.complete_io(&mut stream)?;
    Ok(StreamOwned::new(session, stream))
}

pub fn connect(port: u16, config: ClientConfig) -> io::Result<TlsClient> {
    open(port, config).map(Client::over)
}

/// Returns the error of a handshake. With TLS 1.3 a client learns only after its own part that it is refused.
pub fn refusal(port: u16, config: ClientConfig) -> String {
    let refused = open(port, config).and_then(|mut stream| stream.read(&mut [0]));
    format!("{:?}", refused.expect_err("it is not refused"))
}

/// The number of handshakes that failed, by reason.
pub fn failures(client: &mut TlsClient) -> BTreeMap<String, u64> {
    client.send(&request("GET", "/totals", "", ""));
    let body = client.answer().body;
    let lines = body.lines().filter_map(|line| {
        let line = line.strip_prefix("llamacpp:http_tls_handshakes_failed_total{reason=\"")?;
        line.split_once("\"} ")
    });
    lines.map(|(reason, count)| (reason.to_string(), count.parse().unwrap())).collect()
}

/// Waits until exactly these handshakes have failed.
pub fn wait_for_failures(client: &mut TlsClient, expected: &[(&str, u64)]) {
    let expected = expected.iter().map(|(reason, count)| (reason.to_string(), *count)).collect();
    let begin = std::time::Instant::now();
    loop {
        let failures = failures(client);
        if failures == expected {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "{failures:?} instead of {expected:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
