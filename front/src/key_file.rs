//! The file of `--front-keys`: keys as digests, with their tenants and limits.

#![allow(clippy::disallowed_methods, reason = "the front is not part of the tool: it reads its own file")]

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;

use serde::Deserialize;

use crate::limits::PerMinute;

/// SHA-256 of a key. Digests have one length: comparing them does not tell that of a key.
pub type Digest = [u8; 32];

/// A key of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name in messages.
    pub name: String,
    /// SHA-256 of the key.
    pub digest: Digest,
    /// Name of the tenant.
    pub tenant: String,
    /// Models that it may use; empty is all.
    pub models: Vec<String>,
    /// Limits.
    pub limits: PerMinute,
}

/// A table of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Table {
    sha256: String,
    tenant: Option<String>,
    models: Option<Vec<String>>,
    requests_per_minute: Option<NonZeroU32>,
    tokens_per_minute: Option<NonZeroU32>,
}

/// Reads the file.
///
/// # Errors
///
/// It cannot be read, or is invalid.
pub fn read(path: &Path) -> Result<Vec<Entry>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text).map_err(|reason| format!("{}: {reason}", path.display()))
}

/// Returns the keys, of which there is at least one.
fn parse(text: &str) -> Result<Vec<Entry>, String> {
    let tables: BTreeMap<String, Table> = toml::from_str(text).map_err(|error| {
        // Without the source line, which the error shows otherwise: messages are logged.
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        format!("line {line}: {}", error.message())
    })?;
    let entries: Vec<Entry> = tables.into_iter().map(entry).collect::<Result<_, _>>()?;
    if entries.is_empty() {
        return Err("there is no key".to_string());
    }
    for (number, entry) in entries.iter().enumerate() {
        if let Some(same) = entries[..number].iter().find(|same| same.digest == entry.digest) {
            return Err(format!("`{}` and `{}` are the same key", same.name, entry.name));
        }
    }
    Ok(entries)
}

fn entry((name, table): (String, Table)) -> Result<Entry, String> {
    let digest = digest(&table.sha256)
        .ok_or_else(|| format!("`{name}`: sha256 has to be 64 hexadecimal digits, those of sha256sum"))?;
    let tenant = table.tenant.unwrap_or_else(|| name.clone());
    if tenant.is_empty() {
        return Err(format!("`{name}`: the tenant has no name"));
    }
    if table.models.as_ref().is_some_and(Vec::is_empty) {
        return Err(format!("`{name}`: the list of models is empty, and without a list all may be used"));
    }
    let models = table.models.unwrap_or_default();
    let limits = PerMinute { requests: table.requests_per_minute, tokens: table.tokens_per_minute };
    Ok(Entry { name, digest, tenant, models, limits })
}

fn digest(text: &str) -> Option<Digest> {
    let bytes: Option<Vec<u8>> = text
        .as_bytes()
        .chunks(2)
        .map(|pair| {
            let digit = |at: usize| char::from(*pair.get(at)?).to_digit(16);
            u8::try_from(digit(0)? << 4 | digit(1)?).ok()
        })
        .collect();
    bytes?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683"; // of "key"

    fn error(text: &str) -> String {
        parse(&text.replace("DIGEST", DIGEST)).unwrap_err()
    }

    #[test]
    fn a_key_has_a_name_a_tenant_and_limits() {
        let text = format!(
            "[ci]\nsha256 = \"{DIGEST}\"\n\n[\"a b\"]\nsha256 = \"{}\"\ntenant = \"team\"\nmodels = [\"m\"]\n\
             requests-per-minute = 60\ntokens-per-minute = 1000\n",
            "0F".repeat(32)
        );
        let [second, first] = parse(&text).unwrap().try_into().unwrap();
        let none = PerMinute::default();
        assert_eq!((first.name.as_str(), first.tenant.as_str(), first.limits), ("ci", "ci", none));
        assert_eq!((second.tenant.as_str(), second.digest), ("team", [15; 32]));
        assert_eq!((first.models.len(), &second.models), (0, &vec!["m".to_string()]));
        assert_eq!(second.limits.requests, NonZeroU32::new(60));
        assert_eq!(second.limits.tokens, NonZeroU32::new(1000));
        assert_eq!(first.digest[..2], [0x2c, 0x70]);
    }

    #[test]
    fn errors_name_the_key_or_the_line_and_show_no_digest() {
        for (text, part) in [
            ("", "there is no key"),
            ("[a]\nsha256 = \"12\"", "`a`: sha256 has to be 64 hexadecimal digits"),
            ("[a]\nsha256 = \"DIGEST0\"", "64 hexadecimal digits"),
            ("[a]\nsha256 = \"DIGEST\"\n[b]\nsha256 = \"DIGEST\"", "`a` and `b` are the same key"),
            ("[a]\nsha256 = \"DIGEST\"\ntenant = \"\"", "`a`: the tenant has no name"),
            ("[a]\nsha256 = \"DIGEST\"\nmodels = []", "`a`: the list of models is empty"),
            ("[a]\nsha256 = \"DIGEST\"\nrpm = 1", "line 3: unknown field `rpm`"),
            ("[a]\nsha256 = \"DIGEST\"\nrequests-per-minute = 0", "line 3: "),
            ("[a]\ntenant = \"x\"", "missing field `sha256`"),
            ("[a]\nsha256 = \"DIGEST", "line 2: "),
        ] {
            let error = error(text);
            assert!(error.contains(part) && !error.contains(&DIGEST[..8]), "{text}: {error}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = read(Path::new("/no/such/file")).unwrap_err();
        assert!(error.starts_with("/no/such/file: "), "{error}");
    }
}
