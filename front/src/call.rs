//! A request in the core, from its handler's start until it is freed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use hyper::header::HeaderMap;
use tokio::runtime::Handle as Runtime;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;

use crate::abi::{self, Pair, Text, Usage};
use crate::core::{Answer, Core, Handle, Next};
use crate::decode::Pairs;
use crate::form::FormPart;
use crate::keys::Caller;
use crate::wake::Token;

/// The number of calls that are not freed.
#[derive(Debug, Default)]
pub struct Live {
    count: Mutex<usize>,
    none: Condvar,
}

impl Live {
    fn add(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }

    fn remove(&self) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count -= 1;
        if *count == 0 {
            self.none.notify_all();
        }
    }

    /// Returns the number.
    #[must_use]
    pub fn count(&self) -> usize {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is none.
    pub fn wait(&self) {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.none.wait_while(count, |count| *count > 0));
    }
}

/// The parts that all calls of a front share.
#[derive(Clone, Debug)]
pub struct Calls {
    /// The core.
    pub core: Core,
    /// Runs functions that block.
    pub runtime: Runtime,
    /// The number of calls.
    pub live: Arc<Live>,
}

/// A request, complete and decoded.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Number of the route.
    pub route: u32,
    /// Decoded path.
    pub path: Vec<u8>,
    /// Parameters of the query.
    pub query: Pairs,
    /// Parameters of the path.
    pub params: Pairs,
    /// Headers.
    pub headers: HeaderMap,
    /// Sender.
    pub caller: Caller,
    /// Body.
    pub body: Bytes,
    /// Parts of the body, if it is a form.
    pub form: Option<Vec<FormPart>>,
}

impl Request {
    /// Passes the request to the core.
    fn call(&self, core: &Core, token: u64) -> Option<Handle> {
        let pair = |name: &[u8], value: &[u8]| Pair { name: Text::of(name), value: Text::of(value) };
        let pairs =
            |pairs: &Pairs| pairs.iter().map(|(name, value)| pair(name, value)).collect::<Vec<Pair>>();
        let (query, params) = (pairs(&self.query), pairs(&self.params));
        let headers = self.headers.iter();
        let headers: Vec<Pair> =
            headers.map(|(name, value)| pair(name.as_str().as_bytes(), value.as_bytes())).collect();
        let holder = self.caller.holder.as_deref();
        let tenant = holder.map_or("", |holder| &holder.tenant);
        let models = holder.map_or(&[][..], |holder| &holder.models);
        let models: Vec<Text> = models.iter().map(|model| Text::of(model.as_bytes())).collect();
        let part = |part: &FormPart| abi::RawFormPart {
            name: Text::of(&part.name),
            filename: Text::of(part.filename.as_deref().unwrap_or_default()),
            content_type: Text::of(&part.content_type),
            data: Text::of(&part.data),
            is_file: u32::from(part.filename.is_some()),
        };
        let parts: Vec<abi::RawFormPart> = self.form.iter().flatten().map(part).collect();
        core.call(&abi::Request {
            route: self.route,
            is_form: u32::from(self.form.is_some()),
            token,
            path: Text::of(&self.path),
            key: Text::of(&self.caller.key),
            tenant: Text::of(tenant.as_bytes()),
            models: models.as_ptr(),
            n_models: models.len(),
            body: Text::of(&self.body),
            query: query.as_ptr(),
            n_query: query.len(),
            params: params.as_ptr(),
            n_params: params.len(),
            headers: headers.as_ptr(),
            n_headers: headers.len(),
            parts: parts.as_ptr(),
            n_parts: parts.len(),
        })
    }
}

/// A call. It is freed once nothing has it any more: neither the answer nor a thread that runs one of its functions.
#[derive(Debug)]
pub struct Call {
    calls: Calls,
    token: Token,
    caller: Caller,
    /// Set by the thread that runs the handler.
    handle: OnceLock<Handle>,
    cancelled: AtomicBool,
    /// Held until the call is freed.
    permit: Option<OwnedSemaphorePermit>,
}

impl Call {
    fn new(calls: &Calls, permit: OwnedSemaphorePermit, caller: Caller) -> Option<Call> {
        let token = Token::new()?;
        calls.live.add();
        Some(Call {
            calls: calls.clone(),
            token,
            caller,
            handle: OnceLock::new(),
            cancelled: AtomicBool::new(false),
            permit: Some(permit),
        })
    }

    /// Runs the handler on this thread.
    fn run(&self, request: Request) -> Option<Answer> {
        let core = &self.calls.core;
        let handle = request.call(core, self.token.number())?;
        drop(request);
        // One of the two threads sees what the other has set, since both set first and look afterwards.
        let _ = self.handle.set(handle);
        if self.cancelled.load(Ordering::SeqCst) {
            core.cancel(handle);
        }
        core.start(handle);
        Some(core.answer(handle))
    }

    fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        if let Some(handle) = self.handle.get() {
            self.calls.core.cancel(*handle);
        }
    }

    fn next(&self, may_block: bool) -> Next {
        match self.handle.get() {
            Some(handle) => self.calls.core.next(*handle, may_block),
            None => Next::End(Bytes::new()),
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let (core, live, permit) = (self.calls.core, Arc::clone(&self.calls.live), self.permit.take());
        let (handle, caller) = (self.handle.get().copied(), std::mem::take(&mut self.caller));
        let free = move || {
            if let Some(handle) = handle {
                caller.charge(core.free(handle));
            }
            drop(permit);
            live.remove();
        };
        // It may block for as long as a generation takes that goes on without its client.
        if handle.is_some() { drop(self.calls.runtime.spawn_blocking(free)) } else { free() }
    }
}

/// A call whose client waits for it. Dropped before its end, it cancels the call.
#[derive(Debug)]
pub struct Running {
    call: Arc<Call>,
    is_finished: bool,
}

impl Running {
    /// Runs the handler on a thread of the pool.
    ///
    /// Returns `None` if the core cannot make a call.
    pub async fn start(
        calls: &Calls,
        permit: OwnedSemaphorePermit,
        request: Request,
    ) -> Option<(Running, Answer)> {
        let call = Arc::new(Call::new(calls, permit, request.caller.clone())?);
        let running = Running { call: Arc::clone(&call), is_finished: false };
        let answer = calls.runtime.spawn_blocking(move || call.run(request)).await.ok()??;
        Some((running, answer))
    }

    /// The token that is woken when there is more of the stream.
    #[must_use]
    pub fn token(&self) -> &Token {
        &self.call.token
    }

    /// Returns the next chunk, without blocking.
    ///
    /// At most one call of this or [`Running::next_blocking`] may run at a time; `&mut` and the handle ensure it.
    #[must_use]
    pub fn next_ready(&mut self) -> Next {
        self.call.next(false)
    }

    /// Returns the next chunk from a thread of the pool.
    #[must_use]
    pub fn next_blocking(&mut self) -> JoinHandle<Next> {
        let call = Arc::clone(&self.call);
        self.call.calls.runtime.spawn_blocking(move || call.next(true))
    }

    /// Tokens so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let handle = self.call.handle.get();
        handle.map_or(Usage::default(), |handle| self.call.calls.core.usage(*handle))
    }

    /// The answer is complete: dropping the call no longer cancels it.
    pub fn finish(mut self) {
        self.is_finished = true;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_finished {
            self.call.cancel();
        }
    }
}
