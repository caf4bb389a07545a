//! Metrics of the transport, in the text format of Prometheus, as the server has it: crates for metrics write
//! OpenMetrics, which cannot be appended to it.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Upper bounds of buckets in seconds, as the histograms of the core have them.
const BOUNDS: [f64; 18] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 120.0, 300.0, 600.0,
    1800.0,
];

/// A finished request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Finished<'a> {
    /// Path of the route; `None` if there is none.
    pub route: Option<&'a str>,
    /// Status.
    pub status: u16,
    /// The reason why the front answered it.
    pub refusal: Option<&'static str>,
    /// The reason why the answer is not complete.
    pub aborted: Option<&'static str>,
    /// Size of its body.
    pub received: u64,
    /// Size of the body of its answer.
    pub sent: u64,
    /// Time until the first byte of that body.
    pub first_byte: Option<Duration>,
    /// Time until the end.
    pub total: Duration,
}

/// Counters of all requests.
#[derive(Debug, Default)]
pub struct Metrics {
    requests: Mutex<BTreeMap<(String, u16), u64>>,
    refused: Mutex<BTreeMap<&'static str, u64>>,
    aborted: Mutex<BTreeMap<&'static str, u64>>,
    failed_handshakes: Mutex<BTreeMap<&'static str, u64>>,
    received: AtomicU64,
    sent: AtomicU64,
    first_byte: Histogram,
    duration: Histogram,
}

/// Values that are not counted here.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gauges {
    /// Open connections.
    pub connections: usize,
    /// Calls that are not freed.
    pub calls: usize,
    /// Lines of the access log that were not written; `None` without a log.
    pub lost_lines: Option<u64>,
}

fn add<K: Ord>(counts: &Mutex<BTreeMap<K, u64>>, key: K) {
    *counts.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default() += 1;
}

impl Metrics {
    /// Counts a request.
    pub fn count(&self, request: &Finished<'_>) {
        // Paths without a route are chosen by clients: they have one label together.
        add(&self.requests, (request.route.unwrap_or("other").to_string(), request.status));
        if let Some(reason) = request.refusal {
            add(&self.refused, reason);
        }
        if let Some(reason) = request.aborted {
            add(&self.aborted, reason);
        }
        self.received.fetch_add(request.received, Ordering::Relaxed);
        self.sent.fetch_add(request.sent, Ordering::Relaxed);
        if let Some(time) = request.first_byte {
            self.first_byte.observe(time);
        }
        self.duration.observe(request.total);
    }

    /// Counts a TLS handshake that failed.
    pub fn count_failed_handshake(&self, reason: &'static str) {
        add(&self.failed_handshakes, reason);
    }

    /// Returns all metrics as text.
    #[must_use]
    pub fn text(&self, gauges: &Gauges) -> String {
        let mut text = Text::default();
        text.counts(
            "http_requests_total",
            "HTTP requests, by route and status code",
            &self.requests,
            |key| format!("route=\"{}\",code=\"{}\"", key.0, key.1),
        );
        let reason = |key: &&str| format!("reason=\"{key}\"");
        let help = "HTTP requests that the transport refused";
        text.counts("http_requests_refused_total", help, &self.refused, reason);
        let help = "HTTP requests whose response was not completed";
        text.counts("http_requests_aborted_total", help, &self.aborted, reason);
        let help = "TLS handshakes that failed";
        text.counts("http_tls_handshakes_failed_total", help, &self.failed_handshakes, reason);
        let bytes = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let help = "Bytes of the bodies of HTTP requests";
        text.single("http_request_body_bytes_total", "counter", help, bytes(&self.received));
        let help = "Bytes of the bodies of HTTP responses";
        text.single("http_response_body_bytes_total", "counter", help, bytes(&self.sent));
        let help = "Time from the head of an HTTP request to the first byte of the body of its response";
        text.histogram("http_time_to_first_byte_seconds", help, &self.first_byte);
        let help = "Time from the head of an HTTP request to the end of its response";
        text.histogram("http_request_duration_seconds", help, &self.duration);
        text.single("http_connections", "gauge", "Open HTTP connections", gauges.connections);
        text.single("http_requests_running", "gauge", "HTTP requests that have a handler", gauges.calls);
        if let Some(lost) = gauges.lost_lines {
            let help = "Lines of the access log that could not be written";
            text.single("http_access_log_lost_lines_total", "counter", help, lost);
        }
        text.0
    }
}

/// A histogram of times.
#[derive(Debug, Default)]
struct Histogram {
    /// By bucket, without those of the buckets before it.
    counts: [AtomicU64; BOUNDS.len()],
    count: AtomicU64,
    microseconds: AtomicU64,
}

impl Histogram {
    fn observe(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        if let Some(bucket) = BOUNDS.iter().position(|bound| seconds <= *bound) {
            self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        let microseconds = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.microseconds.fetch_add(microseconds, Ordering::Relaxed);
    }
}

/// The text of metrics.
#[derive(Default)]
struct Text(String);

impl Text {
    /// Adds a line; a string takes every write.
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        let _ = self.0.write_fmt(line);
        self.0.push('\n');
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP llamacpp:{name} {help}"));
        self.line(format_args!("# TYPE llamacpp:{name} {kind}"));
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.head(name, kind, help);
        self.line(format_args!("llamacpp:{name} {value}"));
    }

    fn counts<K>(
        &mut self,
        name: &str,
        help: &str,
        counts: &Mutex<BTreeMap<K, u64>>,
        labels: impl Fn(&K) -> String,
    ) {
        self.head(name, "counter", help);
        for (key, count) in &*counts.lock().unwrap_or_else(PoisonError::into_inner) {
            self.line(format_args!("llamacpp:{name}{{{}}} {count}", labels(key)));
        }
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, "histogram", help);
        // First: a request that is counted meanwhile must not make a bucket larger than the last one.
        let all = histogram.count.load(Ordering::Relaxed);
        let mut below = 0;
        for (bound, count) in BOUNDS.iter().zip(&histogram.counts) {
            below += count.load(Ordering::Relaxed);
            self.line(format_args!("llamacpp:{name}_bucket{{le=\"{bound}\"}} {}", below.min(all)));
        }
        self.line(format_args!("llamacpp:{name}_bucket{{le=\"+Inf\"}} {all}"));
        let seconds = histogram.microseconds.load(Ordering::Relaxed) as f64 / 1e6;
        self.line(format_args!("llamacpp:{name}_sum {seconds}"));
        self.line(format_args!("llamacpp:{name}_count {all}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(route: Option<&str>, status: u16, ms: u64) -> Finished<'_> {
        Finished { route, status, total: Duration::from_millis(ms), ..Finished::default() }
    }

    #[test]
    fn requests_are_counted_by_route_and_code() {
        let metrics = Metrics::default();
        for (route, status) in [(Some("/a"), 200), (Some("/a"), 200), (Some("/a"), 400), (None, 404)] {
            metrics.count(&finished(route, status, 1));
        }
        let text = metrics.text(&Gauges::default());
        let lines = "# HELP llamacpp:http_requests_total HTTP requests, by route and status code\n\
                     # TYPE llamacpp:http_requests_total counter\n\
                     llamacpp:http_requests_total{route=\"/a\",code=\"200\"} 2\n\
                     llamacpp:http_requests_total{route=\"/a\",code=\"400\"} 1\n\
                     llamacpp:http_requests_total{route=\"other\",code=\"404\"} 1\n";
        assert!(text.starts_with(lines), "{text}");
    }

    #[test]
    fn buckets_are_cumulative_and_include_their_bound() {
        let metrics = Metrics::default();
        for ms in [1, 2, 10, 3_600_000] {
            metrics.count(&finished(None, 200, ms));
        }
        let text = metrics.text(&Gauges::default());
        for line in [
            "_bucket{le=\"0.001\"} 1",
            "_bucket{le=\"0.0025\"} 2",
            "_bucket{le=\"0.005\"} 2",
            "_bucket{le=\"0.01\"} 3",
            "_bucket{le=\"1800\"} 3",
            "_bucket{le=\"+Inf\"} 4",
            "_sum 3600.013",
            "_count 4",
        ] {
            let line = format!("llamacpp:http_request_duration_seconds{line}\n");
            assert!(text.contains(&line), "{line} is not in\n{text}");
        }
        assert!(text.contains("llamacpp:http_time_to_first_byte_seconds_count 0\n"), "{text}");
    }

    /// Every sample follows the head of its metric, and names end in their unit.
    #[test]
    fn the_text_is_a_valid_exposition() {
        let metrics = Metrics::default();
        let aborted = Some("client_left");
        metrics.count(&Finished { aborted, refusal: Some("key"), ..finished(Some("/a"), 499, 1) });
        let text = metrics.text(&Gauges { lost_lines: Some(2), ..Gauges::default() });
        let mut current = "";
        for line in text.lines() {
            match line.split(' ').collect::<Vec<&str>>()[..] {
                ["#", "HELP", name, ..] => current = name,
                ["#", "TYPE", name, kind] => {
                    assert_eq!(name, current);
                    let is_total = name.ends_with("_total");
                    assert_eq!(is_total, kind == "counter", "{line}");
                    assert!(kind != "histogram" || name.ends_with("_seconds"), "{line}");
                }
                [sample, value] => {
                    assert!(sample.starts_with(current) && value.parse::<f64>().is_ok(), "{line}");
                }
                _ => panic!("{line}"),
            }
        }
        assert!(text.contains("llamacpp:http_access_log_lost_lines_total 2\n"), "{text}");
        assert!(text.contains("llamacpp:http_requests_aborted_total{reason=\"client_left\"} 1\n"), "{text}");
    }
}
