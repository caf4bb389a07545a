//! HTTP: servers on the loopback, and other hosts through curl.

pub mod client;
pub mod curl;
pub mod port;
pub mod server;
