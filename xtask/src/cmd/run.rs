//! `cargo xtask run -- ARGS`: the built server, with the caller's own arguments.

use crate::context::{Context, Outcome};
use crate::error::{Error, Result};
use crate::sys::machine::disk;
use crate::sys::machine::process::Run;
use crate::sys::net::loopback;

/// Options of `run`.
#[derive(Clone, Debug)]
pub struct Options {
    /// Variant name.
    pub variant: String,
    /// Flavor name.
    pub flavor: String,
    /// Arguments of the server.
    pub arguments: Vec<String>,
}

/// `cargo xtask run`: fills in the default variant.
pub fn command(
    context: &Context,
    variant: Option<&str>,
    flavor: String,
    arguments: Vec<String>,
) -> Result<Outcome> {
    let pins = context.pins()?;
    let variant = pins.variant(variant)?.name.to_string();
    run(context, &Options { variant, flavor, arguments })
}

/// Replaces this process with the server; returns only on failure.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let server = context.layout.server(&options.variant, &options.flavor);
    if !disk::is_program(&server) {
        return Err(Error::usage(format!("{}-{} is not built", options.variant, options.flavor))
            .hint(format!("cargo xtask build --variant {} --flavor {}", options.variant, options.flavor)));
    }
    let (host, port) = listens_on(&options.arguments);
    if !loopback::port_is_free(&host, port) {
        let next = port.checked_add(1).unwrap_or(8080);
        return Err(Error::surroundings(format!("port {port} on {host} is in use"))
            .hint(format!("use another one: cargo xtask run -- --port {next}"))
            .hint(format!("or find out what uses it: ss -ltnp 'sport = :{port}'")));
    }
    let code = Run::new(server).args(&options.arguments).replace()?;
    Ok(Outcome { text: String::new(), json: serde_json::Value::Null, code })
}

/// Returns the address that the server will listen on: upstream's defaults unless the arguments override them.
fn listens_on(arguments: &[String]) -> (String, u16) {
    let host = value_of(arguments, "--host", "LLAMA_ARG_HOST").unwrap_or_else(|| "127.0.0.1".to_string());
    let port = value_of(arguments, "--port", "LLAMA_ARG_PORT").and_then(|port| port.parse().ok());
    (host, port.unwrap_or(8080))
}

fn value_of(arguments: &[String], flag: &str, variable: &str) -> Option<String> {
    let at = arguments.iter().rposition(|argument| argument == flag);
    at.and_then(|at| arguments.get(at + 1).cloned()).or_else(|| std::env::var(variable).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_flag_wins() {
        let words = |text: &str| text.split_whitespace().map(String::from).collect::<Vec<_>>();
        assert_eq!(listens_on(&words("-m x")), ("127.0.0.1".to_string(), 8080));
        assert_eq!(listens_on(&words("--port 1 --host ::1 --port 2")), ("::1".to_string(), 2));
    }
}
