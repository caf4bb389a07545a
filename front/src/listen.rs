//! Binds addresses and accepts their connections.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};
use tokio::time::sleep;

use crate::options::Options;
#[cfg(unix)]
use crate::unix_socket;

/// Connections that the kernel accepts before the front does.
const BACKLOG: i32 = 1024;

/// Wait after an error of `accept`, most likely a lack of file descriptors: without one the loop would spin.
const PAUSE: Duration = Duration::from_millis(50);

/// A bound address. A unix socket is removed when it is dropped.
#[derive(Debug)]
pub enum Listener {
    /// A TCP port.
    Tcp(TcpListener),
    /// A unix socket.
    #[cfg(unix)]
    Unix(UnixListener, unix_socket::File),
}

/// An accepted connection.
#[derive(Debug)]
pub enum Accepted {
    /// On a TCP port, with the address of the client.
    Tcp(TcpStream, SocketAddr),
    /// On a unix socket.
    #[cfg(unix)]
    Unix(UnixStream),
}

/// A connection of any kind.
pub trait Socketed: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Socketed for T {}

/// Binds all addresses; returns them and the TCP port. Runs inside the runtime.
///
/// # Errors
///
/// The first address that cannot be bound, with the reason.
pub fn bind_all(options: &Options) -> Result<(Vec<Listener>, u16), String> {
    let is_unix = |host: &String| host.ends_with(".sock");
    let n_tcp = options.hosts.iter().filter(|host| !is_unix(host)).count();
    if options.port == 0 && n_tcp > 1 {
        return Err("port 0 is not supported with several TCP addresses".to_string());
    }
    let mut port = options.port;
    let mut listeners = Vec::new();
    for host in &options.hosts {
        if is_unix(host) {
            listeners.push(bind_unix(host).map_err(|error| format!("{host}: {error}"))?);
            continue;
        }
        // With several addresses, [::] must not claim 0.0.0.0 too.
        let listener = bind_host(host, port, options.reuse_port, n_tcp > 1);
        let listener = listener.map_err(|error| format!("{host}, port {port}: {error}"))?;
        port = listener.local_addr().map_err(|error| error.to_string())?.port();
        listeners.push(Listener::Tcp(listener));
    }
    Ok((listeners, port))
}

#[cfg(unix)]
fn bind_unix(path: &str) -> io::Result<Listener> {
    unix_socket::bind(path).map(|(listener, file)| Listener::Unix(listener, file))
}

#[cfg(not(unix))]
fn bind_unix(_path: &str) -> io::Result<Listener> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Binds the first of the addresses of a host that can be bound.
fn bind_host(host: &str, port: u16, reuse_port: bool, v6_only: bool) -> io::Result<TcpListener> {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in (host, port).to_socket_addrs()? {
        match bind(address, reuse_port, v6_only) {
            Ok(listener) => return Ok(listener),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn bind(address: SocketAddr, reuse_port: bool, v6_only: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(v6_only)?;
    }
    // On Windows it would allow a second server on the same port.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    #[cfg(all(unix, not(target_os = "solaris"), not(target_os = "illumos")))]
    if reuse_port {
        socket.set_reuse_port(true)?;
    }
    #[cfg(not(unix))]
    let _ = reuse_port;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

impl Listener {
    /// Returns the next connection.
    pub async fn accept(&self) -> Accepted {
        loop {
            let accepted = match self {
                Listener::Tcp(listener) => listener.accept().await.map(|(stream, address)| {
                    // Tokens are small, and must not wait for each other.
                    let _ = stream.set_nodelay(true);
                    Accepted::Tcp(stream, address)
                }),
                #[cfg(unix)]
                Listener::Unix(listener, _) => {
                    listener.accept().await.map(|(stream, _)| Accepted::Unix(stream))
                }
            };
            match accepted {
                Ok(connection) => return connection,
                Err(error) if is_of_one_connection(&error) => {}
                Err(_) => sleep(PAUSE).await,
            }
        }
    }
}

/// Whether only the connection failed that was to be accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
