//! A pool that fills free memory: `-c auto`.
//!
//! Each server leaves nearly all of it free (`--fit-target`), so that none takes the memory of this machine. Other
//! processes allocate and free memory all the time, so the numbers of a server are compared with each other.

use espalier_core::error::{Error, Result};

use super::asking::{ask, plain};
use super::configured::{TRAINED, props};
use super::fixture::{Model, PromiseFixture};
use crate::serving::cases::{self, BLOCK};

/// Arguments that contradict `-c auto`, and what the error has to contain.
const CONTRADICTIONS: [(&[&str], &str); 4] = [
    (&["-c", "auto"], "-c auto needs --kv-paged"),
    (&["--kv-paged", "-c", "auto", "-fit", "off"], "-c auto measures free memory"),
    (&["--kv-paged", "-c", "auto", "-sm", "tensor"], "-c auto does not support --split-mode tensor"),
    (&["--kv-paged", "-c", "automatic"], "expected an integer or \"auto\", got \"automatic\""),
];

/// A pool that was sized by free memory, and its memory in MiB.
struct ChosenPool {
    tokens: u64,
    /// Free memory without what the server leaves.
    available: f64,
}

/// With `-c auto` the pool has as many blocks as fit beside the rest, more than the training context, and less if more
/// is left free. A sequence still has at most the training context. The server does not start if nothing fits.
pub fn fills_the_pool(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    for (arguments, expected) in CONTRADICTIONS {
        let message = refusal(fixture, arguments)?;
        fixture.must(message.contains(expected), || {
            format!("{arguments:?}: it says {}", message.lines().last().unwrap_or_default())
        });
    }
    let message = refusal(fixture, &["--kv-paged", "-c", "auto", "--fit-target", "100000000"])?;
    let Some(free) = free_mib(&message) else {
        return Err(Error::no("without enough memory for `-c auto`, the log does not say how much is free"));
    };
    let mut pools = Vec::new();
    for (left, arguments, variables) in
        [(512, &["-c", "auto"][..], &[][..]), (256, &[][..], &[("LLAMA_ARG_CTX_SIZE", "auto")][..])]
    {
        pools.extend(chosen_pool(fixture, free.saturating_sub(left), arguments, variables)?);
    }
    let [large, small] = &pools[..] else { return Ok(()) };
    let is_less = small.available < 0.9 * large.available;
    if fixture.arose(is_less, || "other processes freed memory meanwhile".to_string()) {
        let tokens = (large.tokens, small.tokens);
        fixture.must(tokens.1 < tokens.0, || {
            format!("with less memory the pool has {} tokens, not less than {}", tokens.1, tokens.0)
        });
    }
    Ok(())
}

/// Returns the log of a server that must not start with these arguments.
fn refusal(fixture: &mut PromiseFixture<'_>, arguments: &[&str]) -> Result<String> {
    let started = fixture.serve(Model::Random, &[&["-np", "2"], arguments].concat());
    fixture.must(started.is_err(), || format!("{arguments:?}: the server starts"));
    drop(started);
    fixture.log_text()
}

/// Returns the free memory in MiB that the log of a server names for which nothing fits.
fn free_mib(log: &str) -> Option<u64> {
    let (_, error) = log.split_once("-c auto: a KV cache of")?;
    let (before, _) = error.split_once(" MiB free")?;
    before.rsplit(' ').next()?.split('.').next()?.parse().ok()
}

/// Starts a server that leaves `left` MiB, and checks its pool. `None`: other processes need the memory by now.
fn chosen_pool(
    fixture: &mut PromiseFixture<'_>,
    left: u64,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Result<Option<ChosenPool>> {
    let target = left.to_string();
    let arguments = [&["-np", "2", "--kv-paged", "--fit-target", &target], arguments].concat();
    let started = fixture.serve_with(Model::Random, &arguments, variables);
    let log = fixture.log_text()?;
    let fits = started.is_ok() || !log.contains("-c auto: a KV cache of");
    if !fixture.arose(fits, || "other processes took memory meanwhile".to_string()) {
        return Ok(None);
    }
    let server = started?;
    let props = props(&server)?;
    let pool = &props["kv_pool"];
    let mib = |name: &str| pool["auto"][name].as_f64().unwrap_or(-1.0);
    let (free, used, kept) = (mib("free_mib"), mib("used_mib"), mib("kept_mib"));
    let tokens = pool["block_count"].as_u64().unwrap_or(0) * BLOCK as u64;
    let available = free - kept;

    fixture.must(tokens > TRAINED, || format!("{arguments:?}: a pool of {tokens} tokens"));
    let has_target = (kept - left as f64).abs() < 1.0;
    fixture.must(has_target, || format!("{arguments:?}: it leaves {kept} MiB, as /props says"));
    // A block more may not fit, nor the part of a block that a bisection leaves.
    let is_filled = used <= available && used > 0.9 * available - 8.0;
    fixture.must(is_filled, || format!("{arguments:?}: it takes {used} of {available} MiB, as /props says"));
    let cache = pool["mib"].as_f64().unwrap_or(f64::MAX);
    fixture.must(cache < used, || format!("{arguments:?}: a cache of {cache} MiB in {used} MiB"));
    let line = format!("-c auto: the KV cache has {tokens} tokens");
    fixture.must(log.contains(&line), || format!("{arguments:?}: the log does not say \"{line}\""));
    let of_a_slot = &props["default_generation_settings"]["n_ctx"];
    fixture.must(*of_a_slot == TRAINED, || format!("{arguments:?}: a sequence can have {of_a_slot} tokens"));
    let answer = ask(&server, &plain(&cases::numbered_prompt(1, 20), 4))?;
    fixture.must_return(&format!("{arguments:?}"), &answer, 200);
    Ok(Some(ChosenPool { tokens, available }))
}

#[cfg(test)]
mod tests {
    use super::free_mib;

    #[test]
    fn the_free_memory_of_a_refusal_is_read() {
        let message =
            "-c auto: a KV cache of 4096 tokens (--fit-ctx) does not fit: the host has 6012.7 MiB free; the ";
        assert_eq!(free_mib(message), Some(6012));
        assert_eq!(free_mib("-c auto: the KV cache has 4096 tokens: of 6012.7 MiB free"), None);
        assert_eq!(free_mib("-c auto: a KV cache of 4096 tokens does not fit"), None);
    }
}
