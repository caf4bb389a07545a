//! A core in Rust: its handlers do what the path of their route says, and a test feeds their streams.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use espalier_front::abi::{self, Head, Pair, Request, Table, Text, Usage};
use espalier_front::ffi::espalier_front_wake;

/// The behavior of a route's handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// Answers with what it got.
    Echo,
    /// Answers with a metric, and status 200.
    Totals,
    /// Blocks until it is released or cancelled.
    Hold,
    /// As `Hold`, and its call is made only once the gate of the mock is open.
    Late,
    /// Streams what it is fed, and wakes its token.
    Stream,
    /// The same without comments: it is looked at once a second unless it is woken.
    Quiet,
    /// Streams what it is fed, from a thread that waits.
    Blocking,
    /// Streams without an end.
    Endless,
    /// No call can be made.
    Failing,
}

/// A call of the mock.
#[derive(Debug)]
pub struct MockCall {
    core: Arc<Mock>,
    script: Script,
    token: u64,
    answer: String,
    state: Mutex<Fed>,
    changed: Condvar,
    cancelled: AtomicBool,
    /// Non-blocking and blocking calls of `call_next`.
    pub polls: AtomicUsize,
    pub waits: AtomicUsize,
    /// Whether two threads were in `call_next` at the same time.
    inside: AtomicBool,
    head: Mutex<Vec<Pair>>,
}

// SAFETY: the pairs point to static texts.
unsafe impl Send for MockCall {}
// SAFETY: as above.
unsafe impl Sync for MockCall {}

#[derive(Debug, Default)]
struct Fed {
    chunks: VecDeque<Vec<u8>>,
    ended: bool,
    /// The chunk that was returned last.
    lent: Vec<u8>,
}

impl MockCall {
    fn state(&self) -> MutexGuard<'_, Fed> {
        self.state.lock().unwrap()
    }

    /// Adds a chunk.
    pub fn feed(&self, chunk: &[u8]) {
        self.state().chunks.push_back(chunk.to_vec());
        self.notify();
    }

    /// Adds several chunks before anything is woken.
    pub fn feed_all(&self, chunks: &[&str]) {
        self.state().chunks.extend(chunks.iter().map(|chunk| chunk.as_bytes().to_vec()));
        self.notify();
    }

    /// Ends the stream, or releases the handler.
    pub fn end(&self) {
        self.state().ended = true;
        self.notify();
    }

    /// Ends the stream without waking it.
    pub fn end_silently(&self) {
        self.state().ended = true;
    }

    fn notify(&self) {
        self.changed.notify_all();
        espalier_front_wake(self.token);
    }

    /// Whether the client is gone.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    fn wait(&self) {
        let is_waiting = |fed: &mut Fed| fed.chunks.is_empty() && !fed.ended && !self.is_cancelled();
        drop(self.changed.wait_while(self.state(), is_waiting).unwrap());
    }

    fn next(&self, may_block: bool, out: &mut Text) -> i32 {
        match self.script {
            Script::Blocking if !may_block => return abi::BLOCKS,
            Script::Blocking => self.wait(),
            Script::Endless => self.state().chunks.push_back(vec![b'x'; 16 << 10]),
            _ => {}
        }
        let mut fed = self.state();
        let Some(chunk) = fed.chunks.pop_front() else {
            let is_over = fed.ended || self.is_cancelled();
            return if is_over { abi::END } else { abi::PENDING };
        };
        fed.lent = chunk;
        *out = Text::of(&fed.lent);
        abi::MORE
    }
}

/// The core.
#[derive(Debug, Default)]
pub struct Mock {
    scripts: Mutex<Vec<Script>>,
    pub state: AtomicI32,
    calls: Mutex<Vec<Arc<MockCall>>>,
    log: Mutex<Vec<String>>,
    pub freed: AtomicUsize,
    /// Number of calls that are being made while the gate is closed, and whether it is open.
    pub waiting: AtomicUsize,
    pub is_open: AtomicBool,
}

impl Mock {
    pub fn new() -> Arc<Mock> {
        Arc::new(Mock { state: AtomicI32::new(abi::READY), ..Mock::default() })
    }

    pub fn add(&self, script: Script) {
        self.scripts.lock().unwrap().push(script);
    }

    /// Number of calls that were made.
    pub fn made(&self) -> usize {
        self.calls.lock().unwrap().len()
    }

    pub fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    /// Returns a call once it was made.
    pub fn call(&self, number: usize) -> Arc<MockCall> {
        wait_until("a call is made", || self.made() > number);
        Arc::clone(&self.calls.lock().unwrap()[number])
    }

    /// Waits until so many calls are freed.
    pub fn wait_freed(&self, count: usize) {
        wait_until("calls are freed", || self.freed.load(Ordering::SeqCst) >= count);
    }
}

/// Waits for at most ten seconds.
pub fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(10), "not within 10 s: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The functions of the mock.
pub static TABLE: Table = Table {
    call_new,
    call_start,
    call_head,
    call_next,
    call_cancel,
    call_usage,
    call_free,
    core_state,
    core_log,
};

fn show(text: Text) -> String {
    // SAFETY: the texts of a request are valid during `call_new`.
    String::from_utf8_lossy(unsafe { text.bytes() }).into_owned()
}

/// Everything that the front passes, one line for each item.
fn describe(request: &Request) -> String {
    // SAFETY: the arrays of a request are valid during `call_new`, and have at least their number of items.
    let pairs = |first: *const Pair, count: usize| unsafe { std::slice::from_raw_parts(first, count) };
    let mut text = format!("path {}\n", show(request.path));
    if request.key.size > 0 {
        text += &format!("key {}\n", show(request.key));
    }
    if request.tenant.size > 0 {
        text += &format!("tenant {}\n", show(request.tenant));
    }
    // SAFETY: the arrays of a request are valid during `call_new`, and have at least their number of items.
    for model in unsafe { std::slice::from_raw_parts(request.models, request.n_models) } {
        text += &format!("model {}\n", show(*model));
    }
    let groups = [
        ("query", request.query, request.n_query),
        ("param", request.params, request.n_params),
        ("header", request.headers, request.n_headers),
    ];
    for (kind, first, count) in groups {
        for Pair { name, value } in pairs(first, count) {
            text += &format!("{kind} {}={}\n", show(*name), show(*value));
        }
    }
    // SAFETY: as above.
    for part in unsafe { std::slice::from_raw_parts(request.parts, request.n_parts) } {
        let kind = if part.is_file == 1 { "file" } else { "field" };
        let (name, file, data) = (show(part.name), show(part.filename), show(part.data));
        text += &format!("{kind} {name} [{file}] [{}]={data}\n", show(part.content_type));
    }
    text + &format!("form {}\nbody {}\n", request.is_form, show(request.body))
}

unsafe extern "C" fn call_new(core: *mut c_void, request: *const Request) -> *mut c_void {
    // SAFETY: the tests pass a mock that they keep alive, and the front a valid request.
    let (core, request) = unsafe { (&*core.cast::<Mock>(), &*request) };
    let script = core.scripts.lock().unwrap()[request.route as usize];
    if script == Script::Failing {
        return std::ptr::null_mut();
    }
    if script == Script::Late {
        core.waiting.fetch_add(1, Ordering::SeqCst);
        wait_until("the gate is open", || core.is_open.load(Ordering::SeqCst));
    }
    // SAFETY: the mock is in an `Arc`, which this adds a reference to.
    let shared = unsafe {
        Arc::increment_strong_count(core);
        Arc::from_raw(core)
    };
    let call = Arc::new(MockCall {
        core: shared,
        script,
        token: request.token,
        answer: describe(request),
        state: Mutex::default(),
        changed: Condvar::new(),
        cancelled: AtomicBool::new(false),
        polls: AtomicUsize::new(0),
        waits: AtomicUsize::new(0),
        inside: AtomicBool::new(false),
        head: Mutex::default(),
    });
    core.calls.lock().unwrap().push(Arc::clone(&call));
    Arc::into_raw(call).cast_mut().cast()
}

fn call<'a>(pointer: *mut c_void) -> &'a MockCall {
    // SAFETY: the front passes what `call_new` returned, until `call_free`.
    unsafe { &*pointer.cast::<MockCall>() }
}

unsafe extern "C" fn call_start(pointer: *mut c_void) {
    let call = call(pointer);
    if matches!(call.script, Script::Hold | Script::Late) {
        call.wait();
    }
}

unsafe extern "C" fn call_head(pointer: *mut c_void, head: *mut Head) {
    let call = call(pointer);
    let pair = |name: &'static str, value: &'static str| Pair {
        name: Text::of(name.as_bytes()),
        value: Text::of(value.as_bytes()),
    };
    let mut pairs = call.head.lock().unwrap();
    *pairs = vec![
        pair("X-Mock", "yes"),
        pair("Content-Length", "3"),
        pair("not a name", "x"),
        pair("X-Line", "a\nb"),
    ];
    // SAFETY: the front passes a head to write to.
    let head = unsafe { &mut *head };
    head.headers = pairs.as_ptr();
    head.n_headers = pairs.len();
    if call.script == Script::Totals {
        head.status = 200;
        head.body = Text::of(b"llamacpp:core 1\n");
    } else if matches!(call.script, Script::Echo | Script::Hold | Script::Late) {
        head.status = 201;
        head.content_type = Text::of(b"text/plain");
        head.body = Text::of(call.answer.as_bytes());
    } else {
        head.status = 200;
        head.is_stream = 1;
        head.ping_ms = if call.script == Script::Quiet { 0 } else { 300 };
        head.content_type = Text::of(b"text/event-stream");
    }
}

unsafe extern "C" fn call_next(pointer: *mut c_void, may_block: u32, chunk: *mut Text) -> i32 {
    let call = call(pointer);
    let count = if may_block == 0 { &call.polls } else { &call.waits };
    count.fetch_add(1, Ordering::SeqCst);
    assert!(!call.inside.swap(true, Ordering::SeqCst), "two threads are in call_next");
    // SAFETY: the front passes a text to write to.
    let result = call.next(may_block != 0, unsafe { &mut *chunk });
    call.inside.store(false, Ordering::SeqCst);
    result
}

unsafe extern "C" fn call_cancel(pointer: *mut c_void) {
    let call = call(pointer);
    call.cancelled.store(true, Ordering::SeqCst);
    drop(call.state());
    call.changed.notify_all();
}

/// Every call has read 10 tokens when it is made, and generated 5 when it is freed.
unsafe extern "C" fn call_usage(_pointer: *mut c_void, usage: *mut Usage) {
    // SAFETY: the front passes a place to write to.
    unsafe { *usage = Usage { prompt: 10, generated: 0 } };
}

unsafe extern "C" fn call_free(pointer: *mut c_void, usage: *mut Usage) {
    // SAFETY: the front passes a place to write to.
    unsafe { *usage = Usage { prompt: 10, generated: 5 } };
    // SAFETY: this is the reference that `call_new` returned, and the front's last use of it.
    let call = unsafe { Arc::from_raw(pointer.cast::<MockCall>()) };
    assert!(!call.inside.load(Ordering::SeqCst), "freed while a thread is in call_next");
    call.core.freed.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C" fn core_state(core: *mut c_void) -> i32 {
    // SAFETY: the tests pass a mock that they keep alive.
    unsafe { &*core.cast::<Mock>() }.state.load(Ordering::SeqCst)
}

unsafe extern "C" fn core_log(core: *mut c_void, level: i32, message: Text) {
    // SAFETY: the tests pass a mock that they keep alive.
    let core = unsafe { &*core.cast::<Mock>() };
    core.log.lock().unwrap().push(format!("{level} {}", show(message)));
}
