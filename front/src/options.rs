//! The options of a front.

use std::path::PathBuf;
use std::time::Duration;

use crate::abi::{RawOptions, Text};
use crate::cors::Cors;
use crate::keys::Keys;
use crate::tls::{Tls, TlsFiles};

/// Options, copied from the server's.
#[derive(Debug)]
pub struct Options {
    /// Addresses, names, or paths of unix sockets that end in `.sock`.
    pub hosts: Vec<String>,
    /// TCP port; 0 is any.
    pub port: u16,
    /// Whether other processes may listen on the port too.
    pub reuse_port: bool,
    /// Prefix of all paths.
    pub prefix: Vec<u8>,
    /// API keys.
    pub keys: Keys,
    /// File of the access log.
    pub access_log: Option<PathBuf>,
    /// TLS of TCP connections.
    pub tls: Option<Tls>,
    /// Headers for browsers.
    pub cors: Cors,
    /// Largest body in bytes.
    pub max_body: usize,
    /// Time until the headers of a request are complete.
    pub header: Duration,
    /// Time until the body of a request is complete.
    pub body: Duration,
    /// Time until a client takes more of an answer.
    pub write: Duration,
    /// Most running and waiting requests.
    pub max_calls: usize,
    /// Most connections.
    pub max_connections: usize,
}

/// Most requests that may run or wait, so that their threads stay few.
pub const MOST_CALLS: usize = 1024;

/// Most connections, however large the limit of open files is.
const MOST_CONNECTIONS: usize = 65_536;

impl Options {
    /// Copies and checks the options.
    ///
    /// # Errors
    ///
    /// The reason why the options cannot be used.
    ///
    /// # Safety
    ///
    /// The texts and the arrays of `raw` are valid.
    pub unsafe fn read(raw: &RawOptions) -> Result<Options, String> {
        let array = |first: *const Text, count: usize| {
            // SAFETY: per this function's contract, `first` has `count` texts unless there are none.
            if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(first, count) } }
        };
        // SAFETY: per this function's contract the texts are valid.
        let bytes = |text: Text| unsafe { text.bytes() };
        let text = |text: Text, name: &str| {
            let copy = String::from_utf8(bytes(text).to_vec());
            copy.map_err(|_| format!("{name} is not UTF-8"))
        };
        let hosts = array(raw.hosts, raw.n_hosts).iter().map(|host| text(*host, "a host"));
        let hosts: Vec<String> = hosts.collect::<Result<_, _>>()?;
        if hosts.is_empty() {
            return Err("there is no address to listen on".to_string());
        }
        let keys = array(raw.keys, raw.n_keys).iter().map(|key| bytes(*key));
        let path = |path: Text, name: &str| -> Result<Option<PathBuf>, String> {
            Ok(Some(text(path, name)?).filter(|path| !path.is_empty()).map(PathBuf::from))
        };
        let keys = match path(raw.key_file, "--front-keys")? {
            None => Keys::new(keys),
            Some(file) => Keys::of_file(file, raw.counts_tokens != 0)?,
        };
        let time = |ms: u32| Duration::from_millis(u64::from(ms.max(1)));
        Ok(Options {
            hosts,
            port: u16::try_from(raw.port).map_err(|_| format!("{} is not a port", raw.port))?,
            reuse_port: raw.reuse_port != 0,
            prefix: bytes(raw.prefix).to_vec(),
            keys,
            access_log: path(raw.access_log, "--front-log")?,
            tls: read_tls(raw, path)?,
            cors: Cors {
                origins: text(raw.cors_origins, "--cors-origins")?,
                methods: text(raw.cors_methods, "--cors-methods")?,
                headers: text(raw.cors_headers, "--cors-headers")?,
                credentials: raw.cors_credentials != 0,
            },
            max_body: usize::try_from(raw.max_body).unwrap_or(usize::MAX),
            header: time(raw.header_ms),
            body: time(raw.body_ms),
            write: time(raw.write_ms),
            max_calls: (raw.max_calls as usize).clamp(1, MOST_CALLS),
            max_connections: (raw.max_connections as usize).clamp(1, MOST_CONNECTIONS),
        })
    }
}

fn read_tls(
    raw: &RawOptions,
    path: impl Fn(Text, &str) -> Result<Option<PathBuf>, String>,
) -> Result<Option<Tls>, String> {
    let certificate = path(raw.certificate, "--ssl-cert-file")?;
    let key = path(raw.private_key, "--ssl-key-file")?;
    let client_ca = path(raw.client_ca, "--front-client-ca")?;
    TlsFiles::new(certificate, key, client_ca)?.map(Tls::open).transpose()
}
