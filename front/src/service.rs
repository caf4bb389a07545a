//! From a request to its answer.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http_body::Body;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HeaderMap, HeaderName, HeaderValue, SERVER,
    TRANSFER_ENCODING,
};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode, Version};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::abi::{ANTHROPIC, DISPATCH, HEALTH, METRICS, MONITOR};
use crate::call::{Calls, Running};
use crate::core::{Answer, State};
use crate::decode::Pairs;
use crate::keys::Caller;
use crate::options::Options;
use crate::record::{Journal, Peer, Record, Recorded};
use crate::refusal::Refusal;
use crate::reply::{self, Reply};
use crate::routes::{Route, Routes};
use crate::stream::Stream;
use crate::trace::X_REQUEST_ID;
use crate::{body, call, decode, form};

/// Requests that answer questions about the server, besides those that are counted.
pub const MONITORS: usize = 8;

/// Answers the requests of all connections.
#[derive(Debug)]
pub struct Service {
    options: Arc<Options>,
    routes: Routes,
    calls: Calls,
    running: Arc<Semaphore>,
    monitors: Arc<Semaphore>,
    journal: Arc<Journal>,
}

impl Service {
    /// A service for the routes.
    #[must_use]
    pub fn new(options: Arc<Options>, routes: Routes, calls: Calls, journal: Arc<Journal>) -> Service {
        let running = Arc::new(Semaphore::new(options.max_calls));
        Service { options, routes, calls, running, monitors: Arc::new(Semaphore::new(MONITORS)), journal }
    }

    /// Answers a request.
    ///
    /// # Errors
    ///
    /// None: errors are answers.
    pub async fn answer<B>(
        self: Arc<Self>,
        request: Request<B>,
        peer: &Peer,
    ) -> Result<Response<Recorded>, Infallible>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let (mut head, mut body) = request.into_parts();
        let mut record = Box::new(Record::begin(&self.journal, peer, &head));
        let id = HeaderValue::from_str(record.id()).unwrap_or(HeaderValue::from_static(""));
        // For handlers too, and for the children of a router.
        head.headers.insert(X_REQUEST_ID, id.clone());
        let mut answer = match head.method {
            Method::OPTIONS => self.preflight(&head.headers),
            _ => self.answer_request(&head, &mut body, &mut record).await,
        };
        let headers = answer.headers_mut();
        headers.insert(SERVER, HeaderValue::from_static("llama.cpp"));
        headers.insert(X_REQUEST_ID, id);
        self.options.cors.mark(&head.headers, headers);
        if head.version == Version::HTTP_2 {
            headers.remove(CONNECTION);
        }
        let answer = if head.method == Method::HEAD { without_body(answer) } else { answer };
        let status = answer.status().as_u16();
        Ok(answer.map(|reply| Recorded::new(reply, status, record)))
    }

    /// Browsers send no key with it.
    fn preflight(&self, request: &HeaderMap) -> Response<Reply> {
        let mut answer = reply::whole(StatusCode::OK, "text/html", "");
        self.options.cors.preflight(answer.headers_mut());
        if has_body(request) {
            // Its body would be read, without a key.
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }

    async fn answer_request<B>(&self, head: &Parts, body: &mut B, record: &mut Record) -> Response<Reply>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let path = decode::path(head.uri.path().as_bytes());
        if let Some((route, answer)) = self.probe(&head.method, &path) {
            record.set_route(route);
            return answer;
        }
        let found = self.routes.find(&head.method, &path);
        let route = found.as_ref().map(|(route, _)| *route);
        let is_anthropic = route.is_some_and(|route| route.is(ANTHROPIC));
        if let Some(route) = route {
            record.set_route(self.routes.path(route));
        }
        let params = found.map(|(_, params)| params).unwrap_or_default();
        let refused = match self.answer_route(head, route, (path, params), body, record).await {
            Ok(answer) => return answer,
            Err(refusal) => refusal,
        };
        record.set_refusal(refused);
        // With `Expect`, the client sends the body only if it is asked to.
        if refused != Refusal::Slow && !head.headers.contains_key(EXPECT) {
            body::discard(body).await;
        }
        refused.answer(is_anthropic)
    }

    /// Answers what the server does not know.
    fn probe(&self, method: &Method, path: &[u8]) -> Option<(&'static str, Response<Reply>)> {
        let inside = path.strip_prefix(self.options.prefix.as_slice())?;
        match (method, inside) {
            (&Method::GET | &Method::HEAD, b"/livez") => Some(("/livez", reply::ok())),
            (&Method::GET | &Method::HEAD, b"/readyz") => Some(("/readyz", self.readiness())),
            _ => None,
        }
    }

    /// Answers a request of the server: checks its head, then reads the body and runs the handler.
    async fn answer_route<B>(
        &self,
        head: &Parts,
        route: Option<Route>,
        (path, params): (Vec<u8>, Pairs),
        body: &mut B,
        record: &mut Record,
    ) -> Result<Response<Reply>, Refusal>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let (route, caller) = self.check(&head.headers, route)?;
        record.set_caller(&caller);
        if route.is(HEALTH) {
            return Ok(reply::ok());
        }
        let request = call::Request {
            route: route.number,
            path,
            query: decode::query(head.uri.query().unwrap_or_default()),
            params,
            headers: head.headers.clone(),
            caller,
            ..call::Request::default()
        };
        self.run(route, request, body, record).await
    }

    /// Whether more requests should be sent here.
    fn readiness(&self) -> Response<Reply> {
        let reason = match self.calls.core.state() {
            State::Loading => "loading",
            State::Stopping => "stopping",
            State::Ready if self.running.available_permits() == 0 => "busy",
            State::Ready => return reply::ok(),
        };
        reply::json(StatusCode::SERVICE_UNAVAILABLE, format!(r#"{{"status":"{reason}"}}"#))
    }

    /// Checks what does not need the body, in the server's order: its state, the key, the route.
    fn check(&self, headers: &HeaderMap, route: Option<Route>) -> Result<(Route, Caller), Refusal> {
        match self.calls.core.state() {
            State::Stopping => return Err(Refusal::Stopping),
            State::Loading => return Err(Refusal::Loading),
            State::Ready => {}
        }
        let is_public = route.is_some_and(|route| route.is(HEALTH));
        let caller = if is_public { Caller::default() } else { self.options.keys.identify(headers)? };
        let route = route.ok_or(Refusal::NotFound)?;
        if route.is(DISPATCH) && caller.is_restricted() {
            return Err(Refusal::Restricted);
        }
        Ok((route, caller))
    }

    fn admit(&self, route: Route, caller: &Caller) -> Result<OwnedSemaphorePermit, Refusal> {
        let permits = if route.is(MONITOR) { &self.monitors } else { &self.running };
        let permit = Arc::clone(permits).try_acquire_owned().map_err(|_| Refusal::Busy)?;
        if !route.is(MONITOR) {
            caller.admit()?;
        }
        Ok(permit)
    }

    /// Reads the body and runs the handler.
    async fn run<B>(
        &self,
        route: Route,
        mut request: call::Request,
        body: &mut B,
        record: &mut Record,
    ) -> Result<Response<Reply>, Refusal>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        // Before the body: a request that cannot be processed need not be received.
        let permit = self.admit(route, &request.caller)?;
        request.body = body::read(body, self.options.max_body, self.options.body).await?;
        record.set_received(request.body.len());
        let content_type = request.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        if form::is_form(content_type) {
            request.form = Some(form::parts(content_type, &request.body).map_err(Refusal::Malformed)?);
        }
        let started = Running::start(&self.calls, permit, request).await;
        let (running, mut answer) = started.ok_or(Refusal::Internal)?;
        if let Some(body) = answer.body.as_mut().filter(|_| route.is(METRICS) && answer.status == 200) {
            *body = [&body[..], self.journal.metrics(self.calls.live.count()).as_bytes()].concat().into();
        }
        record.set_usage(running.usage());
        Ok(response(running, answer))
    }
}

/// The answer to a HEAD: the length is that of the answer to a GET.
fn without_body(answer: Response<Reply>) -> Response<Reply> {
    let (mut head, body) = answer.into_parts();
    if let Some(length) = body.size_hint().exact() {
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    Response::from_parts(head, Reply::Whole(None))
}

fn has_body(headers: &HeaderMap) -> bool {
    let length = headers.get(CONTENT_LENGTH).map(HeaderValue::as_bytes);
    headers.contains_key(TRANSFER_ENCODING) || length.is_some_and(|length| length != b"0")
}

/// The response with an answer of the core.
fn response(running: Running, answer: Answer) -> Response<Reply> {
    let body = match answer.body {
        Some(body) => {
            running.finish();
            Reply::Whole(Some(body))
        }
        None => Reply::Stream(Box::new(Stream::new(running, answer.ping_ms))),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    for (name, value) in &answer.headers {
        let header = HeaderName::from_bytes(name).ok().zip(HeaderValue::from_bytes(value).ok());
        // The length and the connection are the transport's.
        if let Some((name, value)) = header.filter(|(name, _)| *name != CONTENT_LENGTH && *name != CONNECTION)
        {
            headers.append(name, value);
        }
    }
    if let Ok(value) = HeaderValue::from_bytes(&answer.content_type) {
        headers.insert(CONTENT_TYPE, value);
    }
    response
}
