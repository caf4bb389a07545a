//! HTTP: servers on the loopback, and other hosts through curl.

pub mod curl;
pub mod exchange;
pub mod loopback;
pub mod port;
pub mod server;
