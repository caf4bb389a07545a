//! TLS: its files, and handshakes.

#![allow(clippy::disallowed_methods, reason = "the front is not part of the tool: it reads its own files")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{Error, RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, sink};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The protocols that are offered, the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The first byte of a client that speaks TLS: the record type of a handshake.
const HANDSHAKE: u8 = 22;

/// The answer to a client that does not.
const NOT_TLS: &str = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\
    Content-Type: application/json; charset=utf-8\r\n\r\n\
    {\"error\":{\"code\":400,\"message\":\"This port speaks HTTPS: use https:// in the URL\",\
    \"type\":\"invalid_request_error\"}}";

/// Bytes that are read of such a client so that it can read its answer.
const MOST_UNREAD: u64 = 64 << 10;

/// The files, all in PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The server's certificate, followed by those of its issuers.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Certificates of the issuers of client certificates. With it, clients have to present one.
    pub client_ca: Option<PathBuf>,
}

/// The TLS of all TCP connections.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    config: RwLock<Arc<ServerConfig>>,
}

impl TlsFiles {
    /// The files of the options; `None` is no TLS.
    ///
    /// # Errors
    ///
    /// One of them needs another one.
    pub fn new(
        certificate: Option<PathBuf>,
        key: Option<PathBuf>,
        client_ca: Option<PathBuf>,
    ) -> Result<Option<TlsFiles>, String> {
        match (certificate, key) {
            (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key, client_ca })),
            (None, None) if client_ca.is_none() => Ok(None),
            (None, None) => Err("--front-client-ca needs --ssl-cert-file and --ssl-key-file".to_string()),
            _ => Err("--ssl-cert-file and --ssl-key-file must be given together".to_string()),
        }
    }

    fn read(&self) -> Result<Arc<ServerConfig>, String> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let builder = match &self.client_ca {
            Some(file) => builder.with_client_cert_verifier(client_verifier(file, provider)?),
            None => builder.with_no_client_auth(),
        };
        let (chain, key) = (certificates(&self.certificate)?, private_key(&self.key)?);
        let mut config = builder.with_single_cert(chain, key).map_err(|error| self.unusable(&error))?;
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        Ok(Arc::new(config))
    }

    fn unusable(&self, error: &Error) -> String {
        let (certificate, key) = (self.certificate.display(), self.key.display());
        match error {
            Error::InconsistentKeys(_) => format!(
                "{certificate}: its first certificate does not belong to the key in {key}: use the two that were \
                 made together, with the server's certificate before those of its issuers"
            ),
            Error::InvalidCertificate(_) => format!("{certificate}: its first certificate is malformed"),
            _ => format!(
                "{key}: not a supported key: use RSA with at least 2048 bits, ECDSA with P-256 or P-384, or Ed25519"
            ),
        }
    }
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// One of them cannot be read, or cannot be used.
    pub fn open(files: TlsFiles) -> Result<Tls, String> {
        let config = RwLock::new(files.read()?);
        Ok(Tls { files, config })
    }

    /// Reads the files again, for new connections.
    ///
    /// # Errors
    ///
    /// One of them cannot be read, or cannot be used: then everything stays as it is.
    pub fn reload(&self) -> Result<(), String> {
        let config = self.files.read()?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    /// A warning if other users than its owner have access to the private key.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let mode = mode(&self.files.key)?;
        let key = self.files.key.display();
        (mode & 0o066 != 0).then(|| {
            format!("{key}: other users can read or write the private key (mode {mode:03o}): chmod 600")
        })
    }

    /// Does a handshake. The error is the reason of its failure in one word.
    ///
    /// # Errors
    ///
    /// The client does not speak TLS, is refused, refuses the server, leaves, or takes too much time.
    pub async fn accept(
        &self,
        stream: TcpStream,
        time: Duration,
    ) -> Result<TlsStream<TcpStream>, &'static str> {
        timeout(time, self.handshake(stream)).await.unwrap_or(Err("timeout"))
    }

    async fn handshake(&self, mut stream: TcpStream) -> Result<TlsStream<TcpStream>, &'static str> {
        let mut first = [0];
        match stream.peek(&mut first).await {
            Ok(1) if first[0] == HANDSHAKE => {}
            Ok(1) => {
                refuse(&mut stream).await;
                return Err("not_tls");
            }
            _ => return Err("client_left"),
        }
        let acceptor = TlsAcceptor::from(self.config());
        acceptor.accept(stream).await.map_err(|error| reason(&error))
    }

    fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The reason why a handshake failed.
fn reason(error: &io::Error) -> &'static str {
    match error.get_ref().and_then(|error| error.downcast_ref::<Error>()) {
        None => "client_left",
        Some(Error::AlertReceived(_)) => "client_alert",
        Some(Error::NoCertificatesPresented | Error::InvalidCertificate(_)) => "client_certificate",
        Some(Error::PeerIncompatible(_) | Error::NoApplicationProtocol) => "incompatible",
        Some(_) => "malformed",
    }
}

/// Answers a client that most likely speaks HTTP without TLS.
async fn refuse(stream: &mut TcpStream) {
    if stream.write_all(NOT_TLS.as_bytes()).await.is_ok() && stream.shutdown().await.is_ok() {
        // Closing a socket with unread bytes resets the connection, and the client would lose the answer.
        let _ = copy(&mut stream.take(MOST_UNREAD), &mut sink()).await;
    }
}

fn client_verifier(
    file: &Path,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for (index, certificate) in certificates(file)?.into_iter().enumerate() {
        roots
            .add(certificate)
            .map_err(|_| format!("{}: certificate {} is malformed", file.display(), index + 1))?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    verifier.map_err(|error| format!("{}: {error}", file.display()))
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    fs::read(file).map_err(|error| format!("{}: the server cannot read it: {error}", file.display()))
}

// The errors of the parser are not passed on: they can quote the file, which may be a key.

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(file)?).collect();
    chain.ok().filter(|chain| !chain.is_empty()).ok_or_else(|| {
        let file = file.display();
        format!(
            "{file}: no certificate, or an incomplete one: it has to be PEM (-----BEGIN CERTIFICATE-----)"
        )
    })
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(&read(file)?).map_err(|_| {
        let file = file.display();
        format!("{file}: no private key, or an encrypted one: it has to be PEM, as `openssl pkey -in KEY` writes it")
    })
}

/// The access of users to a file.
#[cfg(unix)]
fn mode(file: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;

    Some(fs::metadata(file).ok()?.permissions().mode() & 0o777)
}

/// As above: elsewhere it is not known.
#[cfg(not(unix))]
fn mode(_file: &Path) -> Option<u32> {
    None
}
