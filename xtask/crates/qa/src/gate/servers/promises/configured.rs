//! Configuration: the size of a pool without `-c`, the environment variables of options, and the log line about the
//! cache.

use std::path::Path;

use espalier_core::error::Result;
use espalier_core::http::Request;
use espalier_core::sys::machine::disk;
use espalier_core::sys::net::server::Server;
use espalier_names::variables::{Reader, Variable, read_by};
use serde_json::{Value, json};

use super::asking::{ask, plain, with};
use super::fixture::{Model, PromiseFixture};
use super::tenants::LOADING;
use crate::serving::cases::{self, BLOCK};

/// The trained context of the random model, in tokens.
pub const TRAINED: u64 = 4096;

/// Returns `/props`.
pub fn props(server: &Server) -> Result<Value> {
    Ok(server.get("/props")?.1)
}

/// Without `-c` the pool has the trained context, however many slots share it, and less if memory is short.
pub fn pool_without_a_size(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let cases: [(&[&str], u64); 3] = [
        (&["-np", "1"], TRAINED),
        (&["-np", "16"], TRAINED),
        (&["-np", "16", "--fit-target", "100000000", "--fit-ctx", "512"], 512),
    ];
    for (arguments, tokens) in cases {
        let server = fixture.serve(Model::Random, &[&["--kv-paged"], arguments].concat())?;
        let pool = &props(&server)?["kv_pool"];
        let found = pool["block_count"].as_u64().unwrap_or(0) * BLOCK as u64;
        fixture
            .must(found == tokens, || format!("{arguments:?}: a pool of {found} tokens; expected {tokens}"));
        let mib = pool["mib"].as_f64().unwrap_or(0.0);
        fixture
            .must(mib > 0.0, || format!("{arguments:?}: /props does not say how large the pool is: {pool}"));
        let line = format!("{} blocks of {BLOCK} tokens, {mib:.1} MiB", tokens / BLOCK as u64);
        let log = fixture.log_with(&line)?;
        fixture.must(log.contains(&line), || format!("{arguments:?}: the log does not say \"{line}\""));
    }
    Ok(())
}

/// Each option reads `LLAMA_ARG_<FLAG>`; the earlier names still work, with a warning, and the new one has precedence.
pub fn variables_of_options(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let one: [(&str, &str); 2] = [("LLAMA_ARG_KV_PAGED", "1"), ("LLAMA_ARG_MAX_QUEUED", "7")];
    let old: [(&str, &str); 2] = [("LLAMA_KV_PAGED", "1"), ("LLAMA_MAX_QUEUED", "7")];
    let both: [(&str, &str); 2] = [("LLAMA_KV_PAGED", "1"), ("LLAMA_ARG_KV_PAGED", "0")];
    for (variables, is_paged, warns) in [(one, true, false), (old, true, true), (both, false, true)] {
        let server =
            fixture.serve_with(Model::Random, &["-np", "1", "-c", "1024", "--metrics"], &variables)?;
        let found = props(&server)?.get("kv_pool").is_some();
        fixture.must(found == is_paged, || format!("{variables:?}: paged is {found}"));
        let warned = fixture.log_text()?.contains("use LLAMA_ARG_KV_PAGED");
        fixture.must(warned == warns, || format!("{variables:?}: warned of an old name is {warned}"));
    }
    Ok(())
}

/// Returns the earlier names of variables: they begin with `LLAMA_` in place of `LLAMA_ARG_`.
fn earlier() -> impl Iterator<Item = &'static str> {
    read_by(Reader::FormerOption).map(|known| known.name)
}

/// An earlier name has the effect of the present one, in the environment and as a key of a preset or of `config.ini`.
pub fn earlier_names(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    for old in earlier() {
        // The option itself refuses the value, so it was passed on.
        let new = old.replace("LLAMA_", "LLAMA_ARG_");
        let started = fixture.serve_with(Model::Random, &["-np", "1", "-c", "512"], &[(old, "banana")]);
        fixture.must(started.is_err(), || format!("{old}=banana: the server starts"));
        drop(started);
        let log = fixture.log_text()?;
        fixture.must(log.contains(&format!("use {new}")) && log.contains("\"banana\""), || {
            format!("{old}=banana: it says {}", log.lines().last().unwrap_or_default())
        });
    }
    in_config(fixture)?;
    in_preset(fixture)
}

/// The earlier names with values that each option takes, as lines of an INI file.
fn lines_of_earlier_names() -> String {
    let value = |old: &str| if old == "LLAMA_MAX_QUEUED" { "7" } else { "1" };
    earlier().map(|old| format!("{old} = {}\n", value(old))).collect()
}

/// Checks that the log warns once of each earlier name.
fn must_have_warned(fixture: &mut PromiseFixture<'_>, what: &str) -> Result<()> {
    let log = fixture.log_text()?;
    for old in earlier() {
        let warning = format!("{old} is deprecated");
        fixture.must(log.contains(&warning), || format!("{what}: the log does not say \"{warning}\""));
    }
    Ok(())
}

fn in_config(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let folder = fixture.empty_folder("config")?;
    let config = Path::new(&folder).join("llama.cpp/config.ini");
    disk::write_atomically(&config, lines_of_earlier_names().as_bytes())?;
    let variables = [("XDG_CONFIG_HOME", folder.as_str())];
    let server = fixture.serve_with(Model::Random, &["-np", "1", "-c", "512", "--metrics"], &variables)?;
    let paged = props(&server)?.get("kv_pool").is_some();
    fixture.must(paged, || "an earlier name in config.ini has no effect".to_string());
    drop(server);
    must_have_warned(fixture, "config.ini")
}

fn in_preset(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let folder = fixture.empty_folder("preset")?;
    let preset = Path::new(&folder).join("models.ini");
    let model = fixture.trained_model();
    let text = format!("[tiny]\nmodel = {model}\nctx-size = 512\nparallel = 1\n{}", lines_of_earlier_names());
    disk::write_atomically(&preset, text.as_bytes())?;
    let router = fixture.serve_nothing(&["--models-preset", &preset.display().to_string()])?;
    let load = router.json(&Request::post("/models/load", json!({ "model": "tiny" })), LOADING)?;
    fixture.must(load.0 == 200, || format!("loading a model of the preset returned {}: {}", load.0, load.1));
    let request = with(plain(&cases::numbered_prompt(1, 20), 1), "model", "tiny");
    let (status, body) = router.json(&Request::post("/completion", &request), LOADING)?;
    fixture.must(status == 200, || format!("a model of the preset returned {status}: {body}"));
    let (status, props) = router.json(&Request::get("/props?model=tiny"), LOADING)?;
    fixture.must(props.get("kv_pool").is_some(), || {
        format!("an earlier name in a preset has no effect: {status}, {props}")
    });
    drop(router);
    must_have_warned(fixture, "a preset")
}

/// Variables that nothing reads, and the variable that the warning has to name.
const MISSPELT: [(&str, &str); 3] = [
    ("ESPALIER_ENABEL", "did you mean `ESPALIER_ENABLE`?"),
    ("LLAMA_ARG_KV_PAGD", "did you mean `LLAMA_ARG_KV_PAGED`?"),
    ("ESPALIER_THREADS", "known are ESPALIER_ENABLE"),
];

/// A misspelt name of one of our variables causes one warning at start, and a valid one none.
pub fn misspelt_variables(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let variables = MISSPELT.map(|(name, _)| (name, "1"));
    drop(fixture.serve_with(Model::Random, &["-np", "1", "-c", "512"], &variables)?);
    let log = fixture.log_text()?;
    for (name, expected) in MISSPELT {
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(&format!("`{name}`"))).collect();
        fixture.must(matches!(lines[..], [line] if line.contains(expected)), || {
            format!("{name}: expected one warning with \"{expected}\", found {lines:?}")
        });
    }
    let valid = [("LLAMA_ARG_KV_PAGED", "1"), ("ESPALIER_KV_RECENT", "32"), ("LLAMA_ARG_KV_UNIFIED", "1")];
    drop(fixture.serve_with(Model::Random, &["-np", "1", "-c", "512"], &valid)?);
    let log = fixture.log_text()?;
    fixture
        .must(!log.contains("nothing reads the variable"), || format!("{valid:?}: warned of a misspelt one"));
    Ok(())
}

/// A value that cannot be parsed aborts startup with an error that names the variable, the value and the expected
/// values.
pub fn values_of_variables(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let cases = options().flat_map(|variable| {
        let refused = refused_values(variable.name).iter().copied();
        refused.map(move |(value, expected)| (variable.name, value, expected))
    });
    for (name, value, expected) in cases {
        let started = fixture.serve_with(Model::Random, &["-np", "1", "-c", "512"], &[(name, value)]);
        fixture.must(started.is_err(), || format!("{name}={value}: the server starts"));
        drop(started);
        let log = fixture.log_text()?;
        let names_value = name == "LLAMA_ARG_KV_QUALITY" || log.contains(&format!("\"{value}\""));
        fixture.must(log.contains(name) && names_value && log.contains(expected), || {
            format!("{name}={value}: it says {}", log.lines().last().unwrap_or_default())
        });
    }
    for (name, value) in
        [("LLAMA_ARG_KV_PAGED", "off"), ("LLAMA_ARG_KV_PAGED", ""), ("LLAMA_ARG_MAX_QUEUED", "0")]
    {
        let server = fixture.serve_with(Model::Random, &["-np", "1", "-c", "512"], &[(name, value)])?;
        let paged = props(&server)?.get("kv_pool").is_some();
        fixture.must(!paged, || format!("{name}={value}: the cache is paged"));
    }
    Ok(())
}

/// Returns values that the option of a variable refuses, and what the error has to contain.
fn refused_values(variable: &str) -> &'static [(&'static str, &'static str)] {
    match variable {
        "LLAMA_ARG_ALLOW_PRIORITY" | "LLAMA_ARG_KV_GATHER" | "LLAMA_ARG_KV_PAGED" => {
            &[("banana", "expected one of on")]
        }
        "LLAMA_ARG_KV_QUALITY" => &[("banana", "safe, balanced or small")],
        "LLAMA_ARG_KV_SNAPSHOTS" => &[("12abc", "a size in MiB")],
        _ => &[("abc", "expected an integer"), ("12abc", "expected an integer")],
    }
}

/// A switch has the value that `config.ini` sets, not only its presence.
pub fn switches_in_config(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let folder = fixture.empty_folder("config")?;
    let config = Path::new(&folder).join("llama.cpp/config.ini");
    for (value, is_paged) in [("on", true), ("off", false)] {
        disk::write_atomically(&config, format!("kv-paged = {value}\n").as_bytes())?;
        let variables = [("XDG_CONFIG_HOME", folder.as_str())];
        let server = fixture.serve_with(Model::Random, &["-np", "1", "-c", "512"], &variables)?;
        let found = props(&server)?.get("kv_pool").is_some();
        fixture.must(found == is_paged, || format!("kv-paged = {value} in config.ini: paged is {found}"));
    }
    Ok(())
}

/// Returns the variables of the options that upstream does not have.
fn options() -> impl Iterator<Item = &'static Variable> {
    read_by(Reader::ServerOption)
}

/// `--help` names `LLAMA_ARG_<FLAG>` for each of the options.
pub fn variables_in_help(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let help = fixture.help()?;
    for variable in options() {
        let option = variable.option().unwrap_or_default();
        let (documented, expected) = (variable_of(&help, &option), variable.name);
        fixture.must(documented == Some(expected), || {
            format!("`--help` documents {documented:?} for {option}, instead of {expected}")
        });
    }
    Ok(())
}

/// Returns the environment variable that `--help` documents for an option. An entry begins with a dash at the start of
/// a line.
fn variable_of<'a>(help: &'a str, option: &str) -> Option<&'a str> {
    let is_named = |line: &str| line.split([' ', ',']).any(|word| word == option);
    let mut lines = help.lines().skip_while(|line| !(line.starts_with('-') && is_named(line)));
    let own = lines.next().into_iter().chain(lines.take_while(|line| !line.starts_with('-')));
    own.filter_map(|line| line.split_once("(env: ")?.1.split_once(')')).map(|(name, _)| name).next()
}

/// The server logs its cache configuration once at start, at the default verbosity, and `/props` reports it too. No
/// `--kv-quality` causes a warning, and each starts with heads that its types do not fit.
pub fn cache_is_described(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    for model in [Model::Random, Model::OddHeads] {
        for quality in ["safe", "balanced", "small"] {
            let arguments = ["-np", "1", "-c", "1024", "--kv-paged", "--kv-quality", quality];
            let server = fixture.serve(model, &arguments)?;
            let cache = &props(&server)?["kv_cache"];
            fixture.must(cache["kv_quality"] == quality, || format!("{model:?}: /props says {cache}"));
            // No type has blocks that divide a head of 80.
            let are_f16 = cache["type_k"] == "f16" && cache["type_v"] == "f16";
            fixture.must(are_f16 == (model == Model::OddHeads), || {
                format!("{model:?}, {quality}: /props says {cache}")
            });
            let line = cache_line(fixture)?;
            let named = ["type_k", "type_v"].map(|name| cache[name].as_str().unwrap_or("?").to_string());
            fixture.must(line.contains(&format!("K {}, V {}", named[0], named[1])), || {
                format!("{model:?}, {quality}: /props says {cache}, and the log `{line}`")
            });
            let quality_line = format!("(--kv-quality {quality})");
            let log = fixture.log_with(&quality_line)?;
            let times = log.matches(&quality_line).count();
            fixture.must(times == 1, || format!("{model:?}, {quality}: logged {times} times at the start"));
            fixture.must(!log.contains("degrades quality"), || format!("{quality} warns of itself"));
            let says_instead = log.contains("layers with heads of 80 values use f16");
            fixture.must(says_instead == (model == Model::OddHeads), || {
                format!("{model:?}, {quality}: the log says that layers use f16: {says_instead}")
            });
            let (status, body) = ask(&server, &plain(&cases::numbered_prompt(1, 20), 4))?;
            fixture.must(status == 200, || format!("{model:?}, {quality}: returned {status}: {body}"));
        }
    }
    let server = fixture.serve(Model::Random, &["-np", "1", "-c", "1024"])?;
    let props = props(&server)?;
    fixture
        .must(props.get("kv_cache").is_none(), || "a server without our options says kv_cache".to_string());
    Ok(())
}

/// Returns the line about the cache that the server logs at start.
fn cache_line(fixture: &PromiseFixture<'_>) -> Result<String> {
    let log = fixture.log_with("the KV cache is paged")?;
    Ok(log.lines().find(|line| line.contains("the KV cache is paged")).unwrap_or_default().to_string())
}

/// `--cache-ram` has no effect beside a pool, and the server logs that once.
pub fn cache_ram_is_off(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    drop(fixture.serve(Model::Random, &["-np", "1", "-c", "1024", "--kv-paged", "--cache-ram", "100"])?);
    let times = fixture.log_text()?.matches("--cache-ram is off").count();
    fixture.must(times == 1, || format!("logged {times} times that --cache-ram is off"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_of_an_option_is_read_from_its_own_entry() {
        let help = "-a, --first N   text\n                (env: FIRST)\n--second        text (env: SECOND)\n--third         text\n-d, --fourth\n                (env: FOURTH)\n";
        let found =
            ["--first", "--second", "--third", "--fourth", "--fifth"].map(|option| variable_of(help, option));
        assert_eq!(found, [Some("FIRST"), Some("SECOND"), None, Some("FOURTH"), None]);
        assert_eq!(earlier().count(), 4);
        assert!(lines_of_earlier_names().contains("LLAMA_KV_PAGED = 1\n"), "{}", lines_of_earlier_names());
    }
}
