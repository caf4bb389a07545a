//! The core behind the table of functions, and the answers that it gives.

use std::ffi::c_void;
use std::ptr::NonNull;

use bytes::Bytes;

use crate::abi::{self, Head, Pair, Table, Text, Usage};

/// The part of the server that answers requests.
#[derive(Clone, Copy, Debug)]
pub struct Core {
    table: Table,
    context: *mut c_void,
}

// SAFETY: the header requires of the core that its functions may be called from any thread.
unsafe impl Send for Core {}
// SAFETY: as above.
unsafe impl Sync for Core {}

/// State of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The model is being loaded.
    Loading,
    /// Requests are answered.
    Ready,
    /// The server is shutting down.
    Stopping,
}

/// A call of the core, until it is freed.
#[derive(Clone, Copy, Debug)]
pub struct Handle(NonNull<c_void>);

// SAFETY: a call may move between threads; `Call` ensures that only one at a time uses it, except for `cancel`.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// The head of an answer, and its body unless that is a stream.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Content type.
    pub content_type: Vec<u8>,
    /// Other headers.
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
    /// Body; `None` for a stream.
    pub body: Option<Bytes>,
    /// Time without data after which a stream gets a comment, in milliseconds; 0 is never.
    pub ping_ms: u32,
}

/// A step of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// A chunk that is not the last.
    More(Bytes),
    /// The last chunk.
    End(Bytes),
    /// The token of the call will be woken.
    Pending,
    /// Only a blocking call can tell.
    Blocks,
}

impl Core {
    /// A core.
    ///
    /// # Safety
    ///
    /// The functions keep the rules of the header for as long as any copy of the result is used.
    #[must_use]
    pub unsafe fn new(table: Table, context: *mut c_void) -> Core {
        Core { table, context }
    }

    /// Makes a call; `None` if the core is out of memory.
    #[must_use]
    pub fn call(&self, request: &abi::Request) -> Option<Handle> {
        // SAFETY: `request` is borrowed by its owner, and the core keeps copies only.
        NonNull::new(unsafe { (self.table.call_new)(self.context, request) }).map(Handle)
    }

    /// Runs the handler; blocks.
    pub fn start(&self, call: Handle) {
        // SAFETY: a handle is of a call that is not freed: `Call` frees it once nothing else has it.
        unsafe { (self.table.call_start)(call.0.as_ptr()) }
    }

    /// Copies the answer.
    #[must_use]
    pub fn answer(&self, call: Handle) -> Answer {
        let mut head = Head::EMPTY;
        // SAFETY: the call was started and is not freed; `head` is writable.
        unsafe { (self.table.call_head)(call.0.as_ptr(), &raw mut head) };
        // SAFETY: the texts of a head are valid until the first `call_next`, which follows.
        let copy = |text: Text| unsafe { text.bytes() }.to_vec();
        let headers = if head.n_headers == 0 {
            &[]
        } else {
            // SAFETY: `headers` has `n_headers` pairs, valid as the texts are.
            unsafe { std::slice::from_raw_parts(head.headers, head.n_headers) }
        };
        Answer {
            status: u16::try_from(head.status).unwrap_or(500),
            content_type: copy(head.content_type),
            headers: headers.iter().map(|Pair { name, value }| (copy(*name), copy(*value))).collect(),
            body: (head.is_stream == 0).then(|| Bytes::from(copy(head.body))),
            ping_ms: head.ping_ms,
        }
    }

    /// Returns the next chunk.
    #[must_use]
    pub fn next(&self, call: Handle, may_block: bool) -> Next {
        let mut chunk = Text::EMPTY;
        // SAFETY: the call was started and is not freed, `chunk` is writable, and `Call` lets one thread at a time in.
        let result = unsafe { (self.table.call_next)(call.0.as_ptr(), u32::from(may_block), &raw mut chunk) };
        // SAFETY: the chunk is valid until the next `call_next`, which cannot happen meanwhile.
        let bytes = || Bytes::copy_from_slice(unsafe { chunk.bytes() });
        match result {
            abi::MORE => Next::More(bytes()),
            abi::PENDING if !may_block => Next::Pending,
            abi::BLOCKS if !may_block => Next::Blocks,
            // An unknown result ends the stream: going on could loop forever.
            _ => Next::End(bytes()),
        }
    }

    /// Cancels the call.
    pub fn cancel(&self, call: Handle) {
        // SAFETY: the call is not freed; the core accepts this from any thread at any time.
        unsafe { (self.table.call_cancel)(call.0.as_ptr()) }
    }

    /// Returns the tokens of the call so far.
    #[must_use]
    pub fn usage(&self, call: Handle) -> Usage {
        let mut usage = Usage::default();
        // SAFETY: the call is not freed, and `usage` is writable; the core accepts this from any thread at any time.
        unsafe { (self.table.call_usage)(call.0.as_ptr(), &raw mut usage) };
        usage
    }

    /// Frees the call, which nothing uses any more, and returns its tokens; may block.
    pub fn free(&self, call: Handle) -> Usage {
        let mut usage = Usage::default();
        // SAFETY: `Call` calls this once, when no other thread has the handle; `usage` is writable.
        unsafe { (self.table.call_free)(call.0.as_ptr(), &raw mut usage) };
        usage
    }

    /// Returns the state of the core.
    #[must_use]
    pub fn state(&self) -> State {
        // SAFETY: the core outlives the front, per the header.
        match unsafe { (self.table.core_state)(self.context) } {
            abi::LOADING => State::Loading,
            abi::READY => State::Ready,
            _ => State::Stopping,
        }
    }

    /// Logs a message of the level `abi::LOG_*`.
    pub fn log(&self, level: i32, message: &str) {
        // SAFETY: the core outlives the front, and copies the message.
        unsafe { (self.table.core_log)(self.context, level, Text::of(message.as_bytes())) }
    }
}
