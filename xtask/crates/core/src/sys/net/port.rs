//! Ports of the loopback, above all for the servers that this tool starts.
//!
//! Asking the system for a free port, closing the socket and passing the number on is a race: until the server binds
//! it, and again once the server has ended, the system may give the number to any other program, whose answers would
//! then be mistaken for the server's. So the socket that got the number stays bound, without ever listening, for as
//! long as the port is in use: the system never hands out a bound port as a free one, and refuses connections to a
//! port without a listener.

use std::net::{Ipv4Addr, TcpListener, TcpStream};

use crate::error::{Error, Result};

/// Whether a program of this machine accepts connections on `port`.
pub fn is_listening(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Whether `host:port` is free; a host that is not one of our addresses counts as free.
pub fn is_free(host: &str, port: u16) -> bool {
    match TcpListener::bind((host, port)) {
        Ok(_) => true,
        Err(error) => error.kind() != std::io::ErrorKind::AddrInUse,
    }
}

/// A port of the loopback that no other program gets while this value lives. One server may listen on it.
#[derive(Debug)]
pub struct ReservedPort {
    number: u16,
    /// Bound, never listening; closing it releases the port.
    _bound: held::Bound,
}

impl ReservedPort {
    /// Reserves a port that is currently free.
    ///
    /// # Errors
    ///
    /// The system has no free port on the loopback.
    pub fn new() -> Result<ReservedPort> {
        held::bind(Ipv4Addr::LOCALHOST)
            .map(|(bound, number)| ReservedPort { number, _bound: bound })
            .map_err(|error| Error::environment("no free port on the loopback").detail(error.to_string()))
    }

    /// Returns the port's number, for the one server that listens on it.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(unix)]
mod held {
    use std::io;
    use std::net::{Ipv4Addr, SocketAddrV4};
    use std::os::fd::OwnedFd;

    use rustix::net::{self, AddressFamily, SocketType, sockopt};

    pub type Bound = OwnedFd;

    /// Sets both options, so that a server may bind the same port beside this socket whichever of the two it sets
    /// itself: cpp-httplib sets `SO_REUSEPORT`, ggml's RPC server, Rust and Python set `SO_REUSEADDR`.
    pub fn bind(host: Ipv4Addr) -> io::Result<(Bound, u16)> {
        let socket = net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
        // Otherwise a server that inherited the socket would keep the port reserved after its owner has exited.
        rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        sockopt::set_socket_reuseport(&socket, true)?;
        net::bind(&socket, &SocketAddrV4::new(host, 0))?;
        let address = SocketAddrV4::try_from(net::getsockname(&socket)?)?;
        Ok((socket, address.port()))
    }
}

#[cfg(not(unix))]
mod held {
    use std::io;
    use std::net::{Ipv4Addr, TcpListener};

    /// On these systems a second socket cannot be bound beside a first one, so nothing is held.
    pub type Bound = ();

    pub fn bind(host: Ipv4Addr) -> io::Result<(Bound, u16)> {
        let address = TcpListener::bind((host, 0))?.local_addr()?;
        Ok(((), address.port()))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    fn is_refused(port: u16) -> bool {
        let connected = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
        connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    }

    #[test]
    fn its_server_listens_ends_and_listens_again_while_it_stays_reserved() {
        let port = ReservedPort::new().unwrap();
        assert!(is_refused(port.number()), "no server listens yet");
        for _ in 0..2 {
            let server = TcpListener::bind((Ipv4Addr::LOCALHOST, port.number())).unwrap();
            assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port.number())).is_ok());
            drop(server);
            assert!(is_refused(port.number()), "the server has ended");
        }
    }

    /// The system has about 28,000 ephemeral ports: requesting that many yields every port that is free.
    #[test]
    fn a_reserved_port_is_not_given_to_others() {
        let port = ReservedPort::new().unwrap();
        for _ in 0..30_000 {
            let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            assert_ne!(other.local_addr().unwrap().port(), port.number());
        }
    }
}
