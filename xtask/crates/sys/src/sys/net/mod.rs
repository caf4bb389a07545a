//! Servers on the loopback, asked over HTTP, and other hosts by curl.

pub mod curl;
pub mod exchange;
pub mod loopback;
pub mod port;
pub mod server;
