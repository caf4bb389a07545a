//! An answer that the core streams, as the body of a response. It needs no thread while it waits for the core.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep, sleep};

use crate::abi::Usage;
use crate::call::Running;
use crate::core::Next;

/// Chunks that are ready at once are joined up to this size: fewer writes under load.
const MOST_JOINED: usize = 16 << 10;

/// A comment of server-sent events, which clients ignore.
const PING: &[u8] = b":\n\n";

/// Largest time that a stream waits before it looks again whether it was ended from elsewhere.
const TICK: Duration = Duration::from_secs(1);

/// A stream.
#[derive(Debug)]
pub struct Stream {
    /// `None` once the last chunk was taken.
    running: Option<Running>,
    /// The thread that waits for the next chunk of a stream which cannot be woken.
    waiting: Option<JoinHandle<Next>>,
    tick: Pin<Box<Sleep>>,
    ping: Option<Duration>,
    /// When the client got something.
    last: Instant,
    /// Tokens at the end.
    usage: Usage,
}

impl Stream {
    /// The stream of a call whose handler returned; it gets a comment after `ping_ms` without data.
    #[must_use]
    pub fn new(running: Running, ping_ms: u32) -> Stream {
        let ping = Some(ping_ms).filter(|ms| *ms > 0).map(|ms| Duration::from_millis(u64::from(ms)));
        let tick = Box::pin(sleep(TICK));
        let (last, usage) = (Instant::now(), Usage::default());
        Stream { running: Some(running), waiting: None, tick, ping, last, usage }
    }

    /// Whether the last chunk was taken.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.running.is_none()
    }

    /// Returns the chunks that are ready; `None` at the end.
    pub fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut joined = BytesMut::new();
        while joined.len() < MOST_JOINED {
            let Poll::Ready(next) = self.poll_next(context) else { break };
            match next {
                Some(Next::More(chunk)) => joined.extend_from_slice(&chunk),
                Some(Next::End(chunk)) => {
                    joined.extend_from_slice(&chunk);
                    self.finish();
                }
                // A thread was started: its result may be there already.
                Some(Next::Blocks) => continue,
                Some(Next::Pending) if !joined.is_empty() => break,
                Some(Next::Pending) => match self.poll_tick(context) {
                    Poll::Ready(Some(ping)) => joined.extend_from_slice(ping),
                    Poll::Ready(None) => continue,
                    Poll::Pending => return Poll::Pending,
                },
                None => break,
            }
        }
        if !joined.is_empty() {
            self.last = Instant::now();
            return Poll::Ready(Some(joined.freeze()));
        }
        if self.is_done() { Poll::Ready(None) } else { Poll::Pending }
    }

    fn finish(&mut self) {
        if let Some(running) = self.running.take() {
            self.usage = running.usage();
            running.finish();
        }
    }

    /// Tokens so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.running.as_ref().map_or(self.usage, Running::usage)
    }

    /// Returns the result of the core, `None` after the end. Pending is only a thread.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Next>> {
        let Some(running) = &mut self.running else { return Poll::Ready(None) };
        if let Some(waiting) = &mut self.waiting {
            let Poll::Ready(next) = Pin::new(waiting).poll(context) else { return Poll::Pending };
            self.waiting = None;
            // A thread that panicked or was not started ends the stream.
            return Poll::Ready(Some(next.unwrap_or(Next::End(Bytes::new()))));
        }
        // Before the core is asked: a chunk that arrives meanwhile wakes this task.
        running.token().register(context.waker());
        let next = running.next_ready();
        if next == Next::Blocks {
            self.waiting = Some(running.next_blocking());
        }
        Poll::Ready(Some(next))
    }

    /// Waits for the next look at the core; returns a comment if it is time for one.
    fn poll_tick(&mut self, context: &mut Context<'_>) -> Poll<Option<&'static [u8]>> {
        if self.tick.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        let now = Instant::now();
        let tick = self.ping.map_or(TICK, |ping| ping.min(TICK));
        self.tick.as_mut().reset(now + tick);
        let is_due = self.ping.is_some_and(|ping| now - self.last >= ping);
        Poll::Ready(is_due.then_some(PING))
    }
}
