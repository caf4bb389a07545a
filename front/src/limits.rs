//! Limits of a key: how much it may use in a minute.

use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::refusal::Refusal;

/// Limits for each minute; `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerMinute {
    /// Requests.
    pub requests: Option<NonZeroU32>,
    /// Tokens, those of prompts included.
    pub tokens: Option<NonZeroU32>,
}

/// The limits of a key, with the amounts that are left.
#[derive(Debug)]
pub struct Limits {
    per_minute: PerMinute,
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
}

impl Limits {
    /// Limits of which nothing is used.
    #[must_use]
    pub fn new(per_minute: PerMinute) -> Limits {
        let bucket = |limit: Option<NonZeroU32>| limit.map(|limit| Bucket::new(limit, Instant::now()));
        Limits { per_minute, requests: bucket(per_minute.requests), tokens: bucket(per_minute.tokens) }
    }

    /// The limits for each minute.
    #[must_use]
    pub fn per_minute(&self) -> PerMinute {
        self.per_minute
    }

    /// Counts a request.
    ///
    /// # Errors
    ///
    /// A limit is reached; then the request is not counted.
    pub fn admit(&self, now: Instant) -> Result<(), Refusal> {
        let refused = |unit: &'static str| move |wait: Duration| Refusal::Limited(unit, seconds(wait));
        // The tokens of a request are not known yet: the key must not have used up those of the requests before it.
        self.tokens.as_ref().map_or(Ok(()), |tokens| tokens.check(now)).map_err(refused("tokens"))?;
        self.requests.as_ref().map_or(Ok(()), |requests| requests.take(now)).map_err(refused("requests"))
    }

    /// Counts the tokens of a request, whose number is known only afterwards.
    pub fn charge(&self, now: Instant, tokens: u64) {
        if let Some(bucket) = &self.tokens {
            bucket.charge(now, tokens as f64);
        }
    }
}

/// A wait in whole seconds, at least one.
fn seconds(wait: Duration) -> u32 {
    wait.as_secs_f64().ceil().max(1.0) as u32
}

/// A token bucket that holds the amount of one minute. It may be overdrawn: that is what a crate for rate limits does
/// not offer, and what the tokens of a request need.
#[derive(Debug)]
struct Bucket {
    capacity: f64,
    /// The amount that is left, and when it was.
    left: Mutex<(f64, Instant)>,
}

impl Bucket {
    fn new(limit: NonZeroU32, now: Instant) -> Bucket {
        let capacity = f64::from(limit.get());
        Bucket { capacity, left: Mutex::new((capacity, now)) }
    }

    fn refill(&self, now: Instant) -> MutexGuard<'_, (f64, Instant)> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let refilled = now.saturating_duration_since(left.1).as_secs_f64() / 60.0 * self.capacity;
        *left = ((left.0 + refilled).min(self.capacity), left.1.max(now));
        left
    }

    /// Returns the time until `amount` is left as an error.
    fn need(&self, left: f64, amount: f64) -> Result<(), Duration> {
        if left >= amount {
            return Ok(());
        }
        Err(Duration::from_secs_f64((amount - left) / self.capacity * 60.0))
    }

    fn check(&self, now: Instant) -> Result<(), Duration> {
        let left = self.refill(now).0;
        self.need(left, 1.0)
    }

    fn take(&self, now: Instant) -> Result<(), Duration> {
        let mut left = self.refill(now);
        self.need(left.0, 1.0)?;
        left.0 -= 1.0;
        Ok(())
    }

    fn charge(&self, now: Instant, amount: f64) {
        self.refill(now).0 -= amount;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(requests: u32, tokens: u32) -> Limits {
        Limits::new(PerMinute { requests: NonZeroU32::new(requests), tokens: NonZeroU32::new(tokens) })
    }

    #[test]
    fn requests_beyond_the_limit_wait_for_their_share_of_a_minute() {
        let (limits, begin) = (limits(6, 0), Instant::now());
        for _ in 0..6 {
            assert_eq!(limits.admit(begin), Ok(()));
        }
        assert_eq!(limits.admit(begin), Err(Refusal::Limited("requests", 10)));
        let later = |s: u64| begin + Duration::from_secs(s);
        assert_eq!(limits.admit(later(4)), Err(Refusal::Limited("requests", 6)));
        assert_eq!(limits.admit(later(11)), Ok(()));
        assert_eq!(limits.admit(later(11)), Err(Refusal::Limited("requests", 9)), "refusals do not count");
        // No more than the amount of a minute is saved up.
        let admitted = (0..20).filter(|_| limits.admit(later(10_000)).is_ok()).count();
        assert_eq!(admitted, 6);
    }

    #[test]
    fn tokens_are_overdrawn_by_one_request_and_paid_back() {
        let (limits, begin) = (limits(0, 600), Instant::now());
        assert_eq!(limits.admit(begin), Ok(()));
        limits.charge(begin, 1200);
        assert_eq!(limits.admit(begin), Err(Refusal::Limited("tokens", 61)));
        assert_eq!(limits.admit(begin + Duration::from_secs(62)), Ok(()));
    }

    #[test]
    fn a_refusal_for_tokens_does_not_use_up_a_request() {
        let (limits, begin) = (limits(1, 60), Instant::now());
        limits.charge(begin, 60);
        assert!(matches!(limits.admit(begin), Err(Refusal::Limited("tokens", _))));
        assert_eq!(limits.admit(begin + Duration::from_secs(2)), Ok(()));
    }

    #[test]
    fn without_limits_everything_is_admitted() {
        let (limits, now) = (limits(0, 0), Instant::now());
        limits.charge(now, u64::MAX);
        assert!((0..1000).all(|_| limits.admit(now).is_ok()));
    }
}
