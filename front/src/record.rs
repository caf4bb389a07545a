//! The record of a request, from its head until the end of its answer: a line of the access log, and the metrics.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::http::request::Parts;
use serde::{Serialize, Serializer};

use crate::abi::Usage;
use crate::access_log::AccessLog;
use crate::keys::Caller;
use crate::metrics::{Finished, Gauges, Metrics};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::trace::{self, Trace};

/// The status in the log of a request that got no answer, as in other servers' logs.
const NO_ANSWER: u16 = 499;

/// Most characters of a method, and of a path, in a line.
const MOST_TEXT: usize = 512;

/// The receiver of records.
#[derive(Debug, Default)]
pub struct Journal {
    log: Option<AccessLog>,
    metrics: Metrics,
    /// Number of open connections.
    open: AtomicUsize,
    is_stopped: AtomicBool,
}

impl Journal {
    /// A journal with a log, or without one.
    #[must_use]
    pub fn new(log: Option<AccessLog>) -> Journal {
        Journal { log, ..Journal::default() }
    }

    /// The number of open connections.
    #[must_use]
    pub fn open(&self) -> &AtomicUsize {
        &self.open
    }

    /// The metrics as text, with the number of calls that are not freed.
    #[must_use]
    pub fn metrics(&self, calls: usize) -> String {
        let connections = self.open.load(Ordering::SeqCst);
        let lost_lines = self.log().map(AccessLog::lost);
        self.metrics.text(&Gauges { connections, calls, lost_lines })
    }

    /// Counts a TLS handshake that failed.
    pub fn count_failed_handshake(&self, reason: &'static str) {
        self.metrics.count_failed_handshake(reason);
    }

    /// The log.
    #[must_use]
    pub fn log(&self) -> Option<&AccessLog> {
        self.log.as_ref()
    }

    /// Requests that have no complete answer are ended by the server from now on.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }
}

/// The other side of a connection.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// Its address; none on a unix socket.
    pub address: Option<SocketAddr>,
    /// Whether it speaks TLS.
    pub is_tls: bool,
    /// Whether it took nothing of an answer until the deadline.
    pub has_stalled: Arc<AtomicBool>,
}

/// A line of the log: docs/reference/front.md describes the fields.
#[derive(Debug, Default, Serialize)]
struct Line {
    unix_ms: u64,
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    scheme: &'static str,
    protocol: String,
    method: String,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<String>,
    status: u16,
    end: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'static str>,
    received_bytes: usize,
    sent_bytes: usize,
    #[serde(rename = "head_ms", skip_serializing_if = "Option::is_none", serialize_with = "milliseconds")]
    head: Option<Duration>,
    #[serde(
        rename = "first_byte_ms",
        skip_serializing_if = "Option::is_none",
        serialize_with = "milliseconds"
    )]
    first_byte: Option<Duration>,
    #[serde(rename = "total_ms", serialize_with = "milliseconds")]
    total: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generated_tokens: Option<u64>,
}

/// The record of a request. It is complete when it is dropped.
#[derive(Debug)]
pub struct Record {
    journal: Arc<Journal>,
    peer: Peer,
    begin: Instant,
    is_complete: bool,
    line: Line,
}

impl Record {
    /// Begins with the head of a request.
    #[must_use]
    pub fn begin(journal: &Arc<Journal>, peer: &Peer, head: &Parts) -> Record {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (trace, parent) = Trace::of(&head.headers).map(|trace| (trace.id, trace.parent)).unzip();
        let cut = |text: &str| text.chars().take(MOST_TEXT).collect();
        let line = Line {
            unix_ms: u64::try_from(unix.as_millis()).unwrap_or(u64::MAX),
            id: trace::request_id(&head.headers),
            trace,
            parent,
            client: peer.address,
            scheme: if peer.is_tls { "https" } else { "http" },
            protocol: format!("{:?}", head.version),
            method: cut(head.method.as_str()),
            path: cut(head.uri.path()),
            status: NO_ANSWER,
            ..Line::default()
        };
        let (journal, peer) = (Arc::clone(journal), peer.clone());
        Record { journal, peer, begin: Instant::now(), is_complete: false, line }
    }

    /// The id of the request.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.line.id
    }

    /// Sets the path of the route.
    pub fn set_route(&mut self, path: &str) {
        self.line.route = Some(path.to_string());
    }

    /// Sets the sender: the names of its key and its tenant, never the key.
    pub fn set_caller(&mut self, caller: &Caller) {
        let names = caller.holder.as_ref().map(|holder| (holder.name.clone(), holder.tenant.clone()));
        (self.line.key, self.line.tenant) = names.unzip();
    }

    /// Sets the size of the body.
    pub fn set_received(&mut self, bytes: usize) {
        self.line.received_bytes = bytes;
    }

    /// Sets the reason why the front answers itself.
    pub fn set_refusal(&mut self, refusal: Refusal) {
        self.line.refusal = Some(refusal.name());
    }

    /// Sets the tokens of the call.
    pub fn set_usage(&mut self, usage: Usage) {
        let known = |tokens: u64| Some(tokens).filter(|tokens| *tokens > 0);
        (self.line.prompt_tokens, self.line.generated_tokens) = (known(usage.prompt), known(usage.generated));
    }

    /// Counts bytes of the answer.
    fn send(&mut self, bytes: usize) {
        if bytes > 0 && self.line.sent_bytes == 0 {
            self.line.first_byte = Some(self.begin.elapsed());
        }
        self.line.sent_bytes += bytes;
    }

    fn end(&self) -> &'static str {
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        match self.line.refusal {
            Some(_) if self.is_complete => "refused",
            None if self.is_complete => "complete",
            _ if is(&self.journal.is_stopped) => "server_stopped",
            _ if is(&self.peer.has_stalled) => "client_stalled",
            _ => "client_left",
        }
    }
}

fn milliseconds<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.unwrap_or_default().as_micros() as f64 / 1000.0)
}

impl Drop for Record {
    fn drop(&mut self) {
        let total = self.begin.elapsed();
        self.line.end = self.end();
        self.line.total = Some(total);
        let line = &self.line;
        self.journal.metrics.count(&Finished {
            route: line.route.as_deref(),
            status: line.status,
            refusal: line.refusal,
            aborted: Some(line.end).filter(|_| !self.is_complete),
            received: line.received_bytes as u64,
            sent: line.sent_bytes as u64,
            first_byte: line.first_byte,
            total,
        });
        let text = self.journal.log().map(|log| (log, serde_json::to_string(line)));
        if let Some((log, Ok(text))) = text {
            log.write(text + "\n");
        }
    }
}

/// The body of an answer, with the record of its request.
#[derive(Debug)]
pub struct Recorded {
    reply: Reply,
    record: Box<Record>,
}

impl Recorded {
    /// The body of an answer with this status.
    #[must_use]
    pub fn new(reply: Reply, status: u16, mut record: Box<Record>) -> Recorded {
        record.line.status = status;
        record.line.head = Some(record.begin.elapsed());
        record.is_complete = reply.is_end_stream();
        Recorded { reply, record }
    }
}

impl Body for Recorded {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Recorded { reply, record } = self.get_mut();
        let frame = Pin::new(&mut *reply).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &frame {
            record.send(frame.data_ref().map_or(0, Bytes::len));
        }
        record.is_complete = reply.is_end_stream();
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.reply.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.reply.size_hint()
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        if let Reply::Stream(stream) = &self.reply {
            self.record.set_usage(stream.usage());
        }
    }
}
