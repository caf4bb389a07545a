//! The id of a request, and its place in a distributed trace.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::header::HeaderMap;

/// The header of the id.
pub const X_REQUEST_ID: &str = "x-request-id";

/// Largest id that is taken from a client: it is written into logs.
const MOST_BYTES: usize = 128;

/// Returns the id that the client has sent, or a new one.
#[must_use]
pub fn request_id(headers: &HeaderMap) -> String {
    let sent = headers.get(X_REQUEST_ID).and_then(|id| id.to_str().ok());
    let is_id =
        |id: &&str| (1..=MOST_BYTES).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
    sent.filter(is_id).map_or_else(new_id, str::to_string)
}

/// Ids need not be secret, but must not repeat after a restart: a counter, hashed with two random keys.
fn new_id() -> String {
    static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let [high, low] = [&KEYS[0], &KEYS[1]].map(|key| key.hash_one(count));
    format!("{high:016x}{low:016x}")
}

/// The W3C trace context of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Id of the trace.
    pub id: String,
    /// Id of the span that the client has sent.
    pub parent: String,
}

impl Trace {
    /// Reads `traceparent`; `None` if there is none, or it is invalid.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Trace> {
        let mut values = headers.get_all("traceparent").iter();
        let text = values.next().filter(|_| values.next().is_none())?.to_str().ok()?;
        let mut fields = text.split('-');
        let (version, id, parent, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        // Later versions may have more fields.
        let is_whole = version != "00" || fields.next().is_none();
        let is_valid =
            is_hex(version, 2) && version != "ff" && is_id(id, 32) && is_id(parent, 16) && is_hex(flags, 2);
        (is_whole && is_valid).then(|| Trace { id: id.to_string(), parent: parent.to_string() })
    }
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// An id is not all zeros.
fn is_id(text: &str, length: usize) -> bool {
    is_hex(text, length) && text.bytes().any(|byte| byte != b'0')
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use hyper::header::HeaderValue;

    use super::*;

    fn headers(name: &'static str, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn an_id_of_the_client_is_taken_if_it_fits_into_a_line() {
        let id = |text: &str| request_id(&headers(X_REQUEST_ID, &[text]));
        let longest = "x".repeat(MOST_BYTES);
        for text in ["a", "0b2f-11/x_y.z:+=", &longest] {
            assert_eq!(id(text), text);
        }
        for text in ["", "a b", "a\tb", &format!("{longest}x")] {
            assert!(is_hex(&id(text), 32), "{text}");
        }
    }

    #[test]
    fn new_ids_differ() {
        let ids: BTreeSet<String> = (0..1000).map(|_| request_id(&HeaderMap::new())).collect();
        assert!(ids.len() == 1000 && ids.iter().all(|id| is_hex(id, 32)));
    }

    #[test]
    fn a_valid_traceparent_is_read_and_any_other_ignored() {
        let trace = |text: &str| Trace::of(&headers("traceparent", &[text]));
        let (id, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        let expected = Some(Trace { id: id.to_string(), parent: parent.to_string() });
        assert_eq!(trace(&format!("00-{id}-{parent}-01")), expected);
        assert_eq!(trace(&format!("cc-{id}-{parent}-01-more")), expected, "a later version");
        for invalid in [
            format!("00-{id}-{parent}-01-more"),
            format!("ff-{id}-{parent}-01"),
            format!("00-{}-{parent}-01", "0".repeat(32)),
            format!("00-{id}-{}-01", "0".repeat(16)),
            format!("00-{}-{parent}-01", id.to_uppercase()),
            format!("00-{id}-{parent}"),
            format!("00-{id}-{parent}-1"),
            String::new(),
        ] {
            assert_eq!(trace(&invalid), None, "{invalid}");
        }
        let twice = format!("00-{id}-{parent}-01");
        assert_eq!(Trace::of(&headers("traceparent", &[&twice, &twice])), None);
        assert_eq!(Trace::of(&HeaderMap::new()), None);
    }
}
