//! Downloads: packages have no TLS, so a server that is to download a model says how to get it.

use espalier_core::error::Result;

use super::fixture::PromiseFixture;

/// A server that cannot download its model exits and prints the commands that do it without TLS.
pub fn without_tls(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let folder = fixture.empty_folder("downloads")?;
    let file = format!("{folder}/tiny.gguf");
    let url = "https://localhost:1/tiny.gguf";
    let cache = ("LLAMA_CACHE", folder.as_str());
    let cases: [(&[&str], &str); 2] =
        [(&["-m", &file, "--model-url", url], url), (&["-hf", "owner/model"], "URL-OF-THE-GGUF-FILE")];
    for (arguments, expected) in cases {
        let started = fixture.serve_nothing_with(arguments, &[cache]);
        fixture.must(started.is_err(), || format!("{arguments:?}: the server starts"));
        drop(started);
        let log = fixture.log_text()?;
        let commands = [
            "this build has no TLS".to_string(),
            format!("curl --location --fail --output model.gguf {expected}\n"),
            "llama-server --model model.gguf\n".to_string(),
        ];
        for command in commands {
            fixture
                .must(log.contains(&command), || format!("{arguments:?}: the log does not say {command:?}"));
        }
    }
    Ok(())
}
