//! The types of `include/espalier_front.h`.

use std::ffi::c_void;

/// `ESPALIER_FRONT_ABI`.
pub const ABI_VERSION: u32 = 4;

/// Bytes of the other side, valid as long as the function says that receives them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// First byte; may be null if `size` is 0.
    pub data: *const u8,
    /// Number of bytes.
    pub size: usize,
}

impl Text {
    /// No bytes.
    pub const EMPTY: Text = Text { data: std::ptr::null(), size: 0 };

    /// The bytes of `text`, which has to outlive the result.
    #[must_use]
    pub fn of(text: &[u8]) -> Text {
        Text { data: text.as_ptr(), size: text.len() }
    }

    /// The bytes.
    ///
    /// # Safety
    ///
    /// `data` points to `size` readable bytes that do not change during `'a`, or `size` is 0.
    #[must_use]
    pub unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.size == 0 || self.data.is_null() {
            return &[];
        }
        // SAFETY: per this function's contract there are `size` readable bytes, which do not change.
        unsafe { std::slice::from_raw_parts(self.data, self.size) }
    }
}

/// A header, or a parameter of a query or a path.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// Name.
    pub name: Text,
    /// Value.
    pub value: Text,
}

/// A part of a multipart form.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawFormPart {
    /// Name of the field.
    pub name: Text,
    /// Name of the file.
    pub filename: Text,
    /// Content type of the file.
    pub content_type: Text,
    /// Content.
    pub data: Text,
    /// 1 if it has a file name.
    pub is_file: u32,
}

/// A request, as the core receives it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The route's number.
    pub route: u32,
    /// 1 if `parts` has the body.
    pub is_form: u32,
    /// Token of the stream.
    pub token: u64,
    /// Path, decoded.
    pub path: Text,
    /// API key, checked if any is required.
    pub key: Text,
    /// Name of its tenant, if the key is one of the file.
    pub tenant: Text,
    /// Models that the key may use.
    pub models: *const Text,
    /// Their number; 0 is all.
    pub n_models: usize,
    /// Body.
    pub body: Text,
    /// Parameters of the query.
    pub query: *const Pair,
    /// Their number.
    pub n_query: usize,
    /// Parameters of the path.
    pub params: *const Pair,
    /// Their number.
    pub n_params: usize,
    /// Headers.
    pub headers: *const Pair,
    /// Their number.
    pub n_headers: usize,
    /// Parts of a form.
    pub parts: *const RawFormPart,
    /// Their number.
    pub n_parts: usize,
}

/// The head of an answer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// HTTP status.
    pub status: u32,
    /// 1 if `call_next` returns the body.
    pub is_stream: u32,
    /// Time without data after which a stream gets a comment; 0 is never.
    pub ping_ms: u32,
    /// Content type.
    pub content_type: Text,
    /// Body, unless it is a stream.
    pub body: Text,
    /// Other headers.
    pub headers: *const Pair,
    /// Their number.
    pub n_headers: usize,
}

impl Head {
    /// A head before the core fills it.
    pub const EMPTY: Head = Head {
        status: 500,
        is_stream: 0,
        ping_ms: 0,
        content_type: Text::EMPTY,
        body: Text::EMPTY,
        headers: std::ptr::null(),
        n_headers: 0,
    };
}

/// The tokens of a call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of prompts, cached ones included.
    pub prompt: u64,
    /// Generated tokens.
    pub generated: u64,
}

/// `ESPALIER_FRONT_MORE`.
pub const MORE: i32 = 0;
/// `ESPALIER_FRONT_END`.
pub const END: i32 = 1;
/// `ESPALIER_FRONT_PENDING`.
pub const PENDING: i32 = 2;
/// `ESPALIER_FRONT_BLOCKS`.
pub const BLOCKS: i32 = 3;

/// `ESPALIER_FRONT_LOADING`.
pub const LOADING: i32 = 0;
/// `ESPALIER_FRONT_READY`.
pub const READY: i32 = 1;
/// `ESPALIER_FRONT_STOPPING`.
pub const STOPPING: i32 = 2;

/// `ESPALIER_FRONT_HEALTH`.
pub const HEALTH: u32 = 1;
/// `ESPALIER_FRONT_MONITOR`.
pub const MONITOR: u32 = 2;
/// `ESPALIER_FRONT_ANTHROPIC`.
pub const ANTHROPIC: u32 = 4;
/// `ESPALIER_FRONT_METRICS`.
pub const METRICS: u32 = 8;
/// `ESPALIER_FRONT_DISPATCH`.
pub const DISPATCH: u32 = 16;

/// `ESPALIER_FRONT_ERROR`.
pub const LOG_ERROR: i32 = 0;
/// `ESPALIER_FRONT_WARNING`.
pub const LOG_WARNING: i32 = 1;
/// `ESPALIER_FRONT_INFO`.
pub const LOG_INFO: i32 = 2;

/// The functions of the core.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Makes a call.
    pub call_new: unsafe extern "C" fn(*mut c_void, *const Request) -> *mut c_void,
    /// Runs its handler.
    pub call_start: unsafe extern "C" fn(*mut c_void),
    /// Returns the head of its answer.
    pub call_head: unsafe extern "C" fn(*mut c_void, *mut Head),
    /// Returns the next chunk of its answer.
    pub call_next: unsafe extern "C" fn(*mut c_void, u32, *mut Text) -> i32,
    /// Cancels it.
    pub call_cancel: unsafe extern "C" fn(*mut c_void),
    /// Returns its tokens so far.
    pub call_usage: unsafe extern "C" fn(*mut c_void, *mut Usage),
    /// Frees it, and returns its tokens.
    pub call_free: unsafe extern "C" fn(*mut c_void, *mut Usage),
    /// Returns the state of the core.
    pub core_state: unsafe extern "C" fn(*mut c_void) -> i32,
    /// Logs a message.
    pub core_log: unsafe extern "C" fn(*mut c_void, i32, Text),
}

/// The options of a front.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawOptions {
    /// Addresses.
    pub hosts: *const Text,
    /// Their number.
    pub n_hosts: usize,
    /// API keys.
    pub keys: *const Text,
    /// Their number.
    pub n_keys: usize,
    /// File of keys.
    pub key_file: Text,
    /// File of the access log.
    pub access_log: Text,
    /// File of the certificate.
    pub certificate: Text,
    /// File of its private key.
    pub private_key: Text,
    /// File of the issuers of client certificates.
    pub client_ca: Text,
    /// Prefix of all paths.
    pub prefix: Text,
    /// Allowed origins.
    pub cors_origins: Text,
    /// Allowed methods.
    pub cors_methods: Text,
    /// Allowed headers.
    pub cors_headers: Text,
    /// Largest body in bytes.
    pub max_body: u64,
    /// 1 if credentials are allowed.
    pub cors_credentials: u32,
    /// TCP port.
    pub port: u32,
    /// 1 for `SO_REUSEPORT`.
    pub reuse_port: u32,
    /// 1 if the core knows the tokens of its calls.
    pub counts_tokens: u32,
    /// Deadline of headers.
    pub header_ms: u32,
    /// Deadline of bodies.
    pub body_ms: u32,
    /// Deadline of writes.
    pub write_ms: u32,
    /// Most running and waiting requests.
    pub max_calls: u32,
    /// Most connections.
    pub max_connections: u32,
}
