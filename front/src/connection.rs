//! A connection before its protocol is known, and the deadline of its writes.

use std::future::Future;
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep, timeout};

/// The first bytes of a client that speaks HTTP/2.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0 or 1.1.
    Http1,
    /// HTTP/2, which the client has negotiated by TLS, or knows to be spoken.
    Http2,
}

/// Reads as much as the protocol needs.
///
/// # Errors
///
/// The client closes the connection, or does not begin a request in time.
pub async fn accept<S>(
    mut stream: S,
    time: Duration,
    write: Duration,
    has_stalled: Arc<AtomicBool>,
) -> Result<(Protocol, Connection<S>)>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut begin = BytesMut::with_capacity(PREFACE.len());
    let read = async {
        loop {
            if stream.read_buf(&mut begin).await? == 0 {
                return Err(Error::from(ErrorKind::UnexpectedEof));
            }
            let length = begin.len().min(PREFACE.len());
            if begin[..length] != PREFACE[..length] {
                return Ok(Protocol::Http1);
            }
            if length == PREFACE.len() {
                return Ok(Protocol::Http2);
            }
        }
    };
    let protocol = timeout(time, read).await.map_err(|_| Error::from(ErrorKind::TimedOut))??;
    Ok((protocol, Connection { stream, begin: begin.freeze(), write, stalled: None, has_stalled }))
}

/// A connection whose first bytes were read, and whose writes have a deadline.
#[derive(Debug)]
pub struct Connection<S> {
    stream: S,
    begin: Bytes,
    write: Duration,
    /// Since the client takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
    /// Set at the deadline.
    has_stalled: Arc<AtomicBool>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Turns a write that is pending for too long into an error.
    fn within_deadline<T>(&mut self, context: &mut Context<'_>, write: Poll<Result<T>>) -> Poll<Result<T>> {
        if write.is_ready() {
            self.stalled = None;
            return write;
        }
        let write = self.write;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(write)));
        match stalled.as_mut().poll(context) {
            Poll::Ready(()) => {
                self.has_stalled.store(true, Ordering::Relaxed);
                Poll::Ready(Err(Error::from(ErrorKind::TimedOut)))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        if self.begin.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let length = self.begin.len().min(buffer.remaining());
        buffer.put_slice(&self.begin[..length]);
        self.begin.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let write = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.within_deadline(context, write)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let write = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.within_deadline(context, write)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let flush = Pin::new(&mut self.stream).poll_flush(context);
        self.within_deadline(context, flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        // With TLS it writes.
        let shutdown = Pin::new(&mut self.stream).poll_shutdown(context);
        self.within_deadline(context, shutdown)
    }
}
