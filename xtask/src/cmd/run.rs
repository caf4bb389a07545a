//! `cargo xtask run -- ARGS`: the built server, with the caller's own arguments.

use clap::Args;
use espalier_core::config::models::DEMO_MODEL;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::Run;
use espalier_core::sys::net::port;
use espalier_core::sys::project::pinned_models;
use espalier_dist::build_args::Which;
use espalier_dist::packaged;
use espalier_dist::plan::manifest::build_command;

/// Options of `run`.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// The build.
    #[command(flatten)]
    pub which: Which,
    /// Serve a small chat model, downloaded once (93 MB), with the paged KV cache.
    #[arg(long)]
    pub demo: bool,
    /// Arguments of the server: `cargo xtask run -- -m model.gguf --port 8080`.
    #[arg(last = true)]
    pub arguments: Vec<String>,
}

/// Replaces this process with the server; returns only on failure.
///
/// # Errors
///
/// The variant is not built, the demo model cannot be fetched, or the port is in use.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let pins = context.pins()?;
    let Which { variant, flavor } = &options.which;
    let variant = pins.variant(variant.as_deref())?;
    let server = context.layout.server(&variant.name, flavor);
    if !disk::is_program(&server) {
        return Err(packaged::not_built(&variant.name, flavor));
    }
    if packaged::is_reference(context, &variant.name, flavor)? == Some(true) {
        let command = espalier_core::ui::hint(&build_command(&variant.name, flavor));
        context
            .ui
            .warn(format!("a reference that `cargo xtask test` built is slower; the product: {command}"));
    }
    let (host, port) = listens_on(&options.arguments);
    if !port::is_free(&host, port) {
        let next = port.checked_add(1).unwrap_or(8080);
        return Err(Error::environment(format!("port {port} on {host} is in use"))
            .hint(format!("use another one: cargo xtask run -- --port {next}"))
            .hint(format!("or find out what uses it: ss -ltnp 'sport = :{port}'")));
    }
    let mut run = Run::new(server);
    if value_of(&options.arguments, "--port", "LLAMA_ARG_PORT").is_none() {
        run = run.args(["--port", &port.to_string()]); // upstream trees have different defaults
    }
    if options.demo {
        run = run.args(demo_arguments(context, variant.kernels)?);
        let page = format!("the chat page: http://{host}:{port}/ (Ctrl-C ends the server)");
        context.ui.status("Serving", page);
    }
    // The last one of an option counts, so the caller's arguments override those of the demo.
    let code = run.args(&options.arguments).replace()?;
    Ok(Outcome { text: String::new(), json: serde_json::Value::Null, code })
}

/// Returns the server's arguments for the demo; fetches its model if it is missing.
fn demo_arguments(context: &Context, has_paged_cache: bool) -> Result<Vec<String>> {
    let models = context.models()?;
    let (name, model) = models.get(DEMO_MODEL)?;
    let file = pinned_models::provide(name, model, &context.layout, context.offline, &context.ui)?.file()?;
    let mut arguments = vec!["-m".to_string(), file.display().to_string()];
    if has_paged_cache {
        arguments.extend(["--kv-paged", "-c", "16384"].map(String::from));
    }
    Ok(arguments)
}

/// Returns the address that the server will listen on: port 8080 of the loopback, whatever upstream's default is,
/// unless the arguments or the environment override it.
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
