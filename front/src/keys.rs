//! API keys: the only place that finds and checks the key of a request. Keys are compared in constant time.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

use crate::abi::Usage;
use crate::key_file::{self, Digest, Entry};
use crate::limits::{Limits, PerMinute};
use crate::refusal::Refusal;

/// The header of Anthropic's clients.
const X_API_KEY: &str = "x-api-key";

/// The holder of a key of the file.
#[derive(Clone, Debug)]
pub struct Holder {
    /// Name of the key.
    pub name: String,
    /// Name of the tenant, which several keys can have.
    pub tenant: String,
    /// Models that it may use; empty is all.
    pub models: Vec<String>,
    /// Its limits, with the amounts that are left.
    pub limits: Arc<Limits>,
}

/// An accepted key.
#[derive(Clone, Debug)]
struct AcceptedKey {
    digest: Digest,
    /// `None` for a key of `--api-key`.
    holder: Option<Arc<Holder>>,
}

/// The accepted keys; without any, no key is required.
#[derive(Debug, Default)]
pub struct Keys {
    file: Option<PathBuf>,
    /// Whether the core knows the tokens of its calls; otherwise a file that limits them is invalid.
    counts_tokens: bool,
    known: RwLock<Arc<[AcceptedKey]>>,
}

/// The sender of a request.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The key, which is one of the accepted ones if there are any; empty without one.
    pub key: Vec<u8>,
    /// The holder of the key, if that is one of the file.
    pub holder: Option<Arc<Holder>>,
}

impl Caller {
    /// Counts a request against the limits of the key.
    ///
    /// # Errors
    ///
    /// A limit is reached.
    pub fn admit(&self) -> Result<(), Refusal> {
        self.holder.as_ref().map_or(Ok(()), |holder| holder.limits.admit(Instant::now()))
    }

    /// Whether the key has limits, or may use some models only.
    #[must_use]
    pub fn is_restricted(&self) -> bool {
        let is_restricted = |holder: &Arc<Holder>| {
            !holder.models.is_empty() || holder.limits.per_minute() != PerMinute::default()
        };
        self.holder.as_ref().is_some_and(is_restricted)
    }

    /// Counts the tokens of a request.
    pub fn charge(&self, usage: Usage) {
        if let Some(holder) = &self.holder {
            holder.limits.charge(Instant::now(), usage.prompt.saturating_add(usage.generated));
        }
    }
}

impl Keys {
    /// Accepts `keys`; without any, all requests are accepted.
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a [u8]>) -> Keys {
        let known = |key| AcceptedKey { digest: Sha256::digest(key).into(), holder: None };
        Keys { known: RwLock::new(keys.into_iter().map(known).collect()), ..Keys::default() }
    }

    /// Accepts the keys of a file, which may limit tokens if the core counts them.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is invalid.
    pub fn of_file(file: PathBuf, counts_tokens: bool) -> Result<Keys, String> {
        let keys = Keys { file: Some(file), counts_tokens, known: RwLock::default() };
        keys.reload()?;
        Ok(keys)
    }

    /// Whether the keys are those of a file.
    #[must_use]
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Reads the file again, if there is one, and returns the number of keys. Unless the limits of a key change, what is
    /// used of them stays used.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is invalid: then the keys stay as they are.
    pub fn reload(&self) -> Result<usize, String> {
        let before = self.known();
        let Some(file) = &self.file else { return Ok(before.len()) };
        let entries = key_file::read(file)?;
        let limited = entries.iter().find(|entry| entry.limits.tokens.is_some());
        if let Some(entry) = limited.filter(|_| !self.counts_tokens) {
            let (file, name) = (file.display(), &entry.name);
            return Err(format!("{file}: `{name}`: tokens-per-minute is not supported at a router"));
        }
        let after: Arc<[AcceptedKey]> = entries.into_iter().map(|entry| renewed(entry, &before)).collect();
        let count = after.len();
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = after;
        Ok(count)
    }

    fn known(&self) -> Arc<[AcceptedKey]> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Finds the key of a request, and checks it.
    ///
    /// # Errors
    ///
    /// A key is required, and the request has another one, or several: which of them is the caller's cannot be known.
    pub fn identify(&self, headers: &HeaderMap) -> Result<Caller, Refusal> {
        let (known, key) = (self.known(), presented(headers));
        if known.is_empty() {
            return Ok(Caller { key: key.to_vec(), holder: None });
        }
        let names = [AUTHORIZATION.as_str(), X_API_KEY];
        if names.iter().any(|name| headers.get_all(*name).iter().nth(1).is_some()) {
            return Err(Refusal::SeveralKeys);
        }
        let digest: Digest = Sha256::digest(key).into();
        // All keys are compared, also after one that is equal.
        let equal = known.iter().fold(None, |found, known| match bool::from(known.digest.ct_eq(&digest)) {
            true => Some(known),
            false => found,
        });
        let holder = equal.ok_or(Refusal::Key)?.holder.clone();
        Ok(Caller { key: key.to_vec(), holder })
    }
}

/// A key of the file, with what is left of its limits.
fn renewed(entry: Entry, before: &[AcceptedKey]) -> AcceptedKey {
    let same = before.iter().filter(|known| known.digest == entry.digest);
    let limits = same.filter_map(|known| known.holder.as_ref()).map(|holder| &holder.limits);
    let limits = limits.into_iter().find(|limits| limits.per_minute() == entry.limits).cloned();
    let limits = limits.unwrap_or_else(|| Arc::new(Limits::new(entry.limits)));
    let holder = Holder { name: entry.name, tenant: entry.tenant, models: entry.models, limits };
    AcceptedKey { digest: entry.digest, holder: Some(Arc::new(holder)) }
}

/// The key that a request presents. The last of several headers counts, as it does in the server.
fn presented(headers: &HeaderMap) -> &[u8] {
    let value = |name: &str| headers.get_all(name).iter().next_back().map(HeaderValue::as_bytes);
    let authorization = value(AUTHORIZATION.as_str()).filter(|key| !key.is_empty());
    let key = authorization.or_else(|| value(X_API_KEY)).unwrap_or_default();
    key.strip_prefix(b"Bearer ").unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn identify(keys: &[&str], headers: &[(&'static str, &str)]) -> Result<String, Refusal> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let caller = Keys::new(keys.iter().map(|key| key.as_bytes())).identify(&map)?;
        Ok(String::from_utf8(caller.key).unwrap())
    }

    fn bearer(key: &str) -> [(&'static str, &str); 1] {
        [("authorization", key)]
    }

    #[test]
    fn without_keys_every_request_is_accepted_and_its_key_is_found() {
        assert_eq!(identify(&[], &[]).as_deref(), Ok(""));
        assert_eq!(identify(&[], &bearer("Bearer x")).as_deref(), Ok("x"));
        // As the server finds it, which has a map of headers.
        let twice = [("authorization", "Bearer x"), ("authorization", "Bearer y")];
        assert_eq!(identify(&[], &twice).as_deref(), Ok("y"));
    }

    #[test]
    fn each_of_several_keys_is_accepted_and_no_other() {
        let keys = ["first", "second"];
        for key in keys {
            assert_eq!(identify(&keys, &bearer(&format!("Bearer {key}"))).as_deref(), Ok(key));
        }
        for other in
            ["Bearer firs", "Bearer firstx", "Bearer ", "bearer first", "Basic first", "Bearer  first"]
        {
            assert_eq!(identify(&keys, &bearer(other)), Err(Refusal::Key), "{other}");
        }
        assert_eq!(identify(&keys, &[]), Err(Refusal::Key));
    }

    #[test]
    fn the_forms_of_the_headers_are_those_of_the_server() {
        assert_eq!(identify(&["k"], &bearer("k")).as_deref(), Ok("k"), "without `Bearer `");
        assert_eq!(identify(&["k"], &[("x-api-key", "k")]).as_deref(), Ok("k"));
        assert_eq!(identify(&["k"], &[("x-api-key", "Bearer k")]).as_deref(), Ok("k"));
        assert_eq!(identify(&["k"], &[("authorization", ""), ("x-api-key", "k")]).as_deref(), Ok("k"));
        let both = [("authorization", "Bearer wrong"), ("x-api-key", "k")];
        assert_eq!(identify(&["k"], &both), Err(Refusal::Key), "the first header counts");
    }

    #[test]
    fn several_keys_in_one_request_are_refused_by_name() {
        let twice = [("authorization", "Bearer k"), ("authorization", "Bearer k")];
        assert_eq!(identify(&["k"], &twice), Err(Refusal::SeveralKeys));
        assert_eq!(identify(&["k"], &[("x-api-key", "k"), ("x-api-key", "x")]), Err(Refusal::SeveralKeys));
    }
}
