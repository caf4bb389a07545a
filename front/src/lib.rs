//! Espalier's HTTP transport: Rust behind a C ABI, called by the patched llama-server.
//!
//! The server keeps its handlers, formats and options; this library has the sockets. The C++ side sees only
//! `include/espalier_front.h`, which [`ffi`] implements. It has no undefined symbols: what it calls of the server is a
//! table of functions ([`mod@core`]), which the tests implement in Rust.
//!
//! * [`server`]: a front: its threads, its listeners, and how it ends.
//! * [`listen`], `unix_socket`, [`tls`] and [`connection`]: sockets, and the connections that they accept.
//! * [`service`]: from a request to its answer.
//! * [`call`] and [`stream`]: a request in the core, and an answer that it streams.
//! * [`wake`]: how the core wakes a stream.
//! * [`key_file`] and [`limits`]: keys from a file, and their limits.
//! * [`hangup`]: SIGHUP, which reads the files of keys and TLS again.
//! * [`record`], [`trace`], [`access_log`] and [`metrics`]: the record of a request, its ids, the log and the metrics.
//! * [`keys`], [`cors`], [`routes`], [`decode`], [`form`], [`body`]: the parts of a request.
//! * [`refusal`] and [`reply`]: answers that the front gives itself.
//! * [`options`]: its options.
//!
//! No panic crosses the C ABI: each export catches it and returns a neutral value.

pub mod abi;
pub mod access_log;
pub mod body;
pub mod call;
pub mod connection;
pub mod core;
pub mod cors;
pub mod decode;
pub mod ffi;
pub mod form;
pub mod hangup;
pub mod key_file;
pub mod keys;
pub mod limits;
pub mod listen;
pub mod metrics;
pub mod options;
pub mod record;
pub mod refusal;
pub mod reply;
pub mod routes;
pub mod server;
pub mod service;
pub mod stream;
pub mod tls;
pub mod trace;
#[cfg(unix)]
pub mod unix_socket;
pub mod wake;
