//! The loopback, for the smoke test and for "port taken".

use std::net::{Ipv4Addr, TcpListener};

use serde_json::Value;

use crate::error::{Error, Result};

/// A port on the loopback that nobody listens on now.
pub fn free_port() -> Result<u16> {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    bound
        .map(|address| address.port())
        .map_err(|error| Error::surroundings("no free port on the loopback").detail(error.to_string()))
}

/// Whether nobody listens on `host:port`; a host that is not an address of ours counts as free.
pub fn port_is_free(host: &str, port: u16) -> bool {
    match TcpListener::bind((host, port)) {
        Ok(_) => true,
        Err(error) => error.kind() != std::io::ErrorKind::AddrInUse,
    }
}

/// GET `url`: the status code and the JSON body (null when it is none).
pub fn get(url: &str) -> Result<(u16, Value)> {
    answer(url, minreq::get(url).with_timeout(SECONDS).send())
}

/// POST `body` to `url`: the status code and the JSON body (null when it is none).
pub fn post(url: &str, body: &Value) -> Result<(u16, Value)> {
    let request = minreq::post(url)
        .with_header("Content-Type", "application/json")
        .with_body(body.to_string())
        .with_timeout(SECONDS);
    answer(url, request.send())
}

/// A tiny model answers at once; this is for a machine that is busy with other things.
const SECONDS: u64 = 60;

fn answer(url: &str, response: std::result::Result<minreq::Response, minreq::Error>) -> Result<(u16, Value)> {
    let response = response
        .map_err(|error| Error::surroundings(format!("{url}: no answer")).detail(error.to_string()))?;
    let body = serde_json::from_slice(response.as_bytes()).unwrap_or(Value::Null);
    Ok((response.status_code, body))
}
