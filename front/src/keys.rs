//! API keys: what a request has to present, compared in constant time.

use std::hint::black_box;

use hyper::header::{AUTHORIZATION, HeaderMap};
use sha2::{Digest, Sha256};

/// The header of Anthropic's clients.
const X_API_KEY: &str = "x-api-key";

/// The digests of the accepted keys. Digests have one length: comparing them does not tell that of a key.
#[derive(Clone, Debug, Default)]
pub struct Keys(Vec<[u8; 32]>);

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The key is one of the accepted ones, or none is required.
    Accepted,
    /// There is no key, or another one.
    Refused,
    /// Several keys: which of them is the caller's cannot be known, here or behind a proxy.
    Several,
}

impl Keys {
    /// Accepts `keys`; without any, all requests are accepted.
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a [u8]>) -> Keys {
        Keys(keys.into_iter().map(|key| Sha256::digest(key).into()).collect())
    }

    /// Checks the key of a request.
    #[must_use]
    pub fn check(&self, headers: &HeaderMap) -> Verdict {
        if self.0.is_empty() {
            return Verdict::Accepted;
        }
        let several = |name: &str| headers.get_all(name).iter().nth(1).is_some();
        if several(AUTHORIZATION.as_str()) || several(X_API_KEY) {
            return Verdict::Several;
        }
        let value = |name: &str| headers.get(name).map(|value| value.as_bytes()).unwrap_or_default();
        let presented = Some(value(AUTHORIZATION.as_str())).filter(|key| !key.is_empty());
        let presented = presented.unwrap_or_else(|| value(X_API_KEY));
        let key = presented.strip_prefix(b"Bearer ").unwrap_or(presented);
        if self.accepts(key) { Verdict::Accepted } else { Verdict::Refused }
    }

    /// Compares with every key, also after one that is equal.
    fn accepts(&self, key: &[u8]) -> bool {
        let digest: [u8; 32] = Sha256::digest(key).into();
        self.0.iter().fold(false, |found, known| found | are_equal(known, &digest))
    }
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

    fn check(keys: &[&str], headers: &[(&'static str, &str)]) -> Verdict {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        Keys::new(keys.iter().map(|key| key.as_bytes())).check(&map)
    }

    #[test]
    fn without_keys_every_request_is_accepted() {
        assert_eq!(check(&[], &[]), Verdict::Accepted);
        assert_eq!(check(&[], &[("authorization", "Bearer x")]), Verdict::Accepted);
    }

    #[test]
    fn each_of_several_keys_is_accepted_and_no_other() {
        let keys = ["first", "second", ""];
        for key in &keys[..2] {
            assert_eq!(check(&keys[..2], &[("authorization", &format!("Bearer {key}"))]), Verdict::Accepted);
        }
        for other in
            ["Bearer firs", "Bearer firstx", "Bearer ", "bearer first", "Basic first", "Bearer  first"]
        {
            assert_eq!(check(&keys[..2], &[("authorization", other)]), Verdict::Refused, "{other}");
        }
        assert_eq!(check(&keys[..2], &[]), Verdict::Refused);
    }

    #[test]
    fn the_forms_of_the_headers_are_those_of_the_server() {
        assert_eq!(check(&["k"], &[("authorization", "k")]), Verdict::Accepted, "without `Bearer `");
        assert_eq!(check(&["k"], &[("x-api-key", "k")]), Verdict::Accepted);
        assert_eq!(check(&["k"], &[("x-api-key", "Bearer k")]), Verdict::Accepted);
        assert_eq!(check(&["k"], &[("authorization", ""), ("x-api-key", "k")]), Verdict::Accepted);
        let both = [("authorization", "Bearer wrong"), ("x-api-key", "k")];
        assert_eq!(check(&["k"], &both), Verdict::Refused, "the first header counts");
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
        assert_eq!(check(&["k"], &twice), Verdict::Several);
        assert_eq!(check(&["k"], &[("x-api-key", "k"), ("x-api-key", "x")]), Verdict::Several);
    }
}
