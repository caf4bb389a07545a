//! Context state that a server changes between requests, besides the tokens: each change must either be part of a
//! block's key, or not affect the KV of a prompt. For fields of requests the compiler enforces this
//! (`espalier-request.h`); this module checks the calls.

use std::collections::BTreeSet;

use espalier_core::config::layout::Layout;
use espalier_core::error::Result;
use espalier_core::sys::machine::disk;

/// The source file that decodes.
const SERVER: &str = "tools/server/server-context.cpp";

/// Every call that changes a context, and the reason why two prompts with the same tokens may still share blocks.
const LISTED: [(&str, &str); 5] = [
    ("common_set_adapter_lora", "adapters with their scales enter the key of every block"),
    (
        "common_speculative_set_owner",
        "picks the tables that drafts are made from; drafts enter no KV unverified",
    ),
    (
        "common_speculative_set_state",
        "of a draft model that keeps more than keys and values, which is not paged",
    ),
    ("llama_set_embeddings", "says what is read from the last layer; embeddings share nothing besides"),
    ("llama_set_sampler", "works on logits, after the KV was computed"),
];

/// Returns calls that are not listed, and listed calls that no longer exist.
pub fn unlisted(layout: &Layout, variant: &str) -> Result<Vec<String>> {
    let source = disk::read_text(&layout.tree(variant).join(SERVER))?;
    Ok(differences(&setters(&source)))
}

fn differences(found: &BTreeSet<String>) -> Vec<String> {
    let listed: BTreeSet<String> = LISTED.iter().map(|(name, _)| (*name).to_owned()).collect();
    let new = found.difference(&listed).map(|name| {
        format!("{SERVER} calls `{name}`: does the KV of a prompt depend on it? Say so in serving/inputs.rs")
    });
    let gone = listed.difference(found).map(|name| format!("{SERVER} does not call `{name}` any more"));
    new.chain(gone).collect()
}

/// Returns the functions of llama.cpp's libraries that set state.
fn setters(source: &str) -> BTreeSet<String> {
    let names = source.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    let is_setter = |name: &&str| {
        let library = ["llama_", "common_", "mtmd_"].iter().any(|prefix| name.starts_with(prefix));
        library && name.contains("_set_")
    };
    names.filter(is_setter).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_and_removed_calls_are_named() {
        let known: BTreeSet<String> = LISTED.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert!(differences(&known).is_empty());
        let source = "llama_set_embeddings(ctx, true); llama_set_rope_scale(ctx, 2.0f); slot_set_x();";
        let wrong = differences(&setters(source));
        assert!(wrong.iter().any(|line| line.contains("calls `llama_set_rope_scale`")), "{wrong:?}");
        assert!(wrong.iter().any(|line| line.contains("does not call `llama_set_sampler`")), "{wrong:?}");
        assert_eq!(wrong.len(), LISTED.len(), "one is new, and all but one are gone");
    }
}
