//! API keys: the only place that finds and checks the key of a request. Keys are compared in constant time.

use std::hint::black_box;

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use sha2::{Digest, Sha256};

use crate::reply::Refusal;

/// The header of Anthropic's clients.
const X_API_KEY: &str = "x-api-key";

/// The digests of the accepted keys. Digests have one length: comparing them does not tell that of a key.
#[derive(Clone, Debug, Default)]
pub struct Keys(Vec<[u8; 32]>);

/// The sender of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The key, which is one of the accepted ones if there are any; empty without one.
    pub key: Vec<u8>,
}

impl Keys {
    /// Accepts `keys`; without any, all requests are accepted.
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a [u8]>) -> Keys {
        Keys(keys.into_iter().map(|key| Sha256::digest(key).into()).collect())
    }

    /// Finds the key of a request, and checks it.
    ///
    /// # Errors
    ///
    /// A key is required, and the request has another one, or several: which of them is the caller's cannot be known.
    pub fn identify(&self, headers: &HeaderMap) -> Result<Caller, Refusal> {
        let names = [AUTHORIZATION.as_str(), X_API_KEY];
        if !self.0.is_empty() && names.iter().any(|name| headers.get_all(*name).iter().nth(1).is_some()) {
            return Err(Refusal::SeveralKeys);
        }
        let key = presented(headers);
        if !self.0.is_empty() && !self.accepts(key) {
            return Err(Refusal::Key);
        }
        Ok(Caller { key: key.to_vec() })
    }

    /// Compares with every key, also after one that is equal.
    fn accepts(&self, key: &[u8]) -> bool {
        let digest: [u8; 32] = Sha256::digest(key).into();
        self.0.iter().fold(false, |found, known| found | are_equal(known, &digest))
    }
}

/// The key that a request presents. The last of several headers counts, as it does in the server.
fn presented(headers: &HeaderMap) -> &[u8] {
    let value = |name: &str| headers.get_all(name).iter().next_back().map(HeaderValue::as_bytes);
    let authorization = value(AUTHORIZATION.as_str()).filter(|key| !key.is_empty());
    let key = authorization.or_else(|| value(X_API_KEY)).unwrap_or_default();
    key.strip_prefix(b"Bearer ").unwrap_or(key)
}

/// Compares all bytes, wherever the first difference is.
fn are_equal(known: &[u8; 32], other: &[u8; 32]) -> bool {
    let difference = known.iter().zip(other).fold(0, |difference, (a, b)| difference | (a ^ b));
    // The compiler must not end the comparison at the first difference.
    black_box(difference) == 0
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
    fn digests_are_equal_only_in_all_bytes() {
        let digest = [7; 32];
        assert!(are_equal(&digest, &digest));
        for at in 0..32 {
            let mut other = digest;
            other[at] ^= 0x80;
            assert!(!are_equal(&digest, &other), "{at}");
        }
    }

    #[test]
    fn several_keys_in_one_request_are_refused_by_name() {
        let twice = [("authorization", "Bearer k"), ("authorization", "Bearer k")];
        assert_eq!(identify(&["k"], &twice), Err(Refusal::SeveralKeys));
        assert_eq!(identify(&["k"], &[("x-api-key", "k"), ("x-api-key", "x")]), Err(Refusal::SeveralKeys));
    }
}
