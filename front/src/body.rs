//! Reads the body of a request, up to a size and a deadline.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use tokio::time::{Instant, timeout_at};

use crate::refusal::Refusal;

/// Capacity that the length which a client declares reserves at most.
const MOST_RESERVED: usize = 1 << 20;

/// For how long the body of a refused request is read: a client that sends all of it first would see a reset connection
/// instead of the answer.
const DISCARD: Duration = Duration::from_secs(2);

/// Returns the whole body.
///
/// # Errors
///
/// It is larger than `limit`, is not complete in time, or breaks off.
pub async fn read<B>(body: &mut B, limit: usize, time: Duration) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes> + Unpin,
{
    let deadline = Instant::now() + time;
    let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if declared > limit {
        return Err(Refusal::Large(limit));
    }
    let mut whole = BytesMut::with_capacity(declared.min(MOST_RESERVED));
    loop {
        match timeout_at(deadline, next(body)).await {
            Err(_) => return Err(Refusal::Slow),
            Ok(None) => return Ok(whole.freeze()),
            Ok(Some(Err(_))) => return Err(Refusal::Malformed("the body of the request is incomplete")),
            Ok(Some(Ok(chunk))) if chunk.len() > limit - whole.len() => return Err(Refusal::Large(limit)),
            Ok(Some(Ok(chunk))) => whole.extend_from_slice(&chunk),
        }
    }
}

/// Reads on without keeping anything, for a short time.
pub async fn discard<B>(body: &mut B)
where
    B: Body<Data = Bytes> + Unpin,
{
    let deadline = Instant::now() + DISCARD;
    while let Ok(Some(Ok(_))) = timeout_at(deadline, next(body)).await {}
}

/// Returns the next data; trailers are skipped.
async fn next<B>(body: &mut B) -> Option<Result<Bytes, B::Error>>
where
    B: Body<Data = Bytes> + Unpin,
{
    loop {
        match poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await? {
            Err(error) => return Some(Err(error)),
            Ok(frame) => {
                if let Ok(data) = frame.into_data() {
                    return Some(Ok(data));
                }
            }
        }
    }
}
