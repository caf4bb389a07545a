//! A front whose core is a mock, through the C ABI and over real sockets.

// The ban on sockets and files is for the orchestrator; these tests are clients.
#![allow(clippy::disallowed_methods)]

mod abi;
mod certificates;
mod core;
mod ends;
mod http1;
mod http2;
mod keys;
mod limits;
mod log;
mod metrics;
mod requests;
mod streams;
mod support;
mod tls;
mod tls_files;
