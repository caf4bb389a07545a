//! A front: its threads, its listeners, and how it ends.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Method, Request};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::abi::{LOG_ERROR, LOG_INFO};
use crate::access_log::AccessLog;
use crate::call::{Calls, Live};
use crate::connection::{self, Protocol};
use crate::core::Core;
use crate::hangup::{self, Files};
use crate::listen::{self, Accepted, Listener, Socketed};
use crate::options::Options;
use crate::record::{Journal, Peer};
use crate::routes::Routes;
use crate::service::{MONITORS, Service};

/// Threads that serve connections: they only move bytes, and the model needs the cores.
const WORKERS: usize = 2;

/// Threads that read files.
const FILES: usize = 1;

/// Handlers use recursive parsers: as much stack as the C library gives a thread.
const STACK: usize = 8 << 20;

/// Largest size of the headers of a request.
const MOST_HEADERS: usize = 64 << 10;

/// Most headers of a request.
const MOST_FIELDS: usize = 100;

/// Most requests of an HTTP/2 connection at a time.
const MOST_STREAMS: u32 = 128;

/// Time between two pings of an HTTP/2 connection, and time for the answer.
const H2_PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(10));

/// All connections have to be closed for so long: one in the backlog is counted a moment after it was made.
const QUIET: Duration = Duration::from_millis(100);

/// The phases of a front's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Requests are answered.
    Serving,
    /// Connections close after their current request.
    Draining,
    /// Connections close.
    Stopped,
}

/// A front.
#[derive(Debug)]
pub struct Front {
    core: Core,
    options: Arc<Options>,
    routes: Routes,
    live: Arc<Live>,
    journal: Arc<Journal>,
    phase: watch::Sender<Phase>,
    /// `None` before it listens.
    runtime: Option<Runtime>,
}

impl Front {
    /// A front that does not listen yet.
    ///
    /// # Errors
    ///
    /// The access log cannot be opened.
    pub fn new(core: Core, options: Options) -> Result<Front, String> {
        let log = options.access_log.clone().map(|path| AccessLog::open(path, core)).transpose()?;
        Ok(Front {
            journal: Arc::new(Journal::new(log)),
            core,
            options: Arc::new(options),
            routes: Routes::default(),
            live: Arc::default(),
            phase: watch::Sender::new(Phase::Serving),
            runtime: None,
        })
    }

    /// Adds a route; `None` once the front listens.
    pub fn route(&mut self, method: Method, path: &[u8], flags: u32) -> Option<u32> {
        self.runtime.is_none().then(|| self.routes.add(method, &self.options.prefix, path, flags))
    }

    /// Binds all addresses and serves them; returns the TCP port.
    ///
    /// # Errors
    ///
    /// An address cannot be bound, or a thread cannot be started.
    pub fn listen(&mut self) -> Result<u16, String> {
        if self.runtime.is_some() {
            return Err("the transport is already listening".to_string());
        }
        // Each call has at most one thread, and frees itself on another one while the first ends.
        let threads = self.options.max_calls + MONITORS + FILES;
        let runtime = Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .max_blocking_threads(threads)
            .thread_stack_size(STACK)
            .thread_name("espalier-front")
            .enable_io()
            .enable_time()
            .build();
        let runtime = runtime.map_err(|error| format!("no threads: {error}"))?;
        let (listeners, port) = {
            let _inside = runtime.enter();
            listen::bind_all(&self.options)?
        };
        let calls =
            Calls { core: self.core, runtime: runtime.handle().clone(), live: Arc::clone(&self.live) };
        let (options, journal) = (Arc::clone(&self.options), Arc::clone(&self.journal));
        let service = Service::new(options, self.routes.clone(), calls, journal);
        let acceptor = Acceptor {
            service: Arc::new(service),
            options: Arc::clone(&self.options),
            places: Arc::new(Semaphore::new(self.options.max_connections)),
            journal: Arc::clone(&self.journal),
            phase: self.phase.subscribe(),
        };
        for listener in listeners {
            runtime.spawn(acceptor.clone().run(listener));
        }
        let files = self.files();
        files.warn();
        if files.exist() {
            hangup::watch(&runtime, files)?;
        }
        self.runtime = Some(runtime);
        Ok(port)
    }

    /// Number of open connections.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.journal.open().load(Ordering::SeqCst)
    }

    /// Number of calls that are not freed.
    #[must_use]
    pub fn live_calls(&self) -> usize {
        self.live.count()
    }

    /// Lets connections finish their request, and waits for them.
    pub fn drain(&self, time: Duration) {
        self.phase.send_if_modified(|phase| {
            let is_first = *phase == Phase::Serving;
            if is_first {
                *phase = Phase::Draining;
            }
            is_first
        });
        let begin = Instant::now();
        let mut quiet = Instant::now();
        while begin.elapsed() < time && quiet.elapsed() < QUIET {
            std::thread::sleep(Duration::from_millis(5));
            if self.open_connections() > 0 {
                quiet = Instant::now();
            }
        }
    }

    /// Closes listeners and connections, which cancels all calls.
    pub fn stop(&self) {
        self.journal.stop();
        self.phase.send_replace(Phase::Stopped);
    }

    /// Stops, and waits until all calls are freed.
    pub fn close(mut self) {
        self.stop();
        let Some(runtime) = self.runtime.take() else { return };
        let begin = Instant::now();
        // The tasks of the connections have the calls: first they have to end.
        while self.open_connections() > 0 && begin.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.live.wait();
        runtime.shutdown_timeout(Duration::from_secs(1));
        self.core.log(LOG_INFO, "transport closed");
    }

    fn files(&self) -> Files {
        let (options, journal) = (Arc::clone(&self.options), Arc::clone(&self.journal));
        Files { core: self.core, options, journal }
    }

    /// Reads the files of the options again, as SIGHUP does.
    pub fn reload(&self) {
        self.files().reload();
    }

    /// Logs an error.
    pub fn log_error(&self, message: &str) {
        self.core.log(LOG_ERROR, message);
    }
}

/// An open connection: dropped after everything that belongs to it.
struct Open {
    journal: Arc<Journal>,
    _place: OwnedSemaphorePermit,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.journal.open().fetch_sub(1, Ordering::SeqCst);
    }
}

/// Accepts the connections of one listener.
#[derive(Clone)]
struct Acceptor {
    service: Arc<Service>,
    options: Arc<Options>,
    places: Arc<Semaphore>,
    journal: Arc<Journal>,
    phase: watch::Receiver<Phase>,
}

impl Acceptor {
    async fn run(self, listener: Listener) {
        let mut phase = self.phase.clone();
        let mut stopped = pin!(reach(&mut phase, Phase::Stopped));
        loop {
            let mut accept = pin!(self.accept(&listener));
            let next = poll_fn(|context| {
                if stopped.as_mut().poll(context).is_ready() {
                    return Poll::Ready(None);
                }
                accept.as_mut().poll(context)
            });
            let Some((accepted, open)) = next.await else { return };
            tokio::spawn(self.clone().serve(accepted, open));
        }
    }

    /// At most so many connections are open: further ones wait in the backlog.
    async fn accept(&self, listener: &Listener) -> Option<(Accepted, Open)> {
        let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
        let accepted = listener.accept().await;
        self.journal.open().fetch_add(1, Ordering::SeqCst);
        Some((accepted, Open { journal: Arc::clone(&self.journal), _place: place }))
    }

    /// Arguments are dropped last: a connection counts as open until its requests are cancelled.
    async fn serve(self, accepted: Accepted, _open: Open) {
        let mut phase = self.phase.clone();
        let mut stopped = pin!(reach(&mut phase, Phase::Stopped));
        let mut serving = pin!(self.serve_until_closed(accepted));
        poll_fn(|context| {
            if stopped.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            serving.as_mut().poll(context)
        })
        .await;
    }

    /// Does the handshake if there is TLS, which unix sockets never have.
    async fn secure(&self, accepted: Accepted) -> Option<(Box<dyn Socketed>, Peer)> {
        let (stream, address) = match accepted {
            Accepted::Tcp(stream, address) => (stream, address),
            #[cfg(unix)]
            Accepted::Unix(stream) => return Some((Box::new(stream), Peer::default())),
        };
        let peer = Peer { address: Some(address), ..Peer::default() };
        let Some(tls) = &self.options.tls else { return Some((Box::new(stream), peer)) };
        match tls.accept(stream, self.options.header).await {
            Ok(stream) => Some((Box::new(stream), Peer { is_tls: true, ..peer })),
            Err(reason) => {
                self.journal.count_failed_handshake(reason);
                None
            }
        }
    }

    async fn serve_until_closed(&self, accepted: Accepted) {
        let Some((stream, peer)) = self.secure(accepted).await else { return };
        let (header, write) = (self.options.header, self.options.write);
        let accepted = connection::accept(stream, header, write, Arc::clone(&peer.has_stalled)).await;
        let Ok((protocol, connection)) = accepted else { return };
        let connection = TokioIo::new(connection);
        // Whether a request has arrived.
        let is_used = AtomicBool::new(false);
        let service = service_fn(|request: Request<Incoming>| {
            is_used.store(true, Ordering::SeqCst);
            let (service, phase, peer) = (Arc::clone(&self.service), self.phase.clone(), peer.clone());
            async move {
                let mut answer = service.answer(request, &peer).await?;
                if protocol == Protocol::Http1 && *phase.borrow() != Phase::Serving {
                    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(answer)
            }
        });
        let mut phase = self.phase.clone();
        let mut drained = pin!(reach(&mut phase, Phase::Draining));
        match protocol {
            Protocol::Http1 => {
                let mut http1 = http1::Builder::new();
                http1.timer(TokioTimer::new()).header_read_timeout(self.options.header);
                http1.max_buf_size(MOST_HEADERS).max_headers(MOST_FIELDS);
                let serving = pin!(http1.serve_connection(connection, service));
                until_closed(serving, drained.as_mut(), |serving| {
                    // A new connection gets its answer first, which says that it is the last one.
                    if is_used.load(Ordering::SeqCst) {
                        serving.graceful_shutdown();
                    }
                })
                .await;
            }
            Protocol::Http2 => {
                let mut http2 = http2::Builder::new(TokioExecutor::new());
                http2.timer(TokioTimer::new()).keep_alive_interval(H2_PING.0).keep_alive_timeout(H2_PING.1);
                http2.max_concurrent_streams(MOST_STREAMS).max_header_list_size(MOST_HEADERS as u32);
                let serving = pin!(http2.serve_connection(connection, service));
                until_closed(serving, drained.as_mut(), |serving| serving.graceful_shutdown()).await;
            }
        }
    }
}

async fn reach(phase: &mut watch::Receiver<Phase>, least: Phase) {
    // An error is that the front is gone.
    let _ = phase.wait_for(|phase| *phase >= least).await;
}

/// Runs a connection; once `drained` is reached, it ends with its current request.
async fn until_closed<C: Future>(
    mut serving: Pin<&mut C>,
    mut drained: Pin<&mut impl Future<Output = ()>>,
    shut_down: impl Fn(Pin<&mut C>),
) {
    let mut is_draining = false;
    poll_fn(|context| {
        if !is_draining && drained.as_mut().poll(context).is_ready() {
            is_draining = true;
            shut_down(serving.as_mut());
        }
        // An error is that of one client: the answer was 400, or the client is gone.
        serving.as_mut().poll(context).map(drop)
    })
    .await;
}
